/** Ways into the gateway for the fuzzer, and what a client may hear on each of them. */
import { Agent, request } from 'node:http';
import { PassThrough } from 'node:stream';
import { settingsOf } from '../../../adapters/mcp/config.ts';
import { createCallTasks } from '../../../adapters/mcp/server/call-tasks.ts';
import { createEndpoint } from '../../../adapters/mcp/server/endpoint.ts';
import { serveStdio } from '../../../adapters/mcp/server/transports/stdio.ts';
import { createIds, systemClock } from '../../../src/core/clock.ts';
import { type McpGateway, VISITOR } from '../../support/mcp/gateway.ts';

type Loose = Record<string, unknown>;
const QUIET = { info() {}, warn() {}, error() {} };

export interface Lane {
  send(frame: Buffer): Promise<void> | void;
  /** Settles once something sent now has been answered. */
  fence?(): Promise<void>;
  close(): Promise<void>;
}

export async function openLanes(gateway: McpGateway, wrong: (what: string) => void): Promise<Lane[]> {
  const deps = { log: QUIET, clock: systemClock, ids: createIds() };
  const settings = settingsOf({});
  const stdio = async (server: string): Promise<Lane> => {
    const callTasks = createCallTasks(gateway.runtime.bridge, settings, deps);
    const handler = createEndpoint(server, { bridge: gateway.runtime.bridge, callTasks, settings, deps });
    const lane = openLine(wrong, (input, output) =>
      serveStdio({ input, output }, { actor: VISITOR, handler, log: QUIET, lineLimit: 1024 * 1024 }),
    );
    await lane.fence?.();
    return {
      ...lane,
      async close() {
        await lane.close();
        handler.close();
        await callTasks.close();
      },
    };
  };
  const http = (path: string, modern: boolean) => openPosts(`${gateway.url}${path}`, modern, wrong);
  return [
    await stdio('old'),
    await stdio('new'),
    await http('/mcp/old', false),
    await http('/mcp/new', true),
    await http('/mcp', false),
    await http('/mcp/old', true),
  ];
}

/** Ids as they were asked with, and how often. */
function createIdsAsked() {
  const asked = new Map<string, number>();
  return {
    note(bytes: Buffer): void {
      for (const id of idsIn(bytes)) asked.set(id, (asked.get(id) ?? 0) + 1);
    },
    /** False for an answer to nothing that was asked. */
    answered(id: unknown): boolean {
      if (id === null) return true;
      const key = JSON.stringify(id);
      const left = asked.get(key) ?? 0;
      asked.set(key, left - 1);
      return left > 0;
    },
  };
}

/** Every id that some reader could find in it. */
function idsIn(bytes: Buffer): string[] {
  const text = bytes.toString('utf8').replace(/^\ufeff/, '');
  try {
    const value = JSON.parse(text) as unknown;
    const all = (Array.isArray(value) ? value : [value]) as (Loose | null)[];
    return all.flatMap((each) => (each && typeof each === 'object' && 'id' in each ? [JSON.stringify(each.id)] : []));
  } catch {
    return [];
  }
}

const MAY_ASK = new Set(['elicitation/create', 'ping']);

/** What a client may hear. Its capabilities name elicitation and nothing else. */
function listen(
  frame: Loose,
  ids: ReturnType<typeof createIdsAsked>,
  wrong: (what: string) => void,
): Loose | undefined {
  const { id, method } = frame;
  if (method === undefined) {
    if (!ids.answered(id)) wrong(`the client heard an answer to nothing: ${JSON.stringify(frame).slice(0, 300)}`);
    if (JSON.stringify(frame).includes('poison')) wrong('the client heard an answer to something else');
    return undefined;
  }
  if (id === undefined) {
    if (!String(method).startsWith('notifications/')) wrong(`the client heard the notification ${String(method)}`);
    return undefined;
  }
  if (!MAY_ASK.has(String(method))) wrong(`the client was asked ${String(method)}`);
  return { jsonrpc: '2.0', id, result: { action: 'decline' } };
}

