/**
 * The facts of an act (commands, paths, URLs, contents) in one vocabulary for every agent, and the data by which they are read from
 * an agent's own arguments.
 */

import type { JsonObject } from './schema.ts';
import type { Effect } from './words.ts';

/** The fields rules may match on any act, whatever names its agent uses. */
export const ACT_FIELDS = ['command', 'path', 'url', 'content'] as const;
export type ActField = (typeof ACT_FIELDS)[number];

/** Read from an act when first needed. Values are as the agent wrote them; matching resolves them. */
export interface ActFacts {
  /** The arguments these facts were read from: other arguments must be read again. */
  readonly of: JsonObject;
  readonly commands: readonly string[];
  readonly paths: readonly string[];
  readonly urls: readonly string[];
  /** Texts that are written or sent. */
  readonly contents: readonly string[];
  /** Values that may be such by their shape alone: enough to restrict an act, never enough to allow it. */
  readonly hints: Readonly<Record<Exclude<ActField, 'content'>, readonly string[]>>;
  /** Fields the act must have but whose value cannot be read. Not the same as having none. */
  readonly undetermined: ReadonlySet<ActField>;
  /** The directories its relative paths may be relative to; never empty. */
  readonly bases: readonly string[];
  /** The least effect that its method and arguments show. */
  readonly shows: Effect | undefined;
  /** The arguments have not arrived yet: any rule may match. */
  readonly open?: boolean;
}

/**
 * The meaning of an argument by its name. `args`: the words that follow a command. `location`: a path, if it looks like one. `patch`:
 * a text that names the files it changes. `cwd`: where relative paths start. `words`: text for people or models, no object of the
 * act.
 */
export type ArgumentRole = 'command' | 'args' | 'path' | 'location' | 'url' | 'content' | 'patch' | 'cwd' | 'words';
export type ArgumentNames = Readonly<Partial<Record<ArgumentRole, readonly string[]>>>;

/** Tools that do the same thing under different names in different agents. */
export interface ToolFamily {
  readonly tools: readonly string[];
  /** The least effect of such a tool, whatever its caller claims. */
  readonly shows?: Effect;
  /** Fields such an act must have: a missing one is undetermined, not absent. */
  readonly needs?: readonly ActField[];
  /** Argument names that mean something else in this family than elsewhere. */
  readonly arguments?: ArgumentNames;
}

export interface AgentProfile {
  /** The agent's name for itself; a part of the name is enough. */
  readonly names: readonly string[];
  /** Its titles are the command itself, up to the last of these marks. */
  readonly titleIsCommand?: { readonly until: readonly string[] };
}

/** The agent's own word for a kind of act, and its consequences. It can only add effects and needs. */
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
