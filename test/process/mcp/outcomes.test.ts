/** How calls of an MCP client came out: refused, failed, canceled, never answered, too late, or cut off with everything else. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/core/clock.ts';
import type { Task } from '../../../src/model/resources.ts';
import type { Row } from '../../../src/ports/index.ts';
import { openTestGateway } from '../../support/gateway/test-gateway.ts';
import { aDirectory } from '../../support/process/cli.ts';
import { startSpeaking } from '../../support/process/stdio-process.ts';

/** `ok` answers, `fail` says that it failed, `hang` never answers, `die` takes the server along. */
const SERVER = `
const tools = ['ok', 'fail', 'hang', 'die', 'no'].map((name) => ({ name, description: name, inputSchema: { type: 'object' } }));
const say = (frame) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...frame }) + '\\n');
require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  if (method === 'initialize') return say({ id, result: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } } });
  if (method === 'tools/list') return say({ id, result: { tools } });
  if (method !== 'tools/call') return say({ id, error: { code: -32601, message: 'no such method' } });
  if (params.name === 'die') return process.exit(1);
  if (params.name === 'hang') return require('fs').appendFileSync(process.argv[1], 'reached ');
  say({ id, result: { content: [{ type: 'text', text: params.name }], ...(params.name === 'fail' && { isError: true }) } });
});
`;

async function client(settings: object = {}) {
  const dir = await aDirectory();
  const config = join(dir, 'tollbridge.yaml');
  const data = join(dir, 'data');
  const mark = join(dir, 'reached');
  const box = { mcp: { command: [process.execPath, '-e', SERVER, mark], ...settings } };
  const rules = [
    { id: 'no', when: { tool: 'no' }, then: 'block', say: 'not here' },
    { id: 'others', when: { kind: 'tool' }, unless: { tool: 'no' }, then: 'allow' },
  ];
  await writeFile(config, JSON.stringify({ data, tools: { box }, rules }));
  const { end, child, exited } = startSpeaking(['--config', config, 'mcp', '--server', 'box']);
  const greeting = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'c', version: '1' } };
  await end.ask('initialize', greeting);
  end.say({ method: 'notifications/initialized' });
  const call = (name: string) => end.ask('tools/call', { name, arguments: {} });
  /** From the log of the whole directory, once a process that was not killed has looked at it. */
  const outcomes = async () => {
    const t = await openTestGateway({ dir: data, clock: systemClock });
    const tasks = await t.runtime.store.list<Task & Row>({ object: 'task', limit: 10 });
    const receipts = (await Promise.all(tasks.map(({ id }) => t.receipts(id)))).flat();
    const calls = receipts.flatMap(({ side_effects }) => side_effects.tool_calls);
    return { tasks, receipts, calls: calls.map(({ tool, status, metadata }) => [tool, metadata?.outcome, status]), t };
  };
  /** So many calls of the tool that hangs have reached their server. */
  const hanging = (count: number) =>
    expect.poll(() => readFile(mark, 'utf8').catch(() => ''), { timeout: 20_000 }).toBe('reached '.repeat(count));
  return { end, child, exited, call, outcomes, hanging };
}

test('each call says what it was; a server that dies, or is too slow, leaves what nobody knows', async () => {
  const { end, call, exited, outcomes } = await client({ timeout_ms: 1_500 });
  await call('ok');
  await call('fail');
  await call('no');
  await call('hang');
  await call('die');
  end.close();
  await exited;
  const { calls, receipts } = await outcomes();
  expect(calls).toEqual([
    ['ok', 'succeeded', 'succeeded'],
    ['fail', 'failed', 'failed'],
    ['no', 'refused', 'canceled'],
    ['hang', 'unknown', 'failed'],
    ['die', 'unknown', 'failed'],
  ]);
  const reasons = receipts[0]?.side_effects.tool_calls.map(({ metadata }) => metadata?.outcome_reason);
  expect(reasons?.slice(2)).toEqual([
    'not here',
    expect.stringContaining('took too long'),
    expect.stringContaining('the server has exited'),
  ]);
});

test('a call its client takes back is canceled, and one whose client has left as well', async () => {
  const { end, call, exited, outcomes, hanging } = await client();
  end.say({ id: 'back', method: 'tools/call', params: { name: 'hang', arguments: {} } });
  end.say({ id: 'left', method: 'tools/call', params: { name: 'hang', arguments: {} } });
  await hanging(2);
  end.say({ method: 'notifications/cancelled', params: { requestId: 'back', reason: 'enough' } });
  await call('ok');
  end.close();
  await exited;
  const { calls } = await outcomes();
  expect(calls.filter(([tool]) => tool === 'hang')).toEqual([
    ['hang', 'canceled', 'canceled'],
    ['hang', 'canceled', 'canceled'],
  ]);
});

test('killed in the middle of its calls, they are on one receipt that the next process seals', async () => {
  const { end, call, child, exited, outcomes, hanging } = await client();
  await call('ok');
  await call('no');
  end.say({ id: 'open', method: 'tools/call', params: { name: 'hang', arguments: {} } });
  await hanging(1);
  child.kill('SIGKILL');
  await exited;
  const { tasks, receipts, calls } = await outcomes();
  expect(tasks).toMatchObject([{ status: 'FAILED', failure: { code: 'interrupted' } }]);
  expect(receipts).toHaveLength(1);
  expect(calls).toEqual([
    ['ok', 'succeeded', 'succeeded'],
    ['no', 'refused', 'canceled'],
    ['hang', 'unknown', 'failed'],
  ]);
});
