/** Lists: each one that a door or core asks for is read through an index, and any other is as right. */
import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { type EventDraft, withMembers } from '../../../src/model/events.ts';
import type { Change, FilterName, ListQuery, Projector, Row } from '../../../src/ports/index.ts';
import { type Connection, openConnection } from '../../../src/store/sqlite/file/connection.ts';
import { createRows } from '../../../src/store/sqlite/rows.ts';
import { append, sqliteHome } from '../../contract/store/scenes/sqlite-home.ts';

const home = sqliteHome();

/** Puts the row an event brings, or drops the one it is about when it brings none. */
const reported: Projector = {
  touches: ({ resource }) => [resource],
  apply: ({ resource, payload }): Change[] =>
    payload.row ? [{ put: payload.row as unknown as Row }] : [{ drop: { object: resource.object, id: resource.id } }],
};
const AT = '2026-11-16T09:00:00.000Z';
const put = (object: string, id: string, members: object = {}): EventDraft => ({
  event: 'vendor.tollbridge.note',
  resource: { object, id },
  payload: { row: { id, object, created_at: AT, updated_at: AT, metadata: {}, ...members } },
});
const drop = (object: string, id: string): EventDraft => ({ ...put(object, id), payload: {} }) as EventDraft;

describe('a list that a door or core asks for', () => {
  let connection: Connection | undefined;
  afterEach(() => connection?.close());

  /** How SQLite goes about it. */
  async function planOf(query: ListQuery): Promise<string[]> {
    connection = await openConnection({ path: home.path, lockTimeoutMs: 1_000 });
    let asked = '';
    const prepare: Connection['prepare'] = (sql) => {
      asked = sql;
      return connection!.prepare(sql);
    };
    createRows({ ...connection, prepare }).list(query);
    const params = Array(asked.split('?').length - 1).fill('x');
    return connection
      .prepare(`EXPLAIN QUERY PLAN ${asked}`)
      .all(params)
      .map((step) => step[3] as string);
  }

  const w = { workspace_id: 'w' };
  const s = { session_id: 's' };
  const t = { task_id: 't' };
  const OPEN = ['SUBMITTED', 'WORKING'];

  test.each<[who: string, index: string, object: string, where?: ListQuery['where']]>([
    ['tasks, A2A and MCP', 'tasks_by_age', 'task'],
    ['tasks of a workspace', 'tasks_by_workspace (workspace_id=?)', 'task', w],
    ['tasks in a state', 'tasks_by_state (state=?)', 'task', { state: 'WORKING' }],
    ['tasks of a workspace in a state', 'tasks_by_state (state=?)', 'task', { ...w, state: 'WORKING' }],
    ['tasks of a session', 'tasks_by_session (session_id=?)', 'task', s],
    ['tasks of a session in a state', 'tasks_by_session (session_id=?)', 'task', { ...s, state: 'WORKING' }],
    ['what is under way in a session', 'tasks_by_session (session_id=?)', 'task', { ...s, state: OPEN }],
    ['tasks by all of it', 'tasks_by_session (session_id=?)', 'task', { ...w, ...s, state: 'WORKING' }],
    ['sessions, editors', 'sessions_by_age', 'session'],
    ['sessions of a workspace', 'sessions_by_workspace (workspace_id=?)', 'session', w],
    ['sessions in a state', 'sessions_by_state (state=?)', 'session', { state: 'ACTIVE' }],
    ['sessions of a workspace in a state', 'sessions_by_state (state=?)', 'session', { ...w, state: 'ACTIVE' }],
    ['a transcript', 'messages_by_session (session_id=?)', 'message', s],
    ['outcomes', 'outcomes_by_age', 'outcome'],
    ['outcomes of a task', 'outcomes_by_task (task_id=?)', 'outcome', t],
    ['what runs in a session', 'runs_by_session (session_id=?)', 'run', s],
    ['questions', 'rows_by_age (object=?)', 'ask'],
    ['open questions', 'rows_by_state (object=? AND state=?)', 'ask', { state: 'open' }],
    ['questions of a workspace', 'rows_by_workspace (object=? AND workspace_id=?)', 'ask', w],
    ['questions of a session', 'rows_by_session (object=? AND session_id=?)', 'ask', s],
    ['questions of a task', 'rows_by_task (object=? AND task_id=?)', 'ask', t],
    [
      'questions of a task in states',
      'rows_by_task (object=? AND task_id=?)',
      'ask',
      { ...t, state: ['open', 'used'] },
    ],
    ['artifacts', 'rows_by_age (object=?)', 'artifact'],
    ['artifacts of a workspace', 'rows_by_workspace (object=? AND workspace_id=?)', 'artifact', w],
    ['artifacts of a session', 'rows_by_session (object=? AND session_id=?)', 'artifact', { ...w, ...s }],
    ['artifacts of a task', 'rows_by_task (object=? AND task_id=?)', 'artifact', { ...w, ...s, ...t }],
    ['memories', 'rows_by_age (object=?)', 'memory'],
    ['memories of a workspace', 'rows_by_workspace (object=? AND workspace_id=?)', 'memory', w],
    ['memories of a session', 'rows_by_owner (object=? AND owner_id=?)', 'memory', { ...w, owner_id: 's' }],
    ['branches of a session', 'rows_by_session (object=? AND session_id=?)', 'branch', s],
    ['vaults of a workspace', 'rows_by_workspace (object=? AND workspace_id=?)', 'vault', w],
    ['workspaces', 'rows_by_age (object=?)', 'workspace'],
  ])('%s: %s', async (_, index, object, where = {}) => {
    for (const newestFirst of [false, true]) {
      const plan = await planOf({ object, where, newestFirst });
      const [first, ...rest] = plan.filter((step) => !/json_each|LIST SUBQUERY/.test(step));
      expect(first).toMatch(/^(SCAN|SEARCH) \w+ USING INDEX /);
      expect(first?.split(' USING INDEX ')[1]).toBe(index);
      // In the order of the index: at most those of one age are put in order.
      expect(rest.filter((step) => step !== 'USE TEMP B-TREE FOR RIGHT PART OF ORDER BY')).toEqual([]);
      connection?.close();
    }
  });

  test('everything that runs: runs that are over are not looked at', async () => {
    expect((await planOf({ object: 'run' }))[0]).toBe('SCAN runs USING INDEX runs_by_session');
  });
});

