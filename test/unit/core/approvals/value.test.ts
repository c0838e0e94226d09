/** Questions that want a value instead of a yes, and several questions at once. */
import { describe, expect, test } from 'vitest';
import type { Answer, AskRecord } from '../../../../src/model/asks.ts';
import type { JsonObject } from '../../../../src/model/schema.ts';
import { TASK_TRANSITIONS } from '../../../../src/model/words.ts';
import type { Row } from '../../../../src/ports/index.ts';
import { ana, bo } from '../../../support/gateway/actors.ts';
import { latch } from '../../../support/gateway/agents.ts';
import { asking } from '../../../support/gateway/asking-work.ts';
import { of, says, states } from '../../../support/gateway/test-gateway.ts';
import { SEND } from '../../../support/gateway/tools.ts';

describe('asking for a value', () => {
  const schema = { type: 'object', required: ['port'], properties: { port: { type: 'integer', minimum: 1 } } };

  async function asksForPort() {
    const answers: Answer[] = [];
    const asked = await asking({
      script: async (sink) => {
        answers.push(await sink.ask({ kind: 'input', key: 'port', question: 'which port?', schema }));
      },
    });
    const [ask] = await asked.t.asks(asked.task.id);
    return { ...asked, answers, ask: ask! };
  }

  test('the task waits for it, gets it, and goes on', async () => {
    const { t, task, answers, ask } = await asksForPort();
    expect(ask).toMatchObject({ kind: 'input', question: 'which port?', schema });
    expect(await t.bridge.view(ana, 'task', task.id)).toMatchObject({ status: 'INPUT_REQUIRED' });
    await t.answer(ask.id, { value: { port: 8080 } }, bo);
    await t.until(task.id);
    expect(answers).toEqual([{ kind: 'value', by: 'bo', ask_id: ask.id, value: { port: 8080 } }]);
    const log = await t.events(task.id);
    expect(states(log)).toEqual(['SUBMITTED', 'WORKING', 'INPUT_REQUIRED', 'WORKING', 'COMPLETED']);
    expect(of(log, 'user.input_submitted')[0]).toMatchObject({ actor: 'bo', payload: { value: { port: 8080 } } });
  });

  test.each<[string, JsonObject, string]>([
    ['a value of the wrong form', { value: { port: 0 } }, 'the answer: /port must be >= 1'],
    ['a value that lacks a member', { value: {} }, "the answer: must have required property 'port'"],
    ['no value', { approved: true }, 'the answer needs a value'],
  ])('%s is refused and the question stays open', async (_what, body, message) => {
    const { t, task, ask } = await asksForPort();
    const before = (await t.events(task.id)).length;
    expect(await t.refused('ask.answer', { ask_id: ask.id, ...body })).toMatchObject({
      kind: 'invalid_request',
      message,
    });
    expect((await t.asks(task.id))[0]?.state).toBe('open');
    expect(await t.events(task.id)).toHaveLength(before);
  });

  test('a rule may keep an agent from asking people, and its no is on record', async () => {
    const answers: Answer[] = [];
    const { t, task } = await asking({
      rules: '- { id: no-questions, when: { kind: elicit, tool: pass* }, then: block, say: nobody is asked for that }',
      script: async (sink) => {
        answers.push(await sink.ask({ kind: 'input', key: 'password', question: 'your password?' }));
      },
    });
    expect(await t.until(task.id)).toMatchObject({ status: 'COMPLETED' });
    expect(answers).toEqual([
      { kind: 'denied', by: 'cedar', rule_id: 'no-questions', reason: 'nobody is asked for that' },
    ]);
    const log = await t.events(task.id);
    expect(of(log, 'vendor.tollbridge.ask_opened')).toEqual([]);
    expect(of(log, 'vendor.tollbridge.decided').at(-1)?.payload).toMatchObject({
      action: { kind: 'elicit', tool: 'password' },
      decision: { verdict: 'block', rule_id: 'no-questions' },
    });
  });

  describe('an answer that looks like a secret', () => {
    const TYPED = 'sk-abcdefghij0123456789ABCDEF';

    async function asksForKey() {
      const answers: Answer[] = [];
      const { t, task } = await asking({
        script: async (sink) => {
          answers.push(await sink.ask({ kind: 'input', key: 'key', question: 'which key?' }));
        },
      });
      const [ask] = await t.asks(task.id);
      return { t, task, answers, ask: ask! };
    }

    test('reaches the agent it was typed for, and neither the log nor the receipt', async () => {
      const { t, task, answers, ask } = await asksForKey();
      await t.answer(ask.id, { value: { key: TYPED, note: 'the new one' } });
      await t.until(task.id);
      expect(answers).toEqual([
        { kind: 'value', by: 'ana', ask_id: ask.id, value: { key: TYPED, note: 'the new one' } },
      ]);
      const everything = JSON.stringify([
        await t.all(),
        await t.receipts(task.id),
        await t.bridge.view(ana, 'ask', ask.id),
      ]);
      expect(everything).toContain('the new one');
      expect(everything).not.toContain(TYPED);
    });

    test('of two who answer at once is the one the log has', async () => {
      const { t, task, answers, ask } = await asksForKey();
      const said = await Promise.allSettled(
        ['first', 'second'].map((note) => t.answer(ask.id, { value: { key: `${TYPED}${note}`, note } })),
      );
      await t.until(task.id);
      const received = said.findIndex(({ status }) => status === 'fulfilled');
      const note = ['first', 'second'][received];
      expect(said.filter(({ status }) => status === 'rejected')).toHaveLength(1);
      expect(answers).toMatchObject([{ kind: 'value', value: { key: `${TYPED}${note}`, note } }]);
    });

    test('given in another process is what the log has', async () => {
      const { t, task, answers, ask } = await asksForKey();
      const other = await t.second({ agents: [] });
      await other.answer(ask.id, { value: TYPED });
      await t.until(task.id);
      expect(answers).toMatchObject([{ kind: 'value', value: expect.stringContaining('[redacted') }]);
    });
  });

  test('a person may decline', async () => {
    const { t, task, answers, ask } = await asksForPort();
    await t.answer(ask.id, { approved: false, reason: 'none of your business' });
    await t.until(task.id);
    expect(answers).toMatchObject([{ kind: 'denied', by: 'ana', reason: 'none of your business' }]);
  });

  test('a message to the task answers it, and is written with the answer or not at all', async () => {
    const { t, task, answers, ask } = await asksForPort();
    const json = (value: JsonObject) => ({
      role: 'user' as const,
      parts: [{ type: 'json' as const, value, visibility: 'public' }],
    });
    const before = of(await t.events(task.id), 'user.message').length;
    const bad = { task_id: task.id, kind: 'input' as const, message: json({ port: -1 }) };
    expect(await t.refused('task.message', bad)).toMatchObject({ kind: 'invalid_request' });
    expect(of(await t.events(task.id), 'user.message')).toHaveLength(before);

    const good = { task_id: task.id, kind: 'input' as const, message: json({ port: 1 }) };
    const said = await t.send('task.message', good, { idempotency: { key: 'k' } });
    await t.until(task.id);
    expect(answers).toMatchObject([{ kind: 'value', by: 'ana', ask_id: ask.id, value: { port: 1 } }]);
    const again = await t.send('task.message', good, { idempotency: { key: 'k' } });
    expect(again).toMatchObject({ repeated: true, resource: { id: said.resource.id } });
    expect(of(await t.events(task.id), 'user.message')).toHaveLength(before + 1);
  });

  test('a message answers nothing when nothing is asked', async () => {
    const stay = latch();
    const { t, task } = await asking({
      script: async () => {
        await stay.promise;
      },
    });
    const message = { task_id: task.id, kind: 'input', message: says('8080') };
    expect(await t.refused('task.message', message)).toMatchObject({
      kind: 'conflict',
      message: 'the task is not waiting for input',
    });
    stay.open();
    await t.until(task.id);
    expect(await t.refused('task.message', message)).toMatchObject({ kind: 'conflict' });
  });

  test('the same key while it is open is the same question; after its answer it is a new one', async () => {
    const answers: Answer[] = [];
    const { t, task } = await asking({
      script: async (sink) => {
        const ask = () => sink.ask({ kind: 'input', key: 'k', question: 'which?' });
        answers.push(...(await Promise.all([ask(), ask()])));
        answers.push(await ask());
      },
    });
    const [first] = await t.asks(task.id);
    await t.answer(first!.id, { value: 'one' });
    await t.seen(
      task.id,
      'vendor.tollbridge.ask_opened',
      ({ payload }) => (payload.ask as JsonObject).id !== first!.id,
    );
    const [second] = await t.asks(task.id);
    await t.answer(second!.id, { value: 'two' });
    await t.until(task.id);
    expect(answers.map((answer) => ('value' in answer ? answer.value : answer.kind))).toEqual(['one', 'one', 'two']);
  });
});

