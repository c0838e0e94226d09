/** The decision on a call without effects is written with its result, where the gateway is set to that; and not otherwise. */
import { describe, expect, test } from 'vitest';
import type { CommandEnvelope, ProposedAction } from '../../../../src/model/commands.ts';
import type { Effect } from '../../../../src/model/words.ts';
import type { ActResult } from '../../../../src/ports/index.ts';
import { latch } from '../../../support/gateway/agents.ts';
import { pulledDisk } from '../../../support/gateway/failing-store.ts';
import { kinds, of, openTestGateway } from '../../../support/gateway/test-gateway.ts';
import { countingTools, type ToolSpec } from '../../../support/gateway/tools.ts';

const LOOK: ProposedAction = { kind: 'tool', tool: 'look', arguments: { at: 'it' } };
const ALLOW = '- { id: may-look, when: { kind: tool }, then: allow, say: looking is fine }';
const AFTER = ['tool.requested', 'vendor.tollbridge.decided', 'tool.completed'];
/** Written in the commit of the decision. The task has a decision of its own. */
const REQUESTED = 'tool.requested';

interface Set {
  readonly spec?: Partial<ToolSpec>;
  readonly rules?: string;
  readonly readsInOneCommit?: boolean;
  readonly disk?: ReturnType<typeof pulledDisk>;
}

async function looking({ spec = {}, rules = ALLOW, readsInOneCommit = true, disk }: Set = {}) {
  let seen: string[] = [];
  let write: (() => Promise<void>) | undefined;
  const commits: string[][] = [];
  const tools = countingTools({
    look: {
      effect: 'read',
      ...spec,
      async run(...called) {
        seen = kinds(await t.events(task.id));
        return (await spec.run?.(...called)) ?? { status: 'ok', output: { seen: 'it' } };
      },
    },
  });
  const t = await openTestGateway({
    tools: [tools],
    rules,
    settings: { readsInOneCommit },
    store: (store) => {
      const under = disk?.wrap(store) ?? store;
      return {
        ...under,
        async commit(unit) {
          const committed = await under.commit(unit);
          commits.push(committed.events.map(({ event }) => event));
          return committed;
        },
      };
    },
  });
  const task = await (await t.room()).task({ agent: 'none' });
  commits.length = 0;
  const call = async (action: ProposedAction = LOOK, more: Partial<CommandEnvelope> = {}) =>
    (
      await t.send(
        'tool.call',
        { task_id: task.id, action },
        {
          unwritten: (now) => {
            write = now;
          },
          ...more,
        },
      )
    ).act as ActResult;
  return { t, tools, task, commits, call, seenByTool: () => seen, writeNow: () => write?.() };
}

const withCalls = (commits: readonly string[][]) =>
  commits.filter((one) => one.some((kind) => kind.startsWith('tool.')));

describe('a read that a rule allows', () => {
  test.each<Effect>(['read', 'none'])(
    'of effect %s: one commit, its events in order, the receipt says so',
    async (effect) => {
      const { t, task, commits, call, seenByTool } = await looking({ spec: { effect } });
      expect(await call()).toMatchObject({ kind: 'done', result: { status: 'ok', output: { seen: 'it' } } });
      expect(withCalls(commits)).toEqual([AFTER]);
      expect(seenByTool()).not.toContain(REQUESTED);
      const log = await t.events(task.id);
      expect(kinds(log).slice(-3)).toEqual(AFTER);
      expect(new Set(log.map(({ id }) => id)).size).toBe(log.length);
      expect(of(log, 'tool.completed')[0]?.payload).toMatchObject({ one_commit: true });
      await t.send('task.report', { task_id: task.id, end: { state: 'COMPLETED', summary: 'looked' } });
      const { side_effects } = await t.receipt(task.id);
      expect(side_effects.tool_calls).toMatchObject([
        { tool: 'look', status: 'succeeded', metadata: { verdict: 'allow', one_commit: true } },
      ]);
    },
  );
});

