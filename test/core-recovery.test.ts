/** What a killed process leaves behind, and what becomes of it: nothing is done twice, nothing is said twice. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import type { CoreEvent } from '../src/model/events.ts';
import type { Message } from '../src/model/resources.ts';
import { afterwards, freshDir, kinds, type Life, MIXED, openLife, path, said, until } from './life/house.ts';
import { type MortalLife, openMortal } from './life/mortal.ts';
import { latch, patient, type Script, scripted, stopped, type Toolbox, text, toolbox } from './life/script.ts';

const LEGAL: Readonly<Record<string, readonly string[]>> = {
  null: ['SUBMITTED'],
  SUBMITTED: ['WORKING', 'CANCELED', 'FAILED'],
  WORKING: ['INPUT_REQUIRED', 'AUTH_REQUIRED', 'COMPLETED', 'FAILED', 'CANCELED'],
  INPUT_REQUIRED: ['WORKING', 'FAILED', 'CANCELED'],
  AUTH_REQUIRED: ['WORKING', 'FAILED', 'CANCELED'],
};
function expectLegal(events: readonly CoreEvent[]): void {
  for (const { event, payload } of events) {
    if (event.startsWith('task.')) expect(LEGAL[String(payload.from)]).toContain(payload.to);
  }
}

const LONG = 'so much to say '.repeat(30);

/** Says and does one of everything, the same again each time it is asked. */
const thorough: Script = async ({ sink }) => {
  await sink.emit(text('let me see'));
  await sink.emit(text('let me see')); // twice on purpose: the second is not the first again
  await sink.emit({
    event: 'span.completed',
    payload: { span: { id: 's1', kind: 'llm', call_id: 'main:1' }, response: { answer: 42 } },
  });
  await sink.emit({ event: 'vendor.tollbridge.usage', payload: { provider: 'p', model: 'm', input_tokens: 7 } });
  await sink.emit({ event: 'com.example.mood', payload: { mood: 'good' } });
  await sink.emit({ event: 'vendor.tollbridge.checkpoint', payload: { checkpoint_id: 'half', value: { at: 1 } } });
  await sink.emit({ event: 'agent.reasoning_summary', payload: { text: LONG } });
  await sink.emit(text(LONG));
  await sink.artifact({ kind: 'file', name: 'a.txt', mime_type: 'text/plain', bytes: Buffer.from('one file') });
  const first = await sink.act({ kind: 'tool', tool: 'write', tool_call_id: 'c1', arguments: { n: 1 } });
  await sink.emit({
    event: 'tool.requested',
    payload: { tool_call_id: 'o1', name: 'grep', kind: 'tool', input: { for: 'x' } },
  });
  await sink.emit({
    event: 'tool.completed',
    payload: { tool_call_id: 'o1', name: 'grep', status: 'ok', output: 'x' },
  });
  const side = { type: 'fs_write', path: '/tmp/x', operation: 'create', evidence: 'observed' };
  await sink.emit({ event: 'vendor.tollbridge.side_effect', payload: side });
  await sink.act({ kind: 'tool', tool: 'no', tool_call_id: 'c2' });
  await sink.act({ kind: 'tool', tool: 'mend', tool_call_id: 'c3', arguments: { n: 3 } });
  await sink.act({ kind: 'tool', tool: 'ask', tool_call_id: 'c4', arguments: { n: 4 } });
  const may = await sink.ask({ kind: 'approval', action: { kind: 'tool', tool: 'askshell', tool_call_id: 'a1' } });
  const ok = await sink.ask({ kind: 'approval', action: { kind: 'tool', tool: 'shell', tool_call_id: 'a2' } });
  const wanted = await sink.ask({ kind: 'input', key: 'colour', question: 'Which colour?' });
  await sink.emit(text(`${first.kind} ${may.kind} ${ok.kind} ${wanted.kind}`));
};
const boxOf = (): Toolbox => toolbox('box', { write: undefined, no: undefined, mend: undefined, ask: undefined });
const settings = { inlineLimit: 300, graceMs: 50, sweepMs: 50 };