describe('a row that changes', () => {
  test('is found by its new state and by everything that stayed', async () => {
    const store = await home.start({ projector: reported });
    const at = { workspace_id: 'w1', session_id: 's1', task_id: 't1', parent_task_id: 'p1', owner_id: 'o1' };
    const objects = ['task', 'session', 'message', 'outcome', 'run', 'tally', 'ask'];
    for (const object of objects) await append(store, put(object, `${object}_1`, { ...at, status: 'WORKING' }));
    for (const object of objects) await append(store, put(object, `${object}_1`, { ...at, status: 'COMPLETED' }));
    for (const object of objects) {
      const found = async (where: ListQuery['where']) =>
        (await store.list({ object, ...(where && { where }) })).map((row) => (row as Row & { status: string }).status);
      expect(await found({ state: 'WORKING' })).toEqual([]);
      expect(await found({ state: 'COMPLETED' })).toEqual(['COMPLETED']);
      for (const [name, value] of Object.entries(at)) expect(await found({ [name]: value })).toEqual(['COMPLETED']);
      expect(await found({ ...at, state: 'COMPLETED' })).toEqual(['COMPLETED']);
      expect(await found({ ...at, session_id: 's2' })).toEqual([]);
    }
  });

  test('is found where it was moved to, and nowhere once it is dropped', async () => {
    const store = await home.start({ projector: reported });
    const ids = async (where: ListQuery['where']) =>
      (await store.list({ object: 'task', where: where! })).map(({ id }) => id);
    await append(store, put('task', 'task_1', { session_id: 's1', workspace_id: 'w1', status: 'WORKING' }));
    await append(store, put('task', 'task_1', { session_id: 's2', workspace_id: 'w1', status: 'FAILED' }));
    expect(await ids({ session_id: 's1' })).toEqual([]);
    expect(await ids({ session_id: 's2', workspace_id: 'w1', state: 'FAILED' })).toEqual(['task_1']);
    await append(store, drop('task', 'task_1'));
    expect(await ids({ workspace_id: 'w1' })).toEqual([]);
    expect(await ids({ state: 'FAILED' })).toEqual([]);
    // Its place in the order is all that is left: what looks for open tasks by state alone must not meet it.
    const left = home.other().prepare('SELECT * FROM tasks').raw().all();
    expect(left).toEqual([['task_1', AT, null, null, null, null]]);
  });
});

