/**
 * Every interface the outside implements, on one screen. Core knows these and nothing behind them.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Action, Actor, Decision, NewArtifact, ToolResult } from './model/actions.ts';
import type { Answer, AskKind } from './model/asks.ts';
import type { Command, CommandKind, End, Fact, ProposedAction } from './model/commands.ts';
import type { CoreEvent, Cursor, EventDraft, Stream } from './model/events.ts';
import type { Receipt, ReceiptDelta, ReceiptSignature, ReplayMaterial } from './model/receipt.ts';
import type { Artifact, Message, Pointer, Quota, Session, Skill, Task, Workspace } from './model/resources.ts';
import type { Json, JsonObject } from './model/schema.ts';

// ---- Time, names, keys: ports so that replay can answer from the record ----

export interface Clock {
  /** RFC 3339, UTC, milliseconds. */
  now(): string;
}
export interface Ids {
  /** `task` → `task_01J…`; never the same twice. */
  next(prefix: string): string;
}
export interface Signer {
  readonly keyId: string;
  /** Signs the text `sha256:<hex>`. */
  sign(hash: string): ReceiptSignature;
  /** Keyed digest of what may hold a secret: comparable here, meaningless elsewhere. `hmac-sha256:<hex>`. */
  mac(text: string): string;
}
export interface Logger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

// ---- Store: commit resolves once durable; events, projections, idempotency record and receipt commit together ----

/** A resource as last written. Every projection has these; the rest is its own. */
export interface Row {
  readonly id: string;
  readonly object: string;
  readonly created_at: string;
  readonly updated_at: string;
}

/** What a decision may look at, true at the moment of the commit. */
export interface At {
  /** Only what the unit named in `reads`. */
  get<T extends Row>(object: string, id: string): T | undefined;
  /** Sequence of the last event of a resource named in `reads`; 0 when it has none. */
  sequence(object: string, id: string): number;
  readonly now: string;
}

/**
 * One step: look, decide, append. `decide` runs inside the write transaction, so nothing can change between
 * looking and writing, in this process or another. It must be pure and quick; throwing a Fault refuses the unit and
 * writes nothing.
 */
export interface Unit {
  readonly reads?: readonly Pointer[];
  /** A repeat of the same scope and body is answered from the first one's result; another body is a fault. */
  readonly idempotency?: { readonly scope: string; readonly body: string };
  decide(at: At): Draft;
}
export interface Draft {
  readonly events: readonly EventDraft[];
  /** Chained and sealed inside the transaction, so that every receipt has exactly one predecessor. */
  readonly receipt?: { readonly chain: string; seal(head: ChainHead): SealedReceipt };
  /** Kept with the idempotency record and handed to repeats. */
  readonly result?: Json;
}
export interface Committed {
  readonly events: readonly CoreEvent[];
  readonly result: Json | undefined;
  readonly receipt: Receipt | undefined;
  /** True when this was a repeat and nothing was written. */
  readonly repeated: boolean;
}

/** Where the next receipt of a chain goes, and the compact form of the Merkle tree over all receipts. */
export interface ChainHead {
  readonly previous: string | null;
  readonly index: number;
  readonly tree: { readonly size: number; readonly frontier: readonly string[] };
}
export interface SealedReceipt {
  readonly id: string;
  readonly hash: string;
  readonly task_id: string;
  readonly receipt: Receipt;
  /** The tree after this receipt, and the nodes it completed. */
  readonly tree: ChainHead['tree'];
  readonly nodes: readonly TreeNode[];
}
export interface TreeNode {
  readonly level: number;
  readonly index: number;
  readonly hash: string;
}
export interface StoredReceipt {
  readonly position: number;
  readonly chain: string;
  readonly index: number;
  readonly hash: string;
  readonly receipt: Receipt;
}

export interface ReceiptQuery {
  readonly chain?: string;
  /** The receipt at this place of its chain. */
  readonly index?: number;
  readonly task?: string;
  /** Exclusive position; positions count from 0. */
  readonly after?: number;
  readonly limit?: number;
}

/** Turns events into resources. Pure; the only place projections come from, live and on rebuild. */
export interface Projector {
  /** Resources `apply` will look at for this event. */
  touches(event: EventDraft): readonly Pointer[];
  apply(event: CoreEvent, get: <T extends Row>(object: string, id: string) => T | undefined): readonly Change[];
}
export type Change = { readonly put: Row } | { readonly drop: Pointer };

