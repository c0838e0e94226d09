/**
 * Decodes values as the protocol's own types do: unknown members are dropped, optional ones may be null, words are
 * case-sensitive, integers have ranges. The output is the value as those types would encode it again. Pure.
 */
import { isObject, type Json, type JsonObject } from '../../src/index.ts';

/** A value that does not fit, with a message that names the member. */
export class Misfit extends Error {}

export type Decode = (value: unknown) => Json;

export const any: Decode = (value) => value as Json;
export const text: Decode = (value) => (typeof value === 'string' ? value : wrong(value, 'a string'));
export const bool: Decode = (value) => (typeof value === 'boolean' ? value : wrong(value, 'a boolean'));
export const number: Decode = (value) => (typeof value === 'number' ? value : wrong(value, 'a number'));
export const u32 = integer('u32', 0, 2 ** 32 - 1);
export const i32 = integer('i32', -(2 ** 31), 2 ** 31 - 1);
export const u64 = integer('u64', 0, 2 ** 64);
export const i64 = integer('i64', -(2 ** 63), 2 ** 63);
export const map: Decode = (value) => (isObject(value) ? value : wrong(value, 'a map'));

export function list(item: Decode): Decode {
  return (value) => (Array.isArray(value) ? value.map(item) : wrong(value, 'a sequence'));
}

/** A word alone; an object with the word as key and null as value is the same word. */
export function word(words: readonly string[]): Decode {
  return (value) => {
    if (typeof value === 'string') return words.includes(value) ? value : strange(value, words);
    const [name, inner, ...more] = isObject(value) ? [...Object.keys(value), ...Object.values(value)] : [];
    if (typeof name === 'string' && more.length === 0 && isObject(value) && Object.keys(value).length === 1) {
      if (!words.includes(name)) return strange(name, words);
      return inner === null ? name : wrong(inner, 'a unit variant');
    }
    return wrong(value, 'a word');
  };
}

/** A word, or an object whose one key names a kind: `{"custom":"name"}`. */
export function choice(words: readonly string[], kinds: Readonly<Record<string, Decode>>): Decode {
  const plain = word(words);
  return (value) => {
    if (typeof value === 'string' && Object.hasOwn(kinds, value)) throw new Misfit(`\`${value}\` needs a value`);
    if (!isObject(value)) return words.length > 0 ? plain(value) : wrong(value, 'a map with one member');
    const names = Object.keys(value);
    const [name] = names;
    const inner = name === undefined || !Object.hasOwn(kinds, name) ? undefined : kinds[name];
    if (names.length !== 1 || name === undefined) return wrong(value, 'a map with one member');
    if (!inner) return words.includes(name) ? plain(value) : strange(name, [...words, ...Object.keys(kinds)]);
    return { [name]: inner(value[name]) };
  };
}

interface Member {
  readonly decode: Decode;
  /** Missing is an error. */
  readonly needed: boolean;
  /** Null counts as missing. */
  readonly nullable: boolean;
  /** The value when missing; undefined leaves the member out. */
  readonly otherwise: (() => Json) | undefined;
  /** An empty list is left out. */
  readonly sparing: boolean;
}
type Members = Readonly<Record<string, Member>>;

const plain = { needed: false, nullable: false, otherwise: undefined, sparing: false };
export const needs = (decode: Decode): Member => ({ ...plain, decode, needed: true });
export const may = (decode: Decode): Member => ({ ...plain, decode, nullable: true });
/** Optional, and encoded as null when absent. */
export const maybe = (decode: Decode): Member => ({ ...plain, decode, nullable: true, otherwise: () => null });
/** May be missing, may not be null. */
export const or = (decode: Decode, otherwise: Json): Member => ({ ...plain, decode, otherwise: () => otherwise });
export const listOr = (item: Decode): Member => ({
  ...plain,
  decode: list(item),
  otherwise: () => [],
  sparing: true,
});

export function struct(members: Members): Decode {
  const all = Object.entries(members);
  return (value) => {
    if (!isObject(value)) return wrong(value, 'a map');
    const read: Record<string, Json> = {};
    for (const [name, { decode, needed, nullable, otherwise, sparing }] of all) {
      const member = value[name];
      const absent = member === undefined || (member === null && nullable);
      if (absent && needed) throw new Misfit(`missing field \`${name}\``);
      const result = absent ? otherwise?.() : inMember(name, decode, member);
      if (result === undefined || (sparing && Array.isArray(result) && result.length === 0)) continue;
      read[name] = result;
    }
    return read;
  };
}

/** A union, distinguished by a member that names the kind. */
export function tagged(tag: string, kinds: Readonly<Record<string, Members>>): Decode {
  const shapes = new Map(Object.entries(kinds).map(([name, members]) => [name, struct(members)]));
  return (value) => {
    if (!isObject(value)) return wrong(value, 'a map');
    const name = value[tag];
    if (name === undefined) throw new Misfit(`missing field \`${tag}\``);
    if (typeof name !== 'string') return wrong(name, 'a word');
    const shape = shapes.get(name);
    if (!shape) return strange(name, Object.keys(kinds));
    return { [tag]: name, ...(shape(value) as JsonObject) };
  };
}

function integer(name: string, least: number, most: number): Decode {
  return (value) => {
    if (typeof value !== 'number') return wrong(value, name);
    // The protocol's own reader takes a negative zero for a fraction.
    const whole = Number.isInteger(value) && !Object.is(value, -0);
    return whole && value >= least && value <= most ? value : wrong(value, name);
  };
}

function inMember(name: string, decode: Decode, value: unknown): Json {
  try {
    return decode(value);
  } catch (cause) {
    if (!(cause instanceof Misfit) || /^missing field|^unknown variant/.test(cause.message)) throw cause;
    throw new Misfit(`${cause.message} in \`${name}\``);
  }
}

/** The value itself is not repeated: it may be confidential. */
function wrong(value: unknown, wanted: string): never {
  const kind = value === null ? 'null' : Array.isArray(value) ? 'sequence' : isObject(value) ? 'map' : typeof value;
  throw new Misfit(`invalid type: ${kind}, expected ${wanted}`);
}

function strange(name: string, words: readonly string[]): never {
  throw new Misfit(
    `unknown variant \`${name.slice(0, 60)}\`, expected one of ${words.map((w) => `\`${w}\``).join(', ')}`,
  );
}
