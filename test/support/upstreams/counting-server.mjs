/**
 * An MCP server of one tool, as plain lines over stdio. Writes down every call it sees, with the newest position of the log.
 * Arguments: the file to write to, the data directory of the gateway.
 */
import { createInterface } from 'node:readline';
import { recordContact } from '../oracle/contacts.mjs';

const [file, dataDir] = process.argv.slice(2);
const answer = (id, result) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`);
const tool = { name: 'act', description: 'Acts.', inputSchema: { type: 'object' } };

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'tools/call') recordContact(file, dataDir, { tool: params.name, arguments: params.arguments ?? {} });
  if (id === undefined) return;
  if (method === 'initialize') {
    const serverInfo = { name: 'counting', version: '1' };
    return answer(id, { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo });
  }
  if (method === 'tools/list') return answer(id, { tools: [tool] });
  if (method === 'tools/call') return answer(id, { content: [{ type: 'text', text: 'done' }] });
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'unknown' } })}\n`);
});
