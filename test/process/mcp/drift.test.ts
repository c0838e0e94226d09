/** A definition that is no longer what it was, as the operator of the gateway meets it: shown line by line, and accepted by name. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { accept, listPins } from '../../../src/cli/commands/mcp/accept.ts';
import { openMcpGateway } from '../../support/mcp/gateway.ts';
import { openLegacyClient, outcome } from '../../support/mcp/one-server.ts';
import { echo, type Loose, openUpstream } from '../../support/mcp/upstream.ts';
import { exchange, type Received } from '../../support/mcp/wire-client.ts';
import { aDirectory, typed } from '../../support/process/cli.ts';

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};

test('what changed is shown with what it was; accepting it by name lets it run, and nothing else does', async () => {
  const data = await aDirectory();
  const upstream = await openUpstream({ tools: { echo, other: echo } });
  const gateway = await openMcpGateway({ upstreams: { u: { url: upstream.url } }, dir: data });
  onTestFinished(async () => {
    await gateway.close();
    await upstream.close();
  });
  const ask = async (method: string, params: Loose = {}) => {
    const named = params.name === undefined ? {} : { 'mcp-name': params.name };
    const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method, ...named };
    const body = { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: META } };
    return outcome(await exchange(gateway.at('u'), { headers, body })).result;
  };
  const call = () => ask('tools/call', { name: 'echo', arguments: { text: 'hi' } });
  const names = async () => (await ask('tools/list')).tools.map(({ name }: Loose) => name);
  expect((await call()).isError).toBeUndefined();
  expect(await typed(() => listPins({ data }))).toMatchObject({
    code: 0,
    out: 'Every tool is what it was when first seen.\n',
  });

  upstream.tools.echo = {
    ...echo,
    definition: { description: 'does echo, twice', annotations: { readOnlyHint: true } },
  };
  expect(await names()).toEqual(['other']);
  const refused = await call();
  expect(refused.structuredContent.error.code).toBe('definition_changed');
  // A definition can be written for the model that reads it: it is not told what it says now.
  expect(JSON.stringify(refused)).not.toContain('twice');
  expect(refused.content[0].text).toContain('is no longer what it was (description and annotations); it is refused');
  expect(upstream.count('tools/call')).toBe(1);
  expect((await typed(() => listPins({ data }))).out).toBe(
    'u echo\n  description was "does echo" and is "does echo, twice"\n  annotations was {} and is {"readOnlyHint":true}\n',
  );
  expect((await typed(() => accept('u', ['other'], { data, yes: true }))).code).toBe(3);
  expect((await call()).isError).toBe(true);
  const accepted = await typed(() => accept('u', ['echo'], { data, yes: true }));
  expect(accepted.code).toBe(0);
  expect(accepted.out).toContain(
    '  read    echo  does echo, twice\n      description was "does echo" and is "does echo, twice"\n',
  );
  expect(accepted.out).toContain('Accepted: 1 tool of u.\n');
  expect((await call()).content).toEqual([{ type: 'text', text: 'hi' }]);
  expect(await names()).toEqual(['echo', 'other']);
  expect(upstream.count('tools/call')).toBe(2);
});

test('a definition that is again what it was has no change left to accept', async () => {
  const data = await aDirectory();
  const upstream = await openUpstream({ tools: { echo } });
  const gateway = await openMcpGateway({ upstreams: { u: { url: upstream.url } }, dir: data });
  onTestFinished(async () => {
    await gateway.close();
    await upstream.close();
  });
  const client = await openLegacyClient(gateway.at('u'));
  const call = async () =>
    outcome(await client.request('tools/call', { name: 'echo', arguments: { text: 'hi' } })).result.isError;
  const becomes = async (tool: Loose) => {
    upstream.tools.echo = tool;
    await client.request('tools/list');
  };
  expect(await call()).toBeUndefined();
  await becomes({ ...echo, definition: { description: 'another' } });
  expect(await call()).toBe(true);
  await becomes(echo);
  expect(await call()).toBeUndefined();
  expect((await typed(() => listPins({ data }))).out).toBe('Every tool is what it was when first seen.\n');
  // Accepting now accepts the tool as it is, and not the change that was.
  expect((await typed(() => accept('u', ['echo'], { data, yes: true }))).out).toContain('echo  does echo\n');
  expect(await call()).toBeUndefined();
});

test('a server that a person has accepted is quiet about reading, until one of its tools changes', async () => {
  const data = await aDirectory();
  const reads = { ...echo, definition: { annotations: { readOnlyHint: true } } };
  const upstream = await openUpstream({ tools: { look: reads, peek: reads, wipe: echo } });
  const rules = () =>
    '- { id: reads, when: { effect: read }, then: allow }\n- { id: others, when: { effect: [unknown, delete] }, then: block }';
  const gateway = await openMcpGateway({ upstreams: { u: { url: upstream.url } }, dir: data, rules });
  onTestFinished(async () => {
    await gateway.close();
    await upstream.close();
  });
  const client = await openLegacyClient(gateway.at('u'));
  const call = async (name: string) =>
    outcome(await client.request('tools/call', { name, arguments: { text: 'hi' } })).result.isError;
  expect(await call('look')).toBe(true);

  const config = join(data, 'tollbridge.yaml');
  await writeFile(config, `tools: { u: { mcp: { url: "${upstream.url}" } } }\n`);
  const asked = await typed(() => accept('u', [], { data, config }));
  expect(asked.err).toContain('nobody is here to answer');
  expect(await call('look')).toBe(true);
  const accepted = await typed(() => accept('u', [], { data, config, yes: true }));
  expect(accepted.out).toBe(
    'Tools of u, with the effect that the server states for each:\n\n' +
      '  delete  wipe  does wipe\n  read    look  does look\n  read    peek  does peek\n\nAccepted: 3 tools of u.\n',
  );
  expect([await call('look'), await call('peek'), await call('wipe')]).toEqual([undefined, undefined, true]);
  expect((await typed(() => accept('u', [], { data, config, yes: true }))).code).toBe(3);

  // What was accepted is this definition: another one that says it only reads is not believed.
  upstream.tools.peek = { ...echo, definition: { description: 'other', annotations: { readOnlyHint: true } } };
  await client.request('tools/list');
  expect([await call('look'), await call('peek')]).toEqual([undefined, true]);
});

/** A server whose tool changed before anyone looked, and an address to hear about it from. */
async function openDrifted() {
  const data = await aDirectory();
  const upstream = await openUpstream({ tools: { echo, other: echo } });
  const gateway = await openMcpGateway({ upstreams: { u: { url: upstream.url } }, dir: data, door: { agents: false } });
  const over = new AbortController();
  onTestFinished(async () => {
    over.abort();
    await gateway.close();
    await upstream.close();
  });
  const visitor = await openLegacyClient(gateway.at('u'));
  await visitor.request('tools/list');
  upstream.tools.echo = { ...echo, definition: { description: 'does echo, twice' } };
  await visitor.request('tools/list');
  return { data, gateway, over: over.signal };
}
const CHANGED = 'notifications/tools/list_changed';
const toolsOf = (received: Received) => outcome(received).result.tools.map(({ name }: Loose) => name);

