/**
 * What goes back and forth while one request is under way, as both ends see it. The door makes one for each request, core
 * carries it, the backend speaks on it; neither end holds the other.
 */
import type { Era } from '../../mappings/mcp.ts';
import type { Json, JsonObject } from '../../src/index.ts';
import type { Id, Notice, Outcome } from './frames.ts';

/** Requests to whoever is behind the client, by a key of the asker's own. */
export type Inputs = Readonly<Record<string, { readonly method: string; readonly params?: JsonObject }>>;

export interface Inputted {
  /** By the same keys; bare results. What was not answered is missing. */
  readonly inputResponses: JsonObject;
  /** The `_meta` of the request that brought the answers, in the era where that is a new request. */
  readonly meta?: JsonObject;
}

/**
 * Asks the client and waits. `whole` is the result the questions came in, where they came in one; `withdrawn` fires when
 * whoever asked no longer wants to know.
 */
export type Input = (requests: Inputs, whole?: JsonObject, withdrawn?: AbortSignal) => Promise<Inputted>;

export interface McpLine {
  readonly era: Era;
  /** The caller's own id of the request. */
  readonly id: Id;
  /** The request as it came, for whatever nobody here has a name for. */
  readonly params: JsonObject;
  /** The session of ours its calls are kept in, once there is one. */
  readonly keptIn?: string | undefined;
  /** Whose connections it may share. */
  readonly principal: string;
  /** What this caller can be asked, and nothing it did not say. */
  readonly capabilities: JsonObject;
  readonly client: JsonObject;
  /** Callers of the legacy era come in sessions, and each has an upstream session of its own. */
  readonly session?: SessionLine | undefined;
  /** Copies of arguments in headers, for servers that want them. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Only with a call that is to be a task, and with requests about tasks. */
  readonly tasks?: LineTasks;
  /** Something that belongs to this request. */
  notify(notice: Notice): void;
  readonly input: Input;
  /** The server sent a frame that it may not send; it goes no further, and the log says so. */
  refused?(method: string, reason: string): void;
}

/** A caller's tasks as far as they are on record here, for servers that do not keep them as their caller knows them. */
export interface LineTasks {
  /**
   * The server has no tasks as this caller knows them: whatever the call comes to, it is on record here as one. `kept` is called
   * once it is.
   */
  keep(kept: () => void): void;
  /** A request about a task that has come to its end here; undefined when it is the server's to answer. */
  answer(method: string, params: JsonObject): Promise<Outcome | undefined>;
  /** Names of those that are at the server, and where the next ones are. Undefined: that is no such place. */
  begun(cursor: Json | undefined): Promise<{ readonly ids: readonly string[]; readonly next?: string } | undefined>;
  /** As it was when it began, for as long as it was to be kept. In the words it was told in then. */
  known(taskId: Json): Promise<JsonObject | undefined>;
}

export interface SessionLine {
  readonly id: string;
  /** Something that belongs to no request in particular. */
  hear(notice: Notice): void;
  readonly input: Input;
  /** Fires when the session is over. */
  readonly ended: AbortSignal;
}

export function isLine(line: object | undefined): line is McpLine {
  return line !== undefined && 'era' in line && 'principal' in line && 'notify' in line;
}
