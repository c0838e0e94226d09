/** Bytes by their hash. */
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { Scene } from './scenes/scene.ts';

export function blobsPromises({ store, reopen }: Scene): void {
  describe('blobs', () => {
    const bytes = Uint8Array.from({ length: 700_001 }, (_, i) => (i * 31) % 251);

    test('come back by their hash, whole and in part', async () => {
      const sha256 = await store.putBlob(bytes);
      expect(sha256).toBe(createHash('sha256').update(bytes).digest('hex'));
      await reopen();
      expect(Buffer.compare((await store.blob(sha256))!, bytes)).toBe(0);
      expect(await store.blob(sha256, { start: 262_140, end: 262_150 })).toEqual(bytes.slice(262_140, 262_150));
      expect(await store.blob(sha256, { start: 700_000, end: 900_000 })).toEqual(bytes.slice(700_000));
      expect(await store.blob(sha256, { start: 800_000, end: 900_000 })).toEqual(new Uint8Array(0));
      await expect(store.blob(sha256, { start: -1, end: 3 })).rejects.toMatchObject({ kind: 'invalid_request' });
      await expect(store.blob(sha256, { start: 5, end: 3 })).rejects.toMatchObject({ kind: 'invalid_request' });
    });

    test('are there or not', async () => {
      const sha256 = await store.putBlob(new TextEncoder().encode('hello'));
      expect(sha256).toBe('2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824');
      expect(await store.putBlob(new TextEncoder().encode('hello'))).toBe(sha256);
      expect(await store.hasBlob(sha256)).toBe(true);
      expect(await store.hasBlob('00')).toBe(false);
      expect(await store.blob('00')).toBeUndefined();
      const empty = await store.putBlob(new Uint8Array(0));
      expect(await store.blob(empty)).toEqual(new Uint8Array(0));
    });

    test('are what they were when given, whatever the caller does with its buffer then', async () => {
      const buffer = new Uint8Array(6_000_000).fill(1);
      const putting = store.putBlob(buffer);
      buffer.fill(2);
      const sha256 = await putting;
      const back = await store.blob(sha256);
      expect(sha256).toBe(createHash('sha256').update(new Uint8Array(6_000_000).fill(1)).digest('hex'));
      expect(Buffer.compare(back!, new Uint8Array(6_000_000).fill(1))).toBe(0);
    });
  });
}
