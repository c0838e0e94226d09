/** North: whoever asks, and all that a door gets. */
import type { Actor, Decision } from '../model/actions.ts';
import type { Answer, AskKind, PendingAct } from '../model/asks.ts';
import type { Command, CommandKind } from '../model/commands.ts';
import type { CoreEvent, Cursor, Stream } from '../model/events.ts';
import type { Pointer, Skill } from '../model/resources.ts';
import type { JsonObject } from '../model/schema.ts';
import type { ActResult, AgentFace } from './agents.ts';
import type { Closable, EventRange, ListQuery, Row } from './store.ts';

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
  /**
   * The act behind an open question, exactly as it will run: only for those who may answer it, and only until it is closed. Everything
   * else that is said about a question has it redacted.
   */
  pendingAct(actor: Actor, askId: string): Promise<PendingAct>;
  bytes(actor: Actor, artifactId: string, range?: { start: number; end: number }): Promise<Uint8Array>;
  /** Our id for a wire's, when one was bound. */
  bound(protocol: string, scope: string, wireId: string): Promise<Pointer | undefined>;
  /** What the mounted tool backends offer; `source` names who serves it. The same list until something of it changes. */
  tools(actor: Actor): Promise<readonly Skill[]>;
  /** One of them, without a look at the others. */
  tool(actor: Actor, name: string, server: string): Promise<Skill | undefined>;
  /** Of those, or of this one, what the rules would let this actor try there. Nothing is decided or written down by asking. */
  offered(actor: Actor, workspaceId: string, one?: Skill): Promise<readonly Skill[]>;
  /** Servers that take requests of their own protocol. Whether one may be asked anything is decided when it is. */
  servers(actor: Actor): Promise<readonly string[]>;
  /**
   * Tells when it is worth looking again at what is offered, until it is told to stop. Servers are listened to only for those who
   * want to hear of their changes as well, which is everyone who does not say otherwise.
   */
  watch(heard: (change: OfferChange) => void, servers?: boolean): () => void;
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
  /** For work that begins: the events that say so. Whoever follows it may go on after the last of them. */
  readonly written?: readonly CoreEvent[];
  /** For commands with more to say than one resource. */
  readonly details?: JsonObject;
}
