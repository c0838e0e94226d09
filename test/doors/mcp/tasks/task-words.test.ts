/** Names, places and states of tasks: what they are made of, and what is none. */
import { expect, test } from 'vitest';
import { lastCounted } from '../../../../adapters/mcp/server/aggregate/numbered-names.ts';
import { listTasks, type TaskSource } from '../../../../adapters/mcp/server/aggregate/tasks.ts';
import { isAlive } from '../../../../adapters/mcp/tasks/log.ts';
import { keptIn, keptName, taskIn } from '../../../../adapters/mcp/tasks/words.ts';
import type { Loose } from '../../../support/mcp/upstream.ts';

const CALL = '123e4567-e89b-42d3-a456-426614174000';

test('the name of a kept task says which call it is and until when; nothing else is such a name', () => {
  for (const kept of [
    { callId: CALL, created: 1_794_000_000_000, ttl: 0 },
    { callId: CALL, created: 0, ttl: 3_600_000 },
  ]) {
    expect(keptIn(keptName(kept))).toEqual(kept);
  }
  for (const other of ['', 't1', CALL, `kept-${CALL}`, `kept-1-2-${CALL}x`, `kept-A-2-${CALL}`, 7, null, undefined]) {
    expect(keptIn(other)).toBeUndefined();
  }
});

test('a task is found in a result of either design', () => {
  const task = { taskId: 't', status: 'working' };
  expect(taskIn({ task })).toEqual(task);
  expect(taskIn({ resultType: 'task', ...task })).toMatchObject(task);
  for (const none of [{}, { taskId: 't' }, { task: { taskId: 1 } }, { resultType: 'complete', ...task }]) {
    expect(taskIn(none as Loose)).toBeUndefined();
  }
});

test('a task is to be kept for as long as was said, in the words of either design, or for good', () => {
  const createdAt = new Date(1_000).toISOString();
  expect(isAlive({ createdAt, ttl: 500 }, 1_500)).toBe(true);
  expect(isAlive({ createdAt, ttl: 500 }, 1_501)).toBe(false);
  expect(isAlive({ createdAt, ttlMs: 500 }, 1_501)).toBe(false);
  expect(isAlive({ createdAt, ttl: null }, 1e15)).toBe(true);
});

test('the last of counted names is found, however many there are, with few looks', async () => {
  for (const last of [0, 1, 2, 3, 7, 8, 1_000]) {
    let looks = 0;
    const find = async (count: number) => {
      looks += 1;
      return count <= last ? `n${count}` : undefined;
    };
    expect(await lastCounted(find)).toEqual({ count: last, found: last === 0 ? undefined : `n${last}` });
    expect(looks).toBeLessThanOrEqual(2 * Math.ceil(Math.log2(last + 2)) + 1);
  }
});

test('the lists of several servers follow each other; a server without tasks, or without an answer, is passed over', async () => {
  const pages: Record<string, Loose[]> = { a: [[1, 2], [3]], none: [[]], b: [[4]], last: [[]] };
  const sources: TaskSource[] = ['a', 'none', 'mute', 'b', 'last'].map((name) => ({
    name,
    async page(cursor) {
      const at = cursor === undefined ? 0 : Number(cursor);
      const tasks = pages[name]?.[at];
      const more = pages[name]?.[at + 1] && { nextCursor: String(at + 1) };
      return tasks && { tasks: tasks.map((taskId: number) => ({ taskId })), ...more };
    },
  }));
  const seen: number[][] = [];
  for (let cursor: string | undefined; ; ) {
    const { result } = (await listTasks(cursor, sources)) as Loose;
    seen.push(result.tasks.map(({ taskId }: Loose) => taskId));
    cursor = result.nextCursor;
    if (cursor === undefined) break;
  }
  expect(seen).toEqual([[1, 2], [3], [4], []]);
  expect(await listTasks(undefined, [])).toEqual({ result: { tasks: [] } });
  const location = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  for (const cursor of [
    '',
    'x',
    location(['nobody']),
    location(['a', '9']),
    location({}),
    location(null),
    location([1]),
  ]) {
    expect(await listTasks(cursor, sources), cursor).toEqual({ error: { code: -32602, message: 'Invalid cursor' } });
  }
});
