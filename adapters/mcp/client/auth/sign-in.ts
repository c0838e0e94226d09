/**
 * Credentials at one server from a person's OAuth sign-in: discovery, registration, the redirect to the authorization server and
 * back, refreshing, and asking for more scopes when they are needed. Without a person present it uses the tokens of an earlier
 * sign-in. Refuses answers that do not belong to its own request.
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
import { Fault, type Logger } from '../../../../src/index.ts';
import type { UpstreamAuth } from './auth.ts';
import { createOrigins, ownMetadata } from './origins.ts';

/** The state that is kept between starts. All of it is secret. */
export interface KeptSignIn {
  readonly tokens?: StoredOAuthTokens;
  /** Our registrations, by their issuer: no other authorization server gets them. */
  readonly clients?: Readonly<Record<string, StoredOAuthClientInformation>>;
  /** The issuer a person signed in at. Without a new sign-in, no other issuer gets our credentials. */
  readonly issuer?: string;
}
export interface Keeping<T = KeptSignIn> {
  read(): Promise<T | undefined>;
  write(kept: T): Promise<void>;
  /** Runs `work` under a lock that holds across processes. */
  alone<T>(work: () => Promise<T>): Promise<T>;
}

/** A sign-in whose person is away at the authorization server. Secret: with it and the code of the answer tokens can be had. */
export interface BegunSignIn {
  readonly state: string;
  readonly verifier_secret: string;
  readonly scope?: string;
  readonly metadata?: string;
  readonly found?: OAuthDiscoveryState;
}

export interface SignIn extends UpstreamAuth {
  /** Discovery and registration, up to the address to which a person has to go. Any process can complete it. */
  begin(status: number, challenge: string | undefined): Promise<{ readonly address: URL; readonly begun: BegunSignIn }>;
  /** The person is back, at this address: tokens are obtained. Throws where the answer does not belong to the sign-in. */
  complete(begun: BegunSignIn, back: URL): Promise<void>;
  refused(status: number, challenge: string | undefined): Promise<boolean>;
  /** Like `refused`, but throws the reason when it fails. */
  obtain(status: number, challenge: string | undefined): Promise<boolean>;
  /** The issuer and scope of the tokens. */
  granted(): Promise<{ readonly issuer?: string; readonly scope?: string } | undefined>;
}
/** Sends a person to an address, and resolves with the address they were redirected to. */
export type OpenSignInPage = (address: URL) => Promise<URL>;

export interface SignInOptions {
  readonly server: URL;
  /** Where the authorization server sends people back to. */
  readonly redirect: string;
  /** A registration made beforehand. */
  readonly client?: { readonly id: string; secret?(): Promise<string> };
  /** Where a document about us can be read, for servers that take that instead of a registration. */
  readonly document?: string;
  readonly scope?: string;
  /** Issuers that the configuration names; when absent, the issuer a person signs in at. */
  readonly issuers?: readonly string[];
  readonly keeping: Keeping;
  readonly visit?: OpenSignInPage;
  /** A person takes part, and goes to the address that `begin` returns. Implied by `visit`. */
  readonly person?: boolean;
  /** Makes the states by which the process that receives an answer finds its sign-in. */
  readonly newState?: () => string;
  /** What an operator can do when no person is present, for the log. */
  readonly advice?: string;
  readonly log: Logger;
}

const REREAD_MS = 5_000;

