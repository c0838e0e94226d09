/**
 * The table "To change X, go to Y" of CONTRIBUTING.md, and the steps of docs/add-a-protocol.md that it leads to: the files they name exist and
 * hold the names given beside them, and the scripts they name can be run.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { PROJECT } from '../../support/process/project.ts';

const page = readFileSync(join(PROJECT, 'CONTRIBUTING.md'), 'utf8');
const section = page.slice(page.indexOf('## To change X, go to Y'), page.indexOf('## How it is written'));
const rows = section.split('\n').filter((line) => line.startsWith('| ') && !/^\| (to add|-)/.test(line));

const protocol = readFileSync(join(PROJECT, 'docs/add-a-protocol.md'), 'utf8').split('## In this repository')[1] ?? '';
const steps = protocol.split(/^(?=\d\. )/m).slice(1);
const { scripts } = JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8')) as { scripts: object };

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

test.each([...rows, ...steps])('%s', (row) => {
  const paths = [...row.matchAll(/`((?:src|adapters|mappings|test|docs)\/[^`<]*)`/g)].map(([, path = '']) => path);
  expect(paths.filter((path) => !existsSync(join(PROJECT, path)))).toEqual([]);
  expect(namesIn(row).filter(({ path, name }) => !has(path, name))).toEqual([]);
  const run = [...row.matchAll(/`npm run ([\w:]+)`/g)].map(([, script = '']) => script);
  expect(run.filter((script) => !(script in scripts))).toEqual([]);
});

test('every folder of commands has the definition that its row begins with', () => {
  const folders = readdirSync(join(PROJECT, 'src/cli/commands'), { withFileTypes: true }).filter((e) =>
    e.isDirectory(),
  );
  expect(folders.length).toBeGreaterThan(10);
  const without = folders.filter(({ name }) => !existsSync(join(PROJECT, 'src/cli/commands', name, 'definition.ts')));
  expect(without.map(({ name }) => name)).toEqual([]);
});

/** A file and what it holds: `file` (`one`, `two`), or `one` in `file`. */
function namesIn(row: string): readonly { readonly path: string; readonly name: string }[] {
  const listed = [...row.matchAll(/`((?:src|adapters|mappings|test)\/[^`<]*\.tsx?)` \(((?:`\w+`(?:, )?)+)/g)];
  const before = [...row.matchAll(/`(\w+)` in\s+`((?:src|adapters|mappings|test)\/[^`<]*\.tsx?)`/g)];
  return [
    ...listed.flatMap(([, path = '', names = '']) => (names.match(/\w+/g) ?? []).map((name) => ({ path, name }))),
    ...before.map(([, name = '', path = '']) => ({ path, name })),
  ];
}

/** As a word: `run` is not found in `runtime`. */
const has = (path: string, name: string) => new RegExp(`\\b${name}\\b`).test(readFileSync(join(PROJECT, path), 'utf8'));
