/** Sign-in at an OpenID provider: one question, one answer, in one browser; anything else opens no session. */
import { createHmac } from 'node:crypto';
import type { JWTPayload } from 'jose';
import { SignJWT } from 'jose';
import { expect, test } from 'vitest';
import { createConsoleOidc, type OidcSignInOptions, ROLE_SCOPES } from '../../../src/auth/console-oidc.ts';
import type { OAuthOptions } from '../../../src/auth/oauth.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { type OidcProvider, openOidcProvider } from '../../support/console/oidc-provider.ts';

const ORIGIN = 'https://gateway.example';
const ROLES: Partial<OidcSignInOptions> = {
  rolesClaim: 'groups',
  roles: { ops: 'admin', oncall: 'approver', all: 'viewer' },
};

const keyed = (key: string) => (text: string) => createHmac('sha256', key).update(text).digest('hex');

function consoleAt(provider: OidcProvider, sign: Partial<OidcSignInOptions> = ROLES, more: Partial<OAuthOptions> = {}) {
  const { issuer, client } = provider;
  const signIn = { clientId: client.id, secret: 'oidc', scopes: [], roles: {}, ...sign };
  const oauth = { issuer, audience: 'tollbridge', jwks: `${issuer}/keys`, signIn, ...more };
  const now = { ms: 0 };
  const clock = { ...systemClock, now: () => new Date(Date.now() + now.ms).toISOString() };
  const deps = { oauth, clock, secret: async () => client.secret, mac: keyed('the gateway') };
  // `other`: another process of the same gateway; `foreign`: another gateway.
  const [oidc, other] = [createConsoleOidc(deps), createConsoleOidc(deps)];
  return { oidc, other, foreign: createConsoleOidc({ ...deps, mac: keyed('another one') }), now };
}

/** The person signs in at the provider, which sends the browser back. */
async function answerTo({ oidc }: ReturnType<typeof consoleAt>, change: (location: URL) => void = () => {}) {
  const { location, binding } = await oidc.begin(ORIGIN);
  const asked = new URL(location);
  change(asked);
  const back = await fetch(asked, { redirect: 'manual' });
  const query = new URL(back.headers.get('location') ?? '').searchParams;
  const [code, state, iss] = ['code', 'state', 'iss'].map((name) => query.get(name) ?? '') as [string, string, string];
  return { code, state, iss, binding };
}

test('the question has state, nonce and a PKCE challenge, each of them new, and no secret', async () => {
  const provider = await openOidcProvider();
  const at = consoleAt(provider, { scopes: ['profile', 'openid'] });
  const [one, two] = await Promise.all([at.oidc.begin(ORIGIN), at.oidc.begin(ORIGIN)]);
  const asked = new URL(one.location).searchParams;
  expect(asked.get('scope')).toBe('openid profile');
  expect(asked.get('redirect_uri')).toBe(`${ORIGIN}/sign-in`);
  for (const name of ['state', 'nonce', 'code_challenge']) {
    expect(asked.get(name)).toMatch(/^[\w-]{43}$/);
    expect(asked.get(name)).not.toBe(new URL(two.location).searchParams.get(name));
  }
  expect(one.location).not.toContain(one.binding);
  expect(one.location).not.toContain('secret');
});

test.each([
  [['ops', 'all'], ROLE_SCOPES.admin],
  [['oncall'], ROLE_SCOPES.approver],
  ['all', ROLE_SCOPES.viewer],
])('the claim %s is the role it is configured for', async (groups, scopes) => {
  const provider = await openOidcProvider();
  provider.claims = { groups, org: 'acme' };
  const at = consoleAt(provider, ROLES, { tenantClaim: 'org' });
  const person = await at.oidc.end(await answerTo(at), ORIGIN);
  expect(person).toEqual({ id: `oauth:${provider.issuer}#ana`, scopes, tenant_id: 'acme' });
});

test('a claim may be a path, and without a claim the granted scopes count', async () => {
  const provider = await openOidcProvider();
  provider.claims = { realm_access: { roles: ['ops'] } };
  const nested = consoleAt(provider, { ...ROLES, rolesClaim: 'realm_access.roles' });
  expect((await nested.oidc.end(await answerTo(nested), ORIGIN)).scopes).toEqual(['*']);
  provider.answer = { scope: 'openid profile approvals:write tasks:read' };
  const granted = consoleAt(provider, {});
  expect((await granted.oidc.end(await answerTo(granted), ORIGIN)).scopes).toEqual(['approvals:write', 'tasks:read']);
  const strict = consoleAt(provider, {}, { requiredScopes: ['agents:use'] });
  await expect(strict.oidc.end(await answerTo(strict), ORIGIN)).rejects.toThrow('no role here');
});

test.each<[string, JWTPayload]>([
  ['no group', {}],
  ['a group without a role', { groups: ['guests'] }],
  ['a name every object has', { groups: ['constructor', '__proto__', 'toString'] }],
  ['a group that is no text', { groups: [{ ops: true }] }],
])('%s is no role', async (_, claims) => {
  const provider = await openOidcProvider();
  provider.claims = claims;
  const at = consoleAt(provider);
  await expect(at.oidc.end(await answerTo(at), ORIGIN)).rejects.toMatchObject({ kind: 'permission_denied' });
});

