/** Questions to people, on the real stack: bound to one act, answered once by whoever may, wherever and whenever that is. */
import { describe, expect, test } from 'vitest';
import type { Actor } from '../src/model/actions.ts';
import type { Answer, AskRecord } from '../src/model/asks.ts';
import type { ProposedAction } from '../src/model/commands.ts';
import { asFault, type Fault } from '../src/model/faults.ts';
import type { JsonObject } from '../src/model/schema.ts';
import { TASK_TRANSITIONS } from '../src/model/words.ts';
import type { ActResult, Row, Sink } from '../src/ports.ts';
import { ana, bo } from './support/actors.ts';
import { latch, scriptedAgent, untilAborted } from './support/agents.ts';
import { of, openTestHouse, says, states, type TestHouseOptions } from './support/house.ts';
import { countingTools } from './support/tools.ts';

const SEND: ProposedAction = { kind: 'tool', tool: 'send', tool_call_id: 'c1', arguments: { to: 'bo' } };
const HOUR = 60 * 60 * 1000;

/** One agent that sends, in a house without rules: sending is asked about. */
async function asking(
  options: TestHouseOptions & { resume?: boolean; script?: (sink: Sink, signal: AbortSignal) => Promise<void> } = {},
) {
  const tools = countingTools({ send: { effect: 'send' } });
  const results: ActResult[] = [];
  const act = async (sink: Sink, signal: AbortSignal) => {
    const result = await sink.act(SEND);
    if (!signal.aborted) results.push(result);
  };
  const agent = scriptedAgent(
    async (sink, _work, signal) => {
      await (options.script ?? act)(sink, signal);
      return undefined;
    },
    { resume: options.resume ?? false },
  );
  const t = await openTestHouse({ ...options, agents: [agent], tools: [tools] });
  const room = await t.room();
  const task = await room.task();
  return { t, room, task, tools, results };
}

/** Someone outside works on a task and asks before each step. */
async function outside(options: TestHouseOptions = {}) {
  const t = await openTestHouse(options);
  const task = await (await t.room()).task({ agent: 'none' });
  const propose = (action: Partial<ProposedAction> = {}, actor: Actor = ana, wait_ms = 0) =>
    t.send('action.propose', { task_id: task.id, action: { ...SEND, effect: 'send', ...action }, wait_ms }, { actor });
  return { t, task, propose };
}

