/** Tools behind two gateways in a row over MCP, on real HTTP: a client calls the near one, whose server is the far one. */
import { onTestFinished } from 'vitest';
import type { UpstreamConfig } from '../../../adapters/mcp/config.ts';
import type { Receipt } from '../../../src/model/receipt.ts';
import { openRelay } from '../wire/relay.ts';
import { type McpGateway, openMcpGateway, VISITOR } from './gateway.ts';
import { SDK_CLIENTS } from './sdk-clients.ts';
import { type Loose, openUpstream, type Tool } from './upstream.ts';

export const send: Tool = { call: ({ args }) => ({ content: [{ type: 'text', text: `to ${args.to}` }] }) };

export interface RowOptions {
  readonly farRules?: string;
  readonly tools?: Record<string, Tool>;
  /** How the near one speaks to the far one. */
  readonly upstream?: UpstreamConfig;
  readonly client?: string;
}

export async function inARow(options: RowOptions = {}) {
  const { farRules, tools = { send }, upstream = { gateway: true }, client: which = 'v2 client, modern era' } = options;
  const server = await openUpstream({ tools });
  const far = await openMcpGateway({ upstreams: { mail: { url: server.url } }, ...(farRules && { rules: farRules }) });
  const relay = await openRelay(far.url);
  const near = await openMcpGateway({ upstreams: { far: { url: `${relay.url}/mcp/mail`, ...upstream } } });
  const client = await SDK_CLIENTS[which]!({ url: near.at('far') });
  let closing: Promise<void> | undefined;
  const close = () => (closing ??= client.close());
  onTestFinished(async () => {
    await close();
    await near.close();
    await far.close();
    await server.close();
  });
  /** All that there is, once everything that goes on is over. */
  const receipts = async () => {
    await close();
    return { a: await sealed(near), b: await sealed(far) };
  };
  return { server, far, near, relay, client, receipts };
}

export async function sealed({ runtime }: McpGateway): Promise<readonly Receipt[]> {
  await runtime.idle();
  for (const task of await runtime.store.list<Loose>({ object: 'task' })) {
    if (task.status !== 'WORKING') continue;
    const body = { task_id: task.id, end: { state: 'COMPLETED' as const } };
    await runtime.bridge.submit({ kind: 'task.report', actor: VISITOR, body });
  }
  return (await runtime.store.receipts({})).map(({ receipt }) => receipt);
}
