/**
 * A shell with a person at its keys. With tmux it is a real terminal; without, a shell behind pipes, where keys and
 * screen are streams. Either way the test only types what a person would, and only after it has seen what they would.
 */
import { type ChildProcessWithoutNullStreams, execFile, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { promisify } from 'node:util';
import { onTestFinished, vi } from 'vitest';

export interface Terminal {
  /** A command for the shell, once it has ended the one before. */
  command(line: string): Promise<void>;
  /** Keys for whatever runs, then Enter. */
  type(keys: string): Promise<void>;
  /** Everything on the screen once the pattern is there; `times` counts how often. */
  shows(pattern: RegExp, times?: number): Promise<string>;
}

const run = promisify(execFile);
const TIMEOUT = { timeout: 25_000, interval: 50 };

export const hasTmux = spawnSync('tmux', ['-V']).status === 0;

interface Where {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
}

export function openTerminal(kind: 'tmux' | 'pipes', where: Where): Promise<Terminal> {
  return kind === 'tmux' ? inTmux(where) : behindPipes(where);
}

export interface RealTerminal extends Terminal {
  /** Ctrl-C. */
  interrupt(): Promise<void>;
}

/** A server of its own under a name of its own, so that nobody else's sessions are touched. */
export async function inTmux({ cwd, env }: Where): Promise<RealTerminal> {
  const name = `tb-${process.pid}-${randomBytes(4).toString('hex')}`;
  const tmux = (...args: string[]) => run('tmux', ['-L', name, '-f', '/dev/null', ...args], { cwd, env });
  await tmux('new-session', '-d', '-s', 'test', '-x', '240', '-y', '80', 'sh');
  onTestFinished(async () => void (await tmux('kill-server').catch(() => {})));
  const screen = async () => (await tmux('capture-pane', '-p', '-J', '-S', '-', '-t', 'test')).stdout;
  const type = async (keys: string) => {
    await tmux('send-keys', '-t', 'test', '-l', keys);
    await tmux('send-keys', '-t', 'test', 'Enter');
  };
  return {
    type,
    async command(line) {
      // Keys typed ahead may be read by the program that still runs, and not by the shell they were meant for.
      await vi.waitFor(async () => {
        const last = (await screen()).trimEnd().split('\n').at(-1);
        if (!/^[#$]$/.test(last ?? '')) throw new Error(`no prompt, but: ${last}`);
      }, TIMEOUT);
      await type(line);
    },
    interrupt: async () => void (await tmux('send-keys', '-t', 'test', 'C-c')),
    shows: (pattern, times) => seen(screen, pattern, times),
  };
}

/** One shell for each command: Node leaves a pipe it has read from in a state that a shell cannot read on from. */
async function behindPipes({ cwd, env }: Where): Promise<Terminal> {
  let screen = '';
  let running: ChildProcessWithoutNullStreams | undefined;
  let done: Promise<unknown> = Promise.resolve();
  onTestFinished(() => void running?.kill('SIGKILL'));
  return {
    async command(line) {
      await done;
      const shell = spawn('sh', ['-c', `exec ${line}`], { cwd, env, stdio: 'pipe' });
      running = shell;
      shell.stdin.on('error', () => {});
      for (const stream of [shell.stdout, shell.stderr]) {
        stream.on('data', (chunk: Buffer) => {
          screen += chunk;
        });
      }
      done = once(shell, 'close');
    },
    async type(keys) {
      running?.stdin.write(`${keys}\n`);
    },
    shows: (pattern, times) => seen(async () => screen, pattern, times),
  };
}

async function seen(screen: () => Promise<string>, pattern: RegExp, times = 1): Promise<string> {
  const all = new RegExp(pattern.source, 'gm');
  return await vi.waitFor(async () => {
    const now = await screen();
    const count = [...now.matchAll(all)].length;
    if (count < times) throw new Error(`${pattern} was seen ${count} of ${times} times in:\n${now}`);
    return now;
  }, TIMEOUT);
}
