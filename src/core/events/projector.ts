/**
 * Reduces events to resources: the only source of projections, live and on rebuild. Pure. Events carry the whole resource that they
 * create or change; counts are computed in `projections`.
 */

import { type CoreEvent, type EventDraft, isEventKind, type LeftOut, leaveOut } from '../../model/events.ts';
import type { EventKind } from '../../model/payloads.ts';
import type { Task } from '../../model/resources.ts';
import type { Projector } from '../../ports/index.ts';
import { askClosed, askOpened, askUsed } from './projections/asks.ts';
import { changeRun, fresh, NO_CHANGE, NO_NAMES, NOTHING, one, type Projection, put } from './projections/changes.ts';
import {
  bindingId,
  carried,
  type Declared,
  keptArtifact,
  quotaUsed,
  scoped,
  touchesScope,
} from './projections/resources.ts';
import { appended, count, messageIn, opened, type Spoken, tainted, truncated } from './projections/sessions.ts';
import { type Ending, ended, type Moved, snapshot, started, submitted, takenOver } from './projections/tasks.ts';

export const projector: Projector = {
  touches: (event) => projectionOf(event)?.touches?.(event) ?? NOTHING,
  apply: (event, get) => {
    if (event.replayed && !REPEATED_EVENTS.test(event.event)) return NO_CHANGE;
    return projectionOf(event)?.apply(event, get) ?? NO_CHANGE;
  },
};

function projectionOf({ event }: Pick<EventDraft, 'event'>): Projection<EventDraft, CoreEvent> | undefined {
  const row = isEventKind(event) ? PROJECTIONS[event] : undefined;
  // A row takes events of its own kind only, and this one was found by the kind of the event it will be given.
  return row && 'apply' in row ? (row as Projection<EventDraft, CoreEvent>) : undefined;
}

/** A replay has its own task and questions; the other events it repeats create nothing. */
const REPEATED_EVENTS = /^(task\.|user\.cancel_requested$|vendor\.tollbridge\.(ask_|recovered$))/;

const messageAdded: Projection<EventDraft<Spoken>, CoreEvent<Spoken>> = {
  touches(event) {
    const message = messageIn(event);
    return message ? [...one('tally', event.session_id), { object: 'message', id: message.id }] : NOTHING;
  },
  apply: appended,
};
const threadChanged: Projection<EventDraft, CoreEvent> = {
  touches: ({ session_id }) => one('tally', session_id),
  apply: (event, get) => [put(count(event, get, (tally) => tally))],
};
const taskMoved = { apply: (event: CoreEvent<Moved>) => [put(snapshot(event))] };
const taskEnded: Projection<EventDraft<Ending>, CoreEvent<Ending>> = {
  touches: ({ session_id, payload }) => [
    ...one('tally', session_id),
    ...(payload.released ?? NO_NAMES).map((id) => ({ object: 'quota', id })),
  ],
  apply: ended,
};
const touchesRun = ({ task_id }: EventDraft) => one('run', task_id);
const touchesAsk = ({
  task_id,
  payload,
}: EventDraft<'vendor.tollbridge.ask_closed' | 'vendor.tollbridge.ask_used'>) => [
  ...one('run', task_id),
  { object: 'ask', id: payload.ask_id },
];
const artifactKept = { apply: keptArtifact };
const branchKept = {
  apply: ({ payload, created_at }: CoreEvent<BranchKind>) => [put({ ...payload.branch, updated_at: created_at })],
};
const resourceKept: Projection<EventDraft<Declared>, CoreEvent<Declared>> = {
  touches: ({ resource, payload }) => touchesScope(resource, payload.resource),
  apply: (event, get) => [...carried(event), ...scoped(event, event.payload.resource, get)],
};

type BranchKind = 'branch.created' | 'branch.updated' | 'branch.merged' | 'branch.abandoned';

