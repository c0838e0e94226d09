/**
 * The parts of an action that rules can see, and their names. One list, so that the loader can refuse a rule that names anything
 * else, and the engine passes only the parts that some rule names.
 */

import type { ActField } from '../model/act-facts.ts';
import type { Action } from '../model/actions.ts';
import type { Json, JsonObject } from '../model/schema.ts';
import { isObject } from '../model/values/is-object.ts';
import { isSideEffect } from '../model/words.ts';
import { matcherOf, PATTERN_SETS } from './acts/match.ts';
import { type CedarValue, emptyRecord, opaque, safeKey, toCedar } from './cedar/values.ts';

/** Texts; absent when the action has none. */
export const TEXT_FIELDS = {
  effect: (action: Action) => action.effect as string,
  evidence: (action: Action) => action.evidence as string,
  workspace: (action: Action) => action.workspace_id,
  principal: (action: Action) => action.actor.id,
  tool: (action: Action) => action.tool,
  server: (action: Action) => action.server,
  target: (action: Action) => action.target,
  tier: (action: Action) => action.tier as string | undefined,
  persona: (action: Action) => action.persona?.name,
  persona_id: (action: Action) => action.persona?.id,
  session: (action: Action) => action.session_id,
  tenant: (action: Action) => action.actor.tenant_id,
  door: (action: Action) => action.actor.door,
} as const satisfies Record<string, (action: Action) => string | undefined>;
export type TextField = keyof typeof TEXT_FIELDS;

export function isTextField(name: string): name is TextField {
  return Object.hasOwn(TEXT_FIELDS, name);
}

/** Records whose members rules name one by one. */
const RECORD_FIELDS = {
  arguments: (action: Action) => action.arguments,
  attributes: (action: Action) => (action.attributes ?? {}) as JsonObject,
} as const;

/** The names for what an act touches, and the field each one reads. Texts may be absent, sets are always present. */
const FACT_FIELDS = new Map<string, ActField>([
  ['command', 'command'],
  ['content', 'content'],
  ['paths', 'path'],
  ['urls', 'url'],
]);

export const CONTEXT_NAMES: readonly string[] = [
  ...Object.keys(TEXT_FIELDS),
  'side_effect',
  ...Object.keys(RECORD_FIELDS),
  ...FACT_FIELDS.keys(),
  ...PATTERN_SETS,
];

/** Names that require the act to be read first, and the field each concerns. */
const FACTS: ReadonlyMap<string, ActField | 'patterns'> = new Map<string, ActField | 'patterns'>([
  ...FACT_FIELDS,
  ...PATTERN_SETS.map((name) => [name, 'patterns'] as const),
]);

/** The parts of the context that some rules name. `whole`: the value itself matters, not only its presence. */
export interface Names {
  readonly whole: boolean;
  readonly members: ReadonlyMap<string, Names>;
}
export const NO_NAMES: Names = { whole: false, members: new Map() };

export function namesFacts(names: Names): boolean {
  return names.whole || [...names.members.keys()].some((name) => FACTS.has(name));
}

/** Patterns that rules ask about, by the set they ask for them in. */
export type Patterns = ReadonlyMap<string, ReadonlySet<string>>;

export function mergePatterns(all: readonly Patterns[]): Patterns {
  const merged = new Map<string, Set<string>>();
  for (const patterns of all) {
    for (const [set, names] of patterns) merged.set(set, new Set([...(merged.get(set) ?? []), ...names]));
  }
  return merged;
}

export function mergeNames(a: Names, b: Names): Names {
  const members = new Map(a.members);
  for (const [key, names] of b.members) {
    const known = members.get(key);
    members.set(key, known ? mergeNames(known, names) : names);
  }
  return { whole: a.whole || b.whole, members };
}

/** `known`: the facts of the act. `doubt`: every pattern that could be met counts as met, and unknown values are opaque. */
export type FactSight = 'known' | 'doubt';

/** For rules that look at what acts touch. */
export interface Looking {
  readonly patterns: Patterns;
  readonly sight: FactSight;
}