/** Says yes to whatever is asked until the task is over. */
async function seeThrough(life: Pick<Life, 'openAsks' | 'answer' | 'task' | 'house'>, id: string): Promise<void> {
  await until(async () => {
    for (const ask of await life.openAsks()) {
      await life.answer(ask.id, ask.kind === 'input' ? { value: 'red' } : { approved: true }).catch(() => {});
    }
    return ['COMPLETED', 'FAILED', 'CANCELED'].includes((await life.task(id)).status);
  });
}

/** What an agent said and did, without the names the bridge gives. */
function told(events: readonly CoreEvent[]): string[] {
  const core = /^(task|receipt|session|user)\.|recovered|decided|ask_|tool\.(approv|denied)/;
  const unnamed = (name: string, value: unknown) => (name === 'artifact_id' ? null : value);
  return events
    .filter(({ event }) => !core.test(event))
    .map(({ event, payload }) => {
      const { artifact, message, ...rest } = payload as { artifact?: { sha256: string }; message?: Message };
      return JSON.stringify([event, rest, artifact?.sha256, message?.parts], unnamed);
    })
    .sort();
}

describe('work a rule wants a person to allow', () => {
  const careful = `
- { id: ordinary, then: allow }
- { id: first-ask, when: { kind: prompt, principal: ana }, then: ask, say: think first }
`;

  test.each([
    ['the question was put', true, 'COMPLETED', 1],
    ['the question was put', false, 'FAILED', 0],
    ['anyone was asked', true, 'COMPLETED', 1],
    ['anyone was asked', false, 'FAILED', 0],
  ])('waits for a yes over a crash (%s; %s)', async (moment, approved, state, times) => {
    let begun = 0;
    const agents = () => [
      scripted(
        'one',
        async () => {
          begun += 1;
        },
        { resume: true },
      ),
    ];
    const first = await openMortal({ rules: careful, backends: agents(), settings });
    const session = await first.session();
    const struck = moment === 'anyone was asked' ? first.doom({ commit: 2, when: 'before' }) : undefined;
    const { id } = await first.submit(session);
    await (struck ?? first.ask(id));
    await first.die();

    const second = await openLife({ dir: first.dir, rules: careful, backends: agents(), settings });
    const ask = await second.ask(id);
    expect(begun).toBe(0);
    // In the name of whoever gave the work: the rule is about ana, and was asked about ana again.
    expect(ask.action.actor).toBe('ana');
    expect(await second.openAsks()).toHaveLength(1);
    await second.answer(ask.id, { approved });
    expect((await second.ended(id)).status).toBe(state);
    expect(begun).toBe(times);
  });
});

