/**
 * Paths as the file system resolves them. A path has several spellings (relative, through a link, in other letters); a
 * restricting rule matches if any of them does, an allowing one only if the resolved path matches too. Reads the disk, changes
 * nothing.
 */

import { readlinkSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, isAbsolute, join, posix, relative, win32 } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ANY, type Pattern } from '../rules/glob.ts';
import type { Disk } from './disk.ts';
import { HOLE } from './holes.ts';

export interface PathForms {
  /** Every spelling, for restricting rules. */
  readonly spellings: readonly string[];
  /** The resolved path, per possible base directory: by its text, and through links. */
  readonly leads: readonly { readonly base: string; readonly lexical: string; readonly real: string }[];
  readonly ignoresCase: boolean;
}

const WINDOWS = process.platform === 'win32';
const MAX_CHARS = 8_192;

export function pathForms(written: string, bases: readonly string[], disk: Disk): PathForms {
  const spellings = new Set<string>();
  const leads: PathForms['leads'][number][] = [];
  let ignoring = false;
  for (const text of interpretations(written)) {
    spellings.add(folded(text));
    for (const base of bases) {
      const lexical = absolute(text, base);
      const real = realOf(lexical, disk);
      leads.push({ base, lexical: folded(lexical), real: folded(real) });
      for (const path of new Set([lexical, real])) {
        spellings.add(folded(path));
        // A rule on the contents of a directory covers the directory too.
        if (!path.endsWith('/')) spellings.add(`${folded(path)}/`);
        for (const root of new Set([base, realOf(base, disk)])) {
          const inner = within(root, path);
          if (inner !== undefined) spellings.add(folded(slashed(inner)));
        }
      }
      ignoring ||= disk.ignoresCase(dirname(lexical));
    }
  }
  return { spellings: [...spellings], leads, ignoresCase: ignoring };
}

/** The path from that directory, if it leads below it. */
function within(root: string, path: string): string | undefined {
  // A path that is written out in full below the directory needs no comparison part by part.
  if (root !== '/' && path.startsWith(root) && path[root.length] === '/' && path.length > root.length + 1) {
    return path.slice(root.length + 1);
  }
  const inner = relative(root, path);
  return inner === '' || inner.startsWith('..') || isAbsolute(inner) ? undefined : inner;
}

/** The possible meanings of a text as a path: as it is, as a `file:` address, with `~` and `$HOME` expanded, with `/` for `\`. */
function interpretations(written: string): readonly string[] {
  const out = new Set<string>();
  const text = written.trim().slice(0, MAX_CHARS);
  const texts = text === written ? [text] : [text, written.slice(0, MAX_CHARS)];
  for (const one of new Set([...texts, ...asToolsRead(text)])) {
    out.add(fromHome(fromUrl(one)));
    if (/%[0-9a-f]{2}/i.test(one)) out.add(fromHome(fromUrl(decoded(one))));
  }
  for (const one of [...out]) {
    if (one.includes('\\')) out.add(one.replaceAll('\\', '/'));
    if (WINDOWS) out.add(one.replace(/[. ]+$/, '').replace(/::?\$DATA$/i, ''));
  }
  return [...out];
}

/**
 * How some tools transform a text before they open it: it ends at a zero byte, surrounding quotes are removed, a trailing `:12:3`
 * is a line and column, and characters that are invisible, or only look different, are folded.
 */
