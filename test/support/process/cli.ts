/**
 * Commands as they are typed. `typed` runs one in this process and keeps what it says; `program` starts the built program,
 * for what only a process can show: signals, pipes, exit codes of the whole. Logs to look into are made by the demo's agent.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { onTestFinished, vi } from 'vitest';
import { printError } from '../../../src/cli/output/error-output.ts';
import { createDemoAgent } from '../../../src/demo/agent.ts';
import { createDemoTools } from '../../../src/demo/tools.ts';
import type { Actor } from '../../../src/model/actions.ts';
import type { AskOpenedPayload } from '../../../src/model/payloads.ts';
import { openCoreRuntime } from '../../../src/runtime/assemble.ts';
import { FIRST_RULES } from '../../../src/runtime/config/config.ts';

/** Another build than the one beside the sources may be named, to try it out. */
export const PROGRAM = resolve(
  process.env.TOLLBRIDGE_BUILD ?? resolve(import.meta.dirname, '../../../dist'),
  'src/main.js',
);

export interface Said {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export async function aDirectory(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'tb-cli-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true, maxRetries: 3 }));
  return dir;
}

/** A command of src/cli, ended as the program would end it. */
export async function typed(command: () => Promise<unknown>): Promise<Said> {
  const said = { out: '', err: '' };
  const keep = (name: 'out' | 'err') => (chunk: unknown) => {
    said[name] += String(chunk);
    return true;
  };
  const out = vi.spyOn(process.stdout, 'write').mockImplementation(keep('out'));
  const err = vi.spyOn(process.stderr, 'write').mockImplementation(keep('err'));
  try {
    const code = await command().catch(printError);
    return { code: typeof code === 'number' ? code : 0, ...said };
  } finally {
    out.mockRestore();
    err.mockRestore();
  }
}

export interface Started {
  readonly child: ChildProcessWithoutNullStreams;
  /** Resolves with the match once the output has it; fails when the program ends without. */
  says(pattern: RegExp): Promise<RegExpExecArray>;
  readonly ended: Promise<Said>;
  /** Asks it to end, and kills it when it does not. */
  stop(): Promise<Said>;
}

export interface StartOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Commands that come first, such as `ulimit -n 64`. */
  readonly shell?: string;
}

/** Ends with the test, if not before. */
export function program(args: readonly string[], options: StartOptions = {}): Started {
  const started = startProgram(args, options);
  onTestFinished(() => {
    started.child.kill('SIGKILL');
  });
  return started;
}

/** For hooks, which are no part of a test: what starts it stops it. */
export function startProgram(args: readonly string[], options: StartOptions = {}): Started {
  const { npm_command: _, ...env } = process.env;
  const command = [process.execPath, PROGRAM, ...args];
  const [file = '', ...rest] = options.shell
    ? ['/bin/sh', '-c', `${options.shell}; exec "$0" "$@"`, ...command]
    : command;
  const child = spawn(file, rest, {
    stdio: 'pipe',
    env: { ...env, ...options.env },
    ...(options.cwd && { cwd: options.cwd }),
  });
  const said = { out: '', err: '' };
  const waiting = new Set<() => void>();
  const keep = (name: 'out' | 'err') => (chunk: Buffer) => {
    said[name] += chunk;
    for (const look of waiting) look();
  };
  child.stdout.on('data', keep('out'));
  child.stderr.on('data', keep('err'));
  child.stdin.on('error', () => {}); // one that has ended reads nothing
  let over = false;
  const ended = new Promise<Said>((resolve) => {
    child.once('close', (code, signal) => {
      over = true;
      for (const look of waiting) look();
      resolve({ code: code ?? (signal ? -1 : 0), ...said });
    });
  });
  return {
    child,
    ended,
    async stop() {
      child.kill('SIGTERM');
      const late = setTimeout(() => child.kill('SIGKILL'), 10_000);
      const said = await ended;
      clearTimeout(late);
      return said;
    },
    says: (pattern) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const match = pattern.exec(said.out + said.err);
          if (!match && !over) return;
          waiting.delete(look);
          if (match) resolve(match);
          else reject(new Error(`ended without ${pattern}:\n${said.out}${said.err}`));
        };
        waiting.add(look);
        look();
      }),
  };
}

