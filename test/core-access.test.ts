/** Who may see and do what, on the real stack: what is hidden is absent, in the same words, whichever way one comes. */
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Actor } from '../src/model/actions.ts';
import { COMMANDS, type CommandBody, type CommandKind } from '../src/model/commands.ts';
import { asFault, type Fault } from '../src/model/faults.ts';
import type { JsonObject } from '../src/model/schema.ts';
import type { Row } from '../src/ports.ts';
import { scriptedAgent } from './support/agents.ts';
import { fromSchema } from './support/from-schema.ts';
import { of, openTestHouse, type Room, says, type TestHouse } from './support/house.ts';
import { countingTools } from './support/tools.ts';

const red: Actor = { id: 'rae', kind: 'person', tenant_id: 'red', scopes: ['*'] };
const blue: Actor = { id: 'bea', kind: 'person', tenant_id: 'blue', scopes: ['*'] };
const file = { kind: 'file', mime_type: 'text/plain', visibility: 'public' } as const;
const hello = says('hello') as unknown as CommandBody<'message.append'>['message'];

/** One of everything in red's workspace, by the name of its object. */
interface Belongings {
  readonly t: TestHouse;
  readonly room: Room;
  readonly ids: Readonly<Record<string, string>>;
}

async function everything(): Promise<Belongings> {
  const agent = scriptedAgent(async (sink) => {
    await sink.artifact({ ...file, bytes: Buffer.from('red bytes') });
    return undefined;
  });
  const tools = countingTools({ send: { effect: 'send' }, look: { effect: 'read' } });
  const t = await openTestHouse({ agents: [agent], tools: [tools] });
  const by = { actor: red };
  const room = await t.room({ actor: red, persona: {} });
  const make = async (object: CommandBody<'resource.create'>['object'], body: JsonObject) =>
    (await t.send('resource.create', { object, body }, by)).resource.id;
  const ended = await room.task();
  await t.until(ended.id);
  const open = await room.task({ agent: 'none' });
  const action = { kind: 'tool', tool: 'send', effect: 'send' } as const;
  const { details } = await t.send('action.propose', { task_id: open.id, action, wait_ms: 0 }, by);
  const message = await t.send('message.append', { session_id: room.session, message: hello }, by);
  const branch = await t.send('branch.create', { session_id: room.session, kind: 'session', base_ref: 'main' }, by);
  const [receipt] = await t.receipts(ended.id);
  const [artifact] = await t.house.store.list({ object: 'artifact', where: { task_id: ended.id } });
  const [outcome] = await t.house.store.list({ object: 'outcome', where: { task_id: ended.id } });
  const [event] = await t.events(ended.id);
  return {
    t,
    room,
    ids: {
      workspace: room.workspace,
      session: room.session,
      persona: room.persona!,
      task: open.id,
      ended: ended.id,
      ask: String(details?.ask_id),
      message: message.resource.id,
      branch: branch.resource.id,
      receipt: receipt!.receipt_id,
      artifact: artifact!.id,
      outcome: outcome!.id,
      event: event!.id,
      quota: await make('quota', { scope: 'workspace', limits: { tasks: 100 } }),
      skill: await make('skill', { name: 's', description: '' }),
      vault: await make('vault', { provider: 'env', capabilities: [] }),
      memory: await make('memory', { scope: 'session', owner_id: room.session, content: 'red', provenance: {} }),
      connector: await make('connector', { workspace_id: room.workspace, provider: 'x', event_kinds: [] }),
    },
  };
}

async function faultOf(work: Promise<unknown>): Promise<Fault> {
  return await work.then(
    () => {
      throw new Error('was let through');
    },
    (cause) => asFault(cause),
  );
}

/** What someone hears about a thing that is there and about one that never was, with the ids taken out. */
function sameWords(hidden: Fault, absent: Fault, id: string, none: string): void {
  expect(hidden.kind).toBe('not_found');
  expect({ kind: hidden.kind, message: hidden.message.replaceAll(id, 'ID'), details: hidden.details }).toEqual({
    kind: absent.kind,
    message: absent.message.replaceAll(none, 'ID'),
    details: absent.details,
  });
}

let own: Belongings;
beforeEach(async () => {
  own = await everything();
});

/** Someone of another tenant, and someone of the same one who was given another workspace only. */
const STRANGERS: readonly [string, Actor][] = [
  ['another tenant', blue],
  ['a house without tenants', { id: 'ada', kind: 'person', scopes: ['*'] }],
  ['another workspace', { ...red, id: 'rob', workspaces: ['workspace_elsewhere'] }],
];

