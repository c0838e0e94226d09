/**
 * Events in the forms of the Harn profile: for a client that takes them as they are written, for any other something it
 * can take, or nothing. Pure.
 */

import { HARN_UPDATES, harnRow, NARRATION } from '../../mappings/acp-harn.ts';
import type { CoreEvent, JsonObject } from '../../src/index.ts';
import { asText } from '../../src/index.ts';
import type { ClientProfile } from './client-profile.ts';
import { harnPayload, harnUpdate, normalised, workerEvent } from './harn.ts';
import { compact, numberOf, objectOf, textOf, within } from './shapes.ts';
import { cameAs } from './step.ts';

const OWN: ReadonlyMap<string, string> = new Map(
  HARN_UPDATES.flatMap(({ wire, facts }) =>
    facts.filter((fact) => fact.startsWith('vendor.harn.')).map((fact) => [fact, wire]),
  ),
);

/** Undefined when the event is none of the profile's. */
export function harnForms(event: CoreEvent, client: ClientProfile): JsonObject[] | undefined {
  const came = cameAs(event);
  const kind = harnKind(event, came);
  if (!kind) return undefined;
  const row = harnRow(kind);
  const told = came && harnRow(asText(came.sessionUpdate)) ? harnPayload(came) : ours(kind, event);
  if (client.harn) {
    if (row?.dir !== '<->') return [];
    return [came ? normalised(came) : harnUpdate(kind, told)];
  }
  return plain(kind, told, event, client);
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

/** From an event that came over another wire. */
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

function plain(kind: string, told: JsonObject, event: CoreEvent, client: ClientProfile): JsonObject[] {
  switch (kind) {
    case 'progress':
      // A list of steps is a plan, and has been told as one; words about progress are a notice to whoever takes those.
      return client.notices && told.phase === NARRATION && textOf(told.message)
        ? [{ sessionUpdate: 'notice', severity: 'info', title: asText(told.message) }]
        : [];
    case 'worker_update':
      return workerCall(told);
    case 'tool_search_query':
      return [
        {
          sessionUpdate: 'tool_call',
          toolCallId: `search-${asText(told.toolUseId)}`,
          title: `search for tools: ${textOf(told.query) ?? textOf(told.name) ?? ''}`.trim(),
          kind: 'search',
          status: 'in_progress',
        },
      ];
    case 'tool_search_result':
      return [
        {
          sessionUpdate: 'tool_call_update',
          toolCallId: `search-${asText(told.toolUseId)}`,
          status: 'completed',
          rawOutput: told.promoted ?? [],
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

/** A worker is a call whose title is its name. */
function workerCall(told: JsonObject): JsonObject[] {
  const toolCallId = `worker-${asText(told.workerId)}`;
  const event = workerEvent(told.event);
  const title = textOf(told.workerName) ?? 'worker';
  if (event === 'WorkerSpawned') {
    return [{ sessionUpdate: 'tool_call', toolCallId, title, kind: 'other', status: 'in_progress' }];
  }
  const over = told.terminal === true;
  const status = !over ? 'in_progress' : event === 'WorkerCompleted' ? 'completed' : 'failed';
  const words =
    textOf(within(told, 'metadata', 'error')) ?? (numberOf(told.progress) ? `${asText(told.progress)}` : undefined);
  const content = words ? [{ type: 'content', content: { type: 'text', text: words } }] : undefined;
  return [compact({ sessionUpdate: 'tool_call_update', toolCallId, title, status, content })];
}
