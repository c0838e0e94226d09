/**
 * Which door a request is shown to first. One that names its paths comes before one that looks at everything, whichever
 * opened first; one that is not meant says so, and the next is asked. A list, not a framework: every request of every door
 * passes here, and a router that dresses up requests and compiles patterns cost more than some doors do.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { HttpHandler } from '../ports.ts';

interface Mounted {
  /** Empty for one that looks at everything. */
  readonly prefix: string;
  readonly handler: HttpHandler;
}

export interface Mounting {
  /** Below its prefix a door sees paths as if that were the root; `originalUrl` says what was asked for. */
  add(prefix: string, handler: HttpHandler): void;
  /** `left` is told when no door wants it, or one has thrown. */
  show(request: IncomingMessage, response: ServerResponse, left: (thrown?: unknown) => void): void;
}

export function createMounting(): Mounting {
  const named: Mounted[] = [];
  const everything: Mounted[] = [];

  return {
    add(given, handler) {
      const prefix = given.replace(/\/+$/, '');
      (prefix === '' ? everything : named).push({ prefix, handler });
    },
    show(request, response, left) {
      const url = request.url ?? '/';
      let at = 0;
      const next = (thrown?: unknown): void => {
        try {
          while (at < named.length && !isBelow(url, (named[at] as Mounted).prefix)) at += 1;
          const mounted = thrown ? undefined : (named[at] ?? everything[at - named.length]);
          at += 1;
          if (mounted) {
            lower(request, url, mounted.prefix);
            mounted.handler(request, response, next);
          } else left(thrown);
        } catch (cause) {
          left(cause);
        }
      };
      next();
    },
  };
}

function lower(request: IncomingMessage, url: string, prefix: string): void {
  if (prefix === '') request.url = url;
  else {
    const rest = url.slice(prefix.length);
    Object.assign(request, { originalUrl: url, url: rest.startsWith('/') ? rest : `/${rest}` });
  }
}

/** `/v1/runs` and what is below it, not `/v1/runsx`. */
function isBelow(url: string, prefix: string): boolean {
  if (!url.startsWith(prefix)) return false;
  const after = url[prefix.length];
  return after === undefined || after === '/' || after === '?';
}
