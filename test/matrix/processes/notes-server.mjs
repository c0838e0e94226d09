/**
 * The demo's notes and outbox as an MCP server, and a mail that takes a minute, which a cancel can meet half-way. Every effect is
 * a line of the journal. `slow` as the second argument: only that mail.
 */
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { createDemoTools } from '../../../dist/src/demo/tools.js';

const [, , journal, only] = process.argv;
const demo = createDemoTools({ journal: (line) => appendFileSync(journal, `${line}\n`) });
const SLOW = {
  name: 'slow_mail',
  description: 'Sends a mail, in a minute.',
  inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
};
const notes = (await demo.list()).map(({ name, description, input_schema, output_schema }) => ({
  name,
  description,
  inputSchema: input_schema,
  outputSchema: output_schema,
}));
const tools = only === 'slow' ? [SLOW] : [...notes, SLOW];
const running = new Map();
const say = (frame) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n`);

async function call(id, { name, arguments: args = {} }) {
  const stop = new AbortController();
  running.set(id, stop);
  if (name === 'slow_mail') {
    appendFileSync(journal, 'begun slow_mail\n');
    const sent = await pause(60_000, true, { signal: stop.signal }).catch(() => false);
    if (sent) appendFileSync(journal, `send_mail ${id} ${JSON.stringify(args)}\n`);
    return { content: [{ type: 'text', text: sent ? 'Mail is sent.' : 'stopped' }], isError: !sent };
  }
  const action = { kind: 'tool', tool: name, tool_call_id: String(id), arguments: args };
  const { output, error } = await demo.call(action, stop.signal);
  if (!output) return { content: [{ type: 'text', text: error }], isError: true };
  return { content: [{ type: 'text', text: output.text }], structuredContent: output };
}

createInterface({ input: process.stdin }).on('line', async (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'notifications/cancelled') running.get(params.requestId)?.abort();
  if (id === undefined) return;
  if (method === 'initialize') {
    const serverInfo = { name: 'notes', version: '1' };
    say({ id, result: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo } });
  } else if (method === 'ping') say({ id, result: {} });
  else if (method === 'tools/list') say({ id, result: { tools } });
  else if (method === 'tools/call') say({ id, result: await call(id, params) });
  else say({ id, error: { code: -32601, message: `there is no ${method} here` } });
});
process.stdin.on('end', () => process.exit(0));
