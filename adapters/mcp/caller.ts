/** Whoever makes a request, as far as the house needs to know: who it is, what it can be asked, and how. */
import type { Actor, JsonObject } from '../../src/index.ts';
import type { StopSignal } from '../../src/wire/stop.ts';
import type { Notice } from './frames.ts';
import type { Input, SessionLine } from './line.ts';

interface Asker {
  readonly actor: Actor;
  /** The person in front of the client, when the client may speak for one. */
  readonly person: Actor | undefined;
  /** The address it came to, where that stands for more than one server. */
  readonly at?: string;
  readonly capabilities: JsonObject;
  readonly client: JsonObject;
  readonly session?: SessionLine;
  /** The address it came to, which stands for more than one server, has told it that calls can be tasks. */
  readonly tasks?: boolean;
  /** A session of ours it says it works in: while something is done there, its calls are part of that. */
  readonly home?: string | undefined;
  /** Copies of arguments in headers. Undefined where there are no headers. */
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly trace?: string;
  notify(notice: Notice): void;
  /** Only where a server can ask while a request is open; otherwise the answer is to come back with the answers. */
  readonly input?: Input;
}

/** Its request is what is run, and stops with it. */
export interface LegacyCaller extends Asker {
  readonly era: 'legacy';
  readonly signal: AbortSignal;
}

/** What it asks for may outlast its request: that it is gone is only listened for. */
export interface ModernCaller extends Asker {
  readonly era: 'modern';
  readonly signal: StopSignal;
}

export type Caller = LegacyCaller | ModernCaller;

/** Two with the same name in two tenants are two. */
export function scopeOf({ tenant_id, id }: Actor): string {
  return `${tenant_id ?? ''}/${id}`;
}

/** Forms count as a person's word only where the credential is a person's: a program would fill in its own approval. */
export function personOf(actor: Actor): Actor | undefined {
  return actor.kind === 'person' ? actor : undefined;
}

/** An empty object means forms; a list without forms means there are none. */
export function canFillForms({ elicitation }: JsonObject): boolean {
  if (typeof elicitation !== 'object' || elicitation === null || Array.isArray(elicitation)) return false;
  return Object.keys(elicitation).length === 0 || (elicitation as JsonObject).form !== undefined;
}
