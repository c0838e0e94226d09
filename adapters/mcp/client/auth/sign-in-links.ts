/**
 * Sign-ins of callers, by a link to this gateway. A caller's request makes the link; the person who opens it is sent to the server's
 * authorization server and back, and is then shown a code. The tokens belong to the caller only once the caller returns this code over
 * its own, authenticated connection. So a link that another person opened gives nobody anything: that person's account is not put under
 * the caller's name, because the caller does not know the code, and the caller does not work with that person's account unnoticed.
 *
 * Everything is in memory, for a quarter of an hour: a restart means a new link.
 */
import { randomBytes, randomInt, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { asFault, Fault, type HttpHost, type Logger } from '../../../../src/index.ts';
import { isLoopback } from '../../../../src/transport/http/origin.ts';
import type { Caller } from '../../../../src/transport/outbound/caller-credentials.ts';
import { probe } from './probe.ts';
import type { Keeping, Kept, OpenSignInPage, SignIn } from './sign-in.ts';
import { markup, sendPage } from './sign-in-page.ts';

export interface SignInLinks {
  /** The link for this caller. Undefined where no browser can reach the gateway. */
  link(caller: Caller, why?: Refusal): string | undefined;
  /** The caller has the code: the tokens are now its own. Throws for a wrong code. */
  finish(caller: Caller, code: string): Promise<void>;
  close(): void;
}

/** The refusal that a new sign-in is to mend, where a server has refused a token. */
export interface Refusal {
  readonly status: number;
  readonly challenge: string | undefined;
}

export interface SignInLinksDeps {
  readonly http: HttpHost | undefined;
  readonly log: Logger;
  /** The server's configured name and address. */
  readonly name: string;
  readonly url: URL;
  /** A sign-in whose tokens go to `keeping`. */
  readonly signIn: (visit: OpenSignInPage, redirect: string, keeping: Keeping) => SignIn;
  /** What is stored for this caller already. */
  readonly stored: (caller: Caller) => Promise<Kept | undefined>;
  readonly store: (caller: Caller, kept: Kept) => Promise<void>;
}

interface Pending {
  readonly id: string;
  readonly caller: Caller;
  readonly expires: number;
  why: Refusal | undefined;
  /** The sign-in that one browser has begun. Another browser that opens the link begins anew. */
  begun: Begun | undefined;
  tries: number;
}

interface Begun {
  /** The secret in the cookie of the browser. */
  readonly browser: string;
  readonly state: string;
  readonly back: (address: URL) => void;
  readonly giveUp: (why: Error) => void;
  readonly over: Promise<Kept>;
  /** Set when the browser is back with tokens. */
  code?: string;
  kept?: Kept;
}

const LIFETIME_MS = 15 * 60_000;
const MOST_PENDING = 10_000;
const MOST_TRIES = 5;
const BASE = '/connect';
const BACK = 'back';
const COOKIE = 'tollbridge-connect';
/** Without letters and digits that people mistake for others. */
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ23456789';
const CODE_LENGTH = 9;

export function createSignInLinks(deps: SignInLinksDeps): SignInLinks {
  const { http, log, name, url } = deps;
  const pending = new Map<string, Pending>();
  const leave = http && claimPath(http, name, handle);
  const path = `${BASE}/${name}`;
  const redirect = () => `${http?.url}${path}/${BACK}`;

  function live(): Pending[] {
    const now = performance.now();
    for (const [id, each] of pending) if (each.expires <= now) drop(id, 'the link has expired');
    return [...pending.values()];
  }

  function drop(id: string, why: string): void {
    pending.get(id)?.begun?.giveUp(new Fault('unauthenticated', why));
    pending.delete(id);
  }

  function link(caller: Caller, why?: Refusal): string | undefined {
    if (!http?.url) return undefined;
    const known = live().find((each) => isSame(each.caller, caller) && !each.begun?.kept);
    if (known) known.why ??= why;
    const one = known ?? made(caller, why);
    return `${http.url}${path}/${one.id}`;
  }

  function made(caller: Caller, why: Refusal | undefined): Pending {
    const [oldest] = pending.keys();
    if (pending.size >= MOST_PENDING && oldest !== undefined) drop(oldest, 'there are too many sign-ins');
    const id = `${randomBytes(18).toString('base64url')}${http?.mark ?? ''}`;
    const one = { id, caller, expires: performance.now() + LIFETIME_MS, why, begun: undefined, tries: 0 };
    pending.set(id, one);
    return one;
  }

  async function finish(caller: Caller, code: string): Promise<void> {
    const mine = live().filter((each) => isSame(each.caller, caller) && each.begun?.code !== undefined);
    for (const each of mine) {
      const { begun } = each;
      if (!begun?.kept || !begun.code) continue;
      if (matches(plain(code), begun.code)) {
        pending.delete(each.id);
        await deps.store(caller, begun.kept);
        return;
      }
      each.tries += 1;
      if (each.tries >= MOST_TRIES) drop(each.id, 'too many wrong codes');
    }
    throw new Fault(
      'invalid_request',
      'this is not the code of a sign-in that is open; call without a code for a new link',
    );
  }

  function handle(request: IncomingMessage, response: ServerResponse): void {
    respond(request, response).catch((thrown) => {
      log.error({ err: thrown, server: name }, 'a sign-in page could not be served');
      if (!response.headersSent) failed(response, 500, 'Something went wrong inside the gateway.');
      else response.destroy();
    });
  }

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const at = new URL(request.url ?? '/', 'http://gateway');
    const last = at.pathname.slice(path.length + 1);
    if (last === BACK && request.method === 'GET') return await cameBack(request, response, at.searchParams);
    const one = live().find(({ id }) => matches(last, id));
    if (!one)
      return failed(response, 404, 'This link leads nowhere: it was used, or it is too old. Ask for a new one.');
    if (request.method === 'GET' || request.method === 'HEAD') return ask(response, one);
    if (request.method === 'POST') return await begin(response, one);
    failed(response, 405, 'Open the link and use its button.');
  }

  /** Opening the link does nothing yet, because programs open links too. */
  function ask(response: ServerResponse, { caller }: Pending): void {
    const body = markup`<p>The caller <b>${caller.id}</b> of this gateway asks to use <b>${name}</b> (${url.host}) with an account of yours.</p>
<p>Go on only if you are ${caller.id} and asked for this yourself. You will be sent to the sign-in page of ${name}, and then shown a code for your client.</p>
<form method="post"><button>Sign in at ${name}</button></form>`;
    sendPage(response, 200, `Sign in at ${name}`, body);
  }

  async function begin(response: ServerResponse, one: Pending): Promise<void> {
    one.begun?.giveUp(new Fault('unauthenticated', 'the sign-in was begun again'));
    one.begun = undefined;
    const browser = randomBytes(24).toString('base64url');
    let begun: { address: URL; begun: Begun };
    try {
      begun = await start(one, browser);
    } catch (cause) {
      log.warn({ err: cause, server: name, caller: one.caller.id }, 'a sign-in could not begin');
      return failed(response, 502, `The sign-in could not begin: ${reasonOf(cause)}`);
    }
    one.begun = begun.begun;
    const { href, protocol, hostname, host } = begun.address;
    if (protocol !== 'https:' && !isLoopback(hostname)) {
      drop(one.id, 'the sign-in page is not safe');
      return failed(response, 502, `${name} sends people to ${host}, which is no safe address.`);
    }
    const secure = http?.url.startsWith('https:') ? '; Secure' : '';
    // Lax: the browser comes back from another site.
    const cookie = `${COOKIE}=${browser}; Path=${path}; HttpOnly; SameSite=Lax; Max-Age=${LIFETIME_MS / 1000}${secure}`;
    const body = markup`<p>You are sent to <a href="${href}">${host}</a>.</p>`;
    sendPage(response, 200, `Sign in at ${name}`, body, { onward: href, cookie });
  }

  /** Discovery and registration, up to the address to which the person goes. */
  async function start({ caller, why }: Pending, browser: string): Promise<{ address: URL; begun: Begun }> {
    const going = deferred<URL>();
    const back = deferred<URL>();
    const before = (await deps.stored(caller)) ?? {};
    const { tokens: _, ...without } = before;
    // A sign-in for more scopes is for those of the old token too.
    let kept: Kept = why?.status === 403 ? before : without;
    const keeping: Keeping = {
      read: async () => kept,
      write: async (next) => {
        kept = next;
      },
      alone: (work) => work(),
    };
    const visit: OpenSignInPage = (address) => {
      going.resolve(address);
      return back.promise;
    };
    const signIn = deps.signIn(visit, redirect(), keeping);
    const { status, challenge } = why ?? { ...(await probe(url, AbortSignal.timeout(PROBE_MS))), status: 401 };
    const over = signIn.obtain(status, challenge).then((obtained) => {
      if (!obtained || !kept.tokens) throw new Fault('unauthenticated', 'the authorization server issued no token');
      return kept;
    });
    over.catch((cause) => going.reject(cause));
    const address = await going.promise;
    const state = address.searchParams.get('state') ?? '';
    return { address, begun: { browser, state, back: back.resolve, giveUp: back.reject, over } };
  }

  async function cameBack(request: IncomingMessage, response: ServerResponse, said: URLSearchParams): Promise<void> {
    const state = said.get('state') ?? '';
    const one = live().find(({ begun }) => begun && !begun.kept && matches(state, begun.state));
    const begun = one?.begun;
    if (!one || !begun)
      return failed(response, 400, 'This answer belongs to no sign-in that is open here. Begin again.');
    if (!matches(cookieOf(request), begun.browser)) {
      log.warn({ server: name, caller: one.caller.id }, 'a sign-in came back in another browser than it began in');
      drop(one.id, 'it came back in another browser');
      return failed(response, 403, 'This sign-in began in another browser. Nothing was stored; begin again.');
    }
    begun.back(new URL(`${redirect()}?${said}`));
    try {
      begun.kept = await begun.over;
    } catch (cause) {
      pending.delete(one.id);
      log.warn({ err: cause, server: name, caller: one.caller.id }, 'signing in came to nothing');
      return failed(response, 400, `You are not signed in: ${reasonOf(cause)}. Nothing was stored.`);
    }
    begun.code = Array.from({ length: CODE_LENGTH }, () => LETTERS[randomInt(LETTERS.length)]).join('');
    const shown = begun.code.replace(/(...)(?=.)/g, '$1-');
    const body = markup`<p>One step is left. Give this code to the client in which you asked for ${name}:</p><p><code>${shown}</code></p>
<p>Your account is then used for the caller <b>${one.caller.id}</b>. Give the code to nobody else: a person who asks you for it would use ${name} with your account.</p>`;
    sendPage(response, 200, `Signed in at ${name}`, body);
  }

  return {
    link,
    finish,
    close() {
      leave?.();
      for (const id of [...pending.keys()]) drop(id, 'the gateway is shutting down');
    },
  };
}

