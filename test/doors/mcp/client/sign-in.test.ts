/** What becomes of a sign-in that goes wrong: no token, no exception, and a word in our own log. The rest is the official suite's. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createUpstreamAuth } from '../../../../adapters/mcp/client/auth/auth.ts';
import { createSignIn, type KeptSignIn, type OpenSignInPage } from '../../../../adapters/mcp/client/auth/sign-in.ts';

/** An authorization server that registers anyone and gives a token for any code. */
async function authorizationServer() {
  let tokens = 0;
  const server = createServer((request, response) => {
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const path = request.url?.split('?')[0] ?? '';
    const answers: Record<string, () => object> = {
      '/.well-known/oauth-protected-resource/mcp': () => ({ resource: `${base}/mcp`, authorization_servers: [base] }),
      '/.well-known/oauth-authorization-server': () => ({
        issuer: base,
        authorization_endpoint: `${base}/authorize`,
        token_endpoint: `${base}/token`,
        registration_endpoint: `${base}/register`,
        response_types_supported: ['code'],
        code_challenge_methods_supported: ['S256'],
        token_endpoint_auth_methods_supported: ['none'],
      }),
      '/register': () => ({ client_id: 'us', redirect_uris: ['http://127.0.0.1:1/back'] }),
      '/token': () => ({ access_token: `token-${++tokens}`, token_type: 'Bearer', scope: 'tools' }),
    };
    const body = answers[path]?.();
    response.writeHead(body ? (path === '/register' ? 201 : 200) : 404, { 'content-type': 'application/json' });
    request.resume().once('end', () => response.end(JSON.stringify(body ?? {})));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
}

async function signIn(visit?: OpenSignInPage) {
  const warnings: string[] = [];
  const kept: KeptSignIn[] = [];
  const auth = createSignIn({
    server: await authorizationServer(),
    redirect: 'http://127.0.0.1:1/back',
    keeping: { read: async () => undefined, write: async (next) => void kept.push(next), alone: (work) => work() },
    log: { info() {}, warn: (_, message) => void warnings.push(message), error() {} },
    ...(visit && { visit }),
  });
  return { auth, warnings, kept };
}

const back = (address: URL, parts: Record<string, string>) => {
  const state = address.searchParams.get('state') ?? '';
  return new URL(`http://127.0.0.1:1/back?${new URLSearchParams({ state, ...parts })}`);
};

test('a person who signs in gets us a token, which is kept', async () => {
  const { auth, kept } = await signIn(async (address) => back(address, { code: 'c' }));
  expect(await auth.headers()).toEqual({});
  expect(await auth.refused?.(401, 'Bearer')).toBe(true);
  expect(await auth.headers()).toEqual({ authorization: 'Bearer token-1' });
  expect(kept.at(-1)?.tokens).toMatchObject({ access_token: 'token-1', scope: 'tools' });
});

test('without a person to open the page there is no token, and a warning says how to sign in', async () => {
  const { auth, warnings } = await signIn();
  expect(await auth.refused?.(401, 'Bearer')).toBe(false);
  expect(await auth.headers()).toEqual({});
  expect(warnings).toEqual(['this server requires a sign-in before its tools can be used: tollbridge mcp login']);
});

test('an answer to another question is no answer', async () => {
  const { auth, warnings } = await signIn(async (address) => back(address, { code: 'c', state: 'another' }));
  expect(await auth.refused?.(401, 'Bearer')).toBe(false);
  expect(await auth.headers()).toEqual({});
  expect(warnings).toEqual(['signing in came to nothing']);
});

test('a person who is refused has not signed in', async () => {
  const { auth } = await signIn(async (address) => back(address, { error: 'access_denied' }));
  expect(await auth.refused?.(401, 'Bearer')).toBe(false);
  expect(await auth.headers()).toEqual({});
});

test('a scope that was asked for and is still lacking is not asked for again', async () => {
  let visits = 0;
  const { auth } = await signIn(async (address) => {
    visits += 1;
    return back(address, { code: 'c' });
  });
  const lacking = 'Bearer error="insufficient_scope", scope="admin"';
  expect(await auth.refused?.(403, lacking)).toBe(true);
  expect(visits).toBe(1);
  expect(await auth.refused?.(403, 'Bearer error="insufficient_scope", scope="admin"')).toBe(true);
  expect(await auth.refused?.(403, 'Bearer error="insufficient_scope", scope="admin"')).toBe(false);
});

/** A server that names whatever it likes, and another that writes down everything it is sent. */
async function twoOrigins(names: (own: string, other: string) => Record<string, object>) {
  const seen: string[] = [];
  const listen = async (answers: (own: string) => Record<string, object>, note: boolean) => {
    const server = createServer((request, response) => {
      const own = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const body = answers(own)[request.url?.split('?')[0] ?? ''];
      let text = '';
      request.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
      });
      request.once('end', () => {
        if (note) seen.push(`${request.method} ${request.url} ${request.headers.authorization ?? ''} ${text}`);
        response.writeHead(body ? 200 : 404, { 'content-type': 'application/json' }).end(JSON.stringify(body ?? {}));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  };
  const issuer = (own: string) => ({
    issuer: own,
    authorization_endpoint: `${own}/authorize`,
    token_endpoint: `${own}/token`,
    registration_endpoint: `${own}/register`,
    response_types_supported: ['code'],
    grant_types_supported: ['client_credentials'],
    code_challenge_methods_supported: ['S256'],
  });
  const other = await listen(
    (own) => ({
      '/.well-known/oauth-authorization-server': issuer(own),
      '/token': { access_token: 'stolen', token_type: 'Bearer' },
      '/elsewhere': { resource: 'http://127.0.0.1/mcp', authorization_servers: [own] },
    }),
    true,
  );
  const server = await listen((own) => names(own, other), false);
  return { server: new URL(`${server}/mcp`), other, seen };
}

const CHALLENGE = (url: string) => `Bearer error="invalid_token", resource_metadata="${url}"`;
const credentials = (server: URL, issuers?: string[]) =>
  createUpstreamAuth(
    'u',
    server,
    { url: server.href, oauth: { client_id: 'us', client_secret: 'kept', ...(issuers && { issuers }) } },
    { log: { info() {}, warn() {}, error() {} }, secret: async () => 'hunter2-secret' },
  );

test('a client secret does not go where the metadata of another origin says', async () => {
  const { server, other, seen } = await twoOrigins(() => ({}));
  const auth = credentials(server);
  expect(await auth.refused?.(401, CHALLENGE(`${other}/elsewhere`))).toBe(false);
  expect(seen).toEqual([]);
});

test('nor to an authorization server that the server itself names, unless the configuration names it too', async () => {
  const { server, other, seen } = await twoOrigins((own, elsewhere) => ({
    '/.well-known/oauth-protected-resource/mcp': { resource: `${own}/mcp`, authorization_servers: [elsewhere] },
  }));
  expect(await credentials(server).refused?.(401, 'Bearer')).toBe(false);
  expect(await credentials(server, ['https://login.example']).refused?.(401, 'Bearer')).toBe(false);
  expect(seen).toEqual([]);
  const named = credentials(server, [other]);
  expect(await named.refused?.(401, 'Bearer')).toBe(true);
  expect(await named.headers()).toEqual({ authorization: 'Bearer stolen' });
  expect(seen.filter((line) => line.startsWith('POST /token'))).toHaveLength(1);
});

test('nor to a token endpoint at another origin', async () => {
  const { server, seen } = await twoOrigins((own, elsewhere) => ({
    '/.well-known/oauth-authorization-server': {
      issuer: own,
      authorization_endpoint: `${own}/authorize`,
      token_endpoint: `${elsewhere}/token`,
      response_types_supported: ['code'],
      grant_types_supported: ['client_credentials'],
    },
  }));
  expect(await credentials(server).refused?.(401, 'Bearer')).toBe(false);
  expect(seen).toEqual([]);
});

test('a refresh token is not sent to another authorization server than the one a person signed in at', async () => {
  const { server, seen } = await twoOrigins((own, elsewhere) => ({
    '/.well-known/oauth-protected-resource/mcp': { resource: `${own}/mcp`, authorization_servers: [elsewhere] },
  }));
  const tokens = { access_token: 'a', refresh_token: 'our-refresh-token', token_type: 'Bearer', issuer: server.origin };
  const warnings: string[] = [];
  const auth = createSignIn({
    server,
    redirect: 'http://127.0.0.1:1/back',
    keeping: { read: async () => ({ tokens, issuer: server.origin }), write: async () => {}, alone: (work) => work() },
    log: { info() {}, warn: (_, message) => void warnings.push(message), error() {} },
  });
  expect(await auth.refused(401, 'Bearer')).toBe(false);
  expect(warnings).toEqual(['signing in came to nothing']);
  expect(seen).toEqual([]);
});
