/** The port of an agent backend: the work it is given, and the sink with its four operations (emit, ask, act, artifact). */
import type { Decision, NewArtifact, ToolResult } from '../model/actions.ts';
import type { Answer } from '../model/asks.ts';
import type { End, Fact, ProposedAction } from '../model/commands.ts';
import type { Artifact, Memory, Message, Session, Task, Workspace } from '../model/resources.ts';
import type { Json, JsonObject } from '../model/schema.ts';
import type { CallerReference } from './proof.ts';
import type { SessionInputsView } from './session-inputs.ts';

export interface Abilities {
  /** The agent can continue from the log after a crash of the gateway, asking the same questions with the same ids. */
  readonly resume: boolean;
  /** The evidence its tool calls count with when the agent does not state it. */
  readonly evidence: 'held' | 'asked' | 'observed';
  /** The agent accepts messages while it works. */
  readonly steer?: boolean;
  /** The agent uses private inputs of its session. Without one such agent, none are accepted. */
  readonly inputs?: boolean;
  /**
   * A replay can run the agent again: the same task and the same answers produce the same words, calls and questions, under the
   * same ids. It takes outside input only through its sink or from `work.recorded`; with `work.recorded` it makes no connections.
   */
  readonly reruns?: boolean;
}

export interface Work {
  readonly task: Task;
  readonly session: Session;
  /** The conversation so far, oldest first. */
  transcript(): AsyncIterable<Message>;
  /** True when this task was already running before a crash. */
  readonly resumed: boolean;
  /** Memories that the session names, as far as this work may read them. The task's input contains them as well. */
  readonly memories?: readonly Memory[];
  /** The workspace of the task; its root may be a directory on this machine. */
  readonly workspace?: Workspace;
  /** The content of a file that the input or the conversation refers to; undefined when it is not stored here. */
  bytes?(artifactId: string): Promise<Uint8Array | undefined>;
  /** The record of such a file: its type, its name, its other locations. */
  artifact?(artifactId: string): Promise<Artifact | undefined>;
  /**
   * Whether the task may be waiting for an open question, or for a call of its own that came through one of our doors and still
   * runs. Questions and calls of dead processes do not count.
   */
  awaiting?(): Promise<boolean>;
  /** Private inputs of the session: for use, never for an event, a message or an error. */
  readonly inputs?: SessionInputsView;
  /** Present only in a replay, and only for an agent with `reruns`: the outside input the agent took when it worked on this task. */
  readonly recorded?: RecordedInputs;
  /** The reference that identifies us to another gateway to which this work is forwarded. */
  reference?(protocol: string): Promise<CallerReference>;
}

/**
 * Values from the record, or from an override. Each method rejects when neither has the value: the replay then fails and names the
 * missing value, even if the agent handles the rejection.
 */
export interface RecordedInputs {
  /** The response of the model call that was reported as `span.completed` with this `call_id`. */
  model(callId: string): Promise<Json>;
  /** A clock read: `created_at` or `started_at` of the task, or a label of `times` in a reported event. */
  time(label: string): Promise<string>;
  /** Secrets are never recorded: only an override has the value. */
  secret(name: string): Promise<Json>;
  /** The value of a checkpoint that was reported under this id. */
  checkpoint(id: string): Promise<Json>;
}

export interface Run {
  /** Settles when the work is over; a rejection is a failure. */
  readonly done: Promise<End>;
  /** A message for work in progress. */
  steer?(message: JsonObject): void;
  /** Cleanup after the abort signal, for resources the signal cannot reach. */
  stop?(): Promise<void>;
}

