/** What a repeated request gets. */
import { describe, expect, test } from 'vitest';
import { Fault } from '../../../src/model/faults.ts';
import type { Draft } from '../../../src/ports/index.ts';
import { taskEvent } from './events.ts';
import type { Scene } from './scenes/scene.ts';

export function idempotencyPromises({ store, reopen }: Scene): void {
  describe('idempotency', () => {
    const keyed = (body: string, task = 'task_a', decide?: () => Draft) =>
      store.commit({
        idempotency: { scope: 'POST /v1/tasks ann key-1', body },
        decide: decide ?? (() => ({ events: [taskEvent(task)], result: { task, list: [1, null] } })),
      });

    test('a repeat is answered from the first result and writes nothing', async () => {
      const first = await keyed('{"a":1}');
      await reopen();
      const again = await keyed('{"a":1}', 'task_b');
      expect(first).toMatchObject({ repeated: false, result: { task: 'task_a', list: [1, null] } });
      expect(again).toEqual({
        events: [],
        result: { task: 'task_a', list: [1, null] },
        receipt: undefined,
        repeated: true,
      });
      expect(await store.tip({ of: 'all' })).toBe('evt_0000000000000001');
    });

    test('another body under the same key is a fault', async () => {
      await keyed('{"a":1}');
      await expect(keyed('{"a":2}')).rejects.toMatchObject({ kind: 'idempotency_key_reused' });
      expect(await store.tip({ of: 'all' })).toBe('evt_0000000000000001');
    });

    test('repeats that arrive together do the work once', async () => {
      const answers = await Promise.allSettled([keyed('x'), keyed('x', 'task_b'), keyed('y'), keyed('x', 'task_c')]);
      expect(answers.map((a) => (a.status === 'fulfilled' ? a.value.repeated : a.reason.kind))).toEqual([
        false,
        true,
        'idempotency_key_reused',
        true,
      ]);
      expect(await store.tip({ of: 'all' })).toBe('evt_0000000000000001');
    });

    test('a refusal is not remembered', async () => {
      const refusal = keyed('x', 'task_a', () => {
        throw new Fault('conflict', 'not now');
      });
      await expect(refusal).rejects.toMatchObject({ kind: 'conflict' });
      expect(await keyed('x')).toMatchObject({ repeated: false });
    });

    test('no result is remembered as no result', async () => {
      await keyed('x', 'task_a', () => ({ events: [] }));
      expect(await keyed('x')).toMatchObject({ repeated: true, result: undefined });
    });
  });
}
