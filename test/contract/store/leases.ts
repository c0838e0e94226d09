/** One holder at a time. */
import { describe, expect, test } from 'vitest';
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

    test('closing the store lets go', async () => {
      expect(await store.lease('x')).toBeDefined();
      await reopen();
      expect(await store.lease('x')).toBeDefined();
    });
  });
}
