/** Branches, links, visibility and the small clauses: what a reader can count on when it looks again. */
import type { CoreEvent } from '../../../../src/model/events.ts';
import type {
  Artifact,
  Branch,
  Message,
  Outcome,
  ReceiptResource,
  Session,
  Task,
} from '../../../../src/model/resources.ts';
import { absent, equal, truth } from '../harness/expect.ts';
import { openStream } from '../harness/stream.ts';
import { category, each } from '../harness/suite.ts';
import { said, type Target, unique } from '../harness/target.ts';
import type { List } from '../harness/wire.ts';

const fork = (at: Target, session: string, body: object = {}) =>
  at.made<Session>('POST', `/v1/sessions/${session}/fork`, { body });
const branchOf = (at: Target, { branch_id }: Session) => at.ok<Branch>('GET', `/v1/branches/${branch_id}`);

async function seen(at: Target, path: string, ...kinds: string[]): Promise<readonly CoreEvent[]> {
  return (await at.events(path)).filter(({ event }) => kinds.includes(event));
}

function words(messages: readonly Message[]): readonly string[] {
  return messages.flatMap(({ parts }) => parts.map((part) => String((part as { text?: string }).text)));
}

const hidden = (visibility: string, text: string) => ({
  role: 'user',
  parts: [
    { type: 'text', text: 'hello', visibility: 'public' },
    { type: 'text', text, visibility },
  ],
});

/** Everything a key can read of a session, as one text. */
async function everything(at: Target, session: string, task: string, as?: string): Promise<string> {
  const paths = [
    `/v1/sessions/${session}/messages?limit=200`,
    `/v1/sessions/${session}/events?limit=200`,
    `/v1/tasks/${task}`,
    `/v1/tasks?session_id=${session}`,
    `/v1/tasks/${task}/events?limit=200`,
    `/v1/outcomes?task_id=${task}`,
    `/v1/artifacts?session_id=${session}`,
  ];
  const texts = await Promise.all(paths.map(async (path) => (await at.ask('GET', path, as ? { as } : {})).text));
  const stream = await openStream(at, `/v1/tasks/${task}/stream`, as ? { as } : {});
  try {
    const frames = await stream.until(({ event }) => /^task\.(completed|failed|canceled)$/.test(event));
    return [...texts, ...frames.map(({ data }) => data)].join('\n');
  } finally {
    stream.close();
  }
}

