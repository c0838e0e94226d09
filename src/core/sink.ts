/** What a backend holds while it works: four verbs, each durable before it returns. */
import type { Actor, NewArtifact } from '../model/actions.ts';
import type { Answer } from '../model/asks.ts';
import type { Fact } from '../model/commands.ts';
import type { EventDraft } from '../model/events.ts';
import { Fault } from '../model/faults.ts';
import type { ToolEndedPayload } from '../model/payloads.ts';
import {
  type Artifact,
  Artifact as ArtifactShape,
  type Message,
  Message as MessageShape,
  type Pointer,
  type Task,
} from '../model/resources.ts';
import type { Json, JsonObject } from '../model/schema.ts';
import { check } from '../model/validate.ts';
import { isTerminal } from '../model/words.ts';
import type { ActResult, At, Clock, Ids, Row, Sink, Store } from '../ports.ts';
import { type Acts, reused } from './acts.ts';
import type { Alarms } from './alarms.ts';
import { newArtifact } from './artifacts.ts';
import type { Asks } from './asks.ts';
import { charging } from './charging.ts';
import { inTask, placeOf } from './lifecycle.ts';
import { artifactEvents, keptBytes, type Log } from './log.ts';
import { type Past, readPast } from './past.ts';
import { isReportable } from './reportable.ts';
import type { Run } from './rows.ts';
import { createStreamed, type Piece } from './streamed.ts';
import { createTogether } from './together.ts';
import { goOnWith } from './waiting.ts';

export interface SinkDeps {
  readonly store: Store;
  readonly log: Log;
  readonly acts: Acts;
  readonly asks: Asks;
  /** Absent in a replay: what it repeats was reported once. */
  readonly alarms?: Alarms;
  readonly clock: Clock;
  readonly ids: Ids;
  /** Canonical text, to tell a fact said before a crash from a new one. */
  readonly canonical: (value: Json) => string;
  /** A replay says again what others said: it names their messages and files, and makes nothing anew. */
  readonly repeats?: boolean;
}

export interface TaskSink extends Sink {
  /** Writes what is still kept back of a streamed text. */
  settle(): Promise<void>;
}

