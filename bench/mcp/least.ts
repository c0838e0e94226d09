/**
 * The least a gateway can do that keeps a record: what it is asked is on disk before it is passed on, and the answer before it
 * is given. No rules, no receipts, no sessions, nothing checked. What is measured of it is the price of the disk and of one more
 * process on the way, which no gateway of this kind can be under.
 */
import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from 'node:fs';
import { Agent, createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const upstream = Number(process.argv.at(-1));
const path = join(tmpdir(), `tb-bench-least-${process.pid}.log`);
const file = openSync(path, 'a');
const agent = new Agent({ keepAlive: true });

/** Whatever is said in the same turn shares one sync. */
let waiting: { readonly line: string; readonly done: () => void }[] = [];
function written(line: string): Promise<void> {
  return new Promise((done) => {
    if (waiting.push({ line, done }) === 1) setImmediate(write);
  });
}
function write(): void {
  const all = waiting;
  waiting = [];
  writeSync(file, all.map(({ line }) => `${line}\n`).join(''));
  fdatasyncSync(file);
  for (const { done } of all) done();
}

function textOf(message: IncomingMessage): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    message.setEncoding('utf8');
    message.on('data', (chunk: string) => {
      text += chunk;
    });
    message.on('end', () => resolve(text));
  });
}

function passedOn(body: string): Promise<IncomingMessage> {
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  const there = { host: '127.0.0.1', port: upstream, path: '/mcp', method: 'POST', agent, headers };
  return new Promise((resolve, reject) => request(there, resolve).on('error', reject).end(body));
}

const server = createServer({ keepAliveTimeout: 60_000 }, async (asked, answered) => {
  const body = await textOf(asked);
  await written(body);
  const answer = await passedOn(body);
  const text = await textOf(answer);
  await written(text);
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
  answered.writeHead(answer.statusCode ?? 500, headers).end(text);
});
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
process.once('SIGTERM', () => {
  closeSync(file);
  rmSync(path, { force: true });
  process.exit(0);
});
