/** One holder at a time. */
import { describe, expect, test } from 'vitest';
import { taskEvent } from './events.ts';
import type { Scene } from './scenes/scene.ts';

export function leasesPromises({ store, reopen }: Scene): void {
  describe('leases', () => {
    test('one holder at a time, by any name', async () => {
      const held = await store.lease('../a name/with: ev\u0000erything ü');
      expect(held).toBeDefined();
      expect(await store.lease('../a name/with: ev\u0000erything ü')).toBeUndefined();
      const other = await store.lease('another');
      expect(other).toBeDefined();
      await held?.close();
      await held?.close();
      const again = await store.lease('../a name/with: ev\u0000erything ü');
      expect(again).toBeDefined();
      await Promise.all([again?.close(), other?.close()]);
    });

    test('a unit of a lease is written while it is held, and refused once it is not', async () => {
      const held = await store.lease('session:1');
      const under = { lease: held!, decide: () => ({ events: [taskEvent('task_a')], result: 'written' }) };
      expect(held?.lost.aborted).toBe(false);
      expect((await store.commit(under)).result).toBe('written');
      await held?.close();
      expect(held?.lost.aborted).toBe(true);
      const refused = expect.objectContaining({ kind: 'conflict', details: { lease: 'session:1' } });
      await expect(store.commit(under)).rejects.toEqual(refused);
      const again = await store.lease('session:1');
      await expect(store.commit(under)).rejects.toEqual(refused);
      expect((await store.commit({ ...under, lease: again! })).events[0]).toMatchObject({ sequence: 2 });
    });

    test('closing the store lets go', async () => {
      const lease = await store.lease('x');
      expect(lease).toBeDefined();
      await reopen();
      expect(lease?.lost.aborted).toBe(true);
      expect(await store.lease('x')).toBeDefined();
    });
  });
}