export function createSink(deps: SinkDeps, task: Task, actor: Actor, past: Past, signal: AbortSignal): TaskSink {
  const { store, log, acts, asks, clock, ids } = deps;
  const inFlight = new Map<string, { fingerprint: string; result: Promise<ActResult> }>();
  /** Calls that broke off in the middle: how far they came is in the log. */
  const brokenOff = new Set<string>();

  const streamed = createStreamed(log.beginnings);
  const together = createTogether((events) => log.commit(whileOpen(task, () => events, deps.repeats)));

  async function emit(fact: Fact): Promise<void> {
    // What is repeated was cleaned when it was first said.
    const pieces = deps.repeats ? [{ fact, cut: false }] : streamed.take(fact);
    for (const piece of pieces) await write(piece);
  }

  async function settle(): Promise<void> {
    for (const piece of streamed.rest()) await write(piece);
  }

  function write({ fact, cut }: Piece): unknown {
    return goOnWith(factEvents(deps, task, actor, fact), (made) => writeDown(fact, cut, made));
  }

  /** Nothing to wait for when it was said before. */
  function writeDown(fact: Fact, cut: boolean, { events: made, told }: FactEvents): unknown {
    const events = cut ? made.map((event) => (event === told ? { ...event, ...CUT } : event)) : made;
    if (past.said(told.event, () => log.clean(told.payload), deps.canonical)) return undefined;
    if (fact.event === 'vendor.tollbridge.usage') return writeUsage(fact, events);
    // What names a message or a file may be refused, and is refused alone.
    if (!events.some(({ payload }) => payload.message || payload.artifact)) return together.write(events);
    together.leave();
    return log.commit(whileOpen(task, () => events, deps.repeats));
  }

  async function writeUsage(fact: Fact, events: readonly EventDraft[]): Promise<void> {
    together.leave();
    const open = whileOpen(task, () => events, deps.repeats);
    await log.commit(charging(open, await acts.metering(task, [fact.payload])));
  }

  async function act(...[proposed, effect, withdrawn]: Parameters<Sink['act']>): Promise<ActResult> {
    const { tool_call_id: id, changes: _, ...call } = proposed;
    // Without a name it is a new call each time, and nothing can be said about it twice.
    if (!id) return await acts.perform(task, proposed, { actor, signal, takesArguments: true, withdrawn }, effect);
    const fingerprint = deps.canonical(call as unknown as Json);
    const before = inFlight.get(id);
    if (before) {
      if (before.fingerprint === fingerprint) return await before.result;
      throw reused(id);
    }
    const result = actOnce(proposed, effect, withdrawn);
    inFlight.set(id, { fingerprint, result });
    // What came to nothing may be tried again, from where the log says it is.
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
    // What was let through or refused was that call; one that was only asked about may still become another.
    if (!same && (recorded.ended || recorded.denied || recorded.cleared)) throw reused(callId);
    if (recorded.ended) return fromRecord(recorded.ended);
    if (recorded.denied) {
      const { reason = 'denied before the restart', by } = recorded.denied;
      return { kind: 'refused', reason, decision: { verdict: 'block', reason, engine: by } };
    }
    if (recorded.cleared) {
      // It was allowed and then we died: it may have happened, so it does not happen again.
      const result = { status: 'error', output: null, error: 'the outcome of this call is unknown after a restart' };
      const call = { id: callId, tool: proposed.tool ?? proposed.kind, evidence: 'held' };
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
      const ruling = await acts.rule(
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
      if (ruling.kind === 'go') {
        const by = ruling.answer && 'by' in ruling.answer ? ruling.answer.by : ruling.decision.engine;
        const rewritten = ruling.decision.verdict === 'modify' ? { arguments: ruling.action.arguments } : {};
        return ruling.answer ?? { kind: 'approved', by, reason: ruling.decision.reason, ...rewritten };
      }
      if (ruling.kind === 'open') return { kind: 'canceled', ask_id: ruling.ask_id, reason: 'still waiting' };
      // Approved, and refused all the same: the rules changed meanwhile, a quota ran out. The agent hears the refusal.
      if (ruling.answer && ruling.answer.kind !== 'approved') return ruling.answer;
      return { kind: 'denied', by: ruling.decision.engine, reason: ruling.reason };
    }
    return await askForInput(question);
  }

  async function askForInput(question: Extract<Parameters<Sink['ask']>[0], { kind: 'input' }>): Promise<Answer> {
    const taken = past.answer(question.key);
    if (taken) return taken;
    const refused = deps.repeats ? undefined : await acts.mayNotAsk(task, question, actor);
    if (refused) return { kind: 'denied', by: refused.engine, reason: refused.reason };
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

  /** A value is taken once; asking again under the same key is a new question. */
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
    const made = await newArtifact(file, { ...placeOf(task), now: clock.now() }, store, ids);
    const known = past.artifact(made);
    if (known) return { id: known.id, sha256: known.sha256 };
    await log.commit(whileOpen(task, () => artifactEvents([made], { ...inTask(task), actor: actor.id })));
    return { id: made.id, sha256: made.sha256 };
  }

  return { emit, act, ask, artifact, settle };
}

const CUT = { metadata: { redactions: [{ field: '/payload/text', reason: 'known secret' }] } };

/** What a unit that asks in a task looks at. */
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

/** Facts of a task that has ended are refused: its receipt is sealed. So are facts about what is someone else's. */
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
 * A reported fact as events: messages also join the transcript, large content becomes artifacts. Whatever it says
 * about where it belongs and how firmly it is known, it belongs to this task and was only told. At once where nothing is
 * too large to stand in them.
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
  const place = { now, ...placeOf(task) };
  const base: Omit<EventDraft, 'event' | 'payload'> = {
    actor: actor.id,
    ...inTask(task),
    ...(fact.ext && { ext: fact.ext }),
    ...(fact.span_id && { span_id: fact.span_id }),
    ...(fact.trace_id && { trace_id: fact.trace_id }),
  };
  const message = fact.payload.message;
  if ((fact.event === 'agent.message' || fact.event === 'user.message') && isMessage(message)) {
    const { id, object: _, created_at, updated_at: __, metadata, ...said } = message;
    const given = {
      id: id ?? deps.ids.next('message'),
      object: 'message',
      created_at: created_at ?? now,
      updated_at: now,
      metadata: metadata ?? {},
      ...said,
      ...placeOf(task),
    };
    const whole = check(MessageShape, given, fact.event);
    return goOnWith(deps.log.fitMessage(whole, place), ({ value, artifacts }) => {
      const told = { event: fact.event, payload: { ...fact.payload, message: value as unknown as Json }, ...base };
      const counted = { message_id: whole.id, role: whole.role };
      const appended = { event: 'session.message_appended', payload: counted, ...inTask(task) };
      return { events: [...artifactEvents(artifacts, inTask(task)), told, appended], told };
    });
  }
  // What is repeated claims what the record claims.
  const said = deps.repeats ? fact.payload : modest(fact, task, deps.ids, now);
  return goOnWith(deps.log.fitMembers(said, place), ({ value: payload, artifacts }) => {
    const told = { event: fact.event, payload, ...base };
    const events = artifacts.length === 0 ? [told] : [...artifactEvents(artifacts, inTask(task)), told];
    const raised = deps.repeats ? undefined : deps.alarms?.raisedBy(task, fact, before);
    return goOnWith(raised, (alarm) => {
      return alarm ? { events: [...events, alarm], told } : { events, told };
    });
  });
}

