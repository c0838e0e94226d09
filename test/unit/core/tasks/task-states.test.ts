/** A task's states: which follow which, what each step writes, and what work in progress is called. */
import { describe, expect, test } from 'vitest';
import type { Task } from '../../../../src/model/resources.ts';
import type { Row } from '../../../../src/ports/index.ts';
import { eventually } from '../../../support/eventually.ts';
import { refusalOf } from '../../../support/gateway/faults.ts';
import { kinds, openTestGateway, REAL_TIME, says, states } from '../../../support/gateway/test-gateway.ts';
import { MIXED } from '../../../support/policy/rules.ts';
import { latch, patient, scripted, text, toolbox } from '../../../support/tasks/script.ts';
import { expectLegal, outcomesOf } from '../../../support/tasks/states.ts';

describe('transitions', () => {
  test('work that simply succeeds', async () => {
    const gateway = await openTestGateway({
      ...REAL_TIME,
      agents: [scripted('one', async ({ sink }) => sink.emit(text('done')))],
    });
    const task = await gateway.submit(await gateway.session());
    expect(task).toMatchObject({ status: 'WORKING', completed_at: null, receipt_id: null, created_by: 'ana' });
    const end = await gateway.until(task.id);
    const events = await gateway.events(task.id);
    expectLegal(events);
    expect(states(events)).toEqual(['SUBMITTED', 'WORKING', 'COMPLETED']);
    expect(end).toMatchObject({ status: 'COMPLETED', canceled_at: null, failure: null, assigned_agent_id: 'one' });
    expect(end.completed_at).toBe(end.updated_at);
    expect(await outcomesOf(gateway, task.id)).toMatchObject([
      { id: end.outcome_id, status: 'SUCCEEDED', receipt_id: end.receipt_id, task_id: task.id },
    ]);
  });

  test('approval and input, one after the other and both at once', async () => {
    const agent = scripted('one', async ({ sink }) => {
      await sink.act({ kind: 'tool', tool: 'ask', tool_call_id: 'c1' });
      await sink.ask({ kind: 'input', key: 'colour', question: 'Which colour?' });
      const both = [
        sink.ask({ kind: 'input', key: 'size', question: 'Which size?' }),
        sink.act({ kind: 'tool', tool: 'ask', tool_call_id: 'c2' }),
      ];
      await Promise.all(both);
    });
    const gateway = await openTestGateway({
      ...REAL_TIME,
      rules: MIXED,
      agents: [agent],
      tools: [toolbox('box', { ask: undefined })],
    });
    const { id } = await gateway.submit(await gateway.session());

    await eventually(async () => (await gateway.openAsks()).length === 1);
    expect((await gateway.task(id)).status).toBe('AUTH_REQUIRED');
    await gateway.answer((await gateway.openAsks())[0]!.id, { approved: true });
    await eventually(async () => (await gateway.openAsks()).length === 1);
    expect((await gateway.task(id)).status).toBe('INPUT_REQUIRED');
    await gateway.answer((await gateway.openAsks())[0]!.id, { value: 'red' });
    await eventually(async () => (await gateway.openAsks()).length === 2);
    for (const { id: ask, kind } of await gateway.openAsks()) {
      await gateway.answer(ask, kind === 'input' ? { value: 'big' } : { approved: true });
    }

    expect((await gateway.until(id)).status).toBe('COMPLETED');
    const events = await gateway.events(id);
    expectLegal(events);
    const path = states(events);
    expect(path.slice(0, 6)).toEqual(['SUBMITTED', 'WORKING', 'AUTH_REQUIRED', 'WORKING', 'INPUT_REQUIRED', 'WORKING']);
    // From one kind of waiting to the other only through WORKING, whichever question came first.
    expect(path.at(-1)).toBe('COMPLETED');
    for (const [at, state] of path.entries()) {
      if (state.endsWith('_REQUIRED')) expect(path[at + 1]).toBe('WORKING');
    }
  });

  test('a failure is neither completed nor canceled, and says why', async () => {
    const gateway = await openTestGateway({
      ...REAL_TIME,
      agents: [
        scripted('throws', async () => {
          throw new Error('the disk is full');
        }),
        scripted('says so', async () => ({
          state: 'FAILED',
          failure: { code: 'no_idea', message: 'I do not know how' },
        })),
        { ...scripted('will not start', async () => undefined), start: async () => Promise.reject(new Error('no')) },
      ],
    });
    const session = await gateway.session();
    const failures: unknown[] = [];
    for (const agent of ['throws', 'says so', 'will not start']) {
      const { id } = await gateway.submit(session, { agent });
      const end = await gateway.until(id);
      expect(end).toMatchObject({ status: 'FAILED', completed_at: null, canceled_at: null });
      failures.push(end.failure);
      expect((await gateway.receipt(id)).lifecycle).toMatchObject({ final_state: 'FAILED', failure: end.failure });
      expectLegal(await gateway.events(id));
    }
    expect(failures).toEqual([
      { code: 'agent_failed', message: 'the disk is full' },
      { code: 'no_idea', message: 'I do not know how' },
      { code: 'agent_failed', message: 'no' },
    ]);
  });

  test('a cancel ends work that listens, waits or has not begun', async () => {
    const gateway = await openTestGateway({ ...REAL_TIME, agents: [scripted('patient', patient)] });
    const session = await gateway.session();
    const running = await gateway.submit(session);
    const queued = await gateway.submit(session);
    expect(queued.status).toBe('SUBMITTED');
    for (const { id } of [queued, running]) {
      const { resource } = await gateway.send('task.cancel', { task_id: id, reason: 'enough' });
      expect(resource).toMatchObject({ status: 'CANCELED', completed_at: null, failure: null });
      expect((resource as Task & Row).canceled_at).toBe(resource.updated_at);
      const events = await gateway.events(id);
      expectLegal(events);
      expect(events.at(-1)).toMatchObject({ event: 'task.canceled', actor: 'ana', payload: { reason: 'enough' } });
      expect(kinds(events)).toContain('user.cancel_requested');
      expect((await gateway.receipt(id)).lifecycle.final_state).toBe('CANCELED');
      // Again is the same answer, and nothing more is written.
      await gateway.send('task.cancel', { task_id: id });
      expect(await gateway.events(id)).toHaveLength(events.length);
    }
    expect(states(await gateway.events(queued.id))).toEqual(['SUBMITTED', 'CANCELED']);
  });

  test('what has ended cannot be canceled', async () => {
    const gateway = await openTestGateway({ ...REAL_TIME, agents: [scripted('one', async () => undefined)] });
    const { id } = await gateway.submit(await gateway.session());
    await gateway.until(id);
    expect(await refusalOf(gateway.send('task.cancel', { task_id: id }))).toMatchObject({ kind: 'conflict' });
  });
});

