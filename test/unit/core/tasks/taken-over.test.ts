/**
 * A process that stood still or was cut off from its store, and whose work another one took over meanwhile: what it still decides and reports
 * does not count, and nothing runs twice.
 */
import { expect, test } from 'vitest';
import type { RunRow } from '../../../../src/core/events/rows.ts';
import type { Store } from '../../../../src/ports/index.ts';
import { eventually } from '../../../support/eventually.ts';
import { latch, scriptedAgent } from '../../../support/gateway/agents.ts';
import { kinds, of, openTestGateway } from '../../../support/gateway/test-gateway.ts';
import { countingTools } from '../../../support/gateway/tools.ts';
import { ALLOW_ALL } from '../../../support/policy/rules.ts';

/** A store whose leases its holder loses, as one over a network may. */
function losing() {
  let cuts: (() => Promise<void>)[] = [];
  let away = false;
  return {
    async cut() {
      away = true;
      for (const cut of cuts.splice(0)) await cut();
    },
    restore() {
      away = false;
    },
    wrap: (store: Store): Store => ({
      ...store,
      async lease(name) {
        const lease = away ? undefined : await store.lease(name);
        if (!lease) return undefined;
        const lost = new AbortController();
        cuts = [
          ...cuts,
          async () => {
            await lease.close();
            lost.abort();
          },
        ];
        return { ...lease, lost: lost.signal };
      },
    }),
  };
}

/** It hears of nothing that others write, as a process that has just been woken up. */
const deaf = (store: Store): Store => ({
  ...store,
  async *follow(_range, signal) {
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  },
});

const straight = (store: Store): Store => store;

test('work that was taken over is no longer decided on or reported by the process that lost it', async () => {
  const network = losing();
  const begun = latch();
  const goOn = latch();
  const refusals: Promise<unknown>[] = [];
  const said = (promise: Promise<unknown>) => promise.catch((cause: Error) => cause.message);
  const tools = countingTools({ send: { effect: 'send' } });
  const first = scriptedAgent(
    async (sink) => {
      const note = (text: string) => sink.emit({ event: 'vendor.tollbridge.note', payload: { note: text } });
      await note('begun');
      begun.open();
      await goOn.promise;
      refusals.push(said(sink.act({ kind: 'tool', tool: 'send', tool_call_id: 'c1', arguments: { to: 'ana' } })));
      refusals.push(said(note('too late')));
      await Promise.all(refusals);
      return undefined;
    },
    { resume: true },
  );
  const second = scriptedAgent(
    async (sink) => {
      const act = await sink.act({ kind: 'tool', tool: 'send', tool_call_id: 'c1', arguments: { to: 'ana' } });
      await sink.emit({ event: 'vendor.tollbridge.note', payload: { note: act.kind } });
      return undefined;
    },
    { resume: true },
  );
  const t = await openTestGateway({ agents: [first], tools: [tools], rules: ALLOW_ALL, store: network.wrap });
  const room = await t.room();
  const task = await room.task();
  await begun.promise;
  await network.cut();
  const other = await t.second({ agents: [second], tools: [tools], rules: ALLOW_ALL, store: straight });
  expect((await other.until(task.id)).status).toBe('COMPLETED');
  goOn.open();
  await expect.poll(() => refusals.length).toBe(2);
  // The call is that of the other process: it is refused, or answered with the result on record where this process has not heard yet.
  const [act, note] = await Promise.all(refusals);
  if (typeof act !== 'string') expect(act).toEqual({ kind: 'done', result: { status: 'ok', output: { did: 'send' } } });
  expect(note).toEqual(expect.any(String));
  const events = await t.events(task.id);
  expect(of(events, 'vendor.tollbridge.note').map(({ payload }) => payload.note)).toEqual(['begun', 'done']);
  expect(kinds(events).filter((kind) => kind === 'tool.completed')).toHaveLength(1);
  expect(tools.calls).toHaveLength(1);
  expect(await t.receipts(task.id)).toHaveLength(1);
});

test('what was under way when the work was taken over is refused in the commit, before its process has heard of it', async () => {
  const network = losing();
  const begun = latch();
  const goOn = latch();
  const outcome = latch<string>();
  const tools = countingTools({ send: { effect: 'send' } });
  const first = scriptedAgent(
    async (sink) => {
      begun.open();
      await goOn.promise;
      const sent = sink.act({ kind: 'tool', tool: 'send', tool_call_id: 'c1', arguments: { to: 'ana' } });
      await sent.then(
        () => outcome.open('done'),
        (cause: Error) => outcome.open(cause.message),
      );
      return undefined;
    },
    { resume: true },
  );
  const waiting = latch();
  const second = scriptedAgent(async () => void (await waiting.promise), { resume: true });
  const t = await openTestGateway({
    agents: [first],
    tools: [tools],
    rules: ALLOW_ALL,
    store: (store) => deaf(network.wrap(store)),
    dies: true,
  });
  const task = await (await t.room()).task();
  await begun.promise;
  await network.cut();
  const other = await t.second({ agents: [second], tools: [tools], rules: ALLOW_ALL, store: straight });
  await other.seen(task.id, 'vendor.tollbridge.recovered');
  goOn.open();
  expect(await outcome.promise).toBe('this work is run by another process');
  expect(tools.calls).toEqual([]);
  waiting.open();
  expect((await other.until(task.id)).status).toBe('COMPLETED');
  expect(kinds(await other.events(task.id)).filter((kind) => kind.startsWith('tool.'))).toEqual([]);
});

test('a process that lost its name has it again once nobody else holds it, and keeps its work', async () => {
  const network = losing();
  const begun = latch();
  const goOn = latch();
  const agent = scriptedAgent(
    async () => {
      begun.open();
      await goOn.promise;
      return undefined;
    },
    { resume: true },
  );
  const t = await openTestGateway({ agents: [agent], store: network.wrap });
  const task = await (await t.room()).task();
  await begun.promise;
  await network.cut();
  network.restore();
  const run = await t.runtime.store.get<RunRow>('run', task.id);
  const isHeld = async () => {
    const lease = await t.runtime.store.lease(`instance:${run?.instance}`);
    await lease?.close();
    return lease === undefined;
  };
  await eventually(isHeld, 'the name to be held again');
  const other = await t.second({ agents: [agent], store: straight });
  expect(other.recovered).toEqual({ resumed: 0, started: 0, failed: 0 });
  goOn.open();
  expect((await t.until(task.id)).status).toBe('COMPLETED');
  expect(kinds(await t.events(task.id))).not.toContain('vendor.tollbridge.recovered');
});

test('a cancel that another process has written counts, whether the one that runs the work has heard of it or not', async () => {
  const begun = latch();
  const goOn = latch();
  const agent = scriptedAgent(async () => {
    begun.open();
    await goOn.promise;
    return undefined;
  });
  const t = await openTestGateway({ agents: [agent], store: deaf, dies: true });
  const task = await (await t.room()).task();
  await begun.promise;
  const other = await t.second({ agents: [agent], store: straight });
  const canceled = other.send('task.cancel', { task_id: task.id, reason: 'enough' });
  await other.seen(task.id, 'user.cancel_requested');
  goOn.open();
  expect((await canceled).resource).toMatchObject({ status: 'CANCELED' });
  expect(kinds(await other.events(task.id))).not.toContain('task.completed');
  expect(await other.receipts(task.id)).toHaveLength(1);
});
