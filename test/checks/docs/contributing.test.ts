/** The table "To change X, go to Y" of CONTRIBUTING.md: the files it names exist, and hold the names that it gives beside them. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { PROJECT } from '../../support/process/project.ts';

const page = readFileSync(join(PROJECT, 'CONTRIBUTING.md'), 'utf8');
const section = page.slice(page.indexOf('## To change X, go to Y'), page.indexOf('## How it is written'));
const rows = section.split('\n').filter((line) => line.startsWith('| ') && !/^\| (to add|-)/.test(line));

test('it has a row for each change that is made often', () => {
  expect(rows.map((row) => row.split('|')[1]?.trim())).toEqual([
    'an event kind',
    'a rule attribute',
    'a receipt schema version',
    'a CLI command',
    'a store',
    'a protocol',
    'an error kind',
    'a configuration key',
  ]);
});

test.each(rows)('%s', (row) => {
  const paths = [...row.matchAll(/`((?:src|adapters|mappings|test|docs)\/[^`]*)`/g)].map(([, path = '']) => path);
  expect(paths.filter((path) => !existsSync(join(PROJECT, path)))).toEqual([]);
  const named = [...row.matchAll(/`((?:src|mappings)\/[^`]*\.ts)` \(`(\w+)`/g)];
  const missing = named.filter(([, path = '', name = '']) => !readFileSync(join(PROJECT, path), 'utf8').includes(name));
  expect(missing.map(([text]) => text)).toEqual([]);
});