describe.each(STRANGERS)('to %s', (what, stranger) => {
  const inWorkspace = [
    'workspace',
    'session',
    'task',
    'ask',
    'message',
    'branch',
    'receipt',
    'artifact',
    'outcome',
    'event',
    'memory',
    'connector',
  ];
  // What a tenant declares for all of its workspaces is seen in each of them.
  const hidden = what === 'another workspace' ? inWorkspace : [...inWorkspace, 'persona', 'quota', 'skill', 'vault'];

  test('every object is absent', async () => {
    const { t, ids } = own;
    for (const object of hidden) {
      const id = ids[object]!;
      const none = object === 'event' ? 'evt_9999999999999999' : `${object}_none`;
      sameWords(
        await faultOf(t.bridge.view(stranger, object, id)),
        await faultOf(t.bridge.view(stranger, object, none)),
        id,
        none,
      );
      if (object === 'event') continue;
      const listed = await t.bridge.list(stranger, { object });
      expect(
        listed.data.map((row) => row.id),
        object,
      ).not.toContain(id);
    }
    const artifact = ids.artifact!;
    sameWords(
      await faultOf(t.bridge.bytes(stranger, artifact)),
      await faultOf(t.bridge.bytes(stranger, 'artifact_none')),
      artifact,
      'artifact_none',
    );
  });

  test('every command about them finds nothing and writes nothing', async () => {
    const { t, ids } = own;
    const other = await t.room({ actor: { ...stranger, workspaces: undefined } as unknown as Actor });
    const mine = what === 'another workspace' ? { ...stranger, workspaces: [other.workspace] } : stranger;
    const action = { kind: 'tool', tool: 'send' } as const;
    const persona = {
      name: 'p',
      version: '1',
      entry_workflow: 'e',
      description: '',
      autonomy_tier: 'suggest',
      receipt_policy: 'optional',
    };
    /** Each names one hidden thing; the second argument is what stands in its place. */
    const attempts: readonly [CommandKind, string, (id: string) => JsonObject][] = [
      ['resource.update', 'workspace', (id) => ({ object: 'workspace', id, body: { name: 'taken' } })],
      ['resource.delete', 'workspace', (id) => ({ object: 'workspace', id })],
      ['resource.update', 'memory', (id) => ({ object: 'memory', id, body: { content: 'taken' } })],
      ['resource.delete', 'connector', (id) => ({ object: 'connector', id })],
      [
        'resource.create',
        'workspace',
        (id) => ({ object: 'vault', body: { workspace_id: id, provider: 'p', capabilities: [] } }),
      ],
      [
        'resource.create',
        'workspace',
        (id) => ({ object: 'memory', body: { scope: 'workspace', owner_id: id, content: 1, provenance: {} } }),
      ],
      [
        'resource.create',
        'session',
        (id) => ({ object: 'memory', body: { scope: 'session', owner_id: id, content: 1, provenance: {} } }),
      ],
      [
        'resource.create',
        'session',
        (id) => ({
          object: 'connector',
          body: { workspace_id: other.workspace, provider: 'p', event_kinds: [], target_session_id: id },
        }),
      ],
      [
        'resource.update',
        'branch',
        (id) => ({ object: 'workspace', id: other.workspace, body: { default_branch_id: id } }),
      ],
      ['session.create', 'workspace', (id) => ({ workspace_id: id })],
      ['session.create', 'memory', (id) => ({ workspace_id: other.workspace, memory_ids: [id] })],
      ['session.update', 'session', (id) => ({ session_id: id, summary: 's' })],
      ['session.close', 'session', (id) => ({ session_id: id })],
      ['session.fork', 'session', (id) => ({ session_id: id })],
      ['session.truncate', 'session', (id) => ({ session_id: id, keep_first: 0 })],
      ['session.compact', 'session', (id) => ({ session_id: id, summary: 's', through_message_id: ids.message! })],
      ['session.compact', 'message', (id) => ({ session_id: other.session, summary: 's', through_message_id: id })],
      ['message.append', 'session', (id) => ({ session_id: id, message: hello })],
      ['branch.create', 'session', (id) => ({ session_id: id, kind: 'session', base_ref: 'main' })],
      [
        'branch.create',
        'branch',
        (id) => ({ session_id: other.session, kind: 'session', base_ref: 'main', parent_branch_id: id }),
      ],
      [
        'branch.create',
        'task',
        (id) => ({ session_id: other.session, kind: 'session', base_ref: 'main', task_id: id }),
      ],
      ['branch.end', 'branch', (id) => ({ branch_id: id, as: 'merged' })],
      ['task.submit', 'session', (id) => ({ session_id: id, input: {} })],
      ['task.submit', 'branch', (id) => ({ session_id: other.session, input: {}, branch_id: id, agent: 'none' })],
      ['task.submit', 'task', (id) => ({ session_id: other.session, input: {}, parent_task_id: id, agent: 'none' })],
      ['task.cancel', 'task', (id) => ({ task_id: id })],
      ['task.resume', 'task', (id) => ({ task_id: id })],
      ['task.message', 'task', (id) => ({ task_id: id, kind: 'interrupt', message: hello })],
      ['task.report', 'task', (id) => ({ task_id: id, end: { state: 'COMPLETED' } })],
      ['task.replay', 'ended', (id) => ({ task_id: id })],
      ['action.propose', 'task', (id) => ({ task_id: id, action })],
      ['tool.call', 'task', (id) => ({ task_id: id, action })],
      ['ask.answer', 'ask', (id) => ({ ask_id: id, approved: true })],
      ['artifact.register', 'workspace', (id) => ({ ...file, workspace_id: id })],
      ['artifact.register', 'session', (id) => ({ ...file, session_id: id })],
      ['artifact.register', 'task', (id) => ({ ...file, task_id: id })],
      ['receipt.verify', 'receipt', (id) => ({ receipt_id: id })],
      ['binding.set', 'task', (id) => ({ protocol: 'p', scope: '', wire_id: 'w', to: { object: 'task', id } })],
      ['passthrough', 'workspace', (id) => ({ protocol: 'p', method: 'm', workspace_id: id })],
      [
        'passthrough',
        'session',
        (id) => ({ protocol: 'p', method: 'm', workspace_id: other.workspace, session_id: id }),
      ],
      ['passthrough', 'task', (id) => ({ protocol: 'p', method: 'm', workspace_id: other.workspace, task_id: id })],
      ...(what === 'another workspace'
        ? []
        : ([
            ['resource.update', 'persona', (id) => ({ object: 'persona', id, body: { autonomy_tier: 'act_auto' } })],
            ['resource.delete', 'quota', (id) => ({ object: 'quota', id })],
            ['resource.create', 'quota', (id) => ({ object: 'persona', body: { ...persona, quota_id: id } })],
            ['session.create', 'persona', (id) => ({ workspace_id: other.workspace, persona_id: id })],
            ['session.create', 'vault', (id) => ({ workspace_id: other.workspace, vault_ids: [id] })],
            ['session.create', 'skill', (id) => ({ workspace_id: other.workspace, skill_ids: [id] })],
            ['task.submit', 'persona', (id) => ({ session_id: other.session, input: {}, persona_id: id })],
          ] satisfies [CommandKind, string, (id: string) => JsonObject][])),
    ];
    const named = new Set(attempts.map(([kind]) => kind));
    expect(Object.keys(COMMANDS).filter((kind) => !named.has(kind as CommandKind))).toEqual([]);

    const before = (await t.all()).length;
    for (const [kind, object, body] of attempts) {
      const id = ids[object]!;
      const none = `${object}_none`;
      const hiddenFault = await t.refused(kind, body(id), { actor: mine });
      const absentFault = await t.refused(kind, body(none), { actor: mine });
      expect(hiddenFault.kind, `${kind} ${object}`).toBe('not_found');
      sameWords(hiddenFault, absentFault, id, none);
    }
    expect(await t.all()).toHaveLength(before);
  });

  test('streams show nothing of them', async () => {
    const { t, ids } = own;
    for (const stream of ['workspace', 'session', 'task'] as const) {
      const none = `${stream}_none`;
      const read = async (id: string) => {
        for await (const event of t.bridge.events(stranger, { stream: { of: stream, id } }))
          expect(event).toBe(undefined);
      };
      sameWords(await faultOf(read(ids[stream]!)), await faultOf(read(none)), ids[stream]!, none);
    }
    for await (const event of t.bridge.events(stranger, {
      stream: { of: 'resource', object: 'task', id: ids.task! },
    })) {
      expect(event).toBe(undefined);
    }
    for await (const event of t.bridge.events(stranger, { stream: { of: 'all' } })) expect(event).toBe(undefined);
  });
});

