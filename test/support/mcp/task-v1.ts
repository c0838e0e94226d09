/** A task as the SDK's first line, the one that is deployed, follows it: asks for it, says yes to what it asks, waits for its end. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { onTestFinished } from 'vitest';
import type { Loose } from './fixture/asking.ts';

/** What a client can be asked that can be shown a form. */
export const FORMS = { elicitation: { form: {} } };
export const YES = { action: 'accept', content: { confirm: true } };

/** The kinds of what it received, each once in a row, and the text of the result. */
export async function followedByV1(url: string, tool: string): Promise<{ kinds: readonly string[]; text: string }> {
  const client = new Client({ name: 'c', version: '1' }, { capabilities: FORMS });
  client.setRequestHandler(ElicitRequestSchema, () => YES as never);
  await client.connect(new StreamableHTTPClientTransport(new URL(url)) as never);
  onTestFinished(() => client.close());
  await client.listTools();
  const kinds: string[] = [];
  let text = '';
  const call = { name: tool, arguments: { filename: 'x' } };
  for await (const said of client.experimental.tasks.callToolStream(call, undefined, { task: {} })) {
    if (kinds.at(-1) !== said.type) kinds.push(said.type);
    if (said.type === 'result') text = String((said.result.content as Loose[])[0]?.text);
  }
  return { kinds, text };
}
