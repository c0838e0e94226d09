/** The check for retired words finds them wherever a reader would meet them, and finds none in this tree. */
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { EXCEPTIONS } from './retired-words.ts';
import { isExcepted, retiredWords, retiredWordsIn } from './words.ts';

const found = (file: string, text: string) =>
  retiredWordsIn(file, text).map(({ line, word, instead }) => `${line} ${word}: ${instead}`);

describe('a retired word is found', () => {
  test.each([
    ['in an identifier', 'a.ts', 'const open = 1;\nexport const openHouse = open;\n', 'house'],
    ['in a constant', 'a.ts', '\nexport const HOUSE_RULES = 1;\n', 'house'],
    ['in a comment', 'a.ts', '\n/** The house is open. */\n', 'house'],
    ['in a string', 'a.ts', "\nexport const text = 'of the house';\n", 'house'],
    ['in a heading', 'a.md', '# Words\n## The House\n', 'house'],
    ['in a description', 'a.json', '{\n  "description": "of this house"\n}\n', 'house'],
  ])('%s', (_, file, text, word) => {
    expect(found(file, text)).toEqual([`2 ${word}: runtime, gateway, process or installation`]);
  });

  test('in the name of a file', () => {
    expect(found('test/two-houses.md', '')).toEqual(['1 houses: runtime, gateway, process or installation']);
  });

  test('in an identifier only, where the sentence may use it', () => {
    expect(found('a.ts', '// as given\nexport const given = { text: "given" };\n')).toEqual([
      '2 given: args, headers, input or whatever the value is',
    ]);
  });
});

test('part of another word is another word', () => {
  expect(found('a.ts', 'export const warehouse = "desktop, replaced, already"; // household\n')).toEqual([]);
  expect(found('a.json', '{ "house": "house" }')).toEqual([]);
  expect(found('a.ts', 'export type Done = Awaited<Promise<void>>;\n')).toEqual([]);
});

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

describe('in this tree', () => {
  const all = retiredWords(ROOT, []); // read once: it is every file

  test('there is none but the exceptions', () => {
    expect(all.filter((found) => !EXCEPTIONS.some((exception) => isExcepted(found, exception)))).toEqual([]);
  });

  test('every exception is still needed', () => {
    expect(EXCEPTIONS.filter((exception) => !all.some((found) => isExcepted(found, exception)))).toEqual([]);
  });
});
