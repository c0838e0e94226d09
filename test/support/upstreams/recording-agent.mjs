/**
 * An instrumented agent that speaks ACP on its standard input and output: all the work it is given is written down with what the log
 * held at that moment. `hold` in its words keeps it at work until it is asked to stop, `chatty` makes it say a lot, and what follows
 * `say: ` is what it answers.
 */
import { createInterface } from 'node:readline';
import { recordContact } from '../oracle/contacts.mjs';

const [, , file, dataDir] = process.argv;
const PIECE = 'x'.repeat(8 * 1024);
const holding = new Map();
let sessions = 0;
const say = (frame) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n`);
const reported = (sessionId, text) =>
  say({
    method: 'session/update',
    params: { sessionId, update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } } },
  });

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize') return say({ id, result: { protocolVersion: 1, agentCapabilities: {} } });
  if (method === 'session/new') return say({ id, result: { sessionId: `s${++sessions}` } });
  if (method === 'session/cancel') {
    const held = holding.get(params?.sessionId);
    holding.delete(params?.sessionId);
    if (held !== undefined) say({ id: held, result: { stopReason: 'cancelled' } });
    return;
  }
  if (method !== 'session/prompt') {
    if (id !== undefined) say({ id, error: { code: -32601, message: `no ${method}` } });
    return;
  }
  const text = params.prompt.map((part) => part.text ?? '').join('');
  recordContact(file, dataDir, { tool: 'recorder', arguments: { text } });
  if (text.includes('chatty')) for (let n = 0; n < 2_000; n += 1) reported(params.sessionId, `${n} ${PIECE}`);
  reported(params.sessionId, /say: (.*)/s.exec(text)?.[1] ?? 'done');
  if (text.includes('hold')) holding.set(params.sessionId, id);
  else say({ id, result: { stopReason: 'end_turn' } });
});
