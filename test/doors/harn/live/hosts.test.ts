/** Tools that the other end of a socket runs: decided and recorded like all others, and found again after a hang-up. */
import { expect, test } from 'vitest';
import { settingsOf } from '../../../../adapters/harn/config.ts';
import { createHosts, type Host, type HostRequest } from '../../../../adapters/harn/server/sockets/socket-tools.ts';
import { latch, scriptedAgent } from '../../../support/gateway/agents.ts';
import { type Door, openDoor, text } from '../../../support/harn/gateway.ts';
import { openSocket, type SocketClient, type WireFrame } from '../../../support/wire/socket-client.ts';

const RULES = [
  '- { id: clipboard, when: { server: host, tool: clipboard }, then: allow }',
  '- { id: no-shell, when: { server: host, tool: shell }, then: block, say: no shell on other machines }',
  '- { id: camera, when: { server: host, tool: camera }, then: ask }',
].join('\n');

/** Calls the tool its task names and ends with what came of it. */
const user = (wait?: Promise<void>) =>
  scriptedAgent(async (sink, work) => {
    await wait;
    const tool = String((work.task.input as WireFrame).parts[0].text);
    const came = await sink.act({ kind: 'tool', tool, tool_call_id: `${work.task.id}.1`, arguments: { text: 'hi' } });
    const said = came.kind === 'refused' ? `refused: ${came.reason}` : (came.result.error ?? came.result.output);
    return { state: 'COMPLETED', summary: typeof said === 'string' ? said : JSON.stringify(said) };
  });

const hosted = () => createHosts({ ids: countingIds(), timeoutMs: 5_000 });
function countingIds() {
  let count = 0;
  return { next: (prefix: string) => `${prefix}_${++count}` };
}

async function openHosted(options: { wait?: Promise<void>; timeoutMs?: number } = {}) {
  const hosts = createHosts({ ids: countingIds(), timeoutMs: options.timeoutMs ?? 5_000 });
  const door = await openDoor({ agents: [user(options.wait)], tools: [hosts.backend], rules: RULES, hosts });
  const { session } = await door.room();
  return { door, session };
}

const onSession = (door: Door, session: string, who = 'ana') =>
  openSocket(`${door.url}/v1/sessions/${session}/events/stream`, {
    headers: door.headers({ authorization: `Bearer ${who}` }),
  });
const offer = (socket: SocketClient, ...names: string[]) =>
  socket.command({ type: 'tools.offer', tools: names.map((name) => ({ name, description: `runs ${name}` })) });
const submit = (socket: SocketClient, session: string, tool: string) =>
  socket.command({ type: 'task.submit', session_id: session, input: text(tool) });
const isRequest = ({ type, kind }: WireFrame) => type === 'request' && kind === 'tool';
const isEnd = ({ type, event }: WireFrame) => type === 'event' && event.event === 'task.completed';
const summary = (frame: WireFrame) => frame.event.payload.outcome.summary;

test('the host is asked, answers, and both are in the log with who it was', async () => {
  const { door, session } = await openHosted();
  const socket = await onSession(door, session);
  expect(await offer(socket, 'clipboard')).toMatchObject({
    status: 200,
    body: { object: 'list', data: ['clipboard'] },
  });
  const { body: task } = await submit(socket, session, 'clipboard');
  const request = await socket.next(isRequest);
  expect(request).toEqual({
    type: 'request',
    request_id: 'hostcall_1',
    kind: 'tool',
    task_id: task.id,
    payload: { tool: 'clipboard', arguments: { text: 'hi' }, tool_call_id: `${task.id}.1` },
    expires_at: null,
    replayed: false,
  });
  const answered = await socket.command({ type: 'response', request_id: 'hostcall_1', answer: { copied: 2 } });
  expect(answered).toMatchObject({ status: 200, body: { object: 'tool_request', status: 'answered' } });
  expect(summary(await socket.next(isEnd))).toBe('{"copied":2}');

  const again = await socket.command({ type: 'response', request_id: 'hostcall_1', answer: 3 });
  expect([again.type, again.status, again.error.code]).toEqual(['error', 409, 'conflict']);

  const events = (await door.call('GET', `/v1/tasks/${task.id}/events?limit=100`)).body.data as WireFrame[];
  const about = events
    .filter(({ event }) => /^tool\.|decided/.test(event))
    .map(({ event, payload }) => [event, payload.decision?.verdict ?? payload.status ?? payload.evidence]);
  expect(about).toEqual([
    ['vendor.tollbridge.decided', 'allow'],
    ['tool.requested', 'held'],
    ['vendor.tollbridge.decided', 'allow'],
    ['tool.completed', 'ok'],
  ]);
  const log: unknown[] = [];
  for await (const { event, payload, ext } of door.at.runtime.store.read({ stream: { of: 'task', id: task.id } })) {
    if (event === 'tool.completed') log.push([payload.output, ext]);
  }
  expect(log).toEqual([[{ copied: 2 }, { harn: { host: 'ana', request_id: 'hostcall_1' } }]]);
});

test('a host that says no, or nothing it can be held to, is a failed call', async () => {
  const { door, session } = await openHosted();
  const socket = await onSession(door, session);
  await offer(socket, 'clipboard');
  await submit(socket, session, 'clipboard');
  const { request_id } = await socket.next(isRequest);
  const empty = await socket.command({ type: 'response', request_id });
  expect([empty.status, empty.error.param]).toEqual([400, 'answer']);
  await socket.command({ type: 'response', request_id, approved: false, reason: 'the clipboard is locked' });
  expect(summary(await socket.next(isEnd))).toBe('the clipboard is locked');
});

