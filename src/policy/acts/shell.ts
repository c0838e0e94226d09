/**
 * Splits a shell line into the simple commands it would run, conservatively: it follows quotes, separators and substitutions, and
 * any other construct becomes a hole or makes the line `unclear`. It expands nothing and runs nothing.
 */
import { HOLE } from './holes.ts';

export interface Simple {
  /** Without quotes; a part the shell would expand is a hole. */
  readonly words: readonly string[];
}
export interface ShellLine {
  /** Including those inside substitutions. */
  readonly commands: readonly Simple[];
  /** Files that redirections name. */
  readonly redirects: readonly string[];
  /** The line writes to a file by a redirection. */
  readonly writes: boolean;
  /** Part of the line was not understood: the commands that run are not all known. */
  readonly unclear: boolean;
}

const MAX_CHARS = 65_536;
const MAX_DEPTH = 8;
const MAX_COMMANDS = 512;
const UNCLEAR: ShellLine = { commands: [], redirects: [], writes: false, unclear: true };

export function splitShell(line: string, depth = 0): ShellLine {
  if (line.length > MAX_CHARS || depth > MAX_DEPTH) return UNCLEAR;
  const reader = new Reader(line, depth);
  reader.read();
  return reader;
}

/** Characters that end a command. */
const SEPARATORS = new Set([';', '&', '|', '\n', '(', ')']);
const BLANK = new Set([' ', '\t', '\r']);
const SINKS = new Set(['/dev/null', '/dev/stdout', '/dev/stderr', '']);

class Reader implements ShellLine {
  readonly commands: Simple[] = [];
  readonly redirects: string[] = [];
  writes = false;
  unclear = false;
  #at = 0;
  #words: string[] = [];
  #word: string | undefined;
  /** Set when the next word is the target of a redirection. */
  #redirect: 'in' | 'out' | undefined;
  readonly #line: string;
  readonly #depth: number;

  constructor(line: string, depth: number) {
    this.#line = line;
    this.#depth = depth;
  }

  read(): void {
    while (this.#at < this.#line.length && !this.unclear) this.#step(this.#line[this.#at] as string);
    this.#endCommand();
  }

  #step(char: string): void {
    if (BLANK.has(char)) {
      this.#endWord();
      this.#at += 1;
    } else if (char === '<' || char === '>') this.#redirection(char);
    else if (char === '&' && this.#line[this.#at + 1] === '>') {
      this.#endWord();
      this.#at += 1;
    } else if (SEPARATORS.has(char)) {
      this.#endCommand();
      this.#at += 1;
    } else if (char === '#' && this.#word === undefined) {
      const end = this.#line.indexOf('\n', this.#at);
      this.#at = end < 0 ? this.#line.length : end;
    } else this.#piece(char);
  }

  #piece(char: string): void {
    switch (char) {
      case "'":
        this.#add(this.#until("'"));
        break;
      case '"':
        this.#quoted();
        break;
      case '\\':
        // A backslash before a line end joins the lines.
        if (this.#line[this.#at + 1] !== '\n') this.#add(this.#line[this.#at + 1] ?? '');
        this.#at += 2;
        break;
      case '$':
        this.#dollar(true);
        break;
      case '`':
        this.#backticks();
        break;
      case '*':
      case '?':
        this.#add(HOLE);
        this.#at += 1;
        break;
      case '[':
        this.#add(this.#isTest() ? '[' : HOLE);
        this.#at += 1;
        break;
      case '{':
        this.#brace();
        break;
      default:
        this.#add(char);
        this.#at += 1;
    }
  }

  /** `[` and `[[` as separate words are programs, not patterns. */
  #isTest(): boolean {
    const alone = this.#word === undefined || this.#word === '[';
    return alone && /^\[\[?[ \t]/.test(this.#line.slice(this.#at, this.#at + 3));
  }

  /** The text between here and the next such quote. */
  #until(quote: string): string {
    const end = this.#line.indexOf(quote, this.#at + 1);
    if (end < 0) {
      this.unclear = true;
      return '';
    }
    const inside = this.#line.slice(this.#at + 1, end);
    this.#at = end + 1;
    return inside;
  }

  #quoted(): void {
    this.#at += 1;
    this.#add('');
    for (; this.#at < this.#line.length; ) {
      const char = this.#line[this.#at] as string;
      if (char === '"') {
        this.#at += 1;
        return;
      }
      if (char === '\\') {
        const next = this.#line[this.#at + 1] ?? '';
        if (next !== '\n') this.#add('$`"\\'.includes(next) ? next : `\\${next}`);
        this.#at += 2;
      } else if (char === '$') this.#dollar(false);
      else if (char === '`') this.#backticks();
      else {
        this.#add(char);
        this.#at += 1;
      }
      if (this.unclear) return;
    }
    this.unclear = true;
  }