export interface ListQuery {
  readonly object: string;
  readonly where?: Readonly<Partial<Record<FilterName, string | readonly string[]>>>;
  /** Oldest first by creation and id; `after` is the id of the last row seen. */
  readonly after?: string;
  readonly limit?: number;
  readonly newestFirst?: boolean;
}
/** Members a list can be filtered by; the store keeps them as columns. `state` is a row's `status` or `state`. */
export type FilterName = 'workspace_id' | 'session_id' | 'task_id' | 'parent_task_id' | 'state' | 'owner_id';

export interface EventRange {
  readonly stream: Stream;
  /** Exclusive; absent means from the beginning. Older than what is kept: `cursor_expired`. */
  readonly after?: Cursor;
  /** Inclusive. */
  readonly upTo?: Cursor;
  readonly kinds?: readonly string[];
  readonly limit?: number;
}

export interface Store {
  commit(unit: Unit): Promise<Committed>;
  read(range: EventRange): AsyncIterable<CoreEvent>;
  /** Past, then live, no gap, no repeat; also what other processes append to the same log. Ends when the signal fires. */
  follow(from: { stream: Stream; after?: Cursor | 'now' }, signal: AbortSignal): AsyncIterable<CoreEvent>;
  event(id: Cursor): Promise<CoreEvent | undefined>;
  /** The newest event of a stream. */
  tip(stream: Stream): Promise<Cursor | undefined>;
  get<T extends Row>(object: string, id: string): Promise<T | undefined>;
  list<T extends Row>(query: ListQuery): Promise<readonly T[]>;

  receipt(id: string): Promise<StoredReceipt | undefined>;
  receipts(query: ReceiptQuery): Promise<readonly StoredReceipt[]>;
  tree(): Promise<ChainHead['tree']>;
  nodes(wanted: readonly { level: number; index: number }[]): Promise<readonly TreeNode[]>;

  /** Bytes by their hash (bare hex). Putting the same bytes twice keeps one copy. */
  putBlob(bytes: Uint8Array): Promise<string>;
  blob(sha256: string, range?: { start: number; end: number }): Promise<Uint8Array | undefined>;
  hasBlob(sha256: string): Promise<boolean>;

  /** Held as long as this process lives, released by its death however it dies. Undefined: someone living has it. */
  lease(name: string): Promise<Closable | undefined>;
  /** Drop events older than `before` that no open task needs. Reading behind the cut is `cursor_expired`. */
  retain(before: string): Promise<{ dropped: number }>;
  /** Projections from nothing but the log; the live ones must come out equal. */
  rebuild(): Promise<void>;
  /** Undefined when well; otherwise why nothing can be written. */
  trouble(): string | undefined;
  close(): Promise<void>;
}
export interface Closable {
  close(): Promise<void>;
}

// ---- Proof: receipts and hashes ----

/** fold → build → canonicalise → hash → chain → sign. The last three happen inside the commit. */
export interface ReceiptIssuer {
  /** `sha256:<hex>` of the canonical form of a value. */
  hash(value: Json): string;
  account(): Account;
}
/** A running account of one task: events go in as they are committed, a receipt comes out at the end. */
export interface Account {
  /** Sequence of the last event taken in. */
  readonly sequence: number;
  /** Takes the next event; one that is not next is ignored and left to a later catch-up. */
  add(event: CoreEvent): void;
  /** Calls that were requested and have no end yet; `cleared` ones may have happened. */
  open(): readonly { readonly tool_call_id: string; readonly name: string; readonly cleared: boolean }[];
  seal(claim: ReceiptClaim, head: ChainHead): SealedReceipt;
}
/** What the account cannot know from the events alone. */
export interface ReceiptClaim {
  readonly receipt_id: string;
  readonly task: Task;
  readonly final_state: 'SUCCEEDED' | 'FAILED' | 'CANCELED';
  readonly times: {
    readonly created_at: string;
    readonly started_at: string;
    readonly completed_at: string;
    readonly issued_at: string;
  };
  readonly tenant_id?: string;
  readonly tiers: { readonly start: string; readonly end: string };
  readonly not_reported?: readonly string[];
  readonly still_running?: boolean;
  readonly interrupted?: boolean;
  /** Events of the same commit, which have no sequence yet. */
  readonly last: readonly EventDraft[];
  readonly replay?: ReplayClaim;
}
export interface ReplayClaim {
  readonly source_task_id: string;
  readonly mode: string;
  /** Hash of the canonical source log. */
  readonly source_hash: string;
  readonly deltas: readonly ReceiptDelta[];
  readonly materials: readonly ReplayMaterial[];
  readonly unavailable?: string;
  /** Someone asked for things as they are now; what was recorded then is no longer all there is to it. */
  readonly refreshed?: boolean;
}

