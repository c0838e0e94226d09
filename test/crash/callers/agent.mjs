/** An ACP agent that makes one call after the other, named after the prompt, and never ends its turn. */
import { createInterface } from 'node:readline';

const say = (frame) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n`);
const update = (update) => say({ method: 'session/update', params: { sessionId: 's1', update } });

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize') say({ id, result: { protocolVersion: 1, agentInfo: { name: 'a', version: '1' } } });
  if (method === 'session/new') say({ id, result: { sessionId: 's1' } });
  if (method !== 'session/prompt') return;
  const [{ text }] = params.prompt;
  let count = 0;
  const next = () => {
    count += 1;
    const toolCallId = `${text}-${count}.`;
    const call = { toolCallId, title: 'run', kind: 'execute', rawInput: { command: toolCallId } };
    update({ sessionUpdate: 'tool_call', ...call, status: 'in_progress' });
    setTimeout(() => {
      update({ sessionUpdate: 'tool_call_update', toolCallId, status: 'completed', rawOutput: { exit: 0 } });
      setTimeout(next, Math.random() * 10);
    }, Math.random() * 15);
  };
  next();
});
process.stdin.on('end', () => process.exit(0));
