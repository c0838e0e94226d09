/** While one batch is being written, the next is decided on top of it; nobody can tell, except by how soon they are answered. */

import { describe, expect, test } from 'vitest';
import { vendorEvent } from '../../../src/model/events.ts';
import { Fault } from '../../../src/model/faults.ts';
import type { JsonObject } from '../../../src/model/schema.ts';
import type { At, Draft, Unit } from '../../../src/ports/index.ts';
import type { SqliteStore } from '../../../src/store/sqlite/index.ts';
import { sealFor } from '../../contract/store/events.ts';
import { contractProjector } from '../../contract/store/projector.ts';
import { ALWAYS_ELSEWHERE, all, compiledStore, event, sqliteHome } from '../../contract/store/scenes/sqlite-home.ts';

const { start, other } = sqliteHome(await compiledStore());
const startAhead = (more = {}) => start({ concurrentWriters: ALWAYS_ELSEWHERE, projector: contractProjector, ...more });

const turn = () => new Promise((resolve) => setImmediate(resolve));
/** Takes far longer to write than it takes to decide what comes after it. */
const LONG = 'x'.repeat(8_000_000);
const TASK = { object: 'task', id: 'task_1' };

/** Commits, and notes in `said` when it was decided and when it was answered. */
function noting(store: SqliteStore, said: string[]) {
  return async (name: string, decide: (at: At) => Draft, more: Partial<Unit> = {}) => {
    const committed = store.commit({
      reads: [TASK],
      ...more,
      decide(at) {
        said.push(`${name} decided`);
        return decide(at);
      },
    });
    return committed.then(
      (answer) => {
        said.push(`${name} answered`);
        return answer;
      },
      (reason: Fault) => {
        said.push(`${name} refused`);
        return { refused: reason.kind };
      },
    );
  };
}
const countOf = (at: At) => (at.get(TASK.object, TASK.id) as { count?: number } | undefined)?.count;

