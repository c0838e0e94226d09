import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from 'jose';
import { expect, onTestFinished, test } from 'vitest';
import { createAuthenticator } from '../../../src/auth/authenticate.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { asFault } from '../../../src/model/faults.ts';

const issuer = 'https://issuer.example';
const audience = 'https://gateway.example';

async function issuerWith(kid = 'key-1') {
  const { publicKey, privateKey } = await generateKeyPair('EdDSA', { extractable: true });
  const jwk = { ...(await exportJWK(publicKey)), kid, alg: 'EdDSA', use: 'sig' };
  const token = (claims: JWTPayload = {}, header: object = {}) =>
    new SignJWT({ client_id: 'client', scope: 'tasks:read tasks:write', ...claims })
      .setProtectedHeader({ alg: 'EdDSA', kid, ...header })
      .setIssuer(String(claims.iss ?? issuer))
      .setAudience(claims.aud ?? audience)
      .setIssuedAt()
      .setExpirationTime(claims.exp ?? '5m')
      .sign(privateKey);
  return { jwks: { keys: [jwk] }, token, privateKey };
}

const authenticatorFor = (jwks: { keys: object[] } | string, more: object = {}) =>
  createAuthenticator({ clock: systemClock, oauth: { issuer, audience, jwks, ...more } });

async function refusal(attempt: Promise<unknown>): Promise<string> {
  try {
    await attempt;
  } catch (thrown) {
    const { kind, message } = asFault(thrown);
    return `${kind}: ${message}`;
  }
  return 'fine';
}

test('a token made for us by our issuer is its client, with its scopes', async () => {
  const { jwks, token } = await issuerWith();
  expect(await authenticatorFor(jwks)(await token())).toEqual({
    id: 'oauth-client:https://issuer.example#client',
    kind: 'service',
    scopes: ['tasks:read', 'tasks:write'],
  });
  const bound = authenticatorFor(jwks, { tenantClaim: 'org', workspacesClaim: 'ws' });
  expect(await bound(await token({ org: 'acme', ws: ['workspace_1'], scope: '' }))).toEqual({
    id: 'oauth-client:https://issuer.example#client',
    kind: 'service',
    scopes: [],
    tenant_id: 'acme',
    workspaces: ['workspace_1'],
  });
});

test('a token that is wrong in any way is refused', async () => {
  const { jwks, token, privateKey } = await issuerWith();
  const other = await issuerWith('key-2');
  const outsider = await issuerWith('key-1');
  const authenticate = authenticatorFor(jwks);
  const now = Math.floor(Date.now() / 1000);
  const none = new UnsecuredJWT({ client_id: 'client', scope: '*' })
    .setIssuer(issuer)
    .setAudience(audience)
    .setExpirationTime('5m')
    .encode();
  const forever = await new SignJWT({ client_id: 'client' })
    .setProtectedHeader({ alg: 'EdDSA', kid: 'key-1' })
    .setIssuer(issuer)
    .setAudience(audience)
    .sign(privateKey);
  const good = await token();
  const [head, , signature] = good.split('.');
  const forged = `${head}.${Buffer.from(JSON.stringify({ client_id: 'root', scope: '*' })).toString('base64url')}.${signature}`;
  const symmetric = await new SignJWT({ client_id: 'client' })
    .setProtectedHeader({ alg: 'HS256', kid: 'key-1' })
    .setIssuer(issuer)
    .setAudience(audience)
    .setExpirationTime('5m')
    .sign(Buffer.from(jwks.keys[0]!.x as string));

  expect(await refusal(authenticate(none))).toMatch(/^unauthenticated: /);
  expect(await refusal(authenticate(symmetric))).toMatch(/^unauthenticated: /);
  expect(await refusal(authenticate(forged))).toBe('unauthenticated: the token is not valid');
  expect(await refusal(authenticate(forever))).toBe("unauthenticated: the token's exp is not acceptable here");
  expect(await refusal(authenticate(await token({ exp: now - 60 })))).toBe('unauthenticated: the token has expired');
  expect(await refusal(authenticate(await token({ aud: 'https://other.example' })))).toBe(
    "unauthenticated: the token's aud is not acceptable here",
  );
  expect(await refusal(authenticate(await token({ iss: 'https://evil.example' })))).toBe(
    "unauthenticated: the token's iss is not acceptable here",
  );
  expect(await refusal(authenticate(await other.token()))).toBe(
    'unauthenticated: the token is signed with an unknown key',
  );
  expect(await refusal(authenticate(await outsider.token()))).toBe('unauthenticated: the token is not valid');
  expect(await refusal(authenticate(await token({ nbf: now + 600 })))).toMatch(/^unauthenticated: /);
  expect(await refusal(authenticate('a.b.c'))).toBe('unauthenticated: the token is not valid');
  expect(await refusal(authenticate(await token({ client_id: '' })))).toBe('unauthenticated: the token names no one');
  expect(await refusal(authenticate(good))).toBe('fine');
});

