/** What is asked before anything else: version, token, the card, and whether the gateway is well. */
import { createPublicKey, verify } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { canonicalJson } from '../../../src/receipt/seal/canonical-json.ts';
import { expectFault, openDoor, VERSION } from '../../support/harn/gateway.ts';
import { rawHttp } from '../../support/wire/raw-http.ts';

describe('before anything else', () => {
  test('discovery and card need neither version nor token, and take both', async () => {
    const { call } = await openDoor();
    for (const headers of [{}, { authorization: '', 'harn-agents-protocol-version': '' }]) {
      const discovery = await call('GET', '/v1', undefined, headers);
      expect(discovery.status).toBe(200);
      expect(discovery.body).toEqual({
        object: 'protocol_discovery',
        protocol_family: 'harn_agents_protocol',
        retention: { events_seconds: null, receipts_seconds: null },
        current_version: 'agents-protocol-2026-04-25',
        supported_versions: ['agents-protocol-2026-10-11', 'agents-protocol-2026-04-25'],
        capabilities: { rest: true, sse: true, websocket: true, receipts: true, replay: true },
      });
      expect((await call('GET', '/v1/agent-card', undefined, headers)).status).toBe(200);
      for (const path of ['/health', '/health/live', '/health/ready', '/version', '/openapi.json', '/docs']) {
        expect((await call('GET', path, undefined, headers)).status, path).toBe(200);
      }
      expect((await call('GET', '/.well-known/harn-receipt-keys.json', undefined, headers)).body.keys).toHaveLength(1);
    }
  });

  test('a wrong version is reported before a missing token is', async () => {
    const { call } = await openDoor();
    const cases = [
      { authorization: '', 'harn-agents-protocol-version': '' },
      { authorization: '', 'harn-agents-protocol-version': 'agents-protocol-1900-01-01' },
      { 'harn-agents-protocol-version': 'agents-protocol-1900-01-01' },
      { authorization: 'Bearer wrong', 'harn-agents-protocol-version': `${VERSION} x` },
    ];
    for (const headers of cases) {
      const answer = await call('GET', '/v1/tasks', undefined, headers);
      expectFault(answer, 426, 'unsupported_protocol_version', 'request_error');
      expect(answer.body.error.details).toEqual({ supported_versions: ['agents-protocol-2026-10-11', VERSION] });
      expect(answer.headers.get('harn-agents-protocol-version')).toBe(VERSION);
    }
  });

  test('no token, a wrong one, or two of them are refused', async () => {
    const { call, url } = await openDoor();
    for (const authorization of ['', 'Bearer wrong', 'Basic YW5hOmFuYQ==', 'Bearer', 'Bearer ana, Bearer ana']) {
      const answer = await call('GET', '/v1/tasks', undefined, { authorization });
      expectFault(answer, 401, 'unauthenticated', 'auth_error');
      expect(answer.headers.get('www-authenticate')).toBe('Bearer');
    }
    const two = await rawHttp(
      url,
      `GET /v1/tasks HTTP/1.1\r\nHost: ${new URL(url).host}\r\nHarn-Agents-Protocol-Version: ${VERSION}\r\n` +
        'Authorization: Bearer ana\r\nAuthorization: Bearer ana\r\n\r\n',
    );
    expect(two.status).toBe(401);
  });

  test('metrics and the state of dependencies are for callers that may look after the gateway', async () => {
    const { call } = await openDoor();
    for (const path of ['/metrics', '/health/deps']) {
      expectFault(await call('GET', path, undefined, { authorization: '' }), 401, 'unauthenticated', 'auth_error');
    }
    expect((await call('GET', '/health/deps')).body).toMatchObject({
      ok: true,
      dependencies: [{ name: 'log', ok: true, detail: null }],
    });
    await call('GET', '/v1/tasks');
    const metrics = (await call('GET', '/metrics')).body as string;
    expect(metrics).toContain('tollbridge_http_requests_total{operation="listTasks",status="200"} 1\n');
    expect(metrics).toContain('tollbridge_streams_open{kind="sse"} 0\n');
  });

  test('a log that cannot be written makes the gateway not ready, and stays alive', async () => {
    const { call } = await openDoor({ trouble: () => 'the disk is full' });
    expect((await call('GET', '/health/live')).status).toBe(200);
    expect((await call('GET', '/health/ready')).status).toBe(503);
    expect((await call('GET', '/health')).body).toMatchObject({ ok: false, status: 'unavailable' });
    expect((await call('GET', '/health/deps')).body.dependencies).toEqual([
      { name: 'log', ok: false, detail: 'the disk is full' },
    ]);
  });

  test('there is nothing at other paths, and other methods do nothing', async () => {
    const { call } = await openDoor();
    for (const [method, path] of [
      ['GET', '/v1/nothing'],
      ['DELETE', '/v1/tasks'],
      ['PUT', '/v1/tasks/x'],
      ['GET', '/v1/tasks/x/y/z'],
      ['GET', '/v1/tasks/..%2f..%2fetc'],
      ['GET', '/v1/tasks/%00'],
    ] as const) {
      expectFault(await call(method, path), 404, 'resource_not_found', 'not_found_error');
    }
    expect((await call('GET', '/elsewhere')).status).toBe(404);
  });
});

describe('the card', () => {
  test('is what the documents and the suite look for, and is signed as a whole', async () => {
    const { call, url } = await openDoor();
    const { body: card } = await call('GET', '/v1/agent-card');
    expect(card).toMatchObject({ object: 'harn_agent_card', protocol_version: VERSION, name: 'Tollbridge' });
    expect(card.interfaces).toEqual(card.harn_interfaces);
    expect(card.a2a_agent_card).toEqual(card.a2a_card);
    expect(card.harn_interfaces.map(({ transport }: { transport: string }) => transport)).toEqual([
      'rest',
      'sse',
      'websocket',
    ]);
    expect(card.a2a_card).toMatchObject({
      preferredTransport: 'AGENTS_PROTOCOL',
      defaultInputModes: ['text/plain', 'application/json'],
    });
    expect(card.metadata.receipt_keys_url).toBe(`${url}/.well-known/harn-receipt-keys.json`);

    const { body: keys } = await call('GET', '/.well-known/harn-receipt-keys.json');
    const jwk = keys.keys.find(({ kid }: { kid: string }) => kid === card.signature.key_id);
    const { signature, ...rest } = card;
    const key = createPublicKey({ key: jwk, format: 'jwk' });
    const holds = (document: unknown) =>
      verify(null, Buffer.from(canonicalJson(document)), key, Buffer.from(signature.value, 'base64'));
    expect(signature.algorithm).toBe('ed25519');
    expect(holds(rest)).toBe(true);
    expect(holds({ ...rest, name: 'Someone else' })).toBe(false);
  });

  test('the whole API stands a second time under /harn-suite, with the older card', async () => {
    const { call } = await openDoor();
    expect((await call('GET', '/harn-suite/v1/agent-card')).body).toMatchObject({ object: 'agent_card' });
    expect((await call('GET', '/harn-suite/v1')).body.object).toBe('protocol_discovery');
    expect((await call('GET', '/harn-suite/v1/tasks')).status).toBe(200);
    const off = await openDoor({ config: { suite_prefix: '', card: { object: 'agent_card', name: 'Mine' } } });
    expect((await off.call('GET', '/harn-suite/v1')).status).toBe(404);
    expect((await off.call('GET', '/v1/agent-card')).body).toMatchObject({ object: 'agent_card', name: 'Mine' });
  });
});
