/** A gateway of the live matrix: the built program in a process of its own, its rules as a file that is written anew for each story. */
import { type ChildProcess, spawn } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { openApiKeys } from '../../src/auth/api-keys.ts';
import { systemClock } from '../../src/core/clock.ts';
import { clientOf, type Gateway, writeRules } from './gateway-client.ts';

export const PROGRAM = fileURLToPath(new URL('../../dist/src/main.js', import.meta.url));
export const PROCESSES = fileURLToPath(new URL('./processes/', import.meta.url));

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
  const [data, config, journal] = ['data', 'gateway.yaml', 'journal'].map((file) => join(dir, file)) as [
    string,
    string,
    string,
  ];
  writeFileSync(config, JSON.stringify({ ...request.config, policies: [writeRules(dir, request.rules)] }));
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
  const address = {
    ...{ name, dir, url, token, agentToken, data, config, env, withoutDemoTools },
    async stop() {
      child.kill('SIGTERM');
      const late = setTimeout(() => child.kill('SIGKILL'), 10_000);
      await ended;
      clearTimeout(late);
    },
  };
  return clientOf(address, journal);
}
