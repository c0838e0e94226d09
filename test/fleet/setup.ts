/** A fleet as the live matrix sees a gateway: its clients come in through the balancer, so each request is served by another replica. */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { StoreLocation } from '../../src/store/index.ts';
import type { Setup } from '../matrix/backends.ts';
import { type Gateway, type Loose, overAt, PROCESSES, VERSION } from '../matrix/gateway.ts';
import { eventually } from '../support/eventually.ts';
import { type Fleet, openFleet } from '../support/fleet/fleet.ts';
import { readEvents } from '../support/oracle/oracle.ts';

export interface FleetSetup extends Setup {
  readonly fleet: Fleet;
}

const EFFECTS = {
  read_note: 'read',
  write_note: 'write',
  delete_note: 'delete',
  send_mail: 'send',
  slow_mail: 'send',
} as const;

/** A store other than the file of the data directory: how gateways find it, and how its log is read here. */
export interface FleetStore {
  readonly config: object;
  readonly env: Readonly<Record<string, string>>;
  readonly location: StoreLocation;
}

export async function openFleetSetup(count: number, store?: FleetStore): Promise<FleetSetup> {
  const fleet = await openFleet({
    count,
    ...(store && { env: store.env }),
    config: (dir) => ({
      ...(store && { store: store.config }),
      policies: [existsSync(rulesIn(dir)) ? rulesIn(dir) : writeRules(dir, [], 0)],
      tools: {
        slow: {
          mcp: {
            command: [process.execPath, join(PROCESSES, 'notes-server.mjs'), join(dir, 'journal'), 'slow'],
            trusted: true,
          },
        },
      },
      doors: {
        acp: { on_disconnect: 'continue' },
        runs: { unanswered: 'replan', stream: { linger_ms: 1 } },
        ahp: { honours: ['modify'], effects: EFFECTS, settle_ms: 0 },
      },
    }),
  });
  const near = await gatewayOf(fleet, store?.location ?? { path: join(fleet.data, 'log.db') });
  await firstWork(near);
  return {
    fleet,
    backend: 'demo',
    near,
    far: undefined,
    agent: 'demo',
    rules: near.rules,
    hands: near,
    stop: fleet.close,
  };
}

/** Clients look for the newest task, so there is one before them. */
async function firstWork(near: Gateway): Promise<void> {
  const [workspace] = await near.list('/v1/workspaces');
  const { id } = await near.post('/v1/sessions', { workspace_id: workspace.id });
  const input = { role: 'user', parts: [{ type: 'text', text: 'hello', visibility: 'public' }] };
  await overAt(near, (await near.post(`/v1/sessions/${id}/tasks`, { input })).id);
}

const rulesIn = (dir: string) => join(dir, 'rules.yaml');

/** Every set of rules is another one, so that the log says when it counts. */
function writeRules(dir: string, rules: readonly object[], version: number): string {
  const file = rulesIn(dir);
  const mark = { id: `version-${version}`, when: { tool: `no-tool-${version}` }, then: 'allow' };
  writeFileSync(`${file}.new`, `${JSON.stringify([...rules, mark])}\n`);
  renameSync(`${file}.new`, file);
  return file;
}

async function gatewayOf(fleet: Fleet, log: StoreLocation): Promise<Gateway> {
  const { dir, data, journal, balancer } = fleet;
  const token = await fleet.key('ana');
  const agentToken = await fleet.key('teller', 'agent', ['*']);
  const headers = { authorization: `Bearer ${token}`, ...VERSION };
  let read = 0;
  let version = 0;

  async function call(path: string, init: RequestInit = {}): Promise<Loose> {
    const answer = await fetch(`${balancer.url}${path}`, {
      ...init,
      headers: { ...headers, ...(init.body ? { 'content-type': 'application/json' } : {}) },
      signal: AbortSignal.timeout(20_000),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${path} was answered with ${answer.status}: ${text.slice(0, 300)}`);
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

  const loaded = async () => (await readEvents(log, ['vendor.tollbridge.policy_loaded'])).length;

  return {
    name: 'fleet',
    dir,
    url: balancer.url,
    token,
    agentToken,
    pair: token.replace(/^(tbk_[0-9a-f]+)_/, '$1:'),
    data,
    config: fleet.config,
    env: {},
    withoutDemoTools: false,
    journal: () => readFileSync(journal, 'utf8').slice(read),
    effects() {
      const fresh = readFileSync(journal, 'utf8');
      const lines = fresh.slice(read).split('\n');
      read = fresh.length;
      return lines.filter((line) => line !== '' && !line.startsWith('begun '));
    },
    async rules(rules) {
      const before = await loaded();
      version += 1;
      writeRules(dir, rules, version);
      const later = async () => {
        await pause(150);
        return (await loaded()) > before;
      };
      await eventually(later, 'the fleet to decide by new rules', { timeoutMs: 60_000 });
    },
    get: (path) => call(path),
    post: (path, body) => call(path, { method: 'POST', body: JSON.stringify(body) }),
    list,
    stop: fleet.close,
  };
}