describe('an approval is for one act and no other', () => {
  test('a question stays open, is answered, and the answer is taken once', async () => {
    const { t, task, propose } = await outside();
    const first = await propose();
    expect(first).toMatchObject({ decision: { verdict: 'escalate' }, details: { ask_id: expect.any(String) } });
    const again = await propose();
    expect(again.details).toEqual(first.details);
    expect(await t.asks(task.id)).toHaveLength(1);

    await t.answer(String(first.details?.ask_id));
    const taken = await propose();
    expect(taken).toMatchObject({ decision: { verdict: 'allow' }, answer: { kind: 'approved', by: 'ana' } });
    const spent = await propose();
    expect(spent.decision?.verdict).toBe('escalate');
    expect(spent.details?.ask_id).not.toBe(first.details?.ask_id);
    const log = await t.events(task.id);
    expect(of(log, 'vendor.tollbridge.ask_opened')).toHaveLength(2);
    expect(of(log, 'vendor.tollbridge.ask_used')).toHaveLength(1);
  });

  test.each<[string, Partial<ProposedAction>]>([
    ['other arguments', { arguments: { to: 'eve' } }],
    ['another tool', { tool: 'publish' }],
    ['another server', { server: 'elsewhere' }],
    ['another target', { target: '/etc/passwd' }],
    ['another definition', { definition: 'sha256:other' }],
    ['another kind of act', { kind: 'terminal' }],
  ])('%s is another question, and the yes to the first is not spent on it', async (_what, change) => {
    const { t, propose } = await outside();
    const first = await propose();
    await t.answer(String(first.details?.ask_id));
    const other = await propose(change);
    expect(other.decision?.verdict).toBe('escalate');
    expect(other.details?.ask_id).not.toBe(first.details?.ask_id);
    expect((await propose()).decision?.verdict).toBe('allow');
  });

  test('so is the same act by someone else', async () => {
    const { t, propose } = await outside();
    const first = await propose();
    await t.answer(String(first.details?.ask_id));
    expect((await propose({}, bo)).decision?.verdict).toBe('escalate');
    expect((await propose({}, ana)).decision?.verdict).toBe('allow');
  });

  test('two who wait for the same answer: one has it, the other hears that it is spent', async () => {
    const { t, task, propose } = await outside();
    const waiting = [propose({}, ana, HOUR), propose({}, ana, HOUR)].map((one) =>
      one.then(
        ({ decision }) => decision?.verdict,
        (cause) => asFault(cause).kind,
      ),
    );
    const [ask] = await t.asks(task.id);
    await t.answer(ask!.id);
    expect((await Promise.all(waiting)).toSorted()).toEqual(['allow', 'conflict']);
    expect(of(await t.events(task.id), 'vendor.tollbridge.ask_opened')).toHaveLength(1);
  });

  test.each([
    ['changed', 'sends to everyone'],
    ['taken away', undefined],
  ])('a tool whose definition was %s after the yes is not called', async (_how, description) => {
    const { t, tools, task, results } = await asking();
    const [ask] = await t.asks(task.id);
    tools.redefine('send', description);
    await t.answer(ask!.id);
    await t.until(task.id);
    expect(tools.calls).toEqual([]);
    expect(results).toMatchObject([{ kind: 'refused', decision: { verdict: 'block', code: 'approval_void' } }]);
    const log = await t.events(task.id);
    expect(of(log, 'tool.denied').at(-1)?.payload).toMatchObject({ tool_call_id: 'c1', code: 'approval_void' });
    expect(of(log, 'vendor.tollbridge.ask_used')).toHaveLength(1);
  });

  test('the record people see holds the act without its secrets, and a digest that gives none away', async () => {
    const { t, propose } = await outside();
    const secret = 'sk-live-4242424242424242424242424242';
    const { details } = await propose({ arguments: { to: 'bo', api_key: secret } });
    const ask = (await t.bridge.view<AskRecord & Row>(ana, 'ask', String(details?.ask_id))) as AskRecord;
    expect(ask.action).toMatchObject({ tool: 'send', actor: 'ana', effect: 'send' });
    expect(JSON.stringify(ask)).not.toContain(secret);
    expect(ask.digest).toMatch(/^hmac-sha256:[0-9a-f]{64}$/);
    // Still bound to the secret itself: with another one it is another question.
    const other = await propose({ arguments: { to: 'bo', api_key: `${secret}0` } });
    expect(other.details?.ask_id).not.toBe(details?.ask_id);
  });
});

