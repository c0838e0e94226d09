/** A backend's interface into core: four operations, each durable before it returns. */

import type { Actor, NewArtifact } from '../../model/actions.ts';
import type { Answer } from '../../model/asks.ts';
import { outcomeOfEnd } from '../../model/call-outcomes.ts';
import type { Fact } from '../../model/commands.ts';
import { type DraftEnvelope, type EventDraft, isEventKind, vendorEvent } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import { isObject } from '../../model/is-object.ts';
import type { ToolEndedPayload } from '../../model/payloads.ts';
import {
  Artifact as ArtifactShape,
  type Message,
  Message as MessageShape,
  type Pointer,
  type Task,
} from '../../model/resources.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import { check } from '../../model/validate.ts';
import { isTerminal } from '../../model/words.ts';
import type { ActResult, At, Clock, Ids, Row, Sink, Store } from '../../ports/index.ts';
import { afterEnd } from '../actions/action-events.ts';
import type { Alarms, Judged } from '../actions/alarms.ts';
import { charging } from '../actions/charging.ts';
import { type Acts, reused } from '../actions/execute.ts';
import type { Asks } from '../approvals/asks.ts';
import { newArtifact } from '../commands/artifacts.ts';
import { createBatcher } from '../events/batcher.ts';
import { artifactEvents, keptBytes, type Log } from '../events/log.ts';
import { isReportable } from '../events/reportable.ts';
import type { Run } from '../events/rows.ts';
import { createStreamed, type Piece } from '../events/stream-redaction.ts';
import { goOnWith } from '../waiting.ts';
import { type Past, readPast } from './history.ts';
import { inTask, taskLocation } from './lifecycle.ts';

export interface SinkDeps {
  readonly store: Store;
  readonly log: Log;
  readonly acts: Acts;
  readonly asks: Asks;
  /** Absent in a replay: its facts were reported once already. */
  readonly alarms?: Alarms;
  readonly clock: Clock;
  readonly ids: Ids;
  /** Canonical text, to tell a fact from before a crash from a new one. */
  readonly canonical: (value: Json) => string;
  /** A replay repeats others' facts: it names their messages and files, and creates none. */
  readonly repeats?: boolean;
}

export interface TaskSink extends Sink {
  /** Writes the held-back end of a streamed text. */
  settle(): Promise<void>;
}