describe('between tenants', () => {
  test('a stream of everything shows each its own, as it happens', async () => {
    const { t } = own;
    const stop = new AbortController();
    const seen: string[] = [];
    const following = (async () => {
      for await (const event of t.bridge.follow(blue, { stream: { of: 'all' } }, stop.signal)) {
        seen.push(`${event.workspace_id}`);
        if (event.event === 'session.closed') return;
      }
    })();
    const room = await t.room({ actor: blue });
    await own.room.task({}, { actor: red });
    await t.send('session.close', { session_id: room.session }, { actor: blue });
    await following;
    stop.abort();
    expect(new Set(seen)).toEqual(new Set([room.workspace]));
  });

  test('what the house declares is there for everyone to use and for nobody else to change', async () => {
    const { t } = own;
    const body = { scope: 'tenant', limits: { tasks: 5 } };
    const { resource: quota } = await t.send('resource.create', { object: 'quota', body });
    expect(await t.bridge.view(red, 'quota', quota.id)).toMatchObject({ id: quota.id });
    const raise = { object: 'quota', id: quota.id, body: { limits: { tasks: 500 } } };
    expect(await t.refused('resource.update', raise, { actor: red })).toMatchObject({ kind: 'permission_denied' });
    expect(await t.refused('resource.delete', { object: 'quota', id: quota.id }, { actor: red })).toMatchObject({
      kind: 'permission_denied',
    });
    expect(await t.bridge.view(red, 'quota', quota.id)).toMatchObject({ limits: { tasks: 5 } });
    await t.send('resource.update', raise as never);
  });

  test("a file without a workspace is its tenant's alone", async () => {
    const { t } = own;
    const { resource } = await t.send('artifact.register', file, { bytes: Buffer.from('house') });
    const reds = await t.send('artifact.register', file, { actor: red, bytes: Buffer.from('red') });
    expect(await faultOf(t.bridge.view(red, 'artifact', resource.id))).toMatchObject({ kind: 'not_found' });
    expect(await faultOf(t.bridge.view(blue, 'artifact', reds.resource.id))).toMatchObject({ kind: 'not_found' });
    expect(await t.bridge.view(red, 'artifact', reds.resource.id)).toMatchObject({ id: reds.resource.id });
  });

  test('the name of a withdrawn workspace is not given out again, with all that happened in it', async () => {
    const { t, ids } = own;
    await t.send('resource.delete', { object: 'workspace', id: ids.workspace! }, { actor: red });
    const body = { object: 'workspace', id: ids.workspace!, body: { name: 'w', root: 'file:///w' } };
    expect(await t.refused('resource.create', body, { actor: blue })).toMatchObject({ kind: 'conflict' });
    expect(await faultOf(t.bridge.view(blue, 'session', ids.session!))).toMatchObject({ kind: 'not_found' });
    expect(await faultOf(t.bridge.view(red, 'session', ids.session!))).toMatchObject({ kind: 'not_found' });
  });

  test('knowing the hash of a file is not having it', async () => {
    const { t, ids } = own;
    const { sha256 } = await t.bridge.view<Row & { sha256: string }>(red, 'artifact', ids.artifact!);
    expect(Buffer.from(await t.bridge.bytes(red, ids.artifact!)).toString()).toBe('red bytes');
    const claim = { ...file, sha256, metadata: { bytes: 9 } };
    const { resource } = await t.send('artifact.register', claim, { actor: blue });
    expect(await faultOf(t.bridge.bytes(blue, resource.id))).toMatchObject({ kind: 'conflict' });
    const room = await t.room({ actor: blue });
    const task = await room.task({ agent: 'none' });
    const fact = { event: 'artifact.created', payload: { artifact: { id: 'artifact_claim', ...claim } } };
    await t.send('task.report', { task_id: task.id, facts: [fact] }, { actor: blue });
    expect(await faultOf(t.bridge.bytes(blue, 'artifact_claim'))).toMatchObject({ kind: 'conflict' });
  });

  test("a replay cannot be fed with someone else's file", async () => {
    const { t, ids } = own;
    const { resource: done } = await t.send(
      'task.submit',
      { session_id: (await t.room({ actor: blue })).session, input: {} },
      { actor: blue },
    );
    await t.until(done.id);
    const override = (artifact_id: string) => ({
      task_id: done.id,
      mode: 'with_overrides',
      override: { 'time:created_at': { kind: 'time', artifact_id } },
    });
    sameWords(
      await t.refused('task.replay', override(ids.artifact!), { actor: blue }),
      await t.refused('task.replay', override('artifact_none'), { actor: blue }),
      ids.artifact!,
      'artifact_none',
    );
  });

  test('a wire id that is taken does not say by what', async () => {
    const { t, ids } = own;
    const room = await t.room({ actor: blue });
    const bind = (id: string) => ({ protocol: 'p', scope: '', wire_id: 'w', to: { object: 'session', id } });
    await t.send('binding.set', bind(ids.session!), { actor: red });
    const fault = await t.refused('binding.set', bind(room.session), { actor: blue });
    expect(fault).toMatchObject({ kind: 'conflict', message: 'w already stands for something else' });
  });
});

