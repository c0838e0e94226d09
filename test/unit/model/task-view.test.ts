/** The one fold of a task's events that every wire is rendered from. */
import { expect, test } from 'vitest';
import {
  answersOf,
  type CoreEvent,
  EVENT_KINDS,
  emptyTaskView,
  evolve,
  isWaiting,
  type Kept,
  OWN_EVENT_KINDS,
  partsOf,
  type TaskView,
} from '../../../src/index.ts';

let count = 0;

function event(kind: string, payload: object = {}): CoreEvent {
  count += 1;
  const created_at = `2026-01-01T00:00:0${count % 10}.000Z`;
  return { event: kind, payload, created_at, id: `evt_${String(count).padStart(16, '0')}` } as unknown as CoreEvent;
}

function fold(events: readonly CoreEvent[], kept: Kept = 'all'): TaskView {
  return events.reduce(evolve, emptyTaskView(kept));
}

const task = (status: string, more: object = {}) => ({ task: { id: 'task_1', status, ...more } });
const delta = (text: string, id = 'm1') =>
  event('vendor.tollbridge.message_delta', { message_id: id, role: 'assistant', text });
const said = (text: string, id = 'm1') =>
  event('agent.message', { message: { id, role: 'assistant', parts: [{ type: 'text', text, visibility: 'public' }] } });
const requested = (more: object = {}) =>
  event('tool.requested', { tool_call_id: 'c1', name: 'send', input: { to: 'bo' }, evidence: 'held', ...more });
const decided = (verdict: string, more: object = {}) =>
  event('vendor.tollbridge.decided', {
    action: { tool_call_id: 'c1' },
    decision: { verdict, engine: 'rules', reason: 'why', rule_id: 'r1', ...more },
  });
const opened = event('vendor.tollbridge.ask_opened', { ask: { id: 'ask_1', kind: 'approval', question: '?' } });

test('nothing of a task that was not submitted', () => {
  expect(emptyTaskView()).toMatchObject({ task: undefined, cursor: undefined, usage: {}, loss: [] });
});

test('every kind of event is folded, whatever its payload lacks', () => {
  for (const kind of [...EVENT_KINDS, ...Object.keys(OWN_EVENT_KINDS), 'vendor.other.word', 'toString']) {
    const each = event(kind);
    expect(evolve(emptyTaskView(), each).cursor).toBe(each.id);
  }
});

test('the state is that of the last transition, and the end brings outcome, failure and loss', () => {
  const view = fold([
    event('task.submitted', task('SUBMITTED')),
    event('task.started', task('WORKING')),
    event('task.failed', {
      ...task('FAILED', { failure: { code: 'agent_failed', message: 'no' } }),
      outcome: { summary: 'cut short' },
      not_reported: ['what the peer did'],
    }),
  ]);
  expect(view.task).toMatchObject({ status: 'FAILED', failure: { code: 'agent_failed' } });
  expect(view.outcome).toEqual({ summary: 'cut short' });
  expect(view.loss).toMatchObject([{ aspect: 'report', why: 'what the peer did' }]);
});

test('a message has its pieces while it is written, and then its own parts', () => {
  const half = fold([delta('Hel'), delta('lo')]);
  expect(half.writing).toMatchObject({ id: 'm1', written: 'Hello' });
  expect(answersOf(half).map(partsOf)).toEqual([[{ type: 'text', text: 'Hello', visibility: 'public' }]]);
  const whole = evolve(half, said('Hello!'));
  expect(whole.writing).toBeUndefined();
  expect(answersOf(whole).map(partsOf)).toEqual([[{ type: 'text', text: 'Hello!', visibility: 'public' }]]);
});

test('messages keep the order in which they were begun, and users, systems and tools give no answers', () => {
  const view = fold([
    event('user.message', { message: { id: 'u1', role: 'user', parts: [] } }),
    delta('a', 'm1'),
    said('b', 'm2'),
    said('a', 'm1'),
    event('agent.message', { message: { id: 's1', role: 'system', parts: [] } }),
  ]);
  expect([...view.messages.keys()]).toEqual(['u1', 'm1', 'm2', 's1']);
  expect(answersOf(view).map(({ id }) => id)).toEqual(['m1', 'm2']);
});

test('a message whose writer died is not continued', () => {
  expect(fold([delta('half'), event('vendor.tollbridge.recovered')]).writing).toBeUndefined();
});

