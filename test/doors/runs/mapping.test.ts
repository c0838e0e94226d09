/** The table of the runs API against what is really reported and read: no word without a way, no way without a word. */
import { describe, expect, test } from 'vitest';
import { createUpdateReader } from '../../../adapters/runs/client/translate.ts';
import type { RunEvent } from '../../../adapters/runs/server/frames.ts';
import { refusalOf, toWireRefusal } from '../../../adapters/runs/server/refusal.ts';
import { createRunRenderer } from '../../../adapters/runs/server/render/events.ts';
import { summarize } from '../../../adapters/runs/server/render/summary.ts';
import {
  EVENTS,
  inputKind,
  isOver,
  OPERATIONS,
  REASONS,
  RUN_STATUSES,
  RUN_TRANSITIONS,
  type RunStatus,
  runState,
} from '../../../mappings/runs.ts';
import type { CoreEvent } from '../../../src/model/events.ts';
import { FAULT_KINDS, Fault } from '../../../src/model/faults.ts';
import { EVENT_KINDS, OWN_EVENT_KINDS, TASK_STATES } from '../../../src/model/words.ts';
import { readCore, storyNames } from '../../stories/story.ts';

const runs = {
  request_id: 'r',
  attempt: 1,
  key: 'k',
  request: 'd',
  run_class: 'default',
  workspace_id: null,
  subject_id: null,
};
let location = 0;
const core = (event: string, payload: object = {}, more: object = {}): CoreEvent =>
  ({
    event,
    payload,
    created_at: `2026-01-01T00:00:0${location % 10}.000Z`,
    id: `evt_${++location}`,
    ...more,
  }) as unknown as CoreEvent;
const task = (more: object = {}) => ({ task: { id: 'task_1', metadata: { runs }, input: {}, ...more } });

function tell(...events: CoreEvent[]): readonly RunEvent[] {
  const rendition = createRunRenderer();
  return [core('task.submitted', task()), core('task.started', task()), ...events].flatMap((event) =>
    rendition.render(event),
  );
}

/** What no story has: a lost worker, a quota, a rejection, a second attempt. */
const RARE = [
  tell(
    core('vendor.tollbridge.passthrough', { protocol: 'runs', method: 'run.worker.stalled' }),
    core('vendor.tollbridge.passthrough', { protocol: 'runs', method: 'run.resumed' }),
  ),
  tell(core('vendor.tollbridge.recovered')),
  tell(
    core('task.failed', task({ failure: { code: 'quota_exhausted', message: 'spent' } })),
    core('task.submitted', task()),
  ),
  tell(
    core('vendor.tollbridge.ask_opened', { ask: { id: 'ask_1', kind: 'approval', action: {}, question: '?' } }),
    core('user.cancel_requested', { failure: { code: 'rejected_by_signal', message: 'no' } }),
    core('vendor.tollbridge.ask_closed', { ask_id: 'ask_1', state: 'denied' }),
    core('task.failed', task({ failure: { code: 'rejected_by_signal', message: 'no' } })),
  ),
];
const reported = [
  ...storyNames().map((name) => {
    const rendition = createRunRenderer();
    return readCore(name)
      .filter(({ task_id }) => task_id === 'task_1')
      .flatMap((event) => rendition.render(event));
  }),
  ...RARE,
];

describe('events', () => {
  test('every one of the table is reported, and nothing else is', () => {
    expect(new Set(reported.flat().map(({ type }) => type))).toEqual(new Set(EVENTS.map(({ wire }) => wire)));
  });

  test('every fact of the table is a canonical word, or another vendor’s', () => {
    const known: readonly string[] = [...EVENT_KINDS, ...Object.keys(OWN_EVENT_KINDS)];
    const facts = EVENTS.flatMap((row) => row.facts as readonly string[]);
    expect(facts.filter((fact) => !known.includes(fact) && !fact.startsWith('vendor.runs.'))).toEqual([]);
  });

  test('states follow each other as the page says', () => {
    for (const story of reported) {
      let status: RunStatus = 'queued';
      for (const { payload } of story) {
        const { from_status, to_status } = payload.value as { from_status?: RunStatus; to_status?: RunStatus };
        if (!from_status || !to_status) continue;
        expect(from_status).toBe(status);
        expect(RUN_TRANSITIONS[from_status]).toContain(to_status);
        status = to_status;
      }
    }
  });

  test('a quota that ends a run is said before the failure', () => {
    expect(RARE[2]!.map(({ type }) => type)).toEqual([
      'run.created',
      'run.worker.started',
      'step.done',
      'run.limit_exceeded',
      'run.coordination.decision',
      'run.worker.failed',
      'run.worker.retry_scheduled',
    ]);
    expect(RARE[2]![3]!.payload.value.reason_code).toBe('limit_exceeded');
  });

  test('what is only for some is taken out of a step, and the step says so', () => {
    const parts = [
      { type: 'text', text: 'for all', visibility: 'public' },
      { type: 'text', text: 'for us', visibility: 'internal' },
      { type: 'json', value: { proof: 1 }, visibility: 'receipt_only' },
      { type: 'artifact_ref', artifact_id: 'artifact_1', visibility: 'public' },
    ];
    const [, , done] = tell(core('agent.message', { message: { id: 'm1', role: 'assistant', parts } }));
    expect(done?.payload).toEqual({
      redacted: true,
      value: {
        task_id: 'm1',
        content: 'for all',
        outcome: 'succeeded',
        request_id: 'r',
        artifact_refs: ['artifact_1'],
      },
    });
  });

  test('the frame of a remote is rendered as it came, without members that are never shown', () => {
    const frame = { type: 'run.teleported', value: { to: 'mars', input: 'secret' } };
    const ext = { runs: { seq: 9, frame } };
    expect(tell(core('vendor.runs.teleported', {}, { ext })).at(-1)).toMatchObject({
      seq: 3,
      type: 'run.teleported',
      payload: { redacted: true, value: { to: 'mars' } },
    });
    expect(tell(core('tool.requested', { tool_call_id: 'c' }, { ext: { runs: { frame: null } } }))).toHaveLength(2);
  });

  test('each is read: as facts, as a question, as an end, or as nothing new', () => {
    const read = (type: string, value: object) => createUpdateReader('t').read({ seq: 1, type, value: value as never });
    const facts = Object.fromEntries(
      EVENTS.map(({ wire }) => [
        wire,
        read(wire, { kind: 'content_delta', content_delta: 'x', content: 'x', tool_outcome: 'succeeded' }).map(
          (step) => (step.do === 'emit' ? step.fact.event : step.do),
        ),
      ]),
    );
    expect(facts).toEqual({
      'run.created': [],
      'run.worker.started': [],
      'run.worker.succeeded': ['end'],
      'run.worker.failed': ['end'],
      'run.worker.stalled': ['vendor.runs.stalled', 'stalled'],
      'run.worker.retry_scheduled': ['vendor.runs.retry_scheduled'],
      'run.cancelled': ['end'],
      'run.resumed': ['vendor.runs.resumed'],
      'run.limit_exceeded': ['vendor.runs.limit_exceeded'],
      'step.progress': ['vendor.tollbridge.message_delta'],
      'step.done': ['agent.message'],
      'run.tool.invoked': ['tool.requested', 'tool.completed'],
      'run.coordination.decision': ['agent.reasoning_summary'],
      'run.awaiting_input': ['ask'],
      'run.signal_applied': ['answered'],
      'run.input_received': ['answered'],
    });
  });
});

