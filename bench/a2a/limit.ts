/**
 * The limit of a stream: a plain server that answers every request with the bytes of a stream that ours sent, read from a file, and does
 * nothing else. The frames of one turn are one write. No server that makes its events while it sends them can be quicker.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';

/** As many as our side's agent has on their way at a time. */
const AT_ONCE = 8;
const frames = readFileSync(process.argv[2] as string, 'utf8').split(/(?<=\n\n)/);
const writes = Array.from({ length: Math.ceil(frames.length / AT_ONCE) }, (_, at) =>
  Buffer.from(frames.slice(at * AT_ONCE, (at + 1) * AT_ONCE).join('')),
);

const server = createServer({ keepAliveTimeout: 60_000 }, async (request, response) => {
  for await (const _ of request);
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  for (const each of writes) {
    response.write(each);
    await turn();
  }
  response.end();
});
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
