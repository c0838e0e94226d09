/**
 * `tollbridge mcp login <server>`: OAuth sign-in at an MCP server. The browser goes to the server's authorization
 * server and comes back here; the tokens go into a vault, where every gateway of this configuration finds them.
 */

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import {
  callerKeptAs,
  keepingIn,
  keptAs,
  mcp,
  type OpenSignInPage,
  probe,
  REDIRECT,
  signedIn,
  type UpstreamConfig,
} from '../../../../adapters/mcp/index.ts';
import { createSecrets, createSecretWriter } from '../../../auth/vaults.ts';
import { systemClock } from '../../../core/clock.ts';
import { createRedactor } from '../../../core/redaction/redact.ts';
import { asFault, Fault } from '../../../model/faults.ts';
import type { TSchema } from '../../../model/type.ts';
import { check } from '../../../model/validate.ts';
import { own } from '../../../model/values/own.ts';
import { anySignal } from '../../../model/values/signals.ts';
import type { Deps } from '../../../ports/index.ts';
import { createLogger } from '../../../runtime/logger.ts';
import { isLoopback } from '../../../transport/http/origin.ts';
import { environmentInFront } from '../../child-environment.ts';
import { type CommonOptions, configFrom } from '../../context.ts';
import { trouble } from '../../output/error-output.ts';
import { terminalText } from '../../output/terminal-text.ts';
import { onStop } from '../../stop-signals.ts';
import { addressedUpstream } from './addressed.ts';
import { type Loopback, openLoopback } from './loopback.ts';

/** Whose sign-in a command is about. */
export interface WhoseSignIn extends CommonOptions {
  /** The principal, for a server that each caller signs in to. */
  readonly as?: string;
  readonly tenant?: string;
}

export interface LoginOptions extends WhoseSignIn {
  /** The address of a server that is not in the configuration. */
  readonly url?: string;
  /** False: the address is only printed. */
  readonly browser?: boolean;
  /** The browser is on another machine: the address it ended up at is pasted here. */
  readonly paste?: boolean;
}

const TIMEOUT_MS = 5 * 60_000;

export async function login(server: string, options: LoginOptions): Promise<void> {
  const config = await configFrom(options);
  const section = options.url === undefined ? own(config.tools, server)?.mcp : addressedUpstream(options.url);
  const upstream = upstreamOf(server, section);
  const url = new URL(upstream.url as string);
  const redactor = createRedactor();
  const secretDeps = { vaults: config.vaults, env: process.env, learn: redactor.learn };
  const secretWriter = createSecretWriter({ ...secretDeps, clock: systemClock });
  if (!secretWriter) throw trouble('unavailable', 'no vault can be written', 'add one to vaults, with provider: file');
  const say = (line: string) => void process.stdout.write(`${terminalText(line)}\n`);
  const redirect = upstream.sign_in.redirect ?? REDIRECT;
  const loopback = options.paste ? undefined : await openLoopback(redirect, upstream.sign_in.redirect === undefined);
  const stop = new AbortController();
  const letGo = onStop(() => stop.abort(new Fault('client_closed', 'stopped before the sign-in was complete')));
  try {
    const signal = anySignal([stop.signal, late()]);
    const whose = options.as === undefined ? '' : `, as ${options.as}`;
    say(`Signing in at ${url.href} for the server "${server}"${whose}.`);
    const secretName = entryOf(server, upstream.sign_in, options);
    let lost: unknown;
    const deps = {
      log: createLogger(redactor),
      ...anew(createSecrets(secretDeps), secretName),
      alone: secretWriter.alone,
      async keep(name: string, value: string) {
        await secretWriter.keep(name, value).catch((cause) => {
          lost = cause;
          throw cause;
        });
      },
      visit: signInPage(loopback, options, say, signal),
    };
    const signIn = signedIn(
      server,
      url,
      { ...upstream.sign_in, redirect: loopback?.address ?? redirect },
      deps,
      keepingIn(secretName, deps),
    );
    const { status, challenge } = await probe(url, signal);
    if (
      !(await signIn.obtain(401, challenge).catch((cause) => Promise.reject(explained(cause, url, status, signal))))
    ) {
      throw new Fault('unauthenticated', `the authorization server of ${url.host} gave us nothing`);
    }
    if (lost) throw lost;
    const { issuer, scope } = (await signIn.granted()) ?? {};
    say(`Signed in${issuer ? `: ${issuer} gave us a token` : ''}${scope ? ` for "${scope}"` : ''}.`);
    const again = await probe(url, signal, await signIn.headers());
    if (again.status === 401) throw new Fault('unauthenticated', `${url.host} does not take the token it sent us for`);
    say(`It is kept in a vault as ${secretName}; a gateway that runs takes it up by itself.`);
  } finally {
    letGo();
    await loopback?.close();
  }
}