test('a held call runs from its decision to its end', () => {
  const [asked, allowed] = [requested(), decided('allow')];
  const done = event('tool.completed', { tool_call_id: 'c1', output: { ok: true } });
  const view = fold([event('agent.tool_use', { tool_call_id: 'c1', name: 'send' }), asked, allowed]);
  expect(view.calls.get('c1')).toMatchObject({
    status: 'running',
    name: 'send',
    arguments: { to: 'bo' },
    decision: { by: 'rules', reason: 'why', rule_id: 'r1', at: allowed.created_at },
    startedBy: allowed.id,
  });
  expect(evolve(view, done).calls.get('c1')).toMatchObject({
    status: 'succeeded',
    output: { ok: true },
    endedBy: done.id,
  });
});

test('a call that the agent runs itself is not said to run', () => {
  expect(fold([requested({ evidence: 'asked' }), decided('allow')]).calls.get('c1')).toMatchObject({
    status: 'requested',
    startedBy: undefined,
  });
});

test('an approver’s arguments run, and the requested ones are kept beside them', () => {
  const approved = event('tool.approved', { tool_call_id: 'c1', by: 'user_1', ask_id: 'ask_1', input: { to: 'al' } });
  const view = fold([
    requested(),
    decided('escalate'),
    event('tool.approval_required', { tool_call_id: 'c1', ask_id: 'ask_1' }),
  ]);
  expect(view.calls.get('c1')).toMatchObject({ status: 'waiting', decision: undefined });
  expect(evolve(view, approved).calls.get('c1')).toMatchObject({
    status: 'running',
    arguments: { to: 'al' },
    requested: { to: 'bo' },
    decision: { by: 'user_1' },
    since: approved.created_at,
  });
});

test.each([
  ['tool.failed', { error: 'broke' }, { status: 'failed', error: 'broke' }],
  ['tool.failed', { error: 'gone', code: 'outcome_unknown' }, { status: 'unknown', code: 'outcome_unknown' }],
  ['tool.denied', { reason: 'no', rule_id: 'r2' }, { status: 'refused', error: 'no', decision: { rule_id: 'r2' } }],
])('%s with %o', (kind, payload, expected) => {
  expect(fold([requested(), event(kind, { tool_call_id: 'c1', ...payload })]).calls.get('c1')).toMatchObject(expected);
});

test('the first end of a call counts; a request after it opens another call', () => {
  const first = event('tool.completed', { tool_call_id: 'c1', output: 'one' });
  const view = fold([requested(), first, event('tool.failed', { tool_call_id: 'c1', error: 'two' })]);
  expect(view.calls.get('c1')).toMatchObject({ status: 'succeeded', output: 'one', endedBy: first.id });
  const again = requested();
  expect(evolve(view, again).calls.get('c1')).toMatchObject({ status: 'requested', openedBy: again.id });
});

test('an end without a request is a call that was opened and ended at once', () => {
  const done = event('tool.completed', { tool_call_id: 'c9', name: 'read', output: 'x' });
  expect(fold([done]).calls.get('c9')).toMatchObject({ name: 'read', openedBy: done.id, endedBy: done.id });
});

test('a task waits while a question is open and its state says so', () => {
  const view = fold([event('task.auth_required', task('AUTH_REQUIRED')), opened]);
  expect(isWaiting(view)).toBe(true);
  expect(isWaiting(evolve(view, event('vendor.tollbridge.ask_closed', { ask_id: 'ask_1', state: 'approved' })))).toBe(
    false,
  );
});

test('artifacts, the plan and the sums of what was used', () => {
  const view = fold([
    event('artifact.created', { artifact: { id: 'artifact_1', kind: 'file' } }),
    event('vendor.tollbridge.plan', { entries: [{ content: 'first' }] }),
    event('vendor.tollbridge.usage', { input_tokens: 10, usd_micros: 5 }),
    event('vendor.tollbridge.usage', { input_tokens: 2, output_tokens: 0 }),
  ]);
  expect(view.artifacts.get('artifact_1')).toMatchObject({ kind: 'file' });
  expect(view.plan).toEqual([{ content: 'first' }]);
  expect(view.usage).toEqual({ input_tokens: 12, usd_micros: 5, output_tokens: 0 });
});

test('a reader that renders as it goes holds only what is open', () => {
  const view = fold([delta('a'), said('a'), requested()], 'open');
  expect([...view.messages.keys()]).toEqual([]);
  const done = event('tool.completed', { tool_call_id: 'c1', output: 'large' });
  expect(evolve(view, done).calls.get('c1')).toMatchObject({ output: 'large', arguments: { to: 'bo' } });
  expect(evolve(view, event('task.started', task('WORKING'))).calls.get('c1')).toMatchObject({
    status: 'succeeded',
    output: undefined,
    arguments: undefined,
  });
});
