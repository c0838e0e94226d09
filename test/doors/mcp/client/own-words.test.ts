/** Answers that are the server's to give, and a question that belongs to no request. */
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { AskRecord } from '../../../../src/model/asks.ts';
import type { Row } from '../../../../src/ports/index.ts';
import { ALLOW_ALL, VISITOR } from '../../../support/mcp/gateway.ts';
import { openScene, outcome, type SceneOptions } from '../../../support/mcp/one-server.ts';
import { echo, type Loose, type Tool } from '../../../support/mcp/upstream.ts';

const STEERED = join(import.meta.dirname, '../../../support/upstreams/steered-server.mjs');

async function steered(options: SceneOptions = {}, ...flags: string[]) {
  const dir = await mkdtemp(join(tmpdir(), 'tb-words-'));
  const journal = join(dir, 'journal');
  const command = [process.execPath, STEERED, journal, ...flags];
  const scene = await openScene({ ...options, others: { steered: { command } } });
  onTestFinished(() => rm(dir, { recursive: true }));
  const seen = (method: string) =>
    readFileSync(journal, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
      .filter((each) => each.method === method);
  return { ...scene, seen };
}

test('a tool that a server does not list is an unknown tool, and the server is not called', async () => {
  const { legacy, seen } = await steered({ common: true });
  const client = await legacy();
  const { error } = outcome(await client.request('tools/call', { name: 'steered__no-such', arguments: { a: 1 } }));
  expect(error).toEqual({ code: -32602, message: 'Unknown tool: "steered__no-such"' });
  expect(seen('tools/call')).toEqual([]);
  expect(outcome(await client.request('tools/call', { name: 'nowhere__x' })).error).toMatchObject({ code: -32602 });
});

const BY_SERVER = `
- { id: theirs, when: { server: steered }, then: allow }
- { id: never, when: { tool: "delete_*" }, then: block }`;

test('where a rule allows it, the server answers the call of a tool that it does not list', async () => {
  const { legacy, seen, events } = await steered({ rules: BY_SERVER, at: 'steered' });
  const client = await legacy();
  const call = async (name: string) => outcome(await client.request('tools/call', { name, arguments: { a: 1 } }));
  expect((await call('no-such')).error).toEqual({
    code: -32602,
    message: 'no tool is called no-such',
    data: { its: 'own' },
  });
  expect(seen('tools/call').map(({ params }) => params)).toEqual([{ name: 'no-such', arguments: { a: 1 } }]);
  const decided = (await events()).flatMap(({ event, payload }) =>
    event === 'vendor.tollbridge.decided' && payload.action.kind === 'tool' ? [payload] : [],
  );
  expect(decided).toMatchObject([
    {
      action: { tool: 'no-such', effect: 'unknown', attributes: { listed: false, trusted: false } },
      decision: { verdict: 'allow', rule_id: 'theirs' },
    },
  ]);
  // A rule that names the tool holds although nothing lists it, and the caller cannot tell it from a tool that is not there.
  expect((await call('delete_all')).error).toEqual({ code: -32602, message: 'Unknown tool: delete_all' });
  // A name that could be mistaken for a listed one.
  expect((await call('ECHO')).error).toEqual({ code: -32602, message: 'Unknown tool: ECHO' });
  expect(seen('tools/call')).toHaveLength(1);
});

const UNDECIDED = '- { id: other, when: { tool: other }, then: block }';

test('nobody is asked about a tool that its server does not list', async () => {
  const { legacy, seen, gateway } = await steered({ rules: UNDECIDED, at: 'steered' });
  const client = await legacy();
  const { error } = outcome(await client.request('tools/call', { name: 'no-such' }));
  expect(error).toEqual({ code: -32602, message: 'Unknown tool: no-such' });
  const asks = await gateway.runtime.bridge.list<AskRecord & Row>(VISITOR, { object: 'ask', where: {} });
  expect(asks.data).toEqual([]);
  expect(seen('tools/call')).toEqual([]);
});

test('a tool that its server no longer lists is not called by the name under which it was pinned', async () => {
  const { legacy, upstream } = await openScene({ tools: { echo, wipe: echo }, rules: ALLOW_ALL });
  const client = await legacy();
  expect(outcome(await client.request('tools/call', { name: 'wipe' })).result.isError).toBeUndefined();
  const { wipe: _, ...others } = upstream.tools;
  for (const name of Object.keys(upstream.tools)) delete upstream.tools[name];
  Object.assign(upstream.tools, others);
  await client.request('tools/list');
  const before = upstream.count('tools/call');
  expect(outcome(await client.request('tools/call', { name: 'wipe' })).error).toMatchObject({ code: -32602 });
  expect(upstream.count('tools/call')).toBe(before);
});

test('no arguments, null and an empty object reach the server as they were sent', async () => {
  const { legacy, modern, seen } = await steered({ common: true });
  const client = await legacy();
  await client.request('tools/list');
  for (const more of [{}, { arguments: null }, { arguments: {} }]) {
    expect(
      outcome(await client.request('tools/call', { name: 'steered__echo', ...more })).result.isError,
    ).toBeUndefined();
  }
  expect(
    outcome(await modern('tools/call', { name: 'steered__echo', arguments: null })).result.isError,
  ).toBeUndefined();
  const sent = seen('tools/call').map(({ params }) => params);
  expect(sent).toEqual([
    { name: 'echo' },
    { name: 'echo', arguments: null },
    { name: 'echo', arguments: {} },
    { name: 'echo', arguments: null },
  ]);
});

const inputSchema = {
  type: 'object',
  properties: { path: { type: 'string' }, force: { type: 'boolean' } },
  required: ['path'],
};
const theirs: Tool = {
  definition: { inputSchema },
  call: ({ args }) => ({
    content: [{ type: 'text', text: args.path ?? 'path is missing, says the server' }],
    isError: !args.path,
  }),
};
const says = ({ result }: Loose) => result.content[0].text;

test('required arguments that an allowed call lacks are the server’s to miss', async () => {
  const { legacy, upstream, events } = await openScene({ tools: { look: theirs } });
  const client = await legacy();
  const call = async (more: Loose) => outcome(await client.request('tools/call', { name: 'look', ...more }));
  const lacking = [{}, { arguments: null }, { arguments: { force: true } }, { arguments: { path: null } }];
  for (const more of lacking) {
    expect(says(await call(more))).toBe('path is missing, says the server');
  }
  const sent = upstream.asked.filter(({ method }) => method === 'tools/call').map(({ params }) => params);
  expect(sent).toEqual(lacking.map((more) => ({ name: 'look', ...more })));
  const decided = (await events()).flatMap(({ event, payload }) =>
    event === 'vendor.tollbridge.decided' && payload.action.tool === 'look' ? [payload.decision.verdict] : [],
  );
  expect(decided).toEqual(lacking.map(() => 'allow'));
  // What is there and does not fit could be read in two ways, so the server never sees it.
  expect(says(await call({ arguments: { force: 'true' } }))).toMatch(/^invalid arguments for look: /);
  expect(says(await call({ arguments: { Path: '/a' } }))).toBe(
    'invalid arguments for look: "Path" differs from "path" only in case',
  );
  expect(upstream.count('tools/call')).toBe(lacking.length);
});

test('nobody is asked about a call that lacks required arguments', async () => {
  const rules = '- { id: ask, when: { tool: look }, then: ask }';
  const { legacy, upstream, gateway } = await openScene({ tools: { look: theirs }, rules });
  const { result } = outcome(await (await legacy()).request('tools/call', { name: 'look', arguments: {} }));
  expect(result.content[0].text).toBe("invalid arguments for look: arguments must have required property 'path'");
  const asks = await gateway.runtime.bridge.list<AskRecord & Row>(VISITOR, { object: 'ask', where: {} });
  expect([asks.data, upstream.count('tools/call')]).toEqual([[], 0]);
});

test.each([
  ['the common address', { common: true }, 'steered__echo'],
  ['the server’s own address', { at: 'steered' }, 'echo'],
])(
  'a question of a server that opens its session waits for a call, and is not the answer to a list: %s',
  async (_, at, name) => {
    const { modern } = await steered(at, '--asks');
    const capabilities = { roots: {} };
    expect(outcome(await modern('tools/list', {}, { capabilities })).result.resultType).toBe('complete');
    expect(outcome(await modern('prompts/list', {}, { capabilities })).result.resultType).toBe('complete');
    const call = { name };
    const asked = outcome(await modern('tools/call', call, { capabilities })).result;
    expect(asked.resultType).toBe('input_required');
    const [key] = Object.keys(asked.inputRequests);
    const inputResponses = { [String(key)]: { roots: [{ uri: 'file:///here' }] } };
    const { requestState } = asked;
    const done = outcome(
      await modern('tools/call', { ...call, inputResponses, requestState }, { capabilities }),
    ).result;
    expect(done.content[0].text).toContain('file:///here');
  },
);
