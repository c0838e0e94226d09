/** What only several processes can show. */
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { eventId } from '../../../src/model/events.ts';
import { contractProjector } from '../../contract/store/projector.ts';
import { all, append, event, sqliteHome } from '../../contract/store/scenes/sqlite-home.ts';

const home = sqliteHome();
const { start, run } = home;

describe('other processes', () => {
  test('a killed writer loses nothing it was promised and leaves nothing half done', async () => {
    let promised = 0;
    for (let round = 0; round < 4; round++) {
      const { child, lines } = run('write', home.path);
      const wanted = 20 + round * 37;
      let received = 0;
      for await (const line of lines) {
        promised = Math.max(promised, Number(line.slice(-16)));
        if (++received === wanted) child.kill('SIGKILL');
      }
      const store = await start({ projector: contractProjector });
      const events = await all(store);
      expect(events.length).toBeGreaterThanOrEqual(promised);
      expect(events.map(({ id }) => id)).toEqual(events.map((_, n) => eventId(n + 1)));
      const tasks = new Map<string, number>();
      for (const { resource, sequence } of events) {
        expect(sequence).toBe((tasks.get(resource.id) ?? 0) + 1);
        tasks.set(resource.id, sequence);
      }
      // Units of two: an odd number would be half of one.
      for (const count of tasks.values()) expect(count % 2).toBe(0);
      const rows = await store.list({ object: 'task' });
      expect(rows.map((row) => [row.id, (row as unknown as { count: number }).count])).toEqual(
        [...tasks].toSorted(([a], [b]) => (a < b ? -1 : 1)),
      );
      await store.rebuild();
      expect(await store.list({ object: 'task' })).toEqual(rows);
      await store.close();
    }
    expect(promised).toBeGreaterThan(100);
  });

  test('what another process appends is followed here, in order with our own', async () => {
    const store = await start();
    const stop = new AbortController();
    const seen: string[] = [];
    const following = (async () => {
      for await (const { id, sequence } of store.follow({ stream: { of: 'task', id: 'task_1' } }, stop.signal)) {
        seen.push(`${id} ${sequence}`);
        if (seen.length === 60) stop.abort();
        // One of ours for every two of the other process, so that the two are mixed.
        if (seen.length % 3 === 2) await append(store, event('task_1'));
      }
    })();
    const { child, lines } = run('append', home.path, '40');
    await lines.next();
    child.stdin!.write('go\n');
    expect((await lines.next()).value).toBe('done');
    await following;
    expect(seen).toEqual(Array.from({ length: 60 }, (_, n) => `${eventId(n + 1)} ${n + 1}`));
  });

  test('a lease ends with the process that held it, however it ended', async () => {
    const store = await start();
    const { child, lines } = run('lease', home.path, 'instance:1');
    expect((await lines.next()).value).toBe('held');
    expect(await store.lease('instance:1')).toBeUndefined();
    const dead = once(child, 'exit');
    child.kill('SIGKILL');
    await dead;
    const lease = await store.lease('instance:1');
    expect(lease).toBeDefined();
    await lease?.close();
    // Nothing is left lying about: neither by us nor, after a retention, by the dead.
    const { child: next, lines: more } = run('lease', home.path, 'instance:2');
    expect((await more.next()).value).toBe('held');
    const ended = once(next, 'exit');
    next.kill('SIGKILL');
    await ended;
    expect(await readdir(`${home.path}.leases`)).not.toEqual([]);
    const kept = await store.lease('instance:3');
    await store.retain('2026-11-16T00:00:00.000Z');
    expect((await readdir(`${home.path}.leases`)).filter((name) => name.endsWith('.lock'))).toHaveLength(1);
    expect(await store.lease('instance:3')).toBeUndefined();
    await kept?.close();
  });
});