function openLine(
  wrong: (what: string) => void,
  serve: (input: PassThrough, output: PassThrough) => Promise<void>,
): Lane {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const ids = createIdsAsked();
  const waiting = new Map<string, () => void>();
  const write = (bytes: Buffer | string) => {
    ids.note(Buffer.from(bytes));
    input.write(bytes);
    input.write('\n');
  };
  let text = '';
  output.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (text + chunk).split('\n');
    text = lines.pop() ?? '';
    for (const line of lines) {
      for (const frame of [JSON.parse(line)].flat() as Loose[]) {
        waiting.get(String(frame.id))?.();
        const answer = listen(frame, ids, wrong);
        if (answer) input.write(`${JSON.stringify(answer)}\n`);
      }
    }
  });
  const over = serve(input, output);
  const capabilities = { elicitation: {} };
  const params = { protocolVersion: '2025-03-26', capabilities, clientInfo: { name: 'f', version: '1' } };
  write(JSON.stringify({ jsonrpc: '2.0', id: 'open', method: 'initialize', params }));
  let fences = 0;
  return {
    send: write,
    fence: () =>
      new Promise((resolve) => {
        const id = `fence-${++fences}`;
        waiting.set(id, () => {
          waiting.delete(id);
          resolve();
        });
        const call = { name: 'echo', arguments: { n: id } };
        write(JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: call }));
      }),
    async close() {
      input.end();
      await over;
    },
  };
}

async function openPosts(url: string, modern: boolean, wrong: (what: string) => void): Promise<Lane> {
  const agent = new Agent({ keepAlive: true, maxSockets: 32 });
  const base: Record<string, string> = {
    accept: 'application/json, text/event-stream',
    'content-type': 'application/json',
  };
  let session: string | undefined;

  function exchange(bytes: Buffer, headers: Record<string, string>): Promise<void> {
    const ids = createIdsAsked();
    ids.note(bytes);
    return new Promise((resolve) => {
      const sent = request(url, { method: 'POST', agent, headers: { ...base, ...headers } }, (response) => {
        session ??= response.headers['mcp-session-id'] as string | undefined;
        let text = '';
        let from = 0;
        const hear = (part: string) => {
          for (const frame of [JSON.parse(part)].flat() as Loose[]) {
            const answer = listen(frame, ids, wrong);
            if (answer) void exchange(Buffer.from(JSON.stringify(answer)), headers);
          }
        };
        const events = String(response.headers['content-type']).startsWith('text/event-stream');
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
          for (let end = text.indexOf('\n\n', from); events && end >= 0; end = text.indexOf('\n\n', from)) {
            const data = /(?:^|\n)data: ([^\n]*)/.exec(text.slice(from, end))?.[1];
            from = end + 2;
            if (data) hear(data);
          }
        });
        response.once('end', () => {
          if (!events && text !== '') hear(text);
          resolve();
        });
        response.once('error', () => resolve());
      });
      sent.once('error', () => resolve());
      sent.end(bytes);
    });
  }

  if (!modern) {
    const params = {
      protocolVersion: '2025-03-26',
      capabilities: { elicitation: {} },
      clientInfo: { name: 'f', version: '1' },
    };
    await exchange(Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 'open', method: 'initialize', params })), {});
  }
  return {
    send(frame) {
      if (!modern) return exchange(frame, { 'mcp-session-id': session ?? '' });
      const asked = inEnvelope(frame);
      return exchange(asked, modernHeaders(asked));
    },
    async close() {
      agent.destroy();
    },
  };
}

/** Every other frame that can be read gets what this era wants of a request, so that most of it is looked at. */
function inEnvelope(bytes: Buffer): Buffer {
  const { frame } = frameIn(bytes);
  if (!frame || bytes.length % 4 === 0) return bytes;
  const { params = {} } = frame;
  if (typeof params !== 'object' || params === null || Array.isArray(params)) return bytes;
  return Buffer.from(JSON.stringify({ ...frame, params: { ...params, _meta: ENVELOPE } }));
}
const ENVELOPE = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': { elicitation: {} },
};

function frameIn(bytes: Buffer): { readonly frame?: Loose } {
  try {
    const value = JSON.parse(bytes.toString('utf8')) as unknown;
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { frame: value as Loose } : {};
  } catch {
    return {};
  }
}

/** Headers that say what the body says, as far as it says anything. */
function modernHeaders(bytes: Buffer): Record<string, string> {
  const { frame = {} } = frameIn(bytes);
  const { method = 'tools/call', params } = frame as { method?: unknown; params?: Loose | null };
  const name = params?.name ?? params?.uri ?? 'echo';
  const plain = (value: unknown) => (/^[\x20-\x7e]+$/.test(String(value)) ? String(value) : 'echo');
  return { 'mcp-protocol-version': '2026-07-28', 'mcp-method': plain(method), 'mcp-name': plain(name) };
}
