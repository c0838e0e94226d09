/** Sessions: closed for good, forked with their past, cut back without losing the record. */
import type { Branch, Message, Session, Task } from '../../../../src/model/resources.ts';
import { equal, truth } from '../harness/expect.ts';
import { category, each } from '../harness/suite.ts';
import { said, type Target } from '../harness/target.ts';
import type { List } from '../harness/wire.ts';

interface Truncated {
  readonly object: string;
  readonly session_id: string;
  readonly kept_turn_count: number;
  readonly removed_turn_count: number;
  readonly new_tip_turn_id: string | null;
  readonly session: Session;
}

const five = (at: Target) => at.session({ initial_messages: ['a', 'b', 'c', 'd', 'e'].map((words) => said(words)) });
const texts = (messages: readonly Message[]) => messages.map(({ parts }) => (parts[0] as { text: string }).text);
const kinds = async (at: Target, id: string) =>
  (await at.events(`/v1/sessions/${id}/events`)).map(({ event }) => event);

const AFTER_CLOSE: readonly (readonly [string, string, object])[] = [
  ['POST', 'messages', { message: said('late') }],
  ['POST', 'tasks', { input: said('late') }],
  ['POST', 'branches', { kind: 'session', base_ref: 'main' }],
  ['POST', 'truncate', { keep_first: 0 }],
];

