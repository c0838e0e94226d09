/** Every command takes what is right and names what is wrong. */
import type { TSchema } from 'typebox';
import { describe, expect, test } from 'vitest';
import { COMMANDS, type CommandKind } from '../../../src/model/commands.ts';
import { check, validator } from '../../../src/model/validate.ts';
import { faultOf, HASH, TIME } from '../../support/gateway/faults.ts';

describe('commands', () => {
  const message = { role: 'user', parts: [{ type: 'text', text: 'hi', visibility: 'public' }] };
  const action = { kind: 'tool', tool: 'read_note', arguments: {}, attributes: { tainted: true, tags: ['a'] } };

  /** A body that passes, then changes that do not, each with the member it is refused for. */
  const cases: Readonly<Record<CommandKind, readonly [object, ...(readonly [object, string])[]]>> = {
    'resource.create': [
      { object: 'memory', body: {} },
      [{ object: 'task' }, '/object'],
      [{ body: 'x' }, '/body'],
      [{ id: 'a b' }, '/id'],
    ],
    'resource.update': [
      { object: 'quota', id: 'quota_1', body: {} },
      [{ id: undefined }, '/id'],
      [{ object: 'event' }, '/object'],
    ],
    'resource.delete': [{ object: 'vault', id: 'vault_1' }, [{ id: '../x' }, '/id']],
    'session.create': [
      { workspace_id: 'workspace_1', persona_id: null, initial_messages: [message], metadata: {} },
      [{ workspace_id: undefined }, '/workspace_id'],
      [{ metadata: 'x' }, '/metadata'],
      [{ initial_messages: [{ role: 'user' }] }, '/initial_messages/0/parts'],
      [{ initial_messages: [{ ...message, role: 'boss' }] }, '/initial_messages/0/role'],
    ],
    'session.update': [{ session_id: 'session_1', summary: null }, [{ summary: 7 }, '/summary']],
    'session.close': [{ session_id: 'session_1' }, [{ session_id: '' }, '/session_id']],
    'session.fork': [{ session_id: 'session_1', at_event_id: null }, [{ at_event_id: 'a b' }, '/at_event_id']],
    'session.truncate': [
      { session_id: 'session_1', keep_first: 0 },
      [{ keep_first: -1 }, '/keep_first'],
      [{ keep_first: 1.5 }, '/keep_first'],
    ],
    'session.compact': [
      { session_id: 'session_1', summary: '', through_message_id: 'm_1' },
      [{ through_message_id: undefined }, '/through_message_id'],
    ],
    'message.append': [{ session_id: 'session_1', message }, [{ message: {} }, '/message/role']],
    'branch.create': [
      { session_id: 'session_1', kind: 'sandbox', base_ref: 'main' },
      [{ kind: 'twig' }, '/kind'],
      [{ base_ref: '' }, '/base_ref'],
    ],
    'branch.update': [
      { branch_id: 'branch_1', worktree_uri: null },
      [{ branch_id: '' }, '/branch_id'],
      [{ base_ref: '' }, '/base_ref'],
    ],
    'branch.end': [{ branch_id: 'branch_1', as: 'merged' }, [{ as: 'burned' }, '/as']],
    'task.submit': [
      { session_id: 'session_1', input: message, agent: 'demo' },
      [{ input: 'hello' }, '/input'],
      [{ session_id: 7 }, '/session_id'],
      [{ session_id: undefined, session: {} }, '/session/workspace_id'],
      [{ agent: '' }, '/agent'],
    ],
    'task.cancel': [
      { task_id: 'task_1', reason: null, failure: { code: 'lost', message: 'gone' } },
      [{ reason: {} }, '/reason'],
      [{ failure: {} }, '/failure/code'],
    ],
    'task.resume': [{ task_id: 'task_1' }, [{ task_id: '' }, '/task_id']],
    'task.message': [{ task_id: 'task_1', kind: 'interrupt', message }, [{ kind: 'shout' }, '/kind']],
    'task.report': [
      { task_id: 'task_1', facts: [{ event: 'agent.message', payload: {} }], end: { state: 'COMPLETED' } },
      [{ facts: [{ event: '', payload: {} }] }, '/facts/0/event'],
      [{ end: { state: 'WORKING' } }, '/end/state'],
      [{ end: { state: 'FAILED', failure: { message: '' } } }, '/end/failure/code'],
    ],
    'task.replay': [
      { task_id: 'task_1', mode: 'with_overrides', override: { 'llm:1': { kind: 'time', value: 1 } } },
      [{ mode: 'backwards' }, '/mode'],
      [{ override: { 'llm:1': { kind: 'mood' } } }, '/override/llm:1/kind'],
      [{ override: { 'llm:1': { kind: 'time', sha256: HASH } } }, '/override/llm:1/sha256'],
    ],
    'action.propose': [
      { task_id: 'task_1', action, wait_ms: 0 },
      [{ wait_ms: -1 }, '/wait_ms'],
      [{ action: { kind: 'dance' } }, '/action/kind'],
      [{ action: { ...action, effect: 'boom' } }, '/action/effect'],
      [{ action: { ...action, cost: { usd: -1 } } }, '/action/cost/usd'],
      [{ action: { ...action, attributes: { a: { b: 1 } } } }, '/action/attributes/a'],
    ],
    'tool.call': [{ task_id: 'task_1', action }, [{ action: undefined }, '/action']],
    'ask.answer': [
      { ask_id: 'ask_1', approved: true },
      [{ approved: 'yes' }, '/approved'],
      [{ ask_id: undefined }, '/ask_id'],
    ],
    'artifact.register': [
      { kind: 'file', mime_type: 'text/plain', visibility: 'public', sha256: `sha256:${HASH}` },
      [{ kind: 'thing' }, '/kind'],
      [{ mime_type: '' }, '/mime_type'],
      [{ sha256: 'abc' }, '/sha256'],
      [{ visibility: 'loud' }, '/visibility'],
    ],
    'artifact.link': [
      { artifact_id: 'artifact_1', to: { object: 'task', id: 'task_1' } },
      [{ to: undefined }, '/to'],
      [{ to: { object: 'task', id: 'a b' } }, '/to/id'],
    ],
    'artifact.redact': [{ artifact_id: 'artifact_1', reason: null }, [{ artifact_id: undefined }, '/artifact_id']],
    'receipt.verify': [{ receipt_id: 'receipt_1', at_time: TIME }, [{ at_time: 'noon' }, '/at_time']],
    'binding.set': [
      { protocol: 'x', scope: '', wire_id: 'w', to: { object: 'task', id: 'task_1' } },
      [{ to: { object: 'task' } }, '/to/id'],
    ],
    passthrough: [
      { protocol: 'x', method: 'y/z', workspace_id: 'workspace_1', params: [1] },
      [{ method: '' }, '/method'],
    ],
  };

  test('are all looked at here', () => {
    expect(Object.keys(cases).toSorted()).toEqual(Object.keys(COMMANDS).toSorted());
  });

  test.each(Object.entries(cases))('%s takes what is right and names what is wrong', (kind, [good, ...bad]) => {
    const schema: TSchema = COMMANDS[kind as CommandKind];
    const strange = { ...good, x_unknown: 1 };
    expect(check(schema, strange, kind)).toBe(strange);
    expect(bad.length).toBeGreaterThan(0);
    for (const [change, param] of bad) {
      const body = JSON.parse(JSON.stringify({ ...good, ...change }));
      const fault = faultOf(() => check(schema, body, kind));
      expect([fault.kind, fault.param]).toEqual(['invalid_request', param]);
    }
    for (const body of [null, [], 'x', 7]) expect(validator(schema)(body)).toBe(false);
  });

  test('an enumeration says what would have been right', () => {
    const fault = faultOf(() => check(COMMANDS['branch.end'], { branch_id: 'branch_1', as: 'burned' }, 'branch.end'));
    expect(fault.message).toBe('branch.end: /as must be one of merged, abandoned');
  });
});