describe('time', () => {
  test('nobody answers: the act is denied and says so', async () => {
    const { t, tools, task, results } = await asking({ settings: { askExpiresMs: HOUR } });
    await t.asks(task.id);
    t.clock.advance(HOUR);
    await t.until(task.id);
    expect(tools.calls).toEqual([]);
    expect(results).toMatchObject([
      {
        kind: 'refused',
        reason: 'nobody answered in time',
        decision: { verdict: 'block', code: 'approval_timed_out' },
      },
    ]);
    const log = await t.events(task.id);
    expect(of(log, 'tool.denied')[0]?.payload).toMatchObject({ code: 'approval_timed_out', by: 'bridge' });
    expect(states(log)).toEqual(['SUBMITTED', 'WORKING', 'AUTH_REQUIRED', 'WORKING', 'COMPLETED']);
    expect((await t.receipts(task.id))[0]?.approvals).toMatchObject([{ decision: 'timeout' }]);
  });

  test('a rule says for how long and whom', async () => {
    const rules = '- { id: ask, when: { tool: send }, then: ask, to: [cy, security], expires: 10m, say: careful }';
    const { t, task } = await asking({ rules });
    const [ask] = await t.asks(task.id);
    expect(ask).toMatchObject({
      to: ['cy', 'security'],
      rule_id: 'ask',
      reason: 'careful',
      created_at: '2026-01-01T00:00:00.000Z',
      expires_at: '2026-01-01T00:10:00.000Z',
    });
  });

  test('an answer that comes too late is a conflict, and the act stays denied', async () => {
    const { t, task, propose } = await outside({ settings: { askExpiresMs: HOUR, sweepMs: HOUR } });
    const { details } = await propose();
    t.clock.advance(HOUR);
    const fault = await t.refused('ask.answer', { ask_id: String(details?.ask_id), approved: true });
    expect(fault).toMatchObject({
      kind: 'conflict',
      message: `question ${details?.ask_id} expired at 2026-01-01T01:00:00.000Z`,
      details: { state: 'expired', decided_by: 'bridge' },
    });
    expect(of(await t.events(task.id), 'tool.denied')[0]?.payload).toMatchObject({ code: 'approval_timed_out' });
    expect(await propose()).toMatchObject({ decision: { verdict: 'block', code: 'approval_timed_out' } });
  });

  test('what expired while the house was closed is denied when it opens', async () => {
    const { t, task, propose } = await outside();
    await propose();
    await t.close();
    t.clock.advance(2 * HOUR);
    const later = await t.reopen();
    expect(await later.house.store.list({ object: 'ask', where: { task_id: task.id } })).toMatchObject([
      { state: 'expired' },
    ]);
    expect(states(await later.events(task.id))).toEqual(['SUBMITTED', 'WORKING', 'AUTH_REQUIRED', 'WORKING']);
  });

  test.each([Number.NaN, -1, 1e300, Number.POSITIVE_INFINITY])(
    'an agent that wants %s ms has the usual time',
    async (expires_ms) => {
      const { t, task } = await asking({
        script: async (sink) => {
          await sink.ask({ kind: 'input', key: 'k', question: 'which?', expires_ms });
        },
      });
      const [ask] = await t.asks(task.id);
      expect(ask?.expires_at).toBe('2026-01-01T01:00:00.000Z');
      await t.send('task.cancel', { task_id: task.id });
    },
  );
});

