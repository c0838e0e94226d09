/**
 * Our client side under the suite: a gateway with the suite's server behind it, and a client at its door that uses everything
 * this server has. Exits 0 when all of it could be done. The suite appends the address of its server.
 */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { Loose } from '../../support/mcp/fixture/asking.ts';
import { openMcpGateway } from '../../support/mcp/gateway.ts';
import { agree, upstreamFor } from './client-auth.ts';

const url = process.argv.at(-1) as string;
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? '';
const modern = process.env.MCP_CONFORMANCE_PROTOCOL_VERSION === '2026-07-28';
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}') as Loose;

const error = (fields: object, message: string) => console.error(message, fields);
const { upstream, secrets } = await upstreamFor(url, scenario, context);
const gateway = await openMcpGateway({
  upstreams: { suite: upstream },
  secrets,
  visit: agree,
  log: { info() {}, warn: error, error },
});
const client = new Client(
  { name: 'someone', version: '1' },
  {
    versionNegotiation: { mode: modern ? 'auto' : 'legacy' },
    capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} },
  },
);
client.setRequestHandler(
  'elicitation/create',
  ({ params }) => ({ action: 'accept', content: filled(params) }) as never,
);

try {
  await client.connect(new StreamableHTTPClientTransport(new URL(gateway.at('suite'))));
  await use();
  await client.close();
} catch (cause) {
  console.error(cause);
  process.exitCode = 1;
}
await gateway.close();
// Whatever a scenario left hanging is not waited for.
process.exit();

/** What the form itself suggests; for the rest, a yes. */
function filled(params: Loose): Loose {
  const fields = Object.entries<Loose>(params.requestedSchema?.properties ?? {});
  return Object.fromEntries(fields.map(([name, field]) => [name, field.default ?? valueFor(field)]));
}

function valueFor({ type, enum: choices }: Loose): unknown {
  if (Array.isArray(choices)) return choices[0];
  const values: Loose = { string: 'text', number: 1.5, integer: 1, boolean: true, array: [], object: {}, null: null };
  return values[type] ?? 'text';
}

function argumentsFor({ inputSchema }: Loose): Loose {
  const fields = Object.entries<Loose>(inputSchema?.properties ?? {});
  const needed = fields.filter(([name]) => inputSchema.required?.includes(name));
  return Object.fromEntries(needed.map(([name, field]) => [name, valueFor(field)]));
}

async function use(): Promise<void> {
  const able = client.getServerCapabilities() ?? {};
  const { tools } = await client.listTools();
  const focal = tools.find(({ name }) => name !== 'json_schema_echo')?.inputSchema;
  // This server shows a schema and does nothing else.
  if (scenario === 'json-schema-ref-no-deref') return;
  const calls: readonly Loose[] =
    context.toolCalls ??
    tools.map((tool) => ({
      name: tool.name,
      arguments: tool.name === 'json_schema_echo' ? { schema: focal } : argumentsFor(tool),
    }));
  for (const call of calls) await client.callTool(call as never);
  if (able.resources) {
    const { resources } = await client.listResources();
    for (const { uri } of resources) await client.readResource({ uri });
  }
  if (able.prompts) {
    const { prompts } = await client.listPrompts();
    for (const { name } of prompts) await client.getPrompt({ name });
  }
}
