/** Work belongs to the principal that opened it: for others it is not there, whatever they hold but `others:read`. */
import { beforeEach, describe, expect, test } from 'vitest';
import type { Actor } from '../../../../src/model/actions.ts';
import type { CommandKind } from '../../../../src/model/commands.ts';
import type { CoreEvent } from '../../../../src/model/events.ts';
import type { JsonObject } from '../../../../src/model/schema.ts';
import { openTestGateway } from '../../../support/gateway/test-gateway.ts';
import {
  type Belongings,
  everything,
  faultOf,
  file,
  hello,
  red,
  sameWords,
} from '../../../support/gateway/two-tenants.ts';

/** Every scope there is, short of seeing what others started. */
const FAMILIES = ['sessions', 'tasks', 'events', 'artifacts', 'receipts', 'approvals', 'resources', 'memories'];
const peer: Actor = { ...red, id: 'peer', kind: 'service', scopes: FAMILIES.map((family) => `${family}:*`) };
const auditor: Actor = { ...peer, id: 'auditor', scopes: [...peer.scopes, 'others:read'] };

let own: Belongings;
beforeEach(async () => {
  own = await everything();
});

async function all(events: AsyncIterable<CoreEvent>): Promise<CoreEvent[]> {
  const read: CoreEvent[] = [];
  for await (const event of events) read.push(event);
  return read;
}

const WORK = ['session', 'message', 'branch', 'task', 'outcome', 'ask', 'artifact', 'receipt', 'event'] as const;

