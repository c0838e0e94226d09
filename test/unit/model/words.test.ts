/** Task states, events and faults, and the protocol they are published in. */
import { describe, expect, test } from 'vitest';
import { eventId, position } from '../../../src/model/events.ts';
import { asFault } from '../../../src/model/faults.ts';
import {
  EVENT_KINDS,
  isTerminal,
  mayFollow,
  OWN_EVENT_KINDS,
  TASK_STATES,
  TASK_TRANSITIONS,
} from '../../../src/model/words.ts';
import { checks } from '../../conformance/model.ts';

describe('task states', () => {
  test('follow each other as the protocol says', () => {
    expect(TASK_TRANSITIONS).toEqual({
      SUBMITTED: ['WORKING', 'CANCELED', 'FAILED'],
      WORKING: ['INPUT_REQUIRED', 'AUTH_REQUIRED', 'COMPLETED', 'FAILED', 'CANCELED'],
      INPUT_REQUIRED: ['WORKING', 'FAILED', 'CANCELED'],
      AUTH_REQUIRED: ['WORKING', 'FAILED', 'CANCELED'],
      COMPLETED: [],
      FAILED: [],
      CANCELED: [],
    });
  });

  test('mayFollow says the same, for every pair', () => {
    const allowed = TASK_STATES.flatMap((from) =>
      TASK_STATES.filter((to) => mayFollow(from, to)).map((to) => `${from} ${to}`),
    );
    expect(allowed.toSorted()).toEqual([
      'AUTH_REQUIRED CANCELED',
      'AUTH_REQUIRED FAILED',
      'AUTH_REQUIRED WORKING',
      'INPUT_REQUIRED CANCELED',
      'INPUT_REQUIRED FAILED',
      'INPUT_REQUIRED WORKING',
      'SUBMITTED CANCELED',
      'SUBMITTED FAILED',
      'SUBMITTED WORKING',
      'WORKING AUTH_REQUIRED',
      'WORKING CANCELED',
      'WORKING COMPLETED',
      'WORKING FAILED',
      'WORKING INPUT_REQUIRED',
    ]);
  });

  test('end in three ways', () => {
    expect(TASK_STATES.filter(isTerminal)).toEqual(['COMPLETED', 'FAILED', 'CANCELED']);
  });
});

describe('events', () => {
  test('are named as the protocol names them', () => {
    const names = {
      user: 'message input_submitted tool_confirmation cancel_requested',
      agent: 'message reasoning_summary tool_use tool_result mcp_tool_use handoff memory_read memory_write',
      task: 'submitted started input_required auth_required completed failed canceled status_changed',
      session: 'created closed message_appended compacted truncated thread_forked thread_merged replayed',
      branch: 'created updated merged abandoned',
      artifact: 'created updated linked redacted',
      span: 'started updated completed failed',
      tool: 'requested approval_required approved denied completed failed',
      connector: 'delivery_received delivery_deduped normalized task_submitted failed',
      receipt: 'issued verified verification_failed',
      replay: 'started event_replayed completed failed',
    };
    const expected = Object.entries(names).flatMap(([group, words]) =>
      words.split(' ').map((word) => `${group}.${word}`),
    );
    expect(EVENT_KINDS).toEqual(expected);
    expect(expected).toHaveLength(58);
  });

  test('of our own carry our prefix and say why they exist', () => {
    for (const [name, why] of Object.entries(OWN_EVENT_KINDS)) {
      expect(name).toMatch(/^vendor\.tollbridge\.[a-z_]+$/);
      expect(why.length).toBeGreaterThan(20);
    }
  });

  test('have ids that sort as they happened', () => {
    expect(eventId(7)).toBe('evt_0000000000000007');
    expect(eventId(99) < eventId(100)).toBe(true);
    expect(position('evt_0000000000000100')).toBe(100);
    expect(['evt_7', 'evt_00000000000000007', 'task_1', '', 'evt_000000000000000x'].map(position)).toEqual(
      Array(5).fill(undefined),
    );
  });
});

describe('faults', () => {
  test('what was not planned is ours, and keeps its words to itself', () => {
    const cause = new Error('password is hunter2');
    const fault = asFault(cause);
    expect([fault.kind, fault.message, fault.cause]).toEqual([
      'internal',
      'something went wrong inside the bridge',
      cause,
    ]);
    expect(asFault(fault)).toBe(fault);
  });
});

describe('the protocol as published', () => {
  test.each(checks.map(({ name, run }) => [name, run] as const))('%s', async (_name, run) => {
    await expect((async () => run())()).resolves.toBeUndefined();
  });
});
