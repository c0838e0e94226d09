/** Answers that are the server's to give, and a question that belongs to no request. */
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openScene, outcome, type SceneOptions } from '../../../support/mcp/one-server.ts';

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

test('a question of a server that opens its session waits for a call, and is not the answer to a list', async () => {
  const { modern } = await steered({ common: true }, '--asks');
  const capabilities = { roots: {} };
  expect(outcome(await modern('tools/list', {}, { capabilities })).result.resultType).toBe('complete');
  expect(outcome(await modern('prompts/list', {}, { capabilities })).result.resultType).toBe('complete');
  const call = { name: 'steered__echo' };
  const asked = outcome(await modern('tools/call', call, { capabilities })).result;
  expect(asked.resultType).toBe('input_required');
  const [key] = Object.keys(asked.inputRequests);
  const inputResponses = { [String(key)]: { roots: [{ uri: 'file:///here' }] } };
  const { requestState } = asked;
  const done = outcome(await modern('tools/call', { ...call, inputResponses, requestState }, { capabilities })).result;
  expect(done.content[0].text).toContain('file:///here');
});
