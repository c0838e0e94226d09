/** A replay beside its source on the page: what is the same, what differs, and what stands in one of them alone. */
import { expect, test } from 'vitest';
import { pairUp } from '../../../src/console/app/pages/replay/pairs.ts';
import type { LogEvent } from '../../../src/console/app/rows.ts';

let count = 0;
function event(kind: string, payload: object = {}, original?: LogEvent): LogEvent {
  count += 1;
  const replay = original && { replay: { original_event_id: original.id } };
  return {
    id: `evt_${count}`,
    event: kind,
    created_at: '2026-01-01T00:00:00.000Z',
    payload: { ...payload },
    ...replay,
  };
}

const said = event('user.message', { message: { role: 'user', parts: [{ type: 'text', text: 'hi' }] } });
const appended = event('session.message_appended', { role: 'user' });
const submitted = event('task.submitted');
const first = event('tool.completed', { name: 'read', output: 'one' });
const question = (id: string) => ({ from: 'AUTH_REQUIRED', to: 'WORKING', reason: `${id} is answered` });
const went = event('task.status_changed', question('ask_01M7V17450S7BRFPASM4XV675S'));
const second = event('tool.completed', { name: 'read', output: 'two' });
const completed = event('task.completed');
const source = [said, appended, submitted, first, went, second, event('receipt.issued'), completed];

const outcomes = (replay: readonly LogEvent[]) =>
  pairUp(source, replay, ['task_1', 'task_2']).map(({ left, right, same }) => [
    left?.event ?? null,
    right?.event ?? null,
    same,
  ]);
const begun = () => [event('task.submitted'), event('replay.started'), event('replay.event_replayed', {}, said)];
const ended = () => [event('replay.completed'), event('receipt.issued'), event('task.completed')];

test('a replay onto itself has no difference: what it did not write again is the same, the conversation is not part of it', () => {
  // In another order than they happened.
  const on = event('task.status_changed', question('ask_replay_45bf91028ae9645346c21b528b_5.q1'), went);
  const acts = [on, event('tool.completed', second.payload, second), event('tool.completed', first.payload, first)];
  expect(outcomes([...begun(), ...acts, ...ended()])).toEqual([
    ['user.message', 'replay.event_replayed', true],
    ['task.submitted', 'task.submitted', true],
    ['tool.completed', 'tool.completed', true],
    ['task.status_changed', 'task.status_changed', true],
    ['tool.completed', 'tool.completed', true],
    ['task.completed', 'task.completed', true],
  ]);
});

test('another result, an event that is missing and a new one differ', () => {
  const other = event('tool.completed', { name: 'read', output: 'three' }, first);
  const found = outcomes([...begun(), other, event('agent.message'), ...ended()]);
  expect(found.filter(([, , same]) => !same)).toEqual([
    ['tool.completed', 'tool.completed', false],
    ['task.status_changed', null, false],
    ['tool.completed', null, false],
    [null, 'agent.message', false],
  ]);
});
