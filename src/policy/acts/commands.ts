/**
 * The commands a command line would run, in the forms rules are written in: every simple command, and the commands passed to
 * programs that run others.
 */
import { HOLE } from './holes.ts';
import { splitShell } from './shell.ts';

export interface CommandForms {
  /** Each simple command as written: the line is allowed only if all of them are. */
  readonly simple: readonly SimpleForm[];
  /** The simple commands and every other spelling of a part of the line: one match is enough to restrict. */
  readonly spellings: readonly string[];
  /** Words that may be files. */
  readonly words: readonly string[];
  /** The line cannot be allowed by its commands alone: it also writes a file, or was not fully understood. */
  readonly more: boolean;
}

export interface SimpleForm {
  /** Its words, joined by single spaces. */
  readonly text: string;
  /** The commands of a `sh -c` that does nothing else: allowed by its own text, or by these. */
  readonly inside?: CommandForms;
}

/** Programs that run their arguments: any tail of their words may be the command. */
const RUNNERS = new Set([
  ...[
    'env',
    'sudo',
    'doas',
    'nohup',
    'time',
    'nice',
    'ionice',
    'stdbuf',
    'command',
    'builtin',
    'exec',
    'xargs',
    'timeout',
  ],
  ...[
    'setsid',
    'chroot',
    'busybox',
    'toybox',
    'find',
    'fd',
    'parallel',
    'watch',
    'strace',
    'ltrace',
    'gdb',
    'unshare',
    'nsenter',
  ],
  ...[
    'script',
    'flock',
    'su',
    'runuser',
    'ssh',
    'docker',
    'podman',
    'kubectl',
    'systemd-run',
    'coproc',
    'if',
    'then',
    'else',
  ],
  ...[
    'elif',
    'do',
    'while',
    'until',
    '!',
    '{',
    'trap',
    'function',
    'caffeinate',
    'winpty',
    'start',
    'npx',
    'make',
    'proxychains',
  ],
]);
const SHELLS = new Set([
  'sh',
  'bash',
  'zsh',
  'dash',
  'ksh',
  'mksh',
  'ash',
  'fish',
  'csh',
  'tcsh',
  'rbash',
  'su',
  'script',
]);
const WINDOWS_SHELLS = new Set(['cmd', 'powershell', 'pwsh']);
/** Programs that run a text in a language of their own: such a text can run anything. */
const INTERPRETERS = /^(?:python[\d.]*|perl|ruby|node|deno|bun|php|lua|tclsh|osascript)$/;
const PROGRAM_TEXT = /^(?:-[A-Za-z]*[ceE]|--eval|--exec|--print|-p|-r|eval)$/;
const AWK = /^(?:awk|gawk|mawk|nawk)$/;
/** Platforms where program names are case-insensitive. */
const ANY_CASE = process.platform === 'darwin' || process.platform === 'win32';
const MAX_DEPTH = 5;

export function commandForms(line: string): CommandForms {
  const collected = new Forms();
  collected.line(line, 0);
  const spellings = new Set([line.trim(), line.trim().replaceAll(/\s+/g, ' '), ...collected.spellings]);
  return { simple: collected.simple, spellings: [...spellings], words: [...collected.words], more: collected.more };
}

class Forms {
  readonly simple: SimpleForm[] = [];
  readonly spellings = new Set<string>();
  readonly words = new Set<string>();
  more = false;

  line(text: string, depth: number): void {
    const { commands, redirects, writes, unclear } = splitShell(text);
    for (const word of redirects) this.words.add(word);
    this.more ||= writes || unclear;
    if (unclear || depth > MAX_DEPTH) {
      this.spellings.add(HOLE);
      this.more = true;
    }
    for (const { words } of commands) {
      if (depth === 0) this.simple.push(simpleForm(words));
      this.#command(words, depth);
    }
  }

