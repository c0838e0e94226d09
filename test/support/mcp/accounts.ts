/**
 * A server of tools whose users have accounts, and its authorization server on the same port: registration, authorization code with PKCE
 * and resource indicators, `iss` in the answer, refresh tokens that are good for one use, token exchange (RFC 8693) and revocation
 * (RFC 7009). Access tokens are signed JWTs. Behind it is an ordinary server of tools that is told the account in a header.
 */
import { createHash, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWTPayload, jwtVerify, SignJWT } from 'jose';
import { openUpstream, type Upstream, type UpstreamOptions } from './upstream.ts';

interface Grant {
  readonly account: string;
  readonly client: string;
  readonly resource: string;
  readonly scope: string;
  readonly challenge?: string;
  readonly redirect?: string;
}

/** What the servers do differently; a test changes it as it goes. */
export interface Behaviour {
  /** The issuer in the answer to a sign-in. */
  iss?: string;
  refusesConsent?: boolean;
  /** Answers of the token endpoint instead of the right ones. */
  token?: ((form: URLSearchParams) => { status: number; body: string } | undefined) | undefined;
  /** The scopes that the tools require. */
  scope: string;
}

export interface Accounts {
  readonly url: string;
  readonly issuer: string;
  readonly upstream: Upstream;
  readonly behaviour: Behaviour;
  /** Every form that the token endpoint was sent. */
  readonly forms: URLSearchParams[];
  readonly registered: string[];
  readonly revoked: string[];
  /** Every bearer token that the server of tools was sent. */
  readonly bearers: string[];
  /** Access tokens that were issued so far are no longer accepted; with `refreshes` neither are refresh tokens. */
  expire(refreshes?: boolean): void;
  /** An access token for a gateway, as its callers have it. */
  callerToken(subject: string, audience: string, more?: JWTPayload): Promise<string>;
  readonly jwks: { readonly keys: readonly object[] };
  close(): Promise<void>;
}

