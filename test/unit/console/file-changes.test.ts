/** Files that a session changed, as far as its log has their content. */
import { expect, test } from 'vitest';
import { writtenFiles } from '../../../src/console/app/file-changes.ts';
import type { LogEvent } from '../../../src/console/app/rows.ts';

let made = 0;
function event(name: string, payload: object): LogEvent {
  made += 1;
  return { id: `evt_${made}`, event: name, created_at: '2026-05-01T10:00:00.000Z', payload: { ...payload } };
}
const wrote = (tool_call_id: string, path: string, operation = 'modify') =>
  event('vendor.tollbridge.side_effect', { type: 'fs_write', path, operation, evidence: 'held', tool_call_id });
const called = (tool_call_id: string, input: object) => event('tool.requested', { tool_call_id, name: 'write', input });

test('a second write is compared with the first, and a first one with nothing', () => {
  const [first, second] = writtenFiles([
    called('a', { path: 'notes.md', content: 'one\ntwo\n' }),
    wrote('a', '/repo/notes.md', 'create'),
    called('b', { path: '/repo/notes.md', content: 'one\nthree\n' }),
    wrote('b', '/repo/notes.md'),
  ]);
  expect(first).toMatchObject({ operation: 'create', change: { what: 'a new file' } });
  expect(second?.change?.text).toContain('-two\n+three');
});

test('a change that an editor reports with both sides is shown as such', () => {
  const [file] = writtenFiles([
    called('a', { path: 'a.ts' }),
    event('tool.completed', {
      tool_call_id: 'a',
      output: [{ type: 'diff', path: 'a.ts', oldText: 'let x', newText: 'const x' }],
    }),
    wrote('a', 'a.ts'),
  ]);
  expect(file?.change?.text).toContain('-let x');
  expect(file?.change?.text).toContain('+const x');
});

test('a file whose content is not in the log has no change to show, and one that was there before says so', () => {
  const [hashed, unknown] = writtenFiles([
    wrote('a', 'secret.bin'),
    called('b', { path: 'b.txt', content: 'now' }),
    wrote('b', 'b.txt'),
  ]);
  expect(hashed?.change).toBeUndefined();
  expect(unknown?.change).toEqual({ what: 'what the file held then, whole', text: '+now' });
});

test('the arguments of another file are not taken for this one', () => {
  const [file] = writtenFiles([called('a', { path: 'other.txt', content: 'x' }), wrote('a', 'mine.txt')]);
  expect(file?.change).toBeUndefined();
});
