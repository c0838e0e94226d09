/**
 * Sign-ins of callers, by a link to this gateway. A caller's request makes the link; the person who opens it is sent to the server's
 * authorization server and back, and is then shown a code. The tokens belong to the caller only once the caller returns this code over
 * its own, authenticated connection. So a link that another person opened gives nobody anything: that person's account is not put under
 * the caller's name, because the caller does not know the code, and the caller does not work with that person's account unnoticed.
 *
 * A sign-in takes a quarter of an hour at most. Its state is in `open-links.ts`, so each step may happen in another process.
 */
import { randomBytes, randomInt, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { asFault, type Clock, Fault, type HttpHost, type Logger } from '../../../../src/index.ts';
import { isLoopback } from '../../../../src/transport/http/origin.ts';
import type { CredentialOwner } from '../../../../src/transport/outbound/caller-credentials.ts';
import { type BegunInBrowser, createOpenLinks, type LinkEntry, type Pending } from './open-links.ts';
import { probe } from './probe.ts';
import type { Keeping, KeptSignIn, SignIn } from './sign-in.ts';
import { markup, sendPage } from './sign-in-page.ts';

export interface SignInLinks {
  /** The link for this caller. Undefined where no browser can reach the gateway. */
  link(caller: CredentialOwner, why?: SignInRefusal): Promise<string | undefined>;
  /** The caller has the code: the tokens are now its own. Throws for a wrong code. */
  finish(caller: CredentialOwner, code: string): Promise<void>;
  close(): void;
}

/** The refusal that a new sign-in is to mend, where a server has refused a token. */
export interface SignInRefusal {
  readonly status: number;
  readonly challenge: string | undefined;
}

export interface SignInLinksDeps {
  readonly http: HttpHost | undefined;
  readonly log: Logger;
  readonly clock: Clock;
  /** The server's configured name and address. */
  readonly name: string;
  readonly url: URL;
  /** A sign-in by a person whose tokens go to `keeping`. */
  readonly signIn: (newState: () => string, redirect: string, keeping: Keeping) => SignIn;
  /** Where the open links of a caller are. */
  readonly entryOf: (reference: string) => LinkEntry;
  /** What is stored for this caller already. */
  readonly stored: (caller: CredentialOwner) => Promise<KeptSignIn | undefined>;
  readonly store: (caller: CredentialOwner, kept: KeptSignIn) => Promise<void>;
}

const LIFETIME_MS = 15 * 60_000;
const MOST_TRIES = 5;
/** Of one caller; the oldest makes room. */
const MOST_LINKS = 4;
const PROBE_MS = 30_000;
const BASE = '/connect';
const BACK = 'back';
const COOKIE = 'tollbridge-connect';
/** Without letters and digits that people mistake for others. */
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ23456789';
const CODE_LENGTH = 9;

export function createSignInLinks(deps: SignInLinksDeps): SignInLinks {
  const { http, log, clock, name, url } = deps;
  const now = () => Date.parse(clock.now());
  const open = createOpenLinks(deps.entryOf, now, () => http?.mark ?? '');
  const path = `${BASE}/${name}`;
  const leave = http?.claim('mcp', [
    { path: `${path}/*`, listed: false, handsOver: true, names: [{ query: 'state' }], handler: handle },
  ]);

  async function link(caller: CredentialOwner, why?: SignInRefusal): Promise<string | undefined> {
    if (!http?.url) return undefined;
    const id = await open.change(caller, (links) => {
      const known = links.find((each) => isSame(each.caller, caller) && !each.came);
      if (known && (known.why || !why)) return { links, result: known.id };
      const made = known ?? { id: open.newId(caller), caller, expires: now() + LIFETIME_MS, tries: 0 };
      const others = links.filter((each) => each !== known).slice(1 - MOST_LINKS);
      return { links: [...others, { ...made, ...(why && { why }) }], result: made.id };
    });
    return `${http.url}${path}/${id}`;
  }

  async function finish(caller: CredentialOwner, code: string): Promise<void> {
    const kept = await open.change(caller, (links) => {
      const right = links.find(
        (each) => isSame(each.caller, caller) && each.came && matches(plain(code), each.came.code),
      );
      if (right) return { links: links.filter((each) => each !== right), result: right.came?.kept };
      const tried = links.map((each) => (each.came ? { ...each, tries: each.tries + 1 } : each));
      return { links: tried.filter(({ tries }) => tries < MOST_TRIES), result: undefined };
    });
    if (kept) return await deps.store(caller, kept);
    throw new Fault(
      'invalid_request',
      'this is not the code of a sign-in that is open; call without a code for a new link',
    );
  }

  /** Replaces one link as it is now; false when it is gone. */
  async function replace(one: Pending, next: Pending | undefined): Promise<boolean> {
    return await open.change(one.caller, (links) => {
      const there = links.some(({ id }) => id === one.id);
      const others = links.filter(({ id }) => id !== one.id);
      return { links: there ? [...others, ...(next ? [next] : [])] : links, result: there };
    });
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
    const one = (await open.near(last)).find(({ id }) => matches(last, id));
    if (!one) return failed(response, 404, GONE);
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
    const browser_secret = randomBytes(24).toString('base64url');
    let started: { readonly address: URL; readonly begun: BegunInBrowser };
    try {
      started = await start(one, browser_secret);
    } catch (cause) {
      log.warn({ err: cause, server: name, caller: one.caller.id }, 'a sign-in could not begin');
      return failed(response, 502, `The sign-in could not begin: ${reasonOf(cause)}`);
    }
    const { href, protocol, hostname, host } = started.address;
    if (protocol !== 'https:' && !isLoopback(hostname)) {
      await replace(one, undefined);
      return failed(response, 502, `${name} sends people to ${host}, which is no safe address.`);
    }
    const { came: _, ...fresh } = one;
    if (!(await replace(one, { ...fresh, begun: started.begun }))) return failed(response, 404, GONE);
    const secure = http?.url.startsWith('https:') ? '; Secure' : '';
    // Lax: the browser comes back from another site.
    const cookie = `${COOKIE}=${browser_secret}; Path=${path}; HttpOnly; SameSite=Lax; Max-Age=${LIFETIME_MS / 1000}${secure}`;
    const body = markup`<p>You are sent to <a href="${href}">${host}</a>.</p>`;
    sendPage(response, 200, `Sign in at ${name}`, body, { onward: href, cookie });
  }

  /** Discovery and registration, up to the address to which the person goes. */
  async function start({ id, caller, why }: Pending, browser_secret: string) {
    const before = (await deps.stored(caller)) ?? {};
    const { tokens: _, ...without } = before;
    // A sign-in for more scopes is for those of the old token too.
    const keeping = keepingHere(why?.status === 403 ? before : without);
    const redirect = `${http?.url}${path}/${BACK}`;
    const signIn = deps.signIn(() => open.newState(id), redirect, keeping);
    const { status, challenge } = why ?? { ...(await probe(url, AbortSignal.timeout(PROBE_MS))), status: 401 };
    const { address, begun } = await signIn.begin(status, challenge);
    return { address, begun: { ...begun, browser_secret, redirect, kept: keeping.now() } };
  }

  async function cameBack(request: IncomingMessage, response: ServerResponse, said: URLSearchParams): Promise<void> {
    const state = said.get('state') ?? '';
    const one = (await open.near(state)).find(({ begun, came }) => begun && !came && matches(state, begun.state));
    const begun = one?.begun;
    if (!one || !begun)
      return failed(response, 400, 'This answer belongs to no sign-in that is open here. Begin again.');
    // An answer counts once, whatever it comes to: the link is taken before anything is sent.
    const taken = await replace(one, undefined);
    if (!matches(cookieOf(request), begun.browser_secret)) {
      log.warn({ server: name, caller: one.caller.id }, 'a sign-in came back in another browser than it began in');
      return failed(response, 403, 'This sign-in began in another browser. Nothing was stored; begin again.');
    }
    if (!taken) return failed(response, 400, 'This answer has been received already. Begin again.');
    const keeping = keepingHere(begun.kept);
    try {
      const signIn = deps.signIn(() => open.newState(one.id), begun.redirect, keeping);
      await signIn.complete(begun, new URL(`${begun.redirect}?${said}`));
      if (!keeping.now().tokens) throw new Fault('unauthenticated', 'the authorization server issued no token');
    } catch (cause) {
      log.warn({ err: cause, server: name, caller: one.caller.id }, 'signing in came to nothing');
      return failed(response, 400, `You are not signed in: ${reasonOf(cause)}. Nothing was stored.`);
    }
    const code = Array.from({ length: CODE_LENGTH }, () => LETTERS[randomInt(LETTERS.length)]).join('');
    const { begun: _, ...rest } = one;
    await open.change(one.caller, (links) => ({
      links: [...links, { ...rest, came: { code, kept: keeping.now() } }],
      result: undefined,
    }));
    const shown = code.replace(/(...)(?=.)/g, '$1-');
    const body = markup`<p>One step is left. Give this code to the client in which you asked for ${name}:</p><p><code>${shown}</code></p>
<p>Your account is then used for the caller <b>${one.caller.id}</b>. Give the code to nobody else: a person who asks you for it would use ${name} with your account.</p>`;
    sendPage(response, 200, `Signed in at ${name}`, body);
  }

  return { link, finish, close: () => leave?.() };
}

/** What a sign-in obtains is with its link until the caller has returned the code. */
function keepingHere(before: KeptSignIn): Keeping & { now(): KeptSignIn } {
  let kept = before;
  return {
    now: () => kept,
    read: async () => kept,
    async write(next) {
      kept = next;
    },
    alone: (work) => work(),
  };
}

const GONE = 'This link leads nowhere: it was used, or it is too old. Ask for a new one.';

function failed(response: ServerResponse, status: number, why: string): void {
  sendPage(response, status, 'Not signed in', markup`<p>${why}</p>`);
}

/** A fault's words are ours; the words of a library may hold what a server sent. */
function reasonOf(cause: unknown): string {
  return cause instanceof Fault ? asFault(cause).message : 'the authorization server did not answer as it should';
}

function isSame(one: CredentialOwner, other: CredentialOwner): boolean {
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
