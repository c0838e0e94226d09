/**
 * The least a gateway can do that keeps a record: what it is asked is on disk before it is passed on, and the answer before it
 * is given. No rules, no receipts, no sessions, nothing checked. What is measured of it is the price of the disk and of one more
 * process on the way, which no gateway of this kind can be under. `least <port>` stands before a server over HTTP, `least <command…>`
 * before a program, one for all clients. `--one-sync` first: call and answer are written together, before the answer is given.
 */
import { spawn } from 'node:child_process';
import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from 'node:fs';
import { Agent, createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const oneSync = process.argv[2] === '--one-sync';
const upstream = process.argv.slice(oneSync ? 3 : 2);
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

type PassOn = (body: string) => Promise<{ readonly status: number; readonly text: string }>;

function overHttp(port: number): PassOn {
  return async (body) => {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    const there = { host: '127.0.0.1', port, path: '/mcp', method: 'POST', agent, headers };
    const answer = await new Promise<IncomingMessage>((resolve, reject) =>
      request(there, resolve).on('error', reject).end(body),
    );
    return { status: answer.statusCode ?? 500, text: await textOf(answer) };
  };
}

/** Clients count alike, so each call has an id of its own on the way, as on any connection that is shared. */
function toProgram([file = '', ...args]: readonly string[]): PassOn {
  const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  process.once('exit', () => child.kill());
  const waiting = new Map<number, { readonly id: unknown; answer(text: string): void }>();
  let count = 0;
  createInterface({ input: child.stdout }).on('line', (line) => {
    const message = JSON.parse(line);
    const asked = waiting.get(message.id);
    waiting.delete(message.id);
    asked?.answer(JSON.stringify({ ...message, id: asked.id }));
  });
  return (body) =>
    new Promise((resolve) => {
      const message = JSON.parse(body);
      if (message.id === undefined) {
        child.stdin.write(`${body}\n`);
        resolve({ status: 202, text: '' });
        return;
      }
      const id = ++count;
      waiting.set(id, { id: message.id, answer: (text) => resolve({ status: 200, text }) });
      child.stdin.write(`${JSON.stringify({ ...message, id })}\n`);
    });
}

const passOn = upstream.length === 1 ? overHttp(Number(upstream[0])) : toProgram(upstream);

const server = createServer({ keepAliveTimeout: 60_000 }, async (asked, answered) => {
  const body = await textOf(asked);
  if (!oneSync) await written(body);
  const { status, text } = await passOn(body);
  await written(oneSync ? `${body}\n${text}` : text);
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
  answered.writeHead(status, headers).end(text);
});
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
process.once('SIGTERM', () => {
  closeSync(file);
  rmSync(path, { force: true });
  process.exit(0);
});
