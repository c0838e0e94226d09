/** An end is one commit and stays: outcome, receipt and last event together, however many want to end it. */
import { describe, expect, test } from 'vitest';
import type { CoreEvent } from '../../../../src/model/events.ts';
import type { Outcome, Task } from '../../../../src/model/resources.ts';
import type { Row, Signer } from '../../../../src/ports/index.ts';
import { eventually } from '../../../support/eventually.ts';
import { ana } from '../../../support/gateway/actors.ts';
import { refusalOf } from '../../../support/gateway/faults.ts';
import { kinds, openTestGateway, REAL_TIME, states } from '../../../support/gateway/test-gateway.ts';
import { latch, patient, scripted, text, toolbox } from '../../../support/tasks/script.ts';
import { expectLegal, outcomesOf } from '../../../support/tasks/states.ts';

const TERMINAL = ['COMPLETED', 'FAILED', 'CANCELED'];
const locationOf = ({ id }: CoreEvent) => Number(id.slice(4));

describe('the end', () => {
  test('outcome, receipt and terminal event are one commit, and a reader that sees the event can read the rest', async () => {
    const gateway = await openTestGateway({
      ...REAL_TIME,
      agents: [scripted('one', async ({ sink }) => sink.emit(text('hm')))],
    });
    const { store, bridge } = gateway.runtime;
    const sessions = await Promise.all(Array.from({ length: 10 }, () => gateway.session()));
    const stop = new AbortController();
    let met = 0;
    const watching = (async () => {
      for await (const event of bridge.follow(ana, { stream: { of: 'all' } }, stop.signal)) {
        if (event.event !== 'task.completed') continue;
        const { task, outcome } = event.payload as unknown as { task: Task; outcome: Outcome };
        const receipt = await bridge.view<Row & { wire: { payload: object } }>(ana, 'receipt', task.receipt_id!);
        expect(receipt.wire.payload).toMatchObject({ identifiers: { task_id: task.id } });
        expect(await bridge.view(ana, 'outcome', outcome.id)).toMatchObject({ receipt_id: task.receipt_id });
        expect(await bridge.view(ana, 'task', task.id)).toMatchObject({ status: 'COMPLETED' });
        met += 1;
        if (met === 10) return;
      }
    })();
    const tasks = await Promise.all(sessions.map((session) => gateway.submit(session)));
    await watching;
    stop.abort();
    for (const { id } of tasks) {
      const [issued, completed] = (await gateway.events(id)).slice(-2) as [CoreEvent, CoreEvent];
      expect([issued.event, completed.event]).toEqual(['receipt.issued', 'task.completed']);
      expect(locationOf(completed) - locationOf(issued)).toBe(1);
      expect(issued.receipt_id).toBe((completed.payload.task as unknown as Task).receipt_id);
      expect((await store.receipts({ task: id })).length).toBe(1);
    }
  });

  test.each(['finish first', 'cancel first', 'at once'])(
    'cancel and finish race, %s: one end, and it stays',
    async (order) => {
      const gates = new Map<string, ReturnType<typeof latch>>();
      const agent = scripted('racer', async ({ work }) => {
        await gates.get(String(work.task.metadata.gate))!.opened;
      });
      const gateway = await openTestGateway({ ...REAL_TIME, agents: [agent], settings: { graceMs: 2000 } });
      const sessions = await Promise.all(Array.from({ length: 6 }, () => gateway.session()));
      const ends = new Map<string, number>();
      await Promise.all(
        sessions.map(async (session, lane) => {
          for (let round = 0; round < 12; round += 1) {
            const gate = latch();
            gates.set(`${lane}/${round}`, gate);
            const { id } = await gateway.submit(session, { metadata: { gate: `${lane}/${round}` } });
            const cancel = () => gateway.send('task.cancel', { task_id: id }).catch((fault) => fault.kind as string);
            let canceled: Promise<unknown>;
            if (order === 'finish first') {
              gate.open();
              for (let turn = 0; turn < round; turn += 1) await new Promise((resolve) => setImmediate(resolve));
              canceled = cancel();
            } else if (order === 'cancel first') {
              canceled = cancel();
              for (let turn = 0; turn < round; turn += 1) await new Promise((resolve) => setImmediate(resolve));
              gate.open();
            } else {
              canceled = Promise.all([cancel(), Promise.resolve().then(gate.open)]);
            }
            await canceled;
            const end = await gateway.until(id);
            ends.set(end.status, (ends.get(end.status) ?? 0) + 1);
            expect(end.status === 'COMPLETED').toBe(end.completed_at !== null);
            expect(end.status === 'CANCELED').toBe(end.canceled_at !== null);
            const events = await gateway.events(id);
            expectLegal(events);
            expect(states(events).filter((state) => TERMINAL.includes(state))).toEqual([end.status]);
            expect(await outcomesOf(gateway, id)).toHaveLength(1);
            expect(await gateway.runtime.store.receipts({ task: id })).toHaveLength(1);
          }
        }),
      );
      await gateway.runtime.idle();
      expect([...ends.values()].reduce((sum, count) => sum + count, 0)).toBe(72);
    },
  );

  test('work that ignores its signal is left behind; what it does later changes nothing', async () => {
    const release = latch();
    const late: string[] = [];
    const over = latch();
    const box = toolbox('box', {
      slow: async () => {
        await release.opened;
        return { status: 'ok', output: 'too late' };
      },
    });
    const agent = scripted('deaf', async ({ sink }) => {
      const calls = await Promise.allSettled([sink.act({ kind: 'tool', tool: 'slow', tool_call_id: 'c1' })]);
      late.push(String((calls[0] as PromiseFulfilledResult<{ kind: string }>).value.kind));
      await sink.emit(text('still here')).catch((fault) => late.push(fault.kind));
      await sink.act({ kind: 'tool', tool: 'slow', tool_call_id: 'c2' }).catch((fault) => late.push(fault.kind));
      over.open();
      return { state: 'COMPLETED', summary: 'I finished' };
    });
    const gateway = await openTestGateway({ ...REAL_TIME, agents: [agent], tools: [box], settings: { graceMs: 30 } });
    const { id } = await gateway.submit(await gateway.session());
    await gateway.seen(id, 'vendor.tollbridge.decided');
    await eventually(() => box.ran.length === 1);
    const { resource } = await gateway.send('task.cancel', { task_id: id });
    expect(resource).toMatchObject({ status: 'CANCELED' });

    const before = await gateway.events(id);
    expectLegal(before);
    expect(before.at(-1)).toMatchObject({ event: 'task.canceled', payload: { still_running: true } });
    const receipt = await gateway.receipt(id);
    expect(receipt.metadata).toMatchObject({ still_running: true });
    expect(receipt.side_effects.tool_calls).toMatchObject([
      {
        call_id: 'c1',
        status: 'failed',
        metadata: { outcome: 'unknown', stopped_while: 'running', code: 'outcome_unknown' },
      },
    ]);

    release.open();
    await over.opened;
    await gateway.runtime.idle();
    expect(late).toEqual(['done', 'conflict', expect.stringMatching(/^(conflict|client_closed)$/)]);
    expect(box.ran).toHaveLength(1);
    const after = await gateway.events(id);
    expect(after.slice(before.length)).toMatchObject([
      { event: 'tool.completed', payload: { tool_call_id: 'c1', after_end: true } },
    ]);
    expect(await gateway.task(id)).toEqual(resource);
    expect(await gateway.receipt(id)).toEqual(receipt);
    expect(await outcomesOf(gateway, id)).toMatchObject([{ status: 'CANCELED', summary: 'canceled' }]);
  });

  test('an agent that does not stop talking has its end all the same', async () => {
    const refused: string[] = [];
    const agent = scripted('chatty', async ({ sink }) => {
      for (let n = 0; refused.length === 0; n += 1) {
        await sink.emit(text(`line ${n}`)).catch((fault) => refused.push(fault.kind));
      }
    });
    const gateway = await openTestGateway({ ...REAL_TIME, agents: [agent], settings: { graceMs: 30 } });
    const { id } = await gateway.submit(await gateway.session());
    await gateway.seen(id, 'agent.message');
    const { resource } = await gateway.send('task.cancel', { task_id: id });
    expect(resource).toMatchObject({ status: 'CANCELED' });
    await gateway.runtime.idle();
    expect((await gateway.events(id)).at(-1)).toMatchObject({
      event: 'task.canceled',
      payload: { still_running: true },
    });
    await eventually(() => refused.length > 0);
    expect(refused).toEqual(['conflict']);
  });

  test('work that stops in time is not said to be running', async () => {
    const gateway = await openTestGateway({ ...REAL_TIME, agents: [scripted('patient', patient)] });
    const { id } = await gateway.submit(await gateway.session());
    await gateway.send('task.cancel', { task_id: id });
    expect((await gateway.events(id)).at(-1)!.payload).not.toHaveProperty('still_running');
    expect((await gateway.receipt(id)).metadata).not.toHaveProperty('still_running');
  });

  test('an agent that goes on without its answer ends through WORKING, and the question is withdrawn', async () => {
    const asked = latch();
    const agent = scripted('hasty', async ({ sink }) => {
      void sink.ask({ kind: 'input', key: 'k', question: 'Shall I?' }).catch(() => {});
      await asked.opened;
      return { state: 'COMPLETED', summary: 'never mind' };
    });
    const gateway = await openTestGateway({ ...REAL_TIME, agents: [agent] });
    const { id } = await gateway.submit(await gateway.session());
    const ask = await gateway.ask(id);
    asked.open();
    await gateway.until(id);
    const events = await gateway.events(id);
    expectLegal(events);
    expect(states(events)).toEqual(['SUBMITTED', 'WORKING', 'INPUT_REQUIRED', 'WORKING', 'COMPLETED']);
    expect(await gateway.view('ask', ask.id)).toMatchObject({ state: 'canceled', answered_by: 'bridge' });
    expect(await refusalOf(gateway.answer(ask.id, { value: 'yes' }))).toMatchObject({ kind: 'conflict' });
  });
});