export interface AgentBackend {
  readonly name: string;
  readonly abilities: Abilities;
  /** The agent's self-description, for clients that choose among agents. */
  readonly about?: About;
  /** The self-description of an agent that has to be asked for it. Resolves soon, with what is known when the agent is silent. */
  describe?(): Promise<About>;
  /** Where it is, for an agent at one address or several: as far as they were used, or (`anew`) as they answer now. */
  addresses?(anew: boolean): Promise<readonly AddressState[]>;
  start(work: Work, sink: Sink, signal: AbortSignal): Promise<Run>;
  /** The private inputs of a session have changed. A rejection reaches the client that changed them. */
  inputsChanged?(sessionId: string, inputs: SessionInputsView): Promise<void>;
  /** The session is over: state kept for it can be dropped. Not called for sessions that another process closed. */
  release?(sessionId: string): Promise<void>;
  close?(): Promise<void>;
}

/** Whether an agent answers at one of its addresses, which are for who looks after the gateway. `unknown` ones were not used yet. */
export interface AddressState {
  readonly address: string;
  readonly state: 'unknown' | 'ready' | 'unavailable';
  /** When that was last noticed. */
  readonly since?: string;
  readonly reason?: string;
}

export interface About {
  readonly description?: string;
  readonly version?: string;
  readonly icon_url?: string;
  readonly documentation_url?: string;
  readonly skills?: readonly AgentSkill[];
  /** The providers and models the agent reports it can use: lists by name, unchanged. */
  readonly catalog?: JsonObject;
}

export interface AgentSkill {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly tags?: readonly string[];
  readonly examples?: readonly string[];
}

/** What the configuration says about an agent, whichever protocol the agent speaks. */
export interface AgentTerms {
  /** Shown instead of what the agent says about itself, member by member. */
  readonly about?: About;
  /** The id of the quota that all its work counts against. */
  readonly quota_id?: string;
  /** Why it accepts no work. Absent: it does. */
  readonly off?: string;
}

/** An agent that accepts work, as doors list it. */
export interface AgentFace {
  readonly name: string;
  /** Work that names no agent goes to this one. */
  readonly default: boolean;
  readonly abilities: Abilities;
  readonly about: About;
  /** The whole description, where the agent has to be asked for it. For doors that publish it, not for each request. */
  describe?(): Promise<About>;
}

/** The whole interface from a backend into core. Awaiting `emit` is the backpressure. */
export interface Sink {
  emit(fact: Fact): Promise<void>;
  /** Requests an approval or an input value. Policy decides first; people are asked only when it says so. */
  ask(question: Question): Promise<Answer>;
  /**
   * Runs an act through the bridge: gated, run once, recorded. Without `effect` the named tool backend runs it. `withdrawn` works
   * as in a question; an act that has already begun is not undone.
   */
  act(action: ProposedAction, effect?: HeldEffect, withdrawn?: AbortSignal): Promise<ActResult>;
  /** Bytes the work produced. */
  artifact(file: NewArtifact): Promise<{ id: string; sha256: string | null }>;
}

export type Question = {
  /** Fires when the asker no longer needs the answer: the question is closed at once, for all approvers. */
  readonly withdrawn?: AbortSignal;
} & (
  | {
      readonly kind: 'approval';
      readonly action: ProposedAction;
      /**
       * The asker can run other arguments than the ones it asked about. Without it, a rule that rewrites arguments refuses the act.
       */
      readonly takesArguments?: boolean;
      readonly question?: string;
      readonly ext?: JsonObject;
    }
  | {
      readonly kind: 'input';
      /** The same key is the same question: asking again after a crash joins the question that is still open. */
      readonly key: string;
      readonly question: string;
      readonly schema?: JsonObject;
      readonly expires_ms?: number;
      readonly ext?: JsonObject;
    }
);

export type HeldEffect = (args: JsonObject, signal: AbortSignal) => Promise<ToolResult>;

export type ActResult =
  /** `decision` is set when other arguments ran than the ones that were proposed. */
  | { readonly kind: 'done'; readonly result: ToolResult; readonly decision?: Decision }
  | { readonly kind: 'refused'; readonly reason: string; readonly decision: Decision };
