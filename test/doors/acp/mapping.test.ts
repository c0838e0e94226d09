/** The tables against the published schema, and every frame of every rendition against it too. */
import { describe, expect, test } from 'vitest';
import {
  AGENT_CALLS,
  BLOCKS,
  CLIENT_CALLS,
  faults,
  MODE_TIERS,
  OPTIONS,
  planStatus,
  STANDING_GRANT,
  stopReason,
  toolKind,
  toolStatus,
  UPDATES,
} from '../../../mappings/acp.ts';
import { ADVERTISED, HARN_UPDATES } from '../../../mappings/acp-harn.ts';
import { FAULT_KINDS } from '../../../src/model/faults.ts';
import { AUTONOMY_TIERS } from '../../../src/model/words.ts';
import { readRendition, storyNames } from '../../stories/story.ts';
import { kindsOf, methodsOf, troubleOf, wordsOf } from '../../support/acp/schema.ts';

const wires = (rows: readonly { readonly wire: string }[]) => [...new Set(rows.map(({ wire }) => wire))].sort();

describe('every word of the schema has a row', () => {
  test('calls on an agent', () => {
    expect(wires(CLIENT_CALLS)).toEqual([...methodsOf('agent'), ...methodsOf('protocol')].sort());
  });
  test('calls on a client', () => {
    expect(wires(AGENT_CALLS)).toEqual([...methodsOf('client'), ...methodsOf('protocol')].sort());
  });
  test('updates', () => {
    expect(wires(UPDATES)).toEqual(kindsOf('SessionUpdate', 'sessionUpdate'));
  });
  test('blocks', () => {
    expect(wires(BLOCKS)).toEqual(kindsOf('ContentBlock', 'type'));
  });
  test('kinds of tools, their states, plans, ends and options', () => {
    expect(wordsOf('ToolKind').filter((word) => toolKind.toCore(word) === undefined)).toEqual([]);
    expect(wordsOf('ToolCallStatus').filter((word) => toolStatus.toCore(word) === undefined)).toEqual([]);
    expect(wordsOf('PlanEntryStatus').filter((word) => planStatus.toCore(word) === undefined)).toEqual([]);
    expect(wordsOf('StopReason').filter((word) => stopReason.toCore(word) === undefined)).toEqual([]);
    expect([...OPTIONS.approved, ...OPTIONS.denied, STANDING_GRANT].sort()).toEqual(wordsOf('PermissionOptionKind'));
  });
});

describe('rows', () => {
  test('that go one way, or nowhere, say why', () => {
    const rows = [...CLIENT_CALLS, ...AGENT_CALLS, ...UPDATES];
    expect(rows.filter((row) => row.dir !== '<->' && !('why' in row && row.why))).toEqual([]);
    expect(HARN_UPDATES.filter((row) => row.dir !== '<->' && !('why' in row))).toEqual([]);
  });
  test('that go both ways come back as they went', () => {
    for (const table of [stopReason, toolKind, toolStatus, planStatus]) {
      for (const row of table.rows) {
        if (row.dir === '<->') expect(table.toWire(table.toCore(row.wire) as never)).toBe(row.wire);
      }
    }
  });
  test('words nobody knows mean nothing', () => {
    expect(stopReason.toCore('went_well')).toBeUndefined();
    expect(toolStatus.toCore('')).toBeUndefined();
  });
  test('every fault has a code, and a policy that says no shares none with our failures or their mistakes', () => {
    expect(Object.keys(faults).sort()).toEqual([...FAULT_KINDS].sort());
    expect([faults.policy_violation.code, faults.internal.code, faults.invalid_request.code]).toEqual([
      1403, -32603, -32602,
    ]);
  });
  test('modes are tiers', () => {
    expect(Object.values(MODE_TIERS).filter((tier) => !AUTONOMY_TIERS.includes(tier))).toEqual([]);
    expect([MODE_TIERS.yolo, MODE_TIERS.plan]).toEqual(['act_auto', 'suggest']);
  });
  test('what is advertised of the Harn profile is what can be sent', () => {
    expect(ADVERTISED).toEqual([
      'artifact',
      'fs_watch',
      'handoff',
      'hitl_request',
      'hitl_resolved',
      'log',
      'progress',
      'reminder_emitted',
      'skill_activated',
      'skill_deactivated',
      'skill_narrow',
      'skill_scope_tools',
      'stance_transition',
      'tool_search_query',
      'tool_search_result',
      'transcript_compacted',
      'transcript_projected',
      'worker_update',
    ]);
  });
});

describe('every frame we say is one the schema knows', () => {
  test.each(storyNames())('%s', (story) => {
    const asked = new Map<unknown, string>();
    for (const { from, frame } of readRendition(story, 'acp')) {
      const { id, method } = frame as { id?: unknown; method?: string };
      if (from === 'client' && method && id !== undefined) asked.set(id, method);
      if (from === 'bridge') expect(troubleOf(frame, asked)).toEqual([]);
    }
    expect(asked.size).toBeGreaterThan(2);
  });
});