const HOUR = 3600;
test.each<[string, Record<string, unknown>]>([
  ['of another sign-in', { nonce: 'another' }],
  ['without a nonce', { nonce: undefined }],
  ['of another issuer', { iss: 'https://evil.example' }],
  ['for another program', { aud: 'another' }],
  ['for two programs, without the one it was issued to', { aud: ['tollbridge-console', 'another'] }],
  ['issued to another program', { aud: ['tollbridge-console', 'another'], azp: 'another' }],
  ['that has expired', { exp: Math.floor(Date.now() / 1000) - HOUR }],
  ['without an expiry', { exp: undefined }],
  ['of no one', { sub: undefined }],
])('an id token %s opens nothing', async (_, claims) => {
  const provider = await openOidcProvider();
  provider.claims = { groups: ['ops'], ...claims } as JWTPayload;
  const at = consoleAt(provider);
  await expect(at.oidc.end(await answerTo(at), ORIGIN)).rejects.toMatchObject({ kind: 'unauthenticated' });
});

test('an id token that the issuer did not sign opens nothing', async () => {
  const provider = await openOidcProvider();
  provider.claims = { groups: ['ops'] };
  const at = consoleAt(provider);
  provider.otherKey = true;
  await expect(at.oidc.end(await answerTo(at), ORIGIN)).rejects.toMatchObject({ kind: 'unauthenticated' });
  provider.otherKey = false;
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const shared = await new SignJWT({ sub: 'ana' })
    .setProtectedHeader({ alg: 'HS256' })
    .sign(new TextEncoder().encode(provider.client.secret));
  for (const id_token of [`${part({ alg: 'none' })}.${part({ sub: 'ana' })}.`, shared, 'no token', 7]) {
    provider.answer = { id_token };
    await expect(at.oidc.end(await answerTo(at), ORIGIN)).rejects.toMatchObject({ kind: 'unauthenticated' });
  }
});

test('an answer counts once, in the browser that began, at its origin, and in time', async () => {
  const provider = await openOidcProvider();
  provider.claims = { groups: ['ops'] };
  const at = consoleAt(provider);
  const refused = { kind: 'unauthenticated' };
  const used = await answerTo(at);
  await at.oidc.end(used, ORIGIN);
  await expect(at.oidc.end(used, ORIGIN)).rejects.toMatchObject(refused);
  await expect(at.oidc.end({ ...(await answerTo(at)), state: 'made up' }, ORIGIN)).rejects.toMatchObject(refused);
  const other = await answerTo(at);
  await expect(at.oidc.end({ ...(await answerTo(at)), binding: other.binding }, ORIGIN)).rejects.toMatchObject(refused);
  await expect(at.oidc.end(await answerTo(at), 'https://other.example')).rejects.toMatchObject(refused);
  await expect(at.oidc.end({ ...(await answerTo(at)), iss: 'https://evil.example' }, ORIGIN)).rejects.toMatchObject(
    refused,
  );
  const { iss: _, ...unnamed } = await answerTo(at);
  await expect(at.oidc.end(unnamed, ORIGIN), 'this provider names itself').rejects.toMatchObject(refused);
  const late = await answerTo(at);
  at.now.ms = 11 * 60_000;
  await expect(at.oidc.end(late, ORIGIN)).rejects.toMatchObject(refused);
  expect(provider.refused, 'none of them was taken to the provider').toEqual([]);
});

test('any process of the gateway ends what another began, and no other gateway does', async () => {
  const provider = await openOidcProvider();
  provider.claims = { groups: ['ops'] };
  const at = consoleAt(provider);
  expect(await at.other.end(await answerTo(at), ORIGIN)).toMatchObject({ id: `oauth:${provider.issuer}#ana` });
  await expect(at.foreign.end(await answerTo(at), ORIGIN)).rejects.toMatchObject({ kind: 'unauthenticated' });
  const used = await answerTo(at);
  await at.oidc.end(used, ORIGIN);
  // The provider gives nothing for a code that was used.
  await expect(at.other.end(used, ORIGIN)).rejects.toMatchObject({ kind: 'unauthenticated' });
  const { binding, ...answer } = await answerTo(at);
  const [until, random, seal] = binding.split('.');
  const longer = [String(Number(until) + 60_000), random, seal].join('.');
  await expect(at.oidc.end({ ...answer, binding: longer }, ORIGIN)).rejects.toMatchObject({ kind: 'unauthenticated' });
});

test('a code that was issued for another challenge is refused by the provider', async () => {
  const provider = await openOidcProvider();
  const at = consoleAt(provider);
  const answer = await answerTo(at, (asked) => asked.searchParams.set('code_challenge', 'x'.repeat(43)));
  await expect(at.oidc.end(answer, ORIGIN)).rejects.toMatchObject({ kind: 'unauthenticated' });
  expect(provider.refused).toEqual(['code_verifier']);
});

test.each<[string, Record<string, unknown>]>([
  ['names another issuer', { issuer: 'https://evil.example' }],
  ['sends codes in the clear', { token_endpoint: 'http://login.example/token' }],
  ['is no web address', { authorization_endpoint: 'javascript:alert(1)' }],
])('a provider whose document %s is not used', async (_, document) => {
  const provider = await openOidcProvider();
  provider.document = document;
  const at = consoleAt(provider);
  await expect(at.oidc.begin(ORIGIN)).rejects.toMatchObject({ kind: 'unavailable' });
  provider.document = {};
  await expect(at.oidc.begin(ORIGIN), 'once it is right it is used').resolves.toBeTruthy();
});

test('an issuer in the clear cannot be configured for sign-in', async () => {
  const provider = await openOidcProvider();
  expect(() => consoleAt({ ...provider, issuer: 'http://login.example' })).toThrow('no https address');
});
