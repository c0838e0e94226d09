/** Every kind of write, as a request that can be sent twice. */
import type { Memory } from '../../../../src/model/resources.ts';
import { said, type Target } from '../harness/target.ts';
import type { List } from '../harness/wire.ts';

/** A write: what it needs, the request, and what is changed in the second body. Null: it has no body to change. */
export interface Write {
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

/** New work. */
export const TASK_WRITES: readonly Write[] = [
  write('a task', async (at) => ['POST', `/v1/sessions/${await sessionOf(at)}/tasks`, { input: said('hello') }], {
    input: said('hello again'),
  }),
  write(
    'a task by its other path',
    async (at) => ['POST', '/v1/tasks', { session_id: await sessionOf(at), input: said('hello') }],
    { input: said('hello again') },
  ),
];

/** Everything else that is made, changed or ended. */
export const OTHER_WRITES: readonly Write[] = [
  write('a workspace', async () => ['POST', '/v1/workspaces', { name: 'n', root: 'x:y' }], { name: 'm' }),
  write('a persona', async () => ['POST', '/v1/personas', persona], { name: 'q' }),
  write('a session', async (at) => ['POST', '/v1/sessions', await home(at)], { metadata: { other: true } }),
  write('a message', async (at) => ['POST', `/v1/sessions/${await sessionOf(at)}/messages`, { message: said('x') }], {
    message: said('y'),
  }),
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
      return ['POST', `/v1/tasks/${id}/messages`, { kind: at.revision.steering, message: said('stop') }];
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
