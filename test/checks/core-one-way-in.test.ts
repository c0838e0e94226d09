/** Only the log's own module commits to the store: every event passes the place where secrets are taken out. */
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect, test } from 'vitest';
import { PROJECT } from '../support/process/project.ts';

test('nothing but core/events/log.ts commits to a store', () => {
  const files = ['src', 'adapters'].flatMap((room) =>
    readdirSync(join(PROJECT, room), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
      .map((entry) => join(entry.parentPath, entry.name)),
  );
  const committing = files.filter((file) => /\bstore\.commit\(/.test(readFileSync(file, 'utf8')));
  expect(committing.map((file) => relative(PROJECT, file))).toEqual([
    // Wraps the store that the log commits to, to notice changed rules; it commits nothing of its own.
    'src/runtime/assemble.ts',
    'src/core/events/log.ts',
  ]);
});
