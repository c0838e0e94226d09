/** Work taken up again while its agent is silent, work stopped because it failed, and what a door took out beforehand. */
import { expect, test } from 'vitest';
import { ana } from '../../../support/gateway/actors.ts';
import { latch, scriptedAgent, untilAborted } from '../../../support/gateway/agents.ts';
import { kinds, of, openTestGateway, says, states } from '../../../support/gateway/test-gateway.ts';
import { countingTools } from '../../../support/gateway/tools.ts';

test('an agent that has fallen silent is let go, and the work goes on from what the log holds', async () => {
  const silent = latch();
  let starts = 0;
  const late: Promise<unknown>[] = [];
  const agent = scriptedAgent(
    async (sink, _work, signal) => {
      starts += 1;
      const note = (text: string) => sink.emit({ event: 'vendor.tollbridge.note', payload: { note: text } });
      await note('begun');
      if (starts === 1) {
        silent.open();
        await untilAborted(signal);
        late.push(note('too late').catch((cause: Error) => cause.message));
        throw new Error('let go');
      }
      await note('gone on');
      return undefined;
    },
    { resume: true },
  );
  const t = await openTestGateway({ agents: [agent] });
  const task = await (await t.room()).task();
  await silent.promise;
  const { resource } = await t.send('task.resume', { task_id: task.id });
  expect(resource.id).toBe(task.id);
  expect((await t.until(task.id)).status).toBe('COMPLETED');
  const events = await t.events(task.id);
  expect(of(events, 'vendor.tollbridge.note').map(({ payload }) => payload.note)).toEqual(['begun', 'gone on']);
  expect(kinds(events).filter((kind) => kind === 'vendor.tollbridge.recovered')).toHaveLength(1);
  expect(starts).toBe(2);
  expect(await Promise.all(late)).toEqual(['this work is run by another process']);
});

test('an agent that cannot go on is left alone, and so is work that has ended or is hidden', async () => {
  const agent = scriptedAgent(async (_sink, _work, signal) => {
    await untilAborted(signal);
    return { state: 'CANCELED' };
  });
  const t = await openTestGateway({ agents: [agent] });
  const task = await (await t.room()).task();
  expect(await t.refused('task.resume', { task_id: task.id })).toMatchObject({ kind: 'not_implemented' });
  expect(await t.refused('task.resume', { task_id: 'task_zz' })).toMatchObject({ kind: 'not_found' });
  const outsider = { ...ana, id: 'wile', tenant_id: 'acme' };
  expect(await t.refused('task.resume', { task_id: task.id }, { actor: outsider })).toMatchObject({
    kind: 'not_found',
  });
  await t.send('task.cancel', { task_id: task.id });
  expect(await t.refused('task.resume', { task_id: task.id })).toMatchObject({ kind: 'conflict' });
});

const FAILURE = { code: 'rejected', message: 'nobody wants this' };

test('a no can fail the whole task: it is on record as a no, and the agent gets nothing more done', async () => {
  const agent = scriptedAgent(async (sink) => {
    const act = await sink.act({ kind: 'tool', tool: 'send', tool_call_id: 'c1', arguments: {}, effect: 'send' });
    await sink.emit({ event: 'vendor.tollbridge.note', payload: { note: act.kind } });
    return undefined;
  });
  const t = await openTestGateway({ agents: [agent], tools: [countingTools({ send: { effect: 'send' } })] });
  const task = await (await t.room()).task();
  const [ask] = await t.asks(task.id);
  expect(await t.refused('ask.answer', { ask_id: ask!.id, approved: true, failure: FAILURE })).toMatchObject({
    kind: 'invalid_request',
    param: '/failure',
  });
  await t.answer(ask!.id, { approved: false, reason: 'no mail today', failure: FAILURE });
  const ended = await t.until(task.id);
  expect(ended).toMatchObject({ status: 'FAILED', failure: FAILURE });
  const events = await t.events(task.id);
  expect(of(events, 'tool.denied')[0]?.payload).toMatchObject({ by: 'ana', reason: 'no mail today' });
  expect(states(events)).toEqual(['SUBMITTED', 'WORKING', 'AUTH_REQUIRED', 'WORKING', 'FAILED']);
  const [receipt] = await t.receipts(task.id);
  expect(receipt?.lifecycle.final_state).toBe('FAILED');
  expect(receipt?.approvals).toMatchObject([{ decision: 'denied', actor: 'ana' }]);
});

test.each(['running', 'queued'])('work that is %s can be stopped as failed', async (how) => {
  const agent = scriptedAgent(async (_sink, _work, signal) => {
    await untilAborted(signal);
    return { state: 'CANCELED' };
  });
  const t = await openTestGateway({ agents: [agent] });
  const room = await t.room();
  const running = await room.task();
  const wanted = how === 'running' ? running : await room.task();
  await t.send('task.cancel', { task_id: wanted.id, failure: FAILURE });
  expect(await t.until(wanted.id)).toMatchObject({ status: 'FAILED', failure: FAILURE });
});

test('what a door took out is reported in the receipt, beside what the gateway took out', async () => {
  const t = await openTestGateway({ agents: [scriptedAgent(async () => undefined)] });
  const redactions = [{ field: 'input.pin', reason: 'pii:drop' }];
  const token = 'ghp_0123456789abcdefghijABCDEFGHIJ012345';
  const input = says(`use ${token}`);
  const task = await (await t.room()).task({ input, metadata: { note: token } }, { redactions });
  await t.until(task.id);
  const [receipt] = await t.receipts(task.id);
  const reasons = (receipt?.redactions ?? []).map(
    ({ field, reason }) => `${field.replace(/evt_\d+/, 'evt')} ${reason}`,
  );
  expect(reasons).toContain('/events/evt/input.pin pii:drop');
  expect(reasons.some((line) => line.includes('/payload/task/metadata/note'))).toBe(true);
});
