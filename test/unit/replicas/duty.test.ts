/** Work that one process does for all: by one at a time, and by the next one when that is gone or has lost its lease. */
import { expect, onTestFinished, test } from 'vitest';
import type { Closable, Lease } from '../../../src/ports/index.ts';
import { openDuty } from '../../../src/replicas/duty.ts';
import { eventually } from '../../support/eventually.ts';

/** A lease as a database gives it: `cut` takes it away from its holder. */
function aStore() {
  let holder: AbortController | undefined;
  return {
    cut() {
      const lost = holder;
      holder = undefined;
      lost?.abort();
    },
    async lease(name: string): Promise<Lease | undefined> {
      if (holder) return undefined;
      const mine = new AbortController();
      holder = mine;
      return {
        name,
        epoch: 1,
        lost: mine.signal,
        async close() {
          if (holder === mine) holder = undefined;
        },
      };
    },
  };
}

function aWorker(store: ReturnType<typeof aStore>, doing: string[], name: string): Promise<Closable> {
  const log = { info() {}, warn() {}, error() {} };
  const begin = () => {
    doing.push(name);
    return { close: async () => void doing.splice(doing.indexOf(name), 1) };
  };
  return openDuty({ name: 'sending', store, log, begin, everyMs: 5 });
}

test('one does it, and the next one when that has left', async () => {
  const [store, doing] = [aStore(), [] as string[]];
  const one = await aWorker(store, doing, 'one');
  const two = await aWorker(store, doing, 'two');
  onTestFinished(() => two.close());
  expect(doing).toEqual(['one']);
  await one.close();
  await eventually(() => doing.join() === 'two', 'the other one to begin');
});

test('one that has lost its lease stops, before it may begin again', async () => {
  const [store, doing] = [aStore(), [] as string[]];
  const one = await aWorker(store, doing, 'one');
  onTestFinished(() => one.close());
  store.cut();
  const taken = await store.lease('duty:sending');
  await eventually(() => doing.length === 0, 'it to stop');
  await taken?.close();
  await eventually(() => doing.join() === 'one', 'it to begin again');
});

test('a duty that is given up before it was taken is not begun', async () => {
  const [store, doing] = [aStore(), [] as string[]];
  const other = await store.lease('duty:sending');
  const one = await aWorker(store, doing, 'one');
  await one.close();
  await other?.close();
  expect(doing).toEqual([]);
});
