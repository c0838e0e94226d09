/** What a dead process left behind, whatever state it was in, is taken by one gateway and brought to an end. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import {
  freshDir,
  kinds,
  openTestGateway,
  REAL_TIME,
  states,
  type TestGateway,
} from '../../support/gateway/test-gateway.ts';
import { needsFile } from '../../support/gateway/test-store.ts';
import { MIXED } from '../../support/policy/rules.ts';
import { type MortalGateway, openMortal, settings } from '../../support/tasks/killable-gateway.ts';
import { latch, patient, type Script, scripted, stopped, toolbox } from '../../support/tasks/script.ts';
import { expectLegal } from '../../support/tasks/states.ts';

needsFile();

describe('whatever state it was in', () => {
  const frail = () => [
    scripted('works', async ({ sink, signal }) => {
      await sink.act({ kind: 'tool', tool: 'write', tool_call_id: 'done' });
      void sink.act({ kind: 'tool', tool: 'slow', tool_call_id: 'running' }).catch(() => {});
      await stopped(signal);
    }),
    scripted('asks', async ({ sink }) => {
      await sink.act({ kind: 'tool', tool: 'ask', tool_call_id: 'asked' });
    }),
    scripted('wonders', async ({ sink }) => {
      await sink.ask({ kind: 'input', key: 'k', question: 'What?' });
    }),
    scripted('deaf', () => new Promise(() => {})),
  ];
  const box = () => toolbox('box', { write: undefined, ask: undefined, slow: () => new Promise(() => {}) });

  /** One task in every state a task can be in, then death. */
  async function leaveBehind(): Promise<{ gateway: MortalGateway; ids: Record<string, string> }> {
    const gateway = await openMortal({
      rules: MIXED,
      agents: frail(),
      tools: [box()],
      settings: { ...settings, graceMs: 60_000 },
    });
    const at = async (agent: string) => {
      const session = await gateway.session();
      return { session, id: (await gateway.submit(session, { agent })).id };
    };
    const working = await at('works');
    const queued = await gateway.submit(working.session, { agent: 'wonders' });
    const auth = await at('asks');
    const input = await at('wonders');
    const canceling = await at('deaf');
    const outside = await at('none');
    const replayed = await at('none');
    await eventually(
      async () => (await gateway.events(working.id)).filter(({ event }) => event === 'tool.requested').length === 2,
    );
    await gateway.ask(auth.id);
    await gateway.ask(input.id);
    void gateway.send('task.cancel', { task_id: canceling.id, reason: 'enough' });
    await gateway.seen(canceling.id, 'user.cancel_requested');
    await gateway.send('task.report', { task_id: replayed.id, end: { state: 'COMPLETED' } });
    const states = await Promise.all(
      [working, queued, auth, input, canceling, outside].map(async ({ id }) => (await gateway.task(id)).status),
    );
    expect(states).toEqual(['WORKING', 'SUBMITTED', 'AUTH_REQUIRED', 'INPUT_REQUIRED', 'WORKING', 'WORKING']);
    await gateway.die();
    return {
      gateway,
      ids: {
        working: working.id,
        queued: queued.id,
        auth: auth.id,
        input: input.id,
        canceling: canceling.id,
        outside: outside.id,
      },
    };
  }

  test('an agent that cannot go on has failed, and says what is not known', async () => {
    const { gateway, ids } = await leaveBehind();
    const next = await openTestGateway({
      ...REAL_TIME,
      dir: gateway.dir,
      rules: MIXED,
      agents: frail(),
      tools: [box()],
      settings,
    });
    expect(next.recovered).toEqual({ resumed: 0, started: 1, failed: 4 });
    for (const name of ['working', 'auth', 'input']) {
      const end = await next.until(ids[name]!);
      expect(end).toMatchObject({ status: 'FAILED', failure: { code: 'interrupted' }, completed_at: null });
      const receipt = await next.receipt(ids[name]!);
      expect(receipt.metadata).toMatchObject({ interrupted: true });
      expect(receipt.lifecycle.final_state).toBe('FAILED');
      expectLegal(await next.events(ids[name]!));
    }
    expect((await next.receipt(ids.working!)).side_effects.tool_calls).toMatchObject([
      { call_id: 'done', status: 'succeeded' },
      { call_id: 'running', status: 'failed', metadata: { code: 'outcome_unknown', stopped_while: 'running' } },
    ]);
    // It waited for a yes that never came: that much is known.
    expect((await next.receipt(ids.auth!)).side_effects.tool_calls).toMatchObject([
      { call_id: 'asked', status: 'canceled', metadata: { code: 'canceled', stopped_while: 'waiting_for_approval' } },
    ]);
    expect(await next.task(ids.canceling!)).toMatchObject({ status: 'CANCELED', completed_at: null });
    expect(states(await next.events(ids.canceling!))).toEqual(['SUBMITTED', 'WORKING', 'CANCELED']);

    // What had not begun begins, and asks its own question; nobody else's is left open.
    await eventually(async () => (await next.openAsks()).length === 1);
    expect((await next.openAsks())[0]!.task_id).toBe(ids.queued);
    await next.answer((await next.openAsks())[0]!.id, { value: 1 });
    expect((await next.until(ids.queued!)).status).toBe('COMPLETED');

    // Work outside never noticed.
    expect((await next.task(ids.outside!)).status).toBe('WORKING');
    await next.send('task.report', { task_id: ids.outside!, end: { state: 'COMPLETED' } });
    expect((await next.task(ids.outside!)).status).toBe('COMPLETED');
    expect((await next.receipt(ids.outside!)).metadata).not.toHaveProperty('interrupted');
  });

  test('two gateways look at once, and each orphan is taken by one of them', async () => {
    const { gateway, ids } = await leaveBehind();
    const open = () =>
      openTestGateway({ ...REAL_TIME, dir: gateway.dir, rules: MIXED, agents: frail(), tools: [box()], settings });
    const gateways = await Promise.all([open(), open(), open()]);
    const [one] = gateways as [TestGateway, TestGateway, TestGateway];
    for (const name of ['working', 'auth', 'input', 'canceling']) await one.until(ids[name]!);
    await eventually(async () => (await one.openAsks()).length === 1);
    await one.answer((await one.openAsks())[0]!.id, { value: 1 });
    await one.until(ids.queued!);
    for (const runtime of gateways) await runtime.runtime.idle();
    for (const [name, id] of Object.entries(ids)) {
      const events = await one.events(id);
      expectLegal(events);
      const ends = states(events).filter((state) => ['COMPLETED', 'FAILED', 'CANCELED'].includes(state));
      expect(ends, name).toHaveLength(name === 'outside' ? 0 : 1);
      expect((await one.runtime.store.receipts({ task: id })).length, name).toBe(name === 'outside' ? 0 : 1);
      expect(
        kinds(events).filter((kind) => kind === 'task.started'),
        name,
      ).toHaveLength(1);
    }
  });

  test('two gateways that can go on: one does', async () => {
    const starts: string[] = [];
    const script: Script = async ({ work, sink }) => {
      starts.push(work.task.id);
      await sink.ask({ kind: 'input', key: 'k', question: '?' });
    };
    const open = () =>
      openTestGateway({ ...REAL_TIME, dir: first.dir, agents: [scripted('one', script, { resume: true })], settings });
    const first = await openMortal({ agents: [scripted('one', script, { resume: true })], settings });
    const ids: string[] = [];
    for (let n = 0; n < 8; n += 1) ids.push((await first.submit(await first.session())).id);
    await eventually(async () => (await first.openAsks()).length === 8);
    await first.die();
    starts.length = 0;
    const [one, two] = await Promise.all([open(), open()]);
    await eventually(() => starts.length === 8);
    for (const id of ids) await eventually(async () => (await one.task(id)).status === 'INPUT_REQUIRED');
    expect((await one.openAsks()).length).toBe(8);
    for (const ask of await one.openAsks()) await two.answer(ask.id, { value: 1 });
    for (const id of ids) {
      expect((await one.until(id)).status).toBe('COMPLETED');
      const events = kinds(await one.events(id));
      expect(events.filter((kind) => kind === 'vendor.tollbridge.recovered')).toHaveLength(1);
    }
    expect(starts.toSorted()).toEqual(ids.toSorted());
  });

  test('order in a session survives: what ran first ends first, what waited comes next', async () => {
    const agents = (resume: boolean) => [scripted('one', patient, { resume })];
    const first = await openMortal({ agents: agents(true), settings });
    const session = await first.session();
    const ids = [await first.submit(session), await first.submit(session), await first.submit(session)].map(
      ({ id }) => id,
    );
    await first.die();
    const next = await openTestGateway({ ...REAL_TIME, dir: first.dir, agents: agents(true), settings });
    for (const [at, id] of ids.entries()) {
      await eventually(async () => (await next.task(id)).status === 'WORKING');
      for (const later of ids.slice(at + 1)) expect((await next.task(later)).status).toBe('SUBMITTED');
      await next.send('task.cancel', { task_id: id });
    }
  });

  test('a gateway that closes properly leaves resumable work to the next, and ends the rest', async () => {
    const dir = await freshDir();
    const agents = () => [scripted('steady', patient, { resume: true }), scripted('frail', patient)];
    const first = await openTestGateway({ ...REAL_TIME, dir, agents: agents(), settings });
    const steady = await first.submit(await first.session(), { agent: 'steady' });
    const frailTask = await first.submit(await first.session(), { agent: 'frail' });
    await first.close();
    const next = await openTestGateway({ ...REAL_TIME, dir, agents: agents(), settings });
    expect(next.recovered).toEqual({ resumed: 1, started: 0, failed: 0 });
    expect(await next.task(frailTask.id)).toMatchObject({ status: 'CANCELED' });
    expect((await next.events(frailTask.id)).at(-1)!.payload.reason).toBe('the gateway was shut down');
    expect((await next.task(steady.id)).status).toBe('WORKING');
    await next.send('task.cancel', { task_id: steady.id });
  });
});

