/** A gateway with an agent of the Agent Client Protocol in it, as a real process, and what became of that process. */
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { onTestFinished } from 'vitest';
import { acpBackend } from '../../../adapters/acp/client/backend.ts';
import type { AcpBackendConfig } from '../../../adapters/acp/config.ts';
import { Fault } from '../../../src/model/faults.ts';
import type { Task } from '../../../src/model/resources.ts';
import type { AgentBackend, Logger } from '../../../src/ports/index.ts';
import {
  openTestGateway,
  type Room,
  says,
  type TestGateway,
  type TestGatewayOptions,
} from '../gateway/test-gateway.ts';

const AGENT = fileURLToPath(new URL('./agent.mjs', import.meta.url));

export interface AgentGateway {
  readonly t: TestGateway;
  readonly room: Room;
  readonly backend: AgentBackend;
  /** The directory the agent works in. */
  readonly dir: string;
  /** What the agent noted: `pid 7`, `prompt [...]`, `answer {...}`. */
  notes(word?: string): string[];
  /** Gives it these steps, or these words. */
  task(steps: readonly object[] | string): Promise<Task>;
  /** The same, to its end. */
  run(steps: readonly object[] | string): Promise<Task>;
  /** Of all processes the agent noted, those that still run. */
  alive(): number[];
  readonly warned: string[];
}

export interface AgentGatewayOptions extends TestGatewayOptions {
  readonly agent?: object;
  readonly config?: Partial<AcpBackendConfig>;
  readonly secrets?: Readonly<Record<string, string>>;
}

export async function openAgentGateway(options: AgentGatewayOptions = {}): Promise<AgentGateway> {
  const { agent = {}, config = {}, secrets = {}, ...runtime } = options;
  const dir = await mkdtemp(join(tmpdir(), 'tollbridge-acp-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const journal = join(dir, '.journal');
  const warned: string[] = [];
  const log: Logger = {
    info() {},
    warn: (_, message) => warned.push(message),
    error: (_, message) => warned.push(message),
  };
  let count = 0;
  const backend = acpBackend(
    'scripted',
    { command: [process.execPath, AGENT, JSON.stringify({ journal, ...agent })], ...config },
    {
      log,
      clock: { now: () => '2026-01-01T00:00:00.000Z' },
      ids: { next: (prefix) => `${prefix}_b${++count}` },
      secret: async (name) => {
        const value = secrets[name];
        if (value === undefined) throw new Fault('not_found', `no secret ${name}`);
        return value;
      },
    },
  );
  onTestFinished(() => backend.close?.());
  const t = await openTestGateway({ agents: [backend], settings: { graceMs: 5_000 }, ...runtime });
  const room = await t.room({ workspace: { root: pathToFileURL(dir).href } });
  const notes = (word?: string) => {
    const all = existsSync(journal) ? readFileSync(journal, 'utf8').split('\n').filter(Boolean) : [];
    return word ? all.filter((line) => line.startsWith(`${word} `)).map((line) => line.slice(word.length + 1)) : all;
  };
  const task = (steps: readonly object[] | string) =>
    room.task({ input: says(typeof steps === 'string' ? steps : JSON.stringify(steps)) });
  return {
    t,
    room,
    backend,
    dir,
    notes,
    task,
    run: async (steps) => await t.until((await task(steps)).id),
    alive: () => notes('pid').map(Number).filter(isAlive),
    warned,
  };
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/^State:\s+Z/m.test(existsSync(`/proc/${pid}/status`) ? readFileSync(`/proc/${pid}/status`, 'utf8') : '');
  } catch {
    return false;
  }
}
