/** Idempotency on every write: the same key and body do it once, another body is refused, and a restart forgets nothing. */
import type { Memory, Session, Task } from '../../../src/model/resources.ts';
import { equal, truth } from './expect.ts';
import { category, each } from './suite.ts';
import { said, type Target, unique } from './target.ts';
import type { Asking, List } from './wire.ts';

/** A write: what it needs, the request, and what is changed in the second body. Null: it has no body to change. */
interface Write {
  readonly name: string;
  prepare(at: Target): Promise<readonly [method: string, path: string, body: object | undefined]>;
  readonly other: object | null;
}

const persona = {
  name: 'p',
  version: '1',
  entry_workflow: 'demo',
  description: 'd',
  autonomy_tier: 'act_with_approval',
  receipt_policy: 'optional',
};
const memory = { scope: 'session', content: 'x', provenance: {} };

function write(name: string, prepare: Write['prepare'], other: object | null): Write {
  return { name, prepare, other };
}
const home = async (at: Target) => ({ workspace_id: (await at.workspace()).id });
const sessionOf = async (at: Target) => (await at.session({ initial_messages: [said('a'), said('b')] })).id;

const WRITES: readonly Write[] = [
  write('a workspace', async () => ['POST', '/v1/workspaces', { name: 'n', root: 'x:y' }], { name: 'm' }),
  write('a persona', async () => ['POST', '/v1/personas', persona], { name: 'q' }),
  write('a session', async (at) => ['POST', '/v1/sessions', await home(at)], { metadata: { other: true } }),
  write('a message', async (at) => ['POST', `/v1/sessions/${await sessionOf(at)}/messages`, { message: said('x') }], {
    message: said('y'),
  }),
  write('a task', async (at) => ['POST', `/v1/sessions/${await sessionOf(at)}/tasks`, { input: said('hello') }], {
    input: said('hello again'),
  }),
  write(
    'a task by its other path',
    async (at) => ['POST', '/v1/tasks', { session_id: await sessionOf(at), input: said('hello') }],
    { input: said('hello again') },
  ),
  write(
    'a branch',
    async (at) => ['POST', `/v1/sessions/${await sessionOf(at)}/branches`, { kind: 'session', base_ref: 'main' }],
    { base_ref: 'other' },
  ),
  write(
    'an artifact',
    async (at) => [
      'POST',
      '/v1/artifacts',
      { ...(await home(at)), kind: 'log', mime_type: 'a/b', visibility: 'public' },
    ],
    { kind: 'file' },
  ),
  write('a memory', async (at) => ['POST', '/v1/memories', { ...memory, owner_id: await sessionOf(at) }], {
    content: 'y',
  }),
  write('a vault', async () => ['POST', '/v1/vaults', { provider: 'p', capabilities: [] }], { provider: 'q' }),
  write('a fork', async (at) => ['POST', `/v1/sessions/${await sessionOf(at)}/fork`, {}], { metadata: { x: 1 } }),
  write('a replay', async (at) => ['POST', `/v1/tasks/${(await at.done('hello')).id}/replay`, {}], { reason: 'other' }),
  write('a close', async (at) => ['POST', `/v1/sessions/${await sessionOf(at)}/close`, undefined], null),
  write('a truncation', async (at) => ['POST', `/v1/sessions/${await sessionOf(at)}/truncate`, { keep_first: 1 }], {
    keep_first: 0,
  }),
  write(
    'a cancel',
    async (at) => ['POST', `/v1/tasks/${(await at.submit('wait 500')).id}/cancel`, { reason: 'enough' }],
    { reason: 'changed' },
  ),
  write(
    'a message to a task',
    async (at) => {
      const { id } = await at.submit('wait 40');
      return ['POST', `/v1/tasks/${id}/messages`, { kind: 'interrupt', message: said('stop') }];
    },
    { message: said('go on') },
  ),
  write('a changed workspace', async (at) => ['PATCH', `/v1/workspaces/${(await at.workspace()).id}`, { name: 'n' }], {
    name: 'm',
  }),
  write('a changed session', async (at) => ['PATCH', `/v1/sessions/${await sessionOf(at)}`, { summary: 'n' }], {
    summary: 'm',
  }),
  write(
    'a changed persona',
    async (at) => {
      const { id } = await at.made<{ id: string }>('POST', '/v1/personas', { body: persona });
      return ['PATCH', `/v1/personas/${id}`, { description: 'n' }];
    },
    { description: 'm' },
  ),
  write(
    'a deleted memory',
    async (at) => {
      const body = { ...memory, owner_id: await sessionOf(at) };
      return ['DELETE', `/v1/memories/${(await at.made<Memory>('POST', '/v1/memories', { body })).id}`, undefined];
    },
    null,
  ),
  write(
    'an answer to a question',
    async (at) => {
      const { id } = await at.submit('ask which colour?');
      await at.reaches(id, 'INPUT_REQUIRED');
      const open = await at.made<List<{ id: string }>>('GET', `/v1/tasks/${id}/permission-requests`);
      return ['POST', `/v1/permission-requests/${open.data[0]?.id}/respond`, { answer: 'blue' }];
    },
    { answer: 'red' },
  ),
  write('a verification', async (at) => ['POST', `/v1/receipts/${(await at.done('hello')).receipt_id}/verify`, {}], {
    trust_anchor: 'ed25519:00000000000000000000000000000000',
  }),
];