describe('a process killed for real', () => {
  const script = fileURLToPath(new URL('../../support/tasks/victim.ts', import.meta.url));

  async function victim(dir: string): Promise<{ child: ChildProcess; said: (word: string) => Promise<string> }> {
    const child = spawn(process.execPath, ['--import', 'tsx', script, dir], { stdio: ['ignore', 'pipe', 'inherit'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    let output = '';
    child.stdout!.on('data', (chunk) => {
      output += String(chunk);
    });
    const said = async (word: string) => {
      let found: RegExpExecArray | null = null;
      await eventually(() => {
        found = new RegExp(`^${word} (.*)$`, 'm').exec(output);
        return found !== null;
      });
      return found![1]!;
    };
    return { child, said };
  }

  test('is found dead, and its work goes on where it stopped', { timeout: 60_000 }, async () => {
    const dir = await freshDir();
    const { child, said: hear } = await victim(dir);
    const [id, ask] = (await hear('waiting')).split(' ') as [string, string];

    // While it lives, nobody takes its work.
    const { createVictimAgent, createVictimTools } = await import('../../support/tasks/victim.ts');
    const open = () =>
      openTestGateway({
        ...REAL_TIME,
        dir,
        rules: MIXED,
        agents: [createVictimAgent()],
        tools: [createVictimTools(dir)],
        settings,
      });
    const early = await open();
    expect(early.recovered).toEqual({ resumed: 0, started: 0, failed: 0 });
    await early.close();

    const exited = latch();
    child.on('exit', () => exited.open());
    child.kill('SIGKILL');
    await exited.opened;
    const next = await open();
    expect(next.recovered).toEqual({ resumed: 1, started: 0, failed: 0 });
    await eventually(async () => (await next.task(id)).status === 'AUTH_REQUIRED');
    expect((await next.openAsks()).map((open) => open.id)).toEqual([ask]);
    await next.answer(ask, { approved: true });
    expect((await next.until(id)).status).toBe('COMPLETED');
    const ran = await readFile(join(dir, 'ran.txt'), 'utf8');
    expect(ran.trim().split('\n')).toEqual(['write 1', 'ask 2']);
    expect(kinds(await next.events(id)).filter((kind) => kind === 'agent.message')).toHaveLength(2);
    const { resource } = await next.send('receipt.verify', { receipt_id: (await next.task(id)).receipt_id! });
    expect(resource).toMatchObject({ object: 'receipt' });
  });
});