export interface FactEvents {
  readonly events: readonly EventDraft[];
  /** The one of them that says what was reported. */
  readonly told: EventDraft;
}

/** The payload without what it has no right to claim. */
function modest({ event, payload }: Fact, task: Task, ids: Ids, now: string): JsonObject {
  if (event === 'tool.requested' || event === 'vendor.tollbridge.side_effect') {
    // What ran through us is written down by us. An agent here may say that it asked; one outside only tells.
    const asked = payload.evidence === 'asked' && task.assigned_agent_id !== null;
    return { ...payload, evidence: asked ? 'asked' : 'observed' };
  }
  if (event.startsWith('artifact.') && payload.artifact !== undefined) {
    if (!isObject(payload.artifact)) {
      throw new Fault('invalid_request', `${event}: /artifact must be object`, { param: '/artifact' });
    }
    const { id, created_at, metadata, ...about } = payload.artifact as unknown as Partial<Artifact>;
    const { spilled: _, ...claimed } = isObject(metadata) ? metadata : {}; // what we moved out of an event is ours to say
    const whole = {
      ...{ kind: 'other', mime_type: 'application/octet-stream', uri: null, visibility: 'public', sha256: null },
      ...about,
      ...placeOf(task),
      id: id ?? ids.next('artifact'),
      object: 'artifact',
      created_at: created_at ?? now,
      updated_at: now,
      metadata: keptBytes(claimed, undefined),
    };
    return { ...payload, artifact: check(ArtifactShape, whole, event) as unknown as Json };
  }
  return payload;
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isMessage(value: unknown): value is Message {
  return typeof value === 'object' && value !== null && Array.isArray((value as Message).parts);
}

function refuseReserved(event: string): void {
  if (isReportable(event)) return;
  throw new Fault('invalid_request', `${event} is not something that can be reported`, { param: '/event' });
}

function fromRecord(ended: ToolEndedPayload): ActResult {
  return {
    kind: 'done',
    result: { status: ended.status, output: ended.output ?? null, ...(ended.error && { error: ended.error }) },
  };
}
