/** The mutants of the conformance suites fit the sources as they are; whether the suites notice them is what the mutation run shows. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { mutated } from '../conformance/mutants/mutant.ts';
import { mutants } from '../conformance/mutants/run.ts';

test.each(mutants)('$promise', (mutant) => {
  const text = readFileSync(new URL(`../../${mutant.file}`, import.meta.url), 'utf8');
  expect(mutated(mutant, text)).not.toBe(text);
});

test('no promise is broken twice under one name', () => {
  const names = mutants.map(({ promise }) => promise);
  expect(new Set(names).size).toBe(names.length);
});

test('a mutant that no longer fits is an error, not a pass', () => {
  const [mutant] = mutants;
  expect(() => mutated(mutant!, 'nothing of the kind')).toThrow('does not hold');
  expect(() => mutated(mutant!, mutant!.find.repeat(2))).toThrow('more than once');
});