test('what policy blocks never reaches the host, and what it asks about waits for a person', async () => {
  const { door, session } = await openHosted();
  const socket = await onSession(door, session);
  await offer(socket, 'shell', 'camera');
  await submit(socket, session, 'shell');
  expect(summary(await socket.next(isEnd))).toBe('refused: no shell on other machines');
  await submit(socket, session, 'camera');
  const approval = await socket.next(({ type }) => type === 'request');
  expect(approval.kind).toBe('approval');
  await socket.command({ type: 'response', request_id: approval.request_id, approved: true });
  const { request_id } = await socket.next(isRequest);
  await socket.command({ type: 'response', request_id, answer: 'smile' });
  expect(summary(await socket.next(isEnd))).toBe('smile');
  expect(socket.frames.filter(isRequest).length).toBe(1);
});

test('a host that hangs up and comes back is asked again under the same id, marked as such', async () => {
  const { door, session } = await openHosted();
  const first = await onSession(door, session);
  await offer(first, 'clipboard');
  const { body: task } = await submit(first, session, 'clipboard');
  const asked = await first.next(isRequest);
  first.close();
  await first.closed;
  const second = await onSession(door, session);
  await second.next(({ type }) => type === 'caught_up');
  expect(second.frames.some(isRequest)).toBe(false);
  await offer(second, 'clipboard');
  expect(await second.next(isRequest)).toEqual({ ...asked, replayed: true });
  await second.command({ type: 'response', request_id: asked.request_id, answer: 'here I am' });
  expect(summary(await second.next(isEnd))).toBe('here I am');
  expect((await door.call('GET', `/v1/tasks/${task.id}`)).body.status).toBe('COMPLETED');
});

test('a host that does not come back in time has failed', async () => {
  const { door, session } = await openHosted({ timeoutMs: 50 });
  const host = await onSession(door, session);
  const other = await onSession(door, session);
  await offer(host, 'clipboard');
  await submit(other, session, 'clipboard');
  await host.next(isRequest);
  host.close();
  expect(summary(await other.next(isEnd))).toBe('the host that runs clipboard has left; it may have run it');
});

test('a canceled task takes its request back', async () => {
  const { door, session } = await openHosted();
  const socket = await onSession(door, session);
  await offer(socket, 'clipboard');
  const { body: task } = await submit(socket, session, 'clipboard');
  const { request_id } = await socket.next(isRequest);
  await socket.command({ type: 'task.cancel', task_id: task.id });
  expect(await socket.next(({ type }) => type === 'request.withdrawn')).toEqual({
    type: 'request.withdrawn',
    request_id,
  });
  const late = await socket.command({ type: 'response', request_id, answer: 1 });
  expect([late.status, late.error.code]).toEqual([409, 'conflict']);
});

test('tools are there for their session alone, and only a connection that was asked may answer', async () => {
  const go = latch();
  const { door, session } = await openHosted({ wait: go.promise });
  const host = await onSession(door, session);
  await offer(host, 'clipboard');
  const elsewhere = (await door.room()).session;
  const other = await onSession(door, elsewhere);
  const { body: stray } = await submit(other, elsewhere, 'clipboard');
  go.open();
  await other.next(({ type, event }) => type === 'event' && event.event === 'task.failed');
  expect((await door.call('GET', `/v1/tasks/${stray.id}`)).body.failure.message).toBe('no tool clipboard is mounted');
  expect((await door.call('GET', '/v1/skills')).body.data).toEqual([]);
  await submit(host, session, 'clipboard');
  const { request_id } = await host.next(isRequest);
  const bystander = await onSession(door, session);
  const nosy = await bystander.command({ type: 'response', request_id, answer: 'mine' });
  expect([nosy.status, nosy.error.code]).toEqual([404, 'resource_not_found']);
  await host.command({ type: 'response', request_id, answer: 'ours' });
  expect(summary(await host.next(isEnd))).toBe('ours');
});

test('offering takes the scope to write tasks, and tools with names', async () => {
  const { door, session } = await openHosted();
  const reader = await onSession(door, session, 'reader');
  const refused = await offer(reader, 'clipboard');
  expect([refused.type, refused.status]).toEqual(['error', 403]);
  const socket = await onSession(door, session);
  const odd = await socket.command({ type: 'tools.offer', tools: [{ name: 'two words' }] });
  expect([odd.type, odd.status]).toEqual(['error', 400]);
});

test('another host takes over what the first one left behind', async () => {
  const hosts = hosted();
  const seen: [string, HostRequest, boolean][] = [];
  const host = (name: string): Host => ({
    actor: { id: name, kind: 'service', scopes: ['*'] },
    session_id: 's',
    ask: (request, again) => void seen.push([name, request, again]),
    withdraw() {},
  });
  const [one, two] = [host('one'), host('two')];
  const [first, second] = [hosts.register(one), hosts.register(two)];
  first.replace([{ name: 't' }]);
  second.replace([{ name: 't' }]);
  const action = { tool: 't', session_id: 's', task_id: 'k', arguments: {} } as never;
  const result = hosts.backend.call(action, new AbortController().signal);
  first.close();
  expect(seen.map(([name, { id }, again]) => [name, id, again])).toEqual([
    ['one', 'hostcall_1', false],
    ['two', 'hostcall_1', true],
  ]);
  expect(hosts.answer(two, 'hostcall_1', { status: 'ok', output: 1 })).toBe('taken');
  expect(await result).toEqual({ status: 'ok', output: 1, ext: { harn: { host: 'two', request_id: 'hostcall_1' } } });
  expect(settingsOf({}).hostTimeoutMs).toBe(300_000);
});
