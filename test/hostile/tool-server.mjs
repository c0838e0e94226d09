/**
 * An instrumented tool server: every call it gets is an act, written down with what the log held at that moment. It can also
 * misbehave: answer late, never, with garbage, or with words that want to be obeyed.
 */
import { createInterface } from 'node:readline';
import { recordContact } from './contacts.mjs';

const [, , file, dataDir] = process.argv;
const tool = (name, properties, more) => ({
  name,
  description: name,
  inputSchema: { type: 'object', properties },
  ...more,
});
const TEXT = { type: 'string' };
const tools = [
  tool('echo', { text: TEXT }),
  tool('read', { text: TEXT }, { annotations: { readOnlyHint: true } }),
  tool('pay', { to: TEXT, amount: { type: 'number' } }),
  tool('hang', { text: TEXT }),
];
const say = (frame) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n`);
const answers = new Map([
  [
    'initialize',
    () => ({ protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'box', version: '1' } }),
  ],
  ['ping', () => ({})],
  ['tools/list', () => ({ tools })],
  ['tools/call', ({ arguments: args = {} }) => ({ content: [{ type: 'text', text: String(args.text ?? 'done') }] })],
]);

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  // With or without an id: what a server does with a call that wants no answer is its own business.
  if (method === 'tools/call') recordContact(file, dataDir, { tool: params?.name, arguments: params?.arguments ?? {} });
  else if (!answers.has(method) && method !== 'server/discover' && !method?.startsWith('notifications/'))
    recordContact(file, dataDir, { tool: String(method), arguments: params ?? {} });
  if (id === undefined || params?.name === 'hang') return;
  const answer = answers.get(method);
  say(answer ? { id, result: answer(params ?? {}) } : { id, error: { code: -32601, message: `no ${method}` } });
});
