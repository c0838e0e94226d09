/**
 * The order in which doors see a request. A door mounted at a prefix comes before one mounted at the root, whichever
 * opened first; a door that does not handle the request calls `next`. A list, not a framework: every request of every
 * door passes here, and a router that wraps requests and compiles patterns cost more than some doors do.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { HttpHandler } from '../../ports/index.ts';

interface Mounted {
  /** Empty for a door that sees every request. */
  readonly prefix: string;
  readonly handler: HttpHandler;
}

export interface Mounting {
  /** Below its prefix a door sees paths relative to it; `originalUrl` keeps the path of the request. */
  add(prefix: string, handler: HttpHandler): void;
  /** `left` is called when no door handles the request, or one has thrown. */
  show(request: IncomingMessage, response: ServerResponse, left: (thrown?: unknown) => void): void;
}

export function createMounting(): Mounting {
  const named: Mounted[] = [];
  const everything: Mounted[] = [];

  return {
    add(path, handler) {
      const prefix = path.replace(/\/+$/, '');
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

/** `/v1/runs` and paths below it, not `/v1/runsx`. */
function isBelow(url: string, prefix: string): boolean {
  if (!url.startsWith(prefix)) return false;
  const after = url[prefix.length];
  return after === undefined || after === '/' || after === '?';
}