describe('who may answer', () => {
  const RULES = '- { id: ask, when: { tool: send }, then: ask, to: [cy, security] }';
  const person = (id: string, ...scopes: string[]): Actor => ({
    id,
    kind: 'person',
    scopes: ['approvals:write', ...scopes],
  });

  test('only those it is put to, by name or by what they hold', async () => {
    const { t, task } = await asking({ rules: RULES });
    const [ask] = await t.asks(task.id);
    const body = { ask_id: ask!.id, approved: true };
    expect(await t.refused('ask.answer', body, { actor: person('dee') })).toMatchObject({ kind: 'permission_denied' });
    expect(await t.refused('ask.answer', body, { actor: { ...ana, id: 'root' } })).toMatchObject({
      kind: 'permission_denied',
    });
    expect((await t.asks(task.id))[0]?.state).toBe('open');
    expect(await t.answer(ask!.id, { approved: true }, person('eli', 'security'))).toMatchObject({
      state: 'approved',
      answered_by: 'eli',
    });
  });

  test('never an agent, whatever it holds', async () => {
    const { t, task } = await asking();
    const [ask] = await t.asks(task.id);
    const agent: Actor = { id: 'agent:agent', kind: 'agent', scopes: ['*'] };
    const body = { ask_id: ask!.id, approved: true };
    expect(await t.refused('ask.answer', body, { actor: agent })).toMatchObject({ kind: 'permission_denied' });
    const confirmation = {
      role: 'user',
      parts: [{ type: 'json', value: { approved: true }, visibility: 'public' }],
    } as const;
    const message = { task_id: task.id, kind: 'tool_confirmation', message: confirmation } as const;
    expect(await t.refused('task.message', message, { actor: agent })).toMatchObject({ kind: 'permission_denied' });
    expect((await t.asks(task.id))[0]?.state).toBe('open');
    expect(of(await t.events(task.id), 'user.message')).toHaveLength(1);
  });

  test('nobody without the scope, by answer or by message', async () => {
    const { t, task } = await asking();
    const [ask] = await t.asks(task.id);
    const actor: Actor = { id: 'fay', kind: 'person', scopes: ['tasks:write', 'tasks:read'] };
    expect(await t.refused('ask.answer', { ask_id: ask!.id, approved: true }, { actor })).toMatchObject({
      kind: 'permission_denied',
    });
    const message = { role: 'user', parts: [{ type: 'json', value: { approved: true }, visibility: 'public' }] };
    expect(
      await t.refused('task.message', { task_id: task.id, kind: 'tool_confirmation', message }, { actor }),
    ).toMatchObject({
      kind: 'permission_denied',
      message: 'fay does not have the scope approvals:write',
    });
  });

  test('a rule may keep someone from answering, and its no is on record', async () => {
    const rules = `
- { id: ask, when: { kind: tool, tool: send }, then: ask }
- { id: not-bo, when: { kind: answer, principal: bo }, then: block, say: bo asked for it himself }`;
    const { t, task } = await asking({ rules });
    const [ask] = await t.asks(task.id);
    expect(await t.refused('ask.answer', { ask_id: ask!.id, approved: true }, { actor: bo })).toMatchObject({
      kind: 'permission_denied',
      message: 'bo may not answer this: bo asked for it himself',
    });
    expect(of(await t.events(task.id), 'vendor.tollbridge.decided').at(-1)?.payload).toMatchObject({
      action: { kind: 'answer', actor: { id: 'bo' } },
      decision: { verdict: 'block', rule_id: 'not-bo' },
    });
    await t.answer(ask!.id, { approved: true }, ana);
  });

  test.each(['ask', 'modify, set: { cc: ana }'])(
    'a rule about every use of the tool (%s) does not keep people from answering',
    async (then) => {
      const rules = `
- { id: about-send, when: { tool: send }, then: ${then} }
- { id: ask-send, when: { tool: send, kind: tool }, then: ask }`;
      const { t, tools, task } = await asking({ rules });
      const [ask] = await t.asks(task.id);
      await t.answer(ask!.id);
      await t.until(task.id);
      expect(tools.calls).toHaveLength(1);
    },
  );

  test('fifty at once: one decides, the others hear who', async () => {
    const { t, task, tools } = await asking();
    const [ask] = await t.asks(task.id);
    const won: AskRecord[] = [];
    const lost: Fault[] = [];
    await Promise.all(
      Array.from({ length: 50 }, async (_, index) => {
        const actor: Actor = { id: `p${index}`, kind: 'person', scopes: ['approvals:write'] };
        const answer = t.answer(ask!.id, { approved: index % 2 === 0 }, actor);
        await answer.then(
          (record) => won.push(record),
          (cause) => lost.push(asFault(cause)),
        );
      }),
    );
    expect([won.length, lost.length]).toEqual([1, 49]);
    const [record] = won as [AskRecord];
    for (const fault of lost) {
      expect(fault).toMatchObject({
        kind: 'conflict',
        details: { ask_id: ask!.id, state: record.state, decided_by: record.answered_by },
      });
    }
    await t.until(task.id);
    expect(of(await t.events(task.id), 'vendor.tollbridge.ask_closed')).toHaveLength(1);
    expect(tools.calls).toHaveLength(record.state === 'approved' ? 1 : 0);
  });
});

