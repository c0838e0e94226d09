/**
 * The console's door: the built web app, sign-in, and a few routes of its own. Everything else the page asks for is a public route of
 * the native door; for those this door only turns the session of the page into the bearer token that stands for it.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Actor } from '../model/actions.ts';
import { asFault, Fault } from '../model/faults.ts';
import { own } from '../model/values/own.ts';
import type { Bridge, Closable, Deps, FrontDoor, HttpHandler } from '../ports/index.ts';
import { addressOf } from '../transport/http/bearer.ts';
import { readJson } from '../transport/http/body.ts';
import { cookieOf, isOwnPage, proofOf, setCookie } from './cookies.ts';
import { type BuiltApp, readBuiltApp, sendFile } from './files.ts';
import { PAGE_HEADERS } from './headers.ts';
import { nothingHere, roleOf } from './roles.ts';
import { type ConsoleRoute, createConsoleRoutes } from './routes.ts';
import type { ConsoleServices, ConsoleSession, OidcAnswer, SignedIn } from './services.ts';

export interface ConsoleDeps extends Pick<Deps, 'http' | 'log' | 'clock'> {
  readonly services: ConsoleServices;
}

/** Addresses of the app's pages; each is answered with the same file. */
export const PAGES = [
  'approvals',
  'activity',
  'sessions',
  'proof',
  'rules',
  'catalog',
  'map',
  'replay',
  'sign-in',
] as const;

/** Routes of other doors that the page uses. */
const FOREIGN = ['/v1/*', '/health/*'];
const ASSETS = '/console/assets';
const API = '/console/api';
const READ = ['GET', 'HEAD'];
const BODY = { bytes: 1024 * 1024, depth: 32, values: 20_000 };

export function consoleDoor({ http, log, clock, services }: ConsoleDeps): FrontDoor {
  return {
    name: 'console',
    carries: ['approval', 'input'],
    async open(bridge: Bridge): Promise<Closable> {
      const app = await readBuiltApp();
      const routes = createConsoleRoutes({ bridge, services, clock });
      const caught =
        (work: (request: IncomingMessage, response: ServerResponse) => Promise<unknown>) =>
        (request: IncomingMessage, response: ServerResponse) => {
          work(request, response).catch((thrown) => sendFault(response, thrown));
        };
      const page: HttpHandler = caught((request, response) => showPage(app, request, response));
      const asset: HttpHandler = (request, response, next) => {
        const file = app.asset(below(request, ASSETS).slice(1));
        if (file) caught(() => sendFile(request, response, file, 'kept'))(request, response);
        else next();
      };
      const tokenised: HttpHandler = (request, _response, next) => {
        // A request with a bearer token of its own, or without a session, is left alone.
        if (request.headers.authorization !== undefined || !cookieOf(request)) next();
        else asSession(request).then(() => next(), next);
      };
      http.claim('console', [
        { path: '/', methods: READ, handler: page },
        ...PAGES.map((name) => ({ path: `/${name}/*`, methods: READ, handler: page, listed: false as const })),
        { path: `${ASSETS}/*`, methods: READ, handler: asset, listed: false },
        { path: '/console/session', handler: caught(session) },
        { path: '/console/oidc', handler: caught(oidc) },
        { path: `${API}/*`, handler: caught((request, response) => ownRoute(routes, request, response)) },
        ...FOREIGN.map((path) => ({ path, shared: 'first' as const, handler: tokenised, listed: false as const })),
      ]);
      return { close: async () => {} };
    },
  };

  /** The session of this request: both secrets, from a page of ours, under the host it was opened for. */
  async function current(request: IncomingMessage) {
    const cookie = cookieOf(request);
    const proof = proofOf(request);
    if (!cookie || !proof || !isOwnPage(request)) return undefined;
    const found = await services.signIn.find(cookie, proof, request.headers.host);
    return found && { session: found, token: services.signIn.token(cookie, proof) };
  }

  async function asSession(request: IncomingMessage): Promise<void> {
    const found = await current(request);
    if (found) request.headers.authorization = `Bearer ${found.token}`;
  }

  async function required(request: IncomingMessage): Promise<{ session: ConsoleSession; actor: Actor }> {
    const found = await current(request);
    if (!found) throw new Fault('unauthenticated', 'sign in first');
    return { session: found.session, actor: { ...found.session.actor, door: 'console', sees: 'internal' } };
  }

  /** Sign-in, the session as it is, sign-out. */
  async function session(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { host = '' } = request.headers;
    if (!isOwnPage(request)) throw new Fault('permission_denied', 'only a page of this console may sign in');
    switch (request.method) {
      case 'POST': {
        const {
          code,
          key,
          oidc: answer,
        } = ((await readJson(request, BODY)) ?? {}) as Readonly<Record<string, unknown>>;
        const made =
          answer !== undefined
            ? await services.signIn.oidc?.end(answerIn(answer), originOf(request), host)
            : typeof code === 'string'
              ? await services.signIn.withCode(code, host)
              : typeof key === 'string'
                ? await services.signIn.withKey(key, host, addressOf(request).address)
                : undefined;
        if (!made) throw new Fault('unauthenticated', 'this sign-in link was used before, or is too old');
        return signedIn(request, response, made);
      }
      case 'GET':
        return sendJson(response, 200, shown((await required(request)).session));
      case 'DELETE': {
        const { session: ended } = await required(request);
        await services.signIn.end(ended.id);
        response.setHeader('set-cookie', setCookie(host, '', isSecure(request), 0));
        return sendJson(response, 200, { ended: true });
      }
      default:
        throw nothingHere();
    }
  }

  /** Whether people can sign in at a provider, and the beginning of it. Answers a page that is not signed in. */
  async function oidc(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const provider = services.signIn.oidc;
    if (!isOwnPage(request)) throw new Fault('permission_denied', 'only a page of this console may sign in');
    if (request.method === 'GET') return sendJson(response, 200, { name: provider?.name ?? null });
    if (request.method !== 'POST' || !provider) throw nothingHere();
    sendJson(response, 200, await provider.begin(originOf(request)));
  }

  function signedIn(request: IncomingMessage, response: ServerResponse, made: SignedIn): void {
    const seconds = Math.floor((Date.parse(made.session.expires_at) - Date.parse(clock.now())) / 1000);
    response.setHeader('set-cookie', setCookie(request.headers.host, made.cookie, isSecure(request), seconds));
    sendJson(response, 201, { ...shown(made.session), proof: made.proof });
  }

  async function ownRoute(
    routes: readonly ConsoleRoute[],
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const { actor } = await required(request);
    const path = below(request, API);
    for (const route of routes) {
      const match = request.method === route.method ? route.path.exec(path) : null;
      if (!match) continue;
      const body = route.method === 'GET' ? undefined : await readJson(request, BODY);
      const reply = await route.answer({ actor, params: match.slice(1), body, response }).catch((thrown) => {
        // What a caller lacks the scope for is not there for it, like a route that never was.
        throw asFault(thrown).kind === 'permission_denied' ? nothingHere() : thrown;
      });
      if (reply !== 'answered') sendJson(response, 200, reply);
      return;
    }
    throw nothingHere();
  }

  function sendFault(response: ServerResponse, thrown: unknown): void {
    const { kind, message, details } = asFault(thrown);
    if (kind === 'internal') log.error({ err: thrown }, 'a request of the console failed');
    if (response.headersSent) {
      response.destroy();
      return;
    }
    sendJson(response, own(STATUS, kind) ?? 500, {
      error: {
        code: kind,
        message: kind === 'internal' ? 'something went wrong inside the gateway' : message,
        ...(details && { details }),
      },
    });
  }
}

