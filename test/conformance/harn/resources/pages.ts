/** Lists: bounds, cursors that lose and repeat nothing, filters, and bodies that do not change between two readings. */
import type { Session, Workspace } from '../../../../src/model/resources.ts';
import { equal, rising, truth } from '../harness/expect.ts';
import { category, each } from '../harness/suite.ts';
import { said, type Target } from '../harness/target.ts';
import type { List } from '../harness/wire.ts';

const LISTS = [
  ...['personas', 'workspaces', 'sessions', 'tasks', 'artifacts', 'events', 'memories', 'vaults', 'connectors'],
  ...['skills', 'outcomes', 'quotas', 'permission-requests', 'tools'],
];

/** Seven sessions in a workspace of their own. */
const filled = new WeakMap<Target, ReturnType<typeof fill>>();
async function seven(at: Target) {
  const known = filled.get(at) ?? fill(at);
  filled.set(at, known);
  return await known;
}

async function fill(at: Target): Promise<{ workspace: Workspace; sessions: readonly string[] }> {
  const workspace = await at.workspace();
  const sessions: string[] = [];
  for (let count = 0; count < 7; count += 1) {
    sessions.push((await at.ok<Session>('POST', '/v1/sessions', { body: { workspace_id: workspace.id } })).id);
  }
  return { workspace, sessions };
}

async function walk(at: Target, path: string, limit: number): Promise<{ ids: string[]; sizes: number[] }> {
  const ids: string[] = [];
  const sizes: number[] = [];
  for (let cursor = ''; ; ) {
    const query = `${path.includes('?') ? '&' : '?'}limit=${limit}${cursor && `&cursor=${encodeURIComponent(cursor)}`}`;
    const { data, page } = await at.ok<List<{ id: string }>>('GET', `${path}${query}`);
    ids.push(...data.map(({ id }) => id));
    sizes.push(data.length);
    if (!page.has_more) return { ids, sizes };
    truth(page.next_cursor && page.next_cursor !== cursor, 'there is more, and no way on');
    cursor = page.next_cursor;
  }
}

