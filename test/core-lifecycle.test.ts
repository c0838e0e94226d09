/** A task's life: which states follow which, what each step writes, and that an end is an end. */
import { describe, expect, test } from 'vitest';
import type { CoreEvent } from '../src/model/events.ts';
import type { Outcome, Task } from '../src/model/resources.ts';
import type { Row, Signer } from '../src/ports.ts';
import { ana, bo, faultOf, freshDir, kinds, type Life, MIXED, openLife, path, said, until } from './life/house.ts';
import { latch, patient, scripted, stopped, text, toolbox } from './life/script.ts';

const LEGAL: Readonly<Record<string, readonly string[]>> = {
  null: ['SUBMITTED'],
  SUBMITTED: ['WORKING', 'CANCELED', 'FAILED'],
  WORKING: ['INPUT_REQUIRED', 'AUTH_REQUIRED', 'COMPLETED', 'FAILED', 'CANCELED'],
  INPUT_REQUIRED: ['WORKING', 'FAILED', 'CANCELED'],
  AUTH_REQUIRED: ['WORKING', 'FAILED', 'CANCELED'],
};
const NAMES: Readonly<Record<string, string>> = {
  SUBMITTED: 'task.submitted',
  INPUT_REQUIRED: 'task.input_required',
  AUTH_REQUIRED: 'task.auth_required',
  COMPLETED: 'task.completed',
  FAILED: 'task.failed',
  CANCELED: 'task.canceled',
};
const TERMINAL = ['COMPLETED', 'FAILED', 'CANCELED'];

/** Every step of a task is legal, said once, under its own name, and starts where the last one ended. */
function expectLegal(events: readonly CoreEvent[]): void {
  let state = 'null';
  for (const { event, payload } of events.filter(({ event }) => event.startsWith('task.'))) {
    const to = String(payload.to);
    expect(String(payload.from)).toBe(state);
    expect(LEGAL[state], `${state} → ${to}`).toContain(to);
    const back = to === 'WORKING' && state !== 'SUBMITTED';
    expect(event).toBe(to === 'WORKING' ? (back ? 'task.status_changed' : 'task.started') : NAMES[to]);
    expect((payload.task as unknown as Task).status).toBe(to);
    state = to;
  }
}

async function outcomesOf(life: Life, taskId: string): Promise<readonly (Outcome & Row)[]> {
  return await life.house.store.list<Outcome & Row>({ object: 'outcome', where: { task_id: taskId } });
}

const placeOf = ({ id }: CoreEvent) => Number(id.slice(4));

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

