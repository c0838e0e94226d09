/** The same command again with the same key is the same command: one resource, one answer, across retries and restarts. */
import { describe, expect, test } from 'vitest';
import type { CommandBody, CommandEnvelope, CommandKind } from '../../../../src/model/commands.ts';
import type { Message } from '../../../../src/model/resources.ts';
import type { Row } from '../../../../src/ports/index.ts';
import { ana, bo } from '../../../support/gateway/actors.ts';
import { latch, scriptedAgent } from '../../../support/gateway/agents.ts';
import { of, openTestGateway, type Room, says, type TestGateway } from '../../../support/gateway/test-gateway.ts';
import { PERSONA } from '../../../support/policy/personas.ts';

interface Case<K extends CommandKind = CommandKind> {
  readonly kind: K;
  readonly body: CommandBody<K>;
  /** Another request under the same key. */
  readonly other: CommandBody<K>;
  readonly envelope?: Partial<CommandEnvelope>;
  /** The same request about something else: another session, another workspace. */
  readonly elsewhere?: CommandBody<K>;
}

interface Scene {
  readonly t: TestGateway;
  readonly room: Room;
  readonly next: Room;
  readonly ended: string;
  readonly open: string;
}

const hello = says('hello') as unknown as CommandBody<'message.append'>['message'];
const bye = says('bye') as unknown as CommandBody<'message.append'>['message'];

function declared(object: CommandBody<'resource.create'>['object'], body: (room: Room) => object, other: object) {
  return ({ room, next }: Scene): Case => ({
    kind: 'resource.create',
    body: { object, body: body(room) as never },
    other: { object, body: { ...body(room), ...other } as never },
    ...(JSON.stringify(body(room)) !== JSON.stringify(body(next)) && {
      elsewhere: { object, body: body(next) as never },
    }),
  });
}

const file = { kind: 'file', mime_type: 'text/plain', visibility: 'public' } as const;

const CREATING: readonly [string, (scene: Scene) => Case][] = [
  ['a workspace', declared('workspace', () => ({ name: 'n', root: 'file:///n' }), { name: 'm' })],
  ['a persona', declared('persona', () => PERSONA, { version: '2' })],
  ['a quota', declared('quota', () => ({ scope: 'workspace', limits: { tasks: 1 } }), { limits: { tasks: 2 } })],
  ['a skill', declared('skill', () => ({ name: 's', description: '' }), { name: 'z' })],
  [
    'a vault',
    declared('vault', ({ workspace }) => ({ workspace_id: workspace, provider: 'env', capabilities: [] }), {
      provider: 'file',
    }),
  ],
  [
    'a memory',
    declared('memory', ({ workspace }) => ({ scope: 'workspace', owner_id: workspace, content: 1, provenance: {} }), {
      content: 2,
    }),
  ],
  [
    'a connector',
    declared('connector', ({ workspace }) => ({ workspace_id: workspace, provider: 'x', event_kinds: [] }), {
      provider: 'y',
    }),
  ],
  [
    'a session',
    ({ room, next }) => ({
      kind: 'session.create',
      body: { workspace_id: room.workspace },
      other: { workspace_id: room.workspace, metadata: { a: 1 } },
      elsewhere: { workspace_id: next.workspace },
    }),
  ],
  [
    'a fork',
    ({ room, next }) => ({
      kind: 'session.fork',
      body: { session_id: room.session },
      other: { session_id: room.session, metadata: { a: 1 } },
      elsewhere: { session_id: next.session },
    }),
  ],
  [
    'a message',
    ({ room, next }) => ({
      kind: 'message.append',
      body: { session_id: room.session, message: hello },
      other: { session_id: room.session, message: bye },
      elsewhere: { session_id: next.session, message: hello },
    }),
  ],
  [
    'a message to a task',
    ({ open }) => ({
      kind: 'task.message',
      body: { task_id: open, kind: 'interrupt', message: hello },
      other: { task_id: open, kind: 'interrupt', message: bye },
    }),
  ],
  [
    'a branch',
    ({ room, next }) => ({
      kind: 'branch.create',
      body: { session_id: room.session, kind: 'session', base_ref: 'main' },
      other: { session_id: room.session, kind: 'session', base_ref: 'next' },
      elsewhere: { session_id: next.session, kind: 'session', base_ref: 'main' },
    }),
  ],
  [
    'a task',
    ({ room, next }) => ({
      kind: 'task.submit',
      body: { session_id: room.session, input: { a: 1 } },
      other: { session_id: room.session, input: { a: 2 } },
      elsewhere: { session_id: next.session, input: { a: 1 } },
    }),
  ],
  [
    'a replay',
    ({ ended }) => ({ kind: 'task.replay', body: { task_id: ended }, other: { task_id: ended, reason: 'again' } }),
  ],
  [
    'an artifact',
    ({ room, next }) => ({
      kind: 'artifact.register',
      body: { ...file, workspace_id: room.workspace },
      other: { ...file, workspace_id: room.workspace, visibility: 'internal' },
      elsewhere: { ...file, workspace_id: next.workspace },
      envelope: { bytes: Buffer.from('content') },
    }),
  ],
];