export const pages = category('pages', {
  ...each(
    LISTS,
    (kind) => `GET /v1/${kind} has the whole list envelope`,
    async (kind, at) => {
      const body = await at.made<List<unknown>>('GET', `/v1/${kind}?limit=1`);
      equal(body.object, 'list', 'object');
      truth(Array.isArray(body.data) && body.data.length <= 1, 'data');
      equal(typeof body.page?.has_more, 'boolean', 'page.has_more');
    },
  ),
  ...each(
    ['0', '-1', '201', '1.5', 'ten', '', '1e2', '99999999999999999999'],
    (limit) => `limit=${limit} is 400 and names the parameter`,
    async (limit, at) => {
      for (const path of ['/v1/sessions', '/v1/events']) {
        equal((await at.refused('invalid_request', 'GET', `${path}?limit=${limit}`)).param, 'limit', 'param');
      }
    },
  ),
  ...each(
    ['1', '200'],
    (limit) => `limit=${limit} is fine`,
    async (limit, at) => {
      equal((await at.ask('GET', `/v1/sessions?limit=${limit}`)).status, 200, 'status');
    },
  ),
  ...each(
    [1, 3, 7, 50],
    (limit) => `pages of ${limit} add up to the whole, in order, nothing twice`,
    async (limit, at) => {
      const { workspace, sessions } = await seven(at);
      const { ids, sizes } = await walk(at, `/v1/sessions?workspace_id=${workspace.id}`, limit);
      equal(ids, sessions, 'the sessions');
      truth(
        sizes.every((size) => size <= limit),
        `a page has more than ${limit}`,
      );
    },
  ),
  async 'a page without a limit has at most fifty'(at) {
    const { id } = await at.session();
    for (let count = 0; count < 55; count += 1) {
      await at.ok('POST', `/v1/sessions/${id}/messages`, { body: { message: said(`message ${count}`) } });
    }
    const { data, page } = await at.ok<List<unknown>>('GET', `/v1/sessions/${id}/messages`);
    equal(data.length, 50, 'messages on the first page');
    equal(page.has_more, true, 'has_more');
  },
  async 'what is added behind a cursor does not move the pages before it'(at) {
    const workspace = await at.workspace();
    const open = async () =>
      (await at.ok<Session>('POST', '/v1/sessions', { body: { workspace_id: workspace.id } })).id;
    const first = [await open(), await open(), await open()];
    const path = `/v1/sessions?workspace_id=${workspace.id}&limit=2`;
    const { page } = await at.ok<List<{ id: string }>>('GET', path);
    const late = await open();
    const rest = await at.ok<List<{ id: string }>>('GET', `${path}&cursor=${encodeURIComponent(page.next_cursor!)}`);
    equal(
      rest.data.map(({ id }) => id),
      [first[2], late],
      'the second page',
    );
  },
  ...each(
    ['nonsense', 'AAAA', '%F0%9F%92%A9', 'session_absent'],
    (cursor) => `the cursor ${cursor} is 400`,
    async (cursor, at) => {
      equal((await at.refused('invalid_request', 'GET', `/v1/sessions?cursor=${cursor}`)).param, 'cursor', 'param');
    },
  ),
  async 'a parameter given twice is 400'(at) {
    await at.refused('invalid_request', 'GET', '/v1/sessions?limit=1&limit=2');
  },
  async 'filters narrow: sessions and tasks by workspace, tasks by session'(at) {
    const { workspace } = await seven(at);
    const session = await at.ok<Session>('POST', '/v1/sessions', { body: { workspace_id: (await at.workspace()).id } });
    const task = await at.done('hello', session.id);
    const ids = async (path: string) => (await at.ok<List<{ id: string }>>('GET', path)).data.map(({ id }) => id);
    equal(await ids(`/v1/tasks?session_id=${session.id}`), [task.id], 'tasks of the session');
    equal(await ids(`/v1/tasks?workspace_id=${session.workspace_id}`), [task.id], 'tasks of the workspace');
    equal(await ids(`/v1/tasks?workspace_id=${workspace.id}`), [], 'tasks of another workspace');
    equal(await ids(`/v1/outcomes?task_id=${task.id}`), [task.outcome_id], 'outcomes of the task');
    equal(await ids(`/v1/sessions?workspace_id=${session.workspace_id}`), [session.id], 'sessions of the workspace');
  },
  async 'two readings of a list are the same bytes'(at) {
    const { workspace } = await seven(at);
    for (const path of [`/v1/sessions?workspace_id=${workspace.id}`, '/v1/workspaces?limit=5']) {
      const [first, second] = [await at.ask('GET', path), await at.ask('GET', path)];
      equal(second.text, first.text, path);
    }
  },
  async 'messages come in the order they were written'(at) {
    const { id } = await at.session({ initial_messages: [said('0'), said('1')] });
    for (const words of ['2', '3', '4', '5']) {
      await at.ok('POST', `/v1/sessions/${id}/messages`, { body: { message: said(words) } });
    }
    const texts = (await at.messages(id)).map(({ parts }) => Number((parts[0] as { text: string }).text));
    equal(texts, [0, 1, 2, 3, 4, 5], 'the messages');
  },
  async 'an event list says where to go on, even at its end'(at) {
    const { id } = await at.done('hello');
    const { data, page } = await at.ok<List<{ id: string }>>('GET', `/v1/tasks/${id}/events?limit=200`);
    equal(page.next_cursor, data.at(-1)?.id, 'next_cursor');
    rising(
      data.map((event) => event.id),
      'event ids',
    );
    const aliased = await at.ok<List<unknown>>('GET', `/v1/tasks/${id}/events?cursor=${page.next_cursor}`);
    equal(aliased.data, [], 'what follows the last event, asked for by cursor');
  },
  async 'a list made while others write has no holes'(at) {
    const { id } = await at.session();
    const writes = Array.from({ length: 20 }, (_, n) =>
      at.ok('POST', `/v1/sessions/${id}/messages`, { body: { message: said(String(n)) } }),
    );
    await Promise.all(writes);
    const { ids } = await walk(at, `/v1/sessions/${id}/messages`, 6);
    equal(new Set(ids).size, 20, 'messages');
  },
});
