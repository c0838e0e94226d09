/**
 * The canonical text of a value (RFC 8785), written as bytes into one preallocated buffer, so that no string is built only to be
 * hashed and dropped. Handles the common case, plain objects with short ASCII texts; for any other value it returns undefined,
 * and the caller uses `canonical-json.ts`. Where both have a result it is the same.
 */
import { inOrder } from '../seal/canonical-json.ts';

/** Longer values are rare, and serializing them is the smaller part of their cost. */
const ROOM = 16_384;
/** The most that is written between two checks of the remaining space: a number, a keyword, punctuation. */
const MARGIN = 64;
const DEEPEST = 64;

const bytes = Buffer.alloc(ROOM);
let end = 0;

/**
 * The canonical bytes, preceded by the byte `first` and valid until the next call; undefined for a value that `canonical-json.ts`
 * must serialize.
 */
export function canonicalBytes(first: number, value: unknown): Uint8Array | undefined {
  bytes[0] = first;
  end = 1;
  return put(value, 0) ? bytes.subarray(0, end) : undefined;
}

function put(value: unknown, depth: number): boolean {
  if (end > ROOM - MARGIN) return false;
  switch (typeof value) {
    case 'string':
      return putText(value);
    case 'number':
      // As in canonical JSON: an integer whose digits promise more than a double holds has no canonical form.
      return (
        (Number.isSafeInteger(value) || (Number.isFinite(value) && !Number.isInteger(value))) && putAscii(`${value}`)
      );
    case 'boolean':
      return putAscii(value ? 'true' : 'false');
    case 'object':
      if (value === null) return putAscii('null');
      if (depth === DEEPEST) return false;
      return Array.isArray(value) ? putList(value, depth + 1) : putObject(value as Members, depth + 1);
    default:
      return false;
  }
}

type Members = Readonly<Record<string, unknown>>;

function putList(list: readonly unknown[], depth: number): boolean {
  bytes[end++] = 0x5b;
  for (let at = 0; at < list.length; at += 1) {
    if (at > 0) bytes[end++] = 0x2c;
    if (!put(list[at], depth)) return false;
  }
  bytes[end++] = 0x5d;
  return true;
}

function putObject(object: Members, depth: number): boolean {
  const prototype = Object.getPrototypeOf(object);
  if (prototype !== Object.prototype && prototype !== null) return false;
  const keys = inOrder(Object.keys(object));
  bytes[end++] = 0x7b;
  let following = false;
  for (let at = 0; at < keys.length; at += 1) {
    const key = keys[at] as string;
    const member = object[key];
    if (member === undefined) continue;
    if (following) bytes[end++] = 0x2c;
    following = true;
    if (!putText(key)) return false;
    bytes[end++] = 0x3a;
    if (!put(member, depth)) return false;
  }
  bytes[end++] = 0x7d;
  return true;
}

/** Printable ASCII that needs no escape. */
function putText(text: string): boolean {
  const { length } = text;
  if (end + length > ROOM - MARGIN) return false;
  bytes[end++] = 0x22;
  for (let at = 0; at < length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 0x20 || code > 0x7e || code === 0x22 || code === 0x5c) return false;
    bytes[end++] = code;
  }
  bytes[end++] = 0x22;
  return true;
}

function putAscii(word: string): boolean {
  for (let at = 0; at < word.length; at += 1) bytes[end++] = word.charCodeAt(at);
  return true;
}
