/** A task's states: which follow which, what each step writes, and what work in progress is called. */
import { describe, expect, test } from 'vitest';
import type { Task } from '../../../../src/model/resources.ts';
import type { Row } from '../../../../src/ports/index.ts';
import { faultOf, kinds, MIXED, openLife, path, said, until } from '../../../support/tasks/life.ts';
import { latch, patient, scripted, text, toolbox } from '../../../support/tasks/script.ts';
import { expectLegal, outcomesOf } from '../../../support/tasks/states.ts';

describe('transitions', () => {
  test('work that simply succeeds', async () => {
    const life = await openLife({ backends: [scripted('one', async ({ sink }) => sink.emit(text('done')))] });
    const task = await life.submit(await life.session());
    expect(task).toMatchObject({ status: 'WORKING', completed_at: null, receipt_id: null, created_by: 'ana' });
    const end = await life.ended(task.id);
    const events = await life.events(task.id);
    expectLegal(events);
    expect(path(events)).toEqual(['SUBMITTED', 'WORKING', 'COMPLETED']);
    expect(end).toMatchObject({ status: 'COMPLETED', canceled_at: null, failure: null, assigned_agent_id: 'one' });
    expect(end.completed_at).toBe(end.updated_at);
    expect(await outcomesOf(life, task.id)).toMatchObject([
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
    const life = await openLife({ rules: MIXED, backends: [agent], tools: [toolbox('box', { ask: undefined })] });
    const { id } = await life.submit(await life.session());

    await until(async () => (await life.openAsks()).length === 1);
    expect((await life.task(id)).status).toBe('AUTH_REQUIRED');
    await life.answer((await life.openAsks())[0]!.id, { approved: true });
    await until(async () => (await life.openAsks()).length === 1);
    expect((await life.task(id)).status).toBe('INPUT_REQUIRED');
    await life.answer((await life.openAsks())[0]!.id, { value: 'red' });
    await until(async () => (await life.openAsks()).length === 2);
    for (const { id: ask, kind } of await life.openAsks()) {
      await life.answer(ask, kind === 'input' ? { value: 'big' } : { approved: true });
    }

    expect((await life.ended(id)).status).toBe('COMPLETED');
    const events = await life.events(id);
    expectLegal(events);
    const states = path(events);
    expect(states.slice(0, 6)).toEqual([
      'SUBMITTED',
      'WORKING',
      'AUTH_REQUIRED',
      'WORKING',
      'INPUT_REQUIRED',
      'WORKING',
    ]);
    // From one kind of waiting to the other only through WORKING, whichever question came first.
    expect(states.at(-1)).toBe('COMPLETED');
    for (const [at, state] of states.entries()) {
      if (state.endsWith('_REQUIRED')) expect(states[at + 1]).toBe('WORKING');
    }
  });

  test('a failure is neither completed nor canceled, and says why', async () => {
    const life = await openLife({
      backends: [
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
    const session = await life.session();
    const failures: unknown[] = [];
    for (const agent of ['throws', 'says so', 'will not start']) {
      const { id } = await life.submit(session, { agent });
      const end = await life.ended(id);
      expect(end).toMatchObject({ status: 'FAILED', completed_at: null, canceled_at: null });
      failures.push(end.failure);
      expect((await life.receipt(id)).lifecycle).toMatchObject({ final_state: 'FAILED', failure: end.failure });
      expectLegal(await life.events(id));
    }
    expect(failures).toEqual([
      { code: 'agent_failed', message: 'the disk is full' },
      { code: 'no_idea', message: 'I do not know how' },
      { code: 'agent_failed', message: 'no' },
    ]);
  });

  test('a cancel ends work that listens, waits or has not begun', async () => {
    const life = await openLife({ backends: [scripted('patient', patient)] });
    const session = await life.session();
    const running = await life.submit(session);
    const queued = await life.submit(session);
    expect(queued.status).toBe('SUBMITTED');
    for (const { id } of [queued, running]) {
      const { resource } = await life.do('task.cancel', { task_id: id, reason: 'enough' });
      expect(resource).toMatchObject({ status: 'CANCELED', completed_at: null, failure: null });
      expect((resource as Task & Row).canceled_at).toBe(resource.updated_at);
      const events = await life.events(id);
      expectLegal(events);
      expect(events.at(-1)).toMatchObject({ event: 'task.canceled', actor: 'ana', payload: { reason: 'enough' } });
      expect(kinds(events)).toContain('user.cancel_requested');
      expect((await life.receipt(id)).lifecycle.final_state).toBe('CANCELED');
      // Again is the same answer, and nothing more is written.
      await life.do('task.cancel', { task_id: id });
      expect(await life.events(id)).toHaveLength(events.length);
    }
    expect(path(await life.events(queued.id))).toEqual(['SUBMITTED', 'CANCELED']);
  });

  test('what has ended cannot be canceled', async () => {
    const life = await openLife({ backends: [scripted('one', async () => undefined)] });
    const { id } = await life.submit(await life.session());
    await life.ended(id);
    expect(await faultOf(life.do('task.cancel', { task_id: id }))).toMatchObject({ kind: 'conflict' });
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
    const life = await openLife({ backends: [agent] });
    const session = await life.session();
    const { id } = await life.submit(session);
    const say = (words: string) => life.do('task.message', { task_id: id, kind: 'interrupt', message: said(words) });
    await say('one');
    await say('two');
    ready.open();
    await say('three');
    await say('four');
    await life.ended(id);
    expect(received).toEqual(['one', 'two', 'three', 'four']);
    expect((await life.messages(session)).map(({ parts }) => (parts[0] as { text: string }).text)).toEqual([
      'please',
      'one',
      'two',
      'three',
      'four',
    ]);
    expect(await faultOf(say('five'))).toMatchObject({ kind: 'conflict' });
  });
});
