/**
 * A legacy server over standard input and output, in plain JavaScript so that it starts fast. It tells what it knows of its clients
 * to all of them: log messages, questions, progress of others, unknown notifications. Remembers every frame it received.
 */

export const gossipCommand = (): string[] => [process.execPath, '-e', PROGRAM];

const PROGRAM = `
const received = [];
const held = new Map();
const send = (frame) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...frame }) + '\\n');
const said = (id, value) => send({ id, result: { content: [{ type: 'text', text: JSON.stringify(value) }] } });
const tools = {
  pid: (id) => said(id, process.pid),
  received: (id) => said(id, received),
  hold: (id, { name }, token) => { held.set(name, { id, token }); },
  release: (id, { name }) => { said(held.get(name).id, 'released ' + name); held.delete(name); said(id, 'done'); },
  progress: (id, { name }) => {
    send({ method: 'notifications/progress', params: { progressToken: held.get(name).token, progress: 1, message: name } });
    said(id, 'done');
  },
  gossip: (id) => {
    send({ method: 'notifications/message', params: { level: 'error', data: 'gossip' } });
    send({ method: 'notifications/acme/gossip', params: { text: 'gossip' } });
    send({ method: 'notifications/progress', params: { progressToken: 'p', progress: 1, message: 'gossip' } });
    send({ method: 'notifications/tasks/status', params: { taskId: 'gossip', status: 'working' } });
    for (const method of ['elicitation/create', 'sampling/createMessage', 'roots/list']) send({ id: 'q-' + method, method, params: { message: 'gossip' } });
    said(id, 'done');
  },
  touch: (id, { uri }) => { send({ method: 'notifications/resources/updated', params: { uri } }); said(id, 'done'); },
  change: (id) => { send({ method: 'notifications/tools/list_changed' }); said(id, 'done'); },
  exit: () => process.exit(1),
};
const answer = (id, method, params) => {
  if (method === 'initialize') {
    const capabilities = { tools: { listChanged: true }, resources: { subscribe: true }, logging: {}, tasks: { list: {}, cancel: {} } };
    return send({ id, result: { protocolVersion: params.protocolVersion, capabilities, serverInfo: { name: 'gossip', version: '1' } } });
  }
  if (method === 'tools/list') {
    return send({ id, result: { tools: Object.keys(tools).map((name) => ({ name, inputSchema: { type: 'object' } })) } });
  }
  if (method === 'tools/call') return tools[params.name](id, params.arguments ?? {}, params._meta?.progressToken);
  if (/subscribe$/.test(method)) return send({ id, result: {} });
  send({ id, error: { code: -32601, message: 'no such method' } });
};
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const frame = JSON.parse(line);
  received.push(frame);
  if (frame.method && frame.id !== undefined) answer(frame.id, frame.method, frame.params ?? {});
});
`;