/** What each kind of event changes. */
const PROJECTIONS: { readonly [K in EventKind]: Projection<EventDraft<K>, CoreEvent<K>> | LeftOut } = {
  'session.created': {
    touches: ({ payload }) => one('taint', payload.session.parent_session_id),
    apply: opened,
  },
  'session.closed': {
    apply: ({ payload, created_at }) => [put({ ...payload.session, updated_at: created_at })],
  },
  'session.truncated': { touches: ({ session_id }) => one('tally', session_id), apply: truncated },
  'session.compacted': {
    touches: ({ session_id }) => one('tally', session_id),
    apply: (event, get) => [
      put(count(event, get, (tally) => ({ ...tally, compacted_through: event.payload.through_message_id }))),
    ],
  },
  'session.thread_forked': threadChanged,
  'session.thread_merged': threadChanged,
  'user.message': messageAdded,
  'agent.message': messageAdded,
  'user.cancel_requested': {
    touches: touchesRun,
    apply: (event, get) => changeRun(event, get, (run) => ({ ...run, cancel_requested: true })),
  },
  'task.submitted': { touches: ({ session_id }) => one('tally', session_id), apply: submitted },
  'task.started': {
    touches: ({ task_id, session_id }) => [...one('run', task_id), ...one('tally', session_id)],
    apply: started,
  },
  'task.input_required': taskMoved,
  'task.auth_required': taskMoved,
  'task.status_changed': taskMoved,
  'task.completed': taskEnded,
  'task.failed': taskEnded,
  'task.canceled': taskEnded,
  'artifact.created': artifactKept,
  'artifact.updated': artifactKept,
  'artifact.linked': artifactKept,
  'artifact.redacted': artifactKept,
  'branch.created': branchKept,
  'branch.updated': branchKept,
  'branch.merged': branchKept,
  'branch.abandoned': branchKept,
  'vendor.tollbridge.recovered': {
    touches: touchesRun,
    apply: (event, get) => changeRun(event, get, (run) => takenOver(run, event.payload.instance)),
  },
  'vendor.tollbridge.ask_opened': { touches: touchesRun, apply: askOpened },
  'vendor.tollbridge.ask_closed': { touches: touchesAsk, apply: askClosed },
  'vendor.tollbridge.ask_used': { touches: touchesAsk, apply: askUsed },
  'vendor.tollbridge.tainted': { touches: ({ session_id }) => one('taint', session_id), apply: tainted },
  'vendor.tollbridge.resource_created': resourceKept,
  'vendor.tollbridge.resource_updated': resourceKept,
  'vendor.tollbridge.resource_deleted': {
    touches: ({ resource, payload }) => touchesScope(resource, payload),
    apply: (event, get) => [
      { drop: { object: event.resource.object, id: event.resource.id } },
      ...scoped(event, event.payload, get),
    ],
  },
  'vendor.tollbridge.quota_used': {
    touches: ({ payload, task_id }) => [
      { object: 'quota', id: payload.quota_id },
      ...(payload.timed_until ? one('run', task_id) : NOTHING),
    ],
    apply: quotaUsed,
  },
  'vendor.tollbridge.plan': {
    touches: ({ task_id }) => one('task', task_id),
    apply({ task_id, payload, created_at }, get) {
      const task = task_id ? get<Task>('task', task_id) : undefined;
      if (!task) return NO_CHANGE;
      return [put({ ...task, updated_at: created_at, metadata: { ...task.metadata, plan: payload.entries } })];
    },
  },
  'vendor.tollbridge.bound': {
    apply({ payload: { protocol, scope, wire_id, to }, created_at }) {
      const row = fresh('binding', bindingId(protocol, scope, wire_id), created_at);
      return [put({ ...row, protocol, scope, wire_id, to })];
    },
  },
  ...leaveOut(
    'a fact of the work: readers find it in the stream of its task',
    'agent.reasoning_summary agent.tool_use agent.tool_result agent.mcp_tool_use agent.handoff agent.memory_read agent.memory_write span.started span.updated span.completed span.failed tool.requested tool.approval_required tool.approved tool.denied tool.completed tool.failed vendor.tollbridge.message_delta vendor.tollbridge.usage vendor.tollbridge.side_effect vendor.tollbridge.checkpoint vendor.tollbridge.note vendor.tollbridge.remote_decided vendor.tollbridge.alarm',
  ),
  ...leaveOut(
    'the row changes by another event of the same commit',
    'user.input_submitted user.tool_confirmation session.message_appended session.replayed receipt.issued replay.started replay.event_replayed replay.completed replay.failed vendor.tollbridge.quota_warned',
  ),
  ...leaveOut(
    'a record for auditors: it changes no resource',
    'connector.delivery_received connector.delivery_deduped connector.normalized connector.task_submitted connector.failed receipt.verified receipt.verification_failed vendor.tollbridge.decided vendor.tollbridge.answer_refused vendor.tollbridge.login_failed vendor.tollbridge.policy_loaded vendor.tollbridge.config_loaded vendor.tollbridge.tree_head vendor.tollbridge.passthrough vendor.tollbridge.frame_refused',
  ),
};
