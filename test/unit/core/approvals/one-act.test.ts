/** An approval is for one act and no other, and is spent once; a no is an answer too. */
import { describe, expect, test } from 'vitest';
import type { AskRecord } from '../../../../src/model/asks.ts';
import type { ProposedAction } from '../../../../src/model/commands.ts';
import { asFault, type Fault } from '../../../../src/model/faults.ts';
import type { Row } from '../../../../src/ports/index.ts';
import { ana, bo } from '../../../support/gateway/actors.ts';
import { asking, HOUR, outside } from '../../../support/gateway/asking-work.ts';
import { of } from '../../../support/gateway/test-gateway.ts';

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

describe('a person says no', () => {
  test.each([
    ['with a reason', 'too many already', 'too many already'],
    ['without one', undefined, 'bo said no'],
  ])('%s: the agent hears it whenever it asks', async (_how, reason, received) => {
    const { t, task, propose } = await outside();
    const { details } = await propose();
    await t.answer(String(details?.ask_id), { approved: false, ...(reason && { reason }) }, bo);
    expect(await propose()).toMatchObject({
      decision: { verdict: 'block', code: 'approval_denied', reason: received },
      answer: { kind: 'denied', by: 'bo', reason: received },
    });
    expect(of(await t.events(task.id), 'tool.denied')[0]?.payload).toMatchObject({
      by: 'bo',
      reason: received,
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
