/** Replay: the record lived through again, marked as such, changing nothing outside, and honest about what differs. */
import type { CoreEvent } from '../../../../src/model/events.ts';
import type { ReceiptResource, Task } from '../../../../src/model/resources.ts';
import { among, equal, text, truth } from '../harness/expect.ts';
import { category, each } from '../harness/suite.ts';
import type { Target } from '../harness/target.ts';
import type { List } from '../harness/wire.ts';
import { canonical, type Json, type Jwk, type Receipt, sha256, trouble } from '../proof.ts';

async function replay(at: Target, task: string, body: object = {}): Promise<Task> {
  const made = await at.ok<Task>('POST', `/v1/tasks/${task}/replay`, { body });
  return await at.ended(made.id);
}
const eventsOf = (at: Target, { id }: Task) => at.events(`/v1/tasks/${id}/events`);

async function receiptOf(at: Target, task: Task): Promise<Receipt> {
  const { wire } = await at.ok<ReceiptResource>('GET', `/v1/receipts/${task.receipt_id}`);
  return (wire as { payload: Receipt }).payload;
}

/** What the agent said, message by message. */
async function saidBy(at: Target, task: Task): Promise<string[]> {
  return (await eventsOf(at, task)).flatMap(({ event, payload }) => {
    if (event !== 'agent.message') return [];
    return [((payload.message as { parts: { text?: string }[] }).parts ?? []).map((part) => part.text ?? '').join('')];
  });
}

/** The key under which the record holds what the agent's tool returned, and the event that holds it. */
async function firstReturn(at: Target, source: Task): Promise<{ key: string; event: CoreEvent }> {
  const event = (await eventsOf(at, source)).find((e) => e.event === 'tool.completed');
  if (!event) at.lacking('the record holds no tool return');
  return { key: `host:${String(event.payload.name)}:${String(event.payload.tool_call_id)}`, event };
}

/** The key under which the record holds the agent's first model answer, and the event that holds it. */
async function firstAnswer(at: Target, source: Task): Promise<{ key: string; event: CoreEvent }> {
  const event = (await eventsOf(at, source)).find((e) => e.event === 'span.completed');
  const span = event?.payload.span as { call_id?: string } | undefined;
  if (!event || !span?.call_id) at.lacking('the record holds no model answer');
  return { key: `llm:${span.call_id}`, event };
}

const BAD: readonly (readonly [string, object])[] = [
  ['an unknown mode', { mode: 'backwards' }],
  ['overrides in exact mode', { mode: 'exact', override: { 'time:started_at': time('2026-01-01T00:00:00Z') } }],
  ['with_overrides and none given', { mode: 'with_overrides' }],
  ['with_overrides and an empty map', { mode: 'with_overrides', override: {} }],
  ['from_checkpoint and no checkpoint', { mode: 'from_checkpoint' }],
  ['a key whose kind is another', { mode: 'with_overrides', override: { 'llm:x': time('2026-01-01T00:00:00Z') } }],
  ['a key the record does not have', over('llm:absent', { kind: 'llm_provider_response', value: 1 })],
  ['neither value nor artifact', over('time:started_at', { kind: 'time' })],
  ['a hash that is another value’s', over('time:started_at', { ...time('2026-01-01T00:00:00Z'), sha256: sha256('x') })],
  ['a time that is none', over('time:started_at', time('yesterday'))],
  ['a key no dependency begins with', over('constructor:x', { kind: 'host_fact', value: 1 })],
  [
    'an override of another event than the one it names',
    over('time:started_at', { ...time('2026-01-01T00:00:00Z'), event_id: 'evt_9999999999999999' }),
  ],
  ['a checkpoint in another mode', { mode: 'exact', checkpoint_event_id: 'evt_0000000000000001' }],
  ['an unknown visibility', over('time:started_at', { ...time('2026-01-01T00:00:00Z'), visibility: 'pubic' })],
];

function time(value: string) {
  return { kind: 'time', value };
}
function over(key: string, override: object) {
  return { mode: 'with_overrides', override: { [key]: override } };
}

