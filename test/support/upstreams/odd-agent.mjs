/** An ACP agent whose values are objects without a usable `toString`, wherever a text is expected. */
import { createInterface } from 'node:readline';

const odd = { toString: 1, valueOf: 2, __proto__: null };
const say = (frame) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n`);
const update = (reported) => say({ method: 'session/update', params: { sessionId: 's1', update: reported } });
const ask = (id, method, params) => say({ id, method, params: { sessionId: 's1', ...params } });

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  if (method === 'initialize')
    say({ id, result: { protocolVersion: 1, agentCapabilities: {}, agentInfo: { name: odd } } });
  else if (method === 'session/new') say({ id, result: { sessionId: 's1' } });
  else if (method === 'session/prompt') {
    update({ sessionUpdate: odd });
    update(odd);
    update({
      sessionUpdate: 'tool_call',
      toolCallId: odd,
      title: odd,
      kind: odd,
      status: odd,
      locations: [odd],
      rawInput: odd,
    });
    update({ sessionUpdate: 'tool_call_update', toolCallId: 'c', status: odd, content: [odd] });
    update({ sessionUpdate: 'agent_message_chunk', content: odd, messageId: odd });
    update({ sessionUpdate: 'plan', entries: [{ content: odd, status: odd, priority: odd }] });
    ask('t1', 'terminal/create', { command: odd, args: [odd], env: [odd], cwd: odd });
    ask('f1', 'fs/write_text_file', { path: odd, content: odd });
    ask('k1', 'terminal/kill', { terminalId: odd });
    ask('x1', '_odd/method', odd);
    setTimeout(() => say({ id, result: { stopReason: 'end_turn' } }), 300);
  }
});