async function scene(): Promise<Scene> {
  const agent = scriptedAgent(async () => undefined);
  const t = await openTestGateway({ agents: [agent] });
  const room = await t.room();
  const ended = await room.task();
  await t.until(ended.id);
  const open = await room.task({ agent: 'none' });
  return { t, room, next: await t.room(), ended: ended.id, open: open.id };
}

const key = (name: string): Partial<CommandEnvelope> => ({ idempotency: { key: name } });

describe.each(CREATING)('%s', (_what, make) => {
  test('a hundred at once make one, and every one hears of the same', async () => {
    const { t, ...rest } = await scene();
    const { kind, body, other, envelope } = make({ t, ...rest });
    const all = await Promise.all(
      Array.from({ length: 100 }, () => t.send(kind, body as never, { ...envelope, ...key('k') })),
    );
    const made = new Set(all.map(({ resource }) => (resource as Row).id));
    expect(made.size).toBe(1);
    expect(all.filter(({ repeated }) => !repeated)).toHaveLength(1);
    await t.runtime.idle();

    const before = (await t.all()).length;
    expect(await t.refused(kind, other, { ...envelope, ...key('k') })).toMatchObject({
      kind: 'idempotency_key_reused',
      message: 'this idempotency key was used for a different request',
    });
    expect(await t.all()).toHaveLength(before);

    const later = await t.reopen();
    const again = await later.send(kind, body as never, { ...envelope, ...key('k') });
    expect(again).toMatchObject({ repeated: true, resource: { id: [...made][0] } });
  });

  test('another key, another person, another place, another target: each on its own', async () => {
    const { t, ...rest } = await scene();
    const { kind, body, elsewhere, envelope } = make({ t, ...rest });
    const answers = [
      await t.send(kind, body as never, { ...envelope, ...key('k') }),
      await t.send(kind, body as never, { ...envelope, ...key('l') }),
      await t.send(kind, body as never, { ...envelope, ...key('k'), actor: bo }),
      await t.send(kind, body as never, { ...envelope, idempotency: { key: 'k', target: 'elsewhere' } }),
      await t.send(kind, body as never, { ...envelope }),
      ...(elsewhere ? [await t.send(kind, elsewhere as never, { ...envelope, ...key('k') })] : []),
    ];
    expect(answers.every(({ repeated }) => !repeated)).toBe(true);
    expect(new Set(answers.map(({ resource }) => (resource as Row).id)).size).toBe(answers.length);
    await t.runtime.idle();
  });
});

test('two tenants may use the same key', async () => {
  const t = await openTestGateway();
  const body = { object: 'workspace' as const, body: { name: 'n', root: 'file:///n' } };
  const made = await Promise.all(
    ['red', 'blue'].map((tenant_id) => t.send('resource.create', body, { ...key('k'), actor: { ...ana, tenant_id } })),
  );
  expect(new Set(made.map(({ resource }) => resource.id)).size).toBe(2);
});

