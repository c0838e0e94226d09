/** Who may answer a question: those it is put to, never an agent, and one of them only. */
import { describe, expect, test } from 'vitest';
import type { Actor } from '../../../../src/model/actions.ts';
import type { AskRecord } from '../../../../src/model/asks.ts';
import { asFault, type Fault } from '../../../../src/model/faults.ts';
import type { Sink } from '../../../../src/ports/index.ts';
import { ana, bo } from '../../../support/gateway/actors.ts';
import { asking, outside } from '../../../support/gateway/asking-work.ts';
import { of } from '../../../support/gateway/test-gateway.ts';

describe('who may answer', () => {
  const RULES = '- { id: ask, when: { tool: send }, then: ask, to: [cy, security] }';
  const person = (id: string, ...scopes: string[]): Actor => ({
    id,
    kind: 'person',
    scopes: ['approvals:write', 'others:read', ...scopes],
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
    const actor: Actor = { id: 'fay', kind: 'person', scopes: ['tasks:write', 'tasks:read', 'others:read'] };
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

  test('not the principal that gave the work, unless it was made to, is named, or sits in front of it', async () => {
    const giver: Actor = { id: 'giver', kind: 'service', scopes: ['*'] };
    const { t } = await asking();
    const room = await t.room({ actor: giver });
    const open = async () => {
      const task = await room.task();
      const [ask] = await t.asks(task.id);
      return { task, body: { ask_id: ask!.id, approved: true } };
    };
    const first = await open();
    for (const actor of [
      giver,
      { ...giver, kind: 'person' as const },
      // A program that says so is still no person.
      { ...giver, interactive: true as const },
    ]) {
      expect(await t.refused('ask.answer', first.body, { actor })).toMatchObject({
        kind: 'permission_denied',
        details: { code: 'own_work' },
      });
    }
    const message = { role: 'user', parts: [{ type: 'json', value: { approved: true }, visibility: 'public' }] };
    const confirmation = { task_id: first.task.id, kind: 'tool_confirmation', message } as const;
    expect(await t.refused('task.message', confirmation as never, { actor: giver })).toMatchObject({
      kind: 'permission_denied',
    });
    expect((await t.asks(first.task.id))[0]?.state).toBe('open');
    // Tried four times, noted once.
    const noted = of(await t.events(first.task.id), 'vendor.tollbridge.answer_refused');
    expect(noted.map(({ payload }) => payload)).toMatchObject([{ by: 'giver', code: 'own_work' }]);
    expect(await t.answer(first.body.ask_id, { approved: false }, giver)).toMatchObject({ state: 'denied' });

    const made = { ...giver, scopes: ['*', 'approvals:own'] };
    expect(await t.answer((await open()).body.ask_id, { approved: true }, made)).toMatchObject({ state: 'approved' });
    const present = { ...giver, kind: 'person' as const, interactive: true as const };
    expect(await t.answer((await open()).body.ask_id, { approved: true }, present)).toMatchObject({
      state: 'approved',
    });
  });

  test('the giver of the work, where the rule names it', async () => {
    const giver: Actor = { id: 'giver', kind: 'service', scopes: ['*'] };
    const { t } = await asking({ rules: '- { id: ask, when: { tool: send }, then: ask, to: [giver] }' });
    const task = await (await t.room({ actor: giver })).task();
    const [ask] = await t.asks(task.id);
    expect(await t.answer(ask!.id, { approved: true }, giver)).toMatchObject({ state: 'approved' });
  });

  test('never the proposer of the act, whatever its credential was made for', async () => {
    const { t, task, propose } = await outside();
    const proposer: Actor = { id: 'outsider', kind: 'service', scopes: ['*', 'approvals:own'] };
    const { details } = await propose({}, proposer);
    const body = { ask_id: String(details?.ask_id), approved: true };
    for (const actor of [proposer, { ...proposer, kind: 'person' as const }]) {
      expect(await t.refused('ask.answer', body, { actor })).toMatchObject({
        kind: 'permission_denied',
        details: { code: 'proposer' },
      });
    }
    expect((await t.asks(task.id))[0]?.state).toBe('open');
    expect(await t.answer(body.ask_id, { approved: true }, bo)).toMatchObject({ answered_by: 'bo' });
  });

  test('a value goes to the agent from the principal that gave the work, and not from the agent that asked', async () => {
    const giver: Actor = { id: 'giver', kind: 'service', scopes: ['*'] };
    const script = async (sink: Sink) =>
      void (await sink.ask({ kind: 'input', key: 'colour', question: 'which colour?' }));
    const { t } = await asking({ script });
    const task = await (await t.room({ actor: giver })).task();
    const [ask] = await t.asks(task.id);
    const self: Actor = { id: 'agent:agent', kind: 'agent', scopes: ['*'] };
    expect(await t.refused('ask.answer', { ask_id: ask!.id, value: 'red' }, { actor: self })).toMatchObject({
      kind: 'permission_denied',
    });
    expect(await t.answer(ask!.id, { value: 'blue' }, giver)).toMatchObject({ state: 'answered', answer: 'blue' });
  });

  test('fifty at once: one decides, the others hear who', async () => {
    const { t, task, tools } = await asking();
    const [ask] = await t.asks(task.id);
    const won: AskRecord[] = [];
    const lost: Fault[] = [];
    await Promise.all(
      Array.from({ length: 50 }, async (_, index) => {
        const actor: Actor = { id: `p${index}`, kind: 'person', scopes: ['approvals:write', 'others:read'] };
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

test('work in which an answer was refused is replayed as it was', async () => {
  const giver: Actor = { id: 'giver', kind: 'service', scopes: ['*'] };
  const { t } = await asking();
  const task = await (await t.room({ actor: giver })).task();
  const [ask] = await t.asks(task.id);
  await t.refused('ask.answer', { ask_id: ask!.id, approved: true }, { actor: giver });
  await t.answer(ask!.id, { approved: true }, bo);
  await t.until(task.id);
  const { resource } = await t.send('task.replay', { task_id: task.id });
  expect((await t.until(resource.id)).status).toBe('COMPLETED');
});
