/** A definition that is no longer what it was, as whoever looks after the house meets it: shown line by line, and accepted by name. */
import { expect, onTestFinished, test } from 'vitest';
import { acceptPin, listPins } from '../src/cli/mcp.ts';
import { aDirectory, typed } from './support/cli.ts';
import { outcome } from './support/mcp.ts';
import { openMcpGateway } from './support/mcp-gateway.ts';
import { echo, type Loose, openUpstream } from './support/mcp-upstream.ts';
import { exchange } from './support/mcp-wire-client.ts';

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
  expect((await call()).structuredContent.error.code).toBe('definition_changed');
  expect(upstream.count('tools/call')).toBe(1);
  expect((await typed(() => listPins({ data }))).out).toBe(
    'u echo\n  description was "does echo" and is "does echo, twice"\n  annotations was {} and is {"readOnlyHint":true}\n',
  );
  expect((await typed(() => acceptPin('u', 'other', { data }))).code).toBe(3);
  expect((await call()).isError).toBe(true);
  expect(await typed(() => acceptPin('u', 'echo', { data }))).toMatchObject({
    code: 0,
    out: 'echo of u may be used as it is now\n',
  });
  expect((await call()).content).toEqual([{ type: 'text', text: 'hi' }]);
  expect(await names()).toEqual(['echo', 'other']);
  expect(upstream.count('tools/call')).toBe(2);
});
