/**
 * A tool server over standard input and output with one tool that works, one that fails and one that never answers. It appends the name
 * of each called tool to the file that its argument names.
 */
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [, , file] = process.argv;
const tool = (name) => ({ name, description: name, inputSchema: { type: 'object', properties: {} } });
const text = (said) => ({ content: [{ type: 'text', text: said }] });
const answers = {
  initialize: () => ({
    protocolVersion: '2025-06-18',
    capabilities: { tools: {} },
    serverInfo: { name: 'three', version: '1' },
  }),
  ping: () => ({}),
  'tools/list': () => ({ tools: ['echo', 'broken', 'slow'].map(tool) }),
  'tools/call': ({ name, arguments: args }) =>
    name === 'echo' ? text(args.text) : { ...text(`${name} does not work`), isError: true },
};

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'tools/call') appendFileSync(file, `${params.name}\n`);
  if (id === undefined || params?.name === 'slow') return;
  const result = answers[method]?.(params);
  const body = result ? { result } : { error: { code: -32601, message: `no ${method}` } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...body })}\n`);
});
