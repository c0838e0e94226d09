/** The tables of A2A: every word of the protocol has a row, every row goes there and back, every error has its codes. */
import { type Message, type Part, Role, roleToJSON, TaskState, taskStateToJSON } from '@a2a-js/sdk';
import { restStatusFor, TaskNotFoundError, toJsonRpcError, VersionNotSupportedError } from '@a2a-js/sdk/errors';
import { describe, expect, test } from 'vitest';
import { toErrorReply, toRestError, toRpcError } from '../../../adapters/a2a/server/refusal.ts';
import { filePart, toCoreMessage, toWireParts, toWireState } from '../../../adapters/a2a/translate.ts';
import {
  ERRORS,
  EVENTS,
  faults,
  OPERATIONS,
  PARTS,
  REMOTE_EVENTS as RECEIVED,
  REMOTE_REQUESTS,
  role,
  taskState,
} from '../../../mappings/a2a.ts';
import {
  OPERATIONS as OLD,
  EVENTS as OLD_EVENTS,
  PARTS as OLD_PARTS,
  taskState as oldState,
} from '../../../mappings/a2a-0.3.ts';
import { COMMANDS } from '../../../src/model/commands.ts';
import { FAULT_KINDS, Fault } from '../../../src/model/faults.ts';
import { EVENT_KINDS, OWN_EVENT_KINDS, TASK_STATES } from '../../../src/model/words.ts';

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

describe('parts', () => {
  /** One of each, as it travels in 1.0. */
  const WIRE: Readonly<Record<string, Part>> = {
    text: { content: { $case: 'text', value: 'hi' }, mediaType: 'text/plain', filename: '', metadata: undefined },
    data: {
      content: { $case: 'data', value: { a: 1 } },
      mediaType: 'application/json',
      filename: '',
      metadata: undefined,
    },
    url: {
      content: { $case: 'url', value: 'https://x.example/a' },
      mediaType: 'text/csv',
      filename: '',
      metadata: undefined,
    },
    artifact_ref: {
      content: { $case: 'raw', value: Buffer.from('b') },
      mediaType: 'text/csv',
      filename: 'a.csv',
      metadata: undefined,
    },
    image_ref: {
      content: { $case: 'raw', value: Buffer.from('i') },
      mediaType: 'image/png',
      filename: 'i.png',
      metadata: undefined,
    },
  };
  const rows = PARTS.filter(({ dir }) => dir === '<->') as readonly { wire: string; core: string }[];

  test.each(rows)('$wire is $core, there and back', async ({ wire, core }) => {
    const part = WIRE[core] ?? WIRE[wire];
    const kept: { bytes: Uint8Array; mime_type: string; name: string }[] = [];
    const said = await toCoreMessage({ parts: [part!] } as unknown as Message, async (file) => {
      kept.push(file);
      return 'artifact_1';
    });
    expect(said.parts.map(({ type }) => type)).toEqual([core]);
    const back = toWireParts(said.parts, () => {
      const [file] = kept;
      return filePart({ mime_type: file!.mime_type, metadata: { name: file!.name } }, { bytes: file!.bytes });
    });
    expect(back).toEqual([part]);
  });

  test('every part of 1.0 has a row, and every row of 0.3 names one', () => {
    const known = new Set<string | null>(PARTS.map(({ wire }) => wire));
    expect(['text', 'raw', 'url', 'data'].filter((member) => !known.has(member))).toEqual([]);
    expect(OLD_PARTS.filter(({ v1 }) => !known.has(v1))).toEqual([]);
    const events = new Set<string>(RECEIVED.map(({ wire }) => wire));
    expect(OLD_EVENTS.filter(({ v1 }) => !events.has(v1))).toEqual([]);
  });

  test('calls and results of an agent are nobody else’s, and neither is what is internal', () => {
    const inside = [
      { type: 'tool_call', visibility: 'public', tool_call_id: 'c', name: 'n', arguments: {} },
      { type: 'text', text: 'secret', visibility: 'internal' },
    ] as never;
    expect(toWireParts(inside, () => undefined)).toEqual([]);
  });
});

describe('peers that work for us', () => {
  test('are asked with operations of the protocol, for commands and events we have', () => {
    const known = (word: string) => word in COMMANDS || word in OWN_EVENT_KINDS;
    expect(REMOTE_REQUESTS.filter(({ core }) => !known(core))).toEqual([]);
    expect(REMOTE_REQUESTS.filter(({ operation }) => !OPERATIONS.some(({ id }) => id === operation))).toEqual([]);
  });

  test('are understood in everything a stream can say', () => {
    const said = new Set<string>(RECEIVED.map(({ wire }) => wire));
    expect(EVENTS.map(({ wire }) => wire).filter((wire) => !said.has(wire))).toEqual([]);
    expect(said).toContain('message');
    const ours = [...EVENT_KINDS, ...Object.keys(OWN_EVENT_KINDS)] as readonly string[];
    expect(RECEIVED.filter(({ core }) => !ours.includes(core))).toEqual([]);
  });
});

describe('errors', () => {
  test.each(FAULT_KINDS)('%s has words on every binding', (kind) => {
    const { rpc, http, grpc, reason } = toErrorReply(new Fault(kind, 'why'));
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
    expect(toErrorReply(thrown).cause).toBe(thrown);
  });
});
