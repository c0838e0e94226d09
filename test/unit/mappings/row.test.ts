import fc from 'fast-check';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { type MappingRow, table } from '../../../mappings/row.ts';

const LIGHTS = ['RED', 'GREEN'] as const;

const lights = table(LIGHTS, [
  { wire: 'stop', core: 'RED', dir: '<->' },
  { wire: 'go', core: 'GREEN', dir: '<->' },
  { wire: 'halt', core: 'RED', dir: '->', why: 'the old word for stop' },
]);

describe('a table', () => {
  test('reads both ways', () => {
    expect(lights.toCore('stop')).toBe('RED');
    expect(lights.toCore('halt')).toBe('RED');
    expect(lights.toWire('RED')).toBe('stop');
    expect(lights.toWire('GREEN')).toBe('go');
  });

  test('knows nothing about words it does not have', () => {
    for (const word of ['amber', 'STOP', '', 'constructor', '__proto__', 'toString']) {
      expect(lights.toCore(word)).toBeUndefined();
    }
  });

  test('has the types of its words', () => {
    expectTypeOf(lights.toWire).parameter(0).toEqualTypeOf<'RED' | 'GREEN'>();
    expectTypeOf(lights.toWire('RED')).toEqualTypeOf<'stop' | 'go'>();
    expectTypeOf(lights.toCore('stop')).toEqualTypeOf<'RED' | 'GREEN' | undefined>();
    // @ts-expect-error a word the model does not have
    expect(() => table(LIGHTS, [{ wire: 'wait', core: 'AMBER', dir: '<->' }])).toThrow();
    // @ts-expect-error a one-way row without a reason
    expect(() => table(LIGHTS, [{ wire: 'stop', core: 'RED', dir: '<-' }])).toThrow();
    // @ts-expect-error a word that has no spelling
    expect(() => lights.toWire('AMBER')).toThrow('AMBER is not one of RED, GREEN');
  });

  test('can send a word it does not take back', () => {
    const once = table(LIGHTS, [
      { wire: 'stop', core: 'RED', dir: '<->' },
      { wire: 'stop!', core: 'GREEN', dir: '<-', why: 'for show' },
    ]);
    expect(once.toWire('GREEN')).toBe('stop!');
    expect(once.toCore('stop!')).toBeUndefined();
  });
});

describe('a table that does not load', () => {
  const red = { wire: 'stop', core: 'RED', dir: '<->' } as const;
  const green = { wire: 'go', core: 'GREEN', dir: '<->' } as const;
  const wrong: readonly [string, readonly MappingRow<string, 'RED' | 'GREEN'>[], string][] = [
    ['a word has no way out', [red], 'GREEN has no way out: add a row that spells it'],
    [
      'a word is only understood',
      [red, { ...green, dir: '->', why: 'x' }],
      'GREEN has no way out: add a row that spells it',
    ],
    [
      'two rows claim a wire word',
      [red, green, { wire: 'go', core: 'RED', dir: '->', why: 'x' }],
      'two rows say what go stands for',
    ],
    [
      'two rows spell a word',
      [red, green, { wire: 'run', core: 'GREEN', dir: '<-', why: 'x' }],
      'two rows say how GREEN is spelled',
    ],
    [
      'a one-way row has no reason',
      [red, green, { wire: 'halt', core: 'RED', dir: '->', why: ' ' }],
      'halt goes one way and does not say why',
    ],
    [
      'a canonical word does not exist',
      [red, green, { wire: 'wait', core: 'AMBER' as 'RED', dir: '<->' }],
      'wait: there is no canonical word AMBER',
    ],
  ];
  test.each(wrong)('%s', (_name, rows, message) => {
    expect(() => table(LIGHTS, rows)).toThrow(message);
  });
});

test('whatever loads, every two-way row comes back as it went', () => {
  const words = fc.uniqueArray(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(words, (cores) => {
      const made = table(
        cores,
        cores.map((core): MappingRow<string, string> => ({ wire: `w-${core}`, core, dir: '<->' })),
      );
      for (const core of cores) expect(made.toCore(made.toWire(core))).toBe(core);
    }),
  );
});
