/**
 * Packs JSON objects: strings and lists of member names that repeat become references to words, which are stored once; times and ids of
 * events become numbers. `unpack` gives exactly the text that `JSON.stringify` gives. Knows nothing of what an object means.
 */
import { BASE, END, LONGEST_AGAIN, MOST_AGAIN, numeral, SHORTEST_AGAIN, TAG, ZERO } from './format.ts';

/** What can be referred to. */
export interface PackingWords {
  /** The reference to a string; undefined: it is written out. */
  string(text: string): string | undefined;
  /** The reference to the names of an object's members; undefined: the object is written out. */
  names(names: readonly string[]): string | undefined;
}

/** Deeper values are written out as JSON. */
const DEEPEST = 32;
const MOST_TIMES = 256;
const EVENT_ID = /^evt_\d{16}$/;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
// A surrogate is escaped only when it is alone; a pair merely takes the slower way.
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON escapes them
const MAY_BE_ESCAPED = /["\\\u0000-\u001f\ud800-\udfff]/;

/** Thrown for a value that JSON would have to convert: such an object is stored as JSON. */
const NOT_PLAIN = new Error('not plain data');

export function createPacker(words: PackingWords): (value: object) => string {
  let out = '';
  /** The texts written out so far. */
  const written: string[] = [];
  let lastTime = '';
  /** Packed forms of recent times: all events of a batch have one in common, and a task repeats a few. */
  const times = new Map<string, string>();

  function put(value: unknown, depth: number): void {
    switch (typeof value) {
      case 'string':
        putString(value);
        return;
      case 'number':
        putNumber(value);
        return;
      case 'boolean':
        out += value ? TAG.true : TAG.false;
        return;
      case 'object':
        if (value === null) out += TAG.null;
        else if (Array.isArray(value)) putList(value, depth);
        else putObject(value as Readonly<Record<string, unknown>>, depth);
        return;
      default:
        throw NOT_PLAIN;
    }
  }

  function putString(text: string): void {
    const { length } = text;
    if ((length === 24 && putTime(text)) || (length === 20 && putEventId(text))) return;
    const word = length <= LONGEST_AGAIN ? words.string(text) : undefined;
    const before = word === undefined && length >= SHORTEST_AGAIN ? written.indexOf(text) : -1;
    if (word !== undefined) out += word;
    else if (before >= 0) out += TAG.again + String.fromCharCode(ZERO + before);
    else putText(text);
  }

  function putText(text: string): void {
    const content = MAY_BE_ESCAPED.test(text) ? JSON.stringify(text).slice(1, -1) : text;
    out += TAG.text + content + END;
    const { length } = text;
    const repeatable = length >= SHORTEST_AGAIN && length <= LONGEST_AGAIN && content === text;
    if (repeatable && written.length < MOST_AGAIN) written.push(text);
  }

  function putTime(text: string): boolean {
    if (text === lastTime) {
      out += TAG.sameTime;
      return true;
    }
    let packed = times.get(text);
    if (packed === undefined) {
      const at = TIME.test(text) ? Date.parse(text) : Number.NaN;
      if (!(at >= 0) || new Date(at).toISOString() !== text) return false;
      packed = TAG.time + numeral(at);
      if (times.size >= MOST_TIMES) times.clear();
      times.set(text, packed);
    }
    lastTime = text;
    out += packed;
    return true;
  }

  function putEventId(text: string): boolean {
    if (!EVENT_ID.test(text)) return false;
    const number = Number(text.slice(4));
    if (!Number.isSafeInteger(number)) return false;
    out += TAG.eventId + numeral(number);
    return true;
  }

  function putNumber(value: number): void {
    if (Number.isInteger(value) && value >= 0 && value < BASE) out += TAG.digit + String.fromCharCode(ZERO + value);
    else if (Number.isFinite(value)) out += TAG.number + String(value) + END;
    else out += TAG.null;
  }

  function putList(values: readonly unknown[], depth: number): void {
    if ('toJSON' in values) throw NOT_PLAIN;
    if (values.length === 0) {
      out += TAG.emptyArray;
    } else if (depth >= DEEPEST) {
      putJson(values);
    } else {
      out += TAG.array + numeral(values.length);
      for (let at = 0; at < values.length; at++) put(values[at], depth + 1);
    }
  }

  function putObject(members: Readonly<Record<string, unknown>>, depth: number): void {
    const prototype = Object.getPrototypeOf(members);
    if (prototype !== Object.prototype && prototype !== null) throw NOT_PLAIN;
    let names = Object.keys(members);
    let values = Object.values(members);
    if (values.includes(undefined)) {
      // JSON leaves these out.
      names = names.filter((_, at) => values[at] !== undefined);
      values = values.filter((value) => value !== undefined);
    }
    if (names.length === 0) {
      out += TAG.emptyObject;
      return;
    }
    const word = depth < DEEPEST ? words.names(names) : undefined;
    if (word === undefined) {
      putJson(members);
      return;
    }
    out += word;
    for (let at = 0; at < values.length; at++) put(values[at], depth + 1);
  }

  function putJson(value: object): void {
    if ('toJSON' in value && typeof value.toJSON === 'function') throw NOT_PLAIN;
    out += TAG.json + JSON.stringify(value) + END;
  }

  return (value) => {
    out = '';
    written.length = 0;
    lastTime = '';
    try {
      put(value, 0);
    } catch (thrown) {
      if (thrown !== NOT_PLAIN) throw thrown;
      return JSON.stringify(value);
    }
    // Of an object whose names are no word there is nothing but its JSON text.
    return out.startsWith(TAG.json) ? out.slice(1, -1) : out;
  };
}
