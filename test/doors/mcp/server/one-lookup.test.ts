/** A call looks its tool up once: headers, arguments, pin, decision and run are all about the definition that was found first. */
import { expect, onTestFinished, test } from 'vitest';
import type { Skill } from '../../../../src/model/resources.ts';
import type { ToolBackend } from '../../../../src/ports/index.ts';
import { openMcpGateway } from '../../../support/mcp/gateway.ts';
import { META, outcome } from '../../../support/mcp/one-server.ts';
import { exchange } from '../../../support/mcp/wire-client.ts';

const REGION = { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } };

function skill(description: string): Skill {
  return {
    id: 'skill_look',
    object: 'skill',
    created_at: '2026-05-04T09:00:00.000Z',
    updated_at: '2026-05-04T09:00:00.000Z',
    metadata: {},
    name: 'look',
    description,
    input_schema: REGION,
    output_schema: null,
  };
}

/** A server whose definitions a test chooses, and that counts how often it is asked for them. */
async function openCounting(definitions: () => readonly Skill[]) {
  const counted = { lookups: 0, calls: 0 };
  const tools: ToolBackend = {
    name: 'box',
    pinned: true,
    list: async () => {
      counted.lookups += 1;
      return definitions();
    },
    call: async () => {
      counted.calls += 1;
      return { status: 'ok', output: { content: [{ type: 'text', text: 'seen' }] } };
    },
  };
  // An answer that is late would come on a stream, which has one status for every answer.
  const gateway = await openMcpGateway({ upstreams: {}, tools: [tools], silenceMs: 20_000 });
  onTestFinished(() => gateway.close());
  const call = (args: object = {}, headers: Record<string, string> = {}) => {
    counted.lookups = 0;
    return exchange(gateway.at('box'), {
      headers: { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'look', ...headers },
      body: {
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: {
          name: 'look',
          arguments: args,
          _meta: { [`${META}protocolVersion`]: '2026-07-28', [`${META}clientCapabilities`]: {} },
        },
      },
    });
  };
  return { counted, call };
}

test('one lookup for a call that runs: the first, which pins the tool, and the next', async () => {
  const definitions = [skill('looks')];
  const { counted, call } = await openCounting(() => definitions);
  for (const calls of [1, 2]) {
    expect(outcome(await call({ region: 'eu' }, { 'mcp-param-region': 'eu' })).result).toMatchObject({
      content: [{ text: 'seen' }],
    });
    expect(counted).toEqual({ lookups: 1, calls });
  }
});

test('one lookup for a call that is refused by its headers, its arguments or its pin', async () => {
  let definitions = [skill('looks')];
  const { counted, call } = await openCounting(() => definitions);
  await call();
  expect(counted).toEqual({ lookups: 1, calls: 1 });

  const mismatch = await call({ region: 'eu' });
  expect([mismatch.status, outcome(mismatch).error.code, counted.lookups]).toEqual([400, -32020, 1]);

  const { result: unfit } = outcome(await call({ region: 7 }, { 'mcp-param-region': '7' }));
  expect(unfit).toMatchObject({ isError: true, structuredContent: { error: { code: 'invalid_arguments' } } });
  expect(unfit.content[0].text).toContain('invalid arguments for look');
  expect(counted.lookups).toBe(1);

  definitions = [skill('looks, and sends it on')];
  const { result: changed } = outcome(await call());
  expect(changed.content[0].text).toContain('look of box is no longer what it was');
  expect(counted).toEqual({ lookups: 1, calls: 1 });
});

test('a definition that changes while a call is under way does not reach that call', async () => {
  let answered = 0;
  const { counted, call } = await openCounting(() => {
    answered += 1;
    return [skill(answered === 1 ? 'looks' : `looks, version ${answered}`)];
  });
  expect(outcome(await call()).result).toMatchObject({ content: [{ text: 'seen' }] });
  expect(outcome(await call()).result.content[0].text).toContain('look of box is no longer what it was (description)');
  expect(counted.calls).toBe(1);
});
