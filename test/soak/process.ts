/** The built gateway as a process, and what it holds: resident memory, descriptors, children. Reads /proc, so Linux only. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { gossipCommand } from '../support/mcp/gossip-server.ts';

export const PROGRAM = resolve(import.meta.dirname, '../../dist/src/main.js');
const LISTENS = /tollbridge listens on (http:\/\/\S+) {2}\(token (\S+)\)/;
const START_MS = 60_000;

export interface Held {
  readonly rssMb: number;
  readonly descriptors: number;
  readonly children: number;
}

export interface SoakedGateway {
  readonly url: string;
  readonly token: string;
  held(): Held;
  /** Ends it, and verifies all it has written. Undefined when everything is valid. */
  stop(): Promise<string | undefined>;
}

export async function startGateway(): Promise<SoakedGateway> {
  const dir = mkdtempSync(join(tmpdir(), 'tb-soak-'));
  const data = join(dir, 'data');
  const config = join(dir, 'gateway.yaml');
  const command = gossipCommand();
  const tools = { own: { mcp: { command, trusted: true } }, shared: { mcp: { command, trusted: true, share: true } } };
  const rules = [{ id: 'all', when: {}, then: 'allow' }];
  writeFileSync(config, JSON.stringify({ demo: true, default_agent: 'demo', tools, rules }));
  const child = spawn(process.execPath, [PROGRAM, 'serve', '--port', '0', '--config', config, '--data', data], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  const ended = new Promise<number | null>((done) => child.once('close', (code) => done(code)));
  const { url, token } = await listening(child);
  const pid = child.pid as number;
  return {
    url,
    token,
    held: () => ({
      rssMb: Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024,
      descriptors: readdirSync(`/proc/${pid}/fd`).length,
      children: readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).length,
    }),
    async stop() {
      child.kill('SIGTERM');
      const code = await ended;
      process.off('exit', kill);
      const trouble = code === 0 ? await verified(config, data) : `the gateway ended with ${code}`;
      rmSync(dir, { recursive: true, force: true });
      return trouble;
    },
  };
}

function listening(child: ChildProcess): Promise<{ url: string; token: string }> {
  return new Promise((done, failed) => {
    let said = '';
    const late = setTimeout(() => failed(new Error(`the gateway does not listen: ${said}`)), START_MS);
    const look = (chunk: Buffer) => {
      said = `${said}${chunk}`.slice(-10_000);
      const [, url, token] = LISTENS.exec(said) ?? [];
      if (!url || !token) return;
      clearTimeout(late);
      done({ url, token });
    };
    child.stdout?.on('data', look);
    child.stderr?.on('data', look);
    child.once('close', () => failed(new Error(`the gateway ended: ${said}`)));
  });
}

async function verified(config: string, data: string): Promise<string | undefined> {
  const child = spawn(process.execPath, [PROGRAM, 'verify', 'all', '--config', config, '--data', data]);
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      said = `${said}${chunk}`.slice(-4_000);
    });
  }
  const code = await new Promise((done) => child.once('close', done));
  return code === 0 ? undefined : `verify all ended with ${code}: ${said}`;
}
