/**
 * Servers from the registry behind the gateway, driven by the clients people have: what a client gets through the gateway
 * is what the same client gets from the server itself.
 */
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Loose } from '../../../support/mcp/fixture/asking.ts';
import { type McpGateway, openMcpGateway } from '../../../support/mcp/gateway.ts';
import { SDK_CLIENTS, type SdkClient, type Where } from '../../../support/mcp/sdk-clients.ts';

const program = (name: string, ...args: readonly string[]) => [
  process.execPath,
  fileURLToPath(new URL(`../../../../node_modules/@modelcontextprotocol/${name}/dist/index.js`, import.meta.url)),
  ...args,
];
const everything = program('server-everything', 'stdio');
let files: string;
let gateway: McpGateway;

beforeAll(async () => {
  files = await realpath(await mkdtemp(join(tmpdir(), 'tb-peers-')));
  await writeFile(join(files, 'hello.txt'), 'hello from a file\n');
  gateway = await openMcpGateway({
    upstreams: { everything: { command: everything }, filesystem: { command: program('server-filesystem', files) } },
  });
});
afterAll(async () => {
  await gateway.close();
  await rm(files, { recursive: true, force: true });
});

async function visit<T>(open: (where: Where) => Promise<SdkClient>, where: Where, look: (c: SdkClient) => Promise<T>) {
  const client = await open(where);
  try {
    return await look(client);
  } finally {
    await client.close();
  }
}

/** Everything that server shows, but for what is random or a matter of time. */
async function lookAtEverything(client: SdkClient): Promise<Loose> {
  const progress: Loose[] = [];
  const slow = { duration: 0.2, steps: 2 };
  return {
    server: client.server,
    tools: (await client.tools()).map(({ execution: _, ...tool }) => tool),
    echo: await client.call('echo', { message: 'to and fro' }),
    sum: await client.call('get-sum', { a: 2, b: 40 }),
    image: await client.call('get-tiny-image', {}),
    annotated: await client.call('get-annotated-message', { messageType: 'error', includeImage: true }),
    structured: await client.call('get-structured-content', { location: 'Chicago' }),
    links: await client.call('get-resource-links', { count: 3 }),
    wrong: await client.call('get-sum', { a: 'two' }).catch((cause) => ({ refused: cause.code })),
    long: await client.call('trigger-long-running-operation', slow, (received) => progress.push(received)),
    progress,
    sampled: await client.call('trigger-sampling-request', { prompt: 'Capital of Peru?', maxTokens: 10 }),
    elicited: await client.call('trigger-elicitation-request', {}),
    prompts: await client.prompts(),
    prompt: await client.prompt('args-prompt', { city: 'Lima' }),
    templates: await client.templates(),
    resources: await client.resources(),
    completed: await client.complete({
      ref: { type: 'ref/prompt', name: 'completable-prompt' },
      argument: { name: 'department', value: 'E' },
    }),
  };
}

/** Without what the modern era adds to every result: the server itself speaks the legacy one. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  const kept = Object.entries(value).filter(([name, each]) => name !== '_meta' || !(SERVER_INFO in (each as object)));
  return Object.fromEntries(kept.map(([name, each]) => [name, plain(each)]));
}
const SERVER_INFO = 'io.modelcontextprotocol/serverInfo';

for (const [name, open] of Object.entries(SDK_CLIENTS)) {
  test(`server-everything and a ${name}`, async () => {
    const through = await visit(open, { url: gateway.at('everything') }, lookAtEverything);
    const direct = await visit(open, { command: everything }, lookAtEverything);
    expect(through.echo.content).toEqual([{ type: 'text', text: 'Echo: to and fro' }]);
    // A server that asks for something in the middle of it has the client tell progress of its own, which has no total.
    expect(through.progress.filter((received: Loose) => received.total !== undefined)).toMatchObject([
      { progress: 1, total: 2 },
      { progress: 2, total: 2 },
    ]);
    // Arguments that do not fit are refused before the server hears of them, in our words.
    expect([through.wrong.isError, direct.wrong.isError]).toEqual([true, true]);
    expect(through.wrong.content[0].text).toBe(
      "invalid arguments for get-sum: arguments must have required property 'b'",
    );
    expect(plain({ ...through, progress: [], wrong: {} })).toEqual(plain({ ...direct, progress: [], wrong: {} }));
  });

  test(`server-filesystem and a ${name}`, async () => {
    await visit(open, { url: gateway.at('filesystem') }, async (client) => {
      const path = (file: string) => join(files, file);
      const names = (await client.tools()).map((tool) => tool.name);
      expect(names).toContain('read_text_file');
      const read = await client.call('read_text_file', { path: path('hello.txt') });
      expect(read.content).toEqual([{ type: 'text', text: 'hello from a file\n' }]);
      await client.call('write_file', { path: path('written.txt'), content: name });
      const written = await client.call('read_text_file', { path: path('written.txt') });
      expect(written.structuredContent).toEqual({ content: name });
      const outside = await client.call('read_text_file', { path: '/etc/hostname' });
      expect(outside.isError).toBe(true);
    });
  });
}
