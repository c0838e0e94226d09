/**
 * What load balancers and supervisors ask: `/livez` whether the process runs, `/readyz` whether it is to be sent requests. A gateway that
 * cannot write, or that is about to stop, is not. Nothing more is said, because anyone may ask.
 */
import type { ServerResponse } from 'node:http';
import type { HttpHost, HttpRoute } from '../ports/index.ts';

export function openProbes(http: HttpHost, trouble: () => string | undefined): void {
  const probe = (path: string, isWell: () => boolean): HttpRoute => ({
    path,
    methods: ['GET', 'HEAD'],
    listed: false,
    handler: (_, response) => answer(response, isWell()),
  });
  http.claim('gateway', [
    probe('/livez', () => true),
    probe('/readyz', () => !http.leaving && trouble() === undefined),
  ]);
}

function answer(response: ServerResponse, isWell: boolean): void {
  const body = isWell ? 'ok\n' : 'unavailable\n';
  response.writeHead(isWell ? 200 : 503, {
    'content-type': 'text/plain; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
  });
  response.end(response.req.method === 'HEAD' ? undefined : body);
}
