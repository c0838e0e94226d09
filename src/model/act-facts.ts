/** What an act touches, in one vocabulary for every agent, and the data by which it is read from an agent's own words. */

import type { JsonObject } from './schema.ts';
import type { Effect } from './words.ts';

/** What rules may ask of any act, whatever its agent calls it. */
export const ACT_FIELDS = ['command', 'path', 'url', 'content'] as const;
export type ActField = (typeof ACT_FIELDS)[number];

/** Read from an act when it is first needed. Values stand as the agent wrote them; matching resolves them. */
export interface ActFacts {
  /** The arguments this was read from: other arguments need another reading. */
  readonly of: JsonObject;
  readonly commands: readonly string[];
  readonly paths: readonly string[];
  readonly urls: readonly string[];
  /** Texts that are written or sent. */
  readonly contents: readonly string[];
  /** Values that may be such, by their shape alone: enough to restrict, never enough to allow. */
  readonly hints: Readonly<Record<Exclude<ActField, 'content'>, readonly string[]>>;
  /** What the act must have and nobody can tell. Not the same as having none. */
  readonly undetermined: ReadonlySet<ActField>;
  /** The directories its relative paths may be meant from; never empty. */
  readonly bases: readonly string[];
  /** What its method and arguments show it to do at least. */
  readonly shows: Effect | undefined;
  /** The arguments are still to come: anything may match. */
  readonly open?: boolean;
}

/**
 * What an argument of that name holds. `args`: the words that follow a command. `place`: a path, if it looks like one. `patch`: a text
 * that names the files it changes. `cwd`: where relative paths start. `words`: text for people or models, no object of the act.
 */
export type ArgumentRole = 'command' | 'args' | 'path' | 'place' | 'url' | 'content' | 'patch' | 'cwd' | 'words';
export type ArgumentNames = Readonly<Partial<Record<ArgumentRole, readonly string[]>>>;

/** Tools that do the same thing under the names different agents give them. */
export interface ToolFamily {
  readonly tools: readonly string[];
  /** What such a tool does at least, whatever its caller says. */
  readonly shows?: Effect;
  /** What an act of it must have: missing, it is undetermined and not absent. */
  readonly needs?: readonly ActField[];
  /** Names that mean something else here than elsewhere. */
  readonly arguments?: ArgumentNames;
}

export interface AgentProfile {
  /** As it names itself; a part of the name is enough. */
  readonly names: readonly string[];
  /** Its titles are the command itself, up to the last of these marks. */
  readonly titleIsCommand?: { readonly until: readonly string[] };
}

/** The agent's own word for a kind of act, and what follows from it. It can only add. */
export interface ClaimedKind {
  readonly kind: string;
  readonly shows?: Effect;
  readonly needs?: readonly ActField[];
}

export interface ActVocabulary {
  readonly names: ArgumentNames;
  readonly families: readonly ToolFamily[];
  readonly agents: readonly AgentProfile[];
  readonly kinds: readonly ClaimedKind[];
}
