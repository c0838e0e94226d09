/**
 * Our credentials at one server, given to us by a person who signed in there: discovery, registration, the way to the
 * authorization server and back, refreshing, and asking for more when more is needed. Without anyone to send there it
 * lives on what was given before. Refuses answers that are not to its own question.
 */
import { randomUUID } from 'node:crypto';
import {
  auth,
  computeScopeUnion,
  isStrictScopeSuperset,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  type StoredOAuthClientInformation,
  type StoredOAuthTokens,
} from '@modelcontextprotocol/client';
import { Fault, type Logger } from '../../src/index.ts';
import type { SouthAuth } from './south-auth.ts';

/** What is kept between one life and the next. A secret, all of it. */
export interface Kept {
  readonly tokens?: StoredOAuthTokens;
  /** Our registrations, by who issued them: another authorization server gets none of them. */
  readonly clients?: Readonly<Record<string, StoredOAuthClientInformation>>;
}
export interface Keeping {
  read(): Promise<Kept | undefined>;
  write(kept: Kept): Promise<void>;
}
/** Sends a person to an address, and comes back with the one they were sent on to. */
export type Visit = (address: URL) => Promise<URL>;

export interface SignInOptions {
  readonly server: URL;
  /** Where the authorization server sends people back to. */
  readonly redirect: string;
  /** A registration made beforehand. */
  readonly client?: { readonly id: string; secret?(): Promise<string> };
  /** Where a document about us can be read, for servers that take that instead of a registration. */
  readonly document?: string;
  readonly scope?: string;
  readonly keeping: Keeping;
  readonly visit?: Visit;
  readonly log: Logger;
}

export function createSignIn(options: SignInOptions): SouthAuth {
  const { server, redirect, client, scope, keeping, visit, log } = options;
  let kept: Promise<Kept> | undefined;
  let flow = freshFlow();
  let asking: Promise<boolean> | undefined;
  /** Scopes that were asked for because they were lacking. Asking for the same again would change nothing. */
  const widened = new Set<string>();

  const current = () => {
    kept ??= keeping.read().then((found) => found ?? {});
    return kept;
  };
  const keep = async (change: Kept) => {
    const next = { ...(await current()), ...change };
    kept = Promise.resolve(next);
    await keeping.write(next);
  };

  const provider: OAuthClientProvider = {
    redirectUrl: redirect,
    ...(options.document && { clientMetadataUrl: options.document }),
    clientMetadata: {
      client_name: 'Tollbridge',
      redirect_uris: [redirect],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      ...(scope && { scope }),
    },
    state: () => flow.state,
    async clientInformation(context) {
      if (client) {
        const secret = await client.secret?.();
        return { client_id: client.id, ...(secret !== undefined && { client_secret: secret }) };
      }
      const { clients = {} } = await current();
      return context ? clients[context.issuer] : undefined;
    },
    async saveClientInformation(information, context) {
      const { clients } = await current();
      if (context) await keep({ clients: { ...clients, [context.issuer]: information } });
    },
    async tokens(context) {
      const { tokens } = await current();
      // Tokens of one authorization server are nothing to show another.
      return context && tokens?.issuer !== undefined && tokens.issuer !== context.issuer ? undefined : tokens;
    },
    saveTokens: (tokens) => keep({ tokens: { ...tokens, scope: tokens.scope ?? flow.scope } as StoredOAuthTokens }),
    redirectToAuthorization(address) {
      flow.address = address;
    },
    saveCodeVerifier(verifier) {
      flow.verifier = verifier;
    },
    codeVerifier: () => flow.verifier,
    // Only for the way there and back: where the server gets its tokens from may have changed by next time.
    saveDiscoveryState(found) {
      flow.found = found;
    },
    discoveryState: () => flow.found,
    async invalidateCredentials(what) {
      if (what === 'tokens' || what === 'all') await keep({ tokens: undefined } as unknown as Kept);
      if (what === 'client' || what === 'all') await keep({ clients: {} });
    },
  };

  async function obtain(status: number, challenge: string | undefined): Promise<boolean> {
    flow = freshFlow();
    const said = readChallenge(challenge);
    const granted = (await current()).tokens?.scope;
    let wanted = said.scope ?? (status === 403 ? undefined : scope);
    if (status === 403) {
      wanted = computeScopeUnion(granted, said.scope);
      if (said.error !== 'insufficient_scope' || wanted === undefined || widened.has(wanted)) return false;
      widened.add(wanted);
    }
    flow.scope = wanted;
    const asked = {
      serverUrl: server,
      ...(wanted !== undefined && { scope: wanted }),
      ...(said.metadata && { resourceMetadataUrl: said.metadata }),
      // A refreshed token has no more scopes than the one before it.
      forceReauthorization: status === 403 && isStrictScopeSuperset(wanted, granted),
    };
    if ((await auth(provider, asked)) === 'AUTHORIZED') return true;
    if (!visit || !flow.address) {
      log.warn({ server: server.host }, 'somebody has to sign in at this server before its tools can be used');
      return false;
    }
    const back = await visit(flow.address);
    if (back.searchParams.get('state') !== flow.state) {
      throw new Fault('unauthenticated', 'the authorization server answered another question than ours');
    }
    const authorizationCode = back.searchParams.get('code');
    if (authorizationCode === null) {
      throw new Fault('unauthenticated', `nobody was let in: ${back.searchParams.get('error') ?? 'no code came back'}`);
    }
    const iss = back.searchParams.get('iss');
    const answer = { ...asked, authorizationCode, ...(iss !== null && { iss }) };
    return (await auth(provider, answer)) === 'AUTHORIZED';
  }

  return {
    async headers() {
      const { tokens } = await current();
      const headers: Record<string, string> = tokens ? { authorization: `Bearer ${tokens.access_token}` } : {};
      return headers;
    },
    /** However many requests were refused, one goes and asks. */
    refused(status, challenge) {
      asking ??= obtain(status, challenge)
        .catch((cause) => {
          log.warn({ err: cause, server: server.host }, 'signing in came to nothing');
          return false;
        })
        .finally(() => {
          asking = undefined;
        });
      return asking;
    },
  };
}

interface Flow {
  readonly state: string;
  verifier: string;
  address: URL | undefined;
  scope: string | undefined;
  found: OAuthDiscoveryState | undefined;
}

function freshFlow(): Flow {
  return { state: randomUUID(), verifier: '', address: undefined, scope: undefined, found: undefined };
}

/** The parts of `WWW-Authenticate: Bearer ...` that matter here. */
function readChallenge(challenge = ''): { scope?: string; error?: string; metadata?: URL } {
  const part = (name: string) => new RegExp(`\\b${name}="([^"]*)"`).exec(challenge)?.[1];
  const [scope, error, metadata] = [part('scope'), part('error'), part('resource_metadata')];
  return {
    ...(scope !== undefined && { scope }),
    ...(error !== undefined && { error }),
    ...(metadata !== undefined && URL.canParse(metadata) && { metadata: new URL(metadata) }),
  };
}