export const state = category('state', {
  async 'a fork makes a branch that tasks and receipts carry; the main path has none'(at) {
    const session = await at.session();
    const main = await at.done('hello', session.id);
    equal(main.branch_id ?? null, null, 'the branch of work on the main path');
    const forked = await fork(at, session.id);
    const branch = await branchOf(at, forked);
    equal([branch.kind, branch.workspace_id], ['session', session.workspace_id], 'the branch');
    truth(branch.base_ref.includes(session.id), 'base_ref does not name the session it left');
    const task = await at.done('hello', forked.id);
    equal(task.branch_id, branch.id, 'the branch of work in the fork');
    const receipt = await at.ok<ReceiptResource>('GET', `/v1/receipts/${task.receipt_id}`);
    const { payload } = receipt.wire as { payload: { identifiers: { branch_id?: string } } };
    equal(payload.identifiers.branch_id, branch.id, 'identifiers.branch_id of its receipt');
    const again = await fork(at, forked.id);
    equal((await branchOf(at, again)).parent_branch_id, branch.id, 'the parent of a fork of the fork');
  },
  async 'a branch changes, and its end comes once'(at) {
    at.mine();
    const forked = await fork(at, (await at.session()).id);
    const path = `/v1/branches/${forked.branch_id}`;
    const changed = await at.ok<Branch>('PATCH', path, { body: { worktree_uri: 'file:///w', metadata: { a: 1 } } });
    equal([changed.worktree_uri, changed.metadata.a], ['file:///w', 1], 'the changed branch');
    await at.ok('POST', `${path}/abandon`, { body: {} });
    await at.refused('conflict', 'POST', `${path}/merge`, { body: {} });
    await at.refused('conflict', 'PATCH', path, { body: { worktree_uri: null } });
    await at.refused('conflict', 'POST', `/v1/sessions/${forked.id}/tasks`, { body: { input: said('hello') } });
    const reported = await seen(
      at,
      `/v1/sessions/${forked.id}/events`,
      'branch.created',
      'branch.updated',
      'branch.abandoned',
    );
    equal(
      reported.map(({ event }) => event),
      ['branch.created', 'branch.updated', 'branch.abandoned'],
      'events of the branch',
    );
  },
  async 'merging a fork brings its words back, in order and once'(at) {
    at.mine();
    const session = await at.session({ initial_messages: [said('one')] });
    const forked = await fork(at, session.id);
    for (const text of ['two', 'three']) {
      await at.ok('POST', `/v1/sessions/${forked.id}/messages`, { body: { message: said(text) } });
    }
    const merged = await at.ok<Branch>('POST', `/v1/branches/${forked.branch_id}/merge`);
    equal(merged.merged_into, session.id, 'merged_into');
    equal(words(await at.messages(session.id)), ['one', 'two', 'three'], 'the transcript after the merge');
    const [reported] = await seen(at, `/v1/sessions/${session.id}/events`, 'session.thread_merged');
    equal([reported?.payload.session_id, reported?.payload.messages], [forked.id, 2], 'session.thread_merged');
    equal((await seen(at, `/v1/sessions/${forked.id}/events`, 'branch.merged')).length, 1, 'branch.merged');
    await at.refused('conflict', 'POST', `/v1/branches/${forked.branch_id}/merge`, { body: {} });
    equal(words(await at.messages(session.id)).length, 3, 'messages after a second merge was refused');
  },
  async 'a branch of another session or workspace is no branch here'(at) {
    at.mine();
    const { key: as } = await at.mine().issue({ id: unique('t'), tenant: unique('tenant') });
    const mine = await fork(at, (await at.session()).id);
    await at.refused('resource_not_found', 'POST', `/v1/branches/${mine.branch_id}/merge`, { as, body: {} });
    const elsewhere = await at.ok<Session>('POST', '/v1/sessions', {
      body: { workspace_id: (await at.workspace()).id },
    });
    const body = { branch_id: mine.branch_id };
    await at.refused('resource_not_found', 'POST', `/v1/sessions/${elsewhere.id}/fork`, { body });
    const input = { input: said('hello'), ...body };
    await at.refused('resource_not_found', 'POST', `/v1/sessions/${elsewhere.id}/tasks`, { body: input });
  },
  async 'what an agent asks a tool for and what it hears are a pair'(at) {
    at.mine();
    const task = await at.done('read plan then delete plan');
    const path = `/v1/tasks/${task.id}/events`;
    const used = (await seen(at, path, 'agent.tool_use')).map(({ payload }) => payload.tool_call_id);
    const received = await seen(at, path, 'agent.tool_result');
    equal(used.length, 2, 'agent.tool_use');
    equal(
      received.map(({ payload }) => payload.tool_call_id),
      used,
      'the calls that were answered',
    );
    equal(
      received.map(({ payload }) => payload.status),
      ['ok', 'error'],
      'their results',
    );
  },
  async 'artifacts are linked and redacted, and say so'(at) {
    at.mine();
    const task = await at.done('artifact');
    const [file] = (await at.ok<List<Artifact>>('GET', `/v1/artifacts?task_id=${task.id}`)).data;
    const to = { object: 'session', id: task.session_id };
    const linked = await at.ok<Artifact>('POST', `/v1/artifacts/${file!.id}/link`, { body: { to } });
    equal(linked.metadata.links, [to], 'its links');
    await at.refused('resource_not_found', 'POST', `/v1/artifacts/${file!.id}/link`, {
      body: { to: { object: 'session', id: 'session_absent' } },
    });
    const redacted = await at.ok<Artifact>('POST', `/v1/artifacts/${file!.id}/redact`, {
      body: { reason: 'asked to' },
    });
    equal([redacted.sha256, redacted.metadata.redacted], [file!.sha256, true], 'the descriptor that stays');
    await at.refused('conflict', 'GET', `/v1/artifacts/${file!.id}/content`);
    const reported = await seen(at, `/v1/sessions/${task.session_id}/events`, 'artifact.linked', 'artifact.redacted');
    equal(
      reported.map(({ event }) => event),
      ['artifact.linked', 'artifact.redacted'],
      'events',
    );
  },
  async 'a message links the artifacts it refers to, and can refer to none that is hidden'(at) {
    at.mine();
    const task = await at.done('artifact');
    const [file] = (await at.ok<List<Artifact>>('GET', `/v1/artifacts?task_id=${task.id}`)).data;
    const refers = (artifact_id: string) => ({
      message: { role: 'user', parts: [{ type: 'artifact_ref', artifact_id, visibility: 'public' }] },
    });
    const session = await at.session();
    await at.ok('POST', `/v1/sessions/${session.id}/messages`, { body: refers(file!.id) });
    const [reported] = await seen(at, `/v1/sessions/${session.id}/events`, 'artifact.linked');
    equal(reported?.payload.artifact_id, file!.id, 'artifact.linked');
    const scopes = ['sessions:read', 'sessions:write', 'workspaces:read'];
    const { key: as } = await at.mine().issue({ id: unique('other'), scopes });
    const own = await at.ok<Session>('POST', '/v1/sessions', { as, body: { workspace_id: session.workspace_id } });
    await at.refused('resource_not_found', 'POST', `/v1/sessions/${own.id}/messages`, { as, body: refers(file!.id) });
  },
  ...each(
    ['receipt-only', 'Internal', 'private', ''],
    (word) => `a visibility of ${JSON.stringify(word)} is refused wherever it is written`,
    async (word, at) => {
      const session = await at.session();
      const parts = [{ type: 'text', text: 'x', visibility: word }];
      const strange = [{ type: 'x.new', visibility: word }];
      const cases: readonly (readonly [string, object, string])[] = [
        [`/v1/sessions/${session.id}/messages`, { message: { role: 'user', parts } }, 'message.parts.0.visibility'],
        [
          `/v1/sessions/${session.id}/messages`,
          { message: { role: 'user', parts: strange } },
          'message.parts.0.visibility',
        ],
        [`/v1/sessions/${session.id}/tasks`, { input: { role: 'user', parts } }, 'input.parts.0.visibility'],
        ['/v1/tasks', { session_id: session.id, input: { role: 'user', parts } }, 'input.parts.0.visibility'],
        [
          '/v1/sessions',
          { workspace_id: session.workspace_id, initial_messages: [{ role: 'user', parts }] },
          'initial_messages.0.parts.0.visibility',
        ],
        [
          '/v1/artifacts',
          { kind: 'file', mime_type: 'a/b', visibility: word, workspace_id: session.workspace_id },
          'visibility',
        ],
        [
          '/v1/memories',
          { scope: 'workspace', owner_id: session.workspace_id, content: 'x', provenance: {}, visibility: word },
          'visibility',
        ],
      ];
      for (const [path, body, param] of cases) {
        equal((await at.refused('invalid_request', 'POST', path, { body })).param, param, path);
      }
      // Without a role it is no message, and would be data that says nothing about who may see it.
      await at.refused('invalid_request', 'POST', `/v1/sessions/${session.id}/tasks`, { body: { input: { parts } } });
    },
  ),
  async 'internal content is for those with the scope, in every reading'(at) {
    const session = await at.session();
    const task = await at.ended(
      (
        await at.ok<Task>('POST', `/v1/sessions/${session.id}/tasks`, {
          body: { input: hidden('internal', 'inside Oslo') },
        })
      ).id,
    );
    await at.ok('POST', `/v1/sessions/${session.id}/messages`, {
      body: { message: hidden('internal', 'inside Oslo too') },
    });
    const scopes = ['sessions:read', 'tasks:read', 'events:read', 'artifacts:read', 'others:read'];
    const { key: as } = await at.mine().issue({ id: unique('public'), scopes });
    const shown = await everything(at, session.id, task.id, as);
    absent(shown, 'Oslo', 'a key without internal:read saw internal content');
    truth(shown.includes('"redacted"'), 'nothing says that something was withheld');
    const { key: more } = await at.mine().issue({ id: unique('inside'), scopes: [...scopes, 'internal:read'] });
    truth((await everything(at, session.id, task.id, more)).includes('Oslo'), 'a key with internal:read saw nothing');
  },
  async 'content for receipts only is in no event, message or stream of anyone'(at) {
    at.mine();
    const session = await at.session();
    const task = await at.ended(
      (
        await at.ok<Task>('POST', `/v1/sessions/${session.id}/tasks`, {
          body: { input: hidden('receipt_only', 'sealed Riga') },
        })
      ).id,
    );
    await at.ok('POST', `/v1/sessions/${session.id}/messages`, {
      body: { message: hidden('receipt_only', 'sealed Riga too') },
    });
    absent(await everything(at, session.id, task.id), 'Riga', 'receipt_only content was shown');
    const secret = {
      scope: 'workspace',
      owner_id: session.workspace_id,
      content: 'sealed Vilnius',
      provenance: {},
      visibility: 'receipt_only',
    };
    await at.ok('POST', '/v1/memories', { body: secret });
    absent(
      (await at.ask('GET', `/v1/events?workspace_id=${session.workspace_id}&limit=200`)).text,
      'Vilnius',
      'a receipt_only memory is in the events',
    );
  },
  async 'an artifact names the receipt that covers it, once there is one'(at) {
    const task = await at.done('artifact');
    const { data } = await at.ok<List<Artifact>>('GET', `/v1/artifacts?task_id=${task.id}`);
    truth(data.length > 0, 'the task made no artifact');
    for (const { receipt_id, id } of data) equal(receipt_id, task.receipt_id, `receipt_id of ${id}`);
    equal((await at.ok<Artifact>('GET', `/v1/artifacts/${data[0]!.id}`)).receipt_id, task.receipt_id, 'read by itself');
    const outcome = await at.ok<Outcome>('GET', `/v1/outcomes/${task.outcome_id}`);
    for (const { receipt_id } of outcome.artifacts ?? []) equal(receipt_id, task.receipt_id, 'in the outcome');
    const late = await at.made<Artifact>('POST', '/v1/artifacts', {
      body: { kind: 'file', mime_type: 'a/b', visibility: 'public', task_id: task.id },
    });
    equal(late.receipt_id ?? null, null, 'of an artifact that came after the receipt');
  },
  async 'updated_at of a session moves with its messages, its tasks and its forks'(at) {
    const session = await at.session({ workspace_id: (await at.workspace()).id });
    const steps: (() => Promise<unknown>)[] = [
      () => at.ok('POST', `/v1/sessions/${session.id}/messages`, { body: { message: said('x') } }),
      () => at.done('hello', session.id),
      () => fork(at, session.id),
    ];
    for (const step of steps) {
      await step();
      const now = await at.ok<Session>('GET', `/v1/sessions/${session.id}`);
      const last = await at.ok<CoreEvent>('GET', `/v1/events/${now.last_event_id}`);
      equal(now.updated_at, last.created_at, 'updated_at against the last event');
      const { data } = await at.ok<List<Session>>('GET', `/v1/sessions?workspace_id=${session.workspace_id}&limit=200`);
      equal(data.find(({ id }) => id === session.id)?.updated_at, now.updated_at, 'the same in a list');
    }
  },
  async 'an error names the field as the protocol does'(at) {
    equal(
      (await at.refused('invalid_request', 'POST', '/v1/tasks', { body: { input: {} } })).param,
      'session_id',
      'missing',
    );
    const body = { workspace_id: 7 };
    equal((await at.refused('invalid_request', 'POST', '/v1/sessions', { body })).param, 'workspace_id', 'wrong');
  },
  async 'how long events are kept is said where a client looks'(at) {
    at.mine();
    for (const path of ['/v1', '/v1/runtime', '/v1/capabilities']) {
      const { retention } = await at.ok<{ retention?: object }>('GET', path);
      equal(retention, { events_seconds: 30 * 24 * 60 * 60, receipts_seconds: null }, path);
    }
  },
});
