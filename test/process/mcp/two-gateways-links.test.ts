/** Receipts of two gateways in a row over MCP: each names the other by id and hash, whatever became of the call; a forged one never holds. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { NAMES } from '../../../src/cli/commands/proof/archive.ts';
import { verify } from '../../../src/cli/commands/proof/verify.ts';
import { followLinks } from '../../../src/cli/commands/proof/verify-linked.ts';
import { systemClock } from '../../../src/core/clock.ts';
import type { Receipt } from '../../../src/model/receipt.ts';
import { canonicalJson, hashOf } from '../../../src/receipt/seal/canonical-json.ts';
import { checkLinks, linksOf } from '../../../src/receipt/verify/linked.ts';
import { verifyReceipt } from '../../../src/receipt/verify/verify.ts';
import { openTestGateway } from '../../support/gateway/test-gateway.ts';
import { openMcpGateway, VISITOR } from '../../support/mcp/gateway.ts';
import { SDK_CLIENTS } from '../../support/mcp/sdk-clients.ts';
import { inARow, send } from '../../support/mcp/two-gateways.ts';
import { type Loose, openUpstream, type Tool, untilStopped } from '../../support/mcp/upstream.ts';
import { typed } from '../../support/process/cli.ts';
import { exported, linksByScript, saidByPython } from '../../support/process/linked-exports.ts';
import { aGateway, PROGRAM } from '../../support/process/stdio-process.ts';

const ALL = '- { id: everything, when: {}, then: allow }';
const calls = ({ side_effects }: Receipt) => side_effects.tool_calls;
const linked = (one: readonly Receipt[], other: readonly Receipt[]) =>
  checkLinks(one, { receipts: other.map((receipt) => ({ receipt })) });

/** Of the one call that was made: what each says of the other, whole. */
function expectBoth([a]: readonly Receipt[], [b]: readonly Receipt[]): void {
  const [call] = calls(b!);
  const [toB] = linksOf(a!);
  expect(linksOf(a!)).toEqual([
    {
      direction: 'callee',
      protocol: 'mcp',
      task_id: b!.subject.id,
      tool_call_id: calls(a!)[0]?.call_id,
      receipt_id: b!.receipt_id,
      receipt_hash: b!.chain.receipt_hash,
      issuer: 'tollbridge',
      key_id: b!.issuer.public_key_id,
      checked: 'claimed',
      event_id: expect.any(String),
      event_hash: expect.stringMatching(/^sha256:/),
    },
  ]);
  expect(linksOf(b!)).toEqual([
    {
      direction: 'caller',
      protocol: 'mcp',
      task_id: a!.subject.id,
      tool_call_id: calls(a!)[0]?.call_id,
      call_id: call?.call_id,
      issuer: 'tollbridge',
      key_id: a!.issuer.public_key_id,
      checked: 'claimed',
      event_id: toB?.event_id,
      event_hash: toB?.event_hash,
    },
  ]);
  expect(linked([a!], [b!])).toMatchObject([{ state: 'linked', direction: 'callee' }]);
  expect(linked([b!], [a!])).toMatchObject([{ state: 'linked', direction: 'caller' }]);
}

