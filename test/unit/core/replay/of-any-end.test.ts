/** Work is replayed as it was, whatever became of it: failed, canceled, refused, put off, or broken off by a crash. */
import { describe, expect, test } from 'vitest';
import type { ToolBackend } from '../../../../src/ports/index.ts';
import { needsFile } from '../../../support/gateway/test-store.ts';
import { openMortal } from '../../../support/tasks/killable-gateway.ts';
import { faultOf, kinds, type Life, openLife, path, until } from '../../../support/tasks/life.ts';
import { everything, expectFaithful, play, RULES, replay, sayYes, tools } from '../../../support/tasks/replay.ts';
import { sameText } from '../../../support/tasks/same-receipt.ts';
import { latch, scripted, stopped, text, toolbox } from '../../../support/tasks/script.ts';

needsFile();

describe('whatever became of the work', () => {
  test('failed', async () => {
    const { life, task } = await play(async ({ sink }) => {
      await sink.act({ kind: 'tool', tool: 'write', tool_call_id: 'c' });
      throw new Error('lost the thread');
    });
    const again = await replay(life, task.id);
    expect(again).toMatchObject({ status: 'FAILED', failure: { code: 'agent_failed', message: 'lost the thread' } });
    await expectFaithful(life, task, again);
    expect((await life.receipt(again.id)).lifecycle).toEqual((await life.receipt(task.id)).lifecycle);
  });

  test('with questions the caller took back', async () => {
    const { life, task } = await play(async ({ sink }) => {
      const action = { kind: 'tool', tool: 'ask', tool_call_id: 'c' } as const;
      const withdrawn = AbortSignal.abort();
      await sink.ask({ kind: 'approval', action, withdrawn });
      await sink.act({ kind: 'tool', tool: 'ask', tool_call_id: 'd' }, undefined, withdrawn);
      await sink.ask({ kind: 'input', key: 'k', question: '?', withdrawn });
      return { state: 'COMPLETED' };
    });
    const again = await replay(life, task.id);
    await expectFaithful(life, task, again);
    expect(await life.openAsks()).toEqual([]);
  });

  test('canceled, with calls running, asked about and put off, and a question open', async () => {
    const going = latch();
    const box = toolbox('box', { ask: undefined, later: undefined, hang: () => new Promise(() => {}) });
    const life = await openLife({
      rules: RULES,
      tools: [box],
      settings: { graceMs: 20, deferTries: 1000 },
      backends: [
        scripted('one', async ({ sink, signal }) => {
          for (const tool of ['hang', 'ask', 'later']) {
            void sink.act({ kind: 'tool', tool, tool_call_id: tool }).catch(() => {});
          }
          void sink.ask({ kind: 'input', key: 'k', question: '?' }).catch(() => {});
          await until(async () => (await life.openAsks()).length === 2 && box.ran.length === 1);
          going.open();
          await stopped(signal);
        }),
      ],
    });
    const { id } = await life.submit(await life.session());
    await going.opened;
    await life.do('task.cancel', { task_id: id });
    const task = await life.task(id);
    const again = await replay(life, id);
    expect(again).toMatchObject({ status: 'CANCELED', completed_at: null });
    await expectFaithful(life, task, again);
    expect(await life.openAsks()).toEqual([]);
    expect(sameText(await life.receipt(again.id))).toBe(sameText(await life.receipt((await replay(life, id)).id)));
    expect(box.ran).toHaveLength(1);
  });

  test('which is itself canceled while it runs: it has one end, and nothing went wrong', async () => {
    const errors: string[] = [];
    const logger = { info() {}, warn() {}, error: (_: object, message: string) => void errors.push(message) };
    const chatty = scripted('one', async ({ sink }) => {
      for (let n = 0; n < 300; n += 1) await sink.emit(text(`line ${n}`));
    });
    const life = await openLife({ backends: [chatty], logger });
    const { id } = await life.submit(await life.session());
    await life.ended(id);
    const again = await life.do('task.replay', { task_id: id });
    await life.seen(again.resource.id, 'agent.message');
    await life.do('task.cancel', { task_id: again.resource.id });
    await life.runtime.idle();
    const events = await life.events(again.resource.id);
    expect((await life.task(again.resource.id)).status).toBe('CANCELED');
    expect(path(events).filter((state) => state === 'CANCELED')).toHaveLength(1);
    expect(events.length).toBeLessThan(300);
    expect(await life.receipt(again.resource.id)).toMatchObject({ lifecycle: { final_state: 'CANCELED' } });
    expect(errors).toEqual([]);
  });

  test('approved before it began, and asked about things that are no call', async () => {
    const { life, task } = await play(async ({ sink }) => sink.emit(text('thank you')), {}, { agent: 'careful' });
    expect(task.status).toBe('COMPLETED');
    const again = await replay(life, task.id);
    expect(again.status).toBe('COMPLETED');
    await expectFaithful(life, task, again);
  });

  test('refused before it began', async () => {
    const life = await openLife({ rules: RULES, backends: [scripted('careful', async () => undefined)] });
    const { id } = await life.submit(await life.session());
    await life.answer((await life.ask(id)).id, { approved: false, reason: 'no need' });
    const task = await life.ended(id);
    expect(task).toMatchObject({ status: 'FAILED', failure: { code: 'policy_violation' } });
    const again = await replay(life, id);
    expect(again).toMatchObject({ status: 'FAILED', failure: { code: 'policy_violation' } });
    await expectFaithful(life, task, again);
  });

  test('approved, and then void because the tool had changed', async () => {
    let description = 'sends';
    const sender: ToolBackend = {
      ...toolbox('box', { ask: undefined }),
      list: async () => (await toolbox('box', { ask: undefined }).list()).map((skill) => ({ ...skill, description })),
    };
    const life = await openLife({
      rules: RULES,
      tools: [sender],
      backends: [
        scripted('one', async ({ sink }) => sink.act({ kind: 'tool', tool: 'ask', tool_call_id: 'c' }).then(() => {})),
      ],
    });
    const { id } = await life.submit(await life.session());
    const ask = await life.ask(id);
    description = 'sends everything';
    await life.answer(ask.id, { approved: true });
    const task = await life.ended(id);
    expect(kinds(await life.events(id)).filter((kind) => kind === 'tool.denied')).toHaveLength(1);
    const again = await replay(life, id);
    expect(again.status).toBe('COMPLETED');
    await expectFaithful(life, task, again);
  });

  test('done outside: proposed, held up, answered later, reported', async () => {
    const life = await openLife({ rules: RULES });
    const { id } = await life.submit(await life.session(), { agent: 'none' });
    const action = { kind: 'tool' as const, tool: 'ask', tool_call_id: 'x', arguments: { n: 1 } };
    const open = await life.do('action.propose', { task_id: id, action, wait_ms: 0 });
    expect(open.decision).toMatchObject({ verdict: 'escalate' });
    const [ask] = await life.openAsks();
    await life.answer(ask!.id, { approved: true });
    const reported = await life.do('action.propose', { task_id: id, action, wait_ms: 0 });
    expect(reported.decision).toMatchObject({ verdict: 'allow' });
    // Asked, answered, and never taken up.
    const other = { ...action, tool_call_id: 'y' };
    await life.do('action.propose', { task_id: id, action: other, wait_ms: 0 });
    await life.answer((await life.openAsks())[0]!.id, { approved: true });
    await life.do('task.report', {
      task_id: id,
      facts: [{ event: 'tool.completed', payload: { tool_call_id: 'x', name: 'ask', status: 'ok', output: 1 } }],
      end: { state: 'COMPLETED' },
    });
    const task = await life.task(id);
    const again = await replay(life, id);
    expect(again.status).toBe('COMPLETED');
    await expectFaithful(life, task, again);
    // Nobody can report on a replay.
    const { resource } = await life.do('task.replay', { task_id: id });
    expect(await faultOf(life.do('task.report', { task_id: resource.id, end: { state: 'FAILED' } }))).toMatchObject({
      kind: 'conflict',
    });
    await life.runtime.idle();
  });

  test('interrupted by a crash and gone on with', async () => {
    const agents = () => [scripted('one', everything, { resume: true })];
    const options = { rules: RULES, settings: { inlineLimit: 300, deferTries: 2, sweepMs: 50 } };
    const first = await openMortal({ ...options, backends: agents(), tools: [tools()] });
    const { id } = await first.submit(await first.session());
    let dead = false;
    const struck = first.doom({ commit: 26, when: 'after' }).then(() => {
      dead = true;
    });
    const answered = until(async () => {
      for (const ask of await first.openAsks()) await sayYes(first as unknown as Life, ask);
      return dead;
    });
    // Whatever is asked of a gateway at its death is never answered.
    await Promise.race([struck, answered]);
    await struck;
    await first.die();
    const life = await openLife({ ...options, dir: first.dir, backends: agents(), tools: [tools()] });
    await until(async () => {
      for (const ask of await life.openAsks()) await sayYes(life, ask);
      return (await life.task(id)).status === 'COMPLETED';
    });
    const again = await replay(life, id);
    expect(again).toMatchObject({ status: 'COMPLETED' });
    const diverged = (await life.events(again.id)).filter(({ event }) => event === 'replay.failed');
    expect(diverged).toEqual([]);
    expect(sameText(await life.receipt(again.id))).toBe(sameText(await life.receipt((await replay(life, id)).id)));
  });
});
