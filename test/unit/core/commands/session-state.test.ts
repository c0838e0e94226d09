/** Whether a conversation is open: what its state says, and what closing it ends. */
import { describe, expect, test } from 'vitest';
import type { Session } from '../../../../src/model/resources.ts';
import type { Row } from '../../../../src/ports/index.ts';
import { ana } from '../../../support/gateway/actors.ts';
import { refusalOf } from '../../../support/gateway/faults.ts';
import { openTestGateway, REAL_TIME, says } from '../../../support/gateway/test-gateway.ts';
import { append, sessionEvents, wordsOf } from '../../../support/tasks/conversation.ts';
import { latch, patient, scripted, stopped } from '../../../support/tasks/script.ts';

describe('state', () => {
  test('idle, active while a task is open, idle again, closed for good', async () => {
    const gateway = await openTestGateway({ ...REAL_TIME, agents: [scripted('one', patient)] });
    const session = await gateway.session();
    const state = async () => (await gateway.view('session', session)).state;
    expect(await state()).toBe('IDLE');
    const running = await gateway.submit(session);
    const outside = await gateway.submit(session, { agent: 'none' });
    expect(await state()).toBe('ACTIVE');
    const listed = await gateway.runtime.bridge.list<Session & Row>(ana, { object: 'session' });
    expect(listed.data.map((row) => row.state)).toEqual(['ACTIVE']);
    const touched = await gateway.send('session.update', { session_id: session, summary: 'busy' });
    expect(touched.resource).toMatchObject({ state: 'ACTIVE', summary: 'busy' });
    await gateway.send('task.cancel', { task_id: running.id });
    expect(await state()).toBe('ACTIVE');
    await gateway.send('task.report', { task_id: outside.id, end: { state: 'FAILED' } });
    expect(await state()).toBe('IDLE');
    const { resource } = await gateway.send('session.close', { session_id: session });
    expect(resource).toMatchObject({ state: 'CLOSED' });
    expect(await state()).toBe('CLOSED');
  });

  test('the last event of the session is where a reader goes on from', async () => {
    const gateway = await openTestGateway(REAL_TIME);
    const session = await gateway.session();
    await append(gateway, session, 'a');
    const { last_event_id } = await gateway.view('session', session);
    expect((await sessionEvents(gateway, session)).at(-1)!.id).toBe(last_event_id);
  });
});

describe('close', () => {
  test('ends the work, and every later write is a conflict', async () => {
    const gateway = await openTestGateway({ ...REAL_TIME, agents: [scripted('one', patient)] });
    const session = await gateway.session();
    const [message] = await append(gateway, session, 'a');
    const [running, queued, outside] = [
      await gateway.submit(session),
      await gateway.submit(session),
      await gateway.submit(session, { agent: 'none' }),
    ];
    await gateway.send('session.close', { session_id: session });
    for (const { id } of [running, queued, outside]) {
      expect(await gateway.task(id)).toMatchObject({ status: 'CANCELED' });
    }
    const events = await sessionEvents(gateway, session);
    expect(events.at(-1)!.event).toBe('session.closed');
    const writes = [
      () => append(gateway, session, 'b'),
      () => gateway.submit(session),
      () => gateway.send('session.update', { session_id: session, summary: 's' }),
      () => gateway.send('session.truncate', { session_id: session, keep_first: 0 }),
      () => gateway.send('session.compact', { session_id: session, summary: 's', through_message_id: message! }),
      () => gateway.send('branch.create', { session_id: session, kind: 'session', base_ref: 'main' }),
      () => gateway.send('task.message', { task_id: running.id, kind: 'interrupt', message: says('hey') }),
      () => gateway.send('task.report', { task_id: outside.id, end: { state: 'COMPLETED' } }),
    ];
    for (const write of writes) expect(await refusalOf(write())).toMatchObject({ kind: 'conflict' });
    // Closing twice is closing once.
    await gateway.send('session.close', { session_id: session });
    expect(await sessionEvents(gateway, session)).toHaveLength(events.length);
    expect(wordsOf(await gateway.messages(session))).toEqual(['a', 'please', 'please', 'please']);
  });

  test('no task outlives the session it was slipped into', async () => {
    const asked = latch();
    const release = latch();
    const slow = scripted('slow', async ({ signal }) => {
      await stopped(signal);
      asked.open();
      await release.opened;
    });
    const gateway = await openTestGateway({ ...REAL_TIME, agents: [slow] });
    const session = await gateway.session();
    const first = await gateway.submit(session);
    const closing = gateway.send('session.close', { session_id: session }, { idempotency: { key: 'close' } });
    await asked.opened;
    const late = await gateway.submit(session);
    release.open();
    expect((await closing).resource).toMatchObject({ state: 'CLOSED' });
    for (const { id } of [first, late]) expect((await gateway.task(id)).status).toBe('CANCELED');
  });
});