describe('an agent that can go on', () => {
  test('dies after any commit, or just before it: nothing twice, nothing lost', { timeout: 180_000 }, async () => {
    const control = await openMortal({
      rules: MIXED,
      backends: [scripted('one', thorough)],
      tools: [boxOf()],
      settings,
    });
    const session = await control.session();
    const { id } = await control.submit(session);
    const from = control.written();
    await seeThrough(control, id);
    const expected = told(await control.events(id));
    const commits = control.written() - from;
    expect(commits).toBeGreaterThan(24);
    await control.die();

    for (let commit = 1; commit <= commits; commit += 1) {
      for (const when of ['before', 'after'] as const) {
        const box = boxOf();
        const agents = () => [scripted('one', thorough, { resume: true })];
        const first = await openMortal({ rules: MIXED, backends: agents(), tools: [box], settings });
        const task = await first.submit(await first.session());
        const struck = first.doom({ commit, when });
        await Promise.race([struck, seeThrough(first, task.id)]);
        await struck;
        await first.die();

        const second = await openLife({ dir: first.dir, rules: MIXED, backends: agents(), tools: [box], settings });
        await seeThrough(second, task.id);
        const events = await second.events(task.id);
        const where = `${when} commit ${commit}: ${kinds(events).join(' ')}`;
        expectLegal(events);
        expect((await second.task(task.id)).status, where).toBe('COMPLETED');
        expect(kinds(events).filter((kind) => kind === 'vendor.tollbridge.recovered').length, where).toBeLessThan(2);

        // Each call once at most, and at least once unless the record says that nobody knows.
        for (const call of ['write', 'mend', 'ask']) {
          const ran = box.ran.filter(({ tool }) => tool === call).length;
          const unknown = events.some(({ payload }) => payload.code === 'outcome_unknown' && payload.name === call);
          expect(ran, `${call} ${where}`).toBeLessThan(2);
          expect(ran === 1 || unknown, `${call} ${where}`).toBe(true);
        }
        expect(box.ran.some(({ tool }) => tool === 'no')).toBe(false);

        const lost = events.filter(({ payload }) => payload.code === 'outcome_unknown');
        expect(lost.length, where).toBeLessThan(2);
        const known = (line: string) => !lost.some(({ payload }) => line.includes(`"${payload.tool_call_id}"`));
        const last = (line: string) => !line.includes('done approved approved value');
        const here = told(events).filter(known);
        expect(here.filter(last), where).toEqual(expected.filter(known).filter(last));
        const asked = events.filter(({ event }) => event === 'vendor.tollbridge.ask_opened').length;
        expect(asked, where).toBe(3);
        await second.close();
      }
    }
  });

  test('finds its question still open, answers given while it was away, and the words said to it', async () => {
    const heardBy: string[][] = [];
    const script: Script = async ({ sink, heard }) => {
      const answer = await sink.ask({ kind: 'input', key: 'k', question: 'Which?' });
      await until(() => heard.length === 1);
      heardBy.push(heard.map((message) => String((message.parts as { text: string }[])[0]!.text)));
      await sink.emit(text(`got ${(answer as { value: string }).value}`));
    };
    const agents = () => [scripted('one', script, { resume: true })];
    const first = await openMortal({ backends: agents(), settings });
    const session = await first.session();
    const { id } = await first.submit(session);
    const ask = await first.ask(id);
    await first.do('task.message', { task_id: id, kind: 'interrupt', message: said('hurry') });
    await first.die();

    // A house without the agent can still take the answer.
    const other = await openLife({ dir: first.dir, settings: { ...settings, sweepMs: 60_000 }, backends: agents() });
    expect(other.recovered).toEqual({ resumed: 1, started: 0, failed: 0 });
    await until(async () => (await other.task(id)).status === 'INPUT_REQUIRED');
    expect((await other.openAsks()).map((open) => open.id)).toEqual([ask.id]);
    await other.answer(ask.id, { value: 'blue' });
    expect((await other.ended(id)).status).toBe('COMPLETED');
    expect(heardBy).toEqual([['hurry']]);
    const events = await other.events(id);
    expectLegal(events);
    expect(path(events)).toEqual([
      'SUBMITTED',
      'WORKING',
      'INPUT_REQUIRED',
      'WORKING',
      'INPUT_REQUIRED',
      'WORKING',
      'COMPLETED',
    ]);
    expect((await other.receipt(id)).metadata).toMatchObject({ interrupted: true });
  });

  test('an answer that came before the crash and was not yet taken is taken once', async () => {
    const script: Script = async ({ sink }) => {
      const done = await sink.act({ kind: 'tool', tool: 'ask', tool_call_id: 'c1' });
      await sink.emit(text(done.kind));
    };
    const box = boxOf();
    const agents = () => [scripted('one', script, { resume: true })];
    const first = await openMortal({ rules: MIXED, backends: agents(), tools: [box], settings });
    const { id } = await first.submit(await first.session());
    const ask = await first.ask(id);
    const struck = first.doom({ commit: 1, when: 'after' }); // the answer itself is the last thing written
    void first.answer(ask.id, { approved: true });
    await struck;
    await first.die();
    const second = await openLife({ dir: first.dir, rules: MIXED, backends: agents(), tools: [box], settings });
    expect((await second.ended(id)).status).toBe('COMPLETED');
    expect(box.ran).toHaveLength(1);
    const events = kinds(await second.events(id));
    for (const once of ['vendor.tollbridge.ask_opened', 'vendor.tollbridge.ask_used', 'tool.completed']) {
      expect(events.filter((kind) => kind === once)).toHaveLength(1);
    }
  });

  test('is left for the house it belongs to by one that only visits, and ended by a keeper without the agent', async () => {
    const agents = () => [scripted('one', async ({ sink }) => void (await sink.emit(text('done'))), { resume: true })];
    const stuck = [scripted('one', async ({ signal }) => await stopped(signal), { resume: true })];
    const first = await openMortal({ backends: stuck, settings });
    const session = await first.session();
    const { id } = await first.submit(session);
    const other = await first.submit(await first.session());
    await first.die();
    const visiting = { ...settings, keeper: false };
    const visitor = await openLife({ dir: first.dir, backends: [], settings: visiting });
    expect(visitor.recovered).toEqual({ resumed: 0, started: 0, failed: 0 });
    expect((await visitor.task(id)).status).toBe('WORKING');
    await visitor.house.close();
    const home = await openLife({ dir: first.dir, backends: agents(), settings: visiting });
    expect(home.recovered).toEqual({ resumed: 2, started: 0, failed: 0 });
    expect((await home.ended(id)).status).toBe('COMPLETED');
    expect((await home.ended(other.id)).status).toBe('COMPLETED');

    const again = await openMortal({ backends: stuck, settings });
    const lost = await again.submit(await again.session());
    await again.die();
    const keeper = await openLife({ dir: again.dir, backends: [], settings });
    expect((await keeper.ended(lost.id)).status).toBe('FAILED');
  });

  test('an approval given for one act does not serve another that asks in its place', async () => {
    let to = 'ana';
    const script: Script = async ({ sink }) => {
      await sink.act({ kind: 'tool', tool: 'ask', tool_call_id: 'c1', arguments: { to } });
    };
    const box = boxOf();
    const agents = () => [scripted('one', script, { resume: true })];
    const first = await openMortal({ rules: MIXED, backends: agents(), tools: [box], settings });
    const { id } = await first.submit(await first.session());
    const ask = await first.ask(id);
    const struck = first.doom({ commit: 1, when: 'after' });
    void first.answer(ask.id, { approved: true });
    await struck;
    await first.die();
    to = 'mallory';
    const second = await openLife({ dir: first.dir, rules: MIXED, backends: agents(), tools: [box], settings });
    await until(async () => (await second.openAsks()).length === 1);
    const [again] = await second.openAsks();
    expect(again!.id).not.toBe(ask.id);
    expect(again!.action).toMatchObject({ arguments: { to: 'mallory' } });
    expect(box.ran).toEqual([]);
    await second.answer(again!.id, { approved: false, reason: 'not him' });
    await second.ended(id);
    expect(box.ran).toEqual([]);
  });
});

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
  async function leaveBehind(): Promise<{ life: MortalLife; ids: Record<string, string> }> {
    const life = await openMortal({
      rules: MIXED,
      backends: frail(),
      tools: [box()],
      settings: { ...settings, graceMs: 60_000 },
    });
    const at = async (agent: string) => {
      const session = await life.session();
      return { session, id: (await life.submit(session, { agent })).id };
    };
    const working = await at('works');
    const queued = await life.submit(working.session, { agent: 'wonders' });
    const auth = await at('asks');
    const input = await at('wonders');
    const canceling = await at('deaf');
    const outside = await at('none');
    const replayed = await at('none');
    await until(
      async () => (await life.events(working.id)).filter(({ event }) => event === 'tool.requested').length === 2,
    );
    await life.ask(auth.id);
    await life.ask(input.id);
    void life.do('task.cancel', { task_id: canceling.id, reason: 'enough' });
    await life.seen(canceling.id, 'user.cancel_requested');
    await life.do('task.report', { task_id: replayed.id, end: { state: 'COMPLETED' } });
    const states = await Promise.all(
      [working, queued, auth, input, canceling, outside].map(async ({ id }) => (await life.task(id)).status),
    );
    expect(states).toEqual(['WORKING', 'SUBMITTED', 'AUTH_REQUIRED', 'INPUT_REQUIRED', 'WORKING', 'WORKING']);
    await life.die();
    return {
      life,
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
    const { life, ids } = await leaveBehind();
    const next = await openLife({ dir: life.dir, rules: MIXED, backends: frail(), tools: [box()], settings });
    expect(next.recovered).toEqual({ resumed: 0, started: 1, failed: 4 });
    for (const name of ['working', 'auth', 'input']) {
      const end = await next.ended(ids[name]!);
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
    expect(path(await next.events(ids.canceling!))).toEqual(['SUBMITTED', 'WORKING', 'CANCELED']);

    // What had not begun begins, and asks its own question; nobody else's is left open.
    await until(async () => (await next.openAsks()).length === 1);
    expect((await next.openAsks())[0]!.task_id).toBe(ids.queued);
    await next.answer((await next.openAsks())[0]!.id, { value: 1 });
    expect((await next.ended(ids.queued!)).status).toBe('COMPLETED');

    // Work outside never noticed.
    expect((await next.task(ids.outside!)).status).toBe('WORKING');
    await next.do('task.report', { task_id: ids.outside!, end: { state: 'COMPLETED' } });
    expect((await next.task(ids.outside!)).status).toBe('COMPLETED');
    expect((await next.receipt(ids.outside!)).metadata).not.toHaveProperty('interrupted');
  });

  test('two houses look at once, and each orphan is taken by one of them', async () => {
    const { life, ids } = await leaveBehind();
    const open = () => openLife({ dir: life.dir, rules: MIXED, backends: frail(), tools: [box()], settings });
    const houses = await Promise.all([open(), open(), open()]);
    const [one] = houses as [Life, Life, Life];
    for (const name of ['working', 'auth', 'input', 'canceling']) await one.ended(ids[name]!);
    await until(async () => (await one.openAsks()).length === 1);
    await one.answer((await one.openAsks())[0]!.id, { value: 1 });
    await one.ended(ids.queued!);
    for (const house of houses) await house.house.idle();
    for (const [name, id] of Object.entries(ids)) {
      const events = await one.events(id);
      expectLegal(events);
      const ends = path(events).filter((state) => ['COMPLETED', 'FAILED', 'CANCELED'].includes(state));
      expect(ends, name).toHaveLength(name === 'outside' ? 0 : 1);
      expect((await one.house.store.receipts({ task: id })).length, name).toBe(name === 'outside' ? 0 : 1);
      expect(
        kinds(events).filter((kind) => kind === 'task.started'),
        name,
      ).toHaveLength(1);
    }
  });

  test('two houses that can go on: one does', async () => {
    const starts: string[] = [];
    const script: Script = async ({ work, sink }) => {
      starts.push(work.task.id);
      await sink.ask({ kind: 'input', key: 'k', question: '?' });
    };
    const open = () => openLife({ dir: first.dir, backends: [scripted('one', script, { resume: true })], settings });
    const first = await openMortal({ backends: [scripted('one', script, { resume: true })], settings });
    const ids: string[] = [];
    for (let n = 0; n < 8; n += 1) ids.push((await first.submit(await first.session())).id);
    await until(async () => (await first.openAsks()).length === 8);
    await first.die();
    starts.length = 0;
    const [one, two] = await Promise.all([open(), open()]);
    await until(() => starts.length === 8);
    for (const id of ids) await until(async () => (await one.task(id)).status === 'INPUT_REQUIRED');
    expect((await one.openAsks()).length).toBe(8);
    for (const ask of await one.openAsks()) await two.answer(ask.id, { value: 1 });
    for (const id of ids) {
      expect((await one.ended(id)).status).toBe('COMPLETED');
      const events = kinds(await one.events(id));
      expect(events.filter((kind) => kind === 'vendor.tollbridge.recovered')).toHaveLength(1);
    }
    expect(starts.toSorted()).toEqual(ids.toSorted());
  });

  test('order in a session survives: what ran first ends first, what waited comes next', async () => {
    const agents = (resume: boolean) => [scripted('one', patient, { resume })];
    const first = await openMortal({ backends: agents(true), settings });
    const session = await first.session();
    const ids = [await first.submit(session), await first.submit(session), await first.submit(session)].map(
      ({ id }) => id,
    );
    await first.die();
    const next = await openLife({ dir: first.dir, backends: agents(true), settings });
    for (const [at, id] of ids.entries()) {
      await until(async () => (await next.task(id)).status === 'WORKING');
      for (const later of ids.slice(at + 1)) expect((await next.task(later)).status).toBe('SUBMITTED');
      await next.do('task.cancel', { task_id: id });
    }
  });

  test('a house that closes properly leaves resumable work to the next, and ends the rest', async () => {
    const dir = await freshDir();
    const agents = () => [scripted('steady', patient, { resume: true }), scripted('frail', patient)];
    const first = await openLife({ dir, backends: agents(), settings });
    const steady = await first.submit(await first.session(), { agent: 'steady' });
    const frailTask = await first.submit(await first.session(), { agent: 'frail' });
    await first.close();
    const next = await openLife({ dir, backends: agents(), settings });
    expect(next.recovered).toEqual({ resumed: 1, started: 0, failed: 0 });
    expect(await next.task(frailTask.id)).toMatchObject({ status: 'CANCELED' });
    expect((await next.events(frailTask.id)).at(-1)!.payload.reason).toBe('the gateway was shut down');
    expect((await next.task(steady.id)).status).toBe('WORKING');
    await next.do('task.cancel', { task_id: steady.id });
  });
});

