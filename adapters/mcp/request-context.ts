/**
 * The context of one request that is under way, shared by door and backend. The door creates one for each request, core passes
 * it on without reading it, and the backend sends notifications and questions through it; neither end references the other.
 */
import type { Era } from '../../mappings/mcp.ts';
import type { Json, JsonObject } from '../../src/index.ts';
import type { TraceMembers } from '../../src/transport/outbound/trace-context.ts';
import type { FrameOutcome, Id, Notice } from './frames.ts';

/** Requests to the client, by keys that the asking side chose. */
export type Inputs = Readonly<Record<string, { readonly method: string; readonly params?: JsonObject }>>;

export interface Inputted {
  /** Bare results by the same keys. A request that was not answered is missing. */
  readonly inputResponses: JsonObject;
  /** The `_meta` of the request that brought the answers, in the era where that is a new request. */
  readonly meta?: JsonObject;
}

/**
 * Asks the client and waits. `whole` is the result that contained the questions, if a result did; `withdrawn` fires when the
 * asking side no longer needs the answer.
 */
export type Input = (requests: Inputs, whole?: JsonObject, withdrawn?: AbortSignal) => Promise<Inputted>;

export interface McpRequestContext {
  readonly era: Era;
  /** The request id that the caller chose. */
  readonly id: Id;
  /** The params as received, including members that the gateway does not model. */
  readonly params: JsonObject;
  /** The gateway session that records its calls, once there is one. */
  readonly keptIn?: string | undefined;
  /** The principal whose upstream connections the request may share. */
  readonly principal: string;
  /** The capabilities that the caller declared, and no others. */
  readonly capabilities: JsonObject;
  readonly client: JsonObject;
  /** Callers of the legacy era have sessions, and each has an upstream session of its own. */
  readonly session?: SessionContext | undefined;
  /** The trace the request is part of. */
  readonly trace?: TraceMembers | undefined;
  /** Copies of arguments in headers, for servers that require them. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Present only for a call that is to become a task, and for requests about tasks. */
  readonly tasks?: ContextTasks;
  /** A list may be answered with what is known of the server. */
  readonly mayBeKnown?: boolean | undefined;
  /** Something that belongs to this request. */
  notify(notice: Notice): void;
  readonly input: Input;
  /** The call is sent to its server: it waits for no person any more. */
  began?(): void;
  /** The server sent a frame that it may not send; the frame is dropped and the refusal is logged. */
  refused?(method: string, reason: string): void;
}

/** The caller's tasks in our log, for servers whose tasks are of another design than the caller's. */
export interface ContextTasks {
  /**
   * The server has no tasks of the caller's design, so the outcome of the call is recorded here as a task. `kept` is called
   * once it is.
   */
  keep(kept: () => void): void;
  /** Answers a request about a task that has ended here; undefined when the server has to answer it. */
  answer(method: string, params: JsonObject): Promise<FrameOutcome | undefined>;
  /** Ids of the tasks that the server runs, and the cursor of the next page. Undefined when the cursor is not valid. */
  begun(cursor: Json | undefined): Promise<{ readonly ids: readonly string[]; readonly next?: string } | undefined>;
  /** The task as it was rendered when it began, until the time it is kept for has passed. */
  known(taskId: Json): Promise<JsonObject | undefined>;
}

export interface SessionContext {
  readonly id: string;
  /** Something that belongs to no request in particular. */
  notify(notice: Notice): void;
  readonly input: Input;
  /**
   * Calls the listener when the client has held no connection for a while, until the returned function is called: what is kept only for
   * the client's next request is let go. The client may return.
   */
  onLeave(listener: () => void): () => void;
  /** Fires when the session is over. */
  readonly ended: AbortSignal;
}

export function isMcpRequestContext(context: object | undefined): context is McpRequestContext {
  return context !== undefined && 'era' in context && 'principal' in context && 'notify' in context;
}
