import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLocalJWKSet, exportJWK, flattenedVerify, generateKeyPair, SignJWT } from 'jose';
import { describe, expect, onTestFinished, test } from 'vitest';
import { canonicalJson } from '../../../src/receipt/seal/canonical-json.ts';
import { startGateway } from '../../../src/runtime/gateway.ts';
import { type Body, openDoor } from '../../support/harn/gateway.ts';
import { configIn } from '../../support/process/config-in.ts';
import { openSocket } from '../../support/wire/socket-client.ts';

const VERSIONS = ['agents-protocol-2026-04-25', 'agents-protocol-2026-10-11'];

async function gatewayWith(text = '') {
  const dir = mkdtempSync(join(tmpdir(), 'tollbridge-card-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  writeFileSync(join(dir, 'tollbridge.yaml'), `listen: { port: 0 }\n${text}`);
  const gateway = await startGateway(await configIn(dir, { data: join(dir, 'data') }));
  onTestFinished(() => gateway.close());
  const get = async (path: string, headers: Record<string, string> = {}) => {
    const answer = await fetch(`${gateway.url}${path}`, { headers });
    return { status: answer.status, body: (await answer.json()) as Body };
  };
  return { ...gateway, get, directory: dir };
}

/** An authorization server: its keys, and tokens it makes. */
async function issuer() {
  const { publicKey, privateKey } = await generateKeyPair('ES256');
  const jwk = { ...(await exportJWK(publicKey)), kid: 'k', alg: 'ES256', use: 'sig' };
  const server = createServer((_, response) => response.end(JSON.stringify({ keys: [jwk] })));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const token = new SignJWT({ scope: 'tasks:read others:read' })
    .setProtectedHeader({ alg: 'ES256', kid: 'k' })
    .setIssuer(url)
    .setAudience('tollbridge')
    .setSubject('client')
    .setExpirationTime('5m')
    .sign(privateKey);
  return { url, token: await token };
}

describe.each(VERSIONS)('what the card of a gateway says in %s', (version) => {
  const speaking = { 'harn-agents-protocol-version': version };

  test('leads somewhere: every interface it names answers', async () => {
    const { get, url, token } = await gatewayWith();
    const { body: card } = await get('/v1/agent-card', speaking);
    const as = { ...speaking, authorization: `Bearer ${token}` };
    const reached: Record<string, (at: string) => Promise<unknown>> = {
      rest: async (at) =>
        expect(((await (await fetch(at, { headers: as })).json()) as Body).current_version).toBe(version),
      async sse(at) {
        const answer = await fetch(at, { headers: as });
        expect(answer.headers.get('content-type')).toMatch(/^text\/event-stream/);
        await answer.body?.cancel();
      },
      async websocket(at) {
        const socket = await openSocket(at, { headers: as });
        expect(await socket.next(({ type }) => type === 'ready')).toMatchObject({ protocol_version: version });
      },
      async a2a(at) {
        const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ListTasks', params: {} });
        const headers = { ...as, 'content-type': 'application/json', 'a2a-version': '1.0' };
        expect(((await (await fetch(at, { method: 'POST', headers, body })).json()) as Body).result).toBeDefined();
      },
    };
    expect(card.harn_interfaces.map(({ transport }: Body) => transport).toSorted()).toEqual(
      Object.keys(reached).toSorted(),
    );
    for (const { transport, url: at } of card.harn_interfaces) await reached[transport]!(at);
    expect(card.interfaces).toEqual(card.harn_interfaces);
    expect(card.public_url).toBe(url);
  });

  test('holds the A2A card that is served, as it is served', async () => {
    const { get } = await gatewayWith();
    const { body: card } = await get('/v1/agent-card', speaking);
    const { body: served } = await get('/.well-known/agent-card.json');
    expect(card.a2a_card).toEqual(served);
    expect(card.a2a_agent_card).toEqual(served);
    const { body: current } = await get('/.well-known/agent-card.json', { 'a2a-version': '1.0' });
    expect(card.a2a_card.supportedInterfaces).toEqual(current.supportedInterfaces);
  });

  test('advertises the tokens that are accepted, and no others', async () => {
    const { url, token } = await issuer();
    const oauth = `auth: { oauth: { issuer: "${url}", audience: tollbridge, jwks_uri: "${url}/keys" } }\n`;
    for (const configured of [false, true]) {
      const { get, token: own } = await gatewayWith(configured ? oauth : '');
      const { body: card } = await get('/v1/agent-card', speaking);
      const { body: document } = await get('/openapi.json', speaking);
      const accepted = [];
      if ((await get('/v1/tasks', { ...speaking, authorization: `Bearer ${own}` })).status === 200)
        accepted.push('bearerAuth');
      if ((await get('/v1/tasks', { ...speaking, authorization: `Bearer ${token}` })).status === 200)
        accepted.push('oauth2ClientCredentials');
      expect(accepted).toEqual(configured ? ['bearerAuth', 'oauth2ClientCredentials'] : ['bearerAuth']);
      expect(card.auth_schemes).toEqual(accepted);
      // The document at the root describes the runs door beside this one, which has a scheme of its own.
      const schemes = Object.keys(document.components.securitySchemes).filter((name) => name !== 'runsKey');
      expect(schemes).toEqual(accepted);
    }
  });

  test('says how long events are kept, also after that has changed, as the document describes it', async () => {
    const { get, directory } = await gatewayWith('retention: { events: 90d }\n');
    const cardOf = async () => (await get('/v1/agent-card', speaking)).body;
    expect((await cardOf()).retention).toEqual({ events_seconds: 90 * 86_400, receipts_seconds: null });
    expect((await cardOf()).retention).toEqual((await get('/v1', speaking)).body.retention);
    writeFileSync(join(directory, 'tollbridge.yaml'), 'listen: { port: 0 }\n');
    await expect.poll(async () => (await cardOf()).retention.events_seconds, { timeout: 10_000 }).toBeNull();
    const { schemas } = (await get('/openapi.json', speaking)).body.components;
    for (const name of ['HarnAgentCard', 'Discovery', 'CapabilitySummary', 'RuntimeMetadata'])
      expect(JSON.stringify(schemas[name].properties.retention), name).toMatch(/events_seconds|schemas\/Retention/);
    expect(schemas.Retention.properties.events_seconds.anyOf[0].description).toContain('cursor_expired');
  });

  test('is signed as it stands', async () => {
    const { get } = await gatewayWith();
    const { body: card } = await get('/v1/agent-card', speaking);
    const { signature, ...rest } = card;
    const { body: keys } = await get('/.well-known/harn-receipt-keys.json');
    const { x } = keys.keys.find(({ kid }: Body) => kid === signature.key_id);
    const key = await crypto.subtle.importKey('jwk', { kty: 'OKP', crv: 'Ed25519', x }, 'Ed25519', true, ['verify']);
    const bytes = new TextEncoder().encode(canonicalJson(rest));
    expect(await crypto.subtle.verify('Ed25519', key, Buffer.from(signature.value, 'base64'), bytes)).toBe(true);
  });
});

test('the A2A card inside ours is signed as A2A signs cards, with a key anyone can fetch', async () => {
  const door = await openDoor();
  const { body: card } = await door.call('GET', '/v1/agent-card');
  const { signatures, ...nested } = card.a2a_card;
  expect(signatures).toHaveLength(1);
  const [{ protected: header, signature }] = signatures;
  const said = JSON.parse(Buffer.from(header, 'base64url').toString());
  expect(said).toEqual({
    alg: 'EdDSA',
    typ: 'JOSE',
    kid: expect.any(String),
    jku: `${door.url}/.well-known/harn-receipt-keys.json`,
  });
  const keys = createLocalJWKSet((await door.call('GET', new URL(said.jku).pathname)).body);
  const verify = (document: object) =>
    flattenedVerify(
      { protected: header, signature, payload: Buffer.from(canonicalJson(document as never)).toString('base64url') },
      keys,
    );
  const { protectedHeader } = await verify(nested);
  expect(protectedHeader?.kid).toBe(card.signature.key_id);
  await expect(verify({ ...nested, url: 'https://evil.example' })).rejects.toThrow('signature verification failed');
});