export function createSink(deps: SinkDeps, task: Task, actor: Actor, past: Past, signal: AbortSignal): TaskSink {
  const { store, log, acts, asks, clock, ids } = deps;
  const inFlight = new Map<string, { fingerprint: string; result: Promise<ActResult> }>();
  /** Calls that failed midway: the log has their progress. */
  const brokenOff = new Set<string>();

  const streamed = createStreamed(log.beginnings);
  const batcher = createBatcher((events) => log.commit(whileOpen(task, () => events, deps.repeats)));

  async function emit(fact: Fact): Promise<void> {
    // Repeated facts were redacted when first written.
    const pieces = deps.repeats ? [{ fact, cut: false }] : streamed.take(fact);
    for (const piece of pieces) await write(piece);
  }

  async function settle(): Promise<void> {
    for (const piece of streamed.rest()) await write(piece);
  }

  function write({ fact, cut }: Piece): unknown {
    return goOnWith(factEvents(deps, task, actor, fact), (made) => writeDown(fact, cut, made));
  }

  /** Returns without waiting when the fact is on record already. */
  function writeDown(fact: Fact, cut: boolean, { events: made, reported }: FactEvents): unknown {
    const events = cut ? made.map((event) => (event === reported ? { ...event, ...CUT } : event)) : made;
    if (past.recognises(reported.event, () => log.clean(reported.payload), deps.canonical)) return undefined;
    if (fact.event === 'vendor.tollbridge.usage') return writeUsage(fact, events);
    // A fact that names a message or a file may be refused, so it is committed alone.
    if (!events.some(({ payload }) => payload.message || payload.artifact)) {
      const written = batcher.write(events);
      return OF_A_CALL.test(fact.event) && !deps.repeats ? written.catch(lateEnd(events)) : written;
    }
    batcher.leave();
    return log.commit(whileOpen(task, () => events, deps.repeats));
  }

  /** The task ended first. Its receipt is sealed, and the end of the call is recorded beside it. */
  function lateEnd(events: readonly EventDraft[]) {
    return async (cause: unknown) => {
      if (!(cause instanceof Fault && cause.kind === 'conflict')) throw cause;
      await log.commit(besideReceipt(task, events));
    };
  }

  async function writeUsage(fact: Fact, events: readonly EventDraft[]): Promise<void> {
    batcher.leave();
    const open = whileOpen(task, () => events, deps.repeats);
    const metering = await acts.metering(task, [fact.payload]);
    await log.commit(charging(open, metering));
    const passed = metering.passed?.();
    // Before the agent continues: its later facts belong to work that has been stopped.
    if (passed) acts.limitPassed(task, passed);
  }

  async function act(...[proposed, effect, withdrawn]: Parameters<Sink['act']>): Promise<ActResult> {
    const { tool_call_id: id, changes: _, ...call } = proposed;
    // Without an id each call is a new one, and no repeat can be recognised.
    if (!id) return await acts.perform(task, proposed, { actor, signal, takesArguments: true, withdrawn }, effect);
    const fingerprint = deps.canonical(call);
    const before = inFlight.get(id);
    if (before) {
      if (before.fingerprint === fingerprint) return await before.result;
      throw reused(id);
    }
    const result = actOnce(proposed, effect, withdrawn);
    inFlight.set(id, { fingerprint, result });
    // A failed call may be tried again, from the state in the log.
    result.catch(() => {
      inFlight.delete(id);
      brokenOff.add(id);
    });
    return await result;
  }

  async function actOnce(...[proposed, effect, withdrawn]: Parameters<Sink['act']>): Promise<ActResult> {
    const callId = proposed.tool_call_id as string;
    const known = brokenOff.has(callId)
      ? await readPast(store.read({ stream: { of: 'task', id: task.id } }), actor.id)
      : past;
    const recorded = known.call(callId);
    const options = { actor, signal, takesArguments: true, withdrawn };
    if (!recorded) return await acts.perform(task, proposed, options, effect);
    const same = await acts.sameCall(task, proposed);
    // A decision that allowed or refused applies to that call; a call that was only asked about may still change.
    if (!same && (recorded.ended || recorded.denied || recorded.cleared)) throw reused(callId);
    if (recorded.ended) return fromRecord(recorded.ended);
    if (recorded.denied) {
      const { reason = 'denied before the restart', by, name } = recorded.denied;
      if (recorded.used && !recorded.received) await acts.recordRefusal(task, callId, name, reason);
      return { kind: 'refused', reason, decision: { verdict: 'block', reason, engine: by } };
    }
    if (recorded.cleared) {
      // It was allowed before a crash: it may have run, so it does not run again.
      const result = { status: 'error', output: null, error: 'the outcome of this call is unknown after a restart' };
      const paired = recorded.used === true;
      const call = { id: callId, tool: proposed.tool ?? proposed.kind, evidence: 'held', paired };
      await acts.ended(task, call, result, 'outcome_unknown');
      return { kind: 'done', result };
    }
    const again = { ...options, requested: recorded.requested && same, claimed: recorded.requested };
    return await acts.perform(task, proposed, again, effect);
  }

  async function ask(...[question]: Parameters<Sink['ask']>): Promise<Answer> {
    if (question.kind === 'approval') {
      const before = past.call(question.action.tool_call_id ?? '');
      if (before?.answer) return before.answer;
      const authorization = await acts.rule(
        task,
        { evidence: 'asked', ...question.action },
        {
          actor,
          signal,
          takesArguments: question.takesArguments ?? false,
          requested: before?.requested ?? false,
          withdrawn: question.withdrawn,
          ...(question.question && { question: question.question }),
          ...(question.ext && { ext: question.ext }),
        },
      );
      if (authorization.kind === 'go') {
        const by =
          authorization.answer && 'by' in authorization.answer
            ? authorization.answer.by
            : authorization.decision.engine;
        const rewritten =
          authorization.decision.verdict === 'modify' ? { arguments: authorization.action.arguments } : {};
        return authorization.answer ?? { kind: 'approved', by, reason: authorization.decision.reason, ...rewritten };
      }
      if (authorization.kind === 'open')
        return { kind: 'canceled', ask_id: authorization.ask_id, reason: 'still waiting' };
      // Approved, and refused all the same: the rules changed meanwhile, or a quota ran out. The agent gets the refusal.
      if (authorization.answer && authorization.answer.kind !== 'approved') return authorization.answer;
      const { engine: by, rule_id } = authorization.decision;
      return { kind: 'denied', by, reason: authorization.reason, ...(rule_id && { rule_id }) };
    }
    return await askForInput(question);
  }

  async function askForInput(question: Extract<Parameters<Sink['ask']>[0], { kind: 'input' }>): Promise<Answer> {
    const taken = past.answer(question.key);
    if (taken) return taken;
    const refused = deps.repeats ? undefined : await acts.mayNotAsk(task, question, actor);
    if (refused) {
      const { engine: by, rule_id, reason } = refused;
      return { kind: 'denied', by, reason, ...(rule_id && { rule_id }) };
    }
    let askId = '';
    const digest = asks.digest({
      actor,
      kind: 'elicit',
      tool: question.key,
      arguments: { question: question.question },
    });
    await log.commit({
      reads: readsOf(task.id),
      decide(at) {
        const { now, run } = openRun(at, task.id);
        const raised = asks.raise(at, now, run, {
          kind: 'input',
          key: question.key,
          digest,
          question: question.question,
          action: { kind: 'elicit', actor: actor.id },
          name: 'input',
          ...(question.schema && { schema: question.schema }),
          ...(question.expires_ms && { expires_ms: question.expires_ms }),
          ...(question.ext && { ext: question.ext }),
        });
        askId = raised.ask_id;
        return { events: raised.events };
      },
    });
    const answer = await asks.wait(askId, task.id, signal, { id: actor.id, withdrawn: question.withdrawn });
    if (!signal.aborted) await spend(askId);
    return answer;
  }

  /** A value is spent once; asking again under the same key is a new question. */
  async function spend(askId: string): Promise<void> {
    await log.commit({
      reads: [
        { object: 'task', id: task.id },
        { object: 'run', id: task.id },
      ],
      decide(at) {
        const now = at.get<Task & Row>('task', task.id);
        const run = at.get<Run>('run', task.id);
        const waiting = run?.asks.some((a) => a.id === askId && a.state !== 'open');
        return { events: now && waiting && !isTerminal(now.status) ? [asks.take(at, now, run, askId)] : [] };
      },
    });
  }

  async function artifact(file: NewArtifact): Promise<{ id: string; sha256: string | null }> {
    const made = await newArtifact(file, { ...taskLocation(task), now: clock.now() }, store, ids);
    const known = past.artifact(made);
    if (known) return { id: known.id, sha256: known.sha256 };
    await log.commit(whileOpen(task, () => artifactEvents([made], { ...inTask(task), actor: actor.id })));
    return { id: made.id, sha256: made.sha256 };
  }

  return { emit, act, ask, artifact, settle };
}