describe('questions outlive the process that asked', () => {
  test('a restart joins the open question, and a yes given afterwards runs the act once', async () => {
    const { t, tools, task } = await asking({ resume: true });
    const [before] = await t.asks(task.id);
    const later = await t.reopen();
    await later.seen(task.id, 'vendor.tollbridge.recovered');
    await later.until(task.id, 'AUTH_REQUIRED');
    const [after] = await later.asks(task.id);
    expect(after?.id).toBe(before?.id);
    await later.answer(after!.id);
    expect(await later.until(task.id)).toMatchObject({ status: 'COMPLETED' });
    expect(tools.calls).toHaveLength(1);
    const log = await later.events(task.id);
    expect(of(log, 'tool.requested')).toHaveLength(1);
    expect(of(log, 'vendor.tollbridge.ask_opened')).toHaveLength(1);
    expect(of(log, 'vendor.tollbridge.ask_used')).toHaveLength(1);
  });

  test('a yes given while nobody was there to hear it is taken up after the restart', async () => {
    const { t, tools, task } = await asking({ resume: true });
    const [ask] = await t.asks(task.id);
    await t.close();
    const away = await t.reopen({ agents: [], started: false });
    await away.answer(ask!.id);
    const later = await away.reopen({
      agents: [
        scriptedAgent(
          async (sink) => {
            await sink.act(SEND);
            return undefined;
          },
          { resume: true },
        ),
      ],
      started: true,
    });
    expect(await later.until(task.id)).toMatchObject({ status: 'COMPLETED' });
    expect(tools.calls).toHaveLength(1);
  });

  test('another house on the same log answers, and the first one goes on', async () => {
    const { t, tools, task } = await asking();
    const [ask] = await t.asks(task.id);
    const elsewhere = await t.second({ agents: [] });
    expect(await elsewhere.answer(ask!.id, { approved: true }, bo)).toMatchObject({
      state: 'approved',
      answered_by: 'bo',
    });
    expect(await t.until(task.id)).toMatchObject({ status: 'COMPLETED' });
    expect(tools.calls).toHaveLength(1);
    await elsewhere.close();
  });

  test('the end of a task withdraws its questions', async () => {
    const { t, task } = await asking();
    const [ask] = await t.asks(task.id);
    await t.send('task.cancel', { task_id: task.id });
    await t.until(task.id);
    expect(await t.bridge.view(ana, 'ask', ask!.id)).toMatchObject({ state: 'canceled' });
    expect(await t.refused('ask.answer', { ask_id: ask!.id, approved: true })).toMatchObject({
      kind: 'conflict',
      details: { state: 'canceled' },
    });
  });
});

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
    expect(answers).toEqual([{ kind: 'denied', by: 'cedar', reason: 'nobody is asked for that' }]);
    const log = await t.events(task.id);
    expect(of(log, 'vendor.tollbridge.ask_opened')).toEqual([]);
    expect(of(log, 'vendor.tollbridge.decided').at(-1)?.payload).toMatchObject({
      action: { kind: 'elicit', tool: 'password' },
      decision: { verdict: 'block', rule_id: 'no-questions' },
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
      const left = await t.house.store.list<AskRecord & Row>({
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

describe('a person says no', () => {
  test.each([
    ['with a reason', 'too many already', 'too many already'],
    ['without one', undefined, 'bo said no'],
  ])('%s: the agent hears it whenever it asks', async (_how, reason, heard) => {
    const { t, task, propose } = await outside();
    const { details } = await propose();
    await t.answer(String(details?.ask_id), { approved: false, ...(reason && { reason }) }, bo);
    expect(await propose()).toMatchObject({
      decision: { verdict: 'block', code: 'approval_denied', reason: heard },
      answer: { kind: 'denied', by: 'bo', reason: heard },
    });
    expect(of(await t.events(task.id), 'tool.denied')[0]?.payload).toMatchObject({
      by: 'bo',
      reason: heard,
      ask_id: details?.ask_id,
    });
  });

  test('an approval needs a yes or a no', async () => {
    const { t, propose } = await outside();
    const { details } = await propose();
    const fault: Fault = await t.refused('ask.answer', { ask_id: String(details?.ask_id), value: 'sure' });
    expect(fault).toMatchObject({ kind: 'invalid_request', param: '/approved' });
  });
});

describe('whoever asked takes the question back', () => {
  const BACK = 'whoever asked took the question back';
  type Put = (sink: Sink, withdrawn: AbortSignal) => Promise<Answer | ActResult>;
  const ways: readonly (readonly [string, Put, object])[] = [
    [
      'an approval',
      (sink, withdrawn) => sink.ask({ kind: 'approval', action: { ...SEND, effect: 'send' }, withdrawn }),
      { kind: 'canceled', reason: BACK },
    ],
    [
      'a value',
      (sink, withdrawn) => sink.ask({ kind: 'input', key: 'k', question: 'which?', withdrawn }),
      { kind: 'canceled', reason: BACK },
    ],
    [
      'an act that runs through us',
      (sink, withdrawn) => sink.act(SEND, undefined, withdrawn),
      { kind: 'refused', reason: BACK, decision: { code: 'approval_withdrawn' } },
    ],
  ];

  test.each(ways)('%s: closed at once, on record, and the work goes on', async (_, put, answer) => {
    const back = new AbortController();
    const goOn = latch();
    const heard: (Answer | ActResult)[] = [];
    const { t, task, tools } = await asking({
      script: async (sink) => {
        heard.push(await put(sink, back.signal));
        await goOn.promise;
      },
    });
    const [ask] = await t.asks(task.id);
    back.abort();
    await t.seen(task.id, 'vendor.tollbridge.ask_closed');
    expect(await t.bridge.view(ana, 'ask', ask!.id)).toMatchObject({ state: 'canceled', answered_by: 'agent:agent' });
    expect(await t.bridge.view(ana, 'task', task.id)).toMatchObject({ status: 'WORKING' });
    expect(await t.refused('ask.answer', { ask_id: ask!.id, approved: false })).toMatchObject({ kind: 'conflict' });
    goOn.open();
    await t.until(task.id);
    expect(heard).toMatchObject([answer]);
    expect(tools.calls).toEqual([]);
  });

  test('before it was put: it is not left open', async () => {
    const { t, task } = await asking({
      script: async (sink) => {
        await sink.ask({ kind: 'input', key: 'k', question: 'which?', withdrawn: AbortSignal.abort() });
      },
    });
    await t.until(task.id);
    expect(of(await t.events(task.id), 'vendor.tollbridge.ask_closed')).toMatchObject([
      { payload: { state: 'canceled', reason: BACK } },
    ]);
  });
});

test('a question is nobody’s as soon as the work is told to stop, however long it takes to', async () => {
  const mayStop = latch();
  const { t, task } = await asking({
    settings: { graceMs: 60_000 },
    script: async (sink, signal) => {
      void sink.act(SEND).catch(() => {});
      await untilAborted(signal);
      await mayStop.promise;
    },
  });
  const [ask] = await t.asks(task.id);
  const canceling = t.send('task.cancel', { task_id: task.id });
  await t.seen(task.id, 'vendor.tollbridge.ask_closed');
  expect(await t.bridge.view(ana, 'ask', ask!.id)).toMatchObject({
    state: 'canceled',
    reason: 'the work was told to stop',
  });
  expect(await t.bridge.view(ana, 'task', task.id)).toMatchObject({ completed_at: null });
  mayStop.open();
  await canceling;
});

test('an agent told to stop while it waits hears that nobody waits any more', async () => {
  const heard: ActResult[] = [];
  const { t, task, tools } = await asking({
    script: async (sink, signal) => {
      heard.push(await sink.act(SEND));
      await untilAborted(signal);
    },
  });
  await t.asks(task.id);
  await t.send('task.cancel', { task_id: task.id });
  await t.until(task.id);
  expect(heard).toMatchObject([{ kind: 'refused', decision: { verdict: 'block', code: 'approval_withdrawn' } }]);
  expect(tools.calls).toEqual([]);
});
