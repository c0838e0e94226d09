/**
 * Effects of what was declared: a persona's tier, tools, handoffs and capabilities, a quota, a credential. Each check lets the agent try
 * and looks at what really happened, in the log and outside of it. The answer alone proves nothing.
 */
import { createHash } from 'node:crypto';
import type { Quota, Task } from '../../../src/model/resources.ts';
import { equal, truth } from './harness/expect.ts';
import { category, each } from './harness/suite.ts';
import { said, type Target, unique } from './harness/target.ts';
import type { List } from './harness/wire.ts';

interface Tried {
  readonly task: Task;
  /** Names of tools that ran. */
  readonly ran: readonly string[];
  /** Names of tools that were refused, with the reason. */
  readonly refused: readonly (readonly [string, string])[];
}

async function personaWith(at: Target, more: object): Promise<string> {
  const body = {
    name: unique('persona'),
    version: '1',
    description: 'd',
    entry_workflow: 'main',
    autonomy_tier: 'act_auto',
    receipt_policy: 'optional',
    ...more,
  };
  return (await at.made<{ id: string }>('POST', '/v1/personas', { body })).id;
}

async function tried(at: Target, words: string, persona: object): Promise<Tried> {
  const persona_id = await personaWith(at, persona);
  const { id } = await at.submit(words, undefined, { with: { persona_id } });
  return await lookedAt(at, await at.ended(id));
}

async function lookedAt(at: Target, task: Task): Promise<Tried> {
  const events = await at.events(`/v1/tasks/${task.id}/events`);
  const named = (kind: string) => events.filter(({ event }) => event === kind).map(({ payload }) => payload);
  return {
    task,
    ran: named('tool.completed').map(({ name }) => String(name)),
    refused: named('tool.denied').map(({ name, reason }) => [String(name), String(reason)] as const),
  };
}

/** Persona, words, what runs, what is refused. */
const PERSONAS: readonly (readonly [string, object, string, readonly string[], readonly string[]])[] = [
  ['tools: a listed one runs', { tools: ['read_note'] }, 'read plan', ['read_note'], []],
  ['tools: another one does not', { tools: ['read_note'] }, 'write log x', [], ['write_note']],
  ['tools: listed by server and name', { tools: ['demo/write_note'] }, 'write log x', ['write_note'], []],
  [
    'tools: one step is refused, the other runs',
    { tools: ['read_*'] },
    'read plan then write log x',
    ['read_note'],
    ['write_note'],
  ],
  ['capabilities: kinds of act', { capabilities: ['handoff'] }, 'read plan', [], ['read_note']],
  ['capabilities: a listed kind', { capabilities: ['tool'] }, 'read plan', ['read_note'], []],
  ['capabilities: effects', { capabilities: ['read'] }, 'read plan then write log x', ['read_note'], ['write_note']],
  ['capabilities: unknown words limit nothing', { capabilities: ['painting'] }, 'read plan', ['read_note'], []],
  ['tier: shadow', { autonomy_tier: 'shadow' }, 'read plan', [], ['read_note']],
  ['tier: act_with_approval reads', { autonomy_tier: 'act_with_approval' }, 'read plan', ['read_note'], []],
  ['tier: act_auto', {}, 'write log x', ['write_note'], []],
];

async function quotaOf(at: Target, limits: object, more: object = {}): Promise<{ id: string; session: string }> {
  const { id } = await at.made<Quota>('POST', '/v1/quotas', { body: { scope: 'persona', limits, ...more } });
  const persona_id = await personaWith(at, {});
  await at.ok('PATCH', `/v1/personas/${persona_id}`, { body: { quota_id: id } });
  return { id, session: (await at.session({ persona_id })).id };
}

interface Material {
  readonly kind: string;
  readonly sha256: string;
  readonly metadata: { readonly count: number };
}

