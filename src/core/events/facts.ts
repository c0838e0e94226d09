/**
 * Facts that are reported about work in progress, as events. Only the bridge creates lifecycle events, decisions, questions and
 * receipts; a report of one is refused, and so is every fact of work that has ended.
 */
import type { Actor } from '../../model/actions.ts';
import { outcomeOfEnd } from '../../model/call-outcomes.ts';
import type { Fact } from '../../model/commands.ts';
import { type DraftEnvelope, type EventDraft, isEventKind, vendorEvent } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import { REPORTABLE_KINDS } from '../../model/payloads.ts';
import {
  Artifact as ArtifactShape,
  type Message,
  Message as MessageShape,
  type Pointer,
  type Task,
} from '../../model/resources.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import { check } from '../../model/validate.ts';
import { isObject } from '../../model/values/is-object.ts';
import { isTerminal } from '../../model/words.ts';
import type { Clock, Ids, Row } from '../../ports/index.ts';
import { afterEnd } from '../actions/action-events.ts';
import type { Alarms, Judged } from '../actions/alarms.ts';
import { inTask, openTask, taskLocation } from '../tasks/lifecycle.ts';
import { goOnWith } from '../waiting.ts';
import { artifactEvents, keptBytes, type Log } from './log.ts';

export interface FactDeps {
  readonly log: Log;
  readonly clock: Clock;
  readonly ids: Ids;
  /** Absent in a replay: its facts were reported once already. */
  readonly alarms?: Alarms;
  /** A replay repeats others' facts: it names their messages and files, and creates none. */
  readonly repeats?: boolean;
}

const KNOWN: ReadonlySet<string> = new Set(REPORTABLE_KINDS);
/** Families of the protocol whose later kinds may be reported as well. */
const FAMILIES = /^(agent|span|artifact|connector)\./;
/** Event families of the protocol that only the bridge writes, whatever follows the prefix. */
const BROUGHT_ABOUT = /^(user|task|session|branch|tool|receipt|replay)\./;
const REVERSE_DNS = /^[a-z]{2,}\.[a-z0-9-]+\.[a-z0-9_.-]+$/i;

export function isReportable(event: string): boolean {
  if (KNOWN.has(event)) return true;
  if (event.startsWith('vendor.tollbridge.')) return false;
  if (FAMILIES.test(event) || event.startsWith('vendor.')) return true;
  return REVERSE_DNS.test(event) && !BROUGHT_ABOUT.test(event);
}

/** Refuses facts of an ended task, whose receipt is sealed, and facts about resources of others. */
export function whileOpen(task: Task, drafts: readonly EventDraft[], repeats = false) {
  const named = repeats ? [] : namedIn(drafts);
  return {
    reads: [{ object: 'task', id: task.id }, ...named],
    decide(at: { get: <T extends Row>(object: string, id: string) => T | undefined }) {
      openTask(at, task.id);
      for (const { object, id, role } of named) {
        const before = at.get<Row & { task_id?: string | null; role?: string }>(object, id);
        if (before && (before.task_id !== task.id || before.role !== role)) {
          throw new Fault('conflict', `${object} ${id} exists already and is not this task's to change`);
        }
      }
      return { events: drafts };
    },
  };
}

/**
 * Ends of calls that are reported after the task has ended: recorded beside the sealed receipt. Every other fact of an ended task
 * is refused. For a task that has not ended it is an ordinary report.
 */
export function besideReceipt(task: Task, drafts: readonly EventDraft[]) {
  const open = whileOpen(task, drafts);
  return {
    ...open,
    decide(at: Parameters<typeof open.decide>[0]) {
      const now = at.get<Task & Row>('task', task.id);
      if (!now || !isTerminal(now.status) || !drafts.every(mayStandBeside)) return open.decide(at);
      return { events: drafts.map(afterEnd) };
    },
  };
}

/** Includes artifacts of content that was too long for the event. */
function mayStandBeside({ event, payload }: EventDraft): boolean {
  const { metadata } = (payload.artifact ?? {}) as { metadata?: JsonObject };
  return BESIDE.test(event) || (event === 'artifact.created' && metadata?.spilled === true);
}
const BESIDE = /^(tool\.(requested|completed|failed)|vendor\.tollbridge\.(alarm|note))$/;

interface Named extends Pointer {
  readonly role: string | undefined;
}

/** The messages and files that facts are about, as the projections know them. */
function namedIn(drafts: readonly EventDraft[]): readonly Named[] {
  const named: Named[] = [];
  for (const { payload } of drafts) {
    if (payload.message) name(payload.message, named);
    if (payload.artifact) name(payload.artifact, named);
  }
  return named;
}

function name(value: Json, named: Named[]): void {
  const { object, id, role } = value as { object?: string; id?: string; role?: string };
  if ((object === 'message' || object === 'artifact') && id) named.push({ object, id, role });
}

