/**
 * Redacts payloads, the last step before they are written: secrets are removed, the structure stays. Nothing here stores, hashes or
 * prints a secret, and no payload can make it throw. A clean payload is returned as the same object.
 */
import type { RedactionMark } from '../../model/payloads.ts';
import type { Beginnings } from '../events/stream-redaction.ts';
import { createKnownSecrets } from './known-secrets.ts';
import { DEEPEST, type Detectors, MOST_VALUES, mask, type NameVerdict, redactDeep } from './redact-deep.ts';
import { createSecretNames } from './secret-names.ts';
import { findPattern, findSecrets, type Span, SUSPICIOUS } from './secret-shapes.ts';

export interface Redactor {
  /** Marks give the path and the reason, as JSON Pointers into the returned value; never the secret. */
  redact<T>(value: T): { readonly value: T; readonly marks: readonly RedactionMark[] };
  text(text: string): string;
  /** One line for the process log: the error and its causes, without stack, control characters or secrets. */
  errorText(thrown: unknown): string;
  /** Adds a value that must not appear from now on: a vault's, an environment variable's, one of our own keys. */
  learn(secret: string): void;
  /** All learned values, in order, for a worker thread that needs the same ones. Never leaves this process. */
  readonly learned: readonly string[];
  /** For text streamed in pieces. */
  readonly beginnings: Beginnings;
}

export interface RedactorOptions {
  /** Additional names that imply a secret. */
  readonly keys?: readonly string[];
  /** Additional shapes; each whole match is removed. */
  readonly patterns?: readonly RegExp[];
}

const SHORTEST = 6;
const LONGEST_ERROR = 500;
/** Names whose verdict is cached: payloads repeat a few dozen, an attacker may send millions. */
const KEPT_NAMES = 4_096;
/** Texts last found clean: the same words, names and hashes occur in one event after the other. One for each slot. */
const KEPT_TEXTS = 1_024;
const LONGEST_KEPT = 128;
/** Members of a `{ name, value }` pair that name the value: headers, variables, overrides. */
const NAMERS = ['name', 'key', 'kind'] as const;
const NONE: readonly RedactionMark[] = [];

type Members = { readonly [name: string]: unknown };