const asking = (body: object | undefined, once: string): Asking => ({ once, ...(body && { body }) });

/** Members that tell one thing from another, whatever state it has come to since. */
function essence(body: unknown): unknown {
  const { id, object, session_id, valid } = (body ?? {}) as Record<string, unknown>;
  return { id, object, session_id, valid };
}

export const once = category('once', {
  ...each(
    WRITES,
    ({ name }) => `${name} twice with one key is one, and the same answer`,
    async ({ prepare }, at) => {
      const [method, path, body] = await prepare(at);
      const key = unique('once');
      const first = await at.ask(method, path, asking(body, key));
      truth(first.status < 300, `the first was ${first.status} ${first.text.slice(0, 200)}`);
      const second = await at.ask(method, path, asking(body, key));
      equal(second.status, first.status, `status of the second (${second.text.slice(0, 200)})`);
      equal(essence(second.body), essence(first.body), 'the second answer');
    },
  ),
  ...each(
    WRITES.filter(({ other }) => other !== null),
    ({ name }) => `${name} with a used key and another body is 409`,
    async ({ prepare, other }, at) => {
      const [method, path, body] = await prepare(at);
      const key = unique('once');
      await at.ok(method, path, asking(body, key));
      await at.refused('idempotency_key_reused', method, path, asking({ ...body, ...other }, key));
    },
  ),
  async 'a repeated message is in the transcript once'(at) {
    const { id } = await at.session();
    const key = unique('once');
    for (let count = 0; count < 3; count += 1) {
      await at.ok('POST', `/v1/sessions/${id}/messages`, { body: { message: said('once') }, once: key });
    }
    equal((await at.messages(id)).length, 1, 'messages');
  },
  async 'twenty at once with one key make one task'(at) {
    const { id } = await at.session();
    const key = unique('once');
    const all = await Promise.all(Array.from({ length: 20 }, () => at.submit('hello', id, { once: key })));
    equal(new Set(all.map((task) => task.id)).size, 1, 'tasks');
    const { data } = await at.ok<List<Task>>('GET', `/v1/sessions/${id}/tasks`);
    equal(data.length, 1, 'tasks of the session');
  },
  async 'the order of members and the spaces between them do not matter'(at) {
    const key = unique('once');
    const first = await at.ask<{ id: string }>('POST', '/v1/workspaces', {
      raw: '{"name":"n","root":"x:y"}',
      once: key,
    });
    const second = await at.ask<{ id: string }>('POST', '/v1/workspaces', {
      raw: '{ "root" : "x:y",\n "name" : "\\u006e" }',
      once: key,
    });
    equal(second.body.id, first.body.id, 'the workspace');
  },
  async 'the same key at another target is another key'(at) {
    const [one, other] = [await at.session(), await at.session()];
    const key = unique('once');
    const [first, second] = [
      await at.submit('hello', one.id, { once: key }),
      await at.submit('hello', other.id, { once: key }),
    ];
    truth(first.id !== second.id, 'the second session was given the first one’s task');
  },
  async 'the same key of two actors is two keys'(at) {
    const { key: as } = await at.mine().issue({ id: unique('colleague') });
    const { id } = await at.session();
    const key = unique('once');
    const [mine, theirs] = [
      await at.submit('hello', id, { once: key }),
      await at.submit('hello', id, { once: key, as }),
    ];
    truth(mine.id !== theirs.id, 'one was given the other’s task');
  },
  async 'without a key every request is a new one'(at) {
    const { id } = await at.session();
    const [first, second] = [await at.submit('hello', id), await at.submit('hello', id)];
    truth(first.id !== second.id, 'two requests, one task');
  },
  ...each(
    ['', 'k'.repeat(256)],
    (key) => `a key of ${key.length} characters is 400`,
    async (key, at) => {
      await at.refused('invalid_request', 'POST', '/v1/workspaces', { body: { name: 'n', root: 'x:y' }, once: key });
    },
  ),
  async 'a key of 255 characters is fine'(at) {
    const body = { name: 'n', root: 'x:y' };
    await at.ok('POST', '/v1/workspaces', { body, once: unique('k').padEnd(255, 'x') });
  },
  async 'a refused request does not use up its key for a good one'(at) {
    const key = unique('once');
    await at.refused('unauthenticated', 'POST', '/v1/workspaces', {
      body: { name: 'n', root: 'x:y' },
      once: key,
      as: null,
    });
    await at.ok('POST', '/v1/workspaces', { body: { name: 'n', root: 'x:y' }, once: key });
  },
  async 'a key is still known after the process was killed'(at) {
    const own = at.mine();
    const session = await at.session();
    const key = unique('once');
    const task = await at.submit('hello', session.id, { once: key });
    const opened = await at.ok<Session>('POST', '/v1/sessions', {
      body: { workspace_id: session.workspace_id },
      once: key,
    });
    await at.ended(task.id);
    await own.crash();
    equal((await at.submit('hello', session.id, { once: key })).id, task.id, 'the task');
    const again = { body: { workspace_id: session.workspace_id }, once: key };
    equal((await at.ok<Session>('POST', '/v1/sessions', again)).id, opened.id, 'the session');
    const path = `/v1/sessions/${session.id}/tasks`;
    await at.refused('idempotency_key_reused', 'POST', path, { body: { input: said('bye') }, once: key });
  },
});