function asToolsRead(text: string): readonly string[] {
  const out: string[] = [];
  // `solid` has put the replacement character where a zero byte stood.
  const zero = text.search(/[\0\ufffd]/);
  if (zero >= 0) out.push(text.slice(0, zero));
  const quoted = /^(['"`])(.*)\1$/s.exec(text)?.[2];
  if (quoted !== undefined) out.push(quoted);
  const placed = /^(.+?)(?::\d+){1,2}$/s.exec(text)?.[1];
  if (placed !== undefined) out.push(placed);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: plain ASCII is what most paths are
  if (/[^\x00-\x7f]/.test(text)) out.push(text.replace(/\p{Cf}/gu, '').normalize('NFKC'));
  return out;
}

function fromUrl(path: string): string {
  const text = path.replace(/^[a-z][a-z0-9+.-]*\+(?=file:)/i, '');
  if (!/^file:/i.test(text)) return text;
  try {
    const url = new URL(text);
    url.host = '';
    return fileURLToPath(url);
  } catch {
    return decoded(text.replace(/^file:(?:\/\/[^/]*)?/i, ''));
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function fromHome(text: string): string {
  const [start, rest] = /^(?:~|\$HOME|\$\{HOME\}|%USERPROFILE%)(?=[/\\]|$)/i.exec(text)
    ? [homedir(), text.replace(/^(?:~|\$HOME|\$\{HOME\}|%USERPROFILE%)/i, '')]
    : ['', text];
  return start + rest;
}

function absolute(text: string, base: string): string {
  if (/^[A-Za-z]:[\\/]/.test(text)) return slashed(win32.normalize(text)).replace(/\/$/, '');
  const path = slashed(isAbsolute(text) ? join(text, '.') : join(base, text));
  return posix.normalize(path).replace(/(?<=.)\/+$/, '');
}

function slashed(path: string): string {
  return WINDOWS ? path.replaceAll('\\', '/') : path;
}

/** Composed and decomposed forms of a letter count as the same. */
export function folded(text: string): string {
  return text.normalize('NFC');
}

/** The longest existing part, with its links followed, and the rest appended. A dangling link leads to its missing target. */
export function realOf(path: string, disk: Disk, links = 0): string {
  if (path.includes(HOLE) || links > MAX_LINKS) return path;
  const before = disk.followed.get(path);
  if (before !== undefined) return before;
  const real = follow(path, disk, links);
  disk.followed.set(path, real);
  return real;
}
const MAX_LINKS = 16;

function follow(path: string, disk: Disk, links: number): string {
  let existing = path;
  const rest: string[] = [];
  for (let step = 0; step < 256; step += 1) {
    const known = step > 0 ? disk.followed.get(existing) : undefined;
    if (known !== undefined) return slashed(join(known, ...rest));
    const found = disk.look(existing);
    if (found === 'there') return slashed(join(disk.real(existing), ...rest));
    if (found === 'link') {
      const through = disk.real(existing);
      if (through !== existing) return slashed(join(through, ...rest));
      const target = join(isAbsolute(linkOf(existing)) ? '/' : dirname(existing), linkOf(existing), ...rest);
      return realOf(target, disk, links + 1);
    }
    const up = dirname(existing);
    if (up === existing) return path;
    rest.unshift(basename(existing));
    existing = up;
  }
  return path;
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return path;
  }
}

/** Makes a pattern absolute: a relative one starts at the act's directory, `~` is the home directory. */
export function patternFrom(pattern: Pattern, base: string): Pattern {
  const [first] = pattern;
  if (typeof first !== 'string') return pattern;
  const start = fromHome(first);
  if (isAbsolute(start) || /^[A-Za-z]:/.test(start)) return start === first ? pattern : [start, ...pattern.slice(1)];
  return [`${base === '/' ? '' : base}/${start.replace(/^(?:\.\/+)+/, '')}`, ...pattern.slice(1)];
}

/** The same pattern with the links in its fixed directory followed. */
export function realPattern(pattern: Pattern, disk: Disk): Pattern {
  const [first] = pattern;
  if (typeof first !== 'string' || !isAbsolute(first)) return pattern;
  const whole = pattern.length === 1;
  const cut = whole ? first.length : first.lastIndexOf('/');
  const dir = cut <= 0 ? '/' : first.slice(0, cut);
  const real = realOf(dir, disk);
  return real === dir ? pattern : [(real === '/' ? '' : real) + first.slice(cut), ...pattern.slice(1)];
}

/** A leading `*` and slash also match nothing at all: a file directly here is below any directory. */
export function withoutLead(pattern: Pattern): Pattern | undefined {
  const [first, second, ...rest] = pattern;
  if (first !== ANY || typeof second !== 'string' || !second.startsWith('/')) return undefined;
  return [second.slice(1), ...rest];
}