export function createSignIn(options: SignInOptions): SignIn {
  const { server, redirect, client, scope, keeping, visit, advice, log } = options;
  let kept: Promise<KeptSignIn> | undefined;
  const fresh = () => freshFlow(options.newState);
  const person = options.person === true || visit !== undefined;
  let flow = fresh();
  let asking: Promise<boolean> | undefined;
  /** Scopes that were requested because they were missing. Requesting them again would change nothing. */
  const widened = new Set<string>();

  let readAt = 0;
  /** The last change could not be saved, so what is held here is newer. */
  let unsaved = false;

  /** Read again after a while: another process may have signed in, refreshed or signed out. */
  const current = () => {
    if (kept && (unsaved || performance.now() - readAt < REREAD_MS)) return kept;
    readAt = performance.now();
    const reading = keeping.read().then((found) => found ?? {});
    kept = reading;
    reading.catch(() => {
      if (kept === reading) kept = undefined;
    });
    return reading;
  };
  const keep = async (change: KeptSignIn, forget?: 'tokens') => {
    const { tokens, ...others } = await current();
    const next = { ...others, ...(tokens && forget !== 'tokens' && { tokens }), ...change };
    kept = Promise.resolve(next);
    unsaved = true;
    // The tokens are valid in this process, even if they cannot be saved.
    await keeping.write(next).then(
      () => {
        [unsaved, readAt] = [false, performance.now()];
      },
      (cause) => log.warn({ err: cause, server: server.host }, 'what a sign-in gave us could not be kept'),
    );
  };

  /** Another process may have refreshed the tokens, which makes ours invalid. */
  async function renewedElsewhere(): Promise<boolean> {
    const held = await current();
    const now = await keeping.read();
    if (!now) return false;
    kept = Promise.resolve(now);
    return now.tokens !== undefined && now.tokens.access_token !== held.tokens?.access_token;
  }

  const pinned = async () => {
    const { issuer, tokens } = await current();
    return issuer ?? tokens?.issuer;
  };
  const origins = createOrigins({ server, issuers: options.issuers, pinned, person });

  const provider: OAuthClientProvider = {
    redirectUrl: redirect,
    async saveAuthorizationServerUrl(issuer) {
      await origins.admit(issuer);
      const before = await pinned();
      if (before === undefined || before === issuer) return;
      log.warn(
        { server: server.host, before, now: issuer },
        'the server names another authorization server than before',
      );
    },
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
        const before = await pinned();
        if (client.secret && !options.issuers && before !== undefined && context && before !== context.issuer) {
          throw new Fault('permission_denied', `our client secret is for ${before}, and not for ${context.issuer}`);
        }
        const secret = await client.secret?.();
        return { client_id: client.id, ...(secret !== undefined && { client_secret: secret }) };
      }
      const { clients = {} } = await current();
      const known = context && Object.hasOwn(clients, context.issuer) ? clients[context.issuer] : undefined;
      // A client that was registered with another redirect address would send people there. Refreshing sends no one anywhere.
      return known && (!person || sendsBackTo(known, redirect)) ? known : undefined;
    },
    async saveClientInformation(information, context) {
      const { clients } = await current();
      if (context) await keep({ clients: { ...clients, [context.issuer]: information } });
    },
    async tokens(context) {
      const { tokens } = await current();
      // Tokens of one authorization server are not shown to another.
      return context && tokens?.issuer !== undefined && tokens.issuer !== context.issuer ? undefined : tokens;
    },
    async saveTokens(tokens, context) {
      const issuer = context?.issuer ?? (tokens as StoredOAuthTokens).issuer;
      const stored = { ...tokens, scope: tokens.scope ?? flow.scope } as StoredOAuthTokens;
      await keep({ tokens: stored, ...(issuer !== undefined && { issuer }) });
    },
    async redirectToAuthorization(address) {
      await origins.requireKnown(address);
      flow.address = address;
    },
    saveCodeVerifier(verifier) {
      flow.verifier = verifier;
    },
    codeVerifier: () => flow.verifier,
    // Kept for one sign-in only: the server's authorization server may have changed by the next.
    saveDiscoveryState(found) {
      flow.found = found;
    },
    discoveryState: () => flow.found,
    async invalidateCredentials(what) {
      if (what === 'tokens' || what === 'all') await keep({}, 'tokens');
      if (what === 'client' || what === 'all') await keep({ clients: {} });
    },
  };

  /** One request at a time: a refresh token is valid for one use, and a second request would use it again. */
  async function obtain(status: number, challenge: string | undefined): Promise<boolean> {
    flow = fresh();
    const asked = await keeping.alone(async () => {
      if (await renewedElsewhere()) return undefined;
      return await ask(status, challenge);
    });
    if (asked === undefined || asked === 'AUTHORIZED') return true;
    return asked !== 'nothing to ask for' && (await visited(asked));
  }

  /** The request, when a person has to go to the authorization server to complete it. */
  async function ask(status: number, challenge: string | undefined) {
    const said = readChallenge(challenge);
    const metadata = ownMetadata(challenge, server);
    const granted = (await current()).tokens?.scope;
    let wanted = said.scope ?? (status === 403 ? undefined : scope);
    if (status === 403) {
      wanted = computeScopeUnion(granted, said.scope);
      const pointless = said.error !== 'insufficient_scope' || wanted === undefined || widened.has(wanted);
      if (pointless) return 'nothing to ask for' as const;
      widened.add(wanted as string);
    }
    flow.scope = wanted;
    const asked = {
      serverUrl: server,
      ...(wanted !== undefined && { scope: wanted }),
      ...(metadata && { resourceMetadataUrl: metadata }),
      fetchFn: origins.fetch,
      // A refreshed token has no more scopes than the one before it.
      forceReauthorization: status === 403 && isStrictScopeSuperset(wanted, granted),
    };
    return (await auth(provider, asked)) === 'AUTHORIZED' ? ('AUTHORIZED' as const) : asked;
  }

  async function visited(asked: Parameters<typeof auth>[1]): Promise<boolean> {
    if (!visit || !flow.address) {
      const fields = { server: server.host, ...(advice && { advice }) };
      log.warn(fields, 'this server requires a sign-in before its tools can be used: tollbridge mcp login');
      return false;
    }
    return await received(asked, await visit(flow.address));
  }

  /** The answer of the authorization server, as the address to which it sent the person. */
  async function received(asked: Parameters<typeof auth>[1], back: URL): Promise<boolean> {
    if (back.searchParams.get('state') !== flow.state) {
      throw new Fault('unauthenticated', 'the authorization server answered another question than ours');
    }
    const authorizationCode = back.searchParams.get('code');
    if (authorizationCode === null) {
      throw new Fault('unauthenticated', `sign-in refused: ${back.searchParams.get('error') ?? 'no code came back'}`);
    }
    const iss = back.searchParams.get('iss');
    const answer = { ...asked, authorizationCode, ...(iss !== null && { iss }) };
    return (await auth(provider, answer)) === 'AUTHORIZED';
  }

  return {
    obtain,
    async begin(status, challenge) {
      flow = fresh();
      const asked = await ask(status, challenge);
      const { address, state, verifier, scope: wanted, found } = flow;
      if (typeof asked === 'string' || !address) {
        throw new Fault('unauthenticated', 'the authorization server does not ask for a person');
      }
      const metadata = asked.resourceMetadataUrl?.href;
      const about = {
        ...(wanted !== undefined && { scope: wanted }),
        ...(metadata && { metadata }),
        ...(found && { found }),
      };
      return { address, begun: { state, verifier_secret: verifier, ...about } };
    },
    async complete({ state, verifier_secret: verifier, scope: wanted, metadata, found }, back) {
      flow = { state, verifier, address: undefined, scope: wanted, found };
      const asked = {
        serverUrl: server,
        ...(wanted !== undefined && { scope: wanted }),
        ...(metadata && { resourceMetadataUrl: new URL(metadata) }),
        fetchFn: origins.fetch,
      };
      if (!(await received(asked, back))) {
        throw new Fault('unauthenticated', 'the authorization server issued no token');
      }
    },
    async granted() {
      const { tokens } = await current();
      return (
        tokens && { ...(tokens.issuer && { issuer: tokens.issuer }), ...(tokens.scope && { scope: tokens.scope }) }
      );
    },
    async headers() {
      const { tokens } = await current();
      const headers: Record<string, string> = tokens ? { authorization: `Bearer ${tokens.access_token}` } : {};
      return headers;
    },
    /** However many requests were refused, one of them obtains new tokens. */
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

function freshFlow(newState: () => string = randomUUID): Flow {
  return { state: newState(), verifier: '', address: undefined, scope: undefined, found: undefined };
}

/** A registration without redirect addresses is not ours to check. */
function sendsBackTo(client: StoredOAuthClientInformation, redirect: string): boolean {
  const { redirect_uris: to } = client as { redirect_uris?: unknown };
  return !Array.isArray(to) || to.includes(redirect);
}

/** The parts of `WWW-Authenticate: Bearer ...` that matter here. */
function readChallenge(challenge = ''): { scope?: string; error?: string } {
  const part = (name: string) => new RegExp(`\\b${name}="([^"]*)"`).exec(challenge)?.[1];
  const [scope, error] = [part('scope'), part('error')];
  return {
    ...(scope !== undefined && { scope }),
    ...(error !== undefined && { error }),
  };
}
