/**
 * Renders events in the forms of the Harn profile: unchanged for a client that supports it, for any other a standard form, or
 * nothing. Pure.
 */

import { HARN_UPDATES, harnRow, NARRATION } from '../../../mappings/acp-harn.ts';
import type { CoreEvent, JsonObject } from '../../../src/index.ts';
import { asText } from '../../../src/index.ts';
import { cameAs } from '../client/facts.ts';
import { harnPayload, harnUpdate, normalised, workerEvent } from '../harn.ts';
import { compact, numberOf, objectOf, textOf, within } from '../shapes.ts';
import type { ClientProfile } from './client-profile.ts';

const OWN: ReadonlyMap<string, string> = new Map(
  HARN_UPDATES.flatMap(({ wire, facts }) =>
    facts.filter((fact) => fact.startsWith('vendor.harn.')).map((fact) => [fact, wire]),
  ),
);

/** Undefined when the event does not belong to the profile. */
export function harnForms(event: CoreEvent, client: ClientProfile): JsonObject[] | undefined {
  const came = cameAs(event);
  const kind = harnKind(event, came);
  if (!kind) return undefined;
  const row = harnRow(kind);
  const fields = came && harnRow(asText(came.sessionUpdate)) ? harnPayload(came) : ours(kind, event);
  if (client.harn) {
    if (row?.dir !== '<->') return [];
    return [came ? normalised(came) : harnUpdate(kind, fields)];
  }
  return plain(kind, fields, event, client);
}

function harnKind({ event, payload }: CoreEvent, came: JsonObject | undefined): string | undefined {
  const own = OWN.get(event);
  if (own) return own;
  if (came && harnRow(asText(came.sessionUpdate))) return asText(came.sessionUpdate);
  const kind = within(payload, 'span', 'kind');
  if (event.startsWith('span.') && kind === 'worker') return 'worker_update';
  if (event === 'span.updated' && kind === 'progress') return 'progress';
  return undefined;
}

/** From an event that did not arrive in this protocol. */
function ours(kind: string, { event, payload }: CoreEvent): JsonObject {
  if (kind === 'progress') {
    const { phase = NARRATION, message = '', progress, total, data } = payload;
    return compact({ phase, message, progress, total, data });
  }
  if (kind !== 'worker_update') return payload;
  const span = objectOf(payload.span) ?? {};
  const [word, terminal] = (Object.hasOwn(WORKERS, event) ? WORKERS[event] : undefined) ?? ['WorkerProgressed', false];
  return compact({
    workerId: textOf(span.id) ?? 'worker',
    workerName: textOf(span.name) ?? 'worker',
    workerTask: textOf(payload.task),
    workerMode: textOf(payload.mode),
    event: word,
    status: textOf(span.status) ?? (Object.hasOwn(STATUS, word) ? STATUS[word] : undefined),
    terminal,
    metadata: {},
  });
}

/** A handoff of an agent that does not speak the profile, with every member its artifact has. */
export function harnHandoff({ payload, task_id, created_at, actor }: CoreEvent): JsonObject {
  const { target_agent, task_id: remote, status, task, receipt_id } = payload;
  const id = asText(remote);
  const handoff = {
    _type: 'handoff_artifact',
    id,
    parent_run_id: task_id ?? null,
    source_persona: actor ?? 'agent',
    target_persona_or_human: { kind: 'agent', id: asText(target_agent) },
    task: textOf(task) ?? '',
    reason: '',
    evidence_refs: [],
    files_or_entities_touched: [],
    open_questions: [],
    blocked_on: [],
    requested_capabilities: [],
    allowed_side_effects: [],
    receipt_links: textOf(receipt_id) ? [asText(receipt_id)] : [],
    created_at,
    metadata: { status: status ?? null },
  };
  return harnUpdate('handoff', { handoffId: id, handoff });
}

const WORKERS: Readonly<Record<string, readonly [string, boolean]>> = {
  'span.started': ['WorkerSpawned', false],
  'span.updated': ['WorkerProgressed', false],
  'span.completed': ['WorkerCompleted', true],
  'span.failed': ['WorkerFailed', true],
};
const STATUS: Readonly<Record<string, string>> = {
  WorkerSpawned: 'running',
  WorkerProgressed: 'progressed',
  WorkerCompleted: 'completed',
  WorkerFailed: 'failed',
};

function plain(kind: string, fields: JsonObject, event: CoreEvent, client: ClientProfile): JsonObject[] {
  switch (kind) {
    case 'progress':
      // A list of steps is a plan, and was rendered as one; progress text is a notice for clients that support notices.
      return client.notices && fields.phase === NARRATION && textOf(fields.message)
        ? [{ sessionUpdate: 'notice', severity: 'info', title: asText(fields.message) }]
        : [];
    case 'worker_update':
      return workerCall(fields);
    case 'tool_search_query':
      return [
        {
          sessionUpdate: 'tool_call',
          toolCallId: `search-${asText(fields.toolUseId)}`,
          title: `search for tools: ${textOf(fields.query) ?? textOf(fields.name) ?? ''}`.trim(),
          kind: 'search',
          status: 'in_progress',
        },
      ];
    case 'tool_search_result':
      return [
        {
          sessionUpdate: 'tool_call_update',
          toolCallId: `search-${asText(fields.toolUseId)}`,
          status: 'completed',
          rawOutput: fields.promoted ?? [],
        },
      ];
    case 'transcript_compacted':
      return client.compaction
        ? [{ sessionUpdate: 'compaction_update', compactionId: event.id, status: 'completed' }]
        : [];
    default:
      return [];
  }
}

/** A worker is rendered as a call whose title is its name. */
function workerCall(fields: JsonObject): JsonObject[] {
  const toolCallId = `worker-${asText(fields.workerId)}`;
  const event = workerEvent(fields.event);
  const title = textOf(fields.workerName) ?? 'worker';
  if (event === 'WorkerSpawned') {
    return [{ sessionUpdate: 'tool_call', toolCallId, title, kind: 'other', status: 'in_progress' }];
  }
  const over = fields.terminal === true;
  const status = !over ? 'in_progress' : event === 'WorkerCompleted' ? 'completed' : 'failed';
  const words =
    textOf(within(fields, 'metadata', 'error')) ??
    (numberOf(fields.progress) ? `${asText(fields.progress)}` : undefined);
  const content = words ? [{ type: 'content', content: { type: 'text', text: words } }] : undefined;
  return [compact({ sessionUpdate: 'tool_call_update', toolCallId, title, status, content })];
}
