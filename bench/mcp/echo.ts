/**
 * The server behind every contender: one tool that returns its argument, over HTTP or over standard input and output, with as
 * little work as can be, so that what is measured is what stands before it. Refuses nothing; not a server to learn from.
 * Uses nothing but Node, so that every contender can start it the same way and quickly. `--legacy`: knows nothing of 2026-07-28.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';

// biome-ignore lint/suspicious/noExplicitAny: it looks at three members and hands the rest back
type Message = any;

const INFO = { name: 'echo', version: '1' };
const TOOL = { name: 'echo', description: 'says it again', inputSchema: { type: 'object' } };
const CACHE = { ttlMs: 60_000, cacheScope: 'public' };
const LEGACY = process.argv.includes('--legacy');
let sessions = 0;

function resultOf({ method, params }: Message): object | undefined {
  const modern = params?._meta?.['io.modelcontextprotocol/protocolVersion'] !== undefined;
  const more = modern ? { resultType: 'complete' } : {};
  switch (method) {
    case 'tools/call':
      return { content: [{ type: 'text', text: String(params.arguments?.text) }], ...more };
    case 'initialize':
      return { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: INFO };
    case 'server/discover':
      return LEGACY ? undefined : { supportedVersions: ['2026-07-28'], capabilities: { tools: {} }, ...CACHE, ...more };
    case 'tools/list':
      return { tools: [TOOL], ...(modern && CACHE), ...more };
    case 'ping':
      return {};
  }
}

function answerTo(message: Message): object {
  const result = resultOf(message);
  return { jsonrpc: '2.0', id: message.id, ...(result ? { result } : { error: { code: -32601, message: 'no' } }) };
}

function serve(request: IncomingMessage, response: ServerResponse): void {
  if (request.method !== 'POST') {
    response.writeHead(request.method === 'DELETE' ? 200 : 405).end();
    return;
  }
  let body = '';
  request.setEncoding('utf8');
  request.on('data', (chunk: string) => {
    body += chunk;
  });
  request.on('end', () => {
    const message = JSON.parse(body);
    if (message.id === undefined) {
      response.writeHead(202).end();
      return;
    }
    const answer = JSON.stringify(answerTo(message));
    sessions += message.method === 'initialize' ? 1 : 0;
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(answer),
      ...(message.method === 'initialize' && { 'mcp-session-id': `session-${sessions}` }),
    });
    response.end(answer);
  });
}

if (process.argv.includes('--http')) {
  const http = createServer({ keepAliveTimeout: 60_000 }, serve);
  http.listen(0, '127.0.0.1', () => console.log((http.address() as AddressInfo).port));
} else {
  createInterface({ input: process.stdin }).on('line', (line) => {
    const message = JSON.parse(line);
    if (message.id !== undefined && message.method) process.stdout.write(`${JSON.stringify(answerTo(message))}\n`);
  });
  process.stdin.once('end', () => process.exit(0));
}
