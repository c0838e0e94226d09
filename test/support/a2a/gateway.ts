/** A real gateway behind the A2A door on a real port, and clients that speak to it: the SDK's own, and bare requests. */

import type { Client } from '@a2a-js/sdk/client';
import { onTestFinished } from 'vitest';
import { type A2aConfig, settingsOf } from '../../../adapters/a2a/config.ts';
import { a2aDoor } from '../../../adapters/a2a/server/door.ts';
import type { Actor } from '../../../src/model/actions.ts';
import { Fault } from '../../../src/model/faults.ts';
import type { Deps } from '../../../src/ports/index.ts';
import { createHttpHost } from '../../../src/transport/http/server.ts';
import type { Resolve } from '../../../src/transport/outbound/public-fetch.ts';
import { ana } from '../gateway/actors.ts';
import { latch, scriptedAgent } from '../gateway/agents.ts';
import { openTestGateway, type TestGateway, type TestGatewayOptions } from '../gateway/test-gateway.ts';
import { type Body, PEOPLE } from '../harn/gateway.ts';
import { sdkClient, speech } from './sdk.ts';

export { sdkClient, sending, speech, wire, withToken } from './sdk.ts';

export interface Peer {
  readonly at: TestGateway;
  readonly url: string;
  /** Of one agent, without a slash at its end. */
  base(agent?: string): string;
  /** A bare request as Ana with version 1.0, unless headers say otherwise; an empty header is left out. */
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  rpc(method: string, params: unknown, headers?: Record<string, string>): Promise<Answer>;
  /** The SDK's own client, on one binding. */
  client(binding?: 'JSONRPC' | 'HTTP+JSON', token?: string): Promise<Client>;
  readonly logged: string[];
  close(): Promise<void>;
}
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body;
}

export interface PeerOptions extends TestGatewayOptions {
  readonly config?: A2aConfig;
  readonly people?: Readonly<Record<string, Actor>>;
  readonly resolve?: Resolve;
  /** The address clients use, where it is not the one listened on. */
  readonly publicUrl?: string;
  /** Time of the test instead of real time. */
  readonly deps?: Partial<Deps>;
}

export async function openPeer(options: PeerOptions = {}): Promise<Peer> {
  const at = await openTestGateway(options);
  return await openPeerOn(at, options);
}

/** No two peers make the same name, as no two processes do. */
let named = 0;

export async function openPeerOn(at: TestGateway, options: PeerOptions = {}): Promise<Peer> {
  const people: Record<string, Actor | undefined> = { ...PEOPLE, bo: { ...ana, id: 'bo' }, ...options.people };
  const logged: string[] = [];
  let count = 0;
  const note = (fields: object, message: string) => {
    const { err } = fields as { err?: Error };
    logged.push(`${message}${err ? `: ${err.message}` : ''}`);
  };
  const log = { info() {}, warn: note, error: note };
  const { publicUrl } = options;
  const http = createHttpHost({
    requestId: () => `req_${++count}`,
    log,
    graceMs: 200,
    ...(publicUrl && { publicUrl, allowedHosts: [new URL(publicUrl).hostname] }),
  });
  await at.bridge.home(ana);
  const deps: Deps = {
    log,
    clock: at.clock,
    ids: { next: (prefix) => `${prefix}_p${++named}` },
    http,
    authenticate: async (bearer) => {
      const actor = bearer === undefined ? undefined : people[bearer];
      if (!actor) throw new Fault('unauthenticated', 'the token is not valid');
      return actor;
    },
    jwks: () => at.runtime.keyring.jwks(),
    sign: (said) => at.runtime.keyring.signer().sign(said),
    mac: (said) => at.runtime.keyring.signer().mac(said),
    lease: (name) => at.runtime.store.lease(name),
    secret: async (name) => {
      throw new Fault('not_found', `no secret ${name}`);
    },
    ...options.deps,
  };
  const door = await a2aDoor(settingsOf(options.config ?? {}), deps, {
    ...(options.resolve && { resolve: options.resolve }),
    takeOverMs: 20,
  }).open(at.bridge);
  const { url } = await http.listen();
  let closed = false;
  const close = async () => {
    if (closed) return;
    closed = true;
    await door.close();
    await http.close();
  };
  onTestFinished(close);

  const first = options.agents?.[0]?.name ?? 'agent';
  const base = (agent = first) => `${url}/a2a/${agent}`;

  async function call(method: string, path: string, body?: unknown, more: Record<string, string> = {}) {
    const headers: Record<string, string> = {
      authorization: 'Bearer ana',
      'a2a-version': '1.0',
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...more,
    };
    for (const [name, value] of Object.entries(headers)) if (value === '') delete headers[name];
    const answer = await fetch(path.startsWith('http') ? path : `${url}${path}`, {
      method,
      headers,
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const said = await answer.text();
    const json = answer.headers.get('content-type')?.includes('json');
    return { status: answer.status, headers: answer.headers, body: json ? JSON.parse(said) : said };
  }

  return {
    at,
    url,
    base,
    call,
    logged,
    rpc: (method, params, headers) => call('POST', base(), { jsonrpc: '2.0', id: 'r1', method, params }, headers),
    client: (binding = 'JSONRPC', token = 'ana') => sdkClient(`${base()}/`, binding, token),
    close,
  };
}

/** An agent that says nothing until its gate is opened, and goes on after a restart. */
export function lateAgent() {
  const gate = latch();
  const agent = scriptedAgent(
    async (sink) => {
      await gate.promise;
      for (const fact of speech('m1', ['Late.'])) await sink.emit(fact);
      return undefined;
    },
    { resume: true },
  );
  return { gate, agent };
}
