import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { decisionShapes, payloadShapes } from '../../../adapters/ahp/shapes.ts';
import {
  artifactKind,
  CAPABILITIES,
  decision,
  EVENTS,
  eventRow,
  FAMILIES,
  planStatus,
  RUN_STATES,
  verdictOf as received,
  runStatus,
  spoken,
  TASK_ITEM_STATES,
} from '../../../mappings/ahp.ts';

describe('the AHP table', () => {
  test('has the 22 events of the protocol, each said to be asked or reported', () => {
    expect(EVENTS.map(({ wire }) => wire).toSorted()).toEqual([
      'confirmation',
      'context_perception',
      'error',
      'handshake',
      'heartbeat',
      'idle',
      'intent_detection',
      'memory_recall',
      'planning',
      'post_action',
      'post_response',
      'pre_action',
      'pre_prompt',
      'query',
      'rate_limit',
      'reasoning',
      'run_lifecycle',
      'session_end',
      'session_start',
      'success',
      'task_list',
      'verification',
    ]);
    const asked = EVENTS.filter((row) => 'answer' in row).map(({ wire }) => wire);
    expect(asked).toHaveLength(10);
    expect(asked.every((wire) => eventRow(wire).action !== undefined)).toBe(true);
    expect(EVENTS.filter((row) => row.dir !== '<->').every((row) => 'why' in row)).toBe(true);
  });

  test('batches hold what a generic decision answers, and nothing else', () => {
    const batched = EVENTS.filter((row) => 'batch' in row).map(({ wire }) => wire);
    expect(batched).toHaveLength(12);
    expect(batched.every((wire) => [undefined, 'generic'].includes(eventRow(wire).answer))).toBe(true);
  });

  test('every word a family may say is one its readers understand', () => {
    const known: Record<string, readonly string[]> = {
      generic: ['allow', 'block', 'modify', 'defer', 'escalate'],
      idle: ['allow', 'defer'],
      intent_detection: ['allow', 'block'],
      context_perception: ['allow', 'block', 'refine'],
      memory_recall: ['allow', 'block'],
      planning: ['allow', 'block', 'modify'],
      reasoning: ['allow', 'block'],
      rate_limit: ['retry', 'queue', 'skip'],
      confirmation: ['escalate', 'approve', 'reject'],
    };
    for (const family of FAMILIES) {
      expect(Object.keys(received[family]).toSorted()).toEqual(known[family]?.toSorted());
      for (const word of Object.values(spoken[family])) expect(known[family]).toContain(word);
    }
  });

  test('nothing that failed, was blocked or waits for people is ever said as a yes', () => {
    const yes = ['allow', 'approve'];
    for (const family of FAMILIES) {
      for (const verdict of ['failed', 'block', 'defer', 'escalate'] as const) {
        expect([family, verdict, yes.includes(spoken[family][verdict])]).toEqual([family, verdict, false]);
      }
    }
  });

  test('runs, plans and decisions go both ways', () => {
    expect(RUN_STATES.map((word) => runStatus.toCore(word))).toEqual([
      'SUBMITTED',
      'WORKING',
      'WORKING',
      'WORKING',
      'COMPLETED',
      'FAILED',
      'CANCELED',
    ]);
    expect(runStatus.toWire('CANCELED')).toBe('cancelled');
    expect(runStatus.toWire('AUTH_REQUIRED')).toBe('executing');
    expect(TASK_ITEM_STATES.every((word) => planStatus.toCore(word) !== undefined)).toBe(true);
    expect(decision.toCore('sing')).toBeUndefined();
    expect([artifactKind('log'), artifactKind('poem'), artifactKind(undefined)]).toEqual(['log', 'other', 'other']);
    expect(CAPABILITIES).toHaveLength(22);
  });
});

describe('reading as the protocol reads', () => {
  const { vectors } = JSON.parse(
    readFileSync(new URL('../../../fixtures/ahp/vectors/decode-vectors.json', import.meta.url), 'utf8'),
  ) as { vectors: { type: string; note: string; input: unknown; accepted: boolean; reserialized?: unknown }[] };
  const ours = vectors.filter(({ type }) => type === 'Decision' || type === 'RunLifecycleEvent');

  test.each(ours)('$type: $note', ({ type, input, accepted, reserialized }) => {
    const read = type === 'Decision' ? decisionShapes.generic : payloadShapes.run_lifecycle;
    if (accepted) expect(read(input)).toEqual(reserialized);
    else expect(() => read(input)).toThrow();
  });

  test('an error names the member and never repeats its value', () => {
    expect(() => payloadShapes.memory_recall({ session_id: 's', query: { password: 'hunter2' } })).toThrow(
      /^invalid type: map, expected a string in `query`$/,
    );
  });
});