describe('words', () => {
  test('every state of a task has one of a run, and every state of a run is understood', () => {
    expect(TASK_STATES.map((state) => runState.toWire(state))).toEqual([
      'queued',
      'running',
      'running',
      'running',
      'succeeded',
      'failed',
      'cancelled',
    ]);
    expect(RUN_STATUSES.map((status) => runState.toCore(status))).toEqual([
      'SUBMITTED',
      'WORKING',
      'WORKING',
      'COMPLETED',
      'FAILED',
      'CANCELED',
    ]);
    expect(RUN_STATUSES.filter(isOver)).toEqual(['succeeded', 'failed', 'cancelled']);
    expect(['approval', 'rejection', 'payload', 'other'].map((kind) => inputKind.toCore(kind))).toEqual([
      'approval',
      'approval',
      'input',
      undefined,
    ]);
  });

  test('every fault has a refusal of its own page', () => {
    for (const kind of FAULT_KINDS) {
      const { status, body } = toWireRefusal(refusalOf(new Fault(kind, 'with a secret in it')), 'id');
      expect([400, 401, 403, 404, 409, 429, 500], kind).toContain(status);
      expect(JSON.stringify(body)).not.toContain('secret');
    }
    expect(toWireRefusal(refusalOf(new Error('boom')), 'id')).toEqual({
      status: 500,
      body: { error: 'internal_error', reason_code: 'INTERNAL_ERROR', request_id: 'id' },
    });
  });

  test('codes and operations are each there once', () => {
    expect(new Set(REASONS.map(({ code }) => code)).size).toBe(REASONS.length);
    expect(new Set(OPERATIONS.map(({ method, path }) => `${method} ${path}`)).size).toBe(OPERATIONS.length);
    expect(OPERATIONS).toHaveLength(16);
  });
});

describe('a summary', () => {
  test('shows 240 characters, ten highlights, and numbers that add up', () => {
    const value = Object.fromEntries(Array.from({ length: 12 }, (_, at) => [`k${at}`, 'é'.repeat(30)]));
    const { preview, highlights, stats, truncated } = summarize(value);
    expect([...(preview ?? '')]).toHaveLength(240);
    expect(highlights).toHaveLength(10);
    expect(truncated).toBe(true);
    expect(stats).toEqual({
      fields_total: 12,
      fields_redacted: 0,
      bytes_before_redaction: 819,
      bytes_after_redaction: 819,
    });
  });

  test('hides what is sensitive from the preview as well', () => {
    const summary = summarize({ user: 'bo', auth: { password: 'canary', note: '[redacted: known secret]' } });
    expect(JSON.stringify(summary)).not.toContain('canary');
    expect(summary.preview).toBe('{"user":"bo","auth":{"password":"[redacted]","note":"[redacted: known secret]"}}');
    expect(summary.highlights).toEqual([
      { key: 'user', value: 'bo', redacted: false },
      { key: 'auth.password', value: '[redacted]', redacted: true },
      { key: 'auth.note', value: '[redacted]', redacted: true },
    ]);
    expect(summary.stats).toMatchObject({ fields_total: 3, fields_redacted: 2 });
  });

  test('of nothing has no preview, of a text is the text', () => {
    expect(summarize(undefined)).toMatchObject({ preview: null, highlights: [], truncated: false });
    expect(summarize('x'.repeat(300))).toMatchObject({ preview: 'x'.repeat(240), truncated: true });
  });
});
