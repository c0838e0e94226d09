/**
 * Converts JSON to Cedar values. Cedar has booleans, integers, strings, sets and records. A value it cannot hold becomes opaque:
 * present, equal only to itself, and an error to every other operation. So a rule that needs the value fails, which blocks where
 * the rule restricts; it is never skipped as if the value were absent.
 */
import { createHash } from 'node:crypto';
import type { Json, JsonObject } from '../../model/schema.ts';

/** Longer texts and deeper values are opaque to rules: callers must not control the cost of a decision. */
const MAX_TEXT = 65_536;
const MAX_DEPTH = 32;
/** With more values than this under one name that a rule looks at, the act is not judged at all. */
const MAX_VALUES = 10_000;

export type CedarValue = boolean | number | string | readonly CedarValue[] | { readonly [key: string]: CedarValue };

/** Thrown when not even an opaque value is possible; the decision is then a block. */
export class Unjudgeable extends Error {}

/** `depth` counts from the context, so that a value is the same to every rule, whichever path led to it. */
export function toCedar(value: Json, depth: number): CedarValue {
  return convert(value, depth, { values: MAX_VALUES });
}

function convert(value: Json, depth: number, budget: { values: number }): CedarValue {
  budget.values -= 1;
  if (budget.values < 0) throw new Unjudgeable(`a rule looks at more than ${MAX_VALUES} values at once`);
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
      throw new Unjudgeable('a value in it is not JSON');
  }
  if (value === null || depth >= MAX_DEPTH) return opaque(value);
  if (Array.isArray(value)) return value.map((item: Json) => convert(item, depth + 1, budget));
  const record = value as JsonObject;
  const out = emptyRecord();
  for (const key of Object.keys(record)) {
    const item = record[key];
    if (item !== undefined) out[safeKey(key)] = convert(item, depth + 1, budget);
  }
  return out;
}

/** Without a prototype, a member called `__proto__` is an ordinary member. */
export function emptyRecord(): Record<string, CedarValue> {
  return Object.create(null) as Record<string, CedarValue>;
}

/** Cedar interprets some names (an entity, an extension value); from a caller they are only names. */
const RESERVED = /^__(entity|extn|expr|key[0-9a-f]{64})_*$/;

export function isReservedKey(key: string): boolean {
  return RESERVED.test(key);
}

/** A name that no rule can use gets a unique replacement: never interpreted, never lost, never equal to another name. */
export function safeKey(key: string): string {
  if (!isPlainText(key)) return `__key${createHash('sha256').update(JSON.stringify(key)).digest('hex')}`;
  return key.startsWith('__') && isReservedKey(key) ? `${key}_` : key;
}

export function isPlainText(text: string): boolean {
  return text.length <= MAX_TEXT && (text as string & { isWellFormed(): boolean }).isWellFormed();
}

/**
 * An IPv6 address made from the value's hash: the one Cedar type that has no operation in common with JSON's types. No input can
 * be one, because callers cannot write extension values.
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
