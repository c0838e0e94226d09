/** The door to editors elsewhere on a real port, with the people of the tests. */
import { onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { type AcpConfig, settingsOf } from '../../../adapters/acp/config.ts';
import { acpDoor } from '../../../adapters/acp/server/door.ts';
import { Fault } from '../../../src/model/faults.ts';
import { createHttpHost } from '../../../src/transport/http/server.ts';
import { openTestGateway, type TestGateway, type TestGatewayOptions } from '../gateway/test-gateway.ts';
import { PEOPLE } from '../harn/gateway.ts';
import { type Editor, speak } from './client.ts';

export interface RemoteDoor {
  readonly at: TestGateway;
  /** `http://127.0.0.1:4321/acp` */
  readonly url: string;
  /** An editor on a socket. */
  socket(
    token?: string,
    capabilities?: object,
  ): Promise<Editor & { readonly connectionId: string; drop(): void; readonly closed: Promise<number> }>;
  /** From now on this token is nobody's. */
  revoke(token: string): void;
  /** One request, as a person. */
  ask(method: string, more?: { headers?: Record<string, string>; body?: unknown; token?: string }): Promise<Response>;
}

export async function openRemoteDoor(runtime: TestGatewayOptions = {}, config: AcpConfig = {}): Promise<RemoteDoor> {
  const at = await openTestGateway(runtime);
  const people: Record<string, (typeof PEOPLE)[string] | undefined> = { ...PEOPLE };
  let count = 0;
  const log = { info() {}, warn() {}, error() {} };
  const http = createHttpHost({ requestId: () => `req_${++count}`, log, graceMs: 200 });
  const door = await acpDoor(settingsOf(config), {
    log,
    clock: at.clock,
    ids: { next: (prefix) => `${prefix}_r${++count}` },
    http,
    authenticate: async (bearer) => {
      const actor = bearer === undefined ? undefined : people[bearer];
      if (!actor) throw new Fault('unauthenticated', 'the token is not valid');
      return actor;
    },
    jwks: () => at.runtime.keyring.jwks(),
    secret: async (name) => {
      throw new Fault('not_found', `no secret ${name}`);
    },
  }).open(at.bridge);
  const { url: base } = await http.listen();
  onTestFinished(async () => {
    await door.close();
    await http.close();
  });
  const url = `${base}/acp`;
  return {
    at,
    url,
    async socket(token = 'ana', capabilities) {
      const socket = new WebSocket(url.replace(/^http/, 'ws'), { headers: { authorization: `Bearer ${token}` } });
      onTestFinished(() => socket.terminate());
      const closed = new Promise<number>((resolve) => socket.once('close', resolve));
      let connectionId = '';
      socket.once('upgrade', ({ headers }) => {
        connectionId = String(headers['acp-connection-id']);
      });
      await new Promise<void>((resolve, reject) => {
        socket.once('open', () => resolve());
        socket.once('error', reject);
        socket.once('unexpected-response', (_, response) =>
          reject(Object.assign(new Error('refused'), { status: response.statusCode })),
        );
      });
      const editor = await speak(
        {
          send: (text) => socket.send(text),
          onText: (hear) => void socket.on('message', (data) => hear(String(data))),
          close: async () => socket.close(),
        },
        capabilities,
      );
      return { ...editor, connectionId, closed, drop: () => socket.terminate() };
    },
    revoke(token) {
      people[token] = undefined;
    },
    async ask(method, { headers = {}, body, token = 'ana' } = {}) {
      return await fetch(url, {
        method,
        headers: {
          ...(token && { authorization: `Bearer ${token}` }),
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      });
    },
  };
}
