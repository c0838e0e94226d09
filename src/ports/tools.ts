/** The port of a tool backend, which runs single calls. */
import type { Action, Actor, ToolResult } from '../model/actions.ts';
import type { Skill } from '../model/resources.ts';
import type { Json, JsonObject } from '../model/schema.ts';
import type { CallerReference } from './proof.ts';

export interface ToolBackend {
  readonly name: string;
  /**
   * For a server that each caller uses with credentials of its own: the backend of this caller, the same object for as long as it is
   * used. Core lists and calls through this one only, so nothing that one caller's credentials showed reaches another.
   */
  forCaller?(actor: Actor): ToolBackend;
  /**
   * The tools every session has; with a session id, also the tools of that session alone. A returned list is never mutated: changed
   * tools come as a new array.
   */
  list(sessionId?: string): Promise<readonly Skill[]>;
  /** Asked about a tool that is not in its list. Throws where the caller can do something about that, as signing in. */
  requireListed?(tool: string): Promise<void>;
  /** The tool's effect; undefined when unknown, which counts as a side effect. */
  effect?(tool: string): Action['effect'] | undefined;
  /** Further attributes rules may match for a call of this tool in this session. Read anew for each call. */
  attributes?(tool: string, sessionId: string): NonNullable<Action['attributes']>;
  /**
   * The server says itself which required arguments a call lacks, so a call that was allowed reaches it without them. Absent: such a
   * call is refused here.
   */
  readonly answersMissing?: boolean;
  /** How often one caller may call this tool; undefined when that is not limited. */
  limit?(tool: string): CallLimit | undefined;
  /** Definitions are pinned as first seen; a changed definition is refused until an operator accepts it. */
  readonly pinned?: boolean;
  /** `reference` identifies us to another gateway to which this call is forwarded. */
  call(action: Action, signal: AbortSignal, context?: RequestContext, reference?: ReferenceOf): Promise<ToolResult>;
  /**
   * The call of a tool that the server does not list, so that the server answers it itself. Undefined for a name that the server has
   * listed in any way. Absent: tools that are not listed are never called.
   */
  unlisted?(tool: string): UnlistedCall | undefined;
  /**
   * Forwards another request of its own protocol. Its answer, errors included, is returned as it is, but for content and results of
   * calls, which go through `inspect`.
   */
  pass?(
    request: PassedRequest,
    signal: AbortSignal,
    context?: RequestContext,
    inspect?: InspectContent,
  ): Promise<JsonObject>;
  /** Whether that answer may hold untrusted content, so that the session that receives it is tainted first. */
  taints?(request: PassedRequest): boolean;
  /** Calls `listener` when one of the backend's lists may have changed, until the returned function is called. */
  watch?(listener: (list: string) => void): () => void;
  /** Its programs, where it starts any. */
  programs?(): ToolPrograms;
  close?(): Promise<void>;
}

/**
 * Policy's look at content that is not the answer to a call: the same content, or what replaces it. Throws the reason where it is
 * withheld. `call`: it is the result of a call that became a task.
 */
export type InspectContent = (content: JsonObject, of: 'call' | 'request') => Promise<JsonObject>;

export type UnlistedCall = (args: JsonObject, signal: AbortSignal, context?: RequestContext) => Promise<ToolResult>;

/** Wraps a backend, and each caller's own backend behind it, once. */
export function wrapTools(backend: ToolBackend, wrap: (backend: ToolBackend) => ToolBackend): ToolBackend {
  const { forCaller } = backend;
  if (!forCaller) return wrap(backend);
  const wrapped = new WeakMap<ToolBackend, ToolBackend>();
  return {
    ...wrap(backend),
    forCaller(actor) {
      const own = forCaller(actor);
      const known = wrapped.get(own) ?? wrap(own);
      wrapped.set(own, known);
      return known;
    },
  };
}

/** Whether a server answers: `unknown` ones have not been asked yet, `slow` and `unavailable` ones are listed with the tools they had. */
export interface ToolServerState {
  readonly name: string;
  readonly state: 'unknown' | 'starting' | 'ready' | 'slow' | 'unavailable';
  readonly since: string;
  readonly reason?: string;
  readonly programs?: ToolPrograms;
}

/** The programs of one server in this process: those that run, and how often one was not started because of the server's limit. */
export interface ToolPrograms {
  readonly running: number;
  readonly refused: number;
}

export interface CallLimit {
  readonly calls: number;
  readonly perMs: number;
}

/** Calls of one tool with one outcome, in this process. Refused calls took no time of the server's. */
export interface ToolCallCount {
  readonly server: string;
  readonly tool: string;
  readonly outcome: 'ok' | 'error' | 'refused';
  readonly calls: number;
  readonly seconds: number;
}

/** By the protocol that carries the reference. */
export type ReferenceOf = (protocol: string) => Promise<CallerReference>;

/**
 * Messages exchanged while one request is in progress, between a door and a backend of the same protocol. It references neither of
 * them, and core passes it on unread: nothing it carries is an effect.
 */
export type RequestContext = object;

export interface PassedRequest {
  readonly method: string;
  readonly params: Json;
}