describe('the end', () => {
  test('outcome, receipt and terminal event are one commit, and whoever sees the event can read the rest', async () => {
    const life = await openLife({ backends: [scripted('one', async ({ sink }) => sink.emit(text('hm')))] });
    const { store, bridge } = life.house;
    const sessions = await Promise.all(Array.from({ length: 10 }, () => life.session()));
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
    const tasks = await Promise.all(sessions.map((session) => life.submit(session)));
    await watching;
    stop.abort();
    for (const { id } of tasks) {
      const [issued, completed] = (await life.events(id)).slice(-2) as [CoreEvent, CoreEvent];
      expect([issued.event, completed.event]).toEqual(['receipt.issued', 'task.completed']);
      expect(placeOf(completed) - placeOf(issued)).toBe(1);
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
      const life = await openLife({ backends: [agent], settings: { graceMs: 2000 } });
      const sessions = await Promise.all(Array.from({ length: 6 }, () => life.session()));
      const ends = new Map<string, number>();
      await Promise.all(
        sessions.map(async (session, lane) => {
          for (let round = 0; round < 12; round += 1) {
            const gate = latch();
            gates.set(`${lane}/${round}`, gate);
            const { id } = await life.submit(session, { metadata: { gate: `${lane}/${round}` } });
            const cancel = () => life.do('task.cancel', { task_id: id }).catch((fault) => fault.kind as string);
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
            const end = await life.ended(id);
            ends.set(end.status, (ends.get(end.status) ?? 0) + 1);
            expect(end.status === 'COMPLETED').toBe(end.completed_at !== null);
            expect(end.status === 'CANCELED').toBe(end.canceled_at !== null);
            const events = await life.events(id);
            expectLegal(events);
            expect(path(events).filter((state) => TERMINAL.includes(state))).toEqual([end.status]);
            expect(await outcomesOf(life, id)).toHaveLength(1);
            expect(await life.house.store.receipts({ task: id })).toHaveLength(1);
          }
        }),
      );
      await life.house.idle();
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
    const life = await openLife({ backends: [agent], tools: [box], settings: { graceMs: 30 } });
    const { id } = await life.submit(await life.session());
    await life.seen(id, 'vendor.tollbridge.decided');
    await until(() => box.ran.length === 1);
    const { resource } = await life.do('task.cancel', { task_id: id });
    expect(resource).toMatchObject({ status: 'CANCELED' });

    const before = await life.events(id);
    expectLegal(before);
    expect(before.at(-1)).toMatchObject({ event: 'task.canceled', payload: { still_running: true } });
    const receipt = await life.receipt(id);
    expect(receipt.metadata).toMatchObject({ still_running: true });
    expect(receipt.side_effects.tool_calls).toMatchObject([
      { call_id: 'c1', status: 'canceled', metadata: { stopped_while: 'running', code: 'canceled' } },
    ]);

    release.open();
    await over.opened;
    await life.house.idle();
    expect(late).toEqual(['done', 'conflict', expect.stringMatching(/^(conflict|client_closed)$/)]);
    expect(box.ran).toHaveLength(1);
    const after = await life.events(id);
    expect(after.slice(before.length)).toMatchObject([
      { event: 'tool.completed', payload: { tool_call_id: 'c1', after_end: true } },
    ]);
    expect(await life.task(id)).toEqual(resource);
    expect(await life.receipt(id)).toEqual(receipt);
    expect(await outcomesOf(life, id)).toMatchObject([{ status: 'CANCELED', summary: 'canceled' }]);
  });

  test('work that stops in time is not said to be running', async () => {
    const life = await openLife({ backends: [scripted('patient', patient)] });
    const { id } = await life.submit(await life.session());
    await life.do('task.cancel', { task_id: id });
    expect((await life.events(id)).at(-1)!.payload).not.toHaveProperty('still_running');
    expect((await life.receipt(id)).metadata).not.toHaveProperty('still_running');
  });

  test('an agent that goes on without its answer ends through WORKING, and the question is withdrawn', async () => {
    const agent = scripted('hasty', async ({ sink }) => {
      void sink.ask({ kind: 'input', key: 'k', question: 'Shall I?' }).catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, 30));
      return { state: 'COMPLETED', summary: 'never mind' };
    });
    const life = await openLife({ backends: [agent] });
    const { id } = await life.submit(await life.session());
    const ask = await life.ask(id);
    await life.ended(id);
    const events = await life.events(id);
    expectLegal(events);
    expect(path(events)).toEqual(['SUBMITTED', 'WORKING', 'INPUT_REQUIRED', 'WORKING', 'COMPLETED']);
    expect(await life.view('ask', ask.id)).toMatchObject({ state: 'canceled', answered_by: 'bridge' });
    expect(await faultOf(life.answer(ask.id, { value: 'yes' }))).toMatchObject({ kind: 'conflict' });
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
    const life = await openLife({
      backends: [scripted('one', async () => undefined)],
      ...(signer === 'fails' && { replace: { signer: broken } }),
    });
    const { resource } = await life.do('resource.create', persona(policy));
    const { id } = await life.submit(await life.session(), { persona_id: resource.id });
    const end = await life.ended(id);
    expect(end.status).toBe(state);
    expect(await life.house.store.receipts({ task: id })).toHaveLength(receipts);
    expect(end.receipt_id === null).toBe(receipts === 0);
    const [outcome] = await outcomesOf(life, id);
    const events = await life.events(id);
    expect(kinds(events).includes('receipt.issued')).toBe(receipts === 1);
    if (policy === 'required' && signer === 'fails') {
      expect(end.failure).toMatchObject({ code: 'receipt_unavailable' });
      expect(outcome).toMatchObject({ status: 'FAILED', failure: { code: 'receipt_unavailable' } });
    }
    const told = events.filter(
      ({ event, payload }) => event.endsWith('.note') && payload.code === 'receipt_unavailable',
    );
    expect(told).toHaveLength(policy === 'optional' && signer === 'fails' ? 1 : 0);
    expect(outcome!.metadata.receipt === 'unavailable').toBe(policy !== 'disabled' && signer === 'fails');
  });
});

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
    const life = await openLife({ backends: [agent] });
    const sessions = await Promise.all(Array.from({ length: SESSIONS }, () => life.session()));
    const submitted = await Promise.all(
      sessions.map(async (session) => {
        const ids: string[] = [];
        for (let n = 0; n < 5; n += 1) ids.push((await life.submit(session)).id);
        return ids;
      }),
    );
    await life.house.idle();
    for (const ids of submitted) {
      const starts = agent.starts.filter((id) => ids.includes(id));
      expect(starts).toEqual(ids);
      for (const id of ids) expect((await life.task(id)).status).toBe('COMPLETED');
    }
  });

  test('order holds while tasks end, whoever accepted them', async () => {
    const dir = await freshDir();
    const quick = () => scripted('one', async () => new Promise((resolve) => setTimeout(resolve, Math.random() * 3)));
    const [one, two] = [await openLife({ dir, backends: [quick()] }), await openLife({ dir, backends: [quick()] })];
    const session = await one.session();
    for (let n = 0; n < 60; n += 1) {
      const submitted = (n % 3 === 0 ? two : one).submit(session);
      if (n % 4 === 0) await submitted;
      else await new Promise((resolve) => setTimeout(resolve, Math.random() * 6));
    }
    const order = { submitted: [] as string[], started: [] as string[] };
    await until(async () => {
      order.submitted = [];
      order.started = [];
      let over = 0;
      for await (const { event, task_id } of one.house.store.read({ stream: { of: 'session', id: session } })) {
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
    const life = await openLife({
      backends: [scripted('one', ({ signal }) => Promise.race([gate.opened, stopped(signal)]) as Promise<undefined>)],
    });
    const session = await life.session();
    const [first, second, third] = [await life.submit(session), await life.submit(session), await life.submit(session)];
    await life.do('task.cancel', { task_id: second.id });
    gate.open();
    await life.ended(first.id);
    expect((await life.ended(third.id)).status).toBe('COMPLETED');
    expect(path(await life.events(second.id))).toEqual(['SUBMITTED', 'CANCELED']);
  });
});

describe('work done outside', () => {
  test('is told, not run: facts and an end, and a receipt that claims no more', async () => {
    const life = await openLife({ backends: [scripted('one', patient)] });
    const session = await life.session();
    const busy = await life.submit(session); // it does not take the session's one lane
    const task = await life.submit(session, { agent: 'none' });
    expect(task).toMatchObject({ status: 'WORKING', assigned_agent_id: null });
    await life.do('task.report', {
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
    expect((await life.task(task.id)).status).toBe('WORKING');
    const { resource } = await life.do('task.report', {
      task_id: task.id,
      end: { state: 'COMPLETED', summary: 'cleaned up' },
    });
    expect(resource).toMatchObject({ status: 'COMPLETED' });
    const events = await life.events(task.id);
    expectLegal(events);
    const receipt = await life.receipt(task.id);
    expect(receipt.side_effects.tool_calls).toMatchObject([
      { call_id: 'x1', status: 'succeeded', metadata: { evidence: 'observed' } },
      { call_id: 'x2', status: 'canceled', metadata: { evidence: 'observed' } },
    ]);
    expect(receipt.metadata).toMatchObject({
      evidence: { held: 0, asked: 0, observed: 2 },
      side_effect_evidence: { observed: 1 },
      not_reported: expect.arrayContaining(['work done outside: only what was reported is known']),
    });
    expect(receipt.replay_input.determinism).toBe('best_effort');
    expect((await life.messages(session)).map(({ role }) => role)).toEqual(['user', 'user', 'assistant']);
    await life.do('task.cancel', { task_id: busy.id });
  });

  test('nothing can be reported into being that only the bridge brings about', async () => {
    const life = await openLife();
    const task = await life.submit(await life.session(), { agent: 'none' });
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
      const report = life.do('task.report', { task_id: task.id, facts: [{ event, payload: {} }] });
      expect(await faultOf(report), event).toMatchObject({ kind: 'invalid_request', param: '/event' });
    }
  });

  test('a report cannot rewrite what is not its own', async () => {
    const life = await openLife({
      backends: [scripted('one', async ({ sink }) => sink.emit(text('mine', { id: 'msg-1' })))],
    });
    const elsewhere = await life.session();
    const theirs = await life.submit(elsewhere);
    await life.ended(theirs.id);
    const file = await life.do('artifact.register', {
      kind: 'file',
      mime_type: 'text/plain',
      visibility: 'public',
      session_id: elsewhere,
    });
    const persona = await life.do('resource.create', {
      object: 'persona',
      body: {
        name: 'p',
        version: '1',
        entry_workflow: 'one',
        description: '',
        autonomy_tier: 'suggest',
        receipt_policy: 'required',
      },
    });
    const before = await rowsOf(life, ['persona', 'message', 'artifact', 'session']);

    const task = await life.submit(await life.session(), { agent: 'none' });
    const mine = { ...persona.resource, autonomy_tier: 'act_auto' };
    const tries = [
      { event: 'artifact.created', payload: { artifact: mine } },
      { event: 'user.message', payload: { message: mine } },
      { event: 'agent.message', payload: { message: { ...said('rewritten', 'assistant'), id: 'msg-1' } } },
      { event: 'artifact.updated', payload: { artifact: { id: file.resource.id, kind: 'file', mime_type: 'x/y' } } },
    ];
    for (const fact of tries) {
      await life.do('task.report', { task_id: task.id, facts: [fact] } as never).catch(() => {});
    }
    const after = await rowsOf(life, ['persona', 'message', 'artifact', 'session']);
    for (const row of before) expect(after).toContainEqual(row);
  });

  test('only work nobody does here can be reported on', async () => {
    const life = await openLife({ backends: [scripted('one', patient)] });
    const { id } = await life.submit(await life.session());
    expect(await faultOf(life.do('task.report', { task_id: id, end: { state: 'COMPLETED' } }))).toMatchObject({
      kind: 'conflict',
    });
    await life.do('task.cancel', { task_id: id });
    expect(await faultOf(life.do('task.report', { task_id: id }))).toMatchObject({ kind: 'conflict' });
  });
});

async function rowsOf(life: Life, objects: readonly string[]): Promise<Row[]> {
  const found = await Promise.all(objects.map((object) => life.house.store.list<Row>({ object, limit: 200 })));
  return found.flat();
}

describe('words for work in progress', () => {
  test('reach the agent in order, also those said before it was ready', async () => {
    const ready = latch();
    const spoken = latch();
    const heard: string[] = [];
    const agent = {
      ...scripted('one', async () => undefined, { steer: true }),
      async start() {
        await ready.opened; // slow to start: what is said meanwhile must not be lost
        return {
          done: spoken.opened.then(() => ({ state: 'COMPLETED' as const })),
          steer(message: { [key: string]: unknown }) {
            const [part] = message.parts as { text: string }[];
            heard.push(part!.text);
            if (heard.length === 4) spoken.open();
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
    expect(heard).toEqual(['one', 'two', 'three', 'four']);
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

describe('two houses on one log', () => {
  test('a cancel given in the second stops work in the first', async () => {
    const dir = await freshDir();
    const stops: string[] = [];
    const agent = scripted('one', async ({ signal, work }) => {
      await stopped(signal);
      stops.push(work.task.id);
    });
    const one = await openLife({ dir, backends: [agent] });
    const two = await openLife({ dir, backends: [scripted('one', patient)] });
    const { id } = await one.submit(await one.session());
    const { resource } = await two.do('task.cancel', { task_id: id, reason: 'from afar' }, { actor: bo });
    expect(resource).toMatchObject({ status: 'CANCELED' });
    expect(stops).toEqual([id]);
    const last = (await one.events(id)).at(-1)!;
    expect(last).toMatchObject({ event: 'task.canceled', actor: 'bo', payload: { reason: 'from afar' } });
    expect(last.payload).not.toHaveProperty('still_running');
  });

  test('a second house ends what the first cannot stop, and says so', async () => {
    const dir = await freshDir();
    const release = latch();
    const one = await openLife({
      dir,
      backends: [scripted('deaf', () => release.opened as Promise<undefined>)],
      settings: { graceMs: 60_000 },
    });
    const two = await openLife({ dir, backends: [scripted('deaf', patient)], settings: { graceMs: 20 } });
    const { id } = await one.submit(await one.session());
    await two.do('task.cancel', { task_id: id });
    expect((await two.events(id)).at(-1)).toMatchObject({ event: 'task.canceled', payload: { still_running: true } });
    const receipt = await two.receipt(id);
    release.open();
    await one.house.idle();
    expect(await one.receipt(id)).toEqual(receipt);
    expect(path(await one.events(id))).toEqual(['SUBMITTED', 'WORKING', 'CANCELED']);
  });

  test('interrupts and answers given in the second reach the first', async () => {
    const dir = await freshDir();
    const agent = scripted('one', async ({ sink, heard }) => {
      const answer = await sink.ask({ kind: 'input', key: 'k', question: 'What now?' });
      await until(() => heard.length > 0);
      await sink.emit(text(`${answer.kind} ${heard.length}`));
    });
    const one = await openLife({ dir, backends: [agent] });
    const two = await openLife({ dir });
    const session = await one.session();
    const { id } = await one.submit(session);
    const ask = await two.ask(id);
    await two.answer(ask.id, { value: 42 }, bo);
    await two.do('task.message', { task_id: id, kind: 'interrupt', message: said('hurry') });
    expect((await two.ended(id)).status).toBe('COMPLETED');
    expect((await two.messages(session)).at(-1)!.parts).toMatchObject([{ text: 'value 1' }]);
  });
});