describe('moving house', () => {
  test('a resource stays where it was made', async () => {
    const { t, ids } = own;
    const other = await t.room({ actor: red });
    const moves: readonly JsonObject[] = [
      { object: 'connector', id: ids.connector!, body: { workspace_id: other.workspace } },
      { object: 'memory', id: ids.memory!, body: { owner_id: other.session } },
      { object: 'memory', id: ids.memory!, body: { scope: 'tenant' } },
      { object: 'vault', id: ids.vault!, body: { workspace_id: other.workspace } },
    ];
    for (const move of moves) {
      expect(await t.refused('resource.update', move, { actor: red })).toMatchObject({ kind: 'invalid_request' });
    }
    const same = {
      object: 'memory',
      id: ids.memory!,
      body: { scope: 'session', owner_id: ids.session!, content: 'new' },
    } as const;
    expect(await t.send('resource.update', same, { actor: red })).toMatchObject({ resource: { content: 'new' } });
  });

  test('who was given some workspaces makes no others', async () => {
    const { t } = own;
    const limited: Actor = { ...red, workspaces: ['workspace_given'] };
    const make = (id?: string) => ({ object: 'workspace', ...(id && { id }), body: { name: 'w', root: 'file:///w' } });
    const before = (await t.all()).length;
    expect(await t.refused('resource.create', make(), { actor: limited })).toMatchObject({ kind: 'permission_denied' });
    expect(await t.refused('resource.create', make('workspace_other'), { actor: limited })).toMatchObject({
      kind: 'permission_denied',
    });
    expect(await t.all()).toHaveLength(before);
    expect(await t.send('resource.create', make('workspace_given') as never, { actor: limited })).toMatchObject({
      resource: { id: 'workspace_given' },
    });
  });

  test('identity and history are not part of a body', async () => {
    const { t } = own;
    const body = {
      name: 'w',
      root: 'file:///w',
      tenant_id: 'blue',
      id: 'workspace_x',
      created_at: '1999-01-01T00:00:00.000Z',
      object: 'quota',
    };
    const { resource } = await t.send('resource.create', { object: 'workspace', body }, { actor: red });
    expect(resource).toMatchObject({ object: 'workspace', tenant_id: 'red', created_at: '2026-01-01T00:00:00.000Z' });
    expect(resource.id).not.toBe('workspace_x');
    const task = await own.room.task({
      agent: 'none',
      metadata: { tollbridge: { tier: 'act_auto', tenant_id: 'blue' } },
    });
    expect(task.metadata.tollbridge).toEqual({ tier: 'act_auto', tenant_id: 'red' });
  });
});

