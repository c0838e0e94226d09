import { expect, test } from 'vitest';
import { type Bench, runBenches } from '../../bench/run.ts';

const BENCHES: Readonly<Record<string, Bench>> = {
  fast: { name: 'fast', run: async () => [{ bench: 'fast', ratio: 0.5, against: 'slow' }] },
  two: {
    name: 'two',
    run: async () => [
      { bench: 'two/a', ratio: 1, against: 'x', n: 3 },
      { bench: 'two/b', ratio: 2, against: 'x' },
    ],
  },
  broken: { name: 'broken', run: () => Promise.reject(new Error('no disk')) },
  vague: { name: 'vague', run: async () => [{ bench: 'vague', ratio: Number.NaN, against: 'x' }] },
};

async function bench(...wanted: string[]) {
  const [out, reported]: [string[], string[]] = [[], []];
  const code = await runBenches(wanted, {
    names: Object.keys(BENCHES),
    load: async (name) => BENCHES[name] as Bench,
    print: (line) => out.push(line),
    progress: (line) => reported.push(line),
  });
  return { code, out, reported };
}

test('prints one JSON object per figure, of those that were named', async () => {
  const { code, out, reported } = await bench('two', 'fast');
  expect(code).toBe(0);
  expect(out).toEqual([
    '{"bench":"two/a","ratio":1,"against":"x","n":3}',
    '{"bench":"two/b","ratio":2,"against":"x"}',
    '{"bench":"fast","ratio":0.5,"against":"slow"}',
  ]);
  expect(reported).toEqual(['measuring two ...', 'measuring fast ...']);
});

test('one that fails is reported, and the others are still measured', async () => {
  const { code, out, reported } = await bench();
  expect(code).toBe(1);
  expect(out).toHaveLength(3);
  expect(reported).toContain('broken could not be measured: no disk');
  expect(reported).toContain(
    'vague could not be measured: {"bench":"vague","ratio":null,"against":"x"} lacks bench, ratio or against',
  );
});

test('a name that does not exist measures nothing', async () => {
  const { code, out, reported } = await bench('fast', 'nope');
  expect({ code, out, reported }).toEqual({
    code: 2,
    out: [],
    reported: ['there is no measurement called nope; there are: fast, two, broken, vague'],
  });
});