  #command(words: readonly string[], depth: number): void {
    this.spellings.add(words.join(' '));
    const start = words.findIndex((word) => !/^[A-Za-z_][A-Za-z0-9_]*\+?=/.test(word));
    for (const word of words.slice(0, start < 0 ? words.length : start)) this.#file(word);
    if (start < 0) return;
    const rest = words.slice(start);
    const [first = '', ...args] = rest;
    const program = nameOf(first);
    const named = [program, ...args];
    this.spellings.add(rest.join(' '));
    this.spellings.add(named.join(' '));
    if (ANY_CASE) this.spellings.add([program.toLowerCase(), ...args].join(' '));
    for (const word of args) this.#file(word);
    if (depth > MAX_DEPTH) {
      this.spellings.add(HOLE);
      return;
    }
    this.#runs(program.toLowerCase(), args, depth);
  }

  /** The commands that the program runs in turn. */
  #runs(program: string, args: readonly string[], depth: number): void {
    if (program === 'eval') this.line(args.join(' '), depth + 1);
    if (SHELLS.has(program)) this.#shell(args, depth);
    if (WINDOWS_SHELLS.has(program)) {
      const at = args.findIndex((word) => /^(?:\/[ck]|-c(?:ommand)?|-e(?:nc.*)?)$/i.test(word));
      if (at >= 0) this.line(args.slice(at + 1).join(' '), depth + 1);
      if (at < 0 || /^-e/i.test(args[at] ?? '')) this.spellings.add(HOLE);
    }
    if (program === 'alias' || (INTERPRETERS.test(program) && bringsText(args))) this.spellings.add(HOLE);
    if (AWK.test(program) && args.some((word) => /system|getline|\|/.test(word))) this.spellings.add(HOLE);
    if (!RUNNERS.has(program)) return;
    for (const [at, word] of args.entries()) {
      const tail = args.slice(at);
      if (/\s/.test(word)) this.line(word, depth + 1);
      // A runner inside a runner is followed once, from its own position.
      if (at < MAX_TAILS) this.#tail(tail, depth);
    }
  }

  #tail(tail: readonly string[], depth: number): void {
    const [first = '', ...args] = tail;
    const program = nameOf(first);
    this.spellings.add(tail.join(' '));
    this.spellings.add([program, ...args].join(' '));
    const name = program.toLowerCase();
    if (name === 'eval' || SHELLS.has(name) || WINDOWS_SHELLS.has(name) || INTERPRETERS.test(name)) {
      this.#runs(name, args, depth + 1);
    }
  }

  /** `-c` may be combined with other letters, and its text is the next word that is not an option. */
  #shell(args: readonly string[], depth: number): void {
    const at = args.findIndex((word) => /^-[A-Za-z]*c[A-Za-z]*$/.test(word) || word === '--command');
    if (at >= 0) {
      const text = args.slice(at + 1).find((word) => !/^[-+]/.test(word));
      if (text === undefined) this.spellings.add(HOLE);
      else if (text.includes(HOLE)) {
        this.spellings.add(HOLE);
        this.line(text.replaceAll(HOLE, ' '), depth + 1);
      } else this.line(text, depth + 1);
      return;
    }
    // Without a script a shell runs its standard input.
    if (!args.some((word) => !/^[-+]/.test(word)) || args.includes('-s')) this.spellings.add(HOLE);
  }

  /** An option may carry a file after its `=`, or right after its letter. */
  #file(word: string): void {
    if (word === '' || this.words.size > MAX_WORDS) return;
    const equals = word.indexOf('=');
    if (equals >= 0) this.#file(word.slice(equals + 1));
    if (word.startsWith('@')) this.#file(word.slice(1));
    if (!word.startsWith('-')) this.words.add(word);
    else if (/^-[A-Za-z][./~]/.test(word)) this.words.add(word.slice(2));
  }
}

/** True for a program text before any script is named; without a script the text is read from elsewhere. */
function bringsText(args: readonly string[]): boolean {
  const script = args.findIndex((word) => !word.startsWith('-') && word !== 'eval');
  return script < 0
    ? !args.some((word) => /^(?:-V|-v|--version|-h|--help)$/.test(word))
    : args.slice(0, script).some((word) => PROGRAM_TEXT.test(word));
}

const MAX_TAILS = 64;
const MAX_WORDS = 1_000;

/** Agents put a shell in front of every command; that alone changes nothing about the command. */
function simpleForm(words: readonly string[]): SimpleForm {
  const [shell = '', option = '', line = ''] = words;
  const wrapped =
    words.length === 3 && /^(?:\/(?:usr\/)?bin\/)?(?:ba|z|da)?sh$/.test(shell) && /^-[li]*c$/.test(option);
  const text = words.join(' ');
  return wrapped && !line.includes(HOLE) ? { text, inside: commandForms(line) } : { text };
}

/** `/bin/rm` and `rm.exe` are `rm`. */
function nameOf(word: string): string {
  const name = word.slice(Math.max(word.lastIndexOf('/'), word.lastIndexOf('\\')) + 1);
  return name.replace(/\.(?:exe|cmd|bat|com)$/i, '') || word;
}

/** An argument list as one line: words a shell would take apart are quoted. */
export function joinArgv(argv: readonly string[]): string {
  return argv.map((word) => (/^[\w@%+=:,./~-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)).join(' ');
}
