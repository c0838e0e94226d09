/**
 * A program started without a shell, in a process group of its own, and ended with all its descendants: first its stdin
 * is closed, then SIGTERM, then SIGKILL. Knows no protocol.
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { stat } from 'node:fs/promises';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { Fault } from '../../model/faults.ts';
import { childShare } from '../http/capacity.ts';
import { type Descendants, descendantsOf, MARK } from './descendants.ts';
import { minimalEnvironment } from './environment.ts';
import { guard } from './guard.ts';
import { noteChild } from './supervision.ts';

export interface ChildOptions {
  /** The program and its arguments; no shell interprets them. */
  readonly command: readonly string[];
  readonly cwd?: string;
  /** Exactly these variables; absent: the minimal environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Called with every line of stderr, cut at a maximum length. Stderr is drained in any case. */
  readonly onStderr?: (line: string) => void;
}

export interface Child {
  readonly pid: number;
  readonly stdin: Writable;
  /** May stay open after the program has exited, held by its descendants; `close` ends those too. */
  readonly stdout: Readable;
  /** Never rejects. */
  readonly exited: Promise<Exit>;
  /**
   * Resolves when no descendant is left; each step waits this long before the next. Throws a fault that names processes
   * it could not end.
   */
  close(graceMs?: number): Promise<void>;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

const GRACE_MS = 2_000;
const LONGEST_LINE = 4_096;

/** Counted per process, like the file descriptors and processes that children take. */
let running = 0;
let most: number | undefined;

/** How many children may run at once in this process, whichever part starts them. */
export function capChildren(count: number): void {
  most = count;
}

export async function startChild({ command, cwd, env, onStderr }: ChildOptions): Promise<Child> {
  const [program, ...args] = command;
  if (!program) throw new Fault('invalid_request', 'no command was given to start');
  const cap = most ?? childShare();
  if (running >= cap) {
    throw new Fault('rate_limited', `could not start ${program}: ${cap} programs run already, which is the limit here`);
  }
  running += 1;
  try {
    return await started(program, args, { command, cwd, env, onStderr });
  } catch (cause) {
    running -= 1;
    throw cause;
  }
}

async function started(
  program: string,
  args: readonly string[],
  { cwd, env, onStderr }: { [K in keyof ChildOptions]: ChildOptions[K] | undefined },
): Promise<Child> {
  const mark = randomBytes(9).toString('base64url');
  const child = spawn(program, args, {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...(env ?? minimalEnvironment()), [MARK]: mark },
    detached: true,
    ...(cwd !== undefined && { cwd }),
  });
  // Registered first: a child that could not be started has no streams, and an unhandled error event ends the process.
  const spawned = new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.on('error', (cause) => void explain(cause, program, cwd).then(reject));
  });
  spawned.catch(() => {});
  const exited = new Promise<Exit>((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })));
  if (!child.stdin || !child.stdout || !child.stderr) {
    await spawned;
    throw new Fault('upstream_unavailable', `could not start ${program}: it has no streams`);
  }
  // Writing to an exited child is no error: `exited` reports the exit.
  child.stdin.on('error', () => {});
  child.stdout.on('error', () => {});
  child.stderr.on('error', () => {});
  readErrors(child.stderr, onStderr);
  await spawned;
  const pid = child.pid as number;
  try {
    noteChild(pid);
  } catch (cause) {
    // An agent that no record names could approve its own acts, so it does not run.
    process.kill(-pid, 'SIGKILL');
    throw new Fault('unavailable', `could not start ${program}: the record of supervised programs cannot be written`, {
      cause,
    });
  }
  const stopGuard = guard(pid, mark);
  const descendants = descendantsOf(pid, mark);

  let closing: Promise<void> | undefined;
  return {
    pid,
    stdin: child.stdin,
    stdout: child.stdout,
    exited,
    close(graceMs = GRACE_MS) {
      closing ??= end(child.stdin, exited, descendants, graceMs).finally(() => {
        running -= 1;
        stopGuard();
      });
      return closing;
    },
  };
}

async function end(stdin: Writable, exited: Promise<Exit>, descendants: Descendants, graceMs: number): Promise<void> {
  stdin.end();
  await within(exited, graceMs);
  for (const name of ['SIGTERM', 'SIGKILL'] as const) {
    if ((await descendants.left()).length === 0) break;
    await descendants.signal(name);
    await gone(descendants, graceMs);
  }
  // A process that was forking while it was killed may have left a child.
  for (let again = 0; again < 5 && (await descendants.left()).length > 0; again++) {
    await descendants.signal('SIGKILL');
    await gone(descendants, graceMs);
  }
  const left = await descendants.left();
  if (left.length > 0) throw new Fault('internal', `could not end process ${left.join(', ')}`);
  await exited;
}

async function gone(descendants: Descendants, ms: number): Promise<void> {
  const until = performance.now() + ms;
  for (let wait = 2; performance.now() < until; wait = Math.min(wait * 2, 50)) {
    if ((await descendants.left()).length === 0) return;
    await pause(wait);
  }
}

async function within(exited: Promise<Exit>, ms: number): Promise<void> {
  const late = new AbortController();
  await Promise.race([exited, pause(ms, undefined, { signal: late.signal }).catch(() => {})]);
  late.abort();
}

/** The system reports a missing directory and a missing program alike; the user has to know which to fix. */
async function explain(cause: Error, program: string, cwd: string | undefined): Promise<Fault> {
  const { code } = cause as NodeJS.ErrnoException;
  const there = cwd === undefined || (await stat(cwd).catch(() => undefined))?.isDirectory();
  const why = !there
    ? `there is no directory ${cwd}`
    : code === 'ENOENT'
      ? 'there is no such command'
      : code === 'EACCES'
        ? 'it may not be run'
        : code === 'EMFILE' || code === 'ENFILE'
          ? 'no file descriptors are left: close connections, or raise the limit (ulimit -n)'
          : (code ?? 'it could not be run');
  return new Fault('upstream_unavailable', `could not start ${program}: ${why}`, { cause });
}

function readErrors(stderr: Readable, onStderr: ((line: string) => void) | undefined): void {
  if (!onStderr) {
    stderr.resume();
    return;
  }
  let line = '';
  const flush = () => {
    const text = line.trimEnd();
    line = '';
    if (text) onStderr(text);
  };
  stderr.setEncoding('utf8');
  stderr.on('data', (text: string) => {
    const [first, ...more] = text.split('\n');
    line = (line + first).slice(0, LONGEST_LINE);
    for (const next of more) {
      flush();
      line = next.slice(0, LONGEST_LINE);
    }
  });
  stderr.on('end', flush);
}
