/** What belongs to one tenant is not there for another: not in reads, not in lists, not in streams, not for writing. */
import type { Session, Task } from '../../../../src/model/resources.ts';
import { absent, equal, Skip, truth } from '../harness/expect.ts';
import { openStream } from '../harness/stream.ts';
import { category, each } from '../harness/suite.ts';
import { said, type Target, unique } from '../harness/target.ts';
import type { List } from '../harness/wire.ts';

/** One of everything, made once; read by all the checks here. */
interface Things {
  readonly [kind: string]: string;
}
const made = new WeakMap<Target, Promise<Things>>();

async function things(at: Target): Promise<Things> {
  const known = made.get(at) ?? makeThings(at);
  made.set(at, known);
  return await known;
}

async function makeThings(at: Target): Promise<Things> {
  const workspace = await at.workspace();
  const home = { workspace_id: workspace.id };
  const session = await at.ok<Session>('POST', '/v1/sessions', { body: { ...home, initial_messages: [said('mine')] } });
  const task = await at.done('artifact', session.id);
  const make = async (path: string, body: object) => (await at.made<{ id: string }>('POST', path, { body })).id;
  const first = async (path: string) => (await at.ok<List<{ id: string }>>('GET', path)).data[0]?.id ?? 'none';
  return {
    workspaces: workspace.id,
    sessions: session.id,
    tasks: task.id,
    outcomes: task.outcome_id ?? 'none',
    receipts: task.receipt_id ?? 'none',
    messages: await first(`/v1/sessions/${session.id}/messages`),
    events: await first(`/v1/tasks/${task.id}/events`),
    artifacts: await first(`/v1/artifacts?task_id=${task.id}`),
    branches: await make(`/v1/sessions/${session.id}/branches`, { kind: 'session', base_ref: 'main' }),
    memories: await make('/v1/memories', {
      scope: 'workspace',
      owner_id: workspace.id,
      content: 'mine',
      provenance: { source: 'conformance' },
    }),
    vaults: await make('/v1/vaults', { ...home, provider: 'mine', capabilities: [] }),
    connectors: await make('/v1/connectors', { ...home, provider: 'mine', event_kinds: [] }),
  };
}

export function outsider(at: Target): string {
  if (!at.outsider) throw new Skip('no key of another tenant was given');
  return at.outsider;
}

const KINDS = [
  ...['workspaces', 'sessions', 'tasks', 'outcomes', 'receipts', 'messages', 'events', 'artifacts', 'branches'],
  ...['memories', 'vaults', 'connectors'],
];
const LISTS = [
  ...['workspaces', 'sessions', 'tasks', 'outcomes', 'artifacts', 'events', 'memories', 'vaults', 'connectors'],
  'receipts',
  'permission-requests',
];
/** `{kind}` stands for the id of that thing. */
const WRITES: readonly (readonly [string, string, unknown])[] = [
  ['PATCH', '/v1/workspaces/{workspaces}', { name: 'taken' }],
  ['PATCH', '/v1/sessions/{sessions}', { summary: 'taken' }],
  ['POST', '/v1/sessions/{sessions}/messages', { message: said('intruder') }],
  ['POST', '/v1/sessions/{sessions}/tasks', { input: said('intruder') }],
  ['POST', '/v1/sessions/{sessions}/close', undefined],
  ['POST', '/v1/sessions/{sessions}/fork', {}],
  ['POST', '/v1/sessions/{sessions}/truncate', { keep_first: 0 }],
  ['POST', '/v1/sessions/{sessions}/branches', { kind: 'session', base_ref: 'main' }],
  ['POST', '/v1/tasks/{tasks}/cancel', {}],
  ['POST', '/v1/tasks/{tasks}/replay', {}],
  ['POST', '/v1/tasks/{tasks}/messages', { kind: 'input', message: said('intruder') }],
  ['POST', '/v1/receipts/{receipts}/verify', {}],
  ['DELETE', '/v1/memories/{memories}', undefined],
];
const STREAMS = ['/v1/tasks/{tasks}/stream', '/v1/sessions/{sessions}/events/stream'];
const INSIDE = [
  '/v1/tasks/{tasks}/events',
  '/v1/tasks/{tasks}/receipts',
  '/v1/tasks/{tasks}/permission-requests',
  '/v1/sessions/{sessions}/events',
  '/v1/sessions/{sessions}/messages',
  '/v1/sessions/{sessions}/tasks',
  '/v1/sessions/{sessions}/branches',
  '/v1/artifacts/{artifacts}/content',
];

async function filled(at: Target, path: string): Promise<string> {
  const known = await things(at);
  return path.replace(/\{(\w+)\}/g, (_, kind: string) => known[kind] ?? 'none');
}

