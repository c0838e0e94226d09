/**
 * What rules can see of an action, and under which names. One list, so that the loader can refuse a rule that names
 * anything else, and the engine hands over only what some rule names.
 */
import type { Action } from '../model/actions.ts';
import type { Json, JsonObject } from '../model/schema.ts';
import { isSideEffect } from '../model/words.ts';
import { type CedarValue, emptyRecord, safeKey, toCedar } from './cedar-values.ts';

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

/** Records whose members the rules name one by one. */
const RECORD_FIELDS = {
  arguments: (action: Action) => action.arguments,
  attributes: (action: Action) => (action.attributes ?? {}) as JsonObject,
} as const;

export const CONTEXT_NAMES: readonly string[] = [
  ...Object.keys(TEXT_FIELDS),
  'side_effect',
  ...Object.keys(RECORD_FIELDS),
];

/** Which parts of the context some rules name. `whole`: the value itself matters, not only that it is there. */
export interface Names {
  readonly whole: boolean;
  readonly members: ReadonlyMap<string, Names>;
}
export const NO_NAMES: Names = { whole: false, members: new Map() };

export function mergeNames(a: Names, b: Names): Names {
  const members = new Map(a.members);
  for (const [key, names] of b.members) {
    const known = members.get(key);
    members.set(key, known ? mergeNames(known, names) : names);
  }
  return { whole: a.whole || b.whole, members };
}

/** The context with exactly the named parts. */
export function toContext(action: Action, names: Names): Record<string, CedarValue> {
  const context = emptyRecord();
  const wanted = names.whole ? CONTEXT_NAMES : names.members.keys();
  for (const name of wanted) {
    const value = fieldOf(action, name);
    if (value === undefined) continue;
    const inner = names.members.get(name);
    context[name] = names.whole || !inner ? toCedar(value, 1) : pick(value, inner, 1);
  }
  return context;
}

export function fieldOf(action: Action, name: string): Json | undefined {
  if (isTextField(name)) return TEXT_FIELDS[name](action);
  if (name === 'side_effect') return isSideEffect(action.effect);
  if (name === 'arguments' || name === 'attributes') return RECORD_FIELDS[name](action);
  return undefined;
}

function pick(value: Json, names: Names, depth: number): CedarValue {
  if (names.whole) return toCedar(value, depth);
  if (names.members.size === 0) return true;
  // A rule that looks inside something that has no inside gets the thing itself, and fails over it.
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return toCedar(value, depth);
  const record = value as JsonObject;
  const out = emptyRecord();
  for (const [key, inner] of names.members) {
    const item = Object.hasOwn(record, key) ? record[key] : undefined;
    if (item !== undefined) out[safeKey(key)] = pick(item, inner, depth + 1);
  }
  return out;
}

/** A value some rule names, as it stands in the action, and where. */
export interface NamedValue {
  readonly path: string;
  readonly value: Json;
}

export function namedValues(action: Action, names: Names): readonly NamedValue[] {
  const wanted = names.whole ? CONTEXT_NAMES : [...names.members.keys()];
  return wanted.flatMap((name) => {
    const value = fieldOf(action, name);
    const inner = names.whole ? undefined : names.members.get(name);
    return value === undefined ? [] : pickRaw(name, value, inner);
  });
}

function pickRaw(path: string, value: Json, names: Names | undefined): readonly NamedValue[] {
  const inside = typeof value === 'object' && value !== null && !Array.isArray(value);
  if (!names || names.whole || !inside) return [{ path, value }];
  const record = value as JsonObject;
  return [...names.members].flatMap(([key, inner]) => {
    const item = Object.hasOwn(record, key) ? record[key] : undefined;
    return item === undefined ? [] : pickRaw(`${path}.${key}`, item, inner);
  });
}