// ---- Policy ----

export interface PolicyEngine {
  readonly name: string;
  decide(action: Action, signal: AbortSignal): Promise<Decision>;
  /** The same answer at once, where nobody has to be waited for; undefined where somebody has. */
  judge?(action: Action): Decision | undefined;
  /** How long it may take over an answer, when that is longer than rules take. */
  readonly patienceMs?: number;
  /** For an engine that wants to know how things went: called once, when the house is open. */
  listen?(bridge: Bridge, actor: Actor): void;
  close?(): Promise<void>;
}

/** The arithmetic of quotas, asked once before the work and once more inside the commit that charges it. */
export interface QuotaRules {
  /** A refusal when this cost does not fit; undefined when it does. */
  refuse(quota: Quota, cost: Readonly<Record<string, number>>, now: string): Decision | undefined;
  charge(
    quota: Quota,
    cost: Readonly<Record<string, number>>,
    now: string,
  ): { readonly usage: Quota['usage']; readonly reset_at: string | null };
}

// ---- South: whoever does the work ----

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
  /** Whether people are being asked something about it just now, whoever put the question. */
  asking?(): Promise<boolean>;
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

export interface ToolBackend {
  readonly name: string;
  /** What everyone may know of; with a session, also what is there for that session alone. */
  list(sessionId?: string): Promise<readonly Skill[]>;
  /** What a tool does to the world; undefined when unknown, which counts as a side effect. */
  effect?(tool: string): Action['effect'] | undefined;
  /** What else rules may know of a call of this tool in this session. Asked anew each time. */
  attributes?(tool: string, sessionId: string): NonNullable<Action['attributes']>;
  /** Its definitions are held to what they were at first sight; a changed one is refused until somebody accepts it. */
  readonly pinned?: boolean;
  call(action: Action, signal: AbortSignal, line?: Line): Promise<ToolResult>;
  /** Another request in the words of its protocol. What it is answered, errors included, is the answer here. */
  pass?(request: PassedRequest, signal: AbortSignal, line?: Line): Promise<JsonObject>;
  /** Whether that answer may hold what others wrote, so that the session that gets it is marked first. */
  taints?(request: PassedRequest): boolean;
  /** Tells that one of its lists may have changed, until it is told to stop. */
  watch?(heard: (list: string) => void): () => void;
  close?(): Promise<void>;
}

/**
 * What goes back and forth while one request is under way, between a door and a backend of the same protocol. It holds
 * neither of them, and core hands it on unread: nothing it carries is an effect.
 */
export type Line = object;
export interface PassedRequest {
  readonly method: string;
  readonly params: Json;
}

// ---- North: whoever asks ----

export interface FrontDoor {
  readonly name: string;
  /** Kinds of question a person behind this door can answer. */
  readonly carries: readonly AskKind[];
  open(bridge: Bridge): Promise<Closable>;
}

/** All a door gets. */
export interface Bridge {
  submit<K extends CommandKind>(command: Extract<Command, { kind: K }>): Promise<Accepted<K>>;
  follow(actor: Actor, from: { stream: Stream; after?: Cursor | 'now' }, signal: AbortSignal): AsyncIterable<CoreEvent>;
  events(actor: Actor, range: EventRange): AsyncIterable<CoreEvent>;
  /** One resource as this actor may see it. Hidden and absent are the same fault. */
  view<T extends Row>(actor: Actor, object: string, id: string): Promise<T>;
  list<T extends Row>(actor: Actor, query: ListQuery): Promise<{ data: readonly T[]; next: string | undefined }>;
  bytes(actor: Actor, artifactId: string, range?: { start: number; end: number }): Promise<Uint8Array>;
  /** Our id for a wire's, when one was bound. */
  bound(protocol: string, scope: string, wireId: string): Promise<Pointer | undefined>;
  /** What the mounted tool backends offer; `source` names who serves it. */
  tools(actor: Actor): Promise<readonly Skill[]>;
  /** Of those, what the rules would let this actor try there. Nothing is decided or written down by asking. */
  offered(actor: Actor, workspaceId: string): Promise<readonly Skill[]>;
  /** Servers that take requests of their own protocol. Whether one may be asked anything is decided when it is. */
  servers(actor: Actor): Promise<readonly string[]>;
  /** Tells when it is worth looking again at what is offered, until it is told to stop. */
  watch(heard: (change: OfferChange) => void): () => void;
  /** Who work can be given to, in the order they were mounted. */
  agents(actor: Actor): Promise<readonly AgentFace[]>;
  /** Gives a registered artifact its bytes. They must have the hash it was registered with, if it was with one. */
  attach(actor: Actor, artifactId: string, bytes: Uint8Array): Promise<Row>;
  /** What a provider sent, proven genuine by the door: at most one task. No task when the connector does not want it. */
  deliver(actor: Actor, delivery: Delivery): Promise<{ readonly task: Row | undefined; readonly repeated: boolean }>;
}

