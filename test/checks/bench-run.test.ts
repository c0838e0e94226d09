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
  const [out, told]: [string[], string[]] = [[], []];
  const code = await runBenches(wanted, {
    names: Object.keys(BENCHES),
    load: async (name) => BENCHES[name] as Bench,
    print: (line) => out.push(line),
    progress: (line) => told.push(line),
  });
  return { code, out, told };
}

test('prints one JSON object per figure, of those that were named', async () => {
  const { code, out, told } = await bench('two', 'fast');
  expect(code).toBe(0);
  expect(out).toEqual([
    '{"bench":"two/a","ratio":1,"against":"x","n":3}',
    '{"bench":"two/b","ratio":2,"against":"x"}',
    '{"bench":"fast","ratio":0.5,"against":"slow"}',
  ]);
  expect(told).toEqual(['measuring two ...', 'measuring fast ...']);
});

test('one that fails is told, and the others are still measured', async () => {
  const { code, out, told } = await bench();
  expect(code).toBe(1);
  expect(out).toHaveLength(3);
  expect(told).toContain('broken could not be measured: no disk');
  expect(told).toContain(
    'vague could not be measured: {"bench":"vague","ratio":null,"against":"x"} lacks bench, ratio or against',
  );
});

test('a name that does not exist measures nothing', async () => {
  const { code, out, told } = await bench('fast', 'nope');
  expect({ code, out, told }).toEqual({
    code: 2,
    out: [],
    told: ['there is no measurement called nope; there are: fast, two, broken, vague'],
  });
});
