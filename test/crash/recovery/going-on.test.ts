/** An agent that can go on after its process died: nothing is done twice, nothing is said twice, nothing is lost. */
import { describe, expect, test } from 'vitest';
import { type CoreEvent, vendorEvent } from '../../../src/model/events.ts';
import type { Message } from '../../../src/model/resources.ts';
import { eventually } from '../../support/eventually.ts';
import {
  kinds,
  openTestGateway,
  REAL_TIME,
  says,
  states,
  type TestGateway,
} from '../../support/gateway/test-gateway.ts';
import { needsFile } from '../../support/gateway/test-store.ts';
import { MIXED } from '../../support/policy/rules.ts';
import { openMortal, settings } from '../../support/tasks/killable-gateway.ts';
import { type Script, scripted, stopped, type Toolbox, text, toolbox } from '../../support/tasks/script.ts';
import { expectLegal } from '../../support/tasks/states.ts';

needsFile();

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
  await sink.emit({ event: vendorEvent('com.example.mood'), payload: { mood: 'good' } });
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

/** Says yes to whatever is asked until the task is over. */
async function seeThrough(
  gateway: Pick<TestGateway, 'openAsks' | 'answer' | 'task' | 'runtime'>,
  id: string,
): Promise<void> {
  await eventually(async () => {
    for (const ask of await gateway.openAsks()) {
      await gateway.answer(ask.id, ask.kind === 'input' ? { value: 'red' } : { approved: true }).catch(() => {});
    }
    return ['COMPLETED', 'FAILED', 'CANCELED'].includes((await gateway.task(id)).status);
  });
}

/** What an agent said and did, without the names the bridge gives. */
function reported(events: readonly CoreEvent[]): string[] {
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
    const first = await openMortal({ rules: careful, agents: agents(), settings });
    const session = await first.session();
    const struck = moment === 'anyone was asked' ? first.doom({ commit: 2, when: 'before' }) : undefined;
    const { id } = await first.submit(session);
    await (struck ?? first.ask(id));
    await first.die();

    const second = await openTestGateway({ ...REAL_TIME, dir: first.dir, rules: careful, agents: agents(), settings });
    const ask = await second.ask(id);
    expect(begun).toBe(0);
    // In the name of the client that gave the work: the rule is about ana, and was asked about ana again.
    expect(ask.action.actor).toBe('ana');
    expect(await second.openAsks()).toHaveLength(1);
    await second.answer(ask.id, { approved });
    expect((await second.until(id)).status).toBe(state);
    expect(begun).toBe(times);
  });
});

