/**
 * One text for every value (RFC 8785), so that a hash identifies the value and not its formatting. Refuses values that have no
 * such text: non-finite numbers, integers a double cannot hold, lone surrogates, non-JSON.
 */

import { hash } from 'node:crypto';
import { Fault } from '../../model/faults.ts';
import { isObject } from '../../model/values/is-object.ts';

/**
 * The canonical text. Members that are `undefined` are omitted, as in JSON; anywhere else `undefined` is refused. Parts that went
 * through `spellOnce` are not serialized again.
 */
export function canonicalJson(value: unknown): string {
  try {
    const text = spell('', value);
    // JSON.stringify writes a lone surrogate as an escape; every other character of the d800 block is written as itself.
    if (text.includes('\\ud') && LONE_SURROGATE.test(text)) throw refused('text with half a surrogate pair');
    return text;
  } catch (thrown) {
    if (thrown instanceof RangeError) throw refused('a value nested too deeply', thrown);
    throw thrown;
  }
}

/**
 * Serializes a part that is final, and freezes it. Work done when the part becomes known need not be done inside the transaction
 * that seals the receipt.
 */
export function spellOnce<T extends object>(part: T): T {
  freeze(part);
  SPELLED.set(part, canonicalJson(part));
  return part;
}

/**
 * Serializes many parts at once, which is quicker than one by one; a single part is serialized with the value that contains it.
 */
export function spellMany<T extends object>(parts: T[]): T[] {
  return parts.length > 1 ? spellOnce(parts) : parts;
}

/** A cache of frozen values, collected with them: the text of a value that cannot change. */
const SPELLED = new WeakMap<object, string>();

function freeze(value: unknown): void {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return;
  Object.freeze(value);
  for (const name in value) freeze((value as Record<string, unknown>)[name]);
}

/**
 * The canonical text where there is one, and otherwise still one text per value. For comparing values (retries, approvals,
 * records); never for a receipt, which holds only values with a canonical text.
 */
export function comparableText(value: unknown): string {
  try {
    return canonicalJson(value);
  } catch (cause) {
    try {
      return JSON.stringify(value, (_, member) => (isObject(member) ? sorted(member) : member)) ?? 'undefined';
    } catch {
      throw cause;
    }
  }
}

/**
 * The text by the same rules for any JSON value. RFC 8785 writes numbers as doubles and text as it is; where it refuses (half a
 * surrogate pair) or where we do (digits a double cannot hold), this writes what ECMAScript writes. For hashes of events, which
 * hold what callers sent; a value nested so deep that nothing can walk it is still refused.
 */
export function spellAnyway(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  if (Array.isArray(value)) return `[${value.map(spellAnyway).join(',')}]`;
  const record = value as Record<string, unknown>;
  const members = Object.keys(record).filter((key) => record[key] !== undefined);
  return `{${inOrder(members)
    .map((key) => `${JSON.stringify(key)}:${spellAnyway(record[key])}`)
    .join(',')}}`;
}

function sorted(value: Record<string, unknown>): object {
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** `sha256:<hex>` of the canonical text. */
export function hashOf(value: unknown): string {
  return hashBytes(canonicalJson(value));
}

/** As `hashOf`, but also defined for values without a canonical text, such as a lone surrogate in a client's text. */
export function comparableHash(value: unknown): string {
  return hashBytes(comparableText(value));
}

/** `sha256:<hex>` of bytes as they are; text counts as its UTF-8 bytes. */
export function hashBytes(bytes: Uint8Array | string): string {
  return `sha256:${hash('sha256', bytes, 'hex')}`;
}

const LONE_SURROGATE = /(?<!\\)(?:\\\\)*\\ud[89a-f]/;

/** By UTF-16 code unit. Objects are small, and for a handful of keys insertion is half the cost of a library sort. */
function inOrder(keys: string[]): string[] {
  if (keys.length > 32) return keys.sort();
  for (let i = 1; i < keys.length; i += 1) {
    const key = keys[i]!;
    let at = i - 1;
    for (; at >= 0 && keys[at]! > key; at -= 1) keys[at + 1] = keys[at]!;
    keys[at + 1] = key;
  }
  return keys;
}

/**
 * Serializes key by key, reusing the text of parts that were serialized before. Each step passes on the text so far: appending to
 * one long string is cheaper than joining many short ones.
 */
function spell(text: string, value: unknown): string {
  switch (typeof value) {
    case 'string':
      return text + quoted(value);
    case 'number':
      return text + plainNumber(value);
    case 'boolean':
      return text + value;
    case 'object':
      if (value === null) return `${text}null`;
      return Array.isArray(value) ? spellList(text, value) : spellObject(text, value as Record<string, unknown>);
    default:
      throw refused(`a value of type ${typeof value}`);
  }
}

function spellList(text: string, list: readonly unknown[]): string {
  if (list.length === 0) return `${text}[]`;
  const known = SPELLED.get(list);
  if (known !== undefined) return text + known;
  let longer = text;
  for (let i = 0; i < list.length; i += 1) longer = spell(longer + (i === 0 ? '[' : ','), list[i]);
  return `${longer}]`;
}

function spellObject(text: string, object: Record<string, unknown>): string {
  const known = SPELLED.get(object);
  if (known !== undefined) return text + known;
  refuseOdd(object);
  let longer = text;
  let before = '{';
  for (const key of inOrder(Object.keys(object))) {
    const member = object[key];
    if (member === undefined) continue;
    longer = spell(longer + before + quotedKey(key), member);
    before = ',';
  }
  return before === '{' ? `${text}{}` : `${longer}}`;
}

function quoted(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(text);
}

/** No control character, quote, backslash or surrogate: such text needs no escaping. */
const PLAIN = /^[ !#-[\]-\ud7ff\ue000-\uffff]*$/;

/** Keys come from a small vocabulary, so each is quoted once; the bound keeps a flood of new keys from filling memory. */
function quotedKey(key: string): string {
  const known = KEYS.get(key);
  if (known !== undefined) return known;
  const text = `${quoted(key)}:`;
  if (KEYS.size < 2000) KEYS.set(key, text);
  return text;
}

/** A cache of bounded size: documents of one kind have the same member names. */
const KEYS = new Map<string, string>();

function plainNumber(value: number): number {
  if (Number.isSafeInteger(value)) return value;
  if (!Number.isFinite(value)) throw refused(`the number ${value}`);
  // Digits promise exactness; from 1e21 on the canonical form has an exponent and promises none.
  if (Number.isInteger(value) && Math.abs(value) < 1e21) throw refused(`the integer ${value}, which is beyond 2^53`);
  return value;
}

function refuseOdd(object: object): void {
  const prototype = Object.getPrototypeOf(object);
  if (prototype === Object.prototype || prototype === null) return;
  // Values from another realm are plain too; a class instance has a prototype above its prototype.
  if (Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'isPrototypeOf')) return;
  throw refused('an object that is not plain');
}

function refused(what: string, cause?: unknown): Fault {
  return new Fault('invalid_request', `canonical JSON has no spelling for ${what}`, { cause });
}
