/**
 * Our own credentials at one server: a token by its name in a vault, or what an authorization server gives us for them.
 * Nothing a caller sent is ever among them.
 */
import { auth, ClientCredentialsProvider } from '@modelcontextprotocol/client';
import type { Deps } from '../../src/index.ts';
import type { UpstreamConfig } from './config.ts';

export interface SouthAuth {
  headers(): Promise<Readonly<Record<string, string>>>;
  /** True when there are new credentials to try. */
  refused?(status: number, challenge: string | undefined): Promise<boolean>;
}

export function createSouthAuth(
  url: URL,
  config: UpstreamConfig,
  { secret, log }: Pick<Deps, 'secret' | 'log'>,
): SouthAuth {
  const { token, oauth } = config;
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