export async function openAccounts(options: UpstreamOptions = {}): Promise<Accounts> {
  const upstream = await openUpstream(options);
  const { publicKey, privateKey } = await generateKeyPair('ES256');
  const jwks = { keys: [{ ...(await exportJWK(publicKey)), alg: 'ES256', kid: 'k' }] };
  const behaviour: Behaviour = { scope: 'tools' };
  const forms: URLSearchParams[] = [];
  const registered: string[] = [];
  const revoked: string[] = [];
  const bearers: string[] = [];
  const clients = new Map<string, readonly string[]>();
  const codes = new Map<string, Grant>();
  let refreshes = new Map<string, Grant>();
  let generation = 0;
  let base = '';

  const signed = (claims: JWTPayload, lifetime = '1h') =>
    new SignJWT({ jti: randomUUID(), ...claims })
      .setProtectedHeader({ alg: 'ES256', kid: 'k' })
      .setIssuer(base)
      .setIssuedAt()
      .setExpirationTime(lifetime)
      .sign(privateKey);

  async function give(grant: Grant, refresh = true) {
    const { account: sub, client: client_id, resource: aud, scope } = grant;
    const access_token = await signed({ sub, client_id, aud, scope, generation });
    const refresh_token = `refresh-${randomUUID()}`;
    if (refresh) refreshes.set(refresh_token, grant);
    return { access_token, token_type: 'Bearer', expires_in: 3600, scope, ...(refresh && { refresh_token }) };
  }

  async function token(form: URLSearchParams): Promise<object> {
    const field = (name: string) => form.get(name) ?? '';
    switch (field('grant_type')) {
      case 'authorization_code': {
        const grant = codes.get(field('code'));
        codes.delete(field('code'));
        const proof = createHash('sha256').update(field('code_verifier')).digest('base64url');
        const same = grant?.challenge === proof && grant.redirect === field('redirect_uri');
        if (!grant || !same || grant.client !== field('client_id') || grant.resource !== field('resource'))
          return { error: 'invalid_grant' };
        return await give(grant);
      }
      case 'refresh_token': {
        const grant = refreshes.get(field('refresh_token'));
        if (!grant || !refreshes.delete(field('refresh_token')) || grant.client !== field('client_id'))
          return { error: 'invalid_grant' };
        return await give(grant);
      }
      case 'urn:ietf:params:oauth:grant-type:token-exchange': {
        const subject = await jwtVerify(field('subject_token'), publicKey, { audience: 'gateway' }).catch(
          () => undefined,
        );
        if (!subject || field('subject_token_type') !== 'urn:ietf:params:oauth:token-type:access_token')
          return { error: 'invalid_grant' };
        const resource = field('resource') || field('audience');
        const grant = { account: `${subject.payload.sub}@upstream`, client: 'gateway', resource, scope: 'tools' };
        const issued_token_type = 'urn:ietf:params:oauth:token-type:access_token';
        return { ...(await give(grant, false)), issued_token_type };
      }
      default:
        return { error: 'unsupported_grant_type' };
    }
  }

  function authorize(query: URLSearchParams, response: ServerResponse): void {
    const field = (name: string) => query.get(name) ?? '';
    const known = clients.get(field('client_id'))?.includes(field('redirect_uri'));
    const account = field('account');
    if (!known || field('code_challenge_method') !== 'S256' || account === '')
      return void response.writeHead(400).end();
    const code = randomUUID();
    codes.set(code, {
      account,
      client: field('client_id'),
      resource: field('resource'),
      scope: field('scope') || 'tools',
      challenge: field('code_challenge'),
      redirect: field('redirect_uri'),
    });
    const answer = behaviour.refusesConsent ? { error: 'access_denied' } : { code };
    const back = new URLSearchParams({ ...answer, state: field('state'), iss: behaviour.iss ?? base });
    response.writeHead(302, { location: `${field('redirect_uri')}?${back}` }).end();
  }

  function forward(request: IncomingMessage, response: ServerResponse, account: string): void {
    const { authorization: _, ...headers } = request.headers;
    const forwarded = { ...headers, 'x-account': account };
    const on = send(upstream.url, { method: request.method ?? 'GET', headers: forwarded }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    on.once('error', () => response.destroy());
    response.once('close', () => on.destroy());
    request.pipe(on);
  }

  async function admitted(request: IncomingMessage, response: ServerResponse): Promise<string | undefined> {
    const [, held = ''] = /^Bearer (.+)$/.exec(request.headers.authorization ?? '') ?? [];
    if (held !== '') bearers.push(held);
    const found = await jwtVerify(held, publicKey, { audience: `${base}/mcp` }).catch(() => undefined);
    const good = found && found.payload.generation === generation && !revoked.includes(held);
    const scopes = String(found?.payload.scope ?? '').split(' ');
    if (good && behaviour.scope.split(' ').every((scope) => scopes.includes(scope))) return found.payload.sub;
    const metadata = `${base}/.well-known/oauth-protected-resource/mcp`;
    const error = good ? 'insufficient_scope' : 'invalid_token';
    response.setHeader(
      'www-authenticate',
      `Bearer error="${error}", resource_metadata="${metadata}", scope="${behaviour.scope}"`,
    );
    response.writeHead(good ? 403 : 401, { 'content-type': 'application/json' }).end('{}');
    return undefined;
  }

  const documents = (path: string): object | undefined =>
    ({
      '/.well-known/oauth-protected-resource/mcp': { resource: `${base}/mcp`, authorization_servers: [base] },
      '/.well-known/oauth-authorization-server': {
        issuer: base,
        authorization_endpoint: `${base}/authorize`,
        token_endpoint: `${base}/token`,
        registration_endpoint: `${base}/register`,
        revocation_endpoint: `${base}/revoke`,
        response_types_supported: ['code'],
        grant_types_supported: ['authorization_code', 'refresh_token'],
        code_challenge_methods_supported: ['S256'],
        token_endpoint_auth_methods_supported: ['none'],
        authorization_response_iss_parameter_supported: true,
      },
    })[path];

  const server = createServer(async (request, response) => {
    const at = new URL(request.url ?? '/', base);
    const json = (status: number, body: object) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (at.pathname === '/mcp') {
      const account = await admitted(request, response);
      if (account !== undefined) forward(request, response, account);
      return;
    }
    const document = documents(at.pathname);
    if (document) return json(200, document);
    if (at.pathname === '/authorize') return authorize(at.searchParams, response);
    let text = '';
    for await (const chunk of request.setEncoding('utf8')) text += chunk;
    if (at.pathname === '/register') {
      const { redirect_uris } = JSON.parse(text);
      const client_id = randomUUID();
      clients.set(client_id, redirect_uris);
      registered.push(...redirect_uris);
      return json(201, { client_id, redirect_uris, token_endpoint_auth_method: 'none' });
    }
    const form = new URLSearchParams(text);
    if (at.pathname === '/revoke') {
      revoked.push(form.get('token') ?? '');
      refreshes.delete(form.get('token') ?? '');
      return json(200, {});
    }
    if (at.pathname !== '/token') return json(404, {});
    forms.push(form);
    const other = behaviour.token?.(form);
    if (other) return void response.writeHead(other.status, { 'content-type': 'application/json' }).end(other.body);
    const answer = await token(form);
    return json('error' in answer ? 400 : 200, answer);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: `${base}/mcp`,
    issuer: base,
    upstream,
    behaviour,
    forms,
    registered,
    revoked,
    bearers,
    jwks,
    expire(all = false) {
      generation += 1;
      if (all) refreshes = new Map();
    },
    callerToken: (sub, aud, more = {}) => signed({ sub, aud, client_id: 'an-app', scope: 'mcp', ...more }),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await upstream.close();
    },
  };
}
