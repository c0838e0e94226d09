/** Lists of receipts from both ends: the same receipts, page by page, and only the reader's own. */
import { expect, test } from 'vitest';
import type { Actor } from '../../../../src/model/actions.ts';
import { blue, everything, red } from '../../../support/gateway/two-tenants.ts';

test('newest first is oldest first the other way round, in pages of any size, and others do not shorten a page', async () => {
  const { t, room } = await everything();
  const theirs = await t.room({ actor: blue });
  for (let count = 0; count < 7; count += 1) {
    await t.until((await (count % 3 === 0 ? room : theirs).task()).id);
  }
  const listed = async (actor: Actor, newestFirst: boolean, limit: number, where = {}) => {
    const ids: string[] = [];
    for (let after: string | undefined; ; ) {
      const query = { object: 'receipt', limit, newestFirst, where, ...(after && { after }) };
      const { data, next } = await t.bridge.list(actor, query);
      expect(data.length).toBeLessThanOrEqual(limit);
      ids.push(...data.map(({ id }) => id));
      if (!next) return ids;
      expect(next).toBe(ids.at(-1));
      after = next;
    }
  };
  for (const [actor, count, workspace] of [
    [red, 4, room.workspace],
    [blue, 4, theirs.workspace],
  ] as const) {
    const oldest = await listed(actor, false, 50);
    expect(oldest).toHaveLength(count);
    for (const limit of [1, 2, 3, 50]) {
      expect(await listed(actor, true, limit)).toEqual(oldest.toReversed());
      expect(await listed(actor, true, limit, { workspace_id: workspace })).toEqual(oldest.toReversed());
    }
    const { data } = await t.bridge.list(actor, { object: 'receipt', limit: 1 });
    const task_id = (data[0] as unknown as { subject: { id: string } }).subject.id;
    expect(await listed(actor, true, 2, { task_id })).toEqual([oldest[0]]);
  }
});