const STATUS: Readonly<Record<string, number>> = {
  invalid_request: 400,
  unauthenticated: 401,
  permission_denied: 403,
  not_found: 404,
  conflict: 409,
  unavailable: 503,
};

function shown({ actor, how, created_at, expires_at }: ConsoleSession) {
  const { id, kind, scopes } = actor;
  return { actor: { id, kind, scopes }, role: roleOf(actor), how, created_at, expires_at };
}

async function showPage({ page }: BuiltApp, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (page) return await sendFile(request, response, page, 'not kept');
  response.writeHead(503, { ...PAGE_HEADERS, 'content-type': 'text/plain; charset=utf-8' });
  response.end('The console is not built: npm run build\n');
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    ...PAGE_HEADERS,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
  });
  response.end(text);
}

/** The page's own origin, which the browser states with every POST; it is part of the address that the provider sends people back to. */
function originOf({ headers }: IncomingMessage): string {
  if (headers.origin === undefined) throw new Fault('invalid_request', 'the request states no origin');
  return headers.origin;
}

function answerIn(answer: unknown): OidcAnswer {
  const { code, state, binding, iss } = (answer ?? {}) as Readonly<Record<string, unknown>>;
  const texts = [code, state, binding];
  if (!texts.every((one) => typeof one === 'string') || (iss !== undefined && typeof iss !== 'string')) {
    throw new Fault('invalid_request', 'code, state and binding are needed');
  }
  return { code, state, binding, iss } as OidcAnswer;
}

/** The path below the one that was claimed. */
function below({ url }: IncomingMessage, base: string): string {
  return (url ?? '').slice(base.length).split('?', 1)[0] ?? '';
}

/** Behind a proxy that ends TLS, the page's own origin says so. */
function isSecure(request: IncomingMessage): boolean {
  return 'encrypted' in request.socket || request.headers.origin?.startsWith('https:') === true;
}
