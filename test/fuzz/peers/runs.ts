/** A remote that speaks the runs API, as a sound one would: runs, their events by page and by stream, signals. */
import { runsBackend } from '../../../adapters/runs/client/backend.ts';
import type { JsonObject } from '../../../src/model/schema.ts';
import type { Asked, Frame, Question, Said } from './peer.ts';
import type { Away } from './remote.ts';

/** Which of its events is the question for a yes. */
const QUESTION_AT = 17;
const WORDS = ['yes', 'yes', 'no', 'ask', 'other'];
const TIMEOUTS = { request_ms: 1_000, poll_ms: 20, idle_ms: 200, silence_ms: 1_500, cancel_ms: 200 };

interface Run {
  readonly id: string;
  readonly events: readonly JsonObject[];
  looks: number;
}

export const runsAway: Away = {
  agents: Array.from({ length: 8 }, (_, index) => `runs${index}`),
  backend: (name, url, deps) => runsBackend(name, { url, timeouts: TIMEOUTS }, deps),
  peer({ see, approved, random }) {
    const runs = new Map<string, Run>();
    const byKey = new Map<string, Run>();

    function begin({ agent, headers, body }: Asked): Run {
      const key = String(headers['idempotency-key']);
      const known = byKey.get(key);
      if (known) return known;
      see(agent, String((body.input as JsonObject | undefined)?.user_query));
      const id = `run_${runs.size}`;
      const made: Run = { id, events: eventsOf(random), looks: 0 };
      runs.set(id, made);
      byKey.set(key, made);
      return made;
    }

    return (asked): Said => {
      const { method, path, query, body } = asked;
      if (method === 'POST' && path === '/v1/runs') {
        const { id } = begin(asked);
        return { about: id, status: 201, body: { id, status: 'running', request_id: 'r', metadata: {} } };
      }
      const [, , , id = '', what, more] = path.split('/');
      const run = runs.get(decodeURIComponent(id));
      if (!run) return { status: 404, body: { error: 'RUN_NOT_FOUND', request_id: 'r' } };
      const about = run.id;
      if (what === undefined) {
        run.looks += 1;
        return { about, body: { id: run.id, status: run.looks > 2 ? 'succeeded' : 'running', awaiting_input: false } };
      }
      const after = Number(query.get('cursor') ?? 0);
      const left = run.events.filter(({ seq }) => (seq as number) > after);
      if (what === 'events' && more === 'stream')
        return { about, stream: left.map((data): Frame => ({ id: String(data.seq), event: String(data.type), data })) };
      if (what === 'events') return { about, body: { events: left.slice(0, 3), next_cursor: null } };
      if (what === 'signal' && body.action === 'approve')
        approved(`${run.id} ${/\.run(\d+)$/.exec(String(body.idempotency_key))?.[1]}`, body.idempotency_key);
      return { about, body: { id: run.id, status: 'running' } };
    };
  },
  questionsIn(frame, about) {
    const events = (frame as { events?: unknown })?.events;
    return (Array.isArray(events) ? events : [frame]).flatMap((event) => questionIn(event, about));
  },
};

/** A question is named by its run and its number, which may stand beside the frame instead of in it. */
function questionIn(frame: unknown, about: string): Question[] {
  const { seq, type, payload } = (frame ?? {}) as { seq?: unknown; type?: unknown; payload?: JsonObject };
  const value = (payload?.value ?? payload) as JsonObject | undefined;
  if (type !== 'run.awaiting_input' || typeof value !== 'object' || value === null) return [];
  const { tool_name: tool, tool_input_summary: summary } = value;
  const { highlights } = (summary ?? {}) as { highlights?: unknown };
  const shown = (Array.isArray(highlights) ? highlights : []).flatMap((item) => {
    const { key: name, value: it, redacted } = (item ?? {}) as JsonObject;
    return typeof name === 'string' ? [[name, redacted === true ? '[not shown]' : (it ?? null)]] : [];
  });
  const named = typeof tool === 'string' && tool !== '' ? tool : 'touch';
  return [
    {
      id: `${about} ${typeof seq === 'number' ? seq : QUESTION_AT}`,
      tool: named,
      arguments: Object.fromEntries(shown) as JsonObject,
    },
  ];
}

function eventsOf(random: (limit: number) => number): readonly JsonObject[] {
  const word = WORDS[random(WORDS.length)] as string;
  const reported: [string, JsonObject][] = [
    ['run.created', { status: 'queued' }],
    ['run.worker.started', {}],
    ...Array.from({ length: 12 }, (_, n): [string, JsonObject] => [
      'step.progress',
      { kind: 'content_delta', task_id: 'step1', content_delta: `word ${n} ` },
    ]),
    ['run.coordination.decision', { role: 'judge', decision_type: 'go', judge_decision: { reason: 'fine' } }],
    ['step.progress', { kind: 'tool_call_start', tool_call_id: 'c1', tool_name: 'touch' }],
    [
      'run.awaiting_input',
      {
        input_kind: 'approval',
        tool_call_id: 'c1',
        tool_name: 'touch',
        tool_input_summary: { highlights: [{ key: 'word', value: `${word} ${random(1e6)}` }] },
        reason_code: 'asked',
      },
    ],
    [
      'run.tool.invoked',
      { tool_call_id: 'c1', tool_name: 'touch', tool_outcome: 'succeeded', tool_output_summary: {} },
    ],
    ['run.awaiting_input', { input_kind: 'clarification', question: 'Which one?' }],
    ['run.worker.stalled', { reason_code: 'quiet' }],
    ...Array.from({ length: 6 }, (_, n): [string, JsonObject] => [
      'step.done',
      { task_id: `step${n}`, content: `said ${n}`, outcome: n === 4 ? 'failed' : 'succeeded' },
    ]),
    ['run.something.new', { any: [1, { deep: true }] }],
    random(4) === 0
      ? ['run.worker.failed', { reason_code: 'TOOL_ERROR' }]
      : ['run.worker.succeeded', { status: 'succeeded' }],
  ];
  return reported.map(([type, value], at) => ({ seq: at + 1, type, payload: { value } }));
}
