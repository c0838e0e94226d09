/** Sessions that share one program of a legacy server: each hears and cancels its own, whatever the server and the others say. */
import { expect, onTestFinished, test } from 'vitest';
import type { UpstreamConfig } from '../../../../adapters/mcp/config.ts';
import { eventually } from '../../../support/eventually.ts';
import { type McpGateway, openMcpGateway, VISITOR } from '../../../support/mcp/gateway.ts';
import { gossipCommand } from '../../../support/mcp/gossip-server.ts';
import { type LegacyClient, openLegacyClient, outcome } from '../../../support/mcp/one-server.ts';
import type { Loose } from '../../../support/mcp/upstream.ts';

const ABILITIES = { roots: { listChanged: true }, sampling: {}, elicitation: {} };

async function gatewayWith(config: UpstreamConfig): Promise<McpGateway> {
  const gateway = await openMcpGateway({
    upstreams: { u: { command: gossipCommand(), ...config } },
    // The caller is the name that its token is.
    authenticate: async (bearer = '') => ({ ...VISITOR, id: bearer }),
  });
  onTestFinished(() => gateway.close());
  return gateway;
}

interface Client extends LegacyClient {
  /** Frames on the session's own stream. */
  readonly notices: Loose[];
  tool(name: string, args?: object, meta?: object): Promise<Loose>;
  /** Frames that came with an answer, and the answer. */
  frames(name: string, args?: object, meta?: object): Promise<readonly Loose[]>;
}

async function join(gateway: McpGateway, more: { caller?: string; revision?: string } = {}): Promise<Client> {
  const { caller = 'one', revision = '2025-11-25' } = more;
  const client = await openLegacyClient(gateway.at('u'), ABILITIES, {
    headers: { authorization: `Bearer ${caller}` },
    revision,
  });
  const notices: Loose[] = [];
  const over = new AbortController();
  onTestFinished(() => over.abort());
  client.listen((frame) => void notices.push(frame), over.signal).catch(() => {});
  const frames: Client['frames'] = async (name, args = {}, _meta) => {
    const params = { name, arguments: args, ...(_meta && { _meta }) };
    return (await client.request('tools/call', params)).frames;
  };
  const tool: Client['tool'] = async (...asked) => {
    const last = (await frames(...asked)).at(-1);
    return JSON.parse(last.result.content[0].text);
  };
  return { ...client, notices, frames, tool };
}

test('sessions of one caller have one program; another caller has another, and so has another revision', async () => {
  const gateway = await gatewayWith({ share: true });
  const [one, two] = [await join(gateway), await join(gateway)];
  const other = await join(gateway, { caller: 'other' });
  const older = await join(gateway, { revision: '2024-11-05' });
  const [first, second, third, fourth] = await Promise.all([one, two, other, older].map((each) => each.tool('pid')));
  expect(second).toBe(first);
  expect(new Set([first, third, fourth]).size).toBe(3);
  expect(older.opened.result.protocolVersion).toBe('2024-11-05');
});

test('without `share` each session has a program of its own', async () => {
  const gateway = await gatewayWith({});
  const [one, two] = [await join(gateway), await join(gateway)];
  expect(await one.tool('pid')).not.toBe(await two.tool('pid'));
});

test('equal ids and progress tokens of two sessions are kept apart, and a cancellation ends only its own call', async () => {
  const gateway = await gatewayWith({ share: true });
  const [one, two, third] = [await join(gateway), await join(gateway), await join(gateway)];
  const meta = { progressToken: 'p' };
  const first = one.frames('hold', { name: 'first' }, meta);
  const second = two.frames('hold', { name: 'second' }, meta);
  const held = async () => (await third.tool('received')).filter((each: Loose) => each.params?.name === 'hold');
  await eventually(async () => (await held()).length === 2, 'two calls that are held');
  await third.tool('progress', { name: 'second' });
  // One that is not its own, by the gateway's id on the shared connection, and by the number both calls have.
  for (const { id } of await held()) {
    await third.post({ method: 'notifications/cancelled', params: { requestId: id } });
    await third.post({ method: 'notifications/progress', params: { progressToken: id, progress: 9 } });
  }
  await two.post({ method: 'notifications/cancelled', params: { requestId: 1 } });
  const canceled = async () =>
    (await third.tool('received')).filter((each: Loose) => each.method === 'notifications/cancelled');
  await eventually(async () => (await canceled()).length > 0, 'the cancellation');
  const [mine] = (await held()).filter((each: Loose) => each.params.arguments.name === 'second');
  expect((await canceled()).map(({ params }: Loose) => params.requestId)).toEqual([mine.id]);
  await third.tool('release', { name: 'first' });
  const [answer, ...more] = await first;
  expect([JSON.parse(answer.result.content[0].text), more]).toEqual(['released first', []]);
  expect((await second).filter(({ method }) => method === 'notifications/progress')).toMatchObject([
    { params: { progressToken: 'p', progress: 1, message: 'second' } },
  ]);
});

