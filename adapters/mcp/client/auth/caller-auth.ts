/**
 * The credentials of one caller at one server, from the source that the configuration names: the caller's own sign-in, a token that is
 * exchanged for the caller's, or a secret of the caller. Each of them fails for a caller that has none.
 */
import { type Actor, type Deps, Fault, type HttpHost } from '../../../../src/index.ts';
import {
  type CredentialOwner,
  callerName,
  callerOf,
  callerToken,
} from '../../../../src/transport/outbound/caller-credentials.ts';
import { authorityOf, createTokenExchange, incomingToken } from '../../../../src/transport/outbound/token-exchange.ts';
import type { UpstreamConfig } from '../../config.ts';
import { keepingIn, keptAs, signedIn, type UpstreamAuth } from './auth.ts';
import { entriesInMemory, type LinkEntry, type Pending } from './open-links.ts';
import { createSignInLinks, type SignInRefusal } from './sign-in-links.ts';
import { SignInRequired } from './sign-in-required.ts';

export type CallerAuthDeps = Pick<Deps, 'secret' | 'keep' | 'alone' | 'log' | 'clock' | 'learn'> & {
  /** Absent in a process that serves no port. */
  readonly http?: HttpHost;
};

/** The credentials of one caller. */
export interface CallerAuth extends UpstreamAuth {
  /** Throws where the caller has to do something before the server can be asked anything. */
  require(): Promise<void>;
  /** A sign-in that a server has refused since, for some request. */
  readonly refusal?: SignInRequired | undefined;
  /** A later request of the caller: its access token may be newer. */
  seen?(actor: Actor): void;
  /** Completes a sign-in with the code that its page showed. Absent where callers do not sign in. */
  finish?(code: string): Promise<void>;
}

export interface CallerSource {
  /** The kind of credentials, for the record. */
  readonly kind: 'sign_in' | 'exchange' | 'caller_tokens';
  /** Names what is kept for these credentials: no two callers share one, and no two rights of one caller. */
  keyOf(actor: Actor): string;
  authOf(actor: Actor): CallerAuth;
  close(): void;
}

/** The vault entry for the tokens of one caller. */
export function callerKeptAs(
  server: string,
  config: NonNullable<UpstreamConfig['sign_in']>,
  caller: CredentialOwner,
): string {
  return `${keptAs(server, config)}.${callerName(caller)}`;
}

export function createCallerSource(name: string, config: UpstreamConfig, deps: CallerAuthDeps): CallerSource {
  const url = new URL(config.url as string);
  const { sign_in, exchange, caller_tokens } = config;
  if (exchange) return exchanging(name, url, exchange, deps);
  if (caller_tokens) {
    return {
      kind: 'caller_tokens',
      keyOf: plainKey,
      authOf(actor) {
        const headers = async () => bearer(await callerToken(name, caller_tokens, callerOf(actor), deps.secret));
        return { headers, require: async () => void (await headers()) };
      },
      close() {},
    };
  }
  return signingIn(name, url, sign_in ?? {}, deps);
}

function exchanging(
  name: string,
  url: URL,
  config: NonNullable<UpstreamConfig['exchange']>,
  deps: CallerAuthDeps,
): CallerSource {
  const exchange = createTokenExchange(config, url.href, deps);
  return {
    kind: 'exchange',
    keyOf(actor) {
      const token = tokenIn(actor);
      return `${plainKey(actor)} ${token === undefined ? '' : authorityOf(token)}`;
    },
    authOf(actor) {
      let latest = actor;
      let used: string | undefined;
      const headers = async () => {
        used = await exchange.token(incomingToken(name, latest));
        return bearer(used);
      };
      return {
        headers,
        require: async () => void (await headers()),
        async refused(status) {
          return status === 401 && (await exchange.again(incomingToken(name, latest), used));
        },
        seen(next) {
          latest = next;
        },
      };
    },
    close() {},
  };

  function tokenIn(actor: Actor): string | undefined {
    try {
      return incomingToken(name, actor);
    } catch {
      return undefined;
    }
  }
}

function signingIn(
  name: string,
  url: URL,
  config: NonNullable<UpstreamConfig['sign_in']>,
  deps: CallerAuthDeps,
): CallerSource {
  const keepingOf = (caller: CredentialOwner) => keepingIn(callerKeptAs(name, config, caller), deps);
  const common = keepingIn(keptAs(name, config), deps);
  const links = createSignInLinks({
    http: deps.http,
    log: deps.log,
    name,
    url,
    clock: deps.clock,
    signIn: (newState, redirect, keeping) =>
      signedIn(name, url, { ...config, redirect }, { ...deps, person: true, newState }, keeping),
    entryOf: deps.keep ? (reference) => linksIn(`${keptAs(name, config)}.link.${reference}`, deps) : entriesInMemory(),
    async stored(caller) {
      const own = await keepingOf(caller).read();
      // The gateway registers itself once, not once for each caller. Of the common entry nothing else is used.
      const { clients } = (await common.read()) ?? {};
      return { ...own, ...((clients || own?.clients) && { clients: { ...clients, ...own?.clients } }) };
    },
    async store(caller, kept) {
      if (!deps.keep) throw new Fault('unavailable', 'no vault can be written: add one to vaults, with provider: file');
      const keeping = keepingOf(caller);
      await keeping.alone(() => keeping.write(kept));
      await common.alone(async () => {
        const before = (await common.read()) ?? {};
        await common.write({ ...before, clients: { ...before.clients, ...kept.clients } });
      });
    },
  });

  return {
    kind: 'sign_in',
    keyOf: plainKey,
    authOf(actor) {
      const caller = callerOf(actor);
      const keeping = keepingOf(caller);
      const make = () => signedIn(name, url, { ...config }, deps, keeping);
      let signIn = make();
      let refusal: SignInRequired | undefined;
      const needed = async (why?: SignInRefusal) => new SignInRequired(name, caller, await links.link(caller, why));
      const headers = async () => {
        const found = await signIn.headers();
        if (!found.authorization) throw await needed();
        return found;
      };
      return {
        headers,
        require: async () => void (await headers()),
        get refusal() {
          return refusal;
        },
        async refused(status, challenge) {
          if (await signIn.refused(status, challenge)) return true;
          const scopes = status === 403 && /\berror="insufficient_scope"/.test(challenge ?? '');
          if (status !== 401 && !scopes) return false;
          deps.log.info({ server: name, caller: caller.id }, 'a server no longer accepts the sign-in of a caller');
          refusal = await needed({ status, challenge });
          throw refusal;
        },
        async finish(code) {
          await links.finish(caller, code);
          signIn = make();
          refusal = undefined;
        },
      };
    },
    close: links.close,
  };
}

/** The open links of one caller, as a vault entry. */
function linksIn(key: string, deps: CallerAuthDeps): LinkEntry {
  const keeping = keepingIn<{ readonly links: readonly Pending[] }>(key, deps);
  return {
    read: async () => (await keeping.read())?.links ?? [],
    write: (links) => keeping.write({ links }),
    alone: keeping.alone,
  };
}

function plainKey(actor: Actor): string {
  const { id, tenant_id } = callerOf(actor);
  return JSON.stringify([tenant_id ?? null, id]);
}

function bearer(token: string): Readonly<Record<string, string>> {
  return { authorization: `Bearer ${token}` };
}
