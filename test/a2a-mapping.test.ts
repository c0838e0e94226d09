/** The tables of A2A: every word of the protocol has a row, every row goes there and back, every error has its codes. */
import { Role, roleToJSON, TaskState, taskStateToJSON } from '@a2a-js/sdk';
import { restStatusFor, TaskNotFoundError, toJsonRpcError, VersionNotSupportedError } from '@a2a-js/sdk/errors';
import { describe, expect, test } from 'vitest';
import { said, toRestError, toRpcError } from '../adapters/a2a/refusal.ts';
import { toWireState } from '../adapters/a2a/translate.ts';
import { ERRORS, EVENTS, faults, GIVEN, HEARD, OPERATIONS, role, taskState } from '../mappings/a2a.ts';
import { OPERATIONS as OLD, taskState as oldState } from '../mappings/a2a-0.3.ts';
import { COMMANDS } from '../src/model/commands.ts';
import { FAULT_KINDS, Fault } from '../src/model/faults.ts';
import { EVENT_KINDS, OWN_EVENT_KINDS, TASK_STATES } from '../src/model/words.ts';

const words = Object.values(TaskState).filter((value): value is TaskState => typeof value === 'number' && value >= 0);

describe('states', () => {
  test('every state of 1.0 stands for one of ours, and none but COMPLETED for success', () => {
    const ours = words.map((state) => [taskStateToJSON(state), taskState.toCore(taskStateToJSON(state))]);
    expect(ours.every(([, core]) => core !== undefined)).toBe(true);
    expect(ours.filter(([, core]) => core === 'COMPLETED')).toEqual([['TASK_STATE_COMPLETED', 'COMPLETED']]);
  });

  test.each(TASK_STATES)('%s goes out and comes back, in both revisions', (state) => {
    expect(taskState.toCore(taskState.toWire(state))).toBe(state);
    expect(oldState.toCore(oldState.toWire(state))).toBe(state);
    expect(taskStateToJSON(toWireState(state))).toBe(taskState.toWire(state));
  });

  test('a refusal goes out as REJECTED and comes back as FAILED', () => {
    const failed = (code: string, started_at: string | null, details = {}) =>
      taskStateToJSON(toWireState('FAILED', { failure: { code, message: '', details }, started_at }));
    expect(failed('rejected', '2026-01-01T00:00:00Z')).toBe('TASK_STATE_REJECTED');
    expect(failed('other', null)).toBe('TASK_STATE_FAILED');
    expect(taskState.toCore('TASK_STATE_REJECTED')).toBe('FAILED');
  });

  test.each(['policy_violation', 'permission_denied', 'rate_limited'])(
    '%s is a refusal of work that never began, and a failure of work that did',
    (code) => {
      const state = (started_at: string | null, details = {}) =>
        taskStateToJSON(toWireState('FAILED', { failure: { code, message: '', details }, started_at }));
      expect(state(null)).toBe('TASK_STATE_REJECTED');
      expect(state('2026-01-01T00:00:00Z', { begun: false })).toBe('TASK_STATE_REJECTED');
      expect(state('2026-01-01T00:00:00Z')).toBe('TASK_STATE_FAILED');
    },
  );

  test('a state of ours nobody has met is work, never success', () => {
    expect(toWireState('PONDERING')).toBe(TaskState.TASK_STATE_WORKING);
  });
});

test('roles', () => {
  expect(role.toCore(roleToJSON(Role.ROLE_USER))).toBe('user');
  expect(role.toCore(roleToJSON(Role.ROLE_AGENT))).toBe('agent');
  expect(role.toCore('ROLE_UNSPECIFIED')).toBeUndefined();
});

test('0.3 has every operation but the list of tasks', () => {
  expect(OPERATIONS.map(({ id }) => id).filter((id) => !OLD.some((row) => row.id === id))).toEqual(['list']);
});

describe('peers that work for us', () => {
  test('are asked with operations of the protocol, for commands and events we have', () => {
    const known = (word: string) => word in COMMANDS || word in OWN_EVENT_KINDS;
    expect(GIVEN.filter(({ core }) => !known(core))).toEqual([]);
    expect(GIVEN.filter(({ operation }) => !OPERATIONS.some(({ id }) => id === operation))).toEqual([]);
  });

  test('are understood in everything a stream can say', () => {
    const said = new Set<string>(HEARD.map(({ wire }) => wire));
    expect(EVENTS.map(({ wire }) => wire).filter((wire) => !said.has(wire))).toEqual([]);
    expect(said).toContain('message');
    const ours = [...EVENT_KINDS, ...Object.keys(OWN_EVENT_KINDS)] as readonly string[];
    expect(HEARD.filter(({ core }) => !ours.includes(core))).toEqual([]);
  });
});

describe('errors', () => {
  test.each(FAULT_KINDS)('%s has words on every binding', (kind) => {
    const { rpc, http, grpc, reason } = said(new Fault(kind, 'why'));
    expect(reason).toBe(faults[kind]);
    expect([rpc, http, grpc]).toEqual([ERRORS[reason].rpc, ERRORS[reason].http, ERRORS[reason].grpc]);
  });

  test('the caller’s mistakes and our failures share no HTTP status', () => {
    const ours = Object.values(ERRORS).filter(({ http }) => http >= 500);
    expect(ours.every(({ rpc }) => rpc === -32603 || rpc === -32006)).toBe(true);
  });

  test.each([
    ['TASK_NOT_FOUND', new TaskNotFoundError('x')],
    ['VERSION_NOT_SUPPORTED', new VersionNotSupportedError('x')],
  ] as const)('%s is what the SDK says it is', (reason, theirs) => {
    expect(ERRORS[reason].rpc).toBe(toJsonRpcError(theirs).code);
    expect(ERRORS[reason].http).toBe(restStatusFor(theirs));
    expect(toRpcError(theirs)).toEqual(toJsonRpcError(theirs));
  });

  test('what is unplanned says nothing of itself', () => {
    const thrown = new Error('the secret path');
    expect(JSON.stringify([toRpcError(thrown), toRestError(thrown)])).not.toContain('secret');
    expect(said(thrown).cause).toBe(thrown);
  });
});