describe.each(['legacy', 'modern'] as const)('to a gateway of the %s era', (era) => {
  test('each receipt states the other one by id and hash, and verify follows it', async () => {
    const { client, near, far, receipts } = await inARow({ upstream: { gateway: true, era } });
    await client.call('send', { to: 'bo' });
    const { a, b } = await receipts();
    expectBoth(a, b);
    expect(calls(a[0]!)[0]?.input_hash).toBe(calls(b[0]!)[0]?.input_hash);
    expect(verifyReceipt(a[0], { keys: near.runtime.keyring.jwks() }).valid).toBe(true);
    expect(verifyReceipt(b[0], { keys: far.runtime.keyring.jwks() }).valid).toBe(true);

    const [ours, theirs] = [await exported(near.runtime), await exported(far.runtime)];
    expect(await followLinks(ours, theirs)).toMatchObject({ linked: 1, mismatch: 0, not_available: 0 });
    expect(await followLinks(theirs, ours)).toMatchObject({ linked: 1, mismatch: 0, not_available: 0 });
    expect(await linksByScript(ours, theirs)).toBe(1);
    const python = saidByPython(ours, theirs);
    if (python !== undefined) expect(python).toMatch(/^ok .*1 links$/m);

    const said = () => typed(() => verify(ours, { linked: theirs }));
    expect(await said()).toMatchObject({ code: 0, out: expect.stringContaining('1 linked and valid, 0 linked') });
    const changed = { ...b[0], issued_at: '2020-01-01T00:00:00Z' };
    await writeFile(join(theirs, NAMES.receipts), `${canonicalJson(changed as never)}\n`);
    const { checks } = await followLinks(ours, theirs);
    expect(checks).toMatchObject([{ state: 'mismatch', reason: expect.stringContaining('not valid') }]);
    expect(await said()).toMatchObject({ code: 1, out: expect.stringContaining('is linked and does not match') });
  });

  test('a call whose answer is lost on the way is found by what was announced', async () => {
    const { slow, stopped } = untilStopped();
    const { client, server, relay, receipts } = await inARow({
      upstream: { gateway: true, era },
      tools: { slow },
    });
    const calling = client.call('slow', {}).catch(() => undefined);
    await expect.poll(() => server.count('tools/call'), { timeout: 10_000 }).toBe(1);
    relay.cut();
    await calling;
    // In the legacy era a connection that is lost gives no call up: there the far one goes on with it.
    if (era === 'modern') await stopped;
    const { a, b } = await receipts();
    expect(a.flatMap(calls).map(({ metadata }) => metadata?.outcome)).toEqual(['unknown']);
    expect(a.flatMap(linksOf)).toMatchObject([{ checked: 'unanswered', task_id: 'unknown' }]);
    expect(linked(a, b)).toMatchObject([{ state: 'linked' }]);
    expect(linked(b, a)).toMatchObject([{ state: 'linked' }]);
  });
});

const TOOLS: Record<string, Tool> = {
  send,
  fails: { call: () => ({ content: [{ type: 'text', text: 'no post' }], isError: true }) },
  breaks: {
    call() {
      throw Object.assign(new Error('the post is shut'), { code: -32050 });
    },
  },
};
test.each([
  [
    'refused',
    'send',
    `${ALL}\n- { id: no, when: { tool: send, arguments: { to: bo } }, then: block, say: not today }`,
    'refused',
  ],
  ['failed', 'fails', ALL, 'failed'],
  ['answered with an error', 'breaks', ALL, 'failed'],
  [
    'rewritten',
    'send',
    `${ALL}\n- { id: in, when: { tool: send }, then: modify, set: { to: team }, say: ok }`,
    'succeeded',
  ],
])('a call that is %s there', async (_, tool, farRules, outcome) => {
  const { client, receipts } = await inARow({ farRules, tools: TOOLS });
  await client.call(tool, { to: 'bo' }).catch(() => undefined);
  const { a, b } = await receipts();
  expectBoth(a, b);
  expect(calls(a[0]!)[0]?.metadata?.outcome).toBe(outcome);
  expect(calls(b[0]!)[0]?.metadata?.outcome).toBe(outcome);
});

