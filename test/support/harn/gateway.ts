/** A real gateway behind a real door on a real port, and a client that speaks to it in as few words as possible. */
import { expect, onTestFinished } from 'vitest';
import { type HarnConfig, settingsOf } from '../../../adapters/harn/config.ts';
import { harn } from '../../../adapters/harn/index.ts';
import { harnDoor } from '../../../adapters/harn/server/door.ts';
import type { Hosts } from '../../../adapters/harn/server/sockets/socket-tools.ts';
import type { Actor } from '../../../src/model/actions.ts';
import { Fault } from '../../../src/model/faults.ts';
import type { Deps } from '../../../src/ports/index.ts';
import { createHttpHost } from '../../../src/transport/http/server.ts';
import { ana } from '../gateway/actors.ts';
import { openTestGateway, type TestGateway, type TestGatewayOptions } from '../gateway/test-gateway.ts';

export const VERSION = 'agents-protocol-2026-04-25';

/** Tokens of the tests; each is its holder's name. */
export const PEOPLE: Readonly<Record<string, Actor>> = {
  ana,
  acme: { id: 'wile', kind: 'person', tenant_id: 'acme', scopes: ['*'] },
  reader: { id: 'reader', kind: 'service', scopes: ['tasks:read', 'sessions:read', 'events:read', 'others:read'] },
  nothing: { id: 'nothing', kind: 'service', scopes: [] },
};

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely
export type Body = any;

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body;
}

export interface Door {
  readonly at: TestGateway;
  readonly url: string;
  /** As Ana, with the version header, unless headers say otherwise. */
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  headers(more?: Record<string, string>): Record<string, string>;
  /** A workspace and a session in it, made over the wire. */
  room(): Promise<{ workspace: string; session: string }>;
  /** A task in a new session. */
  task(text?: string): Promise<{ workspace: string; session: string; task: string }>;
  /** From now on this token is nobody's. */
  revoke(token: string): void;
  close(): Promise<void>;
}

export interface DoorOptions extends TestGatewayOptions {
  readonly config?: HarnConfig;
  readonly secrets?: Readonly<Record<string, string>>;
  readonly people?: Readonly<Record<string, Actor>>;
  readonly trouble?: Deps['trouble'];
  /** Whose tools are mounted in the gateway as well. */
  readonly hosts?: Hosts;
}

export function text(said: string) {
  return { role: 'user', parts: [{ type: 'text', text: said, visibility: 'public' }] };
}

export async function openDoor(options: DoorOptions = {}): Promise<Door> {
  const at = await openTestGateway(options);
  const people: Record<string, Actor | undefined> = { ...PEOPLE, ...options.people };
  let count = 0;
  const http = createHttpHost({
    requestId: () => `req_${++count}`,
    log: { info() {}, warn() {}, error() {} },
    graceMs: 200,
  });
  const deps: Deps = {
    log: { info() {}, warn() {}, error() {} },
    clock: at.clock,
    ids: { next: (prefix) => `${prefix}_x${++count}` },
    http,
    authenticate: async (bearer) => {
      const actor = bearer === undefined ? undefined : people[bearer];
      if (!actor) throw new Fault('unauthenticated', 'the token is not valid');
      return actor;
    },
    permissions: at.runtime.permissions,
    jwks: () => at.runtime.keyring.jwks(),
    sign: (said) => at.runtime.keyring.signer().sign(said),
    trouble: options.trouble ?? (() => at.runtime.store.trouble()),
    secret: async (name) => {
      const secret = options.secrets?.[name];
      if (!secret) throw new Fault('not_found', `no secret ${name}`);
      return secret;
    },
  };
  const config = options.config ?? {};
  const opening = options.hosts
    ? harnDoor(settingsOf(config), deps, [], options.hosts)
    : harn.parts.door.open(config, { ...deps, name: 'harn' });
  const door = await opening.open(at.bridge);
  const { url } = await http.listen();
  const close = async () => {
    await door.close();
    await http.close();
  };
  onTestFinished(close);

  const headers = (more: Record<string, string> = {}) => {
    const all: Record<string, string> = {
      authorization: 'Bearer ana',
      'harn-agents-protocol-version': VERSION,
      ...more,
    };
    for (const [name, value] of Object.entries(all)) if (value === '') delete all[name];
    return all;
  };

  async function call(method: string, path: string, body?: unknown, more: Record<string, string> = {}) {
    const input = body === undefined ? {} : { 'content-type': 'application/json' };
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: headers({ ...input, ...more }),
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const said = await answer.text();
    const json = answer.headers.get('content-type')?.includes('json');
    return { status: answer.status, headers: answer.headers, body: json ? JSON.parse(said) : said };
  }

  async function room() {
    const workspace = (await call('POST', '/v1/workspaces', { name: 'w', root: 'harn://w' })).body.id as string;
    const session = (await call('POST', '/v1/sessions', { workspace_id: workspace })).body.id as string;
    return { workspace, session };
  }

  return {
    at,
    url,
    call,
    headers,
    room,
    async task(said = 'hello') {
      const location = await room();
      const { body } = await call('POST', `/v1/sessions/${location.session}/tasks`, { input: text(said) });
      return { ...location, task: body.id as string };
    },
    revoke(token) {
      people[token] = undefined;
    },
    close,
  };
}

/** The one envelope every refusal comes in. */
export function expectFault(answer: Answer, status: number, code: string, type: string): void {
  expect([answer.status, answer.body.error?.code]).toEqual([status, code]);
  const { error } = answer.body;
  expect(error).toMatchObject({ code, type });
  expect(typeof error.message).toBe('string');
  expect(error.request_id).toBe(answer.headers.get('x-request-id'));
  expect(error.details).toBeTypeOf('object');
  expect('param' in error).toBe(true);
}
