/** The built gateway for a script that measures it: a directory of its own, and garbage that is collected when the script asks. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Closable } from '../../../src/ports/index.ts';
import { PROJECT } from '../process/project.ts';

const PROGRAM = join(PROJECT, 'dist/src/main.js');
const COLLECT = join(PROJECT, 'test/support/process/collect-garbage.mjs');
const STEERED = join(PROJECT, 'test/support/upstreams/steered-server.mjs');

export interface MeasuredGateway extends Closable {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly child: ChildProcess;
  readonly dir: string;
}

/** `config`: of the directory that the gateway and its servers are in. */
export async function startMeasured(config: (dir: string) => object): Promise<MeasuredGateway> {
  const dir = await mkdtemp(join(tmpdir(), 'tb-measured-'));
  const file = join(dir, 'tollbridge.yaml');
  await writeFile(file, JSON.stringify(config(dir)));
  const words = ['--config', file, '--data', join(dir, 'data'), 'serve', '--port', '0', '--json'];
  const child = spawn(process.execPath, ['--import', COLLECT, PROGRAM, ...words], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const close = async () => {
    child.kill('SIGTERM');
    await ended;
    await rm(dir, { recursive: true, force: true });
  };
  try {
    const { url, token } = await readyLine(child.stdout);
    return { url, headers: { authorization: `Bearer ${token}` }, child, dir, close };
  } catch (cause) {
    await close();
    throw cause;
  }
}

/** A server that its flags steer; it takes down what it is asked. */
export function steered(journal: string, ...flags: string[]) {
  return { mcp: { command: [process.execPath, STEERED, journal, ...flags] } };
}

/** The line of JSON that `serve --json` prints once it listens. */
function readyLine(out: NodeJS.ReadableStream): Promise<{ readonly url: string; readonly token: string }> {
  return new Promise((resolve, reject) => {
    let text = '';
    out.on('data', (chunk) => {
      text += chunk;
      const [line] = /^\{"object":"gateway".*\n/m.exec(text) ?? [];
      if (line) resolve(JSON.parse(line));
    });
    out.on('end', () => reject(new Error(`the gateway ended before it listened: ${text}`)));
  });
}