test.each([
  ['a server’s own address', '/mcp/u', ''],
  ['the common address', '/mcp', 'u__'],
])('a connected client is notified when another process accepts a definition: %s', async (_, path, prefix) => {
  const { data, gateway, over } = await openDrifted();
  const url = `${gateway.url}${path}`;
  const old = await openLegacyClient(url);
  const received: Loose[] = [];
  const frame = (said: Loose) => {
    received.push(said);
    return undefined;
  };
  old.listen(frame, over).catch(() => {});
  expect(toolsOf(await old.request('tools/list'))).toEqual([`${prefix}other`]);
  const listening: Loose[] = [];
  const params = { notifications: { toolsListChanged: true }, _meta: META };
  exchange(url, {
    headers: { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'subscriptions/listen' },
    body: { jsonrpc: '2.0', id: 'mine', method: 'subscriptions/listen', params },
    frame: (said) => void listening.push(said),
    signal: over,
  }).catch(() => {});
  await expect.poll(() => listening.map(({ method }) => method)).toContain('notifications/subscriptions/acknowledged');

  expect(await typed(() => accept('u', ['echo'], { data, yes: true }))).toMatchObject({ code: 0 });
  await expect
    .poll(() => received.filter(({ method }) => method === CHANGED))
    .toEqual([{ jsonrpc: '2.0', method: CHANGED }]);
  const mark = { _meta: { 'io.modelcontextprotocol/subscriptionId': 'mine' } };
  await expect.poll(() => listening.slice(1)).toEqual([{ jsonrpc: '2.0', method: CHANGED, params: mark }]);
  expect(toolsOf(await old.request('tools/list'))).toEqual([`${prefix}echo`, `${prefix}other`]);
});

test('a change of rules is announced at a server’s own address, to clients that see other tools by it', async () => {
  const upstream = await openUpstream({ tools: { echo, other: echo } });
  const allow = '- { id: all, when: {}, then: allow }';
  let rules = allow;
  const gateway = await openMcpGateway({ upstreams: { u: { url: upstream.url } }, rules: () => rules });
  const over = new AbortController();
  onTestFinished(async () => {
    over.abort();
    await gateway.close();
    await upstream.close();
  });
  const old = await openLegacyClient(gateway.at('u'));
  const received: string[] = [];
  old.listen(({ method }) => void received.push(method), over.signal).catch(() => {});
  expect(toolsOf(await old.request('tools/list'))).toEqual(['echo', 'other']);
  rules = `- { id: no, when: { tool: nothing }, then: block, say: no }\n${allow}`;
  await gateway.runtime.policy.reload();
  rules = `- { id: no, when: { tool: echo }, then: block, say: no }\n${allow}`;
  await gateway.runtime.policy.reload();
  await expect.poll(() => received).toEqual([CHANGED]);
  expect(toolsOf(await old.request('tools/list'))).toEqual(['other']);
});
