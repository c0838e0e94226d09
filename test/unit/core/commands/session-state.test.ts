/** Whether a conversation is open: what its state says, and what closing it ends. */
import { describe, expect, test } from 'vitest';
import type { Session } from '../../../../src/model/resources.ts';
import type { Row } from '../../../../src/ports/index.ts';
import { append, sessionEvents, wordsOf } from '../../../support/tasks/conversation.ts';
import { ana, faultOf, openLife, said } from '../../../support/tasks/life.ts';
import { latch, patient, scripted, stopped } from '../../../support/tasks/script.ts';

describe('state', () => {
  test('idle, active while a task is open, idle again, closed for good', async () => {
    const life = await openLife({ backends: [scripted('one', patient)] });
    const session = await life.session();
    const state = async () => (await life.view('session', session)).state;
    expect(await state()).toBe('IDLE');
    const running = await life.submit(session);
    const outside = await life.submit(session, { agent: 'none' });
    expect(await state()).toBe('ACTIVE');
    const listed = await life.runtime.bridge.list<Session & Row>(ana, { object: 'session' });
    expect(listed.data.map((row) => row.state)).toEqual(['ACTIVE']);
    const touched = await life.do('session.update', { session_id: session, summary: 'busy' });
    expect(touched.resource).toMatchObject({ state: 'ACTIVE', summary: 'busy' });
    await life.do('task.cancel', { task_id: running.id });
    expect(await state()).toBe('ACTIVE');
    await life.do('task.report', { task_id: outside.id, end: { state: 'FAILED' } });
    expect(await state()).toBe('IDLE');
    const { resource } = await life.do('session.close', { session_id: session });
    expect(resource).toMatchObject({ state: 'CLOSED' });
    expect(await state()).toBe('CLOSED');
  });

  test('the last event of the session is where a reader goes on from', async () => {
    const life = await openLife();
    const session = await life.session();
    await append(life, session, 'a');
    const { last_event_id } = await life.view('session', session);
    expect((await sessionEvents(life, session)).at(-1)!.id).toBe(last_event_id);
  });
});

describe('close', () => {
  test('ends the work, and every later write is a conflict', async () => {
    const life = await openLife({ backends: [scripted('one', patient)] });
    const session = await life.session();
    const [message] = await append(life, session, 'a');
    const [running, queued, outside] = [
      await life.submit(session),
      await life.submit(session),
      await life.submit(session, { agent: 'none' }),
    ];
    await life.do('session.close', { session_id: session });
    for (const { id } of [running, queued, outside]) {
      expect(await life.task(id)).toMatchObject({ status: 'CANCELED' });
    }
    const events = await sessionEvents(life, session);
    expect(events.at(-1)!.event).toBe('session.closed');
    const writes = [
      () => append(life, session, 'b'),
      () => life.submit(session),
      () => life.do('session.update', { session_id: session, summary: 's' }),
      () => life.do('session.truncate', { session_id: session, keep_first: 0 }),
      () => life.do('session.compact', { session_id: session, summary: 's', through_message_id: message! }),
      () => life.do('branch.create', { session_id: session, kind: 'session', base_ref: 'main' }),
      () => life.do('task.message', { task_id: running.id, kind: 'interrupt', message: said('hey') }),
      () => life.do('task.report', { task_id: outside.id, end: { state: 'COMPLETED' } }),
    ];
    for (const write of writes) expect(await faultOf(write())).toMatchObject({ kind: 'conflict' });
    // Closing twice is closing once.
    await life.do('session.close', { session_id: session });
    expect(await sessionEvents(life, session)).toHaveLength(events.length);
    expect(wordsOf(await life.messages(session))).toEqual(['a', 'please', 'please', 'please']);
  });

  test('no task outlives the session it was slipped into', async () => {
    const asked = latch();
    const release = latch();
    const slow = scripted('slow', async ({ signal }) => {
      await stopped(signal);
      asked.open();
      await release.opened;
    });
    const life = await openLife({ backends: [slow] });
    const session = await life.session();
    const first = await life.submit(session);
    const closing = life.do('session.close', { session_id: session }, { idempotency: { key: 'close' } });
    await asked.opened;
    const late = await life.submit(session);
    release.open();
    expect((await closing).resource).toMatchObject({ state: 'CLOSED' });
    for (const { id } of [first, late]) expect((await life.task(id)).status).toBe('CANCELED');
  });
});
