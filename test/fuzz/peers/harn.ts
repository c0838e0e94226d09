/** A remote Harness as a sound one would be: sessions, tasks, events by page and by stream, questions, files, receipts. */
import { harnBackend } from '../../../adapters/harn/client/backend.ts';
import type { JsonObject } from '../../../src/model/schema.ts';
import type { Asked, Question, Said } from './peer.ts';
import type { Away, Notes } from './remote.ts';

const TIMEOUTS = { request_ms: 1_000, poll_ms: 20, idle_ms: 200, silence_ms: 1_500, cancel_ms: 200 };
const WORDS = ['yes', 'yes', 'no', 'ask', 'other'];
const RECEIPTS = ['required', 'checked', 'ignored'] as const;

interface Remote {
  readonly id: string;
  readonly session_id: string;
  readonly events: readonly JsonObject[];
  readonly question: JsonObject;
  looks: number;
}

export const harnAway: Away = {
  agents: Array.from({ length: 12 }, (_, index) => `harn${index}`),
  backend: (name, url, deps) =>
    harnBackend({ url, name, receipts: RECEIPTS[Number(name.slice(4)) % 3] as 'checked', timeouts: TIMEOUTS }, deps),
  peer(notes) {
    const tasks = new Map<string, Remote>();
    const byKey = new Map<string, Remote>();
    let sessions = 0;
    const list = (data: readonly JsonObject[]): JsonObject => ({
      object: 'list',
      data: [...data],
      page: { has_more: false, next_cursor: null },
    });

    function submit({ agent, headers, body }: Asked, session: string): Remote {
      const key = String(headers['idempotency-key']);
      const known = byKey.get(key);
      if (known) return known;
      const { parts } = body.input as { parts?: { text?: string }[] };
      notes.see(agent, String(parts?.[0]?.text));
      const made = remoteTask(`task_${tasks.size}`, session, notes);
      tasks.set(made.id, made);
      byKey.set(key, made);
      return made;
    }

    return (asked): Said => {
      const { method, path, body, query } = asked;
      const [, , kind, id = '', what] = path.split('/');
      if (path === '/v1')
        return { body: { object: 'protocol_discovery', supported_versions: ['agents-protocol-2026-04-25'] } };
      if (kind === 'workspaces')
        return { body: method === 'GET' ? list([{ id: 'w1', object: 'workspace' }]) : { id: 'w1' } };
      if (kind === 'sessions' && what === 'tasks') {
        const { id: made, session_id } = submit(asked, id);
        return { about: made, status: 202, body: { id: made, object: 'task', status: 'WORKING', session_id } };
      }
      if (kind === 'sessions')
        return what === 'messages'
          ? { body: list([]) }
          : { status: 201, body: { id: `s${++sessions}`, object: 'session' } };
      if (kind === 'permission-requests') {
        if (body.approved === true) notes.approved(decodeURIComponent(id), asked.headers['idempotency-key']);
        return { body: { id, status: 'answered' } };
      }
      if (kind === 'artifacts') return { body: { content: 'of a file' } };
      if (kind === 'outcomes') return { body: { id, summary: 'all done', metrics: { tokens: 3 } } };
      if (kind === 'receipts') return { body: { id, object: 'receipt', wire: { payload: { receipt_id: id } } } };
      if (kind === 'agent-card') return { body: { metadata: {} } };
      const task = kind === 'tasks' ? tasks.get(decodeURIComponent(id)) : undefined;
      if (!task) return { status: 404, body: { error: { code: 'resource_not_found', message: 'none' } } };
      const about = task.id;
      const after = query.get('after_event_id') ?? asked.headers['last-event-id'];
      const from = task.events.findIndex((event) => event.id === after) + 1;
      if (what === 'stream')
        return {
          about,
          stream: task.events.slice(from).map((data) => ({ id: String(data.id), event: String(data.event), data })),
        };
      if (what === 'events') return { about, body: list(task.events.slice(from, from + 4)) };
      if (what === 'permission-requests') return { about, body: list([task.question]) };
      if (what === 'receipts') return { about, body: list([{ id: `rcpt_${task.id}` }]) };
      if (what === 'messages' && JSON.stringify(body).includes('"approved":true'))
        notes.approved(`unnamed:${task.id}`, asked.headers['idempotency-key']);
      if (what !== undefined) return { about, body: { id: task.id, status: 'CANCELED' } };
      task.looks += 1;
      return { about, body: taskNow(task, notes) };
    };
  },
  questionsIn,
};

