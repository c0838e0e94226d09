/** Resources as last written, and as the log tells them. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { vendorEvent } from '../../../src/model/events.ts';
import type { Store } from '../../../src/ports/index.ts';
import { everyRow, ofRun, randomUnits, taskEvent } from './events.ts';
import type { Counted } from './projector.ts';
import type { Scene } from './scenes/scene.ts';

export function projectionsPromises({ store, clock, append, fill }: Scene): void {
  describe('projections', () => {
    const ids = async (query: Omit<Parameters<Store['list']>[0], 'object'> = {}) =>
      (await store.list({ object: 'task', ...query })).map(({ id }) => id);

    test('are listed oldest first by creation and id, and can be paged either way', async () => {
      await append(taskEvent('task_b'), taskEvent('task_a'));
      clock.set('2026-11-16T09:00:01.000Z');
      await append(taskEvent('task_0'), taskEvent('task_b'));
      expect(await ids()).toEqual(['task_a', 'task_b', 'task_0']);
      expect(await ids({ newestFirst: true })).toEqual(['task_0', 'task_b', 'task_a']);
      expect(await ids({ after: 'task_a', limit: 1 })).toEqual(['task_b']);
      expect(await ids({ after: 'task_b', newestFirst: true })).toEqual(['task_a']);
      expect(await ids({ after: 'task_0' })).toEqual([]);
      await expect(ids({ after: 'task_never' })).rejects.toMatchObject({ kind: 'invalid_request', param: 'after' });
    });

    test('are filtered by the members a list may be filtered by', async () => {
      await append(
        taskEvent('task_1', { status: 'WORKING', owner_id: 'ann' }),
        taskEvent('task_2', { status: 'COMPLETED' }, { session_id: 'session_2' }),
        taskEvent('task_3', { status: 'FAILED' }, { workspace_id: 'workspace_2' }),
        taskEvent('task_4', {}, { session_id: null, workspace_id: null }),
      );
      await append(taskEvent('task_1', { status: 'CANCELED' }));
      expect(await ids({ where: { state: 'WORKING' } })).toEqual([]);
      expect(await ids({ where: { state: ['COMPLETED', 'CANCELED'] } })).toEqual(['task_1', 'task_2']);
      expect(await ids({ where: { session_id: 'session_1' } })).toEqual(['task_1', 'task_3']);
      expect(await ids({ where: { session_id: 'session_1', workspace_id: 'workspace_2' } })).toEqual(['task_3']);
      expect(await ids({ where: { owner_id: ['ann'] } })).toEqual([]);
      expect(await ids({ where: { state: [] } })).toEqual([]);
      expect(await ids()).toEqual(['task_1', 'task_2', 'task_3', 'task_4']);
      expect((await store.list({ object: 'session' })).map(({ id }) => id)).toEqual(['session_1', 'session_2']);
    });

    test('fifty at a time unless told otherwise', async () => {
      await append(...Array.from({ length: 60 }, (_, n) => taskEvent(`task_${n + 10}`)));
      expect((await ids()).length).toBe(50);
      expect((await ids({ limit: 55 })).length).toBe(55);
      expect((await ids({ after: 'task_59' })).length).toBe(10);
    });

    test('a page goes on after a row that was changed or withdrawn meanwhile', async () => {
      await append(taskEvent('task_1'), taskEvent('task_2'), taskEvent('task_3'));
      await append(taskEvent('task_2', {}, { event: vendorEvent('task.withdrawn') }));
      expect(await store.get('task', 'task_2')).toBeUndefined();
      expect(await ids()).toEqual(['task_1', 'task_3']);
      expect(await ids({ after: 'task_2' })).toEqual(['task_3']);
      await append(taskEvent('task_1', { status: 'WORKING' }));
      expect(await ids({ after: 'task_1' })).toEqual(['task_3']);
      clock.set('2026-11-16T09:30:00.000Z');
      await append(taskEvent('task_2'), taskEvent('task_4'));
      await append(taskEvent('task_4', {}, { event: vendorEvent('task.withdrawn') }), taskEvent('task_5'));
      expect(await ids()).toEqual(['task_1', 'task_2', 'task_3', 'task_5']);
      expect(await ids({ after: 'task_4' })).toEqual(['task_5']);
    });

    test('an event drops rows that its projection did not read, when it is written and whenever it is folded again', async () => {
      const dropping = { drops: ['task_1', 'task_never'], status: 'COMPLETED' };
      await append(taskEvent('task_1', { status: 'COMPLETED' }), taskEvent('task_2', { status: 'COMPLETED' }));
      // More events than are folded at a time, so that the row is stored before the event that drops it is looked at.
      await fill(600, () => taskEvent('task_2', { status: 'COMPLETED' }));
      clock.set('2026-11-16T09:01:00.000Z');
      await append(taskEvent('task_3', dropping));
      // The same within one commit.
      await append(taskEvent('task_4'), taskEvent('task_5', { drops: ['task_4'], status: 'COMPLETED' }));
      const dropped = async () => {
        expect(await store.get('task', 'task_1')).toBeUndefined();
        expect(await ids()).toEqual(['task_2', 'task_3', 'task_5']);
        expect(await store.compareRows()).not.toHaveProperty('fault');
      };
      await dropped();
      await store.rebuild();
      await dropped();
      clock.set('2026-11-16T09:02:00.000Z');
      expect(await store.retain('2026-11-16T09:02:00.000Z')).toEqual({ dropped: 605 });
      await store.rebuild();
      await dropped();
      await append(taskEvent('task_1'));
      const back = await everyRow(store, 1);
      await store.rebuild();
      expect(await everyRow(store, 1)).toEqual(back);
      expect(await ids()).toEqual(['task_1', 'task_2', 'task_3', 'task_5']);
    });

    test('rebuilt from the log they come out as they were', async () => {
      let runs = 0;
      await fc.assert(
        fc.asyncProperty(randomUnits, async (units) => {
          runs++;
          // All at once, so that some share a commit and see each other's rows before the disk does.
          await Promise.all(units.map((events) => append(...events.map((event) => ofRun(event, runs)))));
          const before = await everyRow(store, runs);
          expect(await store.compareRows()).toEqual({ compared: expect.any(Number), unproven: 0 });
          await store.rebuild();
          expect(await everyRow(store, runs)).toEqual(before);
        }),
        { numRuns: 10 },
      );
    });

    test('a rebuild while others write loses nothing', async () => {
      await fill(2_000, (n) => taskEvent(`task_${n % 7}`));
      const writing = (async () => {
        for (let n = 0; n < 60; n++) await append(taskEvent(`task_${n % 7}`));
      })();
      await Promise.all([store.rebuild(), writing]);
      const counts = (await store.list<Counted>({ object: 'task' })).map(({ count }) => count);
      expect(counts.reduce((a, b) => a + b)).toBe(2_060);
    });
  });
}