/** Builds the context with exactly the named parts. Without `looking`, no rule needs the act to be read. */
export function toContext(action: Action, names: Names, looking?: Looking): Record<string, CedarValue> {
  const context = emptyRecord();
  const wanted = names.whole ? CONTEXT_NAMES : names.members.keys();
  for (const name of wanted) {
    const fact = looking && FACTS.get(name);
    if (fact) {
      const seen = factValue(action, name, fact, looking);
      if (seen !== undefined) {
        context[name] = seen;
        continue;
      }
    }
    const value = fieldOf(action, name);
    if (value === undefined) continue;
    const inner = names.members.get(name);
    context[name] = names.whole || !inner ? toCedar(value, 1) : pick(value, inner, 1);
  }
  return context;
}

/** Undefined: the name is an ordinary value. */
function factValue(
  action: Action,
  name: string,
  fact: ActField | 'patterns',
  looking: Looking,
): CedarValue | undefined {
  if (fact === 'patterns') return patternsMet(action, name, looking);
  return looking.sight === 'doubt' && action.facts?.undetermined.has(fact) ? opaque(null) : undefined;
}

function patternsMet({ facts }: Action, set: string, { patterns, sight }: Looking): CedarValue {
  if (!facts) return [];
  const matcher = matcherOf(facts);
  return [...(patterns.get(set) ?? [])].filter((name) => {
    const meeting = matcher.meeting(set, name);
    return meeting === 'yes' || (meeting === 'maybe' && sight === 'doubt');
  });
}

/** Whether something these rules look at is not known for certain. */
export function inDoubt({ facts }: Action, names: Names, patterns: Patterns): boolean {
  if (!facts) return false;
  for (const [name, field] of FACT_FIELDS) {
    if ((names.whole || names.members.has(name)) && facts.undetermined.has(field)) return true;
  }
  const matcher = matcherOf(facts);
  return [...patterns].some(([set, wanted]) => [...wanted].some((name) => matcher.meeting(set, name) === 'maybe'));
}

export function fieldOf(action: Action, name: string): Json | undefined {
  if (isTextField(name)) return TEXT_FIELDS[name](action);
  if (name === 'side_effect') return isSideEffect(action.effect);
  if (name === 'arguments' || name === 'attributes') return RECORD_FIELDS[name](action);
  if (name === 'command' || name === 'content' || name === 'paths' || name === 'urls') {
    return action.facts && matcherOf(action.facts).value(name);
  }
  return undefined;
}

function pick(value: Json, names: Names, depth: number): CedarValue {
  if (names.whole) return toCedar(value, depth);
  if (names.members.size === 0) return true;
  // A rule that looks for a member inside a value that is not an object gets the value itself, and fails on it.
  if (!isObject(value)) return toCedar(value, depth);
  const record = value as JsonObject;
  const out = emptyRecord();
  for (const [key, inner] of names.members) {
    const item = Object.hasOwn(record, key) ? record[key] : undefined;
    if (item !== undefined) out[safeKey(key)] = pick(item, inner, depth + 1);
  }
  return out;
}

/** A value that some rule names, as it is in the action, and its path. */
export interface NamedValue {
  readonly path: string;
  readonly value: Json;
}

export function namedValues(action: Action, names: Names): readonly NamedValue[] {
  const wanted = names.whole ? CONTEXT_NAMES : [...names.members.keys()];
  return wanted.flatMap((name) => {
    if (FACTS.get(name) === 'patterns') return factValues(action, name.slice(4) as ActField);
    const value = fieldOf(action, name);
    const inner = names.whole ? undefined : names.members.get(name);
    return value === undefined ? [] : pickRaw(name, value, inner);
  });
}

/** Values as they are in the action: a redacted one is recognized by its text. */
function factValues({ facts, arguments: args }: Action, field: ActField): readonly NamedValue[] {
  if (!facts || typeof args !== 'object') return [{ path: field, value: args as Json }];
  const lists = { command: facts.commands, path: facts.paths, url: facts.urls, content: facts.contents };
  const guessed = field === 'content' ? [] : facts.hints[field];
  return [{ path: field, value: [...lists[field], ...guessed] }];
}

function pickRaw(path: string, value: Json, names: Names | undefined): readonly NamedValue[] {
  const inside = isObject(value);
  if (!names || names.whole || !inside) return [{ path, value }];
  const record = value as JsonObject;
  return [...names.members].flatMap(([key, inner]) => {
    const item = Object.hasOwn(record, key) ? record[key] : undefined;
    return item === undefined ? [] : pickRaw(`${path}.${key}`, item, inner);
  });
}
