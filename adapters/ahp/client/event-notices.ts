/** Events as notifications for an outside harness. Most events have no notification, and the results of calls are not sent. Pure. */

import { NOT_NOTIFIED, runStatus } from '../../../mappings/ahp.ts';
import type { CoreEvent, Json, JsonObject, Task } from '../../../src/index.ts';
import { asText, isObject, isTaskEvent, leftOut } from '../../../src/index.ts';
import { type AhpEvent, hashOf } from '../translate.ts';
import type { Worker } from './agent-identity.ts';

type News = Pick<AhpEvent, 'event_type' | 'payload'>;

export function toWireNews(event: CoreEvent, { agent_id, depth, via }: Worker): readonly AhpEvent[] {
  return newsOf(event).map((news) => ({
    ...news,
    session_id: event.session_id ?? event.workspace_id ?? '',
    agent_id,
    timestamp: event.created_at,
    depth,
    metadata: { via },
  }));
}

function newsOf(happened: CoreEvent): readonly News[] {
  const { event, payload, session_id } = happened;
  if (isTaskEvent(event)) return [...lifecycle(happened), ...verification(happened)];
  switch (event) {
    case 'session.created':
      return [{ event_type: 'session_start', payload: { session_id: session_id ?? '' } }];
    case 'session.closed':
      return [{ event_type: 'session_end', payload: { session_id: session_id ?? '' } }];
    case 'tool.completed':
    case 'tool.failed': {
      const tool = payload.name as Json;
      // The result of a call is not ours to pass on; a harness that has it too can compare the hash.
      const result = {
        status: event === 'tool.completed' ? 'success' : 'error',
        output_hash: `sha256:${hashOf(payload.output ?? null)}`,
      };
      return [{ event_type: 'post_action', payload: { action_type: 'tool_call', tool_name: tool, tool, result } }];
    }
    case 'agent.message': {
      const { parts } = (payload.message ?? {}) as { parts?: readonly JsonObject[] };
      const shown = (parts ?? []).flatMap(({ type, text }) =>
        type === 'text' && typeof text === 'string' ? [text] : [],
      );
      return shown.length === 0 ? [] : [{ event_type: 'post_response', payload: { response_text: shown.join('\n') } }];
    }
    case 'vendor.tollbridge.plan': {
      const entries = (Array.isArray(payload.entries) ? payload.entries : []) as readonly JsonObject[];
      return [{ event_type: 'task_list', payload: { ...contract(happened), tasks: entries.map(planItem) as Json } }];
    }
    default:
      return leftOut(NOT_NOTIFIED, event);
  }
}

/** The common members of the three run contracts. */
function contract({ task_id, session_id, created_at }: CoreEvent): JsonObject {
  return { run_id: task_id ?? '', session_id: session_id ?? '', updated_at: created_at };
}

const WAITING: Readonly<Record<string, string>> = { INPUT_REQUIRED: 'input', AUTH_REQUIRED: 'authorization' };

function lifecycle(happened: CoreEvent): readonly News[] {
  const { task, outcome, reason } = happened.payload as { task?: Task; outcome?: JsonObject; reason?: Json };
  const state = runStatus.rows.find(({ core }) => core === task?.status)?.core;
  if (!task || !state) return [];
  const status = runStatus.toWire(state);
  const waiting = Object.hasOwn(WAITING, task.status) ? WAITING[task.status] : undefined;
  const error = task.failure?.message ?? (task.status === 'CANCELED' ? reason : undefined);
  return [
    {
      event_type: 'run_lifecycle',
      payload: {
        ...contract(happened),
        status,
        ...(typeof outcome?.summary === 'string' && { result_summary: outcome.summary }),
        ...(typeof error === 'string' && { error }),
        ...(waiting && { metadata: { waiting_for: waiting } }),
      },
    },
  ];
}

/** The results of its checks, sent after the end as agents of this protocol do. */
function verification(happened: CoreEvent): readonly News[] {
  const { metrics } = (happened.payload.outcome ?? {}) as { metrics?: { verification?: unknown } };
  const checked = metrics?.verification;
  if (!isObject(checked)) return [];
  return [{ event_type: 'verification', payload: { ...contract(happened), ...(checked as JsonObject) } }];
}

/** An entry of a plan; one that arrived in this protocol is sent as it arrived. */
function planItem({ content, status, ext }: JsonObject, index: number): JsonObject {
  const title = asText(content ?? '');
  const { ahp } = (isObject(ext) ? ext : {}) as { ahp?: unknown };
  if (!isObject(ahp)) return { id: asText(index + 1), title, status: status ?? 'pending' };
  // An entry that ended without being done has its status as a prefix.
  const shown = `${ahp.status}: `;
  return { ...(ahp as JsonObject), title: title.startsWith(shown) ? title.slice(shown.length) : title };
}
