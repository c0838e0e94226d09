/** A gateway of the live matrix: the built program in a process of its own, its rules as a file that is written anew for each story. */
import { type ChildProcess, spawn } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { openApiKeys } from '../../src/auth/api-keys.ts';
import { systemClock } from '../../src/core/clock.ts';
import { isTerminal } from '../../src/model/words.ts';
import { eventually } from '../support/eventually.ts';
import { readEvents } from '../support/oracle/oracle.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely
export type Loose = any;

export const PROGRAM = fileURLToPath(new URL('../../dist/src/main.js', import.meta.url));
export const PROCESSES = fileURLToPath(new URL('./processes/', import.meta.url));
export const VERSION = { 'harn-agents-protocol-version': 'agents-protocol-2026-04-25' };

export interface Gateway {
  readonly name: string;
  readonly dir: string;
  readonly url: string;
  /** The key of the person at its doors. */
  readonly token: string;
  /** The key of an agent outside. */
  readonly agentToken: string;
  /** The person's key, as the runs API takes it. */
  readonly pair: string;
  readonly data: string;
  readonly config: string;
  readonly env: Readonly<Record<string, string>>;
  /** Its agents are the demo's and its tools are not. */
  readonly withoutDemoTools: boolean;
  /** Effects since the last time, one line each. */
  effects(): readonly string[];
  /** Everything that the tools have written since the last `effects`. */
  journal(): string;
  /** From now on it decides by these; resolves when it does. */
  rules(rules: readonly object[]): Promise<void>;
  get(path: string): Promise<Loose>;
  post(path: string, body: object): Promise<Loose>;
  /** All pages of a list. */
  list(path: string): Promise<Loose[]>;
  stop(): Promise<void>;
}

export interface GatewayRequest {
  readonly name: string;
  readonly dir: string;
  readonly config: object;
  readonly rules: readonly object[];
  readonly env?: Readonly<Record<string, string>>;
  readonly withoutDemoTools?: boolean;
}

const alive = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
});

export async function startGateway(request: GatewayRequest): Promise<Gateway> {
  const { name, env = {}, withoutDemoTools = false } = request;
  const dir = join(request.dir, name);
  mkdirSync(dir, { recursive: true });
  const [data, config, rulesFile, journal] = ['data', 'gateway.yaml', 'rules.yaml', 'journal'].map((file) =>
    join(dir, file),
  ) as [string, string, string, string];
  let version = 0;
  const writeRules = (rules: readonly object[]): string => {
    version += 1;
    // Every set of rules is another one, so that the log says when it counts.
    const mark = { id: `version-${version}`, when: { tool: `no-tool-${version}` }, then: 'allow' };
    const text = `${JSON.stringify([...rules, mark])}\n`;
    writeFileSync(`${rulesFile}.new`, text);
    renameSync(`${rulesFile}.new`, rulesFile);
    return text;
  };
  writeRules(request.rules);
  writeFileSync(config, JSON.stringify({ ...request.config, policies: [rulesFile] }));
  appendFileSync(journal, '');
  const command = withoutDemoTools
    ? [join(PROCESSES, 'tools-gateway.mjs'), config, data]
    : [PROGRAM, '--config', config, '--data', data, 'serve', '--port', '0', '--json', '--journal', journal];
  const { npm_command: _, ...inherited } = process.env;
  const child = spawn(process.execPath, command, {
    cwd: dir,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...inherited, ...env },
  });
  alive.add(child);
  child.stderr.on('data', (chunk) => appendFileSync(join(dir, 'stderr'), chunk));
  const ended = new Promise<void>((resolve) => {
    child.once('close', () => {
      alive.delete(child);
      resolve();
    });
  });
  const { url } = await new Promise<{ url: string }>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line.startsWith('{"object":"gateway"')) resolve(JSON.parse(line));
    });
    ended.then(() => {
      const said = join(dir, 'stderr');
      reject(new Error(`${name} did not start: ${existsSync(said) ? readFileSync(said, 'utf8') : ''}`));
    });
  });
  // A person who may answer questions about her own work, at every door.
  const actor = { id: 'ana', kind: 'person' as const, scopes: ['*', 'approvals:own'] };
  const { key: token } = await openApiKeys(data, systemClock).create({ name: 'ana', actor });
  const agent = { id: 'teller', kind: 'agent' as const, scopes: ['*'] };
  const { key: agentToken } = await openApiKeys(data, systemClock).create({ name: 'teller', actor: agent });
  const headers = { authorization: `Bearer ${token}`, ...VERSION };
  let read = 0;

  async function call(path: string, init: RequestInit = {}): Promise<Loose> {
    const answer = await fetch(`${url}${path}`, {
      ...init,
      headers: { ...headers, ...(init.body ? { 'content-type': 'application/json' } : {}) },
      signal: AbortSignal.timeout(20_000),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${name}: ${path} was answered with ${answer.status}: ${text.slice(0, 300)}`);
    return answer.headers.get('content-type')?.startsWith('application/json') ? JSON.parse(text) : text;
  }

  async function list(path: string): Promise<Loose[]> {
    const found: Loose[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page: Loose = await call(
        `${path}${path.includes('?') ? '&' : '?'}limit=100${cursor && `&cursor=${cursor}`}`,
      );
      found.push(...page.data);
      cursor = page.page?.has_more ? page.page.next_cursor : null;
    }
    return found;
  }

  const loaded = async () => (await readEvents(data, ['vendor.tollbridge.policy_loaded'])).length;

  return {
    name,
    dir,
    url,
    token,
    agentToken,
    pair: token.replace(/^(tbk_[0-9a-f]+)_/, '$1:'),
    data,
    config,
    env,
    withoutDemoTools,
    journal: () => readFileSync(journal, 'utf8').slice(read),
    effects() {
      const fresh = readFileSync(journal, 'utf8');
      const lines = fresh.slice(read).split('\n');
      read = fresh.length;
      return lines.filter((line) => line !== '' && !line.startsWith('begun '));
    },
    async rules(rules) {
      const before = await loaded();
      writeRules(rules);
      const later = async () => {
        // Opening the log costs more than waiting for a moment.
        await pause(150);
        return (await loaded()) > before;
      };
      await eventually(later, `${name} to decide by new rules`, { timeoutMs: 60_000 });
    },
    get: (path) => call(path),
    post: (path, body) => call(path, { method: 'POST', body: JSON.stringify(body) }),
    list,
    async stop() {
      child.kill('SIGTERM');
      const late = setTimeout(() => child.kill('SIGKILL'), 10_000);
      await ended;
      clearTimeout(late);
    },
  };
}

/** The state in which a task has ended, once it has. */
export async function overAt(near: Gateway, id: string): Promise<string> {
  const look = async () => {
    const { status } = await near.get(`/v1/tasks/${id}`);
    return isTerminal(status) ? String(status) : undefined;
  };
  return await eventually(look, `${id} to be over`, { timeoutMs: 60_000 });
}
