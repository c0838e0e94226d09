/** An editor that only counts, and the two ways it reaches its agent: through a bare pump, and through us. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PLAYERS } from './players.ts';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const AGENT = [process.execPath, PLAYERS, 'agent'];

export interface Editor {
  /** Milliseconds until everything this prompt asked for has arrived. */
  prompt(chunks: number): Promise<number>;
  /** Milliseconds for a request without any effect, there and back. */
  trip(): Promise<number>;
  close(): Promise<void>;
}

export async function throughPump(): Promise<Editor> {
  return await greeted(start([PLAYERS, 'pump', ...AGENT]));
}

/** The log is on, in a directory of its own. */
export async function throughRelay(): Promise<Editor> {
  const dir = await mkdtemp(join(tmpdir(), 'tollbridge-bench-'));
  const editor = await greeted(start([here('../../src/main.js'), '--data', dir, 'acp', '--', ...AGENT]));
  return {
    ...editor,
    async close() {
      await editor.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

function start(args: readonly string[]): ChildProcess {
  return spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
}

async function greeted(child: ChildProcess): Promise<Editor> {
  let id = 0;
  let rest = '';
  const waiting = new Map<number, () => void>();
  child.stdout?.on('data', (chunk: Buffer) => {
    // Only answers are looked for; whatever else there is only has to arrive.
    const text = rest + chunk.toString('latin1');
    const end = text.lastIndexOf('\n') + 1;
    rest = text.slice(end);
    for (const found of text.slice(0, end).matchAll(/"id":(\d+)[,}]/g)) waiting.get(Number(found[1]))?.();
  });
  const ask = async (method: string, params: object): Promise<number> => {
    id += 1;
    const began = performance.now();
    const answered = new Promise<void>((resolve) => waiting.set(id, resolve));
    child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    await answered;
    return performance.now() - began;
  };
  await ask('initialize', { protocolVersion: 1 });
  await ask('session/new', { cwd: '/', mcpServers: [] });
  return {
    prompt: (chunks) => ask('session/prompt', { sessionId: 's1', prompt: [{ type: 'text', text: String(chunks) }] }),
    trip: () => ask('initialize', { protocolVersion: 1 }),
    async close() {
      child.stdin?.end();
      await once(child, 'exit');
    },
  };
}