describe('while a batch is being written', () => {
  test('a unit that arrives finds the rows the batch will leave, and is answered after the batch', async () => {
    const store = await startAhead();
    const said: string[] = [];
    const commit = noting(store, said);
    const first = commit('first', () => ({ events: [event('task_1', { text: LONG })] }));
    await turn();
    const found: unknown[] = [];
    const second = commit('second', (at) => {
      found.push(countOf(at), at.sequence(TASK.object, TASK.id));
      return { events: [event('task_1')] };
    });
    await turn();
    const third = commit('third', (at) => {
      found.push(countOf(at), at.sequence(TASK.object, TASK.id));
      return { events: [event('task_1')] };
    });
    await Promise.all([first, second, third]);
    expect(found).toEqual([1, 1, 2, 2]);
    expect(said).toEqual([
      'first decided',
      'second decided',
      'third decided',
      'first answered',
      'second answered',
      'third answered',
    ]);
    expect(store.commitsElsewhere()).toBe(2);
    expect((await all(store)).map(({ id, sequence }) => [id, sequence])).toEqual([
      ['evt_0000000000000001', 1],
      ['evt_0000000000000002', 2],
      ['evt_0000000000000003', 3],
    ]);
    expect(await store.get('task', 'task_1')).toMatchObject({ count: 3, session_id: 'session_1' });
    expect(await store.get('session', 'session_1')).toMatchObject({ count: 1 });
  });

  test('a row that it drops is gone, and one that it changes is found by what it is now', async () => {
    const store = await startAhead();
    const said: string[] = [];
    const commit = noting(store, said);
    await store.commit({ decide: () => ({ events: [event('task_1', { status: 'WORKING' }), event('task_2')] }) });
    const first = commit('first', () => ({
      events: [
        event('task_3', { text: LONG }),
        { ...event('task_2'), event: vendorEvent('task.withdrawn') },
        event('task_1', { status: 'COMPLETED' }),
      ],
    }));
    await turn();
    const gone: unknown[] = [];
    const second = commit(
      'second',
      (at) => {
        gone.push(at.get('task', 'task_2'));
        return { events: [event('task_1'), event('task_2')] };
      },
      { reads: [{ object: 'task', id: 'task_2' }] },
    );
    await Promise.all([first, second]);
    expect(said.slice(0, 2)).toEqual(['first decided', 'second decided']);
    expect(gone).toEqual([undefined]);
    const ids = async (state: string) => (await store.list({ object: 'task', where: { state } })).map(({ id }) => id);
    expect(await ids('WORKING')).toEqual([]);
    expect(await ids('COMPLETED')).toEqual(['task_1']);
    expect(await store.get('task', 'task_2')).toMatchObject({ count: 1 });
    const rows = await store.list({ object: 'task' });
    await store.rebuild();
    expect(await store.list({ object: 'task' })).toEqual(rows);
  });

  test('repeats of what it answers are repeats, and receipts follow those it seals', async () => {
    const store = await startAhead();
    const said: string[] = [];
    const commit = noting(store, said);
    const issue = (name: string, chain: string, text = '') => ({
      events: [event('task_1', { text })],
      result: { name },
      receipt: { chain, seal: (head: Parameters<typeof sealFor>[1]) => sealFor(name, head) },
    });
    const key = (body: string) => ({ idempotency: { scope: 'POST ann key-1', body } });
    const first = commit('first', () => issue('1', 'a', LONG), key('x'));
    await turn();
    const repeat = commit('repeat', () => issue('2', 'a'), key('x'));
    const reuse = commit('reuse', () => issue('3', 'a'), key('y'));
    const same = commit('same', () => issue('4', 'a'));
    const another = commit('another', () => issue('5', 'b'));
    const [, repeated, reused] = await Promise.all([first, repeat, reuse, same, another]);
    expect(said.indexOf('another decided')).toBeLessThan(said.indexOf('first answered'));
    expect(repeated).toEqual({ events: [], result: { name: '1' }, receipt: undefined, repeated: true });
    expect(reused).toEqual({ refused: 'idempotency_key_reused' });
    expect(
      (await store.receipts({})).map(({ position, chain, index, receipt }) => ({ position, chain, index, receipt })),
    ).toEqual([
      { position: 0, chain: 'a', index: 0, receipt: { id: '1', previous: null, size: 0 } },
      { position: 1, chain: 'a', index: 1, receipt: { id: '4', previous: 'hash-1', size: 1 } },
      { position: 2, chain: 'b', index: 0, receipt: { id: '5', previous: null, size: 2 } },
    ]);
  });

  test('what was new two batches ago is found where it is by now', async () => {
    const store = await startAhead();
    const said: string[] = [];
    const commit = noting(store, said);
    const first = commit('first', () => ({ events: [event('task_1', { text: LONG })], born: ['task_1'] }));
    await turn();
    // About something else, and long enough that the third meets it on its way.
    const second = commit('second', () => ({ events: [event('task_2', { text: LONG })], born: ['task_2'] }));
    await first;
    const found: unknown[] = [];
    const third = commit('third', (at) => {
      found.push(countOf(at), at.sequence(TASK.object, TASK.id));
      return { events: [event('task_1', { status: 'COMPLETED' })] };
    });
    await Promise.all([second, third]);
    expect(found).toEqual([1, 1]);
    expect(said.indexOf('third decided')).toBeLessThan(said.indexOf('second answered'));
    expect((await store.list({ object: 'task', where: { state: 'COMPLETED' } })).map(({ id }) => id)).toEqual([
      'task_1',
    ]);
    expect(await store.get('task', 'task_1')).toMatchObject({ count: 2 });
  });

  test('a refusal that rests on it is reported after it, and leaves no trace', async () => {
    const store = await startAhead();
    const said: string[] = [];
    const commit = noting(store, said);
    const first = commit('first', () => ({ events: [event('task_1', { text: LONG })] }));
    await turn();
    const second = commit('second', (at) => {
      if (countOf(at)) throw new Fault('conflict', 'it is there already');
      return { events: [event('task_1')] };
    });
    expect(await second).toEqual({ refused: 'conflict' });
    await first;
    expect(said).toEqual(['first decided', 'second decided', 'first answered', 'second refused']);
    expect(await all(store)).toHaveLength(1);
  });

  test('a later unit has a later time, and never an earlier one', async () => {
    let now = '2026-11-16T09:00:00.000Z';
    const store = await startAhead({ clock: { now: () => now } });
    const commit = noting(store, []);
    const at = async (time: string, name: string, payload: JsonObject = {}) => {
      now = time;
      const answered = commit(name, () => ({ events: [event('task_1', payload)] }));
      await turn();
      return { answered };
    };
    const asked = [
      await at('2026-11-16T09:00:01.000Z', 'first', { text: LONG }),
      await at('2026-11-16T09:00:02.000Z', 'second'),
      await at('2026-11-16T09:00:03.000Z', 'third'),
      await at('2026-11-16T09:00:01.500Z', 'fourth'),
    ];
    await Promise.all(asked.map(({ answered }) => answered));
    const events = await all(store);
    expect(events.map(({ created_at }) => created_at.slice(17, 19))).toEqual(['01', '02', '03', '03']);
    expect(events.map(({ updated_at }) => updated_at)).toEqual(events.map(({ created_at }) => created_at));
  });

  test('nobody is shown what the file does not hold', async () => {
    const store = await startAhead();
    const commit = noting(store, []);
    const first = commit('first', () => ({ events: [event('task_1', { text: LONG })] }));
    await turn();
    const second = commit('second', () => ({ events: [event('task_1')] }));
    await turn();
    const shown = ((await store.get('task', 'task_1')) as { count?: number } | undefined)?.count ?? 0;
    const inFile = other().prepare('SELECT count(*) AS n FROM events').get() as { n: number };
    expect(shown).toBeLessThanOrEqual(inFile.n);
    await Promise.all([first, second]);
  });

  test('when the batch cannot be written, both units are decided again, in the order they arrived', async () => {
    for (let n = 0; n < 6; n++) {
      // One that has met no other writer yet: afterwards it decides with the lock for a while.
      const store = await startAhead();
      const db = other();
      await store.commit({ decide: () => ({ events: [event('task_1')] }) });
      const said: string[] = [];
      const commit = noting(store, said);
      const found: (number | undefined)[] = [];
      const counting = (at: At) => {
        found.push(countOf(at));
        return { events: [event('task_1')] };
      };
      const before = ((await store.get('task', 'task_1')) as { count?: number }).count!;
      // Another caller has the lock, and will have written something.
      db.exec(`BEGIN IMMEDIATE; INSERT INTO meta VALUES ('other_${n}', 'x')`);
      const first = commit('first', counting);
      await turn();
      const second = commit('second', counting);
      await turn();
      db.exec('COMMIT');
      await Promise.all([first, second]);
      expect(found.slice(-2)).toEqual([before, before + 1]);
      expect(said).toEqual([
        ...['first decided', 'second decided'],
        ...['first decided', 'first answered', 'second decided', 'second answered'],
      ]);
    }
    const events = await all(await start());
    expect(events.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 18 }, (_, n) => n + 1));
  });

  test('any interleaving, with another gateway on the same file, adds up', async () => {
    const stores = [await startAhead(), await startAhead()];
    const answered: Promise<unknown>[] = [];
    // A small generator of its own: the same walk every time.
    let seed = 7;
    const random = (below: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      return Math.floor((seed / 2_147_483_648) * below);
    };
    let made = 0;
    for (let n = 0; n < 900; n++) {
      const isNew = random(4) === 0;
      if (isNew) made += 1;
      // A new task is unknown to both stores: the one that makes it writes its first event, and later events of it go to the same store.
      const number = made - (isNew ? 0 : random(6));
      const own = isNew || (number > 0 && random(3) > 0);
      const id = own ? `task_new_${number}` : `task_${random(5)}`;
      const store = stores[(own ? number % 12 : random(12)) === 0 ? 1 : 0]!;
      const refuse = !isNew && random(10) === 0;
      const unit: Unit = {
        reads: [{ object: 'task', id }],
        ...(!isNew && random(6) === 0 && { idempotency: { scope: `key_${random(40)}`, body: 'the same' } }),
        decide(at) {
          const before = (at.get('task', id) as { count?: number } | undefined)?.count ?? 0;
          if (refuse) throw new Fault('conflict', 'no');
          return {
            ...(isNew && { born: [id] }),
            events: [event(id, { before, sequence: at.sequence('task', id), status: `S${random(3)}` })],
            receipt: { chain: id, seal: (head) => sealFor(`${n}`, head) },
          };
        },
      };
      answered.push(store.commit(unit).catch((reason: Fault) => expect(reason.kind).toBe('conflict')));
      for (let pause = random(4); pause > 1; pause--) await turn();
    }
    await Promise.all(answered);
    const events = await all(stores[0]!);
    const seen = new Map<string, number>();
    for (const { resource, payload, sequence } of events) {
      const count = seen.get(resource.id) ?? 0;
      expect([payload.before, payload.sequence, sequence]).toEqual([count, count, count + 1]);
      seen.set(resource.id, count + 1);
    }
    const receipts = await stores[0]!.receipts({ limit: 1_000 });
    expect(receipts).toHaveLength(events.length);
    for (const [id, count] of seen) {
      const chain = receipts.filter((one) => one.chain === id);
      expect(chain.map(({ index }) => index)).toEqual(Array.from({ length: count }, (_, at) => at));
      chain.forEach(({ receipt }, at) => {
        expect(receipt).toMatchObject({ previous: at === 0 ? null : chain[at - 1]!.hash });
      });
    }
    const rows = await stores[0]!.list({ object: 'task', limit: 1_000 });
    expect(rows).toHaveLength(seen.size);
    expect(rows.map((row) => (row as unknown as { count: number }).count)).toEqual(rows.map(({ id }) => seen.get(id)));
    await stores[0]!.rebuild();
    expect(await stores[0]!.list({ object: 'task', limit: 1_000 })).toEqual(rows);
    expect(stores[0]!.commitsElsewhere()).toBeGreaterThan(0);
  });
});
