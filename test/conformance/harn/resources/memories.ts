/** Memory: what a session names reaches its agent and is on record; scope and owner count for reading and for writing. */
import type { CoreEvent } from '../../../../src/model/events.ts';
import type { Memory, Persona, Session, Task } from '../../../../src/model/resources.ts';
import { absent, equal, truth } from '../harness/expect.ts';
import { category, each } from '../harness/suite.ts';
import { type Target, unique } from '../harness/target.ts';

const write = (at: Target, scope: string, owner_id: string, content: unknown, more: object = {}) =>
  at.made<Memory>('POST', '/v1/memories', {
    body: { scope, owner_id, content, provenance: { source: 'check' }, ...more },
  });

const persona = (at: Target) =>
  at.made<Persona>('POST', '/v1/personas', {
    body: {
      name: unique('persona'),
      version: '1',
      entry_workflow: 'demo',
      description: '',
      autonomy_tier: 'act_auto',
      receipt_policy: 'required',
    },
  });

async function wordsOf(at: Target, task: Task): Promise<string> {
  const messages = await at.messages(task.session_id);
  return JSON.stringify(messages.filter(({ role }) => role !== 'user'));
}

async function kinds(at: Target, task: Task, kind: string): Promise<readonly CoreEvent[]> {
  return (await at.events(`/v1/tasks/${task.id}/events`)).filter(({ event }) => event === kind);
}