describe('the decision comes first', () => {
  test.each<[string, Set]>([
    ['where the gateway is strict', { readsInOneCommit: false }],
    ['for a tool that writes', { spec: { effect: 'write' } }],
    ['for a tool whose effect nobody trusted has stated', { spec: { effect: 'unknown' } }],
    [
      'for a call that a rule rewrites',
      { rules: '- { id: other, when: { kind: tool }, then: modify, set: { at: there }, say: look there }' },
    ],
  ])('%s', async (_case, set) => {
    const { commits, call, seenByTool } = await looking(set);
    expect(await call()).toMatchObject({ kind: 'done' });
    expect(seenByTool()).toContain(REQUESTED);
    expect(withCalls(commits)).toHaveLength(2);
  });

  test('for a call whose door has not asked for it', async () => {
    const { commits, call, seenByTool } = await looking();
    await call(LOOK, { unwritten: undefined } as never);
    expect(seenByTool()).toContain(REQUESTED);
    expect(withCalls(commits)).toHaveLength(2);
  });

  test('for a call with an id of its client, which may come twice', async () => {
    const { commits, call, seenByTool } = await looking();
    await call({ ...LOOK, tool_call_id: 'c1' });
    expect(seenByTool()).toContain(REQUESTED);
    expect(withCalls(commits)).toHaveLength(2);
  });

  test('as soon as the door has something to write about the call', async () => {
    const answered = latch();
    const begun = latch();
    const run = async () => {
      begun.open();
      await answered.promise;
      return { status: 'ok' as const, output: null };
    };
    const { t, task, commits, call, writeNow } = await looking({ spec: { run } });
    const calling = call();
    await begun.promise;
    await writeNow();
    expect(kinds(await t.events(task.id))).toContain(REQUESTED);
    answered.open();
    await calling;
    expect(withCalls(commits)).toEqual([AFTER.slice(0, 2), AFTER.slice(2)]);
    expect(of(await t.events(task.id), 'tool.completed')[0]?.payload).not.toHaveProperty('one_commit');
  });

  test('when the call takes long', async () => {
    let inLog: () => Promise<readonly string[]> = async () => [];
    const run = async () => {
      await expect.poll(inLog).toContain(REQUESTED);
      return { status: 'ok' as const, output: null };
    };
    const { t, task, commits, call } = await looking({ spec: { run } });
    inLog = async () => kinds(await t.events(task.id));
    await call();
    expect(withCalls(commits)).toEqual([AFTER.slice(0, 2), AFTER.slice(2)]);
  });

  test('when the call is canceled', async () => {
    const stop = new AbortController();
    const run = async () => {
      stop.abort();
      return { status: 'error' as const, output: null, error: 'stopped' };
    };
    const { commits, call } = await looking({ spec: { run } });
    await call(LOOK, { signal: stop.signal });
    expect(withCalls(commits)).toEqual([AFTER.slice(0, 2), ['tool.failed']]);
  });
});

describe('a log that cannot be written', () => {
  test('the caller gets the fault, not the result, and nothing of the call is on record', async () => {
    const disk = pulledDisk();
    const { t, tools, task, call } = await looking({
      disk,
      spec: {
        run: () => {
          disk.down = true;
          return { status: 'ok', output: { secret: 'of the server' } };
        },
      },
    });
    await expect(call()).rejects.toMatchObject({ kind: 'unavailable' });
    disk.down = false;
    expect(tools.calls).toHaveLength(1);
    expect(kinds(await t.events(task.id))).not.toContain(REQUESTED);
  });

  test('a decision that cannot be written while the call runs ends it with the fault', async () => {
    const disk = pulledDisk();
    const never = latch();
    const run = async () => {
      disk.down = true;
      await never.promise;
      return { status: 'ok' as const, output: null };
    };
    const { call } = await looking({ disk, spec: { run } });
    await expect(call()).rejects.toMatchObject({ kind: 'unavailable' });
    disk.down = false;
    never.open();
  });

  test('a call whose task ended meanwhile is not answered', async () => {
    let end: () => Promise<unknown> = async () => {};
    const run = async () => {
      await end();
      return { status: 'ok' as const, output: null };
    };
    const { t, task, call } = await looking({ spec: { run } });
    end = () => t.send('task.cancel', { task_id: task.id });
    await expect(call()).rejects.toMatchObject({ kind: 'conflict' });
    expect(kinds(await t.events(task.id))).not.toContain('tool.completed');
  });
});
