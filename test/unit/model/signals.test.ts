/** A time limit that is one of several signals fires, whatever the garbage collector has done meanwhile. */
import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = resolve(import.meta.dirname, '../../..');
const PROBE = `
import { anySignal } from ${JSON.stringify(join(ROOT, 'src/model/values/signals.ts'))};
const over = new AbortController();
const waits = (deep) => {
  const one = anySignal([over.signal, AbortSignal.timeout(200)]);
  const both = deep ? anySignal([new AbortController().signal, one]) : one;
  return new Promise((resolve) => both.addEventListener('abort', () => resolve(both.reason.name)));
};
const collecting = setInterval(() => globalThis.gc(), 10);
const late = setTimeout(() => process.exit(7), 10_000);
console.log(JSON.stringify(await Promise.all([waits(false), waits(true)])));
clearInterval(collecting);
clearTimeout(late);
`;

test('a limit among several signals is not collected before it fires', async () => {
  const args = ['--expose-gc', '--import', 'tsx', '--input-type=module', '-e', PROBE];
  const out = await new Promise<string>((done, failed) => {
    execFile(process.execPath, args, { cwd: ROOT }, (cause, said) => (cause ? failed(cause) : done(said)));
  });
  expect(JSON.parse(out)).toEqual(['TimeoutError', 'TimeoutError']);
}, 30_000);

test('no part of the program joins signals in another way', async () => {
  const found: string[] = [];
  for (const folder of ['src', 'adapters']) {
    for (const file of await readdir(join(ROOT, folder), { recursive: true })) {
      if (!file.endsWith('.ts') || file.endsWith(join('model', 'values', 'signals.ts'))) continue;
      const text = await readFile(join(ROOT, folder, file), 'utf8');
      if (text.includes('AbortSignal.any(')) found.push(join(folder, file));
    }
  }
  expect(found).toEqual([]);
});
