/** What a server says of its tools, what the gateway knows better, and what is left on record of how calls ended. */
import { expect, test } from 'vitest';
import { openScene, outcome, type SceneOptions } from '../../../support/mcp/one-server.ts';
import { echo, type Loose, text, untilStopped } from '../../../support/mcp/upstream.ts';
import { exchange } from '../../../support/mcp/wire-client.ts';

const RULES = [
  '- { id: unknown, when: { effect: unknown }, then: block, say: nobody knows what it does }',
  '- { id: open, when: { effect: delete, attributes: { open_world: true } }, then: block, say: it may delete anything }',
  '- { id: all, when: {}, then: allow }',
].join('\n');
const hints = (annotations: Loose) => ({ ...echo, definition: { annotations } });
const tools = {
  reads: hints({ readOnlyHint: true }),
  closed: hints({ openWorldHint: false, idempotentHint: true }),
  silent: echo,
};

async function allowed(config: SceneOptions['config']): Promise<string[]> {
  const { modern } = await openScene({ rules: RULES, tools, config });
  const names: string[] = [];
  for (const name of Object.keys(tools)) {
    const { result } = outcome(await modern('tools/call', { name }));
    if (!result.isError) names.push(name);
  }
  const listed = outcome(await modern('tools/list')).result.tools.map((tool: Loose) => tool.name);
  // What may be called is what is shown.
  expect(listed).toEqual(names);
  return names;
}

test('a server’s word about its tools counts where it is trusted, and the gateway’s counts more', async () => {
  expect(await allowed({})).toEqual([]);
  expect(await allowed({ trusted: true })).toEqual(['reads', 'closed']);
  expect(await allowed({ effects: { silent: 'read' } })).toEqual(['silent']);
  expect(await allowed({ trusted: true, effects: { reads: 'delete' } })).toEqual(['closed']);
});

test('results, failures and refusals are on the receipt, each as what it was', async () => {
  const rules =
    '- { id: no, when: { tool: pay }, then: block, say: not from here }\n- { id: all, when: {}, then: allow }';
  const { legacy, gateway, events } = await openScene({
    rules,
    tools: {
      echo,
      fails: { call: () => ({ ...text('no such file'), isError: true }) },
      breaks: {
        call: () => {
          throw Object.assign(new Error('out of order'), { code: -32603 });
        },
      },
      pay: echo,
    },
  });
  const client = await legacy();
  for (const name of ['echo', 'fails', 'breaks', 'pay']) {
    await client.request('tools/call', { name, arguments: { text: name } });
  }
  await exchange(gateway.at('u'), { method: 'DELETE', headers: { 'mcp-session-id': client.session } });
  const over = AbortSignal.timeout(10_000);
  for await (const { event } of gateway.runtime.store.follow({ stream: { of: 'all' } }, over)) {
    if (event === 'receipt.issued') break;
  }
  const [stored] = await gateway.runtime.store.receipts({});
  const calls = stored?.receipt.side_effects.tool_calls ?? [];
  expect(calls.map(({ tool, status }) => [tool, status])).toEqual([
    ['echo', 'succeeded'],
    ['fails', 'failed'],
    ['breaks', 'failed'],
    ['pay', 'canceled'],
  ]);
  const hash = expect.stringMatching(/^sha256:[0-9a-f]{64}$/);
  expect(calls.map(({ input_hash }) => input_hash)).toEqual([hash, hash, hash, hash]);
  expect(new Set(calls.map(({ input_hash }) => input_hash)).size).toBe(4);
  expect(calls.slice(0, 2).map(({ output_hash }) => output_hash)).toEqual([hash, hash]);
  const ended = (await events()).filter(({ event }) => /^tool\.(completed|failed|denied)$/.test(event));
  expect(ended.map(({ event, payload }) => [event, payload.error ?? payload.reason ?? null])).toEqual([
    ['tool.completed', null],
    ['tool.failed', 'no such file'],
    ['tool.failed', 'out of order'],
    ['tool.denied', 'not from here'],
  ]);
});

test('a header whose value is a secret is sent to its server and to nobody else', async () => {
  const { modern, upstream, events } = await openScene({
    config: { headers: { 'x-plain': 'yes' }, header_secrets: { 'x-api-key': 'key' } },
    gateway: { secrets: { key: 'not-to-be-seen' } },
  });
  const { result } = outcome(await modern('tools/call', { name: 'echo', arguments: { text: 'hi' } }));
  expect(upstream.asked.at(-1)?.headers).toMatchObject({ 'x-plain': 'yes', 'x-api-key': 'not-to-be-seen' });
  expect(JSON.stringify([result, await events()])).not.toContain('not-to-be-seen');
});

test('a modern client that hangs up has its call stopped at the server', async () => {
  const { slow, stopped } = untilStopped();
  const hangUp = new AbortController();
  const { modern, upstream } = await openScene({ tools: { slow } });
  const call = modern('tools/call', { name: 'slow' }, { signal: hangUp.signal }).catch(() => {});
  while (upstream.count('tools/call') === 0) await new Promise((resolve) => setImmediate(resolve));
  hangUp.abort();
  await stopped;
  await call;
});

test('a call waits for a person for longer than its server may be silent, and its connection with it', async () => {
  const rules = '- { id: ask, when: { kind: tool }, then: ask, say: a person decides }';
  const { modern, asks, gateway, upstream } = await openScene({ rules, config: { timeout_ms: 300 } });
  let call: ReturnType<typeof modern> | undefined;
  const began = new Promise<void>((begun) => {
    call = modern('tools/call', { name: 'echo', arguments: { text: 'hi' } }, { begun });
  });
  const [ask] = await asks();
  // The answer becomes a stream that is kept awake; that takes longer than the server may be silent.
  await began;
  const body = { ask_id: ask!.id, approved: true };
  const actor = { id: 'approver', kind: 'person' as const, scopes: ['*'] };
  await gateway.runtime.bridge.submit({ kind: 'ask.answer', actor, body });
  const received = await call!;
  expect([received.type, outcome(received).result.content]).toEqual([
    'text/event-stream',
    [{ type: 'text', text: 'hi' }],
  ]);
  expect(upstream.count('tools/call')).toBe(1);
});