const PROBE_MS = 30_000;

interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (cause: unknown) => void;
}

function deferred<T>(): Deferred<T> {
  let settle: Pick<Deferred<T>, 'resolve' | 'reject'> | undefined;
  const promise = new Promise<T>((resolve, reject) => {
    settle = { resolve, reject };
  });
  // Not every one of these is waited for.
  promise.catch(() => {});
  return { promise, ...(settle as Pick<Deferred<T>, 'resolve' | 'reject'>) };
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** One claim for the servers of a port: a server whose section changed is opened before its predecessor is closed. */
const claimed = new WeakMap<HttpHost, Map<string, Handler>>();

function claimPath(http: HttpHost, name: string, handler: Handler): () => void {
  const handlers = claimed.get(http) ?? new Map<string, Handler>();
  if (!claimed.has(http)) {
    claimed.set(http, handlers);
    http.claim('mcp', [
      {
        path: `${BASE}/*`,
        listed: false,
        handler: (request, response, next) => {
          const server = (request.url ?? '').split('?', 1)[0]?.split('/')[2] ?? '';
          const found = handlers.get(server);
          if (found) found(request, response);
          else next();
        },
      },
    ]);
  }
  handlers.set(name, handler);
  return () => {
    if (handlers.get(name) === handler) handlers.delete(name);
  };
}

function failed(response: ServerResponse, status: number, why: string): void {
  sendPage(response, status, 'Not signed in', markup`<p>${why}</p>`);
}

/** A fault's words are ours; the words of a library may hold what a server sent. */
function reasonOf(cause: unknown): string {
  return cause instanceof Fault ? asFault(cause).message : 'the authorization server did not answer as it should';
}

function isSame(one: Caller, other: Caller): boolean {
  return one.id === other.id && one.tenant_id === other.tenant_id;
}

function matches(said: string, right: string): boolean {
  const [one, other] = [Buffer.from(said), Buffer.from(right)];
  return one.length === other.length && timingSafeEqual(one, other);
}

function plain(code: string): string {
  return code.toUpperCase().replace(/[^A-Z0-9]/g, '');
}

/** Undefined becomes empty, which matches nothing. Two cookies of one name: one of them was set by another page. */
function cookieOf({ headers }: IncomingMessage): string {
  const values = (headers.cookie ?? '').split(';').flatMap((part) => {
    const [left = '', right = ''] = part.trim().split('=', 2);
    return left === COOKIE ? [right] : [];
  });
  return values.length === 1 ? (values[0] ?? '') : '';
}