describe('a process killed for real', () => {
  const script = fileURLToPath(new URL('./life/victim.ts', import.meta.url));

  async function victim(dir: string): Promise<{ child: ChildProcess; said: (word: string) => Promise<string> }> {
    const child = spawn(process.execPath, ['--import', 'tsx', script, dir], { stdio: ['ignore', 'pipe', 'inherit'] });
    afterwards(async () => child.kill('SIGKILL'));
    let output = '';
    child.stdout!.on('data', (chunk) => {
      output += String(chunk);
    });
    const said = async (word: string) => {
      let found: RegExpExecArray | null = null;
      await until(() => {
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
    const { createVictimAgent, createVictimTools } = await import('./life/victim.ts');
    const open = () =>
      openLife({ dir, rules: MIXED, backends: [createVictimAgent()], tools: [createVictimTools(dir)], settings });
    const early = await open();
    expect(early.recovered).toEqual({ resumed: 0, started: 0, failed: 0 });
    await early.close();

    const exited = latch();
    child.on('exit', () => exited.open());
    child.kill('SIGKILL');
    await exited.opened;
    const next = await open();
    expect(next.recovered).toEqual({ resumed: 1, started: 0, failed: 0 });
    await until(async () => (await next.task(id)).status === 'AUTH_REQUIRED');
    expect((await next.openAsks()).map((open) => open.id)).toEqual([ask]);
    await next.answer(ask, { approved: true });
    expect((await next.ended(id)).status).toBe('COMPLETED');
    const ran = await readFile(join(dir, 'ran.txt'), 'utf8');
    expect(ran.trim().split('\n')).toEqual(['write 1', 'ask 2']);
    expect(kinds(await next.events(id)).filter((kind) => kind === 'agent.message')).toHaveLength(2);
    const { resource } = await next.do('receipt.verify', { receipt_id: (await next.task(id)).receipt_id! });
    expect(resource).toMatchObject({ object: 'receipt' });
  });
});