test('a call that is approved there', async () => {
  const farRules = `${ALL}\n- { id: ask, when: { tool: send }, then: ask, say: mail is asked about }`;
  const { client, far, receipts } = await inARow({ farRules, client: 'v2 client, legacy era' });
  const calling = client.call('send', { to: 'bo' });
  const { store, bridge } = far.runtime;
  for await (const { payload } of store.follow(
    { stream: { of: 'all' }, kinds: ['vendor.tollbridge.ask_opened'] },
    AbortSignal.timeout(10_000),
  )) {
    const { id } = (payload as Loose).ask;
    const actor = { ...VISITOR, id: 'approver', interactive: true } as const;
    await bridge.submit({ kind: 'ask.answer', actor, body: { ask_id: id, approved: true } });
    break;
  }
  await calling;
  const { a, b } = await receipts();
  expectBoth(a, b);
  expect(b[0]?.approvals).toMatchObject([{ decision: 'approved', actor: 'approver' }]);
});

/** A gateway as a child of another one: its tool answers, or takes its gateway along. */
const SERVER = `
const tools = ['ok', 'kill'].map((name) => ({ name, description: name, inputSchema: { type: 'object' } }));
const say = (frame) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...frame }) + '\\n');
require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  if (method === 'initialize') return say({ id, result: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } } });
  if (method === 'tools/list') return say({ id, result: { tools } });
  if (method !== 'tools/call') return say({ id, error: { code: -32601, message: 'no such method' } });
  if (params.name === 'kill') return process.kill(process.ppid, 'SIGKILL');
  say({ id, result: { content: [{ type: 'text', text: params.name }] } });
});
`;
test('over stdio; and a gateway that is killed in the middle of a call is found by the reference it received', async () => {
  const box = { mcp: { command: [process.execPath, '-e', SERVER] } };
  const rules = [{ id: 'all', then: 'allow' }];
  const { config, data } = await aGateway('');
  await writeFile(config, JSON.stringify({ data, tools: { box }, rules }));
  const command = [process.execPath, ...PROGRAM, '--config', config, 'mcp', '--server', 'box'];
  const near = await openMcpGateway({ upstreams: { far: { command, gateway: true } } });
  onTestFinished(() => near.close());
  const client = await SDK_CLIENTS['v2 client, modern era']!({ url: near.at('far') });
  await client.call('ok', {});
  await client.call('kill', {}).catch(() => undefined);
  await client.close();
  const far = await openTestGateway({ dir: data, clock: systemClock });
  await far.runtime.idle();
  const b = (await far.runtime.store.receipts({})).map(({ receipt }) => receipt);
  const [task] = await near.runtime.store.list<Loose>({ object: 'task' });
  const body = { task_id: task.id, end: { state: 'COMPLETED' as const } };
  await near.runtime.bridge.submit({ kind: 'task.report', actor: VISITOR, body });
  const a = (await near.runtime.store.receipts({})).map(({ receipt }) => receipt);

  expect(a.flatMap(calls).map(({ tool, metadata }) => [tool, metadata?.outcome])).toEqual([
    ['ok', 'succeeded'],
    ['kill', 'unknown'],
  ]);
  const [ok, killed] = a.flatMap(linksOf);
  const [done, cut] = b;
  expect(ok).toMatchObject({ receipt_id: done?.receipt_id, receipt_hash: done?.chain.receipt_hash });
  expect(killed).toEqual({
    direction: 'callee',
    protocol: 'mcp',
    checked: 'unanswered',
    task_id: 'unknown',
    tool_call_id: calls(a[0]!)[1]?.call_id,
    event_id: ok?.event_id,
    event_hash: ok?.event_hash,
  });
  expect(cut?.lifecycle.failure).toMatchObject({ code: 'interrupted' });
  expect(linked(a, b)).toMatchObject([{ state: 'linked' }, { state: 'linked' }]);
  expect(linked(b, a)).toMatchObject([{ state: 'linked' }, { state: 'linked' }]);
  expect(await linksByScript(await exported(near.runtime), await exported(far.runtime))).toBe(2);
  // Another caller's receipt about other work is not the one.
  const other = { ...cut!, metadata: { linked_receipts: [{ ...linksOf(cut!)[0]!, event_hash: hashOf('other') }] } };
  expect(linked(a, [done!, other])).toMatchObject([{ state: 'linked' }, { state: 'mismatch' }]);
  expect(linked(a, [done!])).toMatchObject([{ state: 'linked' }, { state: 'not_available' }]);
});

