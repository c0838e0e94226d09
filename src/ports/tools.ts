/** South: whoever runs single calls. */
import type { Action, ToolResult } from '../model/actions.ts';
import type { Skill } from '../model/resources.ts';
import type { Json, JsonObject } from '../model/schema.ts';

export interface ToolBackend {
  readonly name: string;
  /**
   * What everyone may know of; with a session, also what is there for that session alone. A list that was given is never changed:
   * other tools are another list.
   */
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