/** Written here and not taken from the gateway, so that the same mistake is not made twice. RFC 8785 for what events hold. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(',')}}`;
}

function sha256(bytes: string | Uint8Array): Buffer {
  return createHash('sha256').update(bytes).digest();
}

/** The Merkle tree hash of RFC 6962 over these leaves. */
function root(leaves: readonly Buffer[]): Buffer {
  if (leaves.length === 1) return leaves[0] as Buffer;
  let split = 1;
  while (split * 2 < leaves.length) split *= 2;
  return sha256(Buffer.concat([Buffer.from([1]), root(leaves.slice(0, split)), root(leaves.slice(split))]));
}

/** How many agents were given work by this task, and did it. */
async function handedOn(at: Target, task: Task): Promise<number> {
  const events = await at.events(`/v1/tasks/${task.id}/events`);
  return events.filter(({ event, payload }) => event === 'agent.handoff' && payload.status === 'completed').length;
}

export const promises = category('promises', {
  ...each(
    PERSONAS,
    ([name]) => `persona ${name}`,
    async ([, persona, words, ran, refused], at) => {
      at.mine();
      const found = await tried(at, words, persona);
      equal(found.ran, ran, 'what ran');
      equal(
        found.refused.map(([name]) => name),
        refused,
        'what was refused',
      );
    },
  ),
  async 'persona tier: suggest and act_with_approval ask before a write, and nothing is written until then'(at) {
    const own = at.mine();
    for (const autonomy_tier of ['suggest', 'act_with_approval']) {
      const persona_id = await personaWith(at, { autonomy_tier });
      const note = unique('note');
      const { id } = await at.submit(`write ${note} x`, undefined, { with: { persona_id } });
      await at.reaches(id, 'AUTH_REQUIRED');
      truth(!(await own.effects()).some((line) => line.includes(note)), `${autonomy_tier}: it was written unasked`);
      await at.ok('POST', `/v1/tasks/${id}/cancel`, { body: {} });
      truth(!(await own.effects()).some((line) => line.includes(note)), `${autonomy_tier}: it was written after all`);
    }
  },
  async 'persona handoffs: an agent that is listed gets work, another one does not'(at) {
    at.mine();
    const listed = await tried(at, 'handoff to second: hello', { handoffs: ['second'] });
    equal(await handedOn(at, listed.task), 1, 'work of the listed agent');
    const other = await tried(at, 'handoff to second: hello', { handoffs: ['third'] });
    equal(await handedOn(at, other.task), 0, 'work of an agent that is not listed');
  },
  async 'quota: the limit holds to the last unit, and usage says what ran'(at) {
    at.mine();
    const { id, session } = await quotaOf(at, { tool_calls: 2 });
    const found = await lookedAt(at, await at.done('read plan then read todo then read plan', session));
    equal(found.ran.length, 2, 'calls that ran');
    equal(found.refused.length, 1, 'calls that were refused');
    equal((await at.ok<Quota>('GET', `/v1/quotas/${id}`)).usage.tool_calls, 2, 'usage');
  },
  async 'quota: a soft limit stops nothing'(at) {
    at.mine();
    const { session } = await quotaOf(at, { tool_calls: 1 }, { soft_limit: true, hard_limit: false });
    const found = await lookedAt(at, await at.done('read plan then read todo', session));
    equal(found.ran.length, 2, 'calls that ran');
  },
  async 'quota: work under way counts until it ends'(at) {
    at.mine();
    const { session } = await quotaOf(at, { concurrency: 1 });
    const first = await at.submit('wait 100', session);
    const path = `/v1/sessions/${session}/tasks`;
    equal((await at.ask('POST', path, { body: { input: said('hello') } })).status, 429, 'status of the second');
    await at.ok('POST', `/v1/tasks/${first.id}/cancel`, { body: {} });
    await at.ended(first.id);
    equal((await at.done('hello', session)).status, 'COMPLETED', 'the next one, after the first has ended');
  },
  async 'quota: work is stopped when its time is up, and its receipt says so'(at) {
    at.mine();
    const { session } = await quotaOf(at, { wall_time_ms: 300 });
    const { status, failure } = await at.ended((await at.submit('wait 200', session)).id);
    equal([status, failure?.code], ['FAILED', 'quota_exceeded'], 'status and failure');
  },
  async 'a receipt commits to exactly the events of its task'(at) {
    at.mine();
    const task = await at.done('read plan');
    const document = await at.ok<{ wire: { payload: { replay_input: { materials: Material[] } } } }>(
      'GET',
      `/v1/receipts/${task.receipt_id}`,
    );
    const log = document.wire.payload.replay_input.materials.find(({ kind }) => kind === 'event_log');
    const all = await at.events(`/v1/tasks/${task.id}/events`);
    const own = all.filter(({ resource }) => resource.object === 'task' && resource.id === task.id);
    equal(own.length, log?.metadata.count, 'count');
    equal(`sha256:${root(own.map((event) => sha256(`\0${canonical(event)}`))).toString('hex')}`, log?.sha256, 'root');
  },
  async 'credentials: a key without others:read sees its own work and no other'(at) {
    const own = at.mine();
    const theirs = await at.done('hello');
    const scopes = ['sessions:*', 'tasks:*', 'events:read', 'receipts:read', 'workspaces:read'];
    const { key: as } = await own.issue({ id: unique('worker'), scopes });
    for (const path of [
      `/v1/tasks/${theirs.id}`,
      `/v1/sessions/${theirs.session_id}`,
      `/v1/receipts/${theirs.receipt_id}`,
    ])
      await at.refused('resource_not_found', 'GET', path, { as });
    const { data } = await at.ok<List<Task>>('GET', '/v1/tasks?limit=50', { as });
    equal(data, [], 'tasks it sees');
    await at.refused('resource_not_found', 'POST', `/v1/tasks/${theirs.id}/cancel`, { as, body: {} });
  },
  async 'credentials: a key for one workspace sees nothing of another'(at) {
    const own = at.mine();
    const [here, there] = [await at.workspace(), await at.workspace()];
    const session = await at.ok<{ id: string }>('POST', '/v1/sessions', { body: { workspace_id: there.id } });
    const { key: as } = await own.issue({ id: unique('visitor'), scopes: ['*', 'others:read'], workspaces: [here.id] });
    equal((await at.ask('GET', `/v1/workspaces/${here.id}`, { as })).status, 200, 'its own workspace');
    await at.refused('resource_not_found', 'GET', `/v1/workspaces/${there.id}`, { as });
    await at.refused('resource_not_found', 'GET', `/v1/sessions/${session.id}`, { as });
    await at.refused('resource_not_found', 'POST', `/v1/sessions/${session.id}/tasks`, {
      as,
      body: { input: said('hello') },
    });
  },
  async 'approvals: the key that gave the work does not approve what is done in it, another one does'(at) {
    const own = at.mine();
    const scopes = ['sessions:*', 'tasks:*', 'events:read', 'workspaces:*', 'approvals:write'];
    const { key: as } = await own.issue({ id: unique('worker'), scopes });
    const workspace = await at.ok<{ id: string }>('POST', '/v1/workspaces', {
      as,
      body: { name: unique('w'), root: 'harn://w' },
    });
    const session = await at.ok<{ id: string }>('POST', '/v1/sessions', { as, body: { workspace_id: workspace.id } });
    const word = unique('letter');
    const body = { input: said(`send ${word} to bo`) };
    const { id } = await at.ok<Task>('POST', `/v1/sessions/${session.id}/tasks`, { as, body });
    await at.reaches(id, 'AUTH_REQUIRED');
    const { data } = await at.ok<List<{ id: string }>>('GET', `/v1/tasks/${id}/permission-requests`);
    const respond = `/v1/permission-requests/${data[0]?.id}/respond`;
    const answer = await at.ask('POST', respond, { as, body: { approved: true } });
    equal(answer.status, 403, 'status for the key that gave the work');
    truth(!(await own.effects()).some((line) => line.includes(word)), 'it was sent all the same');
    const { key: approver } = await own.issue({
      id: unique('approver'),
      scopes: ['approvals:write', 'others:read', 'tasks:read'],
    });
    await at.ok('POST', respond, { as: approver, body: { approved: true } });
    await at.ended(id);
    truth(
      (await own.effects()).some((line) => line.includes(word)),
      'it was approved and never sent',
    );
  },
});