describe('receipt policy', () => {
  const broken: Signer = {
    keyId: 'ed25519:00000000000000000000000000000000',
    sign() {
      throw new Error('the key is locked away');
    },
    mac: (words) => `hmac-sha256:${Buffer.from(words).toString('hex').slice(0, 64)}`,
  };
  const persona = (receipt_policy: string) => ({
    object: 'persona' as const,
    body: {
      name: receipt_policy,
      version: '1',
      entry_workflow: 'one',
      description: '',
      autonomy_tier: 'act_auto',
      receipt_policy,
    },
  });

  test.each([
    { policy: 'required', signer: 'works', state: 'COMPLETED', receipts: 1 },
    { policy: 'optional', signer: 'works', state: 'COMPLETED', receipts: 1 },
    { policy: 'disabled', signer: 'works', state: 'COMPLETED', receipts: 0 },
    { policy: 'required', signer: 'fails', state: 'FAILED', receipts: 0 },
    { policy: 'optional', signer: 'fails', state: 'COMPLETED', receipts: 0 },
    { policy: 'disabled', signer: 'fails', state: 'COMPLETED', receipts: 0 },
  ])('$policy, and the signer $signer: $state', async ({ policy, signer, state, receipts }) => {
    const gateway = await openTestGateway({
      ...REAL_TIME,
      agents: [scripted('one', async () => undefined)],
      ...(signer === 'fails' && { signer: broken }),
    });
    const { resource } = await gateway.send('resource.create', persona(policy));
    const { id } = await gateway.submit(await gateway.session(), { persona_id: resource.id });
    const end = await gateway.until(id);
    expect(end.status).toBe(state);
    expect(await gateway.runtime.store.receipts({ task: id })).toHaveLength(receipts);
    expect(end.receipt_id === null).toBe(receipts === 0);
    const [outcome] = await outcomesOf(gateway, id);
    const events = await gateway.events(id);
    expect(kinds(events).includes('receipt.issued')).toBe(receipts === 1);
    if (policy === 'required' && signer === 'fails') {
      expect(end.failure).toMatchObject({ code: 'receipt_unavailable' });
      expect(outcome).toMatchObject({ status: 'FAILED', failure: { code: 'receipt_unavailable' } });
    }
    const reported = events.filter(
      ({ event, payload }) => event.endsWith('.note') && payload.code === 'receipt_unavailable',
    );
    expect(reported).toHaveLength(policy === 'optional' && signer === 'fails' ? 1 : 0);
    expect(outcome!.metadata.receipt === 'unavailable').toBe(policy !== 'disabled' && signer === 'fails');
  });
});