function taskNow({ id, session_id, looks }: Remote, { random }: Notes): JsonObject {
  const base = { id, object: 'task', session_id, metadata: {} };
  if (looks < 3) return { ...base, status: random(3) === 0 ? 'INPUT_REQUIRED' : 'WORKING' };
  if (looks % 3 === 0) return { ...base, status: 'FAILED', failure: { code: 'broken', message: 'it broke' } };
  return { ...base, status: 'COMPLETED', outcome_id: `out_${id}`, receipt_id: `rcpt_${id}` };
}

/** Wherever it stands: in an event, in a list. */
function questionsIn(frame: unknown): Question[] {
  if (typeof frame !== 'object' || frame === null) return [];
  if (Array.isArray(frame)) return frame.flatMap(questionsIn);
  const { id, action } = frame as { id?: unknown; action?: { tool?: unknown; arguments?: unknown } };
  const inner = Object.values(frame).flatMap(questionsIn);
  if (typeof id !== 'string' || typeof action !== 'object' || action === null) return inner;
  const { tool, name, title, arguments: args, input } = action as JsonObject;
  const named = [tool, name, title].find((word) => typeof word === 'string' && word !== '');
  return [...inner, { id, tool: String(named ?? 'unknown'), arguments: objectOf(args) ?? objectOf(input) ?? {} }];
}

function objectOf(value: unknown): JsonObject | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
}

function remoteTask(id: string, session_id: string, { random }: Notes): Remote {
  const word = WORDS[random(WORDS.length)] as string;
  const question: JsonObject = {
    id: `perm_${id}`,
    object: 'permission_request',
    status: 'pending',
    request: { kind: 'approval', question: 'May it?', tool_call_id: 'c1' },
    action: { tool: 'touch', arguments: { word: `${word} ${random(1e6)}` }, effect: 'write' },
  };
  const say = (text: string) => ({ role: 'assistant', parts: [{ type: 'text', text, visibility: 'public' }] });
  const reported: [string, JsonObject][] = [
    ['task.started', {}],
    ...Array.from({ length: 10 }, (_, n): [string, JsonObject] => [
      'vendor.tollbridge.message_delta',
      { message_id: 'm1', role: 'assistant', text: `word ${n}` },
    ]),
    ['session.update', { update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'piece' } } }],
    ['session.update', { update: { sessionUpdate: 'tool_call', toolCallId: 'c0', title: 'look', rawInput: { a: 1 } } }],
    ['session.update', { update: { sessionUpdate: 'tool_call_update', toolCallId: 'c0', status: 'completed' } }],
    ['session.update', { update: { sessionUpdate: 'plan', entries: [{ content: 'first' }] } }],
    ['agent.message', { message: { id: 'm2', ...say('hello') } }],
    ['message.created', { message: { id: 'm3', ...say('again') } }],
    ['tool.requested', { tool_call_id: 'c1', name: 'touch', input: { word }, effect: 'write' }],
    ['permission.requested', { permission_request: question }],
    ['task.input_required', {}],
    ['tool.completed', { tool_call_id: 'c1', name: 'touch', status: 'ok', output: { ok: true } }],
    [
      'artifact.created',
      { artifact: { id: `art_${id}`, kind: 'file', mime_type: 'text/plain', metadata: { name: 'f' } } },
    ],
    ['agent.reasoning_summary', { summary: 'thought about it' }],
    ['span.started', { span: { id: 'sp', kind: 'step' } }],
    ['vendor.tollbridge.decided', { decision: { verdict: 'allow' }, action: { tool: 'touch' } }],
    ['vendor.tollbridge.ask_closed', { ask_id: 'ask_1', state: 'approved' }],
    ['vendor.tollbridge.usage', { tokens: { input: 3, output: 4 } }],
    ['vendor.other.thing', { any: [1, { deep: true }] }],
    ['task.completed', {}],
  ];
  const events = reported.map(([event, payload], at) => ({
    id: `${id}-e${String(at).padStart(3, '0')}`,
    object: 'event',
    event,
    task_id: id,
    payload,
  }));
  return { id, session_id, events, question, looks: 0 };
}
