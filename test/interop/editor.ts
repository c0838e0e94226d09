/**
 * A small editor: it offers files and terminals, really does what it is asked to, and takes down each such act as it arrives
 * with the newest position of the log. A person sits in front of it who answers every question in one way.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { JsonObject } from '../../src/model/schema.ts';
import { type Contact, newestPosition } from '../support/oracle/oracle.ts';
import { createEnd, type Wire } from '../support/wire/line-end.ts';

export interface Editor {
  /** One prompt: its stop reason, or the error. */
  prompt(text: string, answer: 'allow_once' | 'reject_once'): Promise<{ stop: string; questions: number }>;
  readonly contacts: readonly Contact[];
  readonly frames: readonly Wire[];
  readonly stderr: () => string;
  /** Ends the program's input, and the program itself if it does not end by then. */
  close(): Promise<void>;
}

export interface Opened {
  readonly command: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** The log to look at when an act arrives. */
  readonly data: string;
}

const TIMEOUT = 120_000;

export async function openEditor({ command, cwd, env, data }: Opened): Promise<Editor> {
  const [program = '', ...args] = command;
  const child = spawn(program, args, { cwd, env, stdio: 'pipe', detached: true });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  child.stdin.on('error', () => {});
  const ended = once(child, 'exit').then(
    ([code, how]) => `ended (${code ?? how}): ${stderr.slice(-2_000)}`,
    (error: Error) => `did not start: ${error.message}`,
  );
  const end = createEnd(child.stdout, child.stdin);
  const contacts: Contact[] = [];
  const note = (tool: string, args: JsonObject) =>
    contacts.push({ tool, arguments: args, after: newestPosition(data) });

  end.on('fs/read_text_file', async ({ path, line = null, limit = null }) => {
    note('fs.read', { path, line, limit } as JsonObject);
    const text = await readFile(String(path), 'utf8');
    if (line === null && limit === null) return { content: text };
    const from = Math.max(0, Number(line ?? 1) - 1);
    const lines = text.split('\n').slice(from, limit === null ? undefined : from + Number(limit));
    return { content: lines.join('\n') };
  });
  end.on('fs/write_text_file', async ({ path, content }) => {
    note('fs.write', { path, content } as JsonObject);
    await mkdir(dirname(String(path)), { recursive: true });
    await writeFile(String(path), String(content));
    return {};
  });
  const terminals = openTerminals(cwd);
  end.on('terminal/create', async ({ command: line, args: words = [], cwd: where = cwd, env: more = [], ...rest }) => {
    const asked = { command: line, args: words, cwd: where, env: more } as JsonObject;
    note('terminal', asked);
    return terminals.create({ ...rest, ...asked });
  });
  end.on('terminal/output', async ({ terminalId }) => terminals.output(String(terminalId)));
  end.on('terminal/wait_for_exit', async ({ terminalId }) => terminals.wait(String(terminalId)));
  end.on('terminal/kill', async ({ terminalId }) => terminals.kill(String(terminalId)));
  end.on('terminal/release', async ({ terminalId }) => terminals.kill(String(terminalId)));

  let questions = 0;
  let says = 'reject_once';
  end.on('session/request_permission', ({ options }) => {
    questions += 1;
    const found = (options as { kind: string; optionId: string }[]).find(({ kind }) => kind === says);
    return { outcome: found ? { outcome: 'selected', optionId: found.optionId } : { outcome: 'cancelled' } };
  });

  const ask = async (method: string, params: object): Promise<Wire> => {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<string>((resolve) => {
      timer = setTimeout(() => resolve(`did not answer ${method}: ${stderr.slice(-2_000)}`), TIMEOUT);
    });
    const received = await Promise.race([end.ask(method, params), ended, late]);
    clearTimeout(timer);
    if (typeof received === 'string') throw new Error(received);
    return received;
  };
  const close = async () => {
    end.close();
    const timer = setTimeout(() => signal(child), 10_000);
    await ended;
    clearTimeout(timer);
    signal(child);
    terminals.close();
  };

  try {
    const terminal = true;
    const fs = { readTextFile: true, writeTextFile: true };
    const clientInfo = { name: 'editor', version: '1' };
    await ask('initialize', { protocolVersion: 1, clientCapabilities: { fs, terminal }, clientInfo });
    const { result, error } = await ask('session/new', { cwd, mcpServers: [] });
    if (!result) throw new Error(`no session: ${JSON.stringify(error)}`);
    const { sessionId } = result;
    return {
      contacts,
      frames: end.frames,
      stderr: () => stderr,
      async prompt(text, answer) {
        says = answer;
        const before = questions;
        const said = await ask('session/prompt', { sessionId, prompt: [{ type: 'text', text }] });
        const stop = String(said.result?.stopReason ?? `error ${JSON.stringify(said.error)}`);
        return { stop, questions: questions - before };
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The program was started as the head of a group of its own: whatever of it is left ends with it. */
function signal({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // All of them had ended.
  }
}

function openTerminals(cwd: string) {
  const open = new Map<string, { child: ChildProcess; output: string; exit: Promise<JsonObject>; over?: JsonObject }>();
  const of = (id: string) => {
    const found = open.get(id);
    if (!found) throw new Error(`there is no terminal ${id}`);
    return found;
  };
  return {
    create({ command, args, cwd: where, env }: JsonObject) {
      const words = args as string[];
      const more = Object.fromEntries(
        (env as { name: string; value: string }[]).map((each) => [each.name, each.value]),
      );
      const child = spawn(String(command), words, {
        cwd: String(where ?? cwd),
        env: { ...process.env, ...more },
        shell: words.length === 0,
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const exit = once(child, 'exit').then(
        ([exitCode, signalled]) => ({ exitCode, signal: signalled }),
        () => ({ exitCode: 127, signal: null }),
      );
      const terminal: ReturnType<typeof of> = { child, output: '', exit };
      for (const stream of [child.stdout, child.stderr]) {
        stream.on('data', (chunk: Buffer) => {
          terminal.output += String(chunk);
        });
      }
      void exit.then((over) => {
        terminal.over = over;
      });
      const terminalId = `terminal-${open.size + 1}`;
      open.set(terminalId, terminal);
      return { terminalId };
    },
    output(id: string) {
      const { output, over } = of(id);
      return { output, truncated: false, ...(over && { exitStatus: over }) };
    },
    wait: (id: string) => of(id).exit,
    kill(id: string) {
      of(id).child.kill();
      return {};
    },
    close() {
      for (const { child } of open.values()) child.kill();
    },
  };
}