export function createRedactor({ keys = [], patterns = [] }: RedactorOptions = {}): Redactor {
  const names = createSecretNames(keys);
  const known = createKnownSecrets();
  const extra = patterns.map((pattern) => new RegExp(pattern.source, `${pattern.flags.replace(/[gy]/g, '')}g`));
  const learned: string[] = [];
  const verdicts = new Map<string, NameVerdict>();
  const innocent: (string | undefined)[] = new Array(KEPT_TEXTS).fill(undefined);
  let left = MOST_VALUES;

  function suspicious(text: string): boolean {
    if (text.length > LONGEST_KEPT) return looksSuspicious(text);
    const slot = slotOf(text);
    if (innocent[slot] === text) return false;
    if (looksSuspicious(text)) return true;
    innocent[slot] = text;
    return false;
  }

  const looksSuspicious = (text: string): boolean =>
    SUSPICIOUS.test(text) || known.test(text) || (extra.length > 0 && extra.some(matches(text)));

  function verdict(name: string): NameVerdict {
    const seen = verdicts.get(name);
    if (seen) return seen;
    const fresh = judge(name);
    if (verdicts.size >= KEPT_NAMES) verdicts.clear();
    if (name.length <= 64) verdicts.set(name, fresh);
    return fresh;
  }

  function judge(name: string): NameVerdict {
    if (suspicious(name)) return 'tainted';
    if (names.member(name)) return 'sensitive';
    if (name.toLowerCase() === 'token') return 'maybe';
    return name === 'value' ? 'pair' : 'plain';
  }

  function pairName(members: Members): string | undefined {
    for (const namer of NAMERS) {
      const name = members[namer];
      if (typeof name === 'string' && (names.member(name) || name.toLowerCase() === 'token')) return name;
    }
    return undefined;
  }

  /** The common case, and the only one that has to be fast. A false alarm here costs time, never a secret. */
  function clean(value: unknown, depth: number): boolean {
    if (typeof value === 'string') return value.length < SHORTEST || !suspicious(value);
    if (typeof value === 'number') return !known.inNumber(value);
    if (typeof value !== 'object' || value === null) return true;
    left -= 1;
    if (depth >= DEEPEST || left < 0) return false;
    if (Array.isArray(value)) {
      for (let at = 0; at < value.length; at += 1) if (!clean(value[at], depth + 1)) return false;
      return true;
    }
    for (const name in value) {
      const nameVerdict = verdict(name);
      if (nameVerdict !== 'plain' && (nameVerdict !== 'pair' || pairName(value as Members) !== undefined)) return false;
      if (!clean((value as Members)[name], depth + 1)) return false;
    }
    return true;
  }

  function find(text: string): readonly Span[] {
    if (text.length < SHORTEST || !suspicious(text)) return [];
    const spans = findSecrets(text, names);
    known.find(text, spans);
    for (const pattern of extra) findPattern(pattern, text, spans);
    return merge(spans);
  }

  /** A text that the pattern engine cannot handle is not written at all. */
  function inspect(text: string): { readonly text: string; readonly reason: string | undefined } {
    try {
      const spans = find(text);
      if (spans.length === 0) return { text, reason: undefined };
      return { text: cut(text, spans), reason: [...new Set(spans.map(({ reason }) => reason))].join(', ') };
    } catch {
      return { text: mask('could not be checked'), reason: 'could not be checked' };
    }
  }

  const detectors: Detectors = { verdict, pairName, inspect, isSecretName: names.member, inNumber: known.inNumber };
  const text = (input: string): string => inspect(input).text;

  return {
    redact(value) {
      left = MOST_VALUES;
      return clean(value, 0) ? { value, marks: NONE } : redactDeep(value, detectors);
    },
    text,
    learned,
    beginnings: {
      brokenOff: known.brokenOff,
      knownIn(whole) {
        const spans: Span[] = [];
        known.find(whole, spans);
        return spans.length === 0 ? spans : merge(spans);
      },
    },
    // Redacted twice: a secret may span lines, and may be whole only after invisible characters are removed.
    errorText: (thrown) => text(oneLine(text(describe(thrown)))).slice(0, LONGEST_ERROR),
    learn(secret) {
      if (!known.learn(secret)) return;
      learned.push(secret);
      verdicts.clear();
      innocent.fill(undefined);
    },
  };
}

function slotOf(text: string): number {
  const { length } = text;
  const ends = text.charCodeAt(0) * 31 + text.charCodeAt(length - 1);
  return ((ends * 31 + text.charCodeAt(length >> 1)) * 31 + length) & (KEPT_TEXTS - 1);
}

function matches(text: string): (pattern: RegExp) => boolean {
  return (pattern) => {
    pattern.lastIndex = 0;
    return pattern.test(text);
  };
}

function merge(spans: readonly Span[]): readonly Span[] {
  const merged: Span[] = [];
  for (const span of spans.toSorted((a, b) => a.start - b.start || b.end - a.end)) {
    const last = merged.at(-1);
    if (!last || span.start >= last.end) merged.push(span);
    else if (span.end > last.end) merged[merged.length - 1] = { ...last, end: span.end };
  }
  return merged;
}

function cut(text: string, spans: readonly Span[]): string {
  let out = '';
  let from = 0;
  for (const { start, end, reason } of spans) {
    out += text.slice(from, start) + mask(reason);
    from = end;
  }
  return out + text.slice(from);
}

/** The message and its causes, three deep. */
function describe(thrown: unknown): string {
  const messages: string[] = [];
  let it = thrown;
  while (it !== undefined && it !== null && messages.length < 3) {
    if (it instanceof Error) messages.push(`${it.name}: ${it.message}`);
    else messages.push(typeof it === 'string' ? it : `a thrown ${typeof it}`);
    it = it instanceof Error ? it.cause : undefined;
  }
  return messages.join(' <- ') || 'nothing was said';
}

/** Control, direction and invisible characters become one space: a log line stays one line and reads as it is. */
function oneLine(text: string): string {
  return text.replace(/[\s\p{Cc}\p{Cf}\p{Cs}]+/gu, ' ').trim();
}
