/** Receipts, their chains and their tree. */
import { describe, expect, test } from 'vitest';
import type { Store } from '../../../src/ports/index.ts';
import { sealFor, taskEvent } from './events.ts';
import type { Scene } from './scenes/scene.ts';

export function receiptsPromises({ store, reopen }: Scene): void {
  describe('receipts', () => {
    const issue = (chain: string, id: string) =>
      store.commit({
        decide: () => ({ events: [taskEvent(`task_${id}`)], receipt: { chain, seal: (head) => sealFor(id, head) } }),
      });

    test('each has exactly one predecessor in its chain and one place in the tree', async () => {
      const committed = await Promise.all([issue('a', '1'), issue('b', '2'), issue('a', '3')]);
      await reopen();
      await issue('a', '4');
      expect(committed.map(({ receipt }) => receipt)).toMatchObject([{ id: '1' }, { id: '2' }, { id: '3' }]);
      const stored = await store.receipts({});
      expect(stored.map(({ position, chain, index, hash }) => ({ position, chain, index, hash }))).toEqual([
        { position: 0, chain: 'a', index: 0, hash: 'hash-1' },
        { position: 1, chain: 'b', index: 0, hash: 'hash-2' },
        { position: 2, chain: 'a', index: 1, hash: 'hash-3' },
        { position: 3, chain: 'a', index: 2, hash: 'hash-4' },
      ]);
      expect(stored.map(({ receipt }) => receipt)).toEqual([
        { id: '1', previous: null, size: 0 },
        { id: '2', previous: null, size: 1 },
        { id: '3', previous: 'hash-1', size: 2 },
        { id: '4', previous: 'hash-3', size: 3 },
      ]);
      expect(await store.tree()).toEqual({ size: 4, frontier: ['1', '2', '3', '4'] });
    });

    test('are found by id, chain and task, page by page', async () => {
      for (const [chain, id] of [
        ['a', '1'],
        ['b', '2'],
        ['a', '3'],
        ['a', '4'],
      ] as const)
        await issue(chain, id);
      expect(await store.receipt('3')).toEqual({
        position: 2,
        chain: 'a',
        index: 1,
        hash: 'hash-3',
        receipt: { id: '3', previous: 'hash-1', size: 2 },
      });
      expect(await store.receipt('9')).toBeUndefined();
      const ids = async (query: Parameters<Store['receipts']>[0]) =>
        (await store.receipts(query)).map(({ receipt }) => (receipt as unknown as { id: string }).id);
      expect(await ids({ chain: 'a' })).toEqual(['1', '3', '4']);
      expect(await ids({ chain: 'a', after: 0, limit: 1 })).toEqual(['3']);
      expect(await ids({ task: 'task_2' })).toEqual(['2']);
      expect(await ids({ task: 'task_2', chain: 'a' })).toEqual([]);
      expect(await ids({ after: 2 })).toEqual(['4']);
    });

    test('a chain goes on from any position, its own or another', async () => {
      for (let n = 0; n < 12; n++) await issue(n % 3 === 0 ? 'rare' : 'busy', `${n}`);
      const behind = async (chain: string, position: number) =>
        (await store.receipts({ chain, after: position, limit: 3 })).map(({ position }) => position);
      expect(await behind('rare', -1)).toEqual([0, 3, 6]);
      expect(await behind('rare', 0)).toEqual([3, 6, 9]);
      expect(await behind('rare', 4)).toEqual([6, 9]);
      expect(await behind('rare', 9)).toEqual([]);
      expect(await behind('rare', 100)).toEqual([]);
      expect(await behind('busy', 0)).toEqual([1, 2, 4]);
      expect(await behind('busy', 7)).toEqual([8, 10, 11]);
      expect(await behind('none', 0)).toEqual([]);
      expect((await store.receipts({ chain: 'rare', index: 2 })).map(({ position }) => position)).toEqual([6]);
    });

    test('tree nodes are kept and asked for by level and index', async () => {
      for (const id of ['1', '2', '3']) await issue('a', id);
      const nodes = await store.nodes([
        { level: 0, index: 2 },
        { level: 0, index: 0 },
        { level: 5, index: 5 },
      ]);
      expect(nodes).toEqual([
        { level: 0, index: 2, hash: 'leaf-3' },
        { level: 0, index: 0, hash: 'leaf-1' },
      ]);
    });
  });
}
