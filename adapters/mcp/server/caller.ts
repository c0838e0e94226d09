/** The caller of a request: its actor, the capabilities it declared, and how it can be asked. */
import { type Actor, isObject, type JsonObject } from '../../../src/index.ts';
import type { TraceMembers } from '../../../src/transport/outbound/trace-context.ts';
import type { Notice } from '../frames.ts';
import type { Input, SessionContext } from '../request-context.ts';

interface Asker {
  readonly actor: Actor;
  /** The person at the client, when the client may act for one. */
  readonly person: Actor | undefined;
  /** The address of the request, where it serves more than one server. */
  readonly at?: string;
  readonly capabilities: JsonObject;
  readonly client: JsonObject;
  readonly session?: SessionContext;
  /** The address, which serves more than one server, has declared to the caller that calls can be tasks. */
  readonly tasks?: boolean;
  /** The gateway session the caller says it works in: while a task runs there, the calls are part of it. */
  readonly home?: string | undefined;
  /** Copies of arguments in headers. Undefined over transports without headers. */
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly trace?: TraceMembers;
  /** A list may be answered with what is known of the server: it is one of many at this address. */
  readonly mayBeKnown?: boolean;
  notify(notice: Notice): void;
  /**
   * The request begins to wait for a person, until the returned function is called: it ends when its client is gone. Absent where a
   * request and its client end together.
   */
  waits?(): () => void;
  /** Present only where a server can ask while a request is open; otherwise the client repeats the request with the answers. */
  readonly input?: Input;
}

/** A legacy request and its call end together: aborting one aborts the other. */
export interface LegacyCaller extends Asker {
  readonly era: 'legacy';
  readonly signal: AbortSignal;
}

/** A modern call may outlast its request: the signal only reports that the client has disconnected. */
export interface ModernCaller extends Asker {
  readonly era: 'modern';
  readonly signal: AbortSignal;
}

export type Caller = LegacyCaller | ModernCaller;

/** Two with the same name in two tenants are two. */
export function scopeOf({ tenant_id, id }: Actor): string {
  return `${tenant_id ?? ''}/${id}`;
}

/** Forms count as a person's answer only where the credential is a person's: a program would approve its own call. */
export function personOf(actor: Actor): Actor | undefined {
  return actor.kind === 'person' ? actor : undefined;
}

/** An empty object means forms are supported; a list of modes without `form` means they are not. */
export function canFillForms({ elicitation }: JsonObject): boolean {
  if (!isObject(elicitation)) return false;
  return Object.keys(elicitation).length === 0 || (elicitation as JsonObject).form !== undefined;
}

export function canOpenPages({ elicitation }: JsonObject): boolean {
  return isObject(elicitation) && (elicitation as JsonObject).url !== undefined;
}
