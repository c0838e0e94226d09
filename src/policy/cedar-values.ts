/**
 * JSON handed to Cedar. Cedar has booleans, whole numbers, strings, sets and records. What it cannot hold becomes
 * an opaque value: present, equal only to itself, and an error to every other operation. So a rule that
 * needs the value fails, which blocks where the rule restricts; it is never skipped as if the value were not there.
 */
import { createHash } from 'node:crypto';
import type { Json, JsonObject } from '../model/schema.ts';

/** Longer texts, larger and deeper values are opaque to rules: a decision's cost must not be the caller's choice. */
const MAX_TEXT = 65_536;
const MAX_NODES = 10_000;
const MAX_DEPTH = 32;

export type CedarValue = boolean | number | string | readonly CedarValue[] | { readonly [key: string]: CedarValue };

/** Raised when not even a stand-in can be made; the decision is then a block. */
export class Unjudgeable extends Error {}

export function toCedar(value: Json): CedarValue {
  const budget = { nodes: MAX_NODES };
  return convert(value, 0, budget) ?? opaque(value);
}

/** Undefined: too much, so that the whole becomes opaque rather than a part of it silently missing. */
function convert(value: Json, depth: number, budget: { nodes: number }): CedarValue | undefined {
  budget.nodes -= 1;
  if (budget.nodes < 0) return undefined;
  switch (typeof value) {
    case 'boolean':
      return value;
    case 'string':
      return isPlainText(value) ? value : opaque(value);
    case 'number':
      return Number.isSafeInteger(value) ? value : opaque(value);
    case 'object':
      break;
    default:
      throw new Unjudgeable('a value that is not JSON');
  }
  if (value === null || depth >= MAX_DEPTH) return opaque(value);
  return Array.isArray(value) ? toSet(value, depth, budget) : toRecord(value as JsonObject, depth, budget);
}

function toSet(list: readonly Json[], depth: number, budget: { nodes: number }): CedarValue | undefined {
  const set: CedarValue[] = [];
  for (const item of list) {
    const member = convert(item, depth + 1, budget);
    if (member === undefined) return undefined;
    set.push(member);
  }
  return set;
}

function toRecord(record: JsonObject, depth: number, budget: { nodes: number }): CedarValue | undefined {
  const out = emptyRecord();
  for (const key of Object.keys(record)) {
    const item = record[key];
    if (item === undefined) continue;
    if (!isPlainText(key)) return opaque(record);
    const member = convert(item, depth + 1, budget);
    if (member === undefined) return undefined;
    out[escapeKey(key)] = member;
  }
  return out;
}

/** Without a prototype, a member called `__proto__` is a member like any other. */
export function emptyRecord(): Record<string, CedarValue> {
  return Object.create(null) as Record<string, CedarValue>;
}

/** Cedar reads these names as instructions (an entity, an extension value); from a caller they are only names. */
const RESERVED = /^__(entity|extn|expr)_*$/;

export function isReservedKey(key: string): boolean {
  return RESERVED.test(key);
}

export function escapeKey(key: string): string {
  return key.startsWith('__') && isReservedKey(key) ? `${key}_` : key;
}

export function isPlainText(text: string): boolean {
  return text.length <= MAX_TEXT && (text as string & { isWellFormed(): boolean }).isWellFormed();
}

/**
 * An IPv6 address made of the value's hash: of all Cedar types the one with no operation in common with JSON's.
 * Nothing a caller sends can be one, because callers cannot write extension values.
 */
export function opaque(value: Json): CedarValue {
  let text: string;
  try {
    text = JSON.stringify(value);
  } catch {
    throw new Unjudgeable('nested too deeply to be judged');
  }
  const hash = createHash('sha256').update(text).digest('hex');
  return { __extn: { fn: 'ip', arg: hash.slice(0, 32).match(/.{4}/g)?.join(':') ?? '::' } };
}