test('a task submitted a hundred times starts its agent once', async () => {
  let started = 0;
  const agent = scriptedAgent(async () => {
    started += 1;
    return undefined;
  });
  const t = await openTestGateway({ agents: [agent] });
  const room = await t.room();
  const tasks = await Promise.all(Array.from({ length: 100 }, () => room.task({}, key('k'))));
  await t.until(tasks[0]!.id);
  await t.runtime.idle();
  expect(started).toBe(1);
  expect(of(await t.all(), 'task.submitted')).toHaveLength(1);
});

test('other bytes under the same words are another request', async () => {
  const { t, room } = await scene();
  const body = { ...file, workspace_id: room.workspace };
  await t.send('artifact.register', body, { ...key('k'), bytes: Buffer.from('one') });
  expect(await t.refused('artifact.register', body, { ...key('k'), bytes: Buffer.from('two') })).toMatchObject({
    kind: 'idempotency_key_reused',
  });
});

describe('a repeat is answered even when the first could no longer be made', () => {
  test('the limit was used up by the first itself', async () => {
    const t = await openTestGateway({ agents: [scriptedAgent(async () => undefined)] });
    const { resource: quota } = await t.send('resource.create', {
      object: 'quota',
      body: { scope: 'workspace', limits: { tasks: 1 } },
    });
    const room = await t.room({ workspace: { quota_id: quota.id } });
    const first = await room.task({}, key('k'));
    await t.until(first.id);
    const before = (await t.all()).length;
    expect((await room.task({}, key('k'))).id).toBe(first.id);
    expect(await t.all()).toHaveLength(before);
    expect(await t.refused('task.submit', { session_id: room.session, input: {} }, key('l'))).toMatchObject({
      kind: 'policy_violation',
    });
  });

  test('the rules have changed since', async () => {
    let rules = '';
    const t = await openTestGateway({
      load: async () => ({ rules, files: [] }),
      agents: [scriptedAgent(async () => undefined)],
    });
    const room = await t.room();
    const session = await t.send('session.create', { workspace_id: room.workspace }, key('k'));
    const task = await room.task({}, key('k'));
    await t.until(task.id);
    rules = '- { id: closed, then: block, say: closed }';
    await t.runtime.policy.reload();
    expect((await room.task({}, key('k'))).id).toBe(task.id);
    expect(await t.send('session.create', { workspace_id: room.workspace }, key('k'))).toMatchObject({
      repeated: true,
      resource: { id: session.resource.id },
    });
    expect(await t.refused('session.create', { workspace_id: room.workspace }, key('l'))).toMatchObject({
      kind: 'policy_violation',
    });
  });

  test('the task has ended since', async () => {
    const over = latch();
    const t = await openTestGateway({
      agents: [
        scriptedAgent(async () => {
          await over.promise;
          return undefined;
        }),
      ],
    });
    const task = await (await t.room()).task();
    const body = { task_id: task.id, kind: 'interrupt' as const, message: hello };
    const first = await t.send('task.message', body, key('k'));
    over.open();
    await t.until(task.id);
    expect(await t.send('task.message', body, key('k'))).toMatchObject({
      repeated: true,
      resource: { id: first.resource.id },
    });
    expect(await t.refused('task.message', body, key('l'))).toMatchObject({ kind: 'conflict' });
  });

  test('the resource is gone since', async () => {
    const { t, room } = await scene();
    const body = { object: 'workspace' as const, id: room.workspace };
    const all = await Promise.all(Array.from({ length: 20 }, () => t.send('resource.delete', body, key('k'))));
    expect(all.filter(({ repeated }) => !repeated)).toHaveLength(1);
    expect(all.every(({ resource }) => resource.id === room.workspace)).toBe(true);
    expect(of(await t.all(), 'vendor.tollbridge.resource_deleted')).toHaveLength(1);
    expect(await t.refused('resource.delete', body, key('l'))).toMatchObject({ kind: 'not_found' });
  });

  test('the question is answered since, by the first itself', async () => {
    const { t, open } = await scene();
    const action = { kind: 'tool' as const, tool: 'send', effect: 'send' as const };
    const { details } = await t.send('action.propose', { task_id: open, action, wait_ms: 0 });
    const body = { ask_id: String(details?.ask_id), approved: true };
    const all = await Promise.all(Array.from({ length: 100 }, () => t.send('ask.answer', body, key('k'))));
    expect(all.filter(({ repeated }) => !repeated)).toHaveLength(1);
    expect(all.every(({ resource }) => (resource as unknown as { state: string }).state === 'approved')).toBe(true);
    expect(await t.refused('ask.answer', { ...body, approved: false }, key('k'))).toMatchObject({
      kind: 'idempotency_key_reused',
    });
    expect(await t.refused('ask.answer', body, key('l'))).toMatchObject({ kind: 'conflict' });
    expect(of(await t.events(open), 'vendor.tollbridge.ask_closed')).toHaveLength(1);
  });
});

