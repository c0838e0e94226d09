/** A webhook receiver: what it received, and what it answers. */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import type { Body } from '../harn/gateway.ts';

export interface Hook {
  readonly url: string;
  readonly host: string;
  readonly got: { readonly headers: IncomingMessage['headers']; readonly body: Body }[];
  /** What comes next; 200 when nothing is said. */
  readonly statuses: number[];
  until(count: number): Promise<void>;
  close(): void;
}

/** `lasting`: its opener closes it, instead of the test. */
export async function openHook({ lasting = false } = {}): Promise<Hook> {
  const got: Hook['got'] = [];
  const statuses: number[] = [];
  const waiting = new Set<() => void>();
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk) => (text += chunk));
    request.on('end', () => {
      const status = statuses.shift() ?? 200;
      if (status === 302) response.setHeader('location', 'http://127.0.0.1:1/');
      if (status === 200) got.push({ headers: request.headers, body: JSON.parse(text) });
      response.writeHead(status).end();
      for (const wake of waiting) wake();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  if (!lasting) onTestFinished(close);
  const { port } = server.address() as AddressInfo;
  const host = `127.0.0.1:${port}`;
  return {
    url: `http://${host}/hook`,
    host,
    got,
    statuses,
    close,
    async until(count) {
      while (got.length < count) {
        await new Promise<void>((resolve) => {
          const wake = () => {
            waiting.delete(wake);
            resolve();
          };
          waiting.add(wake);
        });
      }
    },
  };
}

/** What a delivery was about, in a word. */
export function about({ task, statusUpdate, artifactUpdate }: Body): string {
  return (task ?? statusUpdate)?.status.state ?? artifactUpdate.artifact.parts[0].text;
}
