/** An orderly end. */
import { describe, expect, test } from 'vitest';
import { collect, taskEvent } from './events.ts';
import type { Scene } from './scenes/scene.ts';

export function closingPromises({ store, append, reopen }: Scene): void {
  describe('closing', () => {
    test('finishes what was begun, refuses what comes later, ends followers', async () => {
      const following = collect(store.follow({ stream: { of: 'all' } }, new AbortController().signal));
      const pending = append(taskEvent('task_a', { n: 1 }));
      const closing = store.close();
      await expect(append(taskEvent('task_a', { n: 2 }))).rejects.toMatchObject({ kind: 'unavailable' });
      expect((await pending).events).toHaveLength(1);
      await closing;
      await store.close();
      await following;
      await expect(store.get('task', 'task_a')).rejects.toMatchObject({ kind: 'unavailable' });
      await reopen();
      expect(await collect(store.read({ stream: { of: 'all' } }))).toHaveLength(1);
      expect(store.trouble()).toBeUndefined();
    });
  });
}
