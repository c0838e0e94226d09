/**
 * An agent of the Agent Client Protocol whose only tools are the servers it is offered: it connects to the one its command
 * line names, with a client as published, calls what its prompt says, and tells what came back.
 */
import { createInterface } from 'node:readline';

const [, , server, era] = process.argv;
const write = (frame) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n`);
const sessions = new Map();

async function connect({ url, headers, command, args, env }) {
  const of = (list) => Object.fromEntries(list.map(({ name, value }) => [name, value]));
  if (era === 'modern') {
    const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
    const client = new Client({ name: 'agent', version: '1' }, { versionNegotiation: { mode: 'auto' } });
    await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: of(headers) } }));
    return client;
  }
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const client = new Client({ name: 'agent', version: '1' });
  if (url) {
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
    await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: of(headers) } }));
  } else {
    const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
    await client.connect(new StdioClientTransport({ command, args, env: { ...process.env, ...of(env) } }));
  }
  return client;
}

async function prompt({ sessionId, prompt: [{ text }] }) {
  const session = sessions.get(sessionId);
  session.client ??= await connect(session.servers.find(({ name }) => name === server));
  const { isError = false, content } = await session.client.callTool(JSON.parse(text));
  const said = JSON.stringify({ isError, text: content[0].text });
  const update = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: said } };
  write({ method: 'session/update', params: { sessionId, update } });
  return { stopReason: 'end_turn' };
}

createInterface({ input: process.stdin }).on('line', async (line) => {
  const { id, method, params } = JSON.parse(line);
  const serve = {
    initialize: () => ({ protocolVersion: 1, agentCapabilities: { mcpCapabilities: { http: true } } }),
    'session/new': () => {
      sessions.set(`s${sessions.size + 1}`, { servers: params.mcpServers });
      return { sessionId: `s${sessions.size}` };
    },
    'session/prompt': () => prompt(params),
  }[method];
  if (!serve || id === undefined) return;
  try {
    write({ id, result: await serve() });
  } catch (cause) {
    write({ id, error: { code: -32603, message: String(cause?.stack ?? cause) } });
  }
});
process.stdin.on('end', async () => {
  for (const { client } of sessions.values()) await client?.close();
  process.exit(0);
});