export const tenants = category('tenants', {
  ...each(
    KINDS,
    (kind) => `another tenant's ${kind} are absent, and look it`,
    async (kind, at) => {
      const as = outsider(at);
      const id = (await things(at))[kind];
      const hidden = await at.refused('resource_not_found', 'GET', `/v1/${kind}/${id}`, { as });
      const nothing = await at.refused('resource_not_found', 'GET', `/v1/${kind}/${kind}_absent`, { as });
      equal(hidden.message.replace(id!, ''), nothing.message.replace(`${kind}_absent`, ''), 'the two refusals');
    },
  ),
  ...each(
    LISTS,
    (kind) => `another tenant's ${kind} are in no list`,
    async (kind, at) => {
      const as = outsider(at);
      const known = await things(at);
      const { text } = await at.ask('GET', `/v1/${kind}?limit=200`, { as });
      for (const [what, id] of Object.entries(known)) absent(text, id, `the list shows ${what} ${id}`);
    },
  ),
  ...each(
    [...INSIDE, ...STREAMS],
    (path) => `GET ${path} of another tenant is 404`,
    async (path, at) => {
      await at.refused('resource_not_found', 'GET', await filled(at, path), { as: outsider(at) });
    },
  ),
  ...each(
    WRITES,
    ([method, path]) => `${method} ${path} of another tenant is 404 and changes nothing`,
    async ([method, path, body], at) => {
      const as = outsider(at);
      const { sessions } = await things(at);
      const before = (await at.events(`/v1/sessions/${sessions}/events`)).length;
      await at.refused('resource_not_found', method, await filled(at, path), {
        as,
        ...(body !== undefined && { body }),
      });
      equal((await at.events(`/v1/sessions/${sessions}/events`)).length, before, 'events of the session');
    },
  ),
  async 'a filter that names what is hidden finds nothing'(at) {
    const as = outsider(at);
    const { sessions, workspaces, tasks } = await things(at);
    for (const query of [`session_id=${sessions}`, `workspace_id=${workspaces}`, `task_id=${tasks}`]) {
      const { data } = await at.ok<List<unknown>>('GET', `/v1/events?${query}`, { as });
      equal(data, [], query);
    }
  },
  async 'a session cannot be opened in a hidden workspace'(at) {
    const body = { workspace_id: (await things(at)).workspaces };
    await at.refused('resource_not_found', 'POST', '/v1/sessions', { as: outsider(at), body });
  },
  async 'a key bound to one workspace sees no other'(at) {
    const [one, other] = [await at.workspace(), await at.workspace()];
    const { key: as } = await at.mine().issue({ id: unique('bound'), workspaces: [one.id] });
    equal((await at.ask('GET', `/v1/workspaces/${one.id}`, { as })).status, 200, 'its own');
    await at.refused('resource_not_found', 'GET', `/v1/workspaces/${other.id}`, { as });
    const { data } = await at.ok<List<{ id: string }>>('GET', '/v1/workspaces?limit=200', { as });
    equal(
      data.map(({ id }) => id),
      [one.id],
      'its list',
    );
  },
  async 'the stream of everything shows a tenant only its own'(at) {
    const as = outsider(at);
    const stream = await openStream(at, '/v1/events/stream', { as });
    try {
      const mine = await at.done('hello');
      const workspace = await at.ok<{ id: string }>('POST', '/v1/workspaces', {
        as,
        body: { name: 'theirs', root: 'x:y' },
      });
      const session = await at.ok<Session>('POST', '/v1/sessions', { as, body: { workspace_id: workspace.id } });
      const frames = await stream.until(({ data }) => data.includes(session.id));
      truth(!frames.some(({ data }) => data.includes(mine.id)), "another tenant's task is in the stream");
    } finally {
      stream.close();
    }
  },
  async 'the same idempotency key of two tenants is two keys'(at) {
    const as = outsider(at);
    const once = unique('shared');
    const home = await at.ok<{ id: string }>('POST', '/v1/workspaces', { as, body: { name: 'theirs', root: 'x:y' } });
    const session = await at.ok<Session>('POST', '/v1/sessions', { as, body: { workspace_id: home.id } });
    const mine = await at.submit('hello', undefined, { once });
    const theirs = await at.submit('hello', session.id, { once, as });
    truth(mine.id !== theirs.id, 'the other tenant was given our task');
  },
  async 'a task of ours is unknown as a parent elsewhere'(at) {
    const as = outsider(at);
    const { tasks } = await things(at);
    const workspace = await at.ok<{ id: string }>('POST', '/v1/workspaces', {
      as,
      body: { name: 'theirs', root: 'x:y' },
    });
    const session = await at.ok<Session>('POST', '/v1/sessions', { as, body: { workspace_id: workspace.id } });
    const body = { input: said('hello'), parent_task_id: tasks };
    await at.refused('resource_not_found', 'POST', `/v1/sessions/${session.id}/tasks`, { as, body });
    const { data } = await at.ok<List<Task>>('GET', `/v1/sessions/${session.id}/tasks`, { as });
    equal(data.length, 0, 'tasks of the session');
  },
});
