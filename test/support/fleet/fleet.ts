/**
 * Several built gateways on one store, behind a balancer that gives each request to the next of them. The store is the SQLite file of
 * the data directory, unless the configuration names another.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { openApiKeys } from '../../../src/auth/api-keys.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { PROGRAM } from '../process/cli.ts';
import { type Balancer, openBalancer } from './balancer.ts';

export interface Replica {
  /** The first number that no other one had when it was started. */
  readonly slot: number;
  readonly url: string;
  readonly child: ChildProcess;
  /** What it wrote to standard error so far. */
  errors(): string;
  readonly ended: Promise<number>;
}

export interface Fleet {
  readonly dir: string;
  readonly data: string;
  readonly config: string;
  readonly journal: string;
  readonly balancer: Balancer;
  readonly replicas: readonly Replica[];
  /** Starts one more, and gives it requests. */
  start(): Promise<Replica>;
  /** Gives it no more requests, and asks it to stop. */
  stop(replica: Replica, signal?: NodeJS.Signals): Promise<number>;
  /** The URLs of all that were started and not forgotten. */
  known(): readonly string[];
  /** It has ended by itself, or was ended: it gets no more requests. */
  forget(replica: Replica): void;
  /** A key of a principal with these scopes. */
  key(name: string, kind?: 'person' | 'agent', scopes?: readonly string[]): Promise<string>;
  close(): Promise<void>;
}

export interface FleetOptions {
  readonly count?: number;
  /** More of the configuration, once the directory is known, of the replica in this slot. */
  readonly config?: (dir: string, slot: number) => object;
  readonly args?: readonly string[];
  readonly env?: Env | ((slot: number) => Env);
}
type Env = Readonly<Record<string, string>>;

export async function openFleet({
  count = 3,
  config = () => ({}),
  args = [],
  env = {},
}: FleetOptions = {}): Promise<Fleet> {
  const dir = mkdtempSync(join(tmpdir(), 'tb-fleet-'));
  const data = join(dir, 'data');
  const fileOf = (slot: number) => join(dir, slot === 0 ? 'gateway.yaml' : `gateway-${slot}.yaml`);
  const journal = join(dir, 'journal');
  mkdirSync(data, { mode: 0o700 });
  writeFileSync(journal, '');
  const balancer = await openBalancer();
  let replicas: Replica[] = [];
  /** Of replicas that are starting or there. */
  const slots = new Set<number>();
  const balance = () => balancer.to(replicas.map(({ url }) => url));

  function freeSlot(): number {
    for (let slot = 0; ; slot += 1) if (!slots.has(slot)) return slot;
  }

  async function start(): Promise<Replica> {
    const { npm_command: _, ...inherited } = process.env;
    const slot = freeSlot();
    slots.add(slot);
    const file = fileOf(slot);
    // Clients name the balancer, whose port is not the one that is listened on.
    const listen = { allowed_hosts: ['127.0.0.1'] };
    writeFileSync(file, JSON.stringify({ demo: true, listen, ...config(dir, slot) }));
    const command = ['--config', file, '--data', data, 'serve', '--port', '0', '--json', '--journal', journal, ...args];
    const child = spawn(process.execPath, [PROGRAM, ...command], {
      cwd: dir,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...inherited, ...(typeof env === 'function' ? env(slot) : env) },
    });
    let said = '';
    child.stderr.on('data', (chunk) => {
      said += chunk;
    });
    const ended = new Promise<number>((resolve) => child.once('close', (code) => resolve(code ?? -1)));
    const { url } = await new Promise<{ url: string }>((resolve, reject) => {
      createInterface({ input: child.stdout }).on('line', (line) => {
        if (line.startsWith('{"object":"gateway"')) resolve(JSON.parse(line));
      });
      ended.then(() => reject(new Error(`a replica did not start: ${said}`)));
    });
    const replica = { slot, url, child, ended, errors: () => said };
    replicas = [...replicas, replica];
    balance();
    return replica;
  }

  function forget(replica: Replica): void {
    replicas = replicas.filter((each) => each !== replica);
    slots.delete(replica.slot);
    balance();
  }

  async function end(replica: Replica, signal: NodeJS.Signals = 'SIGTERM'): Promise<number> {
    forget(replica);
    replica.child.kill(signal);
    const late = setTimeout(() => replica.child.kill('SIGKILL'), 20_000);
    const code = await replica.ended;
    clearTimeout(late);
    return code;
  }

  const fleet: Fleet = {
    dir,
    data,
    config: fileOf(0),
    journal,
    balancer,
    get replicas() {
      return replicas;
    },
    start,
    stop: end,
    known: () => replicas.map(({ url }) => url),
    forget,
    async key(name, kind = 'person', scopes = ['*', 'approvals:own']) {
      const { key } = await openApiKeys(data, systemClock).create({
        name,
        actor: { id: name, kind, scopes: [...scopes] },
      });
      return key;
    },
    async close() {
      await Promise.all(replicas.map((replica) => end(replica)));
      await balancer.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
  try {
    // At once, as an installation starts: they make the tables of the log together.
    const started = await Promise.allSettled(Array.from({ length: count }, start));
    for (const each of started) if (each.status === 'rejected') throw each.reason;
    return fleet;
  } catch (cause) {
    await fleet.close();
    throw cause;
  }
}
