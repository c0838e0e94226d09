/** The matrix that is shipped says what the tables say. */
import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { matrix } from './mapping-matrix.ts';

/** Without the padding a formatter puts into tables. */
const plain = (text: string) => text.replace(/ {2,}/g, ' ').replace(/-{3,}/g, '---');

test('mappings/MATRIX.md is what npm run matrix would write', async () => {
  const shipped = await readFile(new URL('../../../mappings/MATRIX.md', import.meta.url), 'utf8');
  expect(plain(shipped)).toBe(plain(matrix()));
});

test('every state of a task and every fault has a word in every column that knows it', () => {
  const text = matrix();
  expect(text).toContain('| `COMPLETED` | `TASK_STATE_COMPLETED` | `completed` |');
  expect(text).toMatch(/\| `not_found` \| `404 resource_not_found` \| /);
});