describe("another principal's work", () => {
  test.each([...WORK, 'memory'])('a %s is absent, in the words for one that never was', async (object) => {
    const { t, ids } = own;
    const none = `${ids[object]!.slice(0, -2)}zz`;
    const hidden = await faultOf(t.bridge.view(peer, object, ids[object]!));
    expect(hidden.kind).toBe('not_found');
    sameWords(hidden, await faultOf(t.bridge.view(peer, object, none)), ids[object]!, none);
    expect(await t.bridge.view(auditor, object, ids[object]!)).toMatchObject({ id: ids[object] });
    if (object === 'event') return;
    expect((await t.bridge.list(peer, { object })).data).toEqual([]);
    expect((await t.bridge.list(auditor, { object })).data.map(({ id }) => id)).toContain(ids[object]);
  });

  test('what is declared is shared', async () => {
    const { t, ids } = own;
    for (const object of ['workspace', 'persona', 'quota', 'skill', 'connector']) {
      expect(await t.bridge.view(peer, object, ids[object]!), object).toMatchObject({ id: ids[object] });
    }
  });

  test('is not canceled, steered, answered, reported on, replayed, forked or closed', async () => {
    const { t, ids } = own;
    const action = { kind: 'tool', tool: 'send' };
    const said = { role: 'user', parts: [{ type: 'json', value: { approved: true }, visibility: 'public' }] };
    const memory = { scope: 'session', owner_id: ids.session!, content: 1, provenance: {} };
    const bodies: readonly [CommandKind, JsonObject][] = [
      ['session.update', { session_id: ids.session!, metadata: { a: 1 } }],
      ['session.close', { session_id: ids.session! }],
      ['session.fork', { session_id: ids.session! }],
      ['session.truncate', { session_id: ids.session!, keep_first: 0 }],
      ['session.compact', { session_id: ids.session!, summary: 's', through_message_id: ids.message! }],
      ['message.append', { session_id: ids.session!, message: hello as never }],
      ['branch.create', { session_id: ids.session!, kind: 'session', base_ref: 'main' }],
      ['branch.end', { branch_id: ids.branch!, as: 'merged' }],
      ['task.submit', { session_id: ids.session!, input: {} }],
      ['task.cancel', { task_id: ids.task! }],
      ['task.resume', { task_id: ids.task! }],
      ['task.message', { task_id: ids.task!, kind: 'interrupt', message: hello as never }],
      ['task.message', { task_id: ids.task!, kind: 'tool_confirmation', message: said }],
      ['task.report', { task_id: ids.task! }],
      ['task.replay', { task_id: ids.ended! }],
      ['action.propose', { task_id: ids.task!, action }],
      ['tool.call', { task_id: ids.task!, action }],
      ['ask.answer', { ask_id: ids.ask!, approved: true }],
      ['ask.answer', { ask_id: ids.ask!, approved: false }],
      ['artifact.register', { ...file, task_id: ids.task! }],
      ['receipt.verify', { receipt_id: ids.receipt! }],
      ['binding.set', { protocol: 'p', scope: '', wire_id: 'w', to: { object: 'session', id: ids.session! } }],
      ['passthrough', { protocol: 'p', method: 'm', workspace_id: ids.workspace!, session_id: ids.session! }],
      ['resource.create', { object: 'memory', body: memory }],
      ['resource.create', { object: 'memory', body: { ...memory, workspace_id: ids.workspace! } }],
      ['resource.delete', { object: 'memory', id: ids.memory! }],
    ];
    const before = (await t.all()).length;
    for (const [kind, body] of bodies) {
      expect(await t.refused(kind, body as never, { actor: peer }), kind).toMatchObject({ kind: 'not_found' });
    }
    expect(await t.all()).toHaveLength(before);
    expect(await faultOf(t.bridge.bytes(peer, ids.artifact!))).toMatchObject({ kind: 'not_found' });
    expect(await faultOf(t.bridge.attach(peer, ids.artifact!, Buffer.from('x')))).toMatchObject({ kind: 'not_found' });
  });

  test('is in no stream of events, read or followed', async () => {
    const { t, ids } = own;
    for (const of of ['session', 'task'] as const) {
      const stream = { of, id: ids[of]! };
      expect(await faultOf(all(t.bridge.events(peer, { stream })))).toMatchObject({ kind: 'not_found' });
      const followed = all(t.bridge.follow(peer, { stream }, AbortSignal.timeout(50)));
      expect(await faultOf(followed)).toMatchObject({ kind: 'not_found' });
    }
    const mixed = [{ of: 'all' }, { of: 'workspace', id: ids.workspace! }] as const;
    for (const stream of mixed) {
      expect(await all(t.bridge.events(peer, { stream })), stream.of).toEqual([]);
      expect(await all(t.bridge.follow(peer, { stream }, AbortSignal.timeout(50))), stream.of).toEqual([]);
      expect((await all(t.bridge.events(auditor, { stream }))).length, stream.of).toBeGreaterThan(5);
    }
  });

  test('its own it sees and does, in the same workspace and beside the others', async () => {
    const { t, ids } = own;
    const by = { actor: peer };
    const { resource: session } = await t.send('session.create', { workspace_id: ids.workspace! }, by);
    const { resource: task } = await t.send('task.submit', { session_id: session.id, input: {}, agent: 'none' }, by);
    const { resource: loose } = await t.send('artifact.register', { ...file, workspace_id: ids.workspace! }, by);
    expect(await t.bridge.view(peer, 'session', session.id)).toMatchObject({ id: session.id });
    expect((await t.bridge.list(peer, { object: 'session' })).data.map(({ id }) => id)).toEqual([session.id]);
    expect((await t.bridge.list(peer, { object: 'session', where: { state: 'CLOSED' } })).data).toEqual([]);
    expect((await t.bridge.list(peer, { object: 'task' })).data.map(({ id }) => id)).toEqual([task.id]);
    expect(await t.bridge.view(peer, 'artifact', loose.id)).toMatchObject({ id: loose.id });
    for (const stream of [{ of: 'all' }, { of: 'workspace', id: ids.workspace! }] as const) {
      const seen = await all(t.bridge.events(peer, { stream }));
      expect(new Set(seen.map(({ session_id }) => session_id))).toEqual(new Set([session.id]));
      expect(seen.map(({ event }) => event)).toContain('task.submitted');
    }
    await t.send('task.cancel', { task_id: task.id }, by);
    const third: Actor = { ...peer, id: 'third' };
    for (const [object, id] of [
      ['task', task.id],
      ['session', session.id],
      ['artifact', loose.id],
    ] as const) {
      expect(await faultOf(t.bridge.view(third, object, id)), object).toMatchObject({ kind: 'not_found' });
    }
    // A fork is the principal's that made it, with what it was allowed to see.
    const { resource: fork } = await t.send('session.fork', { session_id: session.id }, { actor: auditor });
    expect(await faultOf(t.bridge.view(peer, 'session', fork.id))).toMatchObject({ kind: 'not_found' });
  });

  test('of a session from before owners were kept, its first event says whose it is', async () => {
    const t = await openTestGateway({});
    const room = await t.room({ actor: { ...peer, scopes: ['*'] } });
    // As an older version left it: no row says whose it is.
    const store = {
      ...t.runtime.store,
      get: async (object: string, id: string) => (object === 'owner' ? undefined : t.runtime.store.get(object, id)),
    };
    const { createAccess } = await import('../../../../src/core/access.ts');
    const access = createAccess(store as never);
    expect(await access.see(peer, 'session', room.session)).toMatchObject({ id: room.session });
    expect(await faultOf(access.see({ ...peer, id: 'third' }, 'session', room.session))).toMatchObject({
      kind: 'not_found',
    });
  });
});

describe('work an agent hands on', () => {
  test('belongs to the principal it acts for', async () => {
    const { t, ids } = own;
    const agent: Actor = {
      ...red,
      id: 'agent:writer',
      kind: 'agent',
      scopes: ['sessions:write', 'tasks:write', 'tasks:read', 'events:read'],
      on_behalf_of: peer.id,
    };
    const by = { actor: agent };
    const { resource: session } = await t.send('session.create', { workspace_id: ids.workspace! }, by);
    const { resource: task } = await t.send('task.submit', { session_id: session.id, input: {}, agent: 'none' }, by);
    for (const actor of [peer, agent])
      expect(await t.bridge.view(actor, 'task', task.id)).toMatchObject({ id: task.id });
    const other: Actor = { ...agent, on_behalf_of: 'someone-else', id: 'agent:other' };
    expect(await faultOf(t.bridge.view(other, 'task', task.id))).toMatchObject({ kind: 'not_found' });
  });
});
