/**
 * A server of tools that wants a person to have signed in, and its authorization server: registration, PKCE, resource indicators,
 * `iss` in the answer, and refresh tokens that are good for one use. One that is used twice ends everything it came from, as
 * the security advice for such servers has it.
 */
import { createHash, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { openUpstream, type Upstream } from './upstream.ts';

export interface Guarded {
  readonly url: string;
  readonly upstream: Upstream;
  /** What happened at the authorization server, in order. */
  readonly seen: string[];
  /** No access token that was given out so far is good any more. */
  expire(): void;
  close(): Promise<void>;
}

interface Grant {
  readonly challenge: string;
  readonly client: string;
  readonly redirect: string;
  readonly resource: string;
  readonly scope: string;
}

export interface GuardedOptions {
  /** What comes back with the code. */
  readonly iss?: string;
  readonly refuses?: boolean;
}

export async function openGuarded(options: GuardedOptions = {}): Promise<Guarded> {
  const upstream = await openUpstream();
  const seen: string[] = [];
  const codes = new Map<string, Grant>();
  const clients = new Map<string, readonly string[]>();
  let good = new Set<string>();
  let refreshes = new Set<string>();
  const spent = new Set<string>();
  let base = '';

  function give(resource: string, scope: string) {
    const [access_token, refresh_token] = [`access-${randomUUID()}`, `refresh-${randomUUID()}`];
    good.add(access_token);
    refreshes.add(refresh_token);
    seen.push(`gave a token for ${resource.replace(base, '')}`);
    return { access_token, refresh_token, token_type: 'Bearer', expires_in: 3600, scope };
  }

  function token(form: URLSearchParams): object {
    const field = (name: string) => form.get(name) ?? '';
    if (field('grant_type') === 'authorization_code') {
      const grant = codes.get(field('code'));
      codes.delete(field('code'));
      const proof = createHash('sha256').update(field('code_verifier')).digest('base64url');
      const same =
        grant?.challenge === proof && grant.redirect === field('redirect_uri') && grant.client === field('client_id');
      if (!grant || !same || grant.resource !== field('resource')) return { error: 'invalid_grant' };
      return give(grant.resource, grant.scope);
    }
    const used = field('refresh_token');
    if (spent.has(used)) {
      seen.push('a refresh token was used twice: everything is revoked');
      good = new Set();
      refreshes = new Set();
    }
    if (!refreshes.delete(used)) return { error: 'invalid_grant' };
    spent.add(used);
    seen.push('refreshed');
    return give(field('resource'), 'tools');
  }

  function authorize(query: URLSearchParams, response: ServerResponse): void {
    const field = (name: string) => query.get(name) ?? '';
    const known = clients.get(field('client_id'))?.includes(field('redirect_uri'));
    if (!known || field('code_challenge_method') !== 'S256') return void response.writeHead(400).end();
    const code = randomUUID();
    codes.set(code, {
      challenge: field('code_challenge'),
      client: field('client_id'),
      redirect: field('redirect_uri'),
      resource: field('resource'),
      scope: field('scope') || 'tools',
    });
    const answer = options.refuses ? { error: 'access_denied' } : { code };
    const back = new URLSearchParams({ ...answer, state: field('state'), iss: options.iss ?? base });
    response.writeHead(302, { location: `${field('redirect_uri')}?${back}` }).end();
  }

  function forward(request: IncomingMessage, response: ServerResponse): void {
    const { authorization: _, ...headers } = request.headers;
    const on = send(upstream.url, { method: request.method ?? 'GET', headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    on.once('error', () => response.destroy());
    response.once('close', () => on.destroy());
    request.pipe(on);
  }

  const documents = (path: string): object | undefined =>
    ({
      '/.well-known/oauth-protected-resource/mcp': {
        resource: `${base}/mcp`,
        authorization_servers: [base],
        scopes_supported: ['tools'],
      },
      '/.well-known/oauth-authorization-server': {
        issuer: base,
        authorization_endpoint: `${base}/authorize`,
        token_endpoint: `${base}/token`,
        registration_endpoint: `${base}/register`,
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
      const [, held = ''] = /^Bearer (.+)$/.exec(request.headers.authorization ?? '') ?? [];
      if (good.has(held)) return forward(request, response);
      const metadata = `${base}/.well-known/oauth-protected-resource/mcp`;
      response.setHeader(
        'www-authenticate',
        `Bearer error="invalid_token", resource_metadata="${metadata}", scope="tools"`,
      );
      return json(401, { error: 'invalid_token' });
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
      seen.push('registered a person');
      return json(201, { client_id, redirect_uris, token_endpoint_auth_method: 'none' });
    }
    if (at.pathname !== '/token') return json(404, {});
    const answer = token(new URLSearchParams(text));
    return json('error' in answer ? 400 : 200, answer);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: `${base}/mcp`,
    upstream,
    seen,
    expire() {
      good = new Set();
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await upstream.close();
    },
  };
}
