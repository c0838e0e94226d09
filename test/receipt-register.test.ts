/** A register keeps what it was, whatever is put into the next one. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { entriesOf, entry, NO_ENTRIES, type Register, withEntryIn } from '../src/receipt/register.ts';

test('is a map that never changes', () => {
  const step = fc.record({ name: fc.string({ maxLength: 3 }), value: fc.option(fc.nat(), { nil: undefined }) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      let register: Register<number> = NO_ENTRIES;
      const known = new Map<string, number>();
      const before: { register: Register<number>; values: number[] }[] = [];
      for (const { name, value } of steps) {
        before.push({ register, values: [...known.values()].sort() });
        register = withEntryIn(register, name, value);
        if (value === undefined) known.delete(name);
        else known.set(name, value);
        expect(entry(register, name)).toBe(value);
      }
      expect([...entriesOf(register)].sort()).toEqual([...known.values()].sort());
      for (const { register, values } of before) expect([...entriesOf(register)].sort()).toEqual(values);
    }),
  );
});

test('names that count up do not crowd one shelf', () => {
  let register: Register<number> = NO_ENTRIES;
  for (let n = 0; n < 6_400; n += 1) register = withEntryIn(register, `call_01KA${String(n).padStart(6, '0')}`, n);
  expect(Math.max(...register.map(({ size }) => size))).toBeLessThan(300);
});
