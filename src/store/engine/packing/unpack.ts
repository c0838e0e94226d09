/** Packed texts back into JSON texts. A text that was stored as JSON comes back as it is, and so does one that cannot be read. */
import { eventId } from '../../../model/events.ts';
import {
  BASE,
  END,
  LONGEST_AGAIN,
  MOST_AGAIN,
  MOST_DIGITS,
  NAMES_WORD,
  SHORTEST_AGAIN,
  STRING_WORD,
  TAG,
  ZERO,
} from './format.ts';

/** The text of a word: a JSON string, or a JSON list of names. */
export type WordOf = (number: number) => string | undefined;

export interface Unpacker {
  unpack(body: string): string;
  /** The value of an object's third member as JSON: the kind of an event, for which the rest need not be read. */
  third(body: string): string | undefined;
}

const DAMAGED = new Error('not a packed text');
/** Lists of names that are kept ready. */
const READY = 10_000;

export function createUnpacker(wordOf: WordOf): Unpacker {
  let text = '';
  let at = 0;
  let written: string[] = [];
  let time = '';
  let knownTime = -1;
  let knownTimeText = '';
  /** By the text of the word: what stands before each value of such an object. */
  const openings = new Map<string, readonly string[]>();

  function number(count: number): number {
    let found = 0;
    for (const end = at + count; at < end; at++) {
      const digit = text.charCodeAt(at) - ZERO;
      if (!(digit >= 0 && digit < BASE)) throw DAMAGED;
      found = found * BASE + digit;
    }
    return found;
  }
  const numeral = (): number => number(text.charCodeAt(at++) - ZERO);

  function upToEnd(): string {
    const end = text.indexOf(END, at);
    if (end < 0) throw DAMAGED;
    const found = text.slice(at, end);
    at = end + 1;
    return found;
  }

  function word(digits: number): string {
    return wordOf(number(digits)) ?? damaged();
  }

  function openingsOf(names: string): readonly string[] {
    const known = openings.get(names);
    if (known) return known;
    const list = JSON.parse(names) as readonly string[];
    const made = list.map((name, index) => `${index === 0 ? '{' : ','}${JSON.stringify(name)}:`);
    if (openings.size >= READY) openings.clear();
    openings.set(names, made);
    return made;
  }

  function object(digits: number): string {
    let found = '';
    for (const opening of openingsOf(word(digits))) found += opening + value();
    return `${found}}`;
  }

  function list(): string {
    let found = '';
    for (let left = numeral(); left > 0; left--) found += (found ? ',' : '[') + value();
    return `${found}]`;
  }

  function literal(): string {
    const content = upToEnd();
    const quoted = `"${content}"`;
    const { length } = content;
    const repeatable = length >= SHORTEST_AGAIN && length <= LONGEST_AGAIN && !content.includes('\\');
    if (repeatable && written.length < MOST_AGAIN) written.push(quoted);
    return quoted;
  }

  function timeAt(ms: number): string {
    if (ms !== knownTime) {
      knownTimeText = `"${new Date(ms).toISOString()}"`;
      knownTime = ms;
    }
    time = knownTimeText;
    return time;
  }

  function value(): string {
    const tag = text[at++];
    switch (tag) {
      case TAG.emptyObject:
        return '{}';
      case TAG.array:
        return list();
      case TAG.emptyArray:
        return '[]';
      case TAG.text:
        return literal();
      case TAG.again:
        return written[text.charCodeAt(at++) - ZERO] ?? damaged();
      case TAG.time:
        return timeAt(numeral());
      case TAG.sameTime:
        return time;
      case TAG.eventId:
        return `"${eventId(numeral())}"`;
      case TAG.digit:
        return String(text.charCodeAt(at++) - ZERO);
      case TAG.number:
      case TAG.json:
        return upToEnd();
      case TAG.true:
        return 'true';
      case TAG.false:
        return 'false';
      case TAG.null:
        return 'null';
      default:
        return reference(tag?.charCodeAt(0) ?? 0);
    }
  }

  function reference(tag: number): string {
    if (tag > NAMES_WORD && tag <= NAMES_WORD + MOST_DIGITS) return object(tag - NAMES_WORD);
    if (tag > STRING_WORD && tag <= NAMES_WORD) return word(tag - STRING_WORD);
    throw DAMAGED;
  }

  function begin(body: string): void {
    text = body;
    at = 0;
    written = [];
    time = '';
  }

  return {
    unpack(body) {
      if (body.startsWith('{')) return body;
      try {
        begin(body);
        const found = value();
        return at === body.length ? found : body;
      } catch {
        return body;
      }
    },
    third(body) {
      try {
        begin(body);
        const tag = body.charCodeAt(at++);
        if (!(tag > NAMES_WORD && tag <= NAMES_WORD + MOST_DIGITS)) return undefined;
        word(tag - NAMES_WORD);
        value();
        value();
        return value();
      } catch {
        return undefined;
      }
    },
  };
}

function damaged(): never {
  throw DAMAGED;
}