/** What may have changed: a list of one server, or anything where none is named. */
export interface OfferChange {
  readonly server?: string;
  readonly list?: string;
}

/** Something from outside that may become work. */
export interface Delivery {
  readonly connector_id: string;
  /** The provider's own name for this delivery; the same one again is the same delivery. */
  readonly delivery_id: string;
  readonly event_kind: string;
  readonly payload: JsonObject;
}

/** What came of a command: the resources it made or changed, as they now stand. */
export interface Accepted<K extends CommandKind = CommandKind> {
  readonly kind: K;
  /** True when an earlier command with the same idempotency key did the work. */
  readonly repeated: boolean;
  readonly resource: K extends 'action.propose' | 'tool.call' | 'passthrough' ? Row | undefined : Row;
  /** For `action.propose`, `tool.call` and `passthrough`: what was decided, and the person's answer if one was asked. */
  readonly decision?: Decision;
  readonly answer?: Answer;
  readonly act?: ActResult;
  /** For commands with more to say than one resource. */
  readonly details?: JsonObject;
}

/** One port for every HTTP door. Host, Origin, size limits and request ids are dealt with before a door sees anything. */
export interface HttpHost {
  /** Where it listens, once it does: `http://127.0.0.1:4319`. */
  readonly url: string;
  mount(prefix: string, handler: HttpHandler): void;
  /** WebSocket upgrades whose path it says yes to. The checks above have passed; authentication is the door's. */
  upgrade(mine: (path: string) => boolean, handler: UpgradeHandler): void;
}
export type HttpHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  next: (thrown?: unknown) => void,
) => void;
export type UpgradeHandler = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

/** Whoever holds this bearer token. Anything wrong with it is `unauthenticated`, never somebody by default. */
export type Authenticate = (bearer: string | undefined) => Promise<Actor>;

// ---- Adapters ----

export interface Deps {
  readonly log: Logger;
  readonly clock: Clock;
  readonly ids: Ids;
  /** A secret by its name in a vault. The value is known to the redactor before it is handed out. */
  secret(name: string): Promise<string>;
  /** Keeps a secret under its name, in the first vault that can be written. Absent: nothing can be kept. */
  keep?(name: string, value: string): Promise<void>;
  /** Does something about a secret while nobody else does, in any process. Absent where nothing can be kept. */
  alone?<T>(name: string, work: () => Promise<T>): Promise<T>;
  readonly http: HttpHost;
  readonly authenticate: Authenticate;
  /** Public receipt keys, for doors that publish them. */
  jwks(): object;
  /** Signs a text with the key receipts are signed with, for documents a door publishes. Absent: they go unsigned. */
  sign?(text: string): ReceiptSignature;
  /** A digest only this house can make, the same for good: also after the signing key was changed. */
  mac?(text: string): string;
  /** Why nothing can be written just now; undefined when all is well. */
  trouble?(): string | undefined;
}
/** Something an adapter can be mounted as, any number of times, each with a section of its own. */
export interface Part<T> {
  readonly configSchema: object;
  /** `name` is what the configuration calls it. */
  open(name: string, config: never, deps: Deps): T;
}
export interface Adapter<Config> {
  readonly name: string;
  readonly revision: string;
  /** Of its door: `doors.<adapter>`. */
  readonly configSchema: object;
  door?(config: Config, deps: Deps): FrontDoor;
  /** Tools that its door works with; mounted when the door is open, and given the same `deps`. */
  ownTools?(config: Config, deps: Deps): readonly ToolBackend[];
  /** `agents.<name>.<adapter>` */
  readonly backend?: Part<AgentBackend>;
  /** `tools.<name>.<adapter>` */
  readonly tools?: Part<ToolBackend>;
  /** `harnesses.<name>.<adapter>` */
  readonly policy?: Part<PolicyEngine>;
  /** `relays.<adapter>`: of its command that stands between two others. */
  readonly relay?: { readonly configSchema: object };
}
