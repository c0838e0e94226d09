/** What no compiler can check says in a comment above it why it is right: casts through `unknown`, and what a module keeps for all of the process. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { PROJECT } from '../../support/process/project.ts';

const files = ['src', 'adapters', 'mappings'].flatMap((top) =>
  readdirSync(join(PROJECT, top), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => join(top, name)),
);
const isComment = (line: string) => /^\s*(?:\/\/|\/\*\*|\*)/.test(line);

/** Lines that match and have no comment among the lines above them. */
function without(pattern: RegExp, near: number): string[] {
  return files.flatMap((file) => {
    const lines = readFileSync(join(PROJECT, file), 'utf8').split('\n');
    return lines.flatMap((line, at) =>
      pattern.test(line) && !lines.slice(Math.max(0, at - near), at + 1).some(isComment) ? [`${file}:${at + 1}`] : [],
    );
  });
}

test('it reads the whole tree', () => {
  expect(files.length).toBeGreaterThan(500);
});

test('each cast through unknown has a reason', () => {
  // A statement can be long, and its comment is above it.
  expect(without(/\bas unknown as\b/, 6)).toEqual([]);
});

test('each map or set that grows while the process runs says what it is: a cache, or what belongs to the process', () => {
  expect(without(/^(?:export )?const \w+ = new (?:Weak)?(?:Map|Set)(?:<.*>)?\(\);$/, 2)).toEqual([]);
});
