/** A session runs one task at a time, in the order of the log, whichever gateway accepted them. */
import { describe, expect, test } from 'vitest';
import { eventually } from '../../../support/eventually.ts';
import { bo } from '../../../support/gateway/actors.ts';
import { freshDir, openTestGateway, REAL_TIME, says, states } from '../../../support/gateway/test-gateway.ts';
import { latch, patient, scripted, stopped, text } from '../../../support/tasks/script.ts';

describe('one at a time in a session', () => {
  test('many sessions at once, each in the order of submission', async () => {
    const SESSIONS = 8;
    const everyone = latch();
    let busy = 0;
    const running = new Map<string, number>();
    const agent = scripted('one', async ({ work }) => {
      const { session_id } = work.task;
      running.set(session_id, (running.get(session_id) ?? 0) + 1);
      expect(running.get(session_id)).toBe(1);
      // Nobody goes on before every session has one at work: sessions do not wait for each other.
      busy += 1;
      if (busy === SESSIONS) everyone.open();
      await everyone.opened;
      running.set(session_id, 0);
    });
    const gateway = await openTestGateway({ ...REAL_TIME, agents: [agent] });
    const sessions = await Promise.all(Array.from({ length: SESSIONS }, () => gateway.session()));
    const submitted = await Promise.all(
      sessions.map(async (session) => {
        const ids: string[] = [];
        for (let n = 0; n < 5; n += 1) ids.push((await gateway.submit(session)).id);
        return ids;
      }),
    );
    await gateway.runtime.idle();
    for (const ids of submitted) {
      const starts = agent.starts.filter((id) => ids.includes(id));
      expect(starts).toEqual(ids);
      for (const id of ids) expect((await gateway.task(id)).status).toBe('COMPLETED');
    }
  });

  test('order holds while tasks end, whichever gateway accepted them', async () => {
    const dir = await freshDir();
    const quick = () => scripted('one', async () => new Promise((resolve) => setTimeout(resolve, Math.random() * 3)));
    const [one, two] = [
      await openTestGateway({ ...REAL_TIME, dir, agents: [quick()] }),
      await openTestGateway({ ...REAL_TIME, dir, agents: [quick()] }),
    ];
    const session = await one.session();
    for (let n = 0; n < 60; n += 1) {
      const submitted = (n % 3 === 0 ? two : one).submit(session);
      if (n % 4 === 0) await submitted;
      else await new Promise((resolve) => setTimeout(resolve, Math.random() * 6));
    }
    const order = { submitted: [] as string[], started: [] as string[] };
    await eventually(async () => {
      order.submitted = [];
      order.started = [];
      let over = 0;
      for await (const { event, task_id } of one.runtime.store.read({ stream: { of: 'session', id: session } })) {
        if (event === 'task.submitted') order.submitted.push(String(task_id));
        if (event === 'task.started') order.started.push(String(task_id));
        if (event === 'task.completed') over += 1;
      }
      return over === 60;
    });
    expect(order.started).toEqual(order.submitted);
  });

  test('a canceled task leaves the queue to those behind it', async () => {
    const gate = latch();
    const gateway = await openTestGateway({
      ...REAL_TIME,
      agents: [scripted('one', ({ signal }) => Promise.race([gate.opened, stopped(signal)]) as Promise<undefined>)],
    });
    const session = await gateway.session();
    const [first, second, third] = [
      await gateway.submit(session),
      await gateway.submit(session),
      await gateway.submit(session),
    ];
    await gateway.send('task.cancel', { task_id: second.id });
    gate.open();
    await gateway.until(first.id);
    expect((await gateway.until(third.id)).status).toBe('COMPLETED');
    expect(states(await gateway.events(second.id))).toEqual(['SUBMITTED', 'CANCELED']);
  });
});

describe('two gateways on one log', () => {
  test('a cancel given in the second stops work in the first', async () => {
    const dir = await freshDir();
    const stops: string[] = [];
    const agent = scripted('one', async ({ signal, work }) => {
      await stopped(signal);
      stops.push(work.task.id);
    });
    const one = await openTestGateway({ ...REAL_TIME, dir, agents: [agent] });
    const two = await openTestGateway({ ...REAL_TIME, dir, agents: [scripted('one', patient)] });
    const { id } = await one.submit(await one.session());
    const { resource } = await two.send('task.cancel', { task_id: id, reason: 'from afar' }, { actor: bo });
    expect(resource).toMatchObject({ status: 'CANCELED' });
    expect(stops).toEqual([id]);
    const last = (await one.events(id)).at(-1)!;
    expect(last).toMatchObject({ event: 'task.canceled', actor: 'bo', payload: { reason: 'from afar' } });
    expect(last.payload).not.toHaveProperty('still_running');
  });

  test('a second gateway ends what the first cannot stop, and says so', async () => {
    const dir = await freshDir();
    const release = latch();
    const one = await openTestGateway({
      ...REAL_TIME,
      dir,
      agents: [scripted('deaf', () => release.opened as Promise<undefined>)],
      settings: { graceMs: 60_000 },
    });
    const two = await openTestGateway({
      ...REAL_TIME,
      dir,
      agents: [scripted('deaf', patient)],
      settings: { graceMs: 20 },
    });
    const { id } = await one.submit(await one.session());
    await two.send('task.cancel', { task_id: id });
    expect((await two.events(id)).at(-1)).toMatchObject({ event: 'task.canceled', payload: { still_running: true } });
    const receipt = await two.receipt(id);
    release.open();
    await one.runtime.idle();
    expect(await one.receipt(id)).toEqual(receipt);
    expect(states(await one.events(id))).toEqual(['SUBMITTED', 'WORKING', 'CANCELED']);
  });

  test('interrupts and answers given in the second reach the first', async () => {
    const dir = await freshDir();
    const agent = scripted('one', async ({ sink, received }) => {
      const answer = await sink.ask({ kind: 'input', key: 'k', question: 'What now?' });
      await eventually(() => received.length > 0);
      await sink.emit(text(`${answer.kind} ${received.length}`));
    });
    const one = await openTestGateway({ ...REAL_TIME, dir, agents: [agent] });
    const two = await openTestGateway({ ...REAL_TIME, dir });
    const session = await one.session();
    const { id } = await one.submit(session);
    const ask = await two.ask(id);
    await two.answer(ask.id, { value: 42 }, bo);
    await two.send('task.message', { task_id: id, kind: 'interrupt', message: says('hurry') });
    expect((await two.until(id)).status).toBe('COMPLETED');
    expect((await two.messages(session)).at(-1)!.parts).toMatchObject([{ text: 'value 1' }]);
  });
});
