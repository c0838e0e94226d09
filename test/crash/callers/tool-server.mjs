/** An MCP server whose tools write down what they were called with, take their time, and answer. */
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [, , journal] = process.argv;
const tools = ['note', 'forbidden', 'look'].map((name) => ({
  name,
  description: name,
  inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
}));
const say = (frame) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n`);
const answers = {
  initialize: () => ({
    protocolVersion: '2025-06-18',
    capabilities: { tools: {} },
    serverInfo: { name: 'box', version: '1' },
  }),
  ping: () => ({}),
  'tools/list': () => ({ tools }),
};

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  if (method === 'tools/call') {
    appendFileSync(journal, `${params.arguments.text}\n`);
    setTimeout(() => say({ id, result: { content: [{ type: 'text', text: 'noted' }] } }), Math.random() * 15);
  } else if (answers[method]) say({ id, result: answers[method]() });
  else say({ id, error: { code: -32601, message: 'no such method' } });
});
process.stdin.on('end', () => process.exit(0));
