/**
 * Our own credentials at one server: a token by its name in a vault, or what an authorization server gives us for them.
 * Nothing a caller sent is ever among them.
 */
import { auth, ClientCredentialsProvider } from '@modelcontextprotocol/client';
import { asFault, type Deps } from '../../src/index.ts';
import type { UpstreamConfig } from './config.ts';
import { createSignIn, type Visit } from './south-sign-in.ts';

export interface SouthAuth {
  headers(): Promise<Readonly<Record<string, string>>>;
  /** True when there are new credentials to try. */
  refused?(status: number, challenge: string | undefined): Promise<boolean>;
}

export interface SouthDeps extends Pick<Deps, 'secret' | 'keep' | 'log'> {
  /** Somebody who can be sent to an authorization server now. */
  readonly visit?: Visit;
}

/** Nothing has to listen there until somebody signs in. */
export const REDIRECT = 'http://127.0.0.1:4320/mcp/signed-in';

export function createSouthAuth(url: URL, config: UpstreamConfig, deps: SouthDeps): SouthAuth {
  const { secret, log } = deps;
  const { token, oauth } = config;
  if (config.sign_in) return signedIn(url, config.sign_in, deps);
  if (!oauth) {
    return {
      async headers() {
        const headers: Record<string, string> = token ? { authorization: `Bearer ${await secret(token)}` } : {};
        return headers;
      },
    };
  }
  let ready: Promise<ClientCredentialsProvider> | undefined;
  const provider = () => {
    ready ??= secret(oauth.client_secret).then(
      (clientSecret) =>
        new ClientCredentialsProvider({
          clientId: oauth.client_id,
          clientSecret,
          ...(oauth.scope && { scope: oauth.scope }),
        }),
    );
    return ready;
  };
  return {
    async headers() {
      const tokens = await (await provider()).tokens();
      const headers: Record<string, string> = tokens ? { authorization: `Bearer ${tokens.access_token}` } : {};
      return headers;
    },
    async refused(_status, challenge) {
      try {
        const scope = /\bscope="([^"]*)"/.exec(challenge ?? '')?.[1];
        const metadata = /\bresource_metadata="([^"]*)"/.exec(challenge ?? '')?.[1];
        const outcome = await auth(await provider(), {
          serverUrl: url,
          ...(scope && { scope }),
          ...(metadata && { resourceMetadataUrl: new URL(metadata) }),
        });
        return outcome === 'AUTHORIZED';
      } catch (cause) {
        log.warn({ err: cause, server: url.host }, 'an authorization server gave us nothing');
        return false;
      }
    },
  };
}

function signedIn(server: URL, config: NonNullable<UpstreamConfig['sign_in']>, deps: SouthDeps): SouthAuth {
  const { secret, keep, visit, log } = deps;
  const { kept_as, client_id, client_secret, client_document, scope, redirect = REDIRECT } = config;
  return createSignIn({
    server,
    redirect,
    log,
    ...(scope && { scope }),
    ...(client_document && { document: client_document }),
    ...(client_id && { client: { id: client_id, ...(client_secret && { secret: () => secret(client_secret) }) } }),
    ...(visit && { visit }),
    keeping: {
      async read() {
        const text = await secret(kept_as).catch((cause) => {
          if (asFault(cause).kind === 'not_found') return undefined;
          throw cause;
        });
        return text === undefined ? undefined : JSON.parse(text);
      },
      async write(kept) {
        await keep?.(kept_as, JSON.stringify(kept));
      },
    },
  });
}
