/**
 * The other end of the wire, in a process of its own, the same for all contenders: clients that call a tool, wait for the
 * answer and call again, each on its own connection and in its own session. Reads as little of what it gets as it can, but
 * sees to it that every answer is the answer to its own question.
 */
import { connect, type Socket } from 'node:net';

export interface Target {
  readonly name: string;
  readonly port: number;
  readonly path: string;
  readonly connections: number;
  readonly token?: string;
  /** Of the protocol that is spoken: with sessions, or with everything said anew in each request. */
  readonly era: 'legacy' | 'modern';
}
export type Wanted =
  | { readonly do: 'open'; readonly target: Target }
  | { readonly do: 'run'; name: string; ms: number };
export interface Report {
  readonly calls: number;
  readonly ms: number;
  readonly p50: number;
  readonly p99: number;
  /** What went wrong, if anything did. */
  readonly trouble?: string;
}

interface Client {
  send(message: object, expected: string): Promise<string>;
}

const VERSIONS = { legacy: '2025-11-25', modern: '2026-07-28' } as const;
const INFO = { name: 'load', version: '1' };
const IDLE_MS = 2_000;
const targets = new Map<string, { readonly target: Target; readonly clients: readonly Client[] }>();
let count = 0;

process.on('message', async (wanted: Wanted) => {
  try {
    process.send?.(wanted.do === 'open' ? await open(wanted.target) : await run(wanted.name, wanted.ms));
  } catch (cause) {
    process.send?.({ calls: 0, ms: 0, p50: 0, p99: 0, trouble: String(cause) } satisfies Report);
  }
});

async function open(target: Target): Promise<Report> {
  const clients = await Promise.all(Array.from({ length: target.connections }, () => connected(target)));
  targets.set(target.name, { target, clients });
  return { calls: 0, ms: 0, p50: 0, p99: 0 };
}

async function run(name: string, ms: number): Promise<Report> {
  const { target, clients } = targets.get(name)!;
  const times: number[] = [];
  const began = performance.now();
  await Promise.all(
    clients.map(async (client) => {
      while (performance.now() - began < ms) {
        const text = `call ${++count}`;
        const start = performance.now();
        await client.send(toolCall(target, count, text), `"text":"${text}"`);
        times.push(performance.now() - start);
      }
    }),
  );
  const spent = performance.now() - began;
  times.sort((a, b) => a - b);
  const at = (share: number) => times[Math.floor(times.length * share)] ?? Number.NaN;
  return { calls: times.length, ms: spent, p50: at(0.5), p99: at(0.99) };
}

function toolCall({ era }: Target, id: number, text: string): object {
  const meta = { [`${PREFIX}protocolVersion`]: VERSIONS.modern, [`${PREFIX}clientCapabilities`]: {} };
  const params = { name: 'echo', arguments: { text }, ...(era === 'modern' && { _meta: meta }) };
  return { jsonrpc: '2.0', id, method: 'tools/call', params };
}
const PREFIX = 'io.modelcontextprotocol/';

async function connected(target: Target): Promise<Client> {
  const known = target.token ? `authorization: Bearer ${target.token}\r\n` : '';
  let headers = `${known}mcp-protocol-version: ${VERSIONS[target.era]}\r\n`;
  if (target.era === 'modern') headers += 'mcp-method: tools/call\r\nmcp-name: echo\r\n';
  const post = poster(target);
  if (target.era === 'legacy') {
    const params = { protocolVersion: VERSIONS.legacy, capabilities: {}, clientInfo: INFO };
    const begun = await post({ jsonrpc: '2.0', id: 'i', method: 'initialize', params }, known);
    const session = /^mcp-session-id: (.*)\r$/im.exec(begun)?.[1];
    if (session) headers += `mcp-session-id: ${session}\r\n`;
    await post({ jsonrpc: '2.0', method: 'notifications/initialized' }, headers);
  }
  return {
    async send(message, expected) {
      const answer = await post(message, headers);
      if (!answer.includes(expected)) throw new Error(`another answer than ${expected}: ${answer}`);
      return answer;
    },
  };
}

/** One request at a time: resolves with the whole response, head and all. A connection that was let go is made anew. */
function poster(target: Target): (message: object, headers: string) => Promise<string> {
  const { port, path } = target;
  let held = '';
  let done: ((text: string) => void) | undefined;
  let failed: ((cause: Error) => void) | undefined;
  let socket: Socket | undefined;
  let used = 0;

  function connection(): Socket {
    // What has been idle for long may be hung up on while we speak.
    const idle = performance.now() - used > IDLE_MS;
    used = performance.now();
    if (socket && !socket.destroyed && socket.writable && !idle) return socket;
    socket?.destroy();
    const made = connect(port, '127.0.0.1');
    socket = made;
    held = '';
    made.setNoDelay(true);
    made.setEncoding('latin1');
    made.on('data', (chunk: string) => {
      held += chunk;
      if (!whole(held)) return;
      const text = held;
      held = '';
      const resolve = done;
      [done, failed] = [undefined, undefined];
      resolve?.(text);
    });
    made.on('error', (cause) => made === socket && failed?.(cause));
    made.on('close', () => made === socket && failed?.(new Error(`hung up on after ${JSON.stringify(held)}`)));
    return made;
  }

  return (message, headers) =>
    new Promise((resolve, reject) => {
      const body = JSON.stringify(message);
      const open = connection();
      [done, failed] = [resolve, reject];
      open.write(
        `POST ${path} HTTP/1.1\r\nhost: localhost:${port}\r\ncontent-type: application/json\r\n` +
          `accept: application/json, text/event-stream\r\n${headers}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      );
    });
}

function whole(text: string): boolean {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return false;
  const head = text.slice(0, end);
  const length = /^content-length: (\d+)/im.exec(head)?.[1];
  if (length !== undefined) return text.length >= end + 4 + Number(length);
  return /^transfer-encoding: chunked/im.test(head) ? text.endsWith('\r\n0\r\n\r\n') : true;
}
