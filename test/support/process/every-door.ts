/** A built gateway as it is served, keys as the command makes them, and one way to speak at every door of it. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { event } from '../ahp/gateway.ts';
import { PROGRAM, startGateway, startProgram } from './cli.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely
export type Body = any;
export interface Received {
  readonly status: number;
  readonly body: Body;
}

export const DOORS = ['harn', 'a2a', 'mcp', 'ahp', 'runs', 'acp'] as const;
export type Door = (typeof DOORS)[number];

const VERSION = { 'harn-agents-protocol-version': 'agents-protocol-2026-04-25' };
const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};

export interface Served {
  readonly url: string;
  readonly token: string;
  readonly dir: string;
  readonly data: string;
  /** A key, as `keys create NAME ...` shows it. */
  key(name: string, ...options: string[]): Promise<string>;
  rest(key: string, method: string, path: string, body?: object, more?: Record<string, string>): Promise<Received>;
  a2a(key: string, method: string, params: object, version?: string): Promise<Received>;
  mcp(key: string, method: string, params: object, name?: string): Promise<Received>;
  ahp(key: string, type: string, payload: object, session?: string): Promise<Received>;
  runs(key: string, method: string, path: string, body?: object): Promise<Received>;
  acp(key: string): Promise<Received>;
  /** The first thing anyone would say at this door. */
  greet(door: Door, key: string): Promise<Received>;
  alive(): boolean;
  close(): Promise<void>;
}

export async function serve(): Promise<Served> {
  const dir = mkdtempSync(join(tmpdir(), 'tb-identity-'));
  const data = join(dir, 'data');
  const { child, url, token, stop } = await startGateway(['--data', data], { cwd: dir, start: startProgram });

  const ask = (path: string, init: Init) => exchange(`${url}${path}`, init);
  const json = (key: string, more: Record<string, string> = {}) => ({
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    ...more,
  });

  const served: Served = {
    url,
    token,
    dir,
    data,
    async key(name, ...options) {
      const { code, out, err } = await command(['--data', data, 'keys', 'create', name, ...options, '--json'], {
        cwd: dir,
      });
      if (code !== 0) throw new Error(err);
      return (JSON.parse(out) as { key: string }).key;
    },
    rest: (key, method, path, body, more) =>
      ask(path, {
        method,
        headers: { ...json(key), ...VERSION, ...more },
        ...(body && { body: JSON.stringify(body) }),
      }),
    a2a: (key, method, params, version = '1.0') =>
      ask('/a2a/demo', {
        method: 'POST',
        headers: json(key, { 'a2a-version': version }),
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      }),
    mcp: (key, method, params, name) =>
      ask('/mcp', {
        method: 'POST',
        headers: json(key, {
          accept: 'application/json, text/event-stream',
          'mcp-protocol-version': '2026-07-28',
          'mcp-method': method,
          ...(name && { 'mcp-name': name }),
        }),
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: META } }),
      }),
    ahp: (key, type, payload, session_id = 's') =>
      ask('/ahp', {
        method: 'POST',
        headers: json(key),
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          ...(type === 'ahp/query'
            ? { method: 'ahp/query', params: payload }
            : { method: 'ahp/event', params: event(type, payload, { session_id }) }),
        }),
      }),
    runs: (key, method, path, body) =>
      ask(path, {
        method,
        headers: {
          ...json(key),
          authorization: `Bearer ${pairOf(key)}`,
          'idempotency-key': `k${Math.random().toString(36).slice(2)}`,
        },
        ...(body && { body: JSON.stringify(body) }),
      }),
    acp: (key) =>
      ask('/acp', {
        method: 'POST',
        headers: json(key),
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: 'initialize',
          params: { protocolVersion: 1, clientCapabilities: {} },
        }),
      }),
    greet(door, key) {
      switch (door) {
        case 'harn':
          return served.rest(key, 'GET', '/v1/permission-requests');
        case 'a2a':
          return served.a2a(key, 'ListTasks', {});
        case 'mcp':
          return served.mcp(key, 'tools/list', {});
        case 'ahp':
          return served.ahp(key, 'pre_action', { tool: 'read_file', arguments: { path: 'a' } });
        case 'runs':
          return served.runs(key, 'GET', '/v1/runs/run_none');
        case 'acp':
          return served.acp(key);
      }
    },
    alive: () => child.exitCode === null && child.signalCode === null,
    async close() {
      await stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
  return served;
}

interface Init {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: string;
}

/**
 * From an address of its own each time, where the system has them: failed logins of one address are slowed down, and these tests
 * are about other things.
 */
export async function exchange(url: string, { method, headers, body }: Init, from = freshAddress()): Promise<Received> {
  return await new Promise((resolve, reject) => {
    const sent = request(url, { method, headers, agent: false, ...(from && { localAddress: from }) }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      answer.once('close', () => resolve({ status: answer.statusCode ?? 0, body: readable(text) }));
    });
    sent.once('error', reject);
    sent.end(body);
  });
}

let addresses = 0;
function freshAddress(): string | undefined {
  addresses += 1;
  return process.platform === 'linux' ? `127.1.${addresses >> 8}.${addresses & 255}` : undefined;
}

/** One command of the built program, to its end. */
export async function command(
  args: readonly string[],
  { cwd }: { readonly cwd?: string } = {},
): Promise<{ readonly code: number; readonly out: string; readonly err: string }> {
  return await new Promise((resolve) => {
    execFile(process.execPath, [PROGRAM, ...args], { ...(cwd && { cwd }) }, (cause, out, err) => {
      resolve({ code: cause ? Number(cause.code ?? -1) : 0, out, err });
    });
  });
}

function pairOf(key: string): string {
  const [, id, secret] = /^(tbk_[0-9a-f]{16})_(.*)$/.exec(key) ?? [];
  return id ? `${id}:${secret}` : `local:${key}`;
}

/** JSON, or the last JSON of an event stream. */
function readable(text: string): Body {
  try {
    return JSON.parse(text);
  } catch {
    const data = [...text.matchAll(/^data: ?(.*)$/gm)].map(([, line]) => line as string).filter((line) => line !== '');
    try {
      return JSON.parse(data.at(-1) ?? '');
    } catch {
      return text;
    }
  }
}