test('what the server says about no request reaches no session, and its questions are refused with the reason', async () => {
  const gateway = await gatewayWith({ share: true });
  const [one, two] = [await join(gateway), await join(gateway)];
  const waiting = two.frames('hold', { name: 'two' }, { progressToken: 'p' });
  expect(await one.frames('gossip', {}, { progressToken: 'p' })).toHaveLength(1);
  const received: Loose[] = await one.tool('received');
  const opening = received.find(({ method }) => method === 'initialize');
  expect(opening.params).toMatchObject({ capabilities: {}, clientInfo: { name: 'tollbridge' } });
  const answers = received.filter(({ id }) => String(id).startsWith('q-'));
  expect(answers).toHaveLength(3);
  for (const { error } of answers) expect(error).toMatchObject({ code: -32601, message: /share: true/ });
  await one.tool('release', { name: 'two' });
  expect(await waiting).toHaveLength(1);
  expect(JSON.stringify([one.notices, two.notices])).not.toContain('gossip');
  const sent = received.filter(({ method }) => method?.startsWith('notifications/'));
  expect(sent.map(({ method }) => method)).toEqual(['notifications/initialized']);
});

test('updates go to the sessions that subscribed, and one that unsubscribes or ends takes nothing from the others', async () => {
  const gateway = await gatewayWith({ share: true });
  const [one, two, third] = [await join(gateway), await join(gateway), await join(gateway)];
  const uri = 'file:///a';
  const asked = async (name: string) =>
    (await third.tool('received')).filter(({ method }: Loose) => method === `resources/${name}`).length;
  let changes = 0;
  const touched = async () => {
    await third.tool('touch', { uri });
    await third.tool('change');
    changes += 1;
    // The list change comes after the update and is for all sessions.
    const changesOf = (client: Client) => client.notices.filter(({ method }) => method.endsWith('list_changed')).length;
    await eventually(() => [one, two, third].every((client) => changesOf(client) === changes), 'the change');
  };
  for (const client of [one, two])
    expect(outcome(await client.request('resources/subscribe', { uri })).result).toEqual({});
  await touched();
  const updates = (client: Client) => client.notices.filter(({ method }) => method.endsWith('updated')).length;
  expect([updates(one), updates(two), updates(third)]).toEqual([1, 1, 0]);
  expect(outcome(await one.request('resources/unsubscribe', { uri })).result).toEqual({});
  expect(await asked('unsubscribe')).toBe(0);
  await touched();
  expect([updates(one), updates(two), updates(third)]).toEqual([1, 2, 0]);
  await fetch(gateway.at('u'), {
    method: 'DELETE',
    headers: { 'mcp-session-id': two.session, authorization: 'Bearer one' },
  });
  await eventually(async () => (await asked('unsubscribe')) === 1, 'the end of the subscription');
});

test('abilities that need a session for each client are not offered, and are refused when they are used', async () => {
  const gateway = await gatewayWith({ share: true });
  const client = await join(gateway);
  const { capabilities } = client.opened.result;
  expect(Object.keys(capabilities).toSorted()).toEqual(['resources', 'tools']);
  for (const [method, params] of [
    ['logging/setLevel', { level: 'debug' }],
    ['tasks/list', {}],
    ['tasks/cancel', { taskId: 't' }],
  ] as const) {
    expect(outcome(await client.request(method, params)).error.message).toMatch(/share: true/);
  }
  const task = outcome(await client.request('tools/call', { name: 'pid', arguments: {}, task: { ttl: 1000 } }));
  expect(JSON.stringify(task)).toMatch(/share: true/);
});

test('a program that exits is started again for all its sessions', async () => {
  const gateway = await gatewayWith({ share: true });
  const [one, two] = [await join(gateway), await join(gateway)];
  const before = await one.tool('pid');
  const [lost] = await two.frames('exit');
  expect(lost.result.isError).toBe(true);
  const after = await eventually(async () => (await one.tool('pid').catch(() => undefined)) as number | undefined);
  expect(after).not.toBe(before);
  expect(await two.tool('pid')).toBe(after);
});

test('a server that has as many programs as it may refuses the next session and says what to do', async () => {
  const gateway = await gatewayWith({ max_children: 2 });
  const [one] = [await join(gateway), await join(gateway)];
  const third = await openLegacyClient(gateway.at('u'), ABILITIES, { headers: { authorization: 'Bearer one' } });
  expect(third.opened.error.message).toMatch(/runs 2 programs already.*max_children.*share: true/);
  const states = await gateway.runtime.bridge.serverStates(VISITOR);
  expect(states).toMatchObject([{ name: 'u', programs: { running: 2, refused: 1 } }]);
  await fetch(gateway.at('u'), {
    method: 'DELETE',
    headers: { 'mcp-session-id': one.session, authorization: 'Bearer one' },
  });
  const next = await eventually(async () => {
    const client = await join(gateway);
    return client.opened.result && client;
  }, 'room for a session');
  expect(await next.tool('pid')).toBeGreaterThan(0);
});

test('a server with an address has no programs to share or to limit', async () => {
  for (const setting of [{ share: true }, { max_children: 1 }]) {
    const config = { url: 'http://127.0.0.1:1/mcp', command: undefined, ...setting } as unknown as UpstreamConfig;
    await expect(gatewayWith(config)).rejects.toThrow(/has none/);
  }
});
