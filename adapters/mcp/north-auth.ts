/**
 * Who is there, as a resource server asks: a token in the one header it belongs in, for us and for nobody else. Whoever has
 * none, or too little, is told where to get more. What proves a caller here goes no further.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Actor, type Authenticate, asFault } from '../../src/index.ts';
import { addressOf, bearerOf } from '../../src/wire/bearer.ts';
import { refuse } from './north-legacy.ts';
import { writeJson } from './reply.ts';

export interface NorthAuth {
  /** Undefined when it has been answered. */
  admit(request: IncomingMessage, response: ServerResponse, path: string): Promise<Actor | undefined>;
  /** True when it was a question about ourselves, and is answered. */
  described(request: IncomingMessage, response: ServerResponse): boolean;
}

export interface NorthAuthOptions {
  readonly authenticate: Authenticate;
  /** Where clients reach us. */
  readonly base: () => string;
  readonly path: string;
  readonly authorizationServers: readonly string[];
  /** Where calls are kept, when that is configured. */
  readonly workspace: string | undefined;
}

/** What a caller needs to be able to do anything here. Where its calls are kept is found for it unless that is configured. */
function scopesFor(workspace: string | undefined): readonly string[] {
  const always = ['sessions:write', 'sessions:read', 'tasks:write', 'tasks:read', 'skills:read'];
  return workspace === undefined ? [...always, 'workspaces:read'] : always;
}
const WELL_KNOWN = '/.well-known/oauth-protected-resource';

export function createNorthAuth(options: NorthAuthOptions): NorthAuth {
  const { authenticate, base, path, authorizationServers, workspace } = options;
  const scopes = scopesFor(workspace);

  function challenge(at: string, more: Readonly<Record<string, string>> = {}, wanted = scopes): string {
    const parts = { ...more, scope: wanted.join(' '), resource_metadata: `${base()}${WELL_KNOWN}${at}` };
    return `Bearer ${Object.entries(parts)
      .map(([name, value]) => `${name}="${value}"`)
      .join(', ')}`;
  }

  /** By the actor as it is known: whoever has been looked at is not looked at again for as long as that is the same. */
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
          // Whose token it is was shown; it only has to be one that may more.
          const wanted = [...new Set([...required.map(String), ...scopes])];
          response.setHeader('www-authenticate', challenge(at, { error: 'insufficient_scope' }, wanted));
          refuse(response, 403, -32000, message);
          return undefined;
        }
        const given = request.headers.authorization === undefined ? {} : { error: 'invalid_token' };
        response.setHeader('www-authenticate', challenge(at, given));
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
    described(request, response) {
      const asked = (request.url ?? '').split('?', 1)[0] ?? '';
      if (!asked.startsWith(WELL_KNOWN)) return false;
      const about = asked.slice(WELL_KNOWN.length);
      if (request.method !== 'GET' || (about !== '' && about !== path && !about.startsWith(`${path}/`))) return false;
      const document = {
        resource: `${base()}${about === '' ? path : about}`,
        ...(authorizationServers.length > 0 && { authorization_servers: authorizationServers }),
        bearer_methods_supported: ['header'],
        scopes_supported: scopes,
      };
      writeJson(response, 200, JSON.stringify(document), { 'cache-control': 'max-age=300' });
      return true;
    },
  };
}

function holds({ scopes }: Actor, scope: string): boolean {
  const [family] = scope.split(':');
  const declared = family === 'skills' || family === 'workspaces' ? ['resources:read', 'resources:*'] : [];
  return ['*', scope, `${family}:*`, ...declared].some((word) => scopes.includes(word));
}
