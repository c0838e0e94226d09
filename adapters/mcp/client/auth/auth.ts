/**
 * The gateway's own credentials at one server: a token by its name in a vault, or tokens of an authorization server. They never
 * include anything a caller sent.
 */
import { auth, ClientCredentialsProvider } from '@modelcontextprotocol/client';
import { asFault, type Deps, Fault } from '../../../../src/index.ts';
import type { UpstreamConfig } from '../../config.ts';
import { createOrigins, ownMetadata } from './origins.ts';
import { createSignIn, type Keeping, type KeptSignIn, type OpenSignInPage, type SignIn } from './sign-in.ts';

export interface UpstreamAuth {
  headers(): Promise<Readonly<Record<string, string>>>;
  /** True when there are new credentials to try. */
  refused?(status: number, challenge: string | undefined): Promise<boolean>;
}

export interface UpstreamAuthDeps extends Pick<Deps, 'secret' | 'keep' | 'alone' | 'log'> {
  /** Credentials of one caller, instead of those of the configuration. */
  readonly auth?: UpstreamAuth;
  /** Opens a sign-in page for a person, where one is present. */
  readonly visit?: OpenSignInPage;
  readonly person?: boolean;
  /** Makes the states of sign-ins. */
  readonly newState?: () => string;
}

/** The vault entry for the tokens of a sign-in, unless the configuration names another. */
export function keptAs(server: string, { kept_as }: NonNullable<UpstreamConfig['sign_in']>): string {
  return kept_as ?? `mcp-${server}`;
}

/** The advice for servers that require a sign-in. */
export function advice(server: string): string {
  return `sign in there with: tollbridge mcp login ${server}`;
}

/** The redirect address. A listener is needed there only during a sign-in. */
export const REDIRECT = 'http://127.0.0.1:4320/mcp/signed-in';

export function createUpstreamAuth(
  server: string,
  url: URL,
  config: UpstreamConfig,
  deps: UpstreamAuthDeps,
): UpstreamAuth {
  const { secret, log } = deps;
  const { token, oauth } = config;
  if (deps.auth) return deps.auth;
  if (config.sign_in) return signedIn(server, url, config.sign_in, deps);
  if (!oauth) {
    return {
      async headers() {
        const headers: Record<string, string> = token ? { authorization: `Bearer ${await secret(token)}` } : {};
        return headers;
      },
    };
  }
  const origins = createOrigins({ server: url, issuers: oauth.issuers, person: false });
  let ready: Promise<ClientCredentialsProvider> | undefined;
  const provider = () => {
    ready ??= secret(oauth.client_secret).then((clientSecret) => {
      const { client_id: clientId, scope } = oauth;
      const made = new ClientCredentialsProvider({ clientId, clientSecret, ...(scope && { scope }) });
      // The SDK calls this with the issuer before it sends credentials there.
      return Object.assign(made, { saveAuthorizationServerUrl: (issuer: string) => origins.admit(issuer) });
    });
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
        const metadata = ownMetadata(challenge, url);
        const outcome = await auth(await provider(), {
          serverUrl: url,
          ...(scope && { scope }),
          ...(metadata && { resourceMetadataUrl: metadata }),
          fetchFn: origins.fetch,
        });
        return outcome === 'AUTHORIZED';
      } catch (cause) {
        log.warn({ err: cause, server: url.host }, 'an authorization server gave us nothing');
        return false;
      }
    },
  };
}

export function signedIn(
  name: string,
  server: URL,
  config: NonNullable<UpstreamConfig['sign_in']>,
  deps: UpstreamAuthDeps,
  keeping = keepingIn(keptAs(name, config), deps),
): SignIn {
  const { secret, visit, person, newState, log } = deps;
  const { client_id, client_secret, client_document, scope, issuers, redirect = REDIRECT } = config;
  return createSignIn({
    server,
    redirect,
    log,
    advice: advice(name),
    ...(scope && { scope }),
    ...(issuers && { issuers }),
    ...(client_document && { document: client_document }),
    ...(client_id && { client: { id: client_id, ...(client_secret && { secret: () => secret(client_secret) }) } }),
    ...(visit && { visit }),
    ...(person && { person }),
    ...(newState && { newState }),
    keeping,
  });
}

export function keepingIn<T = KeptSignIn>(key: string, { secret, keep, alone }: UpstreamAuthDeps): Keeping<T> {
  return {
    async read() {
      const text = await secret(key).catch((cause) => {
        if (asFault(cause).kind === 'not_found') return undefined;
        throw cause;
      });
      return text === undefined ? undefined : JSON.parse(text);
    },
    async write(kept) {
      if (!keep) throw new Fault('unavailable', 'no vault can be written');
      await keep(key, JSON.stringify(kept));
    },
    alone: async (work) => await (alone ? alone(key, work) : work()),
  };
}