describe('a reference that does not hold', () => {
  /** A server that is called a gateway and says of its receipts what it likes. */
  async function claiming(said: object): Promise<readonly Receipt[]> {
    const _meta = { 'dev.tollbridge/act': { verdict: 'approved', ...said } };
    const server = await openUpstream({ tools: { send: { call: () => ({ content: [], _meta }) } } });
    const near = await openMcpGateway({ upstreams: { far: { url: server.url, gateway: true } } });
    onTestFinished(async () => {
      await near.close();
      await server.close();
    });
    const client = await SDK_CLIENTS['v1 client']!({ url: near.at('far') });
    await client.call('send', { to: 'bo' });
    await client.close();
    const [task] = await near.runtime.store.list<Loose>({ object: 'task' });
    if (task.status === 'WORKING') {
      const body = { task_id: task.id, end: { state: 'COMPLETED' as const } };
      await near.runtime.bridge.submit({ kind: 'task.report', actor: VISITOR, body });
    }
    return (await near.runtime.store.receipts({})).map(({ receipt }) => receipt);
  }
  async function anHonestPair() {
    const { client, receipts } = await inARow();
    await client.call('send', { to: 'bo' });
    return await receipts();
  }

  test('to no receipt: claimed, and not there', async () => {
    const a = await claiming({ task_id: 'task_x', receipt_id: 'receipt_x', receipt_hash: hashOf('x') });
    const { b } = await anHonestPair();
    expect(linksOf(a[0]!)).toMatchObject([{ checked: 'claimed', receipt_id: 'receipt_x' }]);
    expect(linked(a, b)).toMatchObject([{ state: 'not_available' }]);
  });

  test('to a valid receipt of a call that is not ours', async () => {
    const { b } = await anHonestPair();
    const [{ receipt_id, chain, subject }] = b as [Receipt];
    const a = await claiming({ task_id: subject.id, receipt_id, receipt_hash: chain.receipt_hash });
    expect(linked(a, b)).toMatchObject([{ state: 'mismatch', reason: expect.stringContaining('does not name') }]);
  });

  test('a caller that was cut off cannot name a receipt it did not receive; one that was answered can', async () => {
    const { a, b } = await anHonestPair();
    const ended = (outcome: string) => {
      const [call] = calls(a[0]!);
      const side_effects = { ...a[0]!.side_effects, tool_calls: [{ ...call!, metadata: { outcome } }] };
      return [{ ...a[0]!, metadata: {}, side_effects }];
    };
    expect(linked(b, ended('unknown'))).toMatchObject([
      { state: 'not_available', reason: expect.stringContaining('stopped before') },
    ]);
    expect(linked(b, ended('succeeded'))).toMatchObject([
      { state: 'mismatch', reason: expect.stringContaining('does not name') },
    ]);
  });

  test('to a receipt of another hash, or to one without any', async () => {
    const { a, b } = await anHonestPair();
    const [link] = linksOf(a[0]!);
    const having = (change: object) => [{ ...a[0]!, metadata: { linked_receipts: [{ ...link, ...change }] } as Loose }];
    expect(linked(having({ receipt_hash: hashOf('x') }), b)).toMatchObject([
      { state: 'mismatch', reason: expect.stringContaining('another hash') },
    ]);
    expect(linked(having({ receipt_hash: undefined }), b)).toMatchObject([
      { state: 'mismatch', reason: expect.stringContaining('no hash') },
    ]);
    const without = { ...b[0]!, side_effects: { ...b[0]!.side_effects, tool_calls: [] } };
    expect(linked(a, [without])).toMatchObject([
      { state: 'mismatch', reason: expect.stringContaining('accounts for no such call') },
    ]);
  });
});
