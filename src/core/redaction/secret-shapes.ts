/**
 * Secrets recognised by their shape, inside any text. Every pattern here runs in time linear in the text: runs are bounded or start
 * only where the run starts, and choices are made in code instead of by backtracking.
 */
import type { SecretNames } from './secret-names.ts';

export interface Span {
  readonly start: number;
  readonly end: number;
  readonly reason: string;
}

/**
 * A quick test for whether a full search is worthwhile. It may err in one direction only: it must match every text in which
 * `findSecrets` finds a secret.
 */
export const SUSPICIOUS =
  /eyJ|-----BEGIN |(?<![A-Za-z0-9])sk-|[sr]k_(?:live|test)_|gh[pousr]_|github_pat_|xox[a-z]-|A[KS]IA|AIza|npm_|glpat-|:\/\/[^\s/?#]*@|[?&#][\w.~%-]{1,64}=|[A-Z]=|--[A-Za-z]|"\s{0,9}:\s{0,9}\\{0,8}"|[Bb][Ee][Aa][Rr][Ee][Rr]\s|[Bb][Aa][Ss][Ii][Cc]\s|[Tt][Ii][Oo][Nn]\s{0,5}:|(?:[Cc][Oo][Oo][Kk][Ii][Ee]|[Kk][Ee][Yy]|[Tt][Oo][Kk][Ee][Nn]|[Ss][Ee][Cc][Rr][Ee][Tt])\s{0,5}:/;

/** The text before a secret, then the secret itself, matched from the end of the first. */
interface Shape {
  readonly reason: string;
  /** Group 1, when there is one, is the secret's name. */
  readonly opener: RegExp;
  readonly named?: (name: string, names: SecretNames) => boolean;
  /** Sticky. Absent: the opener is the secret. */
  readonly secret?: RegExp;
  readonly accept?: (secret: string) => boolean;
  /** A rejected candidate is not searched again: it may be as long as the text. */
  readonly once?: boolean;
}

const SHAPES: readonly Shape[] = [
  {
    reason: 'private key',
    // Without its last line it is still a key, only truncated.
    opener:
      /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|$)/g,
  },
  { reason: 'signed token', opener: /(?<![\w-])eyJ[\w-]{5,}\.[\w-]{5,}(?:\.[\w-]*){0,3}/g },
  {
    reason: 'provider key',
    opener:
      /(?<![A-Za-z0-9])(?:[sr]k_(?:live|test)_\w{10,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|xox[abeoprs]-[\w-]{10,}|A[KS]IA[A-Z0-9]{16}|AIza[\w-]{30,}|npm_[A-Za-z0-9]{30,}|glpat-[\w-]{16,})/g,
  },
  {
    reason: 'provider key',
    opener: /(?<![A-Za-z0-9])sk-[\w-]{16,}/g,
    // `sk-loading-indicator` is a CSS class.
    accept: (secret) => /[0-9A-Z]/.test(secret) || secret.length >= 35,
  },
  {
    reason: 'bearer token',
    opener: /\bbearer\s{1,20}/gi,
    secret: /[\w.~+/-]{6,}=*/y,
    // "Bearer authentication" is prose.
    accept: (secret) => secret.length >= 24 || !/^[A-Za-z]+(?:[-/][A-Za-z]+)?[.]?$/.test(secret),
  },
  {
    reason: 'basic credentials',
    opener: /\bbasic\s{1,20}/gi,
    secret: /[\w+/-]{6,}=*/y,
    // Credentials decode to `user:password`; an English word decodes to noise.
    accept: (secret) => /^[\t -~]*:[\t -~]*$/.test(Buffer.from(secret.slice(0, 4_000), 'base64').toString('latin1')),
  },
  {
    reason: 'header',
    opener: /\b(?:(?:proxy-)?authorization|x-[a-z-]{0,30}(?:key|token|secret))\s{0,5}:\s{0,5}/gi,
    secret: /(?!\[redacted: )[^\r\n"'\\]{6,}/y,
    // Digits, inner capitals or length: features of a generated value that a word of prose lacks.
    accept: (secret) => /\d|[a-z][A-Z]|[=_]|\S{24}/.test(secret),
    once: true,
  },
  {
    reason: 'cookie',
    opener: /\b(?:set-)?cookie\s{0,5}:\s{0,5}/gi,
    secret: /[^\s=;"'\\]{1,256}=[^\r\n"'\\]+/y,
  },
  { reason: 'address password', opener: /:\/\/[^\s/?#:@]*:(?=[^\s/?#]+@)/g, secret: /[^\s/?#]+(?=@)/y },
  {
    reason: 'address parameter',
    opener: /[?&#]([\w.~%-]{1,64})=/g,
    named: (name, names) => names.parameter(name),
    secret: /(?!\[redacted: )[^&#\s"'<>\\]+/y,
  },
  {
    reason: 'variable',
    opener: /(?<![A-Za-z0-9_])([A-Z][A-Z0-9_]{2,63})=["']?/g,
    named: (name, names) => names.member(name),
    secret: /(?![$[])[^\s"'&;,)]{6,}/y,
  },
  {
    reason: 'command flag',
    opener: /(?<![\w-])--([A-Za-z][\w-]{1,40})(?:=|\s{1,4})["']?/g,
    named: (name, names) => names.member(name) || name.toLowerCase() === 'token',
    secret: /(?![-$[])[^\s"']{4,}/y,
  },
];

/** The positions of secrets, in no particular order; spans may overlap. */
export function findSecrets(text: string, names: SecretNames): Span[] {
  const spans: Span[] = [];
  for (const shape of SHAPES) collect(shape, text, names, spans);
  collectMembers(text, names, spans);
  return spans;
}

/** Every whole match of a configured pattern. */
export function findPattern(pattern: RegExp, text: string, spans: Span[]): void {
  pattern.lastIndex = 0;
  for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
    if (match[0].length === 0) pattern.lastIndex += 1;
    else spans.push({ start: match.index, end: match.index + match[0].length, reason: 'pattern' });
  }
}

function collect(shape: Shape, text: string, names: SecretNames, spans: Span[]): void {
  const { reason, opener, named, secret, accept, once } = shape;
  opener.lastIndex = 0;
  for (let match = opener.exec(text); match; match = opener.exec(text)) {
    if (named && !named(match[1] ?? '', names)) continue;
    let start = match.index;
    let found = match[0];
    if (secret) {
      start = opener.lastIndex;
      secret.lastIndex = start;
      found = secret.exec(text)?.[0] ?? '';
    }
    if (found === '') continue;
    const end = start + found.length;
    const accepted = accept?.(found) ?? true;
    if (accepted) spans.push({ start, end, reason });
    // In "bearer bearer x9…" the real secret begins at the rejected candidate.
    if (accepted || once) opener.lastIndex = end;
  }
}

const MEMBER = /"([\w.-]{1,64})\\{0,8}"\s{0,9}:\s{0,9}(\\{0,8})"/g;

/** JSON inside a text, escaped once or more: the same names imply the same secrets there. */
function collectMembers(text: string, names: SecretNames, spans: Span[]): void {
  MEMBER.lastIndex = 0;
  for (let match = MEMBER.exec(text); match; match = MEMBER.exec(text)) {
    const [, name = '', backslashes = ''] = match;
    if (!names.member(name)) continue;
    const start = MEMBER.lastIndex;
    const end = closingQuote(text, start, backslashes.length);
    if (end > start && !text.startsWith('[redacted: ', start)) spans.push({ start, end, reason: 'sensitive key' });
    MEMBER.lastIndex = end;
  }
}

/** The end of a string whose quotes carry `level` backslashes; the end of the text when it was truncated. */
function closingQuote(text: string, from: number, level: number): number {
  let backslashes = 0;
  for (let at = from; at < text.length; at += 1) {
    const char = text.charCodeAt(at);
    if (char === 0x5c) {
      backslashes += 1;
    } else if (char === 0x22 && (backslashes <= level || (level === 0 && backslashes % 2 === 0))) {
      return at - Math.min(backslashes, level);
    } else {
      backslashes = 0;
    }
  }
  return text.length;
}