export const memories = category('memories', {
  async 'memory_ids reach the agent of a later task, each on record'(at) {
    at.mine();
    const { workspace_id } = await at.session();
    const memory = await write(at, 'workspace', workspace_id, 'the build is called Zanzibar');
    const session = await at.session({ workspace_id, memory_ids: [memory.id] });
    const task = await at.done('recall', session.id);
    truth((await wordsOf(at, task)).includes('Zanzibar'), 'the agent was not given the memory');
    const read = await kinds(at, task, 'agent.memory_read');
    equal(
      read.map(({ payload }) => [payload.memory_id, payload.scope]),
      [[memory.id, 'workspace']],
      'agent.memory_read',
    );
    absent(
      JSON.stringify((await at.messages(session.id)).filter(({ role }) => role === 'user')),
      'Zanzibar',
      'the transcript holds the memory',
    );
    const without = await at.done('recall', (await at.session({ workspace_id })).id);
    absent(await wordsOf(at, without), 'Zanzibar', 'a session that names no memory was given one');
    equal(await kinds(at, without, 'agent.memory_read'), [], 'reads of a session that names none');
  },
  async 'a memory that was withdrawn or has expired is not given'(at) {
    at.mine();
    const { workspace_id } = await at.session();
    const gone = await write(at, 'workspace', workspace_id, 'gone Ulan');
    const old = await write(at, 'workspace', workspace_id, 'old Bator', { expires_at: '2020-01-01T00:00:00Z' });
    const session = await at.session({ workspace_id, memory_ids: [gone.id, old.id] });
    await at.ok('DELETE', `/v1/memories/${gone.id}`);
    const task = await at.done('recall', session.id);
    const said = await wordsOf(at, task);
    absent(said, 'Ulan', 'a withdrawn memory was given');
    absent(said, 'Bator', 'an expired memory was given');
  },
  async 'a memory of another workspace, session or persona cannot be named'(at) {
    at.mine();
    const [here, there] = [await at.session(), await at.workspace()];
    const [mine, theirs] = [await persona(at), await persona(at)];
    const others = [
      await write(at, 'workspace', there.id, 'x'),
      await write(at, 'session', here.id, 'x'),
      await write(at, 'persona', theirs.id, 'x'),
    ];
    for (const { id, scope } of others) {
      const body = { workspace_id: here.workspace_id, persona_id: mine.id, memory_ids: [id] };
      const { param } = await at.refused('invalid_request', 'POST', '/v1/sessions', { body });
      equal(param, 'memory_ids.0', `the member a ${scope} memory is refused for`);
    }
    const body = { workspace_id: here.workspace_id, memory_ids: ['memory_absent'] };
    await at.refused('resource_not_found', 'POST', '/v1/sessions', { body });
  },
  async 'metadata names no memories'(at) {
    at.mine();
    const { workspace_id } = await at.session();
    const memory = await write(at, 'workspace', workspace_id, 'smuggled Quito');
    const metadata = { memory_ids: [memory.id] };
    const session = await at.session({ workspace_id, metadata });
    await at.ok('PATCH', `/v1/sessions/${session.id}`, { body: { metadata } });
    absent(await wordsOf(at, await at.done('recall', session.id)), 'Quito', 'metadata gave the agent a memory');
  },
  async 'a persona reads its own memories and no other persona does'(at) {
    at.mine();
    const [mine, other] = [await persona(at), await persona(at)];
    const memory = await write(at, 'persona', mine.id, 'habit Lima');
    const session = await at.session({ memory_ids: [memory.id] });
    const submit = async (persona_id: string) =>
      await at.ended((await at.submit('recall', session.id, { with: { persona_id } })).id);
    equal(await kinds(at, await submit(other.id), 'agent.memory_read'), [], 'reads of another persona');
    equal((await kinds(at, await submit(mine.id), 'agent.memory_read')).length, 1, 'reads of its own persona');
  },
  ...each(
    ['session', 'workspace', 'tenant'],
    (scope) => `an agent remembers for its ${scope}: a memory and agent.memory_write`,
    async (scope, at) => {
      at.mine();
      const task = await at.done(`remember for the ${scope} the password is not here`);
      const [written] = await kinds(at, task, 'agent.memory_write');
      truth(written, 'no agent.memory_write');
      const memory = await at.ok<Memory>('GET', `/v1/memories/${String(written.payload.memory_id)}`);
      equal([memory.scope, memory.content], [scope, 'the password is not here'], 'the memory');
      equal(memory.provenance.task_id, task.id, 'its provenance');
      const owners: Record<string, string> = { session: task.session_id, workspace: task.workspace_id };
      if (owners[scope]) equal(memory.owner_id, owners[scope], 'its owner');
    },
  ),
  ...each(
    ['session', 'workspace', 'persona', 'tenant'],
    (scope) => `a memory cannot be written for a ${scope} of another tenant, nor read`,
    async (scope, at) => {
      const { key: as } = await at.mine().issue({ id: unique('t'), tenant: unique('tenant') });
      const session = await at.session();
      // A persona that another tenant made.
      const { key } = await at.mine().issue({ id: unique('t'), tenant: 'a person' });
      const made = await at.ok<Persona>('POST', '/v1/personas', {
        as: key,
        body: {
          name: 'n',
          version: '1',
          entry_workflow: 'demo',
          description: '',
          autonomy_tier: 'act_auto',
          receipt_policy: 'required',
        },
      });
      const owner: Record<string, string> = {
        session: session.id,
        workspace: session.workspace_id,
        persona: made.id,
        tenant: 'a person',
      };
      const body = { scope, owner_id: owner[scope], content: 'x', provenance: {} };
      await at.refused('resource_not_found', 'POST', '/v1/memories', { as, body });
      if (scope === 'persona') return;
      const { id } = await write(at, scope, owner[scope] as string, 'secret of ours');
      await at.refused('resource_not_found', 'GET', `/v1/memories/${id}`, { as });
      absent((await at.ask('GET', '/v1/memories?limit=200', { as })).text, id, 'the list of another tenant');
    },
  ),
  async 'a key bound to one workspace writes no memory beyond it'(at) {
    const [one, two] = [await at.workspace(), await at.workspace()];
    const { key: as } = await at.mine().issue({ id: unique('bound'), workspaces: [one.id] });
    const body = (scope: string, owner_id: string) => ({ scope, owner_id, content: 'x', provenance: {} });
    await at.ok('POST', '/v1/memories', { as, body: body('workspace', one.id) });
    await at.refused('resource_not_found', 'POST', '/v1/memories', { as, body: body('workspace', two.id) });
    await at.refused('permission_denied', 'POST', '/v1/memories', { as, body: body('tenant', 'all') });
    const sneaky = { ...body('workspace', two.id), workspace_id: one.id };
    await at.refused('resource_not_found', 'POST', '/v1/memories', { as, body: sneaky });
  },
  async 'what one principal remembers of its session is not there for another'(at) {
    const session: Session = await at.session();
    const { id } = await write(at, 'session', session.id, 'ours alone');
    const scopes = ['memories:read', 'memories:write', 'sessions:write', 'workspaces:read'];
    const { key: as } = await at.mine().issue({ id: unique('other'), scopes });
    await at.refused('resource_not_found', 'GET', `/v1/memories/${id}`, { as });
    const body = { scope: 'session', owner_id: session.id, content: 'x', provenance: {} };
    await at.refused('resource_not_found', 'POST', '/v1/memories', { as, body });
  },
});
