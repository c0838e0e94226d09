/** A gateway as the stories see it: its native door with a person's key, the journal of its tools, and its rules in a file. */
import { randomUUID } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { isTerminal } from '../../src/model/words.ts';
import type { StoreLocation } from '../../src/store/index.ts';
import { eventually } from '../support/eventually.ts';
import { readEvents } from '../support/oracle/oracle.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely
export type Loose = any;

export const VERSION = { 'harn-agents-protocol-version': 'agents-protocol-2026-04-25' };

/** Where a gateway is and who comes in there. */
interface Address {
  readonly name: string;
  readonly dir: string;
  readonly url: string;
  /** The key of the person at its doors. */
  readonly token: string;
  /** The key of an agent outside. */
  readonly agentToken: string;
  readonly data: string;
  readonly config: string;
  readonly env: Readonly<Record<string, string>>;
  /** Its agents are the demo's and its tools are not. */
  readonly withoutDemoTools: boolean;
  stop(): Promise<void>;
}

export interface Gateway extends Address {
  /** The person's key, as the runs API takes it. */
  readonly pair: string;
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
}

/** The file with the rules of the gateway in this directory. */
export const rulesIn = (dir: string) => join(dir, 'rules.yaml');

export function writeRules(dir: string, rules: readonly object[]): string {
  const path = rulesIn(dir);
  // Every set of rules is another one, so that the log says when it counts.
  const version = randomUUID();
  const mark = { id: `version-${version}`, when: { tool: `no-tool-${version}` }, then: 'allow' };
  writeFileSync(`${path}.new`, `${JSON.stringify([...rules, mark])}\n`);
  renameSync(`${path}.new`, path);
  return path;
}

/** `journal`: the file that gets a line for each effect. `log`: where its log is, if not in its data directory. */
export function clientOf(address: Address, journal: string, log?: StoreLocation): Gateway {
  const { name, dir, url, token, data } = address;
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

  const loaded = async () => (await readEvents(log ?? data, ['vendor.tollbridge.policy_loaded'])).length;

  return {
    ...address,
    pair: token.replace(/^(tbk_[0-9a-f]+)_/, '$1:'),
    journal: () => readFileSync(journal, 'utf8').slice(read),
    effects() {
      const fresh = readFileSync(journal, 'utf8');
      const lines = fresh.slice(read).split('\n');
      read = fresh.length;
      return lines.filter((line) => line !== '' && !line.startsWith('begun '));
    },
    async rules(rules) {
      const before = await loaded();
      writeRules(dir, rules);
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
