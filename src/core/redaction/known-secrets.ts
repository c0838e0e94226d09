/** Exact values that must never be written, in every encoding they occur in. Kept in memory only. */
import { asText } from '../../model/values/as-text.ts';
import type { Span } from './secret-shapes.ts';

export interface KnownSecrets {
  /** False when the value is too short to be distinguished from ordinary text, or known already. */
  learn(secret: string): boolean;
  test(text: string): boolean;
  inNumber(value: number): boolean;
  find(text: string, spans: Span[]): void;
  /** The start of the longest beginning of a known secret that the text ends with; fewer than four characters do not count. */
  brokenOff(text: string): number | undefined;
}

const SHORTEST = 6;
/** Every stretch of six characters holds a whole triple that starts at a multiple of four: only those are examined. */
const STRIDE = 4;
const SLOTS = 1 << 16;
/** A shorter beginning is an ordinary word. */
const SHORTEST_START = 4;
const REASON = 'known secret';
const BASE64 = /[A-Za-z0-9+/_=-]/;

interface Spelling {
  readonly text: string;
  /** The triple's offset in the encoding. */
  readonly offset: number;
  /** A stretch of base64: the secret's edges lie inside the neighbouring characters. */
  readonly coded: boolean;
}

export function createKnownSecrets(): KnownSecrets {
  const secrets = new Set<string>();
  const spellings = new Set<string>();
  const byTriple = new Map<number, Spelling[]>();
  /** One byte per slot, so that the usual answer, no, costs one read. */
  const taken = new Uint8Array(SLOTS);
  /** Encodings by their first characters, and the slots of those. */
  const byStart = new Map<number, string[]>();
  const begins = new Uint8Array(SLOTS);
  let longest = 0;
  let digits = false;

  function add(text: string, coded: boolean): void {
    if (text.length < SHORTEST || spellings.has(text)) return;
    spellings.add(text);
    longest = Math.max(longest, text.length);
    const first = triple(text, 0);
    begins[first] = 1;
    byStart.set(first, [...(byStart.get(first) ?? []), text]);
    for (let offset = 0; offset < STRIDE; offset += 1) {
      const slot = triple(text, offset);
      const there = byTriple.get(slot);
      if (there) there.push({ text, offset, coded });
      else byTriple.set(slot, [{ text, offset, coded }]);
      taken[slot] = 1;
    }
  }

  /** Stops at the first hit that returns true. */
  function scan(text: string, hit: (start: number, spelling: Spelling) => boolean): boolean {
    if (secrets.size === 0) return false;
    for (let at = 0; at + 2 < text.length; at += STRIDE) {
      const slot = triple(text, at);
      if (taken[slot] === 0) continue;
      for (const spelling of byTriple.get(slot) ?? []) {
        const start = at - spelling.offset;
        if (start >= 0 && text.startsWith(spelling.text, start) && hit(start, spelling)) return true;
      }
    }
    return false;
  }

  const test = (text: string): boolean => scan(text, yes);

  return {
    learn(secret) {
      const value = secret.trim();
      if (value.length < SHORTEST || secrets.has(value)) return false;
      secrets.add(value);
      for (const plain of plainSpellings(value)) add(plain, false);
      for (const coded of base64Spellings(value)) add(coded, true);
      digits ||= /^[-+.\de]+$/i.test(value);
      return true;
    },
    test,
    inNumber: (value) => digits && test(asText(value)),
    brokenOff(text) {
      for (let at = Math.max(0, text.length - longest + 1); at <= text.length - SHORTEST_START; at += 1) {
        const slot = triple(text, at);
        if (begins[slot] === 0) continue;
        const left = text.slice(at);
        if (byStart.get(slot)?.some((spelling) => spelling.length > left.length && spelling.startsWith(left)))
          return at;
      }
      return undefined;
    },
    find(text, spans) {
      let covered = 0;
      scan(text, (at, spelling) => {
        let start = at;
        let end = at + spelling.text.length;
        if (spelling.coded) {
          // A run of base64 is widened once, however many secrets are in it.
          if (end <= covered) return false;
          while (start > 0 && BASE64.test(text.charAt(start - 1))) start -= 1;
          while (end < text.length && BASE64.test(text.charAt(end))) end += 1;
          covered = end;
        }
        spans.push({ start, end, reason: REASON });
        return false;
      });
    },
  };
}

const yes = (): boolean => true;

function triple(text: string, at: number): number {
  return ((text.charCodeAt(at) * 33 + text.charCodeAt(at + 1)) * 33 + text.charCodeAt(at + 2)) & (SLOTS - 1);
}

/** Raw, inside JSON, and inside a URL or a form, with either case of hex digits. */
function plainSpellings(secret: string): readonly string[] {
  const wellFormed = Buffer.from(secret, 'utf8').toString('utf8');
  const component = encodeURIComponent(wellFormed);
  const address = encodeURI(wellFormed);
  return [
    secret,
    JSON.stringify(secret).slice(1, -1),
    ...[component, address, component.replaceAll('%20', '+')].flatMap((form) => [form, lowerHex(form)]),
  ];
}

function lowerHex(form: string): string {
  return form.replace(/%[0-9A-F]{2}/g, (hex) => hex.toLowerCase());
}

/**
 * Inside a longer base64 text a secret starts at one of three offsets; at each, the characters that hold nothing but its
 * bits are always the same.
 */
function base64Spellings(secret: string): readonly string[] {
  const bytes = Buffer.from(secret, 'utf8');
  return [0, 1, 2].flatMap((offset) => {
    const coded = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64');
    const core = coded.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + bytes.length) * 8) / 6));
    return [core, core.replaceAll('+', '-').replaceAll('/', '_')];
  });
}
