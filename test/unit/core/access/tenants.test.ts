/**
 * Tenants in one gateway: each sees its own, shares what the gateway declares, and takes nothing along that is not theirs.
 */
import { beforeEach, describe, expect, test } from 'vitest';
import type { Actor } from '../../../../src/model/actions.ts';
import type { JsonObject } from '../../../../src/model/schema.ts';
import type { Row } from '../../../../src/ports/index.ts';
import {
  type Belongings,
  blue,
  everything,
  faultOf,
  file,
  red,
  sameWords,
} from '../../../support/gateway/two-tenants.ts';

let own: Belongings;

beforeEach(async () => {
  own = await everything();
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

  test('what the gateway declares is there for everyone to use and for nobody else to change', async () => {
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

  test('a caller that names no workspace works in the first it sees; one is made where its tenant has none', async () => {
    const { t } = own;
    expect(await t.bridge.home(red)).toBe(own.room.workspace);
    const green: Actor = { id: 'gil', kind: 'service', tenant_id: 'green', scopes: ['workspaces:read'] };
    // Two callers at once, neither of which may declare a workspace.
    const [home, again] = await Promise.all([t.bridge.home(green), t.bridge.home({ ...green, id: 'gus' })]);
    expect(again).toBe(home);
    expect(await t.bridge.view(green, 'workspace', home)).toMatchObject({ name: 'default', tenant_id: 'green' });
    const elsewhere = { ...green, tenant_id: 'grey', workspaces: [own.room.workspace] };
    await expect(t.bridge.home(elsewhere)).rejects.toThrow('there is no workspace for gil to work in');
  });

  test("a file without a workspace is its tenant's alone", async () => {
    const { t } = own;
    const { resource } = await t.send('artifact.register', file, { bytes: Buffer.from('shared') });
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
    const fact = { event: 'artifact.created' as const, payload: { artifact: { id: 'artifact_claim', ...claim } } };
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

describe('what a caller cannot move, make or set', () => {
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

  test('an actor limited to some workspaces makes no others', async () => {
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
