/** A tool server that gives back the text it is sent. */
import { createInterface } from 'node:readline';

const tool = { name: 'back', description: 'gives back its text', inputSchema: { type: 'object' } };
const about = { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'box', version: '1' } };
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const say = (answer: object) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...answer })}\n`);
  if (method === 'initialize') say({ result: about });
  else if (method === 'tools/list') say({ result: { tools: [tool] } });
  else if (method === 'tools/call') say({ result: { content: [{ type: 'text', text: params.arguments.text }] } });
  else say({ error: { code: -32601, message: 'no such method' } });
});