const OF_A_CALL = /^tool\.(requested|completed|failed)$/;
const CUT = { metadata: { redactions: [{ field: '/payload/text', reason: 'known secret' }] } };

/** The rows that a unit reads when it asks in a task. */
export function readsOf(taskId: string): Pointer[] {
  return [
    { object: 'task', id: taskId },
    { object: 'run', id: taskId },
  ];
}

export function openRun(at: Pick<At, 'get'>, taskId: string): { readonly now: Task; readonly run: Run } {
  const now = at.get<Task & Row>('task', taskId);
  const run = at.get<Run>('run', taskId);
  if (!now || !run || isTerminal(now.status)) throw new Fault('conflict', `task ${taskId} already ended`);
  return { now, run };
}

/** Refuses facts of an ended task, whose receipt is sealed, and facts about resources of others. */
export function whileOpen(task: Task, events: () => readonly EventDraft[], repeats = false) {
  const drafts = events();
  const named = repeats ? [] : namedIn(drafts);
  return {
    reads: [{ object: 'task', id: task.id }, ...named],
    decide(at: { get: <T extends Row>(object: string, id: string) => T | undefined }) {
      const now = at.get<Task & Row>('task', task.id);
      if (!now || isTerminal(now.status)) {
        throw new Fault('conflict', `task ${task.id} already ended${now ? ` as ${now.status}` : ''}`);
      }
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
  const open = whileOpen(task, () => drafts);
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
  deps: Pick<SinkDeps, 'log' | 'clock' | 'ids' | 'repeats' | 'alarms'>,
  task: Task,
  actor: Actor,
  fact: Fact,
  before: readonly EventDraft[] = [],
): FactEvents | Promise<FactEvents> {
  refuseReserved(fact.event);
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

function refuseReserved(event: string): void {
  if (isReportable(event)) return;
  throw new Fault('invalid_request', `${event} is not something that can be reported`, { param: '/event' });
}

function fromRecord(ended: Partial<ToolEndedPayload>): ActResult {
  return {
    kind: 'done',
    result: {
      status: ended.status ?? 'error',
      output: ended.output ?? null,
      ...(ended.error && { error: ended.error }),
    },
  };
}
