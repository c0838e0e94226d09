/** The whole gateway as a resource server: tokens of a real issuer, at the real door, for us and for nobody else. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { expect, onTestFinished, test } from 'vitest';
import { startGateway } from '../../../../src/runtime/gateway.ts';
import { META } from '../../../support/mcp/one-server.ts';
import { echo, type Loose, openUpstream } from '../../../support/mcp/upstream.ts';
import { exchange } from '../../../support/mcp/wire-client.ts';
import { configIn } from '../../../support/process/config-in.ts';

const ISSUER = 'https://login.example';
const HERE = 'https://gateway.example/mcp/u';
const METADATA = 'https://gateway.example/.well-known/oauth-protected-resource/mcp/u';
const SCOPES = 'sessions:write sessions:read tasks:write tasks:read skills:read workspaces:read';

/** What callers asked of the server. The gateway asks for its list of tools by itself, when it starts. */
const callsOf = ({ asked }: { readonly asked: readonly { readonly method: string }[] }) =>
  asked.filter(({ method }) => method !== 'tools/list');

/** Publishes its key, and signs whatever it is asked to. */
async function openIssuer() {
  const { publicKey, privateKey } = await generateKeyPair('EdDSA', { extractable: true });
  const keys = [{ ...(await exportJWK(publicKey)), kid: 'k', alg: 'EdDSA', use: 'sig' }];
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ keys }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return {
    keysAt: `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`,
    token: (audience: string, scope: string) =>
      new SignJWT({ client_id: 'client', scope })
        .setProtectedHeader({ alg: 'EdDSA', kid: 'k' })
        .setIssuer(ISSUER)
        .setAudience(audience)
        .setIssuedAt()
        .setExpirationTime('5m')
        .sign(privateKey),
  };
}

async function openGuarded(required = '') {
  const [issuer, upstream] = [await openIssuer(), await openUpstream({ tools: { echo } })];
  const dir = await mkdtemp(join(tmpdir(), 'tb-authorization-'));
  const yaml = [
    `auth: { oauth: { issuer: "${ISSUER}", audience: "${HERE}", jwks_uri: "${issuer.keysAt}"${required} } }`,
    `doors: { mcp: { public_url: "https://gateway.example", authorization_servers: ["${ISSUER}"] } }`,
    `tools: { u: { mcp: { url: "${upstream.url}" } } }`,
    'rules: [{ id: all, when: {}, then: allow }]',
  ];
  await writeFile(join(dir, 'tollbridge.yaml'), yaml.join('\n'));
  const gateway = await startGateway(await configIn(dir, { data: join(dir, 'data'), port: 0 }));
  onTestFinished(async () => {
    await gateway.close();
    await upstream.close();
    await rm(dir, { recursive: true, force: true });
  });
  const call = async (token?: string) => {
    const _meta = { [`${META}protocolVersion`]: '2026-07-28', [`${META}clientCapabilities`]: {} };
    const { status, headers, frames } = await exchange(`${gateway.url}/mcp/u`, {
      headers: {
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'tools/call',
        'mcp-name': 'echo',
      },
      body: {
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'echo', arguments: { text: 'hi' }, _meta },
      },
    });
    return { status, challenge: headers['www-authenticate'], said: frames[0] as Loose };
  };
  return { issuer, upstream, gateway, call };
}

test('a token for another audience is refused, however well it is signed, and the refusal says where to get one', async () => {
  const { issuer, upstream, gateway, call } = await openGuarded();
  for (const audience of ['https://other.example/mcp', 'https://gateway.example', upstream.url]) {
    const { status, challenge, said } = await call(await issuer.token(audience, SCOPES));
    expect([status, challenge]).toEqual([
      401,
      `Bearer error="invalid_token", scope="${SCOPES}", resource_metadata="${METADATA}"`,
    ]);
    expect(said.error.message).toBe("the token's aud is not acceptable here");
  }
  expect((await call()).challenge).toBe(`Bearer scope="${SCOPES}", resource_metadata="${METADATA}"`);
  const path = new URL(METADATA).pathname;
  expect(await (await fetch(`${gateway.url}${path}`)).json()).toEqual({
    resource: HERE,
    authorization_servers: [ISSUER],
    bearer_methods_supported: ['header'],
    scopes_supported: SCOPES.split(' '),
  });
  expect(callsOf(upstream)).toEqual([]);
});

test('a token with too few scopes is refused with the list of all it needs, and one with those is let in', async () => {
  const { issuer, upstream, call } = await openGuarded();
  const { status, challenge, said } = await call(await issuer.token(HERE, 'tasks:read skills:read'));
  expect([status, challenge]).toEqual([
    403,
    `Bearer error="insufficient_scope", scope="${SCOPES}", resource_metadata="${METADATA}"`,
  ]);
  expect(said.error.message).toBe(
    'oauth-client:https://login.example#client does not have the scope sessions:write sessions:read tasks:write workspaces:read',
  );
  expect(callsOf(upstream)).toEqual([]);

  const enough = await issuer.token(HERE, SCOPES);
  expect((await call(enough)).said.result.content).toEqual([{ type: 'text', text: 'hi' }]);
  // What proves a caller here goes no further.
  expect(JSON.stringify(upstream.asked)).not.toContain(enough);
  expect(upstream.asked.map(({ headers }) => headers.authorization)).toEqual(upstream.asked.map(() => undefined));
});

test('a scope that every token here must have is named as well', async () => {
  const { issuer, upstream, call } = await openGuarded(', required_scopes: ["gateway:use"]');
  const { status, challenge, said } = await call(await issuer.token(HERE, SCOPES));
  expect([status, challenge]).toEqual([
    403,
    `Bearer error="insufficient_scope", scope="gateway:use ${SCOPES}", resource_metadata="${METADATA}"`,
  ]);
  expect(said.error.message).toBe('the token lacks the scope gateway:use');
  expect(callsOf(upstream)).toEqual([]);
  expect((await call(await issuer.token(HERE, `gateway:use ${SCOPES}`))).status).toBe(200);
});