export interface StartedGateway extends Started {
  readonly url: string;
  /** The token it prints. */
  readonly token: string;
}

/** `serve` on a free port, once it says where it listens; fails when it ends without. `start`: who ends it. */
export async function startGateway(
  args: readonly string[],
  { start = program, ...options }: StartOptions & { readonly start?: typeof program } = {},
): Promise<StartedGateway> {
  const started = start([...args, 'serve', '--port', '0', '--json'], options);
  const [line] = await started.says(/^\{"object":"gateway".*\n/m);
  const { url, token } = JSON.parse(line) as { url: string; token: string };
  return { ...started, url, token };
}

export async function ran(args: readonly string[], input = '', options?: StartOptions): Promise<Said> {
  const { child, ended } = program(args, options);
  child.stdin.end(input);
  return await ended;
}

/** A directory to work in, with a command called tollbridge, as npm would install it. */
export async function aShell(): Promise<{ readonly cwd: string; readonly env: Record<string, string | undefined> }> {
  const cwd = await aDirectory();
  await mkdir(join(cwd, 'bin'));
  const script = `#!/bin/sh\nexec '${process.execPath}' '${PROGRAM}' "$@"\n`;
  await writeFile(join(cwd, 'bin', 'tollbridge'), script, { mode: 0o755 });
  const { npm_command: _, TMUX: __, XDG_CONFIG_HOME: ___, ...rest } = process.env;
  return {
    cwd,
    env: { ...rest, PATH: `${join(cwd, 'bin')}:${process.env.PATH}`, HOME: cwd, TMPDIR: cwd, TERM: 'xterm' },
  };
}

const ANA: Actor = { id: 'local:ana', kind: 'person', scopes: ['*'], door: 'cli', interactive: true };

export interface DemoLog {
  readonly dir: string;
  /** One for each text, in order. */
  readonly tasks: readonly string[];
}

/** A log with one task for each text; every question in it is answered the same way, or left open. */
export async function aLog(
  texts: readonly string[],
  {
    approve = true,
    rules = FIRST_RULES,
    at,
    apart = false,
    messages = false,
  }: { approve?: boolean | 'leave open'; rules?: string; at?: string; apart?: boolean; messages?: boolean } = {},
): Promise<DemoLog> {
  const dir = at ?? (await aDirectory());
  const runtime = await openCoreRuntime({
    dataDir: dir,
    policy: { load: async () => ({ rules, files: [] }) },
    backends: [createDemoAgent({ pause: async () => {} })],
    tools: [createDemoTools()],
  });
  const { bridge } = runtime;
  const tasks: string[] = [];
  try {
    await runtime.start();
    const workspace = {
      object: 'workspace' as const,
      id: 'workspace_1',
      body: { name: 'one', root: 'tollbridge://one' },
    };
    await bridge.submit({ kind: 'resource.create', actor: ANA, body: workspace });
    const body = { workspace_id: 'workspace_1' };
    const begin = () => bridge.submit({ kind: 'session.create', actor: ANA, body });
    let session = await begin();
    for (const text of texts) {
      // In one session they come one after the other, and the first that waits holds up the rest.
      if (apart) session = await begin();
      const message = { role: 'user', parts: [{ type: 'text', text, visibility: 'public' }] };
      const input = { session_id: session.resource.id, input: messages ? message : { text } };
      const { resource } = await bridge.submit({ kind: 'task.submit', actor: ANA, body: input });
      tasks.push(resource.id);
      const stream = { of: 'task', id: resource.id } as const;
      for await (const event of bridge.follow(ANA, { stream }, AbortSignal.timeout(20_000))) {
        if (event.event === 'vendor.tollbridge.ask_opened') {
          if (approve === 'leave open') break;
          const { ask } = event.payload as unknown as AskOpenedPayload;
          await bridge.submit({ kind: 'ask.answer', actor: ANA, body: { ask_id: ask.id, approved: approve } });
        }
        if (/^task\.(completed|failed|canceled)$/.test(event.event)) break;
      }
    }
  } finally {
    await runtime.close();
  }
  return { dir, tasks };
}
