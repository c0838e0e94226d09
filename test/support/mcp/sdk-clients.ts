/** Clients that people really use, as one shape: the SDK's first line, and its second in either era. All can be asked things. */
import { Client as ClientV2, StreamableHTTPClientTransport as HttpV2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import type { Loose } from './fixture/asking.ts';

export interface SdkClient {
  readonly server: Loose;
  tools(): Promise<readonly Loose[]>;
  call(name: string, args: Loose, progress?: (received: Loose) => void): Promise<Loose>;
  prompts(): Promise<readonly Loose[]>;
  prompt(name: string, args: Record<string, string>): Promise<Loose>;
  resources(): Promise<readonly Loose[]>;
  templates(): Promise<readonly Loose[]>;
  read(uri: string): Promise<Loose>;
  complete(params: Loose): Promise<Loose>;
  close(): Promise<void>;
}
export type Where = { readonly url: string } | { readonly command: readonly string[] };

export const ANSWERS = {
  elicitation: { action: 'accept', content: { name: 'Ana', check: true } },
  sampling: { role: 'assistant', content: { type: 'text', text: 'Lima' }, model: 'm', stopReason: 'endTurn' },
  roots: { roots: [{ uri: 'file:///r', name: 'r' }] },
} as const;
const INFO = { name: 'sdk-client', version: '1' };
const CAPABILITIES = { sampling: {}, elicitation: { form: {} }, roots: {} };

export const SDK_CLIENTS: Readonly<Record<string, (where: Where) => Promise<SdkClient>>> = {
  async 'v1 client'(where) {
    const [command = '', ...args] = 'command' in where ? where.command : [];
    return await v1Client(
      'url' in where ? new HttpV1(new URL(where.url)) : new StdioV1({ command, args, stderr: 'ignore' }),
    );
  },
  'v2 client, legacy era': (where) => secondLine(where, 'legacy'),
  'v2 client, modern era': (where) => secondLine(where, 'auto'),
};

/** The SDK's first line, over any transport it has. */
export async function v1Client(transport: HttpV1 | StdioV1): Promise<SdkClient> {
  const client = new ClientV1(INFO, { capabilities: CAPABILITIES });
  client.setRequestHandler(ElicitRequestSchema, () => ANSWERS.elicitation as Loose);
  client.setRequestHandler(CreateMessageRequestSchema, () => ANSWERS.sampling as Loose as never);
  client.setRequestHandler(ListRootsRequestSchema, () => ANSWERS.roots as Loose as never);
  // Its declarations do not know exact optional members.
  await client.connect(transport as Parameters<typeof client.connect>[0]);
  return shaped(client, (params, progress) =>
    client.callTool(params as never, undefined, progress && { onprogress: progress }),
  );
}

async function secondLine(where: Where, mode: 'legacy' | 'auto'): Promise<SdkClient> {
  const client = new ClientV2(INFO, { capabilities: CAPABILITIES, versionNegotiation: { mode } });
  client.setRequestHandler('elicitation/create', () => ANSWERS.elicitation as Loose as never);
  client.setRequestHandler('sampling/createMessage', () => ANSWERS.sampling as Loose as never);
  client.setRequestHandler('roots/list', () => ANSWERS.roots as Loose as never);
  const [command = '', ...args] = 'command' in where ? where.command : [];
  await client.connect(
    'url' in where ? new HttpV2(new URL(where.url)) : new StdioV2({ command, args, stderr: 'ignore' }),
  );
  return shaped(client, (params, progress) => client.callTool(params as never, progress && { onprogress: progress }));
}

type Call = (params: Loose, progress?: (received: Loose) => void) => Promise<Loose>;

function shaped(client: ClientV1 | ClientV2, call: Call): SdkClient {
  const any = client as Loose;
  return {
    server: client.getServerVersion() as Loose,
    tools: async () => (await any.listTools()).tools,
    call: (name, args, progress) => call({ name, arguments: args }, progress),
    prompts: async () => (await any.listPrompts()).prompts,
    prompt: (name, args) => any.getPrompt({ name, arguments: args }),
    resources: async () => (await any.listResources()).resources,
    templates: async () => (await any.listResourceTemplates()).resourceTemplates,
    read: (uri) => any.readResource({ uri }),
    complete: (params) => any.complete(params),
    close: () => client.close(),
  };
}