test('what every token must carry can be asked for', async () => {
  const { jwks, token } = await issuerWith();
  const strict = authenticatorFor(jwks, { requiredScopes: ['gateway:use'], tenantClaim: 'org' });
  expect(await refusal(strict(await token({ org: 'acme' })))).toBe(
    'unauthenticated: the token lacks the scope gateway:use',
  );
  expect(await refusal(strict(await token({ scope: 'gateway:use' })))).toBe(
    'unauthenticated: the token names no tenant',
  );
  expect(await refusal(strict(await token({ scope: 'gateway:use', org: 'acme' })))).toBe('fine');
});

test('keys are fetched where the issuer publishes them; when they cannot be, that is our trouble and still a no', async () => {
  const { jwks, token } = await issuerWith();
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(jwks));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const at = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`;
  const authenticate = authenticatorFor(at);
  expect((await authenticate(await token())).id).toBe('oauth-client:https://issuer.example#client');

  const away = authenticatorFor('http://127.0.0.1:1/keys');
  expect(await refusal(away(await token()))).toMatch(/^unavailable: /);
});

test('a token that was good is examined again after a while, and is refused once it has expired', async () => {
  const good = await issuerWith();
  let now = Date.now();
  let fetched = 0;

  const server = createServer((_request, response) => {
    fetched += 1;
    response.setHeader('content-type', 'application/json').end(JSON.stringify(good.jwks));
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const jwks = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const clock = { now: () => new Date(now).toISOString() };
  const authenticate = createAuthenticator({ clock, oauth: { issuer, audience, jwks, clockToleranceSeconds: 1 } });

  const short = await good.token({ exp: Math.floor(now / 1000) + 30 });
  const long = await good.token({ exp: Math.floor(now / 1000) + 3600 });
  const first = await authenticate(short);
  expect(await authenticate(short)).toBe(first);
  const lasting = await authenticate(long);
  // Another caller's, and one that only begins like it, are not taken for it.
  expect(await refusal(authenticate(`${short}x`))).toMatch(/^unauthenticated/);
  now += 29_000;
  expect(await authenticate(short)).toBe(first);
  now += 3_000;
  expect(await refusal(authenticate(short))).toBe('unauthenticated: the token has expired');
  expect(await authenticate(long)).toBe(lasting);
  now += 40_000;
  expect(await authenticate(long)).not.toBe(lasting);
  expect(fetched).toBe(1);
  // Before it was examined nobody knew that it was good.
  const again = await authenticate(long);
  now -= 50_000;
  expect(await authenticate(long)).not.toBe(again);
});

test('a principal is an issuer and a subject: two people of one app are two, and an app without a person is a service', async () => {
  const { jwks, token } = await issuerWith();
  const authenticate = authenticatorFor(jwks);
  const ana = await authenticate(await token({ sub: 'ana' }));
  const bo = await authenticate(await token({ sub: 'bo' }));
  expect([ana, bo]).toMatchObject([
    { id: 'oauth:https://issuer.example#ana', kind: 'person' },
    { id: 'oauth:https://issuer.example#bo', kind: 'person' },
  ]);
  // The way an authorization server names the subject of a client that came for itself.
  for (const claims of [{}, { sub: 'client' }, { client_id: undefined, azp: 'client' }]) {
    expect(await authenticate(await token(claims))).toMatchObject({
      id: 'oauth-client:https://issuer.example#client',
      kind: 'service',
    });
  }
});

test('no claim of a token makes its holder a part of the gateway', async () => {
  const { jwks, token } = await issuerWith();
  const authenticate = authenticatorFor(jwks);
  for (const sub of ['local', 'local:ana', 'system:gateway', 'agent:demo', 'link:phone']) {
    expect((await authenticate(await token({ sub }))).id).toBe(`oauth:https://issuer.example#${sub}`);
    expect((await authenticate(await token({ client_id: sub }))).id).toBe(`oauth-client:https://issuer.example#${sub}`);
  }
});