describe('commands that change something', () => {
  test('are done once', async () => {
    const { t, room, open } = await scene();
    const appended = await t.send('message.append', { session_id: room.session, message: hello });
    const branch = await t.send('branch.create', { session_id: room.session, kind: 'session', base_ref: 'main' });
    const once = async <K extends CommandKind>(kind: K, body: CommandBody<K>, event: string) => {
      const before = of(await t.all(), event).length;
      const all = await Promise.all(Array.from({ length: 20 }, () => t.send(kind, body, key(kind))));
      expect(of(await t.all(), event)).toHaveLength(before + 1);
      expect(all.filter(({ repeated }) => !repeated)).toHaveLength(1);
    };
    await once(
      'resource.update',
      { object: 'workspace', id: room.workspace, body: { name: 'other' } },
      'vendor.tollbridge.resource_updated',
    );
    await once('session.update', { session_id: room.session, summary: 's' }, 'vendor.tollbridge.resource_updated');
    await once(
      'session.compact',
      { session_id: room.session, summary: 's', through_message_id: appended.resource.id },
      'session.compacted',
    );
    await once('branch.end', { branch_id: branch.resource.id, as: 'merged' }, 'branch.merged');
    await once(
      'binding.set',
      { protocol: 'p', scope: '', wire_id: 'w', to: { object: 'session', id: room.session } },
      'vendor.tollbridge.bound',
    );
    const report = { task_id: open, facts: [{ event: 'vendor.tollbridge.note' as const, payload: { a: 1 } }] };
    await once('task.report', report, 'vendor.tollbridge.note');
    await once('task.cancel', { task_id: open }, 'task.canceled');
    await once('session.truncate', { session_id: room.session, keep_first: 0 }, 'session.truncated');
    await once('session.close', { session_id: room.session }, 'session.closed');
  });

  test('a report that ends the task ends it once, and its repeats hear of the same end', async () => {
    const { t, open } = await scene();
    const message: Partial<Message> = { role: 'assistant', parts: [] };
    const body: CommandBody<'task.report'> = {
      task_id: open,
      facts: [{ event: 'agent.message', payload: { message: message as never } }],
      end: { state: 'COMPLETED', summary: 'done outside' },
    };
    const all = await Promise.all(Array.from({ length: 50 }, () => t.send('task.report', body, key('k'))));
    expect(new Set(all.map(({ resource }) => (resource as unknown as { status: string }).status))).toEqual(
      new Set(['COMPLETED']),
    );
    const log = await t.events(open);
    expect(of(log, 'agent.message')).toHaveLength(1);
    expect(of(log, 'task.completed')).toHaveLength(1);
    expect(await t.receipts(open)).toHaveLength(1);
  });
});
