/** Work is replayed as it was, whatever became of it: failed, canceled, refused, put off, or broken off by a crash. */
import { describe, expect, test } from 'vitest';
import type { ToolBackend } from '../../../../src/ports/index.ts';
import { eventually } from '../../../support/eventually.ts';
import { refusalOf } from '../../../support/gateway/faults.ts';
import { kinds, openTestGateway, REAL_TIME, states } from '../../../support/gateway/test-gateway.ts';
import { needsFile } from '../../../support/gateway/test-store.ts';
import { openMortal } from '../../../support/tasks/killable-gateway.ts';
import { everything, expectFaithful, play, RULES, replay, sayYes, tools } from '../../../support/tasks/replay.ts';
import { sameText } from '../../../support/tasks/same-receipt.ts';
import { latch, scripted, stopped, text, toolbox } from '../../../support/tasks/script.ts';

needsFile();

describe('whatever became of the work', () => {
  test('failed', async () => {
    const { gateway, task } = await play(async ({ sink }) => {
      await sink.act({ kind: 'tool', tool: 'write', tool_call_id: 'c' });
      throw new Error('lost the thread');
    });
    const again = await replay(gateway, task.id);
    expect(again).toMatchObject({ status: 'FAILED', failure: { code: 'agent_failed', message: 'lost the thread' } });
    await expectFaithful(gateway, task, again);
    expect((await gateway.receipt(again.id)).lifecycle).toEqual((await gateway.receipt(task.id)).lifecycle);
  });

  test('with questions the caller took back', async () => {
    const { gateway, task } = await play(async ({ sink }) => {
      const action = { kind: 'tool', tool: 'ask', tool_call_id: 'c' } as const;
      const withdrawn = AbortSignal.abort();
      await sink.ask({ kind: 'approval', action, withdrawn });
      await sink.act({ kind: 'tool', tool: 'ask', tool_call_id: 'd' }, undefined, withdrawn);
      await sink.ask({ kind: 'input', key: 'k', question: '?', withdrawn });
      return { state: 'COMPLETED' };
    });
    const again = await replay(gateway, task.id);
    await expectFaithful(gateway, task, again);
    expect(await gateway.openAsks()).toEqual([]);
  });

  test('canceled, with calls running, asked about and put off, and a question open', async () => {
    const going = latch();
    const box = toolbox('box', { ask: undefined, later: undefined, hang: () => new Promise(() => {}) });
    const gateway = await openTestGateway({
      ...REAL_TIME,
      rules: RULES,
      tools: [box],
      settings: { graceMs: 20, deferTries: 1000 },
      agents: [
        scripted('one', async ({ sink, signal }) => {
          for (const tool of ['hang', 'ask', 'later']) {
            void sink.act({ kind: 'tool', tool, tool_call_id: tool }).catch(() => {});
          }
          void sink.ask({ kind: 'input', key: 'k', question: '?' }).catch(() => {});
          await eventually(async () => (await gateway.openAsks()).length === 2 && box.ran.length === 1);
          going.open();
          await stopped(signal);
        }),
      ],
    });
    const { id } = await gateway.submit(await gateway.session());
    await going.opened;
    await gateway.send('task.cancel', { task_id: id });
    const task = await gateway.task(id);
    const again = await replay(gateway, id);
    expect(again).toMatchObject({ status: 'CANCELED', completed_at: null });
    await expectFaithful(gateway, task, again);
    expect(await gateway.openAsks()).toEqual([]);
    expect(sameText(await gateway.receipt(again.id))).toBe(
      sameText(await gateway.receipt((await replay(gateway, id)).id)),
    );
    expect(box.ran).toHaveLength(1);
  });

  test('which is itself canceled while it runs: it has one end, and nothing went wrong', async () => {
    const errors: string[] = [];
    const logger = { info() {}, warn() {}, error: (_: object, message: string) => void errors.push(message) };
    const chatty = scripted('one', async ({ sink }) => {
      for (let n = 0; n < 300; n += 1) await sink.emit(text(`line ${n}`));
    });
    const gateway = await openTestGateway({ ...REAL_TIME, agents: [chatty], logger });
    const { id } = await gateway.submit(await gateway.session());
    await gateway.until(id);
    const again = await gateway.send('task.replay', { task_id: id });
    await gateway.seen(again.resource.id, 'agent.message');
    await gateway.send('task.cancel', { task_id: again.resource.id });
    await gateway.runtime.idle();
    const events = await gateway.events(again.resource.id);
    expect((await gateway.task(again.resource.id)).status).toBe('CANCELED');
    expect(states(events).filter((state) => state === 'CANCELED')).toHaveLength(1);
    expect(events.length).toBeLessThan(300);
    expect(await gateway.receipt(again.resource.id)).toMatchObject({ lifecycle: { final_state: 'CANCELED' } });
    expect(errors).toEqual([]);
  });

  test('approved before it began, and asked about things that are no call', async () => {
    const { gateway, task } = await play(async ({ sink }) => sink.emit(text('thank you')), {}, { agent: 'careful' });
    expect(task.status).toBe('COMPLETED');
    const again = await replay(gateway, task.id);
    expect(again.status).toBe('COMPLETED');
    await expectFaithful(gateway, task, again);
  });

  test('refused before it began', async () => {
    const gateway = await openTestGateway({
      ...REAL_TIME,
      rules: RULES,
      agents: [scripted('careful', async () => undefined)],
    });
    const { id } = await gateway.submit(await gateway.session());
    await gateway.answer((await gateway.ask(id)).id, { approved: false, reason: 'no need' });
    const task = await gateway.until(id);
    expect(task).toMatchObject({ status: 'FAILED', failure: { code: 'policy_violation' } });
    const again = await replay(gateway, id);
    expect(again).toMatchObject({ status: 'FAILED', failure: { code: 'policy_violation' } });
    await expectFaithful(gateway, task, again);
  });

  test('approved, and then void because the tool had changed', async () => {
    let description = 'sends';
    const sender: ToolBackend = {
      ...toolbox('box', { ask: undefined }),
      list: async () => (await toolbox('box', { ask: undefined }).list()).map((skill) => ({ ...skill, description })),
    };
    const gateway = await openTestGateway({
      ...REAL_TIME,
      rules: RULES,
      tools: [sender],
      agents: [
        scripted('one', async ({ sink }) => sink.act({ kind: 'tool', tool: 'ask', tool_call_id: 'c' }).then(() => {})),
      ],
    });
    const { id } = await gateway.submit(await gateway.session());
    const ask = await gateway.ask(id);
    description = 'sends everything';
    await gateway.answer(ask.id, { approved: true });
    const task = await gateway.until(id);
    expect(kinds(await gateway.events(id)).filter((kind) => kind === 'tool.denied')).toHaveLength(1);
    const again = await replay(gateway, id);
    expect(again.status).toBe('COMPLETED');
    await expectFaithful(gateway, task, again);
  });

  test('done outside: proposed, held up, answered later, reported', async () => {
    const gateway = await openTestGateway({ ...REAL_TIME, rules: RULES });
    const { id } = await gateway.submit(await gateway.session(), { agent: 'none' });
    const action = { kind: 'tool' as const, tool: 'ask', tool_call_id: 'x', arguments: { n: 1 } };
    const open = await gateway.send('action.propose', { task_id: id, action, wait_ms: 0 });
    expect(open.decision).toMatchObject({ verdict: 'escalate' });
    const [ask] = await gateway.openAsks();
    await gateway.answer(ask!.id, { approved: true });
    const reported = await gateway.send('action.propose', { task_id: id, action, wait_ms: 0 });
    expect(reported.decision).toMatchObject({ verdict: 'allow' });
    // Asked, answered, and never taken up.
    const other = { ...action, tool_call_id: 'y' };
    await gateway.send('action.propose', { task_id: id, action: other, wait_ms: 0 });
    await gateway.answer((await gateway.openAsks())[0]!.id, { approved: true });
    await gateway.send('task.report', {
      task_id: id,
      facts: [{ event: 'tool.completed', payload: { tool_call_id: 'x', name: 'ask', status: 'ok', output: 1 } }],
      end: { state: 'COMPLETED' },
    });
    const task = await gateway.task(id);
    const again = await replay(gateway, id);
    expect(again.status).toBe('COMPLETED');
    await expectFaithful(gateway, task, again);
    // Nobody can report on a replay.
    const { resource } = await gateway.send('task.replay', { task_id: id });
    expect(
      await refusalOf(gateway.send('task.report', { task_id: resource.id, end: { state: 'FAILED' } })),
    ).toMatchObject({
      kind: 'conflict',
    });
    await gateway.runtime.idle();
  });

  test('interrupted by a crash and gone on with', async () => {
    const agents = () => [scripted('one', everything, { resume: true })];
    const options = { rules: RULES, settings: { inlineLimit: 300, deferTries: 2, sweepMs: 50 } };
    const first = await openMortal({ ...options, agents: agents(), tools: [tools()] });
    const { id } = await first.submit(await first.session());
    let dead = false;
    const struck = first.doom({ commit: 26, when: 'after' }).then(() => {
      dead = true;
    });
    const answered = eventually(async () => {
      for (const ask of await first.openAsks()) await sayYes(first, ask);
      return dead;
    });
    // Whatever is asked of a gateway at its death is never answered.
    await Promise.race([struck, answered]);
    await struck;
    await first.die();
    const gateway = await openTestGateway({
      ...REAL_TIME,
      ...options,
      dir: first.dir,
      agents: agents(),
      tools: [tools()],
    });
    await eventually(async () => {
      for (const ask of await gateway.openAsks()) await sayYes(gateway, ask);
      return (await gateway.task(id)).status === 'COMPLETED';
    });
    const again = await replay(gateway, id);
    expect(again).toMatchObject({ status: 'COMPLETED' });
    const diverged = (await gateway.events(again.id)).filter(({ event }) => event === 'replay.failed');
    expect(diverged).toEqual([]);
    expect(sameText(await gateway.receipt(again.id))).toBe(
      sameText(await gateway.receipt((await replay(gateway, id)).id)),
    );
  });
});
