/**
 * Request bodies within bounds. A body is cut off at its limit while it arrives, and JSON with too much nesting or too
 * many values is refused by counting its brackets and commas, before anything is built from it.
 */
import type { IncomingMessage } from 'node:http';
import { Fault } from '../../model/faults.ts';

/** How deep JSON may be nested, and how many values it may have. */
export interface JsonBounds {
  readonly depth: number;
  /** Members and elements together. */
  readonly values: number;
}

export interface JsonLimits extends JsonBounds {
  readonly bytes: number;
}

export const JSON_LIMITS: JsonLimits = { bytes: 4 * 1024 * 1024, depth: 64, values: 100_000 };

/** The whole body, or `payload_too_large` as soon as it exceeds the limit. */
export function readBytes(request: IncomingMessage, limit: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const tooLarge = () => new Fault('payload_too_large', `the body may have at most ${limit} bytes`);
    if (Number(request.headers['content-length'] ?? 0) > limit) return reject(tooLarge());
    const chunks: Buffer[] = [];
    let size = 0;
    let whole = false;
    // Every request emits `close` in the end: without this check a fault would be made for each of them.
    const gone = () => {
      if (!whole) reject(new Fault('client_closed', 'the body broke off'));
    };
    const take = (chunk: Buffer) => {
      size += chunk.length;
      if (size <= limit) {
        chunks.push(chunk);
        return;
      }
      request.pause();
      request.off('data', take);
      reject(tooLarge());
    };
    // Listeners are not removed: they are garbage-collected with the request.
    request.on('data', take);
    request.on('end', () => {
      whole = true;
      resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, size));
    });
    request.on('error', gone);
    request.on('close', gone);
  });
}

/** A JSON value, or undefined for an empty body. */
export async function readJson(request: IncomingMessage, limits: JsonLimits = JSON_LIMITS): Promise<unknown> {
  const bytes = await readBytes(request, limits.bytes);
  if (bytes.length === 0) return undefined;
  const type = request.headers['content-type'];
  if (type && !/^application\/([\w.+-]+\+)?json\s*(;|$)/i.test(type)) {
    throw new Fault('invalid_request', 'the body must be application/json', { param: 'content-type' });
  }
  return parseJson(bytes, limits);
}

// A byte order mark is kept, and is then no JSON: readers differ on whether it is part of the text.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export function parseJson(bytes: Uint8Array, limits: JsonBounds | JsonLimits = JSON_LIMITS): unknown {
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw new Fault('invalid_request', 'the body is not UTF-8');
  }
  return parseJsonText(text, limits);
}

/** The same for a string: a line, a frame. */
export function parseJsonText(text: string, limits: JsonBounds = JSON_LIMITS): unknown {
  if (!/\S/.test(text)) return undefined;
  const members = measure(text, limits);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Fault('invalid_request', 'the body is not JSON');
  }
  // Of two members with one name a reader keeps the first, the last or both: the value that was checked may not be the
  // one that runs.
  if (membersIn(value) !== members) throw new Fault('invalid_request', 'a name appears twice in one object');
  if (DOUBTFUL.test(text)) requireSound(value);
  return value;
}

const QUOTE = 34;
const BACKSLASH = 92;
const LIST = { opens: 0x5b, closes: 0x5d };
const MAP = { opens: 0x7b, closes: 0x7d };
const COMMA = 44;
const COLON = 58;

/** One pass over the text, outside of its strings. Returns the number of members written in its objects. */
function measure(text: string, { depth, values }: JsonBounds): number {
  let deep = 0;
  let count = 1;
  let members = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfString(text, at);
    } else if (code === COMMA) {
      count += 1;
    } else if (code === COLON) {
      members += 1;
    } else if (code === LIST.opens || code === MAP.opens) {
      deep += 1;
      count += 1;
      if (deep > depth) throw new Fault('payload_too_large', `JSON may be nested at most ${depth} deep`);
    } else if (code === LIST.closes || code === MAP.closes) {
      deep -= 1;
    }
    if (count > values) throw new Fault('payload_too_large', `JSON may hold at most ${values} values`);
  }
  return members;
}

/** The number of members of all objects in a value. */
function membersIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value) count += membersIn(item);
    return count;
  }
  for (const name of Object.keys(value)) count += 1 + membersIn((value as Record<string, unknown>)[name]);
  return count;
}

/** Index of the quote that closes the string opened at `from`; the length of the text when none does. */
function endOfString(text: string, from: number): number {
  let at = text.indexOf('"', from + 1);
  while (at !== -1) {
    let slashes = 0;
    while (text.charCodeAt(at - 1 - slashes) === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return at;
    at = text.indexOf('"', at + 1);
  }
  return text.length;
}

const HALF = /\p{Surrogate}/u;

/** Lone surrogates and numbers that overflow parse, but cannot be serialized and hashed again. */
const DOUBTFUL = /\\u[dD][89a-fA-F]|\d[eE]\+?\d{3}|\d{300}/;

function requireSound(value: unknown): void {
  if (typeof value === 'string' && HALF.test(value)) {
    throw new Fault('invalid_request', 'a text holds half of a character');
  }
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw new Fault('invalid_request', 'a number is too large');
  }
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(value)) {
    requireSound(name);
    requireSound(member);
  }
}
