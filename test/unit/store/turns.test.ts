/** Processes that write to one file at the same time take turns; that saves work, and nothing rests on it. */
import { existsSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createTurns } from '../../../src/store/sqlite/file/turns.ts';

const LONG_MS = 10_000;

function three() {
  const directory = mkdtempSync(join(tmpdir(), 'tb-turns-'));
  const path = join(directory, 'log.db.turn');
  let version = 0;
  const all = [1, 2, 3].map(() => createTurns(path, () => version));
  onTestFinished(() => {
    for (const turns of all) turns.close();
    rmSync(directory, { recursive: true });
  });
  return { path, all: all as [(typeof all)[0], (typeof all)[0], (typeof all)[0]], write: () => (version += 1) };
}

test('one process has the turn, the next one gets it when it ends, and both learn whether others wrote', async () => {
  const { path, all, write } = three();
  const [one, two] = all;
  const first = await one.take(LONG_MS);
  let came = false;
  const second = two.take(LONG_MS).finally(() => (came = true));
  expect([existsSync(path), came]).toEqual([true, false]);
  write();
  first?.release();
  const turn = await second;
  expect(turn?.othersWrote).toBe(true);
  turn?.release();
  const again = await two.take(LONG_MS);
  expect(again?.othersWrote).toBe(false);
  again?.release();
  expect(existsSync(path)).toBe(false);
});

test('a process that ends its turn lets the one that waits go first', async () => {
  const { path, all } = three();
  const [one, two] = all;
  const order: string[] = [];
  const first = await one.take(LONG_MS);
  const waiting = two.take(LONG_MS).then((turn) => {
    order.push('two');
    return turn;
  });
  // Until it has been seen to wait, nobody can give way to it.
  await expect.poll(() => existsSync(`${path}-wanted`), { timeout: LONG_MS }).toBe(true);
  first?.release();
  const again = one.take(LONG_MS).then((turn) => {
    order.push('one');
    return turn;
  });
  (await waiting)?.release();
  (await again)?.release();
  expect(order).toEqual(['two', 'one']);
});

test('the turn of a process that stands still is taken from it, and one that takes too long is gone without', async () => {
  const { path, all } = three();
  const [one, two] = all;
  writeFileSync(path, '');
  expect(await one.take(5)).toBeUndefined();
  const old = new Date(Date.now() - 60_000);
  utimesSync(path, old, old);
  const turn = await two.take(LONG_MS);
  expect(turn).toBeDefined();
  turn?.release();
});

test('after it is closed nothing is taken and nothing is left', async () => {
  const { path, all } = three();
  const [one, two, three_] = all;
  const turn = await one.take(LONG_MS);
  const waiting = two.take(LONG_MS);
  two.close();
  expect(await waiting).toBeUndefined();
  one.close();
  turn?.release();
  expect(await one.take(LONG_MS)).toBeUndefined();
  three_.close();
  expect([existsSync(path), existsSync(`${path}-wanted`)]).toEqual([false, false]);
});