describe("what core keeps for itself is nobody's to read", () => {
  const PRIVATE = ['run', 'lane', 'tally', 'binding'];

  test.each(PRIVATE)('%s', async (object) => {
    const { t, ids } = own;
    const rows = await t.house.store.list({ object });
    const id = rows[0]?.id ?? ids.session!;
    expect(await faultOf(t.bridge.view(red, object, id))).toMatchObject({
      kind: 'not_found',
      message: `no ${object} ${id}`,
    });
    expect(await faultOf(t.bridge.list(red, { object }))).toMatchObject({ kind: 'not_found' });
    const system: Actor = { id: 'door', kind: 'system', scopes: ['*'] };
    for (const actor of [red, system]) {
      const bind = {
        protocol: 'p',
        scope: '',
        wire_id: 'w',
        to: { object, id: /^[\w.-]+$/.test(id) ? id : ids.session! },
      };
      expect(await t.refused('binding.set', bind, { actor })).toMatchObject({ kind: 'not_found' });
    }
  });
});

describe('scopes', () => {
  const NEEDED: Readonly<Record<CommandKind, string>> = {
    'resource.create': 'resources:write',
    'resource.update': 'resources:write',
    'resource.delete': 'resources:write',
    'session.create': 'sessions:write',
    'session.update': 'sessions:write',
    'session.close': 'sessions:write',
    'session.fork': 'sessions:write',
    'session.truncate': 'sessions:write',
    'session.compact': 'sessions:write',
    'message.append': 'sessions:write',
    'branch.create': 'sessions:write',
    'branch.end': 'sessions:write',
    'task.submit': 'tasks:write',
    'task.cancel': 'tasks:write',
    'task.resume': 'tasks:write',
    'task.message': 'tasks:write',
    'task.report': 'tasks:write',
    'task.replay': 'tasks:write',
    'action.propose': 'tasks:write',
    'tool.call': 'tasks:write',
    'ask.answer': 'approvals:write',
    'artifact.register': 'artifacts:write',
    'receipt.verify': 'receipts:read',
    'binding.set': 'sessions:write',
    passthrough: 'sessions:write',
  };
  const ALL = [
    ...new Set(Object.values(NEEDED)),
    'sessions:read',
    'tasks:read',
    'events:read',
    'artifacts:read',
    'memories:write',
    'personas:write',
  ];
  const holding = (...scopes: string[]): Actor => ({ ...red, id: 'sam', scopes });

  test('every command needs its own, and no other will do', async () => {
    const { t, ids } = own;
    const action = { kind: 'tool', tool: 'send' };
    const bodies: Readonly<Record<CommandKind, JsonObject>> = {
      'resource.create': { object: 'quota', body: { scope: 'workspace', limits: {} } },
      'resource.update': { object: 'quota', id: ids.quota!, body: {} },
      'resource.delete': { object: 'quota', id: ids.quota! },
      'session.create': { workspace_id: ids.workspace! },
      'session.update': { session_id: ids.session! },
      'session.close': { session_id: ids.session! },
      'session.fork': { session_id: ids.session! },
      'session.truncate': { session_id: ids.session!, keep_first: 0 },
      'session.compact': { session_id: ids.session!, summary: 's', through_message_id: ids.message! },
      'message.append': { session_id: ids.session!, message: hello as never },
      'branch.create': { session_id: ids.session!, kind: 'session', base_ref: 'main' },
      'branch.end': { branch_id: ids.branch!, as: 'merged' },
      'task.submit': { session_id: ids.session!, input: {} },
      'task.cancel': { task_id: ids.task! },
      'task.resume': { task_id: ids.task! },
      'task.message': { task_id: ids.task!, kind: 'interrupt', message: hello as never },
      'task.report': { task_id: ids.task! },
      'task.replay': { task_id: ids.ended! },
      'action.propose': { task_id: ids.task!, action },
      'tool.call': { task_id: ids.task!, action },
      'ask.answer': { ask_id: ids.ask!, approved: true },
      'artifact.register': file,
      'receipt.verify': { receipt_id: ids.receipt! },
      'binding.set': { protocol: 'p', scope: '', wire_id: 'w', to: { object: 'session', id: ids.session! } },
      passthrough: { protocol: 'p', method: 'm', workspace_id: ids.workspace! },
    };
    const before = (await t.all()).length;
    for (const [kind, body] of Object.entries(bodies) as [CommandKind, JsonObject][]) {
      const others = ALL.filter((scope) => scope !== NEEDED[kind]);
      // A member that belongs to another command opens nothing.
      for (const trick of [body, { ...body, ...(!kind.startsWith('resource.') && { object: 'memory' }) }]) {
        const fault = await t.refused(kind, trick, { actor: holding(...others) });
        expect(fault, kind).toMatchObject({
          kind: 'permission_denied',
          message: `sam does not have the scope ${NEEDED[kind]}`,
        });
      }
    }
    expect(await t.all()).toHaveLength(before);
  });

  test('a family, everything, or the kind of resource itself will do', async () => {
    const { t, ids } = own;
    const memory = {
      object: 'memory',
      body: { scope: 'session', owner_id: ids.session!, content: 1, provenance: {} },
    } as const;
    for (const scope of ['memories:write', 'memories:*', 'resources:write', 'resources:*', '*']) {
      expect(await t.send('resource.create', memory, { actor: holding(scope) })).toMatchObject({ repeated: false });
    }
    expect(
      await t.refused('resource.create', memory, { actor: holding('memories:read', 'personas:write') }),
    ).toMatchObject({ kind: 'permission_denied' });
  });

  test('every read needs its own', async () => {
    const { t, ids } = own;
    const reads: readonly [string, string][] = [
      ['session', 'sessions:read'],
      ['message', 'sessions:read'],
      ['branch', 'sessions:read'],
      ['task', 'tasks:read'],
      ['outcome', 'tasks:read'],
      ['ask', 'tasks:read'],
      ['event', 'events:read'],
      ['artifact', 'artifacts:read'],
      ['receipt', 'receipts:read'],
      ['workspace', 'workspaces:read'],
      ['persona', 'personas:read'],
      ['memory', 'memories:read'],
      ['quota', 'quotas:read'],
    ];
    for (const [object, scope] of reads) {
      const others = reads.map(([, other]) => other).filter((other) => other !== scope);
      const without = holding(...others, 'resources:write', 'tasks:write');
      const denied = { kind: 'permission_denied', message: `sam does not have the scope ${scope}` };
      expect(await faultOf(t.bridge.view(without, object, ids[object]!)), object).toMatchObject(denied);
      expect(await t.bridge.view(holding(scope), object, ids[object]!), object).toMatchObject({ id: ids[object] });
      if (object === 'event') continue;
      expect(await faultOf(t.bridge.list(without, { object })), object).toMatchObject(denied);
    }
    expect(await faultOf(t.bridge.bytes(holding('tasks:read'), ids.artifact!))).toMatchObject({
      kind: 'permission_denied',
    });
    const follow = async (actor: Actor) => {
      for await (const _ of t.bridge.follow(actor, { stream: { of: 'task', id: ids.task! } }, AbortSignal.timeout(1)))
        break;
    };
    expect(await faultOf(follow(holding('tasks:read')))).toMatchObject({ kind: 'permission_denied' });
  });

  test('what is for receipts only needs the scope for receipts', async () => {
    const { t, ids } = own;
    const body = { ...file, visibility: 'receipt_only', workspace_id: ids.workspace! } as const;
    const { resource } = await t.send('artifact.register', body, { actor: red, bytes: Buffer.from('x') });
    expect(await faultOf(t.bridge.bytes(holding('artifacts:read'), resource.id))).toMatchObject({
      kind: 'permission_denied',
    });
    expect(Buffer.from(await t.bridge.bytes(holding('artifacts:read', 'receipts:read'), resource.id)).toString()).toBe(
      'x',
    );
  });

  test('a name that is on every object is a name like any other', async () => {
    const { t } = own;
    for (const object of ['constructor', '__proto__', 'toString', 'hasOwnProperty']) {
      expect(await faultOf(t.bridge.view(holding('tasks:read'), object, 'x')), object).toMatchObject({
        kind: 'permission_denied',
      });
      expect(await faultOf(t.bridge.view(red, object, 'x')), object).toMatchObject({ kind: 'not_found' });
      expect(await t.refused(object as CommandKind, {}, { actor: red }), object).toMatchObject({
        kind: 'invalid_request',
      });
    }
  });
});

