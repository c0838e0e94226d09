/** A real gateway behind the runs door on a real port, and a service that speaks to it in as few words as possible. */
import { onTestFinished } from 'vitest';
import { type RunsConfig, settingsOf } from '../../../adapters/runs/config.ts';
import { runsDoor } from '../../../adapters/runs/server/door.ts';
import type { Actor } from '../../../src/model/actions.ts';
import { Fault } from '../../../src/model/faults.ts';
import type { Deps } from '../../../src/ports/index.ts';
import { createHttpHost } from '../../../src/transport/http/server.ts';
import { ana } from '../gateway/actors.ts';
import { openTestGateway, type TestGateway, type TestGatewayOptions } from '../gateway/test-gateway.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely
export type Body = any;

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body;
}

/** `<name>:<name>-secret` is each one's pair. */
export const HOLDERS: Readonly<Record<string, Actor>> = {
  ana,
  acme: { id: 'acme', kind: 'service', tenant_id: 'acme', scopes: ['*'] },
  colleague: { id: 'colleague', kind: 'service', tenant_id: 'acme', scopes: ['*'] },
  reader: { id: 'reader', kind: 'service', scopes: ['tasks:read', 'events:read', 'others:read'] },
  modest: {
    id: 'modest',
    kind: 'service',
    scopes: ['sessions:*', 'tasks:*', 'events:read', 'workspaces:read', 'approvals:write'],
  },
  nothing: { id: 'nothing', kind: 'service', scopes: [] },
};

export interface RunsDoor {
  readonly at: TestGateway;
  readonly url: string;
  /** As Ana unless headers say otherwise; an empty header is left out. */
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  /** A new run under a key of its own. */
  create(input: object | string, more?: object, headers?: Record<string, string>): Promise<Answer>;
  /** The run once it is in this state. */
  until(runId: string, ...statuses: string[]): Promise<Body>;
  /** All its events, page by page. */
  events(runId: string): Promise<Body[]>;
  /** Until an event like this has been reported; all of them up to then. */
  seen(runId: string, type: string, where?: (value: Body) => boolean): Promise<Body[]>;
  /** The frames of its stream until it ends. */
  stream(runId: string, query?: string, headers?: Record<string, string>): Promise<Body[]>;
  /** From now on this one's pair is nobody's. */
  revoke(name: string): void;
  close(): Promise<void>;
}

export interface RunsDoorOptions extends TestGatewayOptions {
  readonly config?: RunsConfig;
  readonly trouble?: Deps['trouble'];
}

export const pair = (name: string) => `Bearer ${name}:${name}-secret`;

export async function openRuns(options: RunsDoorOptions = {}): Promise<RunsDoor> {
  const at = await openTestGateway(options);
  const revoked = new Set<string>();
  let count = 0;
  const quiet = { info() {}, warn() {}, error() {} };
  const http = createHttpHost({ requestId: () => `req_${++count}`, log: quiet, graceMs: 200 });
  const deps: Deps = {
    log: options.logger ?? quiet,
    clock: at.clock,
    ids: { next: (prefix) => `${prefix}_x${++count}` },
    http,
    authenticate: async (bearer) => {
      const name = Object.keys(HOLDERS).find((each) => bearer === `${each}-secret`);
      if (name && revoked.has(name)) throw new Fault('unauthenticated', 'no', { details: { reason: 'revoked' } });
      if (!name) throw new Fault('unauthenticated', 'the token is not valid');
      return HOLDERS[name] as Actor;
    },
    jwks: () => at.runtime.keyring.jwks(),
    sign: (said) => at.runtime.keyring.signer().sign(said),
    trouble: options.trouble ?? (() => at.runtime.store.trouble()),
    secret: async (name) => {
      throw new Fault('not_found', `no secret ${name}`);
    },
  };
  const config: RunsConfig = { stream: { linger_ms: 1 }, ...options.config };
  const door = await runsDoor(settingsOf(config), deps).open(at.bridge);
  const { url } = await http.listen();
  let closed = false;
  const close = async () => {
    if (closed) return;
    closed = true;
    await door.close();
    await http.close();
  };
  onTestFinished(close);

  const headersOf = (more: Record<string, string>, body: unknown) => {
    const all: Record<string, string> = { authorization: pair('ana'), ...more };
    if (body !== undefined) all['content-type'] ??= 'application/json';
    for (const [name, value] of Object.entries(all)) if (value === '') delete all[name];
    return all;
  };

  const call: RunsDoor['call'] = async (method, path, body, more = {}) => {
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: headersOf(more, body),
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const said = await answer.text();
    const json = answer.headers.get('content-type')?.startsWith('application/json');
    return { status: answer.status, headers: answer.headers, body: json ? JSON.parse(said) : said };
  };

  async function events(runId: string): Promise<Body[]> {
    const all: Body[] = [];
    for (let cursor = 0; ; ) {
      const { body } = await call('GET', `/v1/runs/${runId}/events?cursor=${cursor}&limit=200`);
      if (!body.events?.length) return all;
      all.push(...body.events);
      cursor = body.next_cursor;
    }
  }

  /** Looks again whenever something was written. */
  async function whenever<T>(look: () => Promise<T | undefined>, what: string): Promise<T> {
    const stop = AbortSignal.timeout(10_000);
    const after = await at.runtime.store.tip({ of: 'all' });
    const first = await look();
    if (first !== undefined) return first;
    for await (const _ of at.runtime.store.follow({ stream: { of: 'all' }, ...(after && { after }) }, stop)) {
      const found = await look();
      if (found !== undefined) return found;
    }
    throw new Error(`waited in vain for ${what}`);
  }

  return {
    at,
    url,
    call,
    events,
    create: (input, more = {}, headers = {}) => {
      const body = { input: typeof input === 'string' ? { user_query: input } : input, metadata: {}, ...more };
      return call('POST', '/v1/runs', body, { 'idempotency-key': `k${++count}`, ...headers });
    },
    until: (runId, ...statuses) =>
      whenever(
        async () => {
          const { body } = await call('GET', `/v1/runs/${runId}`);
          return statuses.includes(body.status) ? body : undefined;
        },
        `${runId} to be ${statuses.join(' or ')}`,
      ),
    seen: (runId, type, where = () => true) =>
      whenever(async () => {
        const reported = await events(runId);
        return reported.some((event) => event.type === type && where(event.payload.value)) ? reported : undefined;
      }, `${type} of ${runId}`),
    async stream(runId, query = '', headers = {}) {
      const response = await fetch(`${url}/v1/runs/${runId}/events/stream${query}`, {
        headers: headersOf(headers, undefined),
      });
      const reported = await response.text();
      return reported
        .split('\n\n')
        .filter((frame) => frame.startsWith('id: '))
        .map((frame) => {
          const [id, event, data] = frame.split('\n').map((line) => line.slice(line.indexOf(': ') + 2));
          return { id, event, data: JSON.parse(data ?? '') };
        });
    },
    revoke: (name) => revoked.add(name),
    close,
  };
}
