/** A tool server whose results are as large as they are asked to be. Records every call it sees. */
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [, , seen] = process.argv;
const say = (frame) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n`);
const tool = {
  name: 'big',
  description: 'as much as you like',
  inputSchema: { type: 'object', properties: { size: { type: 'integer' }, values: { type: 'integer' } } },
};
const answers = new Map([
  [
    'initialize',
    () => ({ protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'big', version: '1' } }),
  ],
  ['tools/list', () => ({ tools: [tool] })],
  [
    'tools/call',
    ({ arguments: { size = 1, values = 0 } }) => {
      appendFileSync(seen, `${size} ${values}\n`);
      return {
        content: [{ type: 'text', text: 'x'.repeat(size) }],
        ...(values && { structuredContent: { values: Array.from({ length: values }, () => 1) } }),
      };
    },
  ],
]);
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  const answer = answers.get(method);
  if (id === undefined) return;
  say(answer ? { id, result: answer(params) } : { id, error: { code: -32601, message: 'no such method' } });
});