/** The vault entry with the tokens. */
export function entryOf(server: string, config: SignedInUpstream['sign_in'], { as: id, tenant }: WhoseSignIn): string {
  const perCaller = config.per === 'caller';
  if (perCaller && id === undefined) {
    const why = `each caller signs in at ${server} with an account of its own`;
    throw trouble('invalid_request', why, 'say whose sign-in it is: --as PRINCIPAL');
  }
  if (!perCaller && id !== undefined) {
    const why = `all callers of ${server} share one sign-in`;
    throw trouble('invalid_request', why, 'leave out --as, or add to the server: sign_in: { per: caller }');
  }
  return id === undefined
    ? keptAs(server, config)
    : callerKeptAs(server, config, { id, ...(tenant !== undefined && { tenant_id: tenant }) });
}

type SignedInUpstream = UpstreamConfig & { readonly sign_in: NonNullable<UpstreamConfig['sign_in']> };

export function upstreamOf(server: string, section: unknown): SignedInUpstream {
  const at = `tools.${server}.mcp`;
  if (!section)
    throw trouble(
      'not_found',
      `the configuration has no ${at}`,
      "if it stands in a client's settings, add --url ADDRESS",
    );
  const upstream = check(mcp.parts.tools.configSchema as TSchema, section, at) as UpstreamConfig;
  const { url, sign_in } = upstream;
  if (url === undefined) throw new Fault('invalid_request', `${at} is a command: it has no sign-in`);
  if (!sign_in) throw trouble('invalid_request', `${at} does not say that a person signs in`, 'add to it: sign_in: {}');
  return { ...upstream, sign_in };
}

/** Signing in again requests a new token instead of reusing the stored one; client registrations stay valid. */
function anew(secret: Deps['secret'], secretName: string): Pick<Deps, 'secret'> {
  return {
    async secret(name) {
      const value = await secret(name);
      if (name !== secretName) return value;
      const { tokens: _, ...rest } = JSON.parse(value);
      return JSON.stringify(rest);
    },
  };
}

function signInPage(
  loopback: Loopback | undefined,
  options: LoginOptions,
  say: (line: string) => void,
  signal: AbortSignal,
): OpenSignInPage {
  return async (address) => {
    // The server chose this address and a browser is about to open it: only https, or http to this machine.
    const safe = address.protocol === 'https:' || (address.protocol === 'http:' && isLoopback(address.hostname));
    if (!safe)
      throw new Fault('unauthenticated', `the server sends people to ${address.origin}, which is no safe address`);
    const opened = loopback !== undefined && options.browser !== false && process.stdout.isTTY && openBrowser(address);
    say(opened ? 'Your browser should open now. If it does not, go to:' : 'Go to this address with a browser:');
    say(`\n  ${address.href}\n`);
    if (!loopback) {
      say('Sign in. The browser then ends up at an address that does not open; paste that address here:');
      return await pasted(signal);
    }
    say('Waiting for you to come back. Ctrl-C gives up.');
    return await loopback.comeBack(address.searchParams.get('state') ?? '', signal);
  };
}

/** Best effort; the address is printed as well. No shell interprets it. */
function openBrowser({ href }: URL): boolean {
  const commands: Partial<Record<NodeJS.Platform, readonly string[]>> = {
    darwin: ['open', href],
    win32: ['rundll32', 'url.dll,FileProtocolHandler', href],
    linux: process.env.DISPLAY || process.env.WAYLAND_DISPLAY ? ['xdg-open', href] : [],
  };
  const [program, ...args] = commands[process.platform] ?? [];
  if (!program) return false;
  spawn(program, args, { stdio: 'ignore', detached: true, env: environmentInFront([]) })
    .once('error', () => {})
    .unref();
  return true;
}

async function pasted(signal: AbortSignal): Promise<URL> {
  const lines = createInterface({ input: process.stdin, signal });
  try {
    for await (const line of lines) {
      const text = line.trim();
      if (URL.canParse(text)) return new URL(text);
      if (text !== '') process.stdout.write('That is not an address. It begins with http:\n');
    }
  } catch (cause) {
    if (!signal.aborted) throw cause;
  } finally {
    lines.close();
    process.stdin.unref?.();
  }
  throw signal.aborted ? signal.reason : new Fault('client_closed', 'nothing was pasted');
}

function late(): AbortSignal {
  const deadline = new AbortController();
  const why = new Fault('deadline_exceeded', `no sign-in within ${TIMEOUT_MS / 60_000} minutes`);
  setTimeout(() => deadline.abort(why), TIMEOUT_MS).unref();
  return deadline.signal;
}

/** Replaces the library's message about a server without sign-in with one for people. */
function explained(cause: unknown, url: URL, status: number, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  if (cause instanceof Fault) return cause;
  const { message } = asFault(cause).cause instanceof Error ? (asFault(cause).cause as Error) : asFault(cause);
  const open = status < 400 ? ` (the server accepts requests without a token: perhaps it needs no sign-in)` : '';
  return new Fault('unauthenticated', `signing in at ${url.host} came to nothing: ${message}${open}`, { cause });
}