/**
 * Turns a reported fact into events: messages also join the transcript, large content becomes artifacts. Whatever the fact claims
 * about its location and evidence, it belongs to this task and counts as reported. Synchronous where everything fits into the
 * events.
 */
export function factEvents(
  deps: FactDeps,
  task: Task,
  actor: Actor,
  fact: Fact,
  before: readonly EventDraft[] = [],
): FactEvents | Promise<FactEvents> {
  if (!isReportable(fact.event)) {
    throw new Fault('invalid_request', `${fact.event} is not something that can be reported`, { param: '/event' });
  }
  const now = deps.clock.now();
  const location = { now, ...taskLocation(task) };
  const base: DraftEnvelope = {
    actor: actor.id,
    ...inTask(task),
    ...(fact.ext && { ext: fact.ext }),
    ...(fact.span_id && { span_id: fact.span_id }),
    ...(fact.trace_id && { trace_id: fact.trace_id }),
  };
  const message = fact.payload.message;
  if ((fact.event === 'agent.message' || fact.event === 'user.message') && isMessage(message)) {
    const { id, object: _, created_at, updated_at: __, metadata, ...content } = message;
    const complete = {
      id: id ?? deps.ids.next('message'),
      object: 'message',
      created_at: created_at ?? now,
      updated_at: now,
      metadata: metadata ?? {},
      ...content,
      ...taskLocation(task),
    };
    const whole = check(MessageShape, complete, fact.event);
    return goOnWith(deps.log.fitMessage(whole, location), ({ value, artifacts }) => {
      const reported = reportedEvent(fact, { ...fact.payload, message: value }, base);
      const counted = { message_id: whole.id, role: whole.role };
      const appended: EventDraft = { event: 'session.message_appended', payload: counted, ...inTask(task) };
      return { events: [...artifactEvents(artifacts, inTask(task)), reported, appended], reported };
    });
  }
  // Repeated facts claim what the record claims.
  const claimed = deps.repeats ? fact.payload : withoutClaims(fact, task, deps.ids, now);
  return goOnWith(deps.log.fitMembers(claimed, location), ({ value, artifacts }) => {
    const judged = deps.repeats ? undefined : deps.alarms?.judged(task, fact, before);
    return goOnWith(judged, (meant) => {
      const { alarm, refused } = meant ?? NOTHING_MEANT;
      const payload = refused ? { ...value, outcome: 'refused' } : value;
      const reported = reportedEvent(fact, payload, base);
      const events = artifacts.length === 0 ? [reported] : [...artifactEvents(artifacts, inTask(task)), reported];
      return alarm ? { events: [...events, alarm], reported } : { events, reported };
    });
  });
}
const NOTHING_MEANT: Judged = {};

function reportedEvent({ event }: Fact, payload: JsonObject, base: DraftEnvelope): EventDraft {
  // Only kinds that may be reported get here, and no member of a reported payload is promised.
  if (isEventKind(event)) return { event, payload, ...base } as EventDraft;
  return { event: vendorEvent(event), payload, ...base };
}

export interface FactEvents {
  readonly events: readonly EventDraft[];
  /** The event that holds the reported fact itself. */
  readonly reported: EventDraft;
}

/** The payload without claims that a reporter may not make. */
export function withoutClaims({ event, payload }: Fact, task: Task, ids: Ids, now: string): JsonObject {
  if (event === 'tool.requested' || event === 'vendor.tollbridge.side_effect') {
    // Core itself records held calls. An agent of this gateway may claim that it asked; an agent outside only reports.
    const asked = payload.evidence === 'asked' && task.assigned_agent_id !== null;
    return { ...payload, evidence: asked ? 'asked' : 'observed' };
  }
  // The outcome of a call is derived from the report's other members, and never taken from it.
  if (event === 'tool.completed' || event === 'tool.failed')
    return { ...payload, outcome: outcomeOfEnd(event, payload) };
  if (event.startsWith('artifact.') && payload.artifact !== undefined) {
    if (!isObject(payload.artifact)) {
      throw new Fault('invalid_request', `${event}: /artifact must be object`, { param: '/artifact' });
    }
    // The agent does not decide which receipt covers it.
    const { id, created_at, metadata, receipt_id: _r, ...about } = payload.artifact;
    const { spilled: _, ...claimed } = isObject(metadata) ? metadata : {}; // only core marks content it moved out of an event
    const whole = {
      ...{ kind: 'other', mime_type: 'application/octet-stream', uri: null, visibility: 'public', sha256: null },
      ...about,
      ...taskLocation(task),
      id: id ?? ids.next('artifact'),
      object: 'artifact',
      created_at: created_at ?? now,
      updated_at: now,
      metadata: keptBytes(claimed, undefined),
    };
    return { ...payload, artifact: check(ArtifactShape, whole, event) };
  }
  return payload;
}

function isMessage(value: unknown): value is Message {
  return typeof value === 'object' && value !== null && Array.isArray((value as Message).parts);
}