describe('an agent that can go on', () => {
  test('dies after any commit, or just before it: nothing twice, nothing lost', { timeout: 180_000 }, async () => {
    const control = await openMortal({
      rules: MIXED,
      agents: [scripted('one', thorough)],
      tools: [boxOf()],
      settings,
    });
    const session = await control.session();
    const { id } = await control.submit(session);
    const from = control.written();
    await seeThrough(control, id);
    const undisturbed = await control.events(id);
    const expected = reported(undisturbed);
    // Acts the agent asked about and never reported the end of: nobody knows how they ended, crash or not.
    const unreported = undisturbed.filter(({ payload }) => payload.code === 'outcome_unknown').length;
    const commits = control.written() - from;
    expect(commits).toBeGreaterThan(24);
    await control.die();

    for (let commit = 1; commit <= commits; commit += 1) {
      for (const when of ['before', 'after'] as const) {
        const box = boxOf();
        const agents = () => [scripted('one', thorough, { resume: true })];
        const first = await openMortal({ rules: MIXED, agents: agents(), tools: [box], settings });
        const task = await first.submit(await first.session());
        const struck = first.doom({ commit, when });
        await Promise.race([struck, seeThrough(first, task.id)]);
        await struck;
        await first.die();

        const second = await openTestGateway({
          ...REAL_TIME,
          dir: first.dir,
          rules: MIXED,
          agents: agents(),
          tools: [box],
          settings,
        });
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
        expect(lost.length, where).toBeLessThan(unreported + 2);
        const known = (line: string) => !lost.some(({ payload }) => line.includes(`"${payload.tool_call_id}"`));
        const last = (line: string) => !line.includes('done approved approved value');
        const here = reported(events).filter(known);
        expect(here.filter(last), where).toEqual(expected.filter(known).filter(last));
        const asked = events.filter(({ event }) => event === 'vendor.tollbridge.ask_opened').length;
        expect(asked, where).toBe(3);
        await second.close();
      }
    }
  });

  test('finds its question still open, answers given while it was away, and the words said to it', async () => {
    const receivedBy: string[][] = [];
    const script: Script = async ({ sink, received }) => {
      const answer = await sink.ask({ kind: 'input', key: 'k', question: 'Which?' });
      await eventually(() => received.length === 1);
      receivedBy.push(received.map((message) => String((message.parts as { text: string }[])[0]!.text)));
      await sink.emit(text(`got ${(answer as { value: string }).value}`));
    };
    const agents = () => [scripted('one', script, { resume: true })];
    const first = await openMortal({ agents: agents(), settings });
    const session = await first.session();
    const { id } = await first.submit(session);
    const ask = await first.ask(id);
    await first.send('task.message', { task_id: id, kind: 'interrupt', message: says('hurry') });
    await first.die();

    // A gateway without the agent can still take the answer.
    const other = await openTestGateway({
      ...REAL_TIME,
      dir: first.dir,
      settings: { ...settings, sweepMs: 60_000 },
      agents: agents(),
    });
    expect(other.recovered).toEqual({ resumed: 1, started: 0, failed: 0 });
    await eventually(async () => (await other.task(id)).status === 'INPUT_REQUIRED');
    expect((await other.openAsks()).map((open) => open.id)).toEqual([ask.id]);
    await other.answer(ask.id, { value: 'blue' });
    expect((await other.until(id)).status).toBe('COMPLETED');
    expect(receivedBy).toEqual([['hurry']]);
    const events = await other.events(id);
    expectLegal(events);
    expect(states(events)).toEqual([
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
    const first = await openMortal({ rules: MIXED, agents: agents(), tools: [box], settings });
    const { id } = await first.submit(await first.session());
    const ask = await first.ask(id);
    const struck = first.doom({ commit: 1, when: 'after' }); // the answer itself is the last thing written
    void first.answer(ask.id, { approved: true });
    await struck;
    await first.die();
    const second = await openTestGateway({
      ...REAL_TIME,
      dir: first.dir,
      rules: MIXED,
      agents: agents(),
      tools: [box],
      settings,
    });
    expect((await second.until(id)).status).toBe('COMPLETED');
    expect(box.ran).toHaveLength(1);
    const events = kinds(await second.events(id));
    for (const once of ['vendor.tollbridge.ask_opened', 'vendor.tollbridge.ask_used', 'tool.completed']) {
      expect(events.filter((kind) => kind === once)).toHaveLength(1);
    }
  });

  test('is left for the gateway it belongs to by one that only visits, and ended by a system actor without the agent', async () => {
    const agents = () => [scripted('one', async ({ sink }) => void (await sink.emit(text('done'))), { resume: true })];
    const stuck = [scripted('one', async ({ signal }) => await stopped(signal), { resume: true })];
    const first = await openMortal({ agents: stuck, settings });
    const session = await first.session();
    const { id } = await first.submit(session);
    const other = await first.submit(await first.session());
    await first.die();
    const visiting = { ...settings, recoversOrphans: false };
    const visitor = await openTestGateway({ ...REAL_TIME, dir: first.dir, agents: [], settings: visiting });
    expect(visitor.recovered).toEqual({ resumed: 0, started: 0, failed: 0 });
    expect((await visitor.task(id)).status).toBe('WORKING');
    await visitor.runtime.close();
    const home = await openTestGateway({ ...REAL_TIME, dir: first.dir, agents: agents(), settings: visiting });
    expect(home.recovered).toEqual({ resumed: 2, started: 0, failed: 0 });
    expect((await home.until(id)).status).toBe('COMPLETED');
    expect((await home.until(other.id)).status).toBe('COMPLETED');

    const again = await openMortal({ agents: stuck, settings });
    const lost = await again.submit(await again.session());
    await again.die();
    const owner = await openTestGateway({ ...REAL_TIME, dir: again.dir, agents: [], settings });
    expect((await owner.until(lost.id)).status).toBe('FAILED');
  });

  test('an approval given for one act does not serve another that asks in its place', async () => {
    let to = 'ana';
    const script: Script = async ({ sink }) => {
      await sink.act({ kind: 'tool', tool: 'ask', tool_call_id: 'c1', arguments: { to } });
    };
    const box = boxOf();
    const agents = () => [scripted('one', script, { resume: true })];
    const first = await openMortal({ rules: MIXED, agents: agents(), tools: [box], settings });
    const { id } = await first.submit(await first.session());
    const ask = await first.ask(id);
    const struck = first.doom({ commit: 1, when: 'after' });
    void first.answer(ask.id, { approved: true });
    await struck;
    await first.die();
    to = 'mallory';
    const second = await openTestGateway({
      ...REAL_TIME,
      dir: first.dir,
      rules: MIXED,
      agents: agents(),
      tools: [box],
      settings,
    });
    await eventually(async () => (await second.openAsks()).length === 1);
    const [again] = await second.openAsks();
    expect(again!.id).not.toBe(ask.id);
    expect(again!.action).toMatchObject({ arguments: { to: 'mallory' } });
    expect(box.ran).toEqual([]);
    await second.answer(again!.id, { approved: false, reason: 'not him' });
    await second.until(id);
    expect(box.ran).toEqual([]);
  });
});