describe('bad input', () => {
  const kinds = Object.keys(COMMANDS) as CommandKind[];

  /** Values that are JSON and nothing anyone expects. */
  const anything = fc.oneof(
    fc.jsonValue({ maxDepth: 3 }),
    fc.string({ unit: 'binary' }),
    fc.constantFrom('\ud800', '__proto__', 'constructor', '../..', '', '\u0000', 1e308, -0, 2 ** 53, 1e-7),
  );

  /** As wanted, with names of things that are there; sometimes with one member that is anything. */
  function nearly(ids: Readonly<Record<string, string>>, kind: CommandKind): fc.Arbitrary<unknown> {
    const known = fc.constantFrom(...Object.values(ids), 'none');
    const named = (member: string) => {
      const id = /_ids?$/.test(member)
        ? ids[member.replace(/_ids?$/, '').replace(/^(parent|through)_/, '')]
        : undefined;
      if (member === 'agent') return fc.constantFrom('none', 'agent', 'nobody');
      if (member === 'wait_ms') return fc.constant(0);
      if (member === 'tool') return fc.constantFrom('look', 'send', 'fly');
      if (member === 'event') return fc.constantFrom(...FACTS);
      if (member === 'parts') return fc.array(PART, { maxLength: 2 });
      if (member === 'payload') return PAYLOAD;
      if (member === 'body') return declaredBody(ids);
      if (member === 'end') return fc.constant(undefined); // it would be the end of everything after it
      return id
        ? fc.oneof({ weight: 4, arbitrary: fc.constant(id) }, known)
        : member.endsWith('id')
          ? known
          : undefined;
    };
    const right = fromSchema(COMMANDS[kind], named, anything) as fc.Arbitrary<JsonObject>;
    const wrong = fc.dictionary(fc.constantFrom(...Object.keys(COMMANDS[kind].properties)), anything, { maxKeys: 1 });
    return fc.oneof(
      { weight: 3, arbitrary: right },
      fc.tuple(right, wrong).map(([a, b]) => ({ ...a, ...b })),
    );
  }
  /** Enough for any declared resource at once, sometimes with something else in place of a member. */
  function declaredBody(ids: Readonly<Record<string, string>>): fc.Arbitrary<JsonObject> {
    const whole = {
      ...{ name: 'n', root: 'r', version: '1', entry_workflow: 'e', description: '', autonomy_tier: 'suggest' },
      ...{ receipt_policy: 'optional', scope: 'workspace', owner_id: ids.workspace!, content: 1, provenance: {} },
      ...{ workspace_id: ids.workspace!, provider: 'p', capabilities: [], event_kinds: [], limits: { tasks: 1 } },
      ...{ usage: { tasks: 0 }, quota_id: ids.quota!, default_branch_id: ids.branch!, status: 'ACTIVE' },
    };
    const odd = fc.dictionary(
      fc.constantFrom(...Object.keys(whole), 'tenant_id', 'id', 'metadata', ...COLUMNS),
      anything,
      {
        maxKeys: 2,
      },
    );
    return odd.map((change) => ({ ...whole, ...(change as JsonObject) }));
  }
  const COLUMNS = ['session_id', 'task_id', 'parent_task_id', 'state'];
  const PART = fc.oneof(
    fc.record({ type: fc.constant('text'), text: fc.string({ unit: 'binary' }), visibility: fc.constant('public') }),
    fc.record({ type: fc.constant('json'), value: anything, visibility: fc.constant('receipt_only') }),
    fc.record({ type: fc.constant('odd'), value: anything }),
    anything,
  );
  const PAYLOAD = fc.record(
    {
      message: fc.oneof(anything, fc.record({ role: anything, id: anything, parts: fc.array(PART, { maxLength: 2 }) })),
      artifact: fc.oneof(anything, fc.record({ id: anything, metadata: anything, sha256: anything, object: anything })),
      tool_call_id: anything,
      usd_micros: anything,
      entries: anything,
      evidence: anything,
    },
    { requiredKeys: [] },
  );
  const FACTS = [
    'agent.message',
    'user.message',
    'artifact.created',
    'artifact.updated',
    'tool.requested',
    'tool.completed',
    'vendor.tollbridge.usage',
    'vendor.tollbridge.plan',
    'vendor.tollbridge.decided',
    'task.completed',
    'span.completed',
    '',
  ];

  test('is always refused in our own words, and never leaves a trace', async () => {
    const { t, ids } = own;
    // Commands that end things are tried on things that nothing else needs.
    const spare = await t.room({ actor: red, persona: {} });
    const task = await spare.task({ agent: 'none' });
    const ending = {
      ...ids,
      session: spare.session,
      workspace: spare.workspace,
      persona: spare.persona!,
      task: task.id,
    };
    const over = Date.now() + 6000;
    const ENDS = new Set<CommandKind>(['session.close', 'session.truncate', 'task.cancel', 'resource.delete']);
    await fc.assert(
      fc.asyncProperty(
        fc
          .constantFrom(...kinds)
          .chain((kind) =>
            fc.tuple(
              fc.constant(kind),
              fc.oneof(
                { weight: 1, arbitrary: anything },
                { weight: 9, arbitrary: nearly(ENDS.has(kind) ? ending : ids, kind) },
              ),
              fc.option(fc.string({ minLength: 1 }), { nil: undefined }),
            ),
          ),
        async ([kind, body, key]) => {
          if (Date.now() > over) return;
          const before = (await t.house.store.tip({ of: 'all' })) ?? '';
          const sure = kind === 'tool.call' && isObject(body) && isObject(body.action) && body.action.tool === 'send';
          if (sure) return; // it would be let through only by a person, and would wait for one
          const waits = kind === 'action.propose' && isObject(body) ? { ...body, wait_ms: 0 } : body;
          const envelope = { actor: red, ...(key && { idempotency: { key } }) };
          const fault = await t.send(kind, waits as never, envelope).then(
            () => undefined,
            (cause) => asFault(cause),
          );
          if (!fault) return;
          expect(fault.kind, `${kind}: ${fault.message}: ${String(fault.cause)}`).not.toBe('internal');
          // A refusal by policy is on record; a mistake is not.
          if (fault.kind === 'policy_violation' || fault.kind === 'rate_limited') return;
          const after: string[] = [];
          for await (const event of t.house.store.read({ stream: { of: 'all' }, after: before })) {
            // A replay let in before goes on meanwhile.
            if (event.actor === red.id && !event.replayed) after.push(event.event);
          }
          expect(after, `${kind}: ${fault.message}`).toEqual([]);
        },
      ),
      { seed: 1789, numRuns: 2000 },
    );
  });

  test.each([
    [400, undefined],
    [600, 'invalid_request'],
    [100_000, 'invalid_request'],
  ])('nested %i deep', async (depth, refused) => {
    const { t, ids } = own;
    const deep = JSON.parse(`${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`) as JsonObject;
    const parts = [{ type: 'json', value: deep, visibility: 'public' }];
    const memory = { scope: 'session', owner_id: ids.session!, content: deep, provenance: {} };
    const attempts: readonly [CommandKind, JsonObject][] = [
      ['task.submit', { session_id: ids.session!, input: deep, agent: 'none' }],
      ['message.append', { session_id: ids.session!, message: { role: 'user', parts } }],
      ['action.propose', { task_id: ids.task!, action: { kind: 'tool', tool: 't', arguments: deep }, wait_ms: 0 }],
      ['tool.call', { task_id: ids.task!, action: { kind: 'tool', tool: 'look', arguments: deep } }],
      ['resource.create', { object: 'memory', body: memory }],
      ['task.report', { task_id: ids.task!, facts: [{ event: 'agent.odd', payload: deep }] }],
      ['session.update', { session_id: ids.session!, metadata: deep }],
      ['artifact.register', { ...file, metadata: deep }],
      ['passthrough', { protocol: 'p', method: 'm', workspace_id: ids.workspace!, params: deep }],
    ];
    for (const [kind, body] of attempts) {
      const sent = t.send(kind, body as never, { actor: red, idempotency: { key: 'deep' } });
      const fault = await sent.then(
        () => undefined,
        (cause) => asFault(cause),
      );
      expect(fault?.kind, `${kind}: ${fault?.message} ${String(fault?.cause)}`).toBe(refused);
    }
  });

  test('a body that is no object, or not there', async () => {
    const { t } = own;
    for (const kind of kinds) {
      for (const body of [undefined, null, 1, 'text', [], true]) {
        expect(await t.refused(kind, body, { actor: red }), kind).toMatchObject({ kind: 'invalid_request' });
      }
    }
    expect(of(await t.all(), 'vendor.tollbridge.note')).toEqual([]);
  });
});

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
