/**
 * The loopback address an authorization server redirects the browser to. It accepts one response, the one with our own
 * state, and refuses all others: a page elsewhere may send browsers here too.
 */

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Fault } from '../../../model/faults.ts';
import { asText } from '../../../model/values/as-text.ts';
import type { Closable } from '../../../ports/index.ts';
import { isLoopback } from '../../../transport/http/origin.ts';

export interface Loopback extends Closable {
  /** The redirect URI. */
  readonly address: string;
  /** The whole address of the redirect that carries this state. */
  comeBack(state: string, signal: AbortSignal): Promise<URL>;
}

/** Listens at `wanted`; where that port is taken and `elsewhere` is allowed, at another. */
export async function openLoopback(wanted: string, elsewhere: boolean): Promise<Loopback> {
  const redirect = new URL(wanted);
  if (redirect.protocol !== 'http:' || !isLoopback(redirect.hostname)) {
    throw new Fault('invalid_request', `the browser cannot return to ${wanted}: it is not an address of this machine`);
  }
  let waiting: { readonly state: string; arrived(at: URL): void } | undefined;
  const server = createServer((request, response) => {
    const say = (status: number, text: string) => {
      const headers = { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store', connection: 'close' };
      response.writeHead(status, headers).end(`${text}\n`);
    };
    const at = URL.canParse(request.url ?? '', redirect.href) ? new URL(request.url ?? '', redirect.href) : undefined;
    if (!at || request.method !== 'GET' || at.pathname !== redirect.pathname) return say(404, 'There is nothing here.');
    if (!waiting || at.searchParams.get('state') !== waiting.state) {
      return say(400, 'This is not the answer to what was asked. Nothing was taken.');
    }
    const refused = at.searchParams.has('error');
    say(200, refused ? 'The sign-in was refused. You can close this window.' : 'You can close this window.');
    waiting.arrived(at);
  });
  const port = await listen(server, redirect, elsewhere);
  redirect.port = asText(port);
  return {
    address: redirect.href,
    comeBack: (state, signal) =>
      new Promise((resolve, reject) => {
        const giveUp = () => reject(signal.reason);
        if (signal.aborted) return giveUp();
        signal.addEventListener('abort', giveUp, { once: true });
        waiting = {
          state,
          arrived(at) {
            signal.removeEventListener('abort', giveUp);
            waiting = undefined;
            resolve(at);
          },
        };
      }),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function listen(server: Server, { hostname, port }: URL, elsewhere: boolean): Promise<number> {
  const host = hostname.replace(/^\[|\]$/g, '');
  const on = (wanted: number) =>
    new Promise<number>((resolve, reject) => {
      server.once('error', reject);
      server.listen(wanted, host, () => {
        server.off('error', reject);
        resolve((server.address() as AddressInfo).port);
      });
    });
  try {
    return await on(Number(port || 80));
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EADDRINUSE' || !elsewhere) throw cause;
    return await on(0);
  }
}
