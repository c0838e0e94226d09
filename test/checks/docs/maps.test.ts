/** The README of a folder is its map: it names every file below the folder, itself or by the folder the file is in, and no file that is gone. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { PROJECT } from '../../support/process/project.ts';

const below = (folder: string) =>
  readdirSync(join(PROJECT, folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file));
const files = ['src', 'adapters', 'mappings'].flatMap(below);
const maps = files.filter((file) => file.endsWith('README.md'));

/** The files whose map this is: those below it that have none of their own, without the pages of the console. */
const onMap = (map: string) =>
  files.filter((file) => {
    const nearest = maps
      .filter((other) => file.startsWith(`${dirname(other)}/`))
      .toSorted((one, other) => other.length - one.length)[0];
    return nearest === map && /\.tsx?$/.test(file) && !file.startsWith('src/console/app/');
  });

/** What stands in backticks and looks like a file, `*` included, or like a folder. */
const named = (map: string) =>
  [...readFileSync(join(PROJECT, map), 'utf8').matchAll(/`([\w./*-]+(?:\.tsx?|\/\*?))`/g)].map(([, name = '']) => name);

const asPattern = (name: string) => {
  const text = name.replaceAll('.', '\\.').replaceAll('*', '[^/]*');
  return new RegExp(`(?:^|/)${text}${name.endsWith('/') ? '.*' : ''}$`);
};

test('there is a map in every room', () => {
  const rooms = readdirSync(join(PROJECT, 'src'), { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const without = rooms.filter(({ name }) => name !== 'ports' && !maps.includes(join('src', name, 'README.md')));
  expect(without.map(({ name }) => name)).toEqual([]);
  expect(maps.length).toBeGreaterThan(20);
});

test.each(maps)('%s names every file', (map) => {
  const patterns = named(map).map(asPattern);
  const missing = onMap(map).filter((file) => !patterns.some((pattern) => pattern.test(file)));
  expect(missing).toEqual([]);
});

test.each(maps)('%s names no file that is gone', (map) => {
  const folder = dirname(map);
  const here = files.filter((file) => file.startsWith(`${folder}/`));
  const gone = named(map).filter((name) => {
    // Addresses, names of methods, and folders of a data directory.
    if (/^[/.]|\/\*$/.test(name) || existsSync(join(PROJECT, name))) return false;
    const pattern = asPattern(name);
    return !here.some((file) => pattern.test(file)) && !files.some((file) => file === join('src', name));
  });
  expect(gone).toEqual([]);
});
