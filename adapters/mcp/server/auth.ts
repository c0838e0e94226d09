/**
 * Authenticates callers as an OAuth resource server: a token in the Authorization header, issued for this gateway. A caller
 * without one, or with too few scopes, gets the address where tokens are issued. Its credentials are never forwarded.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Actor, type Authenticate, asFault, type HttpRoute } from '../../../src/index.ts';
import { addressOf, bearerOf } from '../../../src/transport/http/bearer.ts';
import { refuse, writeJson } from './transports/legacy-sessions.ts';

export interface RequestAuth {
  /** Undefined when it has been answered. */
  admit(request: IncomingMessage, response: ServerResponse, path: string): Promise<Actor | undefined>;
  /** The protected resource metadata, of the common address and of each server's. */
  readonly routes: readonly HttpRoute[];
}

export interface RequestAuthOptions {
  readonly authenticate: Authenticate;
  /** Where clients reach us. */
  readonly base: () => string;
  readonly path: string;
  readonly authorizationServers: readonly string[];
  /** The workspace of the tasks that record calls, when it is configured. */
  readonly workspace: string | undefined;
}

/** The scopes every caller needs. Unless the workspace is configured, finding it takes one more. */
function scopesFor(workspace: string | undefined): readonly string[] {
  const always = ['sessions:write', 'sessions:read', 'tasks:write', 'tasks:read', 'skills:read'];
  return workspace === undefined ? [...always, 'workspaces:read'] : always;
}
const WELL_KNOWN = '/.well-known/oauth-protected-resource';

export function createRequestAuth(options: RequestAuthOptions): RequestAuth {
  const { authenticate, base, path, authorizationServers, workspace } = options;
  const scopes = scopesFor(workspace);

  function challenge(at: string, more: Readonly<Record<string, string>> = {}, wanted = scopes): string {
    const parts = { ...more, scope: wanted.join(' '), resource_metadata: `${base()}${WELL_KNOWN}${at}` };
    return `Bearer ${Object.entries(parts)
      .map(([name, value]) => `${name}="${value}"`)
      .join(', ')}`;
  }

  function describe(request: IncomingMessage, response: ServerResponse): void {
    const about = (request.url ?? '').split('?', 1)[0]?.slice(WELL_KNOWN.length);
    const document = {
      resource: `${base()}${about || path}`,
      ...(authorizationServers.length > 0 && { authorization_servers: authorizationServers }),
      bearer_methods_supported: ['header'],
      scopes_supported: scopes,
    };
    writeJson(response, 200, JSON.stringify(document), { 'cache-control': 'max-age=300' });
  }

  /** Admitted actors: the check is not repeated while `authenticate` returns the same object. */
  const admitted = new WeakMap<Actor, Actor>();

  return {
    async admit(request, response, at) {
      let actor: Actor;
      try {
        actor = await authenticate(bearerOf(request), addressOf(request));
      } catch (thrown) {
        const { kind, message, details } = asFault(thrown);
        if (kind !== 'unauthenticated') {
          refuse(response, 503, -32603, message);
          return undefined;
        }
        const required = details?.required_scopes;
        if (Array.isArray(required)) {
          // The token is valid; the caller needs one with more scopes.
          const wanted = [...new Set([...required.map(String), ...scopes])];
          response.setHeader('www-authenticate', challenge(at, { error: 'insufficient_scope' }, wanted));
          refuse(response, 403, -32000, message);
          return undefined;
        }
        const error = request.headers.authorization === undefined ? {} : { error: 'invalid_token' };
        response.setHeader('www-authenticate', challenge(at, error));
        refuse(response, 401, -32000, message);
        return undefined;
      }
      const known = admitted.get(actor);
      if (known) return known;
      const missing = scopes.filter((scope) => !holds(actor, scope));
      if (missing.length === 0) {
        const here: Actor = { ...actor, door: 'mcp' };
        admitted.set(actor, here);
        return here;
      }
      response.setHeader('www-authenticate', challenge(at, { error: 'insufficient_scope' }));
      refuse(response, 403, -32000, `${actor.id} does not have the scope ${missing.join(' ')}`);
      return undefined;
    },
    routes: [WELL_KNOWN, `${WELL_KNOWN}${path}/*`].map((at) => ({ path: at, methods: ['GET'], handler: describe })),
  };
}

function holds({ scopes }: Actor, scope: string): boolean {
  const [family] = scope.split(':');
  const declared = family === 'skills' || family === 'workspaces' ? ['resources:read', 'resources:*'] : [];
  return ['*', scope, `${family}:*`, ...declared].some((word) => scopes.includes(word));
}
