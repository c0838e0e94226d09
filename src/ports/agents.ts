/** South: whoever does the work, what it is given, and the four verbs it has. */
import type { Decision, NewArtifact, ToolResult } from '../model/actions.ts';
import type { Answer } from '../model/asks.ts';
import type { End, Fact, ProposedAction } from '../model/commands.ts';
import type { Artifact, Message, Session, Task, Workspace } from '../model/resources.ts';
import type { JsonObject } from '../model/schema.ts';

export interface Abilities {
  /** Can go on after a crash of ours from what the log holds, asking the same questions with the same ids. */
  readonly resume: boolean;
  /** How firmly its own tool calls are ours when it does not say. */
  readonly evidence: 'held' | 'asked' | 'observed';
  /** Takes messages while it works. */
  readonly steer?: boolean;
}

export interface Work {
  readonly task: Task;
  readonly session: Session;
  /** The conversation so far, oldest first. */
  transcript(): AsyncIterable<Message>;
  /** True when this task was already running before a crash. */
  readonly resumed: boolean;
  /** Where it is done: the root may be a directory of this machine. */
  readonly workspace?: Workspace;
  /** The content of a file the input or the conversation refers to; undefined when it is not kept here. */
  bytes?(artifactId: string): Promise<Uint8Array | undefined>;
  /** What is known about such a file: its type, its name, where else it is. */
  artifact?(artifactId: string): Promise<Artifact | undefined>;
  /**
   * Whether it may be waiting for someone just now: people who are asked, or whoever runs a call of its that came through
   * any door of ours. A process that is gone counts for nobody.
   */
  awaiting?(): Promise<boolean>;
}

export interface Run {
  /** Settles when the work is over; a rejection is a failure. */
  readonly done: Promise<End>;
  /** A message for work in progress. */
  steer?(message: JsonObject): void;
  /** Extra effort after the abort signal, for what a signal cannot reach. */
  stop?(): Promise<void>;
}

export interface AgentBackend {
  readonly name: string;
  readonly abilities: Abilities;
  /** What it says of itself, for whoever chooses among agents. */
  readonly about?: About;
  start(work: Work, sink: Sink, signal: AbortSignal): Promise<Run>;
  /** This session is over: whatever was kept for it can go. Not called for sessions that another process closed. */
  release?(sessionId: string): Promise<void>;
  close?(): Promise<void>;
}

export interface About {
  readonly description?: string;
  readonly version?: string;
  readonly skills?: readonly { readonly id: string; readonly name: string; readonly description: string }[];
}

/** An agent that work can be given to. */
export interface AgentFace {
  readonly name: string;
  /** Work that names no agent is its work. */
  readonly default: boolean;
  readonly abilities: Abilities;
  readonly about: About;
}

/** All a backend gets. Awaiting `emit` is the backpressure. */
export interface Sink {
  emit(fact: Fact): Promise<void>;
  /** May I (approval), or tell me (input). Decided by policy first; people are asked only when it says so. */
  ask(question: Question): Promise<Answer>;
  /**
   * Do this through the bridge: gated, run once, recorded. Without `effect` the named tool backend runs it. `withdrawn` as in
   * a question; what has begun by then is not undone.
   */
  act(action: ProposedAction, effect?: HeldEffect, withdrawn?: AbortSignal): Promise<ActResult>;
  /** Bytes the work produced. */
  artifact(file: NewArtifact): Promise<{ id: string; sha256: string | null }>;
}

export type Question = {
  /** Fires when whoever asked no longer wants to know: the question is closed at once, for everyone. */
  readonly withdrawn?: AbortSignal;
} & (
  | {
      readonly kind: 'approval';
      readonly action: ProposedAction;
      /** The asker can run other arguments than it asked about. Without it a rewriting rule is a refusal. */
      readonly takesArguments?: boolean;
      readonly question?: string;
      readonly ext?: JsonObject;
    }
  | {
      readonly kind: 'input';
      /** Same key, same question: asking again after a crash joins the one still open. */
      readonly key: string;
      readonly question: string;
      readonly schema?: JsonObject;
      readonly expires_ms?: number;
      readonly ext?: JsonObject;
    }
);

export type HeldEffect = (args: JsonObject, signal: AbortSignal) => Promise<ToolResult>;

export type ActResult =
  | { readonly kind: 'done'; readonly result: ToolResult }
  | { readonly kind: 'refused'; readonly reason: string; readonly decision: Decision };