  #dollar(bare: boolean): void {
    const next = this.#line[this.#at + 1] ?? '';
    if (next === '(') this.#inside('(', ')');
    else if (next === '{') this.#inside('{', '}');
    else if (next === "'" && bare) this.#escaped();
    else if (next === '"' && bare) this.#at += 1;
    else if (/[A-Za-z0-9_@*#?$!-]/.test(next)) {
      const [name = next] = /^(?:[A-Za-z_][A-Za-z0-9_]*|.)/.exec(this.#line.slice(this.#at + 1, this.#at + 257)) ?? [];
      this.#at += 1 + name.length;
      this.#add(HOLE);
    } else {
      this.#add('$');
      this.#at += 1;
    }
  }

  /** `$'…'`: the escapes that stand for one character; others are a hole. */
  #escaped(): void {
    this.#at += 1;
    const start = this.#at + 1;
    let end = start;
    while (end < this.#line.length && this.#line[end] !== "'") end += this.#line[end] === '\\' ? 2 : 1;
    if (end >= this.#line.length) {
      this.unclear = true;
      return;
    }
    this.#at = end + 1;
    this.#add(this.#line.slice(start, end).replaceAll(ESCAPE, escapedCharacter));
  }

  /** A substitution: its commands are read too, and its result is a hole. */
  #inside(open: string, close: string): void {
    const start = this.#at + 2;
    let level = 1;
    let end = start;
    for (; end < this.#line.length && level > 0; end += 1) {
      const char = this.#line[end];
      if (char === '\\') end += 1;
      else if (char === "'" && open === '(') {
        const shut = this.#line.indexOf("'", end + 1);
        end = shut < 0 ? this.#line.length : shut;
      } else if (char === open) level += 1;
      else if (char === close) level -= 1;
    }
    if (level > 0) {
      this.unclear = true;
      return;
    }
    this.#at = end;
    this.#nested(this.#line.slice(start, end - 1), open === '{');
    this.#add(HOLE);
  }

  #backticks(): void {
    let end = this.#at + 1;
    while (end < this.#line.length && this.#line[end] !== '`') end += this.#line[end] === '\\' ? 2 : 1;
    if (end >= this.#line.length) {
      this.unclear = true;
      return;
    }
    const inside = this.#line.slice(this.#at + 1, end).replaceAll(/\\([`$\\])/g, '$1');
    this.#at = end + 1;
    this.#nested(inside, false);
    this.#add(HOLE);
  }

  /** Inside `${…}` only substitutions run; the rest is not a command. */
  #nested(text: string, expansion: boolean): void {
    if (expansion && !text.includes('`') && !text.includes('$(')) return;
    const inner = splitShell(text, this.#depth + 1);
    this.commands.push(...inner.commands);
    this.redirects.push(...inner.redirects);
    this.writes ||= inner.writes;
    this.unclear ||= inner.unclear || this.commands.length > MAX_COMMANDS;
  }

  /** `{a,b}` expands to several words: all of it is a hole. A brace by itself opens a group and is a word. */
  #brace(): void {
    const rest = this.#line.slice(this.#at, this.#at + 1024);
    const [expansion] = /^\{[^\s{}]*(?:,|\.\.)[^\s{}]*\}/.exec(rest) ?? [];
    this.#add(expansion ? HOLE : '{');
    this.#at += expansion?.length ?? 1;
  }

  #redirection(char: string): void {
    // A number right before it names the stream, and is not a word.
    if (this.#word !== undefined && /^\d+$/.test(this.#word)) this.#word = undefined;
    this.#endWord();
    if (this.#line[this.#at + 1] === '(') {
      this.#inside('(', ')');
      return;
    }
    const [sign = char] = /^(?:<<<|<<-?|<>|<&|<|>>|>&|>\||>)/.exec(this.#line.slice(this.#at, this.#at + 3)) ?? [];
    this.#at += sign.length;
    this.#redirect = sign.startsWith('>') || sign === '<>' ? 'out' : 'in';
  }

  #add(text: string): void {
    this.#word = (this.#word ?? '') + text;
  }

  #endWord(): void {
    const word = this.#word;
    if (word === undefined) return;
    this.#word = undefined;
    if (!this.#redirect) {
      this.#words.push(word);
      return;
    }
    const stream = /^(?:\d+|-)$/.test(word);
    if (!stream) this.redirects.push(word);
    if (this.#redirect === 'out' && !stream && !SINKS.has(word)) this.writes = true;
    this.#redirect = undefined;
  }

  #endCommand(): void {
    this.#endWord();
    this.#redirect = undefined;
    if (this.#words.length === 0) return;
    this.commands.push({ words: this.#words });
    this.#words = [];
    if (this.commands.length > MAX_COMMANDS) this.unclear = true;
  }
}

const ESCAPE = /\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|([\s\S]))/g;
const SINGLE = new Map([
  ['n', '\n'],
  ['t', '\t'],
  ['r', '\r'],
  ['\\', '\\'],
  ["'", "'"],
  ['"', '"'],
  ['?', '?'],
  ['e', '\u001b'],
  ['E', '\u001b'],
  ['a', '\u0007'],
  ['b', '\b'],
  ['f', '\f'],
  ['v', '\v'],
]);
function escapedCharacter(_: string, x?: string, u?: string, long?: string, octal?: string, single?: string): string {
  const code = x ?? u ?? long;
  const point =
    code !== undefined ? Number.parseInt(code, 16) : octal !== undefined ? Number.parseInt(octal, 8) : undefined;
  if (point !== undefined) return point > 0 && point <= 0x10ffff ? String.fromCodePoint(point) : HOLE;
  return SINGLE.get(single ?? '') ?? HOLE;
}
