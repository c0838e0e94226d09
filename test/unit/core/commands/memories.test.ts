/** What work may remember: given by scope and owner, on record, and written through the gate. */
import { describe, expect, test } from 'vitest';
import type { Memory, Session, Task } from '../../../../src/model/resources.ts';
import type { JsonObject } from '../../../../src/model/schema.ts';
import type { Row, Work } from '../../../../src/ports/index.ts';
import { ana } from '../../../support/gateway/actors.ts';
import { refusalOf } from '../../../support/gateway/faults.ts';
import { openTestGateway, REAL_TIME, type TestGateway } from '../../../support/gateway/test-gateway.ts';
import { scripted } from '../../../support/tasks/script.ts';

const PERSONA = {
  name: 'p',
  version: '1',
  entry_workflow: 'one',
  description: '',
  autonomy_tier: 'act_auto',
  receipt_policy: 'required',
};

async function remembering() {
  const works: Work[] = [];
  const agent = scripted('one', async ({ work, sink }) => {
    works.push(work);
    const { write } = work.task.input as { write?: JsonObject };
    if (write)
      results.push(await sink.act({ kind: 'memory.write', tool_call_id: 'w1', tool: 'memory', arguments: write }));
  });
  const results: unknown[] = [];
  const gateway = await openTestGateway({ ...REAL_TIME, agents: [agent] });
  const memory = async (scope: string, owner_id: string, content: unknown, more: object = {}) => {
    const body = { scope, owner_id, content, provenance: {}, ...more } as never;
    return (await gateway.send('resource.create', { object: 'memory', body })).resource.id;
  };
  const persona = async () => (await gateway.send('resource.create', { object: 'persona', body: PERSONA })).resource.id;
  const run = async (session: string, body: object = {}) => {
    const { id } = await gateway.submit(session, body);
    await gateway.until(id);
    return works.at(-1)!;
  };
  return { gateway, memory, persona, run, results };
}

async function read(gateway: TestGateway, task: string, kind = 'agent.memory_read') {
  return (await gateway.events(task)).filter(({ event }) => event === kind).map(({ payload }) => payload);
}

describe('memories that are given', () => {
  test('stand before the input of the agent and in no record; a fork goes on with them', async () => {
    const { gateway, memory, run } = await remembering();
    const workspace = await gateway.workspace();
    const id = await memory('workspace', workspace, { fact: 'blue' });
    const { resource } = await gateway.send('session.create', { workspace_id: workspace, memory_ids: [id] });
    for (const session of [
      resource.id,
      (await gateway.send('session.fork', { session_id: resource.id })).resource.id,
    ]) {
      const { task, memories } = await run(session);
      expect(memories?.map(({ id: each }) => each)).toEqual([id]);
      const [first, ...rest] = (task.input as { parts: unknown[] }).parts;
      expect(first).toMatchObject({
        type: 'json',
        value: { memories: [{ id, scope: 'workspace', content: { fact: 'blue' } }] },
      });
      expect(rest).toHaveLength(1);
      expect(JSON.stringify(await gateway.task(task.id))).not.toContain('blue');
      expect(await read(gateway, task.id)).toMatchObject([{ memory_id: id, scope: 'workspace', owner_id: workspace }]);
      const plain = await run(session, { input: { order: 1 } });
      expect(plain.task.input).toMatchObject({ order: 1, memories: [{ id }] });
    }
  });

  test('reach the work they are for, and no other', async () => {
    const { gateway, memory, persona, run } = await remembering();
    const workspace = await gateway.workspace();
    const [mine, other] = [await persona(), await persona()];
    const ids = [
      await memory('persona', mine, 'a'),
      await memory('tenant', 'us', 'b'),
      await memory('workspace', workspace, 'c'),
    ];
    const { resource } = await gateway.send('session.create', { workspace_id: workspace, memory_ids: ids });
    const input = async (body: object) => ((await run(resource.id, body)).memories ?? []).map(({ content }) => content);
    expect(await input({})).toEqual(['b', 'c']);
    expect(await input({ persona_id: other })).toEqual(['b', 'c']);
    expect(await input({ persona_id: mine })).toEqual(['a', 'b', 'c']);
    // What is withdrawn later is no longer given.
    await gateway.send('resource.delete', { object: 'memory', id: ids[2]! });
    expect(await input({})).toEqual(['b']);
  });

  test('are recalled by scope and owner, for those who may see them', async () => {
    const { gateway, memory } = await remembering();
    const [here, there] = [await gateway.workspace(), await gateway.workspace()];
    const session = (await gateway.send('session.create', { workspace_id: here })).resource.id;
    const next = (await gateway.send('session.create', { workspace_id: here })).resource.id;
    await memory('session', session, 'mine');
    await memory('session', next, 'of the next');
    await memory('workspace', here, 'of here');
    await memory('workspace', there, 'of there');
    await memory('workspace', here, 'sealed', { visibility: 'receipt_only' });
    await memory('workspace', here, 'inside', { visibility: 'internal' });
    await memory('workspace', here, 'old', { expires_at: '2001-01-01T00:00:00Z' });
    const recalled = async (id: string, actor = ana) => {
      const found: unknown[] = [];
      for await (const { content } of gateway.runtime.bridge.recall(actor, id)) found.push(content);
      return found;
    };
    expect(await recalled(session)).toEqual(['mine', 'of here', 'inside']);
    expect(await recalled(next)).toEqual(['of the next', 'of here', 'inside']);
    const fork = (await gateway.send('session.fork', { session_id: session })).resource.id;
    expect(await recalled(fork)).toEqual(['mine', 'of here', 'inside']);
    const outsider = { id: 'x', kind: 'service' as const, scopes: ['memories:read', 'sessions:read'] };
    await expect(recalled(session, outsider)).rejects.toMatchObject({ kind: 'not_found' });
    await expect(recalled(session, { ...ana, scopes: ['sessions:read', 'others:read'] })).rejects.toMatchObject({
      kind: 'permission_denied',
    });
  });
});