export const replays = category('replay-beyond', {
  async 'an exact replay is a new task that names its source'(at) {
    const source = await at.done('hello then read plan');
    const answer = await at.ask<Task>('POST', `/v1/tasks/${source.id}/replay`, { body: {} });
    equal(answer.status, 202, 'status');
    truth(answer.body.id !== source.id, 'the replay is its source');
    const task = await at.ended(answer.body.id);
    equal(
      [task.parent_task_id, task.session_id, task.workspace_id],
      [source.id, source.session_id, source.workspace_id],
      'parent, session, workspace',
    );
    equal(task.status, source.status, 'status');
  },
  async 'a replay without a body is an exact one'(at) {
    const source = await at.done('hello');
    const { status } = await at.ask<Task>('POST', `/v1/tasks/${source.id}/replay`);
    equal(status, 202, 'status');
  },
  async 'it begins and ends as a replay does'(at) {
    const source = await at.done('hello');
    const kinds = (await eventsOf(at, await replay(at, source.id))).map(({ event }) => event);
    equal(kinds.filter((kind) => kind === 'replay.started').length, 1, 'replay.started');
    equal(kinds.filter((kind) => kind === 'replay.completed').length, 1, 'replay.completed');
    among(kinds.at(-1), ['task.completed'], 'the last event');
  },
  async 'replayed events are marked with where they come from'(at) {
    const source = await at.done('hello then read plan');
    const originals = new Set((await eventsOf(at, source)).map(({ id }) => id));
    const task = await replay(at, source.id);
    const marked = (await eventsOf(at, task)).filter(({ replayed }) => replayed);
    truth(marked.length > 3, `only ${marked.length} events are marked`);
    for (const { replay: mark, id } of marked) {
      equal([mark?.source_task_id, mark?.replay_task_id, mark?.mode], [source.id, task.id, 'exact'], `mark of ${id}`);
      truth(originals.has(String(mark?.original_event_id)), `${mark?.original_event_id} is no event of the source`);
      text(mark?.replay_cursor, 'replay_cursor');
      equal(mark?.override_key ?? null, null, 'override_key where nothing was replaced');
    }
  },
  async 'it says what its source said'(at) {
    const source = await at.done('hello then read plan');
    const said = async (task: Task) =>
      (await eventsOf(at, task))
        .filter(({ event }) => event === 'agent.message' || event === 'tool.completed')
        .map(({ event, payload }) => [
          event,
          (payload.message as { parts?: Json } | undefined)?.parts ?? payload.output,
        ]);
    equal(await said(await replay(at, source.id)), await said(source), 'messages and results');
  },
  async 'the source is not touched'(at) {
    const source = await at.done('hello');
    const before = await at.ask('GET', `/v1/tasks/${source.id}/events?limit=200`);
    await replay(at, source.id);
    equal((await at.ask('GET', `/v1/tasks/${source.id}/events?limit=200`)).text, before.text, 'its events');
    equal(await at.task(source.id), source, 'the task');
  },
  async 'a replay does nothing again'(at) {
    const own = at.mine();
    const { id } = await at.submit('send the plan to bo');
    await at.reaches(id, 'AUTH_REQUIRED');
    const { data } = await at.ok<List<{ id: string }>>('GET', `/v1/tasks/${id}/permission-requests`);
    await at.ok('POST', `/v1/permission-requests/${data[0]?.id}/respond`, { body: { approved: true } });
    await at.ended(id);
    const before = (await own.effects()).length;
    equal((await replay(at, id)).status, 'COMPLETED', 'status of the replay');
    equal((await own.effects()).length, before, 'effects');
  },
  ...each(
    ['fail now', 'artifact'],
    (words) => `"${words}" can be replayed as it ended`,
    async (words, at) => {
      const source = await at.done(words);
      const task = await replay(at, source.id);
      equal([task.status, task.failure?.code], [source.status, source.failure?.code], 'status and failure');
    },
  ),
  async 'a canceled task can be replayed'(at) {
    const { id } = await at.submit('wait 500');
    await at.reaches(id, 'WORKING');
    await at.ok('POST', `/v1/tasks/${id}/cancel`, { body: {} });
    equal((await replay(at, id)).status, 'CANCELED', 'status');
  },
  async 'its receipt is about the replay, and is sealed like any other'(at) {
    const source = await at.done('hello then read plan');
    const task = await replay(at, source.id);
    const receipt = await receiptOf(at, task);
    equal((receipt.subject as { object: string }).object, 'replay_segment', 'subject');
    equal((receipt.subject as { id: string }).id, task.id, 'subject id');
    equal((receipt.metadata as { source_task_id?: string }).source_task_id, source.id, 'metadata.source_task_id');
    equal((receipt.replay_input as { determinism: string }).determinism, 'byte_deterministic', 'determinism');
    const { keys } = await at.ok<{ keys: Jwk[] }>('GET', '/.well-known/harn-receipt-keys.json');
    equal(trouble(receipt, keys), undefined, 'trouble');
  },
  async 'two replays of one source come to the same'(at) {
    const source = await at.done('hello then read plan');
    const rest = async () => {
      const task = await replay(at, source.id);
      const { chain: _c, signatures: _s, metadata: _m, ...receipt } = await receiptOf(at, task);
      const own = [task.id, task.receipt_id!];
      return own.reduce((shown, id) => shown.replaceAll(id, 'ID'), canonical(receipt as Json));
    };
    equal(await rest(), await rest(), 'the receipts but for their own names and places');
  },
  async 'an override replaces one answer, and says so in events and receipt'(at) {
    const source = await at.done('hello');
    const { key, event } = await firstAnswer(at, source);
    const value = { text: 'something else' };
    const body = { ...over(key, { kind: 'llm_provider_response', value, event_id: event.id }), reason: 'what if' };
    const task = await replay(at, source.id, body);
    equal(task.status, 'COMPLETED', 'status');
    const touched = (await eventsOf(at, task)).filter((e) => e.replay?.override_key === key);
    truth(touched.length > 0, 'no event says it was overridden');
    const [delta] = ((await receiptOf(at, task)).deltas ?? []) as Record<string, string>[];
    equal([delta?.operation, delta?.override_key, delta?.event_id], ['replace', key, event.id], 'the delta');
    equal(delta?.before_sha256, sha256(canonical(event.payload.response as Json)), 'before_sha256');
    equal(delta?.after_sha256, sha256(canonical(value)), 'after_sha256');
    equal(delta?.reason, 'what if', 'reason');
  },
  async 'an overridden tool return propagates: the agent says what follows from it, and nothing is done'(at) {
    const own = at.mine();
    const source = await at.done('read plan');
    const { key } = await firstReturn(at, source);
    const before = (await own.effects()).length;
    const value = { text: 'plan says: Sleep on it.' };
    const task = await replay(at, source.id, over(key, { kind: 'tool_result', value, visibility: 'public' }));
    equal(task.status, 'COMPLETED', 'status');
    equal(await saidBy(at, task), ['plan says: Sleep on it.'], 'what the agent says');
    truth((await saidBy(at, source))[0] !== 'plan says: Sleep on it.', 'the source said so already');
    equal((await own.effects()).length, before, 'effects');
    const streamed = (await eventsOf(at, task)).filter(({ event }) => event === 'vendor.tollbridge.message_delta');
    equal(streamed.map(({ payload }) => String(payload.text)).join(''), 'plan says: Sleep on it.', 'the stream');
  },
  async 'another answer of the model makes the agent do otherwise'(at) {
    const source = await at.done('read plan');
    const { key } = await firstAnswer(at, source);
    const value = { text: 'fail out_of_paper' };
    const task = await replay(at, source.id, over(key, { kind: 'llm_provider_response', value, visibility: 'public' }));
    equal([task.status, task.failure?.code], ['FAILED', 'out_of_paper'], 'status and failure');
    truth(
      !(await eventsOf(at, task)).some(({ event }) => event === 'tool.requested'),
      'it called the tool all the same',
    );
  },
  async 'a dependency that was never recorded fails the replay, and is named'(at) {
    const source = await at.done('read plan');
    const { key } = await firstAnswer(at, source);
    const value = { text: 'read readme' };
    const task = await replay(at, source.id, over(key, { kind: 'llm_provider_response', value, visibility: 'public' }));
    equal([task.status, task.failure?.code], ['FAILED', 'replay_dependency_unavailable'], 'status and failure');
    const { dependency } = (task.failure?.details ?? {}) as { dependency?: { kind?: string; id?: string } };
    equal(dependency?.kind, 'host', 'kind of the dependency');
    truth(String(dependency?.id).includes('call1'), `${dependency?.id} does not name the call`);
    const failed = (await eventsOf(at, task)).find(({ event }) => event === 'replay.failed');
    equal(failed?.payload.details, task.failure?.details, 'details of replay.failed');
    const { replay_input } = (await receiptOf(at, task)) as unknown as { replay_input: { determinism: string } };
    equal(replay_input.determinism, 'unavailable', 'determinism');
  },
  async 'a memory that was deleted fails the replay, and is named'(at) {
    at.mine();
    const { workspace_id } = await at.session();
    const memory = { scope: 'workspace', owner_id: workspace_id, content: 'the lake is deep', provenance: {} };
    const { id } = await at.made<{ id: string }>('POST', '/v1/memories', { body: memory });
    const session = await at.session({ workspace_id, memory_ids: [id] });
    const source = await at.done('recall', session.id);
    equal((await replay(at, source.id)).status, 'COMPLETED', 'status while the memory is there');
    await at.ok('DELETE', `/v1/memories/${id}`);
    const task = await replay(at, source.id);
    equal([task.status, task.failure?.code], ['FAILED', 'replay_dependency_unavailable'], 'status and failure');
    const { dependency } = (task.failure?.details ?? {}) as { dependency?: { kind?: string; id?: string } };
    equal([dependency?.kind, dependency?.id], ['memory', id], 'the dependency');
    const failed = (await eventsOf(at, task)).find(({ event }) => event === 'replay.failed');
    equal(failed?.payload.details, task.failure?.details, 'details of replay.failed');
  },
  ...each(
    [undefined, 'receipt_only', 'internal'],
    (word) => `a value that is ${word ?? 'given no visibility'} stands in no event, stream, task or receipt`,
    async (word, at) => {
      const source = await at.done('read plan');
      const { key } = await firstReturn(at, source);
      const value = { text: 'plan says: CANARY-4711 is the code' };
      const body = over(key, { kind: 'tool_result', value, ...(word && { visibility: word }) });
      const task = await replay(at, source.id, body);
      equal(task.status, 'COMPLETED', 'status');
      const events = await eventsOf(at, task);
      const receipt = await receiptOf(at, task);
      const messages = await at.messages(source.session_id);
      truth(!JSON.stringify([events, task, receipt, messages]).includes('CANARY-4711'), 'the value is shown');
      truth((await saidBy(at, task))[0] !== (await saidBy(at, source))[0], 'the recorded words are repeated');
      const [delta] = (receipt.deltas ?? []) as Record<string, string>[];
      equal([delta?.override_key, delta?.after_sha256], [key, sha256(canonical(value))], 'the delta');
    },
  ),
  async 'ids follow from what is replayed: equal replays are numbered, others have other names'(at) {
    const source = await at.done('read plan');
    const { key } = await firstReturn(at, source);
    const other = (text_: string) => over(key, { kind: 'tool_result', value: { text: text_ } });
    const tasks = [await replay(at, source.id), await replay(at, source.id)];
    tasks.push(await replay(at, source.id, other('a')), await replay(at, source.id, other('b')));
    const names = tasks.flatMap(({ id, receipt_id, outcome_id }) => [id, receipt_id, outcome_id]);
    equal(new Set(names).size, names.length, 'different ids');
    equal(tasks[1]?.id, `${tasks[0]?.id}_2`, 'the second of two equal replays');
    equal(tasks[0]?.receipt_id, tasks[0]?.id.replace(/^task/, 'receipt'), 'the receipt of a replay');
  },
  async 'deltas do not depend on the order of the overrides'(at) {
    const source = await at.done('read plan');
    const { key } = await firstReturn(at, source);
    const pair = {
      [key]: { kind: 'tool_result', value: { text: 'x' } },
      'time:started_at': time('2026-01-01T00:00:00Z'),
    };
    const keysOf = async (override: object) => {
      const receipt = await receiptOf(at, await replay(at, source.id, { mode: 'with_overrides', override }));
      return (receipt.deltas as { override_key: string }[]).map(({ override_key }) => override_key);
    };
    const turned = Object.fromEntries(Object.entries(pair).reverse());
    equal(await keysOf(pair), await keysOf(turned), 'the deltas');
  },
  async 'an overridden time moves the receipt’s'(at) {
    const source = await at.done('hello');
    const value = '2026-04-25T19:16:14Z';
    const receipt = await receiptOf(at, await replay(at, source.id, over('time:started_at', time(value))));
    equal(Date.parse((receipt.lifecycle as { started_at: string }).started_at), Date.parse(value), 'started_at');
    const [delta] = receipt.deltas as Record<string, string>[];
    equal([delta?.path, delta?.override_key], ['/lifecycle/started_at', 'time:started_at'], 'the delta');
  },
  ...each(
    BAD,
    ([what]) => `${what} is 400, and nothing is replayed`,
    async ([, body], at) => {
      const source = await at.done('hello');
      const error = await at.refused('invalid_request', 'POST', `/v1/tasks/${source.id}/replay`, { body });
      text(error.param, 'param');
      const { data } = await at.ok<List<Task>>('GET', `/v1/sessions/${source.session_id}/tasks`);
      equal(data.length, 1, 'tasks of the session');
    },
  ),
  async 'both a value and an artifact is 400'(at) {
    const source = await at.done('artifact');
    const { data } = await at.ok<List<{ id: string }>>('GET', `/v1/artifacts?task_id=${source.id}`);
    const body = over('time:started_at', { ...time('2026-01-01T00:00:00Z'), artifact_id: data[0]?.id });
    await at.refused('invalid_request', 'POST', `/v1/tasks/${source.id}/replay`, { body });
  },
  async 'from a checkpoint: only what came after it is lived through'(at) {
    const source = await at.done('hello then read plan');
    const events = await eventsOf(at, source);
    const from = events.find(({ event }) => event === 'agent.message');
    truth(from, 'there is no message to start from');
    const task = await replay(at, source.id, { mode: 'from_checkpoint', checkpoint_event_id: from.id });
    equal(task.status, 'COMPLETED', 'status');
    // What is only restored is reported in one event that names the checkpoint.
    const restored = (await eventsOf(at, task)).find((e) => e.event === 'replay.event_replayed');
    equal(restored?.replay?.original_event_id, from.id, 'original_event_id of what is restored');
    const marked = (await eventsOf(at, task)).filter((e) => e.replayed && e.event !== 'replay.event_replayed');
    truth(marked.length > 0, 'nothing is marked as replayed');
    truth(
      marked.every(({ replay: mark }) => String(mark?.original_event_id) > from.id),
      'something from before is in it',
    );
  },
  async 'a checkpoint that is not there is 404'(at) {
    const { id } = await at.done('hello');
    for (const body of [
      { mode: 'from_checkpoint', checkpoint_id: 'nowhere' },
      { mode: 'from_checkpoint', checkpoint_event_id: 'evt_9999999999999999' },
    ]) {
      await at.refused('resource_not_found', 'POST', `/v1/tasks/${id}/replay`, { body });
    }
  },
  async 'a task that has not ended cannot be replayed: 409'(at) {
    const { id } = await at.submit('wait 500');
    await at.refused('conflict', 'POST', `/v1/tasks/${id}/replay`, { body: {} });
    await at.ok('POST', `/v1/tasks/${id}/cancel`, { body: {} });
  },
  async 'a replay can be followed like any task'(at) {
    const source = await at.done('hello');
    const task = await replay(at, source.id);
    const states = (await eventsOf(at, task))
      .filter(({ event }) => event.startsWith('task.'))
      .map(({ payload }) => payload.to);
    equal(states, ['SUBMITTED', 'WORKING', 'COMPLETED'], 'states');
  },
  async 'a whole session can be replayed, its tasks in order'(at) {
    const session = await at.session();
    const sources = [await at.done('hello', session.id), await at.done('read plan', session.id)];
    const made = await at.made<List<Task>>('POST', `/v1/sessions/${session.id}/replay`, { body: {} });
    equal(
      made.data.map(({ parent_task_id }) => parent_task_id),
      sources.map(({ id }) => id),
      'the sources of the new tasks',
    );
    for (const { id } of made.data) equal((await at.ended(id)).status, 'COMPLETED', 'status');
    const kinds = (await at.events(`/v1/sessions/${session.id}/events`)).map(({ event }) => event);
    truth(kinds.includes('session.replayed'), 'there is no session.replayed');
  },
  async 'replaying adds nothing to the transcript'(at) {
    const source = await at.done('hello');
    const before = await at.messages(source.session_id);
    await replay(at, source.id);
    equal((await at.messages(source.session_id)).length, before.length, 'messages');
  },
});
