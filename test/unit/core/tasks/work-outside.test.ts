/** Work done outside is reported, not run: what may be reported, by whom, and what a report cannot bring about. */
import { describe, expect, test } from 'vitest';
import { eventKind } from '../../../../src/model/events.ts';
import type { Row } from '../../../../src/ports/index.ts';
import { refusalOf } from '../../../support/gateway/faults.ts';
import { openTestGateway, REAL_TIME, says, type TestGateway } from '../../../support/gateway/test-gateway.ts';
import { PERSONA } from '../../../support/policy/personas.ts';
import { patient, scripted, text } from '../../../support/tasks/script.ts';
import { expectLegal } from '../../../support/tasks/states.ts';

describe('work done outside', () => {
  test('is reported, not run: facts and an end, and a receipt that claims no more', async () => {
    const gateway = await openTestGateway({ ...REAL_TIME, agents: [scripted('one', patient)] });
    const session = await gateway.session();
    const busy = await gateway.submit(session); // it does not take the session's one lane
    const task = await gateway.submit(session, { agent: 'none' });
    expect(task).toMatchObject({ status: 'WORKING', assigned_agent_id: null });
    await gateway.send('task.report', {
      task_id: task.id,
      facts: [
        {
          event: 'tool.requested',
          payload: {
            tool_call_id: 'x1',
            name: 'rm',
            kind: 'tool',
            input: { path: '/tmp/a' },
            effect: 'delete',
            evidence: 'held',
          },
        },
        { event: 'tool.completed', payload: { tool_call_id: 'x1', name: 'rm', status: 'ok', output: 'gone' } },
        {
          event: 'tool.requested',
          payload: { tool_call_id: 'x2', name: 'ls', kind: 'tool', input: {}, evidence: 'asked' },
        },
        {
          event: 'vendor.tollbridge.side_effect',
          payload: { type: 'fs_write', path: '/tmp/a', operation: 'delete', evidence: 'held' },
        },
        text('all gone'),
      ],
    });
    expect((await gateway.task(task.id)).status).toBe('WORKING');
    const { resource } = await gateway.send('task.report', {
      task_id: task.id,
      end: { state: 'COMPLETED', summary: 'cleaned up' },
    });
    expect(resource).toMatchObject({ status: 'COMPLETED' });
    const events = await gateway.events(task.id);
    expectLegal(events);
    const receipt = await gateway.receipt(task.id);
    expect(receipt.side_effects.tool_calls).toMatchObject([
      { call_id: 'x1', status: 'succeeded', metadata: { evidence: 'observed' } },
      { call_id: 'x2', status: 'failed', metadata: { evidence: 'observed', outcome: 'unknown' } },
    ]);
    expect(receipt.metadata).toMatchObject({
      evidence: { held: 0, asked: 0, observed: 2 },
      side_effect_evidence: { observed: 1 },
      not_reported: expect.arrayContaining(['work done outside: only what was reported is known']),
    });
    expect(receipt.replay_input.determinism).toBe('best_effort');
    expect((await gateway.messages(session)).map(({ role }) => role)).toEqual(['user', 'user', 'assistant']);
    await gateway.send('task.cancel', { task_id: busy.id });
  });

  test('nothing can be reported into being that only the bridge brings about', async () => {
    const gateway = await openTestGateway(REAL_TIME);
    const task = await gateway.submit(await gateway.session(), { agent: 'none' });
    for (const event of [
      'task.completed',
      'task.started',
      'receipt.issued',
      'replay.completed',
      'tool.approved',
      'tool.denied',
      'user.tool_confirmation',
      'user.cancel_requested',
      'session.closed',
      'branch.created',
      'vendor.tollbridge.decided',
      'vendor.tollbridge.ask_closed',
      'vendor.tollbridge.ask_used',
      'vendor.tollbridge.quota_used',
      'vendor.tollbridge.recovered',
      'vendor.tollbridge.resource_updated',
      'vendor.tollbridge.passthrough',
      'vendor.tollbridge.bound',
      'vendor.tollbridge.not_yet_thought_of',
    ]) {
      const report = gateway.send('task.report', {
        task_id: task.id,
        facts: [{ event: eventKind(event), payload: {} }],
      });
      expect(await refusalOf(report), event).toMatchObject({ kind: 'invalid_request', param: '/event' });
    }
  });

  test('a report cannot rewrite what is not its own', async () => {
    const gateway = await openTestGateway({
      ...REAL_TIME,
      agents: [scripted('one', async ({ sink }) => sink.emit(text('mine', { id: 'msg-1' })))],
    });
    const elsewhere = await gateway.session();
    const theirs = await gateway.submit(elsewhere);
    await gateway.until(theirs.id);
    const file = await gateway.send('artifact.register', {
      kind: 'file',
      mime_type: 'text/plain',
      visibility: 'public',
      session_id: elsewhere,
    });
    const persona = await gateway.send('resource.create', {
      object: 'persona',
      body: PERSONA,
    });
    const before = await rowsOf(gateway, ['persona', 'message', 'artifact', 'session']);

    const task = await gateway.submit(await gateway.session(), { agent: 'none' });
    const mine = { ...persona.resource, autonomy_tier: 'act_auto' };
    const tries = [
      { event: 'artifact.created', payload: { artifact: mine } },
      { event: 'user.message', payload: { message: mine } },
      { event: 'agent.message', payload: { message: { ...says('rewritten', 'assistant'), id: 'msg-1' } } },
      { event: 'artifact.updated', payload: { artifact: { id: file.resource.id, kind: 'file', mime_type: 'x/y' } } },
    ];
    for (const fact of tries) {
      await gateway.send('task.report', { task_id: task.id, facts: [fact] } as never).catch(() => {});
    }
    const after = await rowsOf(gateway, ['persona', 'message', 'artifact', 'session']);
    for (const row of before) expect(after).toContainEqual(row);
  });

  test('only work nobody does here can be reported on', async () => {
    const gateway = await openTestGateway({ ...REAL_TIME, agents: [scripted('one', patient)] });
    const { id } = await gateway.submit(await gateway.session());
    expect(await refusalOf(gateway.send('task.report', { task_id: id, end: { state: 'COMPLETED' } }))).toMatchObject({
      kind: 'conflict',
    });
    await gateway.send('task.cancel', { task_id: id });
    expect(await refusalOf(gateway.send('task.report', { task_id: id }))).toMatchObject({ kind: 'conflict' });
  });
});

async function rowsOf(gateway: TestGateway, objects: readonly string[]): Promise<Row[]> {
  const found = await Promise.all(objects.map((object) => gateway.runtime.store.list<Row>({ object, limit: 200 })));
  return found.flat();
}