describe('memories that work writes', () => {
  test('are its own, on record, and there for later work', async () => {
    const { gateway, run, results } = await remembering();
    const { resource } = await gateway.send('session.create', { workspace_id: await gateway.workspace() });
    const { workspace_id } = resource as Session & Row;
    for (const [scope, owner] of [
      ['session', resource.id],
      ['workspace', workspace_id],
    ] as const) {
      const { task } = await run(resource.id, { input: { write: { scope, content: `for the ${scope}` } } });
      const [written] = await read(gateway, task.id, 'agent.memory_write');
      expect(written).toMatchObject({ scope, owner_id: owner, tool_call_id: 'w1' });
      const kept = await gateway.view<Memory & Row>('memory', String(written?.memory_id));
      expect(kept).toMatchObject({
        scope,
        owner_id: owner,
        workspace_id,
        content: `for the ${scope}`,
        provenance: { task_id: task.id },
      });
    }
    expect(results).toMatchObject([
      { kind: 'done', result: { status: 'ok' } },
      { kind: 'done', result: { status: 'ok' } },
    ]);
  });

  test.each([
    [{ scope: 'session', owner_id: 'session_other', content: 'x' }, /own session/],
    [{ scope: 'workspace', owner_id: 'workspace_other', content: 'x' }, /own workspace/],
    [{ scope: 'persona', content: 'x' }, /no persona/],
    [{ scope: 'everyone', content: 'x' }, /scope must be/],
    [{ scope: 'session', content: 'x', visibility: 'receipt-only' }, /visibility/],
  ])('%j fails and keeps nothing', async (write, why) => {
    const { gateway, run, results } = await remembering();
    const { task } = await run(await gateway.session(), { input: { write } });
    expect(results).toMatchObject([{ kind: 'done', result: { status: 'error', error: expect.stringMatching(why) } }]);
    expect(await read(gateway, task.id, 'agent.memory_write')).toEqual([]);
    expect((await gateway.runtime.bridge.list(ana, { object: 'memory' })).data).toEqual([]);
  });

  test('a rule that forbids remembering is obeyed before anything is kept', async () => {
    const results: unknown[] = [];
    const agent = scripted('one', async ({ sink }) => {
      results.push(
        await sink.act({ kind: 'memory.write', tool_call_id: 'w', tool: 'memory', arguments: { content: 'x' } }),
      );
    });
    const gateway = await openTestGateway({
      ...REAL_TIME,
      agents: [agent],
      rules: '[{ id: no, when: { kind: memory.write }, then: block, say: forget it }]',
    });
    const { id } = await gateway.submit(await gateway.session());
    await gateway.until(id);
    expect(results).toMatchObject([{ kind: 'refused', reason: 'forget it' }]);
    expect((await gateway.runtime.bridge.list(ana, { object: 'memory' })).data).toEqual([]);
  });

  test('an outside run that writes one says so; a person who names the run does not', async () => {
    const { gateway, memory } = await remembering();
    const session = await gateway.session();
    const outside = (await gateway.send('task.submit', { session_id: session, input: {}, agent: 'none' }))
      .resource as Task & Row;
    await memory('session', session, 'x', { provenance: { task_id: outside.id } });
    expect(await read(gateway, outside.id, 'agent.memory_write')).toHaveLength(1);
    const bo = { ...ana, id: 'bo' };
    const body = { scope: 'session', owner_id: session, content: 'y', provenance: { task_id: outside.id } };
    await gateway.send('resource.create', { object: 'memory', body }, { actor: bo });
    expect(await read(gateway, outside.id, 'agent.memory_write')).toHaveLength(1);
    await gateway.send('task.report', { task_id: outside.id, end: { state: 'COMPLETED' } });
    await memory('session', session, 'z', { provenance: { task_id: outside.id } });
    expect(await read(gateway, outside.id, 'agent.memory_write')).toHaveLength(1);
    expect(await refusalOf(memory('session', session, 'z', { provenance: { task_id: 'task_absent' } }))).toMatchObject({
      kind: 'not_found',
    });
  });
});