describe('several questions at once', () => {
  test.each([
    ['approvals first', ['c1', 'c2', 'name', 'age']],
    ['input first', ['name', 'age', 'c1', 'c2']],
    ['in turns', ['c1', 'name', 'c2', 'age']],
    ['in turns, the other way', ['age', 'c2', 'name', 'c1']],
  ])('every step is legal, answered %s', async (_order, order) => {
    const { t, tools, task } = await asking({
      script: async (sink) => {
        await Promise.all([
          sink.act(SEND),
          sink.ask({ kind: 'input', key: 'name', question: 'name?' }),
          sink.act({ ...SEND, tool_call_id: 'c2', arguments: { to: 'cy' } }),
          sink.ask({ kind: 'input', key: 'age', question: 'age?' }),
        ]);
      },
    });
    const asks = await t.asks(task.id, 4);
    for (const key of order) {
      const ask = asks.find(({ metadata }) => metadata.key === key)!;
      await t.answer(ask.id, ask.kind === 'input' ? { value: key } : { approved: true });
      const { status } = await t.bridge.view<Row & { status: string }>(ana, 'task', task.id);
      const left = await t.runtime.store.list<AskRecord & Row>({
        object: 'ask',
        where: { task_id: task.id, state: 'open' },
      });
      if (left.length > 0) {
        const waitsFor = { AUTH_REQUIRED: 'approval', INPUT_REQUIRED: 'input' }[status];
        expect(left.map(({ kind }) => kind)).toContain(waitsFor);
      }
    }
    expect(await t.until(task.id)).toMatchObject({ status: 'COMPLETED' });
    expect(tools.calls).toHaveLength(2);
    const path = states(await t.events(task.id));
    for (const [from, to] of path.slice(1).map((to, index) => [path[index]!, to])) {
      expect(TASK_TRANSITIONS[from as keyof typeof TASK_TRANSITIONS]).toContain(to);
    }
  });
});
