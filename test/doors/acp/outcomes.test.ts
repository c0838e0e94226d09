/** What an agent said right before it went counts: calls are sealed as they were reported, and its words are kept. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/core/clock.ts';
import type { Receipt } from '../../../src/model/receipt.ts';
import type { Task } from '../../../src/model/resources.ts';
import type { Row } from '../../../src/ports/index.ts';
import { openAgentGateway } from '../../support/acp/agent-gateway.ts';
import { agentThat, GONE, type LastWords } from '../../support/acp/last-words.ts';
import { startRelay } from '../../support/acp/process.ts';
import { of, openTestGateway, type TestGateway } from '../../support/gateway/test-gateway.ts';

const outcomes = (receipt: Receipt | undefined) =>
  Object.fromEntries((receipt?.side_effects.tool_calls ?? []).map((call) => [call.call_id, call.metadata?.outcome]));
const GOING = { a: 'succeeded', b: 'failed', c: 'unknown' };

async function worked(t: TestGateway, taskId: string) {
  const events = await t.events(taskId);
  const said = of(events, 'agent.message').map(
    ({ payload }) => (payload.message as { parts?: { text?: string }[] }).parts,
  );
  const [receipt] = await t.receipts(taskId);
  return { events, said: said.map((parts) => parts?.[0]?.text).join(''), receipt, calls: outcomes(receipt) };
}

describe('an agent of ours', () => {
  const run = async (manner: LastWords) => {
    const at = await openAgentGateway({ config: { command: agentThat(manner) } });
    return { at, task: await at.run('go') };
  };

  test.each(GONE)('%s: what it reported is sealed as reported', async (manner, how) => {
    const { at, task } = await run(manner);
    expect(task).toMatchObject({ status: 'FAILED', failure: { message: expect.stringMatching(how) } });
    const { said, calls, receipt } = await worked(at.t, task.id);
    expect(said).toMatch(/so far$/);
    expect(calls).toEqual(GOING);
    const [, , c] = receipt?.side_effects.tool_calls ?? [];
    expect(c).toMatchObject({ status: 'failed', metadata: { outcome_reason: expect.stringContaining('may have') } });
    expect(at.alive()).toEqual([]);
  });

  test('a call still running at the end of a turn is unknown; its end is noted when it is reported', async () => {
    const { at, task } = await run('is late');
    expect(task.status).toBe('COMPLETED');
    expect((await worked(at.t, task.id)).calls).toMatchObject({
      a: 'succeeded',
      c: expect.stringMatching(/^(unknown|succeeded)$/),
    });
    const late = async () =>
      of(await at.t.events(task.id), 'tool.completed').find((e) => e.payload.tool_call_id === 'c');
    await expect.poll(async () => (await late())?.payload).toMatchObject({ outcome: 'succeeded' });
    const { calls } = await worked(at.t, task.id);
    expect((await late())?.payload.after_end).toBe(calls.c === 'unknown' ? true : undefined);
  });

  test('a report that comes twice is one call; one that disagrees is reported beside the first', async () => {
    const twice = await run('reports twice');
    const reported = await worked(twice.at.t, twice.task.id);
    expect(reported.calls).toEqual({ a: 'succeeded', b: 'failed', c: 'succeeded' });
    expect(of(reported.events, 'tool.completed')).toHaveLength(2);
    const other = await run('disagrees');
    const { receipt } = await worked(other.at.t, other.task.id);
    expect(receipt?.side_effects.tool_calls[0]).toMatchObject({
      call_id: 'a',
      status: 'succeeded',
      metadata: { outcome: 'succeeded', also_reported: 'failed' },
    });
  });
});

describe('an agent behind the relay', () => {
  async function relayed(manner: LastWords) {
    const dir = await mkdtemp(join(tmpdir(), 'tollbridge-'));
    onTestFinished(() => rm(dir, { recursive: true, force: true }));
    const { editor, exited, work } = startRelay({ dir, command: agentThat(manner) });
    const { done } = await work('now');
    const answer = await done;
    editor.close();
    await exited;
    const t = await openTestGateway({ dir, clock: systemClock });
    const [task] = await t.runtime.store.list<Task & Row>({ object: 'task', limit: 10 });
    if (!task) throw new Error('nothing was written down');
    return { answer, task, editor, ...(await worked(t, task.id)) };
  }

  test.each(GONE)('%s: the editor has an error, and what was reported is sealed as reported', async (manner, how) => {
    const { answer, task, said, calls, editor } = await relayed(manner);
    expect(answer.error).toMatchObject({ message: expect.stringMatching(how) });
    expect(editor.lines.every((line) => JSON.parse(line).jsonrpc === '2.0')).toBe(true);
    expect(task.status).toBe('FAILED');
    expect(said).toMatch(/so far$/);
    expect(calls).toEqual(GOING);
  });

  test('a call still running at the end of a turn is unknown, and its end is kept when it comes', async () => {
    const { answer, calls, events } = await relayed('is late');
    expect(answer.result).toEqual({ stopReason: 'end_turn' });
    expect(calls).toMatchObject({ a: 'succeeded', b: 'failed' });
    const late = of(events, 'tool.completed').find(({ payload }) => payload.tool_call_id === 'c');
    expect(late?.payload.after_end).toBe(calls.c === 'unknown' ? true : undefined);
    expect(late?.payload).toMatchObject({ outcome: 'succeeded' });
  });
});
