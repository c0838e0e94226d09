/** The port of a door (an adapter's server side), and the bridge through which a door reaches core. */
import type { Readable, Writable } from 'node:stream';
import type { Actor, Decision } from '../model/actions.ts';
import type { Answer, AskKind, PendingAct } from '../model/asks.ts';
import type { Command, CommandKind, MountedTool } from '../model/commands.ts';
import type { CoreEvent, Cursor, Stream } from '../model/events.ts';
import type { Memory, Pointer, Quota, Skill } from '../model/resources.ts';
import type { JsonObject } from '../model/schema.ts';
import type { ActResult, AddressState, AgentFace } from './agents.ts';
import type { InputCommand } from './session-inputs.ts';
import type { Closable, EventRange, EventStream, ListQuery, Missing, Row } from './store.ts';
import type { ToolBackend, ToolCallCount, ToolServerState } from './tools.ts';
import type { SecretUser } from './vaults.ts';

export interface FrontDoor {
  readonly name: string;
  /** Kinds of question a person behind this door can answer. */
  readonly carries: readonly AskKind[];
  /** Tools that clients of this door run or that the door serves itself; mounted while the door is open. */
  readonly tools?: readonly ToolBackend[];
  open(bridge: Bridge): Promise<Closable>;
  /** Serves one client over its own streams instead, in a process that the client started. Resolves when its input has ended. */
  serve?(bridge: Bridge, client: StreamClient): Promise<void>;
}

/** The program that started this process, as the client of a door. */
export interface StreamClient {
  readonly input: Readable;
  /** Only protocol messages are written here. */
  readonly output: Writable;
  readonly actor: Actor;
  /** The person at the client, who may answer approvals; absent: no person is there. */
  readonly person?: Actor;
  /** The session of ours that the client works in. */
  readonly session?: string | undefined;
  /** The same for all processes that one client starts, as it does for each of its servers: they share a session, and its taint. */
  readonly conversation?: string | undefined;
  /** The one tool server it reaches, for a door that serves several. */
  readonly server?: string;
  /** Ends the connection, as the end of the input does. */
  readonly signal?: AbortSignal;
}

/** The whole interface from a door into core. */
export interface Bridge {
  submit<K extends CommandKind>(command: Extract<Command, { kind: K }>): Promise<Accepted<K>>;
  follow(actor: Actor, from: { stream: Stream; after?: Cursor | 'now' }, signal: AbortSignal): EventStream;
  events(actor: Actor, range: EventRange): AsyncIterable<CoreEvent>;
  /** The events of a task or session that are no longer kept; undefined when all of them are. */
  firstMissing(actor: Actor, stream: Stream): Promise<Missing | undefined>;
  /** One resource as this actor may see it. A hidden and an absent resource raise the same fault. */
  view<T extends Row>(actor: Actor, object: string, id: string): Promise<T>;
  list<T extends Row>(actor: Actor, query: ListQuery): Promise<{ data: readonly T[]; next: string | undefined }>;
  /** The workspace of a caller that names none: the first one it sees. A tenant without any gets one. */
  home(actor: Actor): Promise<string>;
  /**
   * The act behind an open question, exactly as it will run: only for actors who may answer it, and only until it is closed. Every
   * other account of the question is redacted.
   */
  pendingAct(actor: Actor, askId: string): Promise<PendingAct>;
  /** Every quota that limits this task: its own, its persona's, its workspace's, its tenant's and the installation's. */
  quotasOf(actor: Actor, taskId: string): Promise<readonly Quota[]>;
  /** Lists or changes the private inputs of a session. Nothing of it is written to the log by this call. */
  sessionInputs(actor: Actor, sessionId: string, command: InputCommand): Promise<JsonObject>;
  /** Memories of any author that apply to work in this session and that this actor may see. Their content is for the agent at work. */
  recall(actor: Actor, sessionId: string): AsyncIterable<Memory & Row>;
  bytes(actor: Actor, artifactId: string, range?: { start: number; end: number }): Promise<Uint8Array>;
  /** Our id for a wire id, if the two were bound. */
  bound(protocol: string, scope: string, wireId: string): Promise<Pointer | undefined>;
  /** The tools of the mounted backends; `source` names the backend. The same array is returned until a tool changes. */
  tools(actor: Actor): Promise<readonly Skill[]>;
  /** One of these tools, without listing the others. A `tool.call` that carries it is not looked up again. */
  tool(actor: Actor, name: string, server: string): Promise<MountedTool | undefined>;
  /**
   * The subset of these tools (or of `one`) that the rules would let this actor try in the workspace. Makes no decision and writes
   * nothing.
   */
  visible(actor: Actor, workspaceId: string, one?: Skill): Promise<readonly Skill[]>;
  /** Servers that accept requests in their own protocol. Policy decides on each request when it is made. */
  servers(actor: Actor): Promise<readonly string[]>;
  /** Which of the servers answer, as of the last time their tools were listed. */
  serverStates(actor: Actor): Promise<readonly ToolServerState[]>;
  /** Which addresses of which agents answer, as of their last use. */
  agentAddresses(actor: Actor): Promise<readonly (AddressState & { readonly agent: string })[]>;
  /** How often tools were called in this process, by all callers: for a door that shows it only to who looks after the gateway. */
  toolCalls(): readonly ToolCallCount[];
  /**
   * Calls `listener` when the tool list may have changed, until the returned function is called. Servers are subscribed to only for
   * watchers that want their changes too, which is the default.
   */
  watch(onChange: (change: ToolChange) => void, servers?: boolean): () => void;
  /** Agents that accept work, in the order they were mounted. */
  agents(actor: Actor): Promise<readonly AgentFace[]>;
  /** Uploads the bytes of a registered artifact. They must match the hash it was registered with, if it has one. */
  attach(actor: Actor, artifactId: string, bytes: Uint8Array): Promise<Row>;
  /**
   * The secret that signs a connector's deliveries, and the user it is read for; undefined when the connector names none or may not
   * use it.
   */
  secretOf(
    actor: Actor,
    connectorId: string,
  ): Promise<{ readonly secret: string; readonly user: SecretUser } | undefined>;
  /**
   * A provider's delivery, which the door has proven genuine: creates at most one task, and none when the connector's filters
   * exclude it.
   */
  deliver(actor: Actor, delivery: Delivery): Promise<{ readonly task: Row | undefined; readonly repeated: boolean }>;
}

/** The changed list of the named server; without a server, anything may have changed. */
export interface ToolChange {
  readonly server?: string;
  readonly list?: string;
}

/** An event from an outside provider that may become a task. */
export interface Delivery {
  readonly connector_id: string;
  /** The provider's own id of this delivery; a repeat of the id is the same delivery. */
  readonly delivery_id: string;
  readonly event_kind: string;
  readonly payload: JsonObject;
}

/** The result of a command: the resources it made or changed, in their current state. */
export interface Accepted<K extends CommandKind = CommandKind> {
  readonly kind: K;
  /** True when an earlier command with the same idempotency key did the work. */
  readonly repeated: boolean;
  readonly resource: K extends 'action.propose' | 'tool.call' | 'passthrough' ? Row | undefined : Row;
  /** For `action.propose`, `tool.call` and `passthrough`: the decision, and the person's answer if one was asked. */
  readonly decision?: Decision;
  readonly answer?: Answer;
  readonly act?: ActResult;
  /** For work that begins: the events of the commit that started it. A follower may continue after the last of them. */
  readonly written?: readonly CoreEvent[];
  /** For commands whose result is more than one resource. */
  readonly details?: JsonObject;
}
