/** A tool server that writes down every act it sees: `display-upstream.mjs <contacts file> <data directory>`. */
import { createInterface } from 'node:readline';
import { recordContact } from '../oracle/contacts.mjs';

const [, , contacts, data] = process.argv;
const say = (frame) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n`);
const tool = {
  name: 'run',
  description: 'Runs a command.',
  inputSchema: { type: 'object', properties: { command: { type: 'string' } }, additionalProperties: true },
};

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  if (method === 'initialize') {
    const serverInfo = { name: 'shell', version: '1' };
    say({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo } });
  } else if (method === 'tools/list') say({ id, result: { tools: [tool] } });
  else if (method === 'tools/call') {
    recordContact(contacts, data, { arguments: params.arguments ?? {}, tool: params.name });
    say({ id, result: { content: [{ type: 'text', text: 'done' }] } });
  } else say({ id, error: { code: -32601, message: 'Method not found' } });
});
process.stdin.on('end', () => process.exit(0));