const OBJECTS = ['session', 'task', 'message', 'outcome', 'run', 'tally', 'ask', 'memory'] as const;
const FILTERS: readonly FilterName[] = ['workspace_id', 'session_id', 'task_id', 'parent_task_id', 'state', 'owner_id'];
const value = fc.constantFrom('a', 'b', 'c');
const someOf = <T>(one: fc.Arbitrary<T>) =>
  fc.record(Object.fromEntries(FILTERS.map((name) => [name, one])) as Record<FilterName, fc.Arbitrary<T>>, {
    requiredKeys: [],
  });
const step = fc.record({
  object: fc.constantFrom(...OBJECTS),
  id: fc.nat(5).map((n) => `id_${n}`),
  members: fc.option(someOf<unknown>(fc.oneof(value, value, value, fc.constant(7), fc.constant(null)))),
});
const asked = fc.record({
  object: fc.constantFrom(...OBJECTS),
  where: someOf<string | string[]>(fc.oneof(value, fc.uniqueArray(value))),
  newestFirst: fc.boolean(),
});

describe('any filters, in any combination', () => {
  test('leave what a look at every row would leave, also after a rebuild', async () => {
    let runs = 0;
    let now = '';
    const clock = { now: () => now };
    const store = await home.start({ projector: reported, clock });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(step, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 12 }),
        fc.array(asked, { minLength: 10, maxLength: 20 }),
        async (commits, queries) => {
          runs++;
          const mine = `_${String(runs).padStart(3, '0')}`;
          /** What each row was last asked to be, under the place it was first given. */
          const rows = new Map<string, { born: string; row: Record<string, unknown> | undefined }>();
          for (const [n, steps] of commits.entries()) {
            now = `2026-11-16T09:${String(runs % 60).padStart(2, '0')}:${String(n).padStart(2, '0')}.000Z`;
            const drafts = steps.map(({ object, id, members }) => {
              const key = `${object} ${id}`;
              const before = rows.get(key);
              const row = members && {
                id: id + mine,
                object,
                created_at: before?.row?.created_at ?? now,
                run: runs,
                ...members,
              };
              if (row || before) rows.set(key, { born: before?.born ?? now, row: row ?? undefined });
              return row ? withMembers(put(object, id + mine), { row: row as never }) : drop(object, id + mine);
            });
            await append(store, ...drafts);
          }
          const expected = ({ object, where, newestFirst }: (typeof queries)[number]) => {
            const found = [...rows.values()].filter(
              ({ row }) =>
                row?.object === object &&
                Object.entries(where).every(([name, wanted]) =>
                  typeof row[name] === 'string' ? [wanted].flat().includes(row[name]) : false,
                ),
            );
            const order = found.map(({ born, row }) => `${born} ${String(row!.id)}`).sort();
            return (newestFirst ? order.reverse() : order).map((location) => location.split(' ')[1]);
          };
          const actual = async (query: (typeof queries)[number]) =>
            (await store.list<Row & { run: number }>({ ...query, limit: 10_000 } as ListQuery))
              .filter(({ run }) => run === runs)
              .map(({ id }) => id);
          for (const query of queries) expect(await actual(query)).toEqual(expected(query));
          await store.rebuild();
          for (const query of queries) expect(await actual(query)).toEqual(expected(query));
        },
      ),
      { numRuns: 30 },
    );
  });
});