describe('words for work in progress', () => {
  test('reach the agent in order, also those said before it was ready', async () => {
    const ready = latch();
    const spoken = latch();
    const received: string[] = [];
    const agent = {
      ...scripted('one', async () => undefined, { steer: true }),
      async start() {
        await ready.opened; // slow to start: what is said meanwhile must not be lost
        return {
          done: spoken.opened.then(() => ({ state: 'COMPLETED' as const })),
          steer(message: { [key: string]: unknown }) {
            const [part] = message.parts as { text: string }[];
            received.push(part!.text);
            if (received.length === 4) spoken.open();
          },
        };
      },
    };
    const gateway = await openTestGateway({ ...REAL_TIME, agents: [agent] });
    const session = await gateway.session();
    const { id } = await gateway.submit(session);
    const say = (words: string) =>
      gateway.send('task.message', { task_id: id, kind: 'interrupt', message: says(words) });
    await say('one');
    await say('two');
    ready.open();
    await say('three');
    await say('four');
    await gateway.until(id);
    expect(received).toEqual(['one', 'two', 'three', 'four']);
    expect((await gateway.messages(session)).map(({ parts }) => (parts[0] as { text: string }).text)).toEqual([
      'please',
      'one',
      'two',
      'three',
      'four',
    ]);
    expect(await refusalOf(say('five'))).toMatchObject({ kind: 'conflict' });
  });
});