export const sessions = category('sessions', {
  async 'a new session is whole and IDLE'(at) {
    const session = await at.session({ metadata: { a: 1 }, initial_messages: [said('first')] });
    equal([session.object, session.state, session.metadata.a], ['session', 'IDLE', 1], 'object, state, metadata');
    truth(session.created_at && session.updated_at, 'times are set');
    truth(typeof session.transcript === 'object' || typeof session.transcript === 'string', 'no transcript');
    equal(texts(await at.messages(session.id)), ['first'], 'messages');
    truth((await kinds(at, session.id)).includes('session.created'), 'no session.created');
  },
  async 'its summary and metadata can change'(at) {
    const { id } = await at.session({ metadata: { keep: 1 } });
    const body = { summary: 'short', metadata: { more: 2 } };
    const changed = await at.ok<Session>('PATCH', `/v1/sessions/${id}`, { body });
    equal([changed.summary, changed.metadata.more], ['short', 2], 'summary and metadata');
    equal((await at.ok<Session>('GET', `/v1/sessions/${id}`)).summary, 'short', 'summary on reading');
  },
  async 'a message is readable by its id and has the whole envelope'(at) {
    const { id } = await at.session();
    const body = { message: { ...said('x'), metadata: { tag: 1 } } };
    const made = await at.ok<Message>('POST', `/v1/sessions/${id}/messages`, { body });
    const read = await at.ok<Message>('GET', `/v1/messages/${made.id}`);
    equal(read, made, 'the message on reading');
    equal([read.object, read.role, read.session_id, read.metadata.tag], ['message', 'user', id, 1], 'its members');
    truth(read.created_at && read.updated_at, 'times are set');
  },
  ...each(
    [
      { type: 'json', value: { a: [1] }, visibility: 'public' },
      { type: 'tool_call', tool_call_id: 'c1', name: 't', input: {}, visibility: 'public' },
      { type: 'tool_result', tool_call_id: 'c1', output: 'x', status: 'ok', visibility: 'public' },
      { type: 'file_ref', uri: 'file:///a', mime_type: 'text/plain', visibility: 'internal' },
      { type: 'x_hologram', visibility: 'public', light: 7 },
    ],
    ({ type }) => `a part of type ${type} comes back as it went in`,
    async (part, at) => {
      const { id } = await at.session();
      const body = { message: { role: 'tool', parts: [part] } };
      const made = await at.ok<Message>('POST', `/v1/sessions/${id}/messages`, { body });
      equal((await at.ok<Message>('GET', `/v1/messages/${made.id}`)).parts, [part], 'parts');
    },
  ),
  async 'appending a message starts no work'(at) {
    const { id } = await at.session();
    await at.ok('POST', `/v1/sessions/${id}/messages`, { body: { message: said('hello') } });
    equal((await at.ok<List<Task>>('GET', `/v1/sessions/${id}/tasks`)).data, [], 'tasks');
  },
  async 'closing closes, and is told'(at) {
    const { id } = await at.session();
    equal((await at.ok<Session>('POST', `/v1/sessions/${id}/close`)).state, 'CLOSED', 'the answer');
    equal((await at.ok<Session>('GET', `/v1/sessions/${id}`)).state, 'CLOSED', 'on reading');
    truth((await kinds(at, id)).includes('session.closed'), 'no session.closed');
    equal((await at.ok<Session>('POST', `/v1/sessions/${id}/close`)).state, 'CLOSED', 'closing again');
  },
  ...each(
    AFTER_CLOSE,
    ([method, what]) => `${method} …/${what} on a closed session is 409`,
    async ([method, what, body], at) => {
      const { id } = await at.session();
      await at.ok('POST', `/v1/sessions/${id}/close`);
      await at.refused('conflict', method, `/v1/sessions/${id}/${what}`, { body });
    },
  ),
  async 'what was running when it closed is stopped'(at) {
    const session = await at.session();
    const { id } = await at.submit('wait 500', session.id);
    await at.ok('POST', `/v1/sessions/${session.id}/close`);
    equal((await at.task(id)).status, 'CANCELED', 'the task');
  },
  async 'a closed session can still be read'(at) {
    const session = await five(at);
    await at.ok('POST', `/v1/sessions/${session.id}/close`);
    equal((await at.messages(session.id)).length, 5, 'messages');
  },
  async 'a fork has the past of its source and a life of its own'(at) {
    const source = await five(at);
    const fork = await at.ok<Session>('POST', `/v1/sessions/${source.id}/fork`, { body: { metadata: { f: 1 } } });
    truth(fork.id !== source.id, 'the fork is its source');
    equal([fork.parent_session_id, fork.root_session_id], [source.id, source.id], 'parent and root');
    equal(
      [fork.state, fork.workspace_id, fork.metadata.f],
      ['IDLE', source.workspace_id, 1],
      'state, workspace, metadata',
    );
    equal(texts(await at.messages(fork.id)), ['a', 'b', 'c', 'd', 'e'], 'messages of the fork');
    await at.ok('POST', `/v1/sessions/${fork.id}/messages`, { body: { message: said('f') } });
    equal((await at.messages(source.id)).length, 5, 'messages of the source');
    truth((await kinds(at, source.id)).includes('session.thread_forked'), 'no session.thread_forked');
  },
  async 'a fork of a fork keeps its root'(at) {
    const root = await five(at);
    const one = await at.ok<Session>('POST', `/v1/sessions/${root.id}/fork`);
    const two = await at.ok<Session>('POST', `/v1/sessions/${one.id}/fork`);
    equal([two.parent_session_id, two.root_session_id], [one.id, root.id], 'parent and root');
  },
  async 'a fork at an event has the past up to that event'(at) {
    const source = await five(at);
    const third = (await at.events(`/v1/sessions/${source.id}/events`)).filter(
      ({ event }) => event === 'user.message',
    )[2];
    truth(third, 'there is no third user.message');
    const body = { at_event_id: third.id };
    const fork = await at.ok<Session>('POST', `/v1/sessions/${source.id}/fork`, { body });
    equal(texts(await at.messages(fork.id)), ['a', 'b', 'c'], 'messages of the fork');
  },
  async 'a fork at an event of another session is 404'(at) {
    const [source, other] = [await five(at), await five(at)];
    const [first] = await at.events(`/v1/sessions/${other.id}/events`);
    await at.refused('resource_not_found', 'POST', `/v1/sessions/${source.id}/fork`, {
      body: { at_event_id: first?.id },
    });
  },
  async 'a closed session can be forked'(at) {
    const source = await five(at);
    await at.ok('POST', `/v1/sessions/${source.id}/close`);
    equal((await at.ok<Session>('POST', `/v1/sessions/${source.id}/fork`)).state, 'IDLE', 'the fork');
  },
  ...each(
    [0, 2, 5, 9],
    (keep) => `truncating to the first ${keep} of five`,
    async (keep, at) => {
      const { id } = await five(at);
      const before = await at.messages(id);
      const body = { keep_first: keep, reason: 'tidy' };
      const result = await at.ok<Truncated>('POST', `/v1/sessions/${id}/truncate`, { body });
      const kept = Math.min(keep, 5);
      equal([result.object, result.session_id], ['session.truncate_result', id], 'object and session');
      equal([result.kept_turn_count, result.removed_turn_count], [kept, 5 - kept], 'counts');
      equal(result.new_tip_turn_id, kept === 0 ? null : before[kept - 1]?.id, 'the new tip');
      equal(result.session.id, id, 'the session in the answer');
      equal(texts(await at.messages(id)), ['a', 'b', 'c', 'd', 'e'].slice(0, kept), 'messages');
    },
  ),
  async 'truncating keeps the record: events stay, and one tells of it'(at) {
    const { id } = await five(at);
    const before = await at.events(`/v1/sessions/${id}/events`);
    await at.ok('POST', `/v1/sessions/${id}/truncate`, { body: { keep_first: 1 } });
    const after = await at.events(`/v1/sessions/${id}/events`);
    equal(after.slice(0, before.length), before, 'the events before');
    truth(
      after.slice(before.length).some(({ event }) => event === 'session.truncated'),
      'no session.truncated',
    );
  },
  async 'truncating stops what runs'(at) {
    const session = await five(at);
    const { id } = await at.submit('wait 500', session.id);
    await at.ok('POST', `/v1/sessions/${session.id}/truncate`, { body: { keep_first: 2 } });
    equal((await at.task(id)).status, 'CANCELED', 'the task');
  },
  ...each(
    [{}, { keep_first: -1 }, { keep_first: 1.5 }, { keep_first: '1' }],
    (body) => `truncating with ${JSON.stringify(body)} is 400`,
    async (body, at) => {
      const { id } = await five(at);
      await at.refused('invalid_request', 'POST', `/v1/sessions/${id}/truncate`, { body });
      equal((await at.messages(id)).length, 5, 'messages');
    },
  ),
  ...each(
    ['workspace', 'session', 'task', 'sandbox'],
    (kind) => `a branch of kind ${kind}`,
    async (kind, at) => {
      const session = await at.session();
      const path = `/v1/sessions/${session.id}/branches`;
      const made = await at.ok<Branch>('POST', path, { body: { kind, base_ref: 'main' } });
      equal([made.kind, made.base_ref, made.workspace_id], [kind, 'main', session.workspace_id], 'its members');
      equal(await at.ok('GET', `/v1/branches/${made.id}`), made, 'on reading');
      equal((await at.ok<List<Branch>>('GET', path)).data, [made], 'in the list');
    },
  ),
});
