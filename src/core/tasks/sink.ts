/** A backend's interface into core: four operations, each durable before it returns. */

import type { Actor, NewArtifact } from '../../model/actions.ts';
import type { Answer } from '../../model/asks.ts';
import type { Fact } from '../../model/commands.ts';
import type { EventDraft } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { ToolEndedPayload } from '../../model/payloads.ts';
import type { Task } from '../../model/resources.ts';
import type { Json } from '../../model/schema.ts';
import type { ActResult, Sink, Store } from '../../ports/index.ts';
import type { Acts } from '../actions/acts.ts';
import { reused } from '../actions/calls/call-ids.ts';
import { charging } from '../actions/charging.ts';
import type { Asks } from '../approvals/asks.ts';
import { createInputQuestions } from '../approvals/input-questions.ts';
import { newArtifact } from '../commands/artifacts.ts';
import { createBatcher } from '../events/batcher.ts';
import { besideReceipt, type FactDeps, type FactEvents, factEvents, whileOpen } from '../events/facts.ts';
import { artifactEvents } from '../events/log.ts';
import { createStreamed, type Piece } from '../events/stream-redaction.ts';
import { goOnWith } from '../waiting.ts';
import { type Past, readPast } from './history.ts';
import { inTask, taskLocation } from './lifecycle.ts';

export interface SinkDeps extends FactDeps {
  /** See `RuleOptions`. Absent in a replay. */
  readonly runBy?: string;
  readonly store: Store;
  readonly acts: Acts;
  readonly asks: Asks;
  /** Canonical text, to tell a fact from before a crash from a new one. */
  readonly canonical: (value: Json) => string;
}

export interface TaskSink extends Sink {
  /** Writes the held-back end of a streamed text. */
  settle(): Promise<void>;
}

export function createSink(deps: SinkDeps, task: Task, actor: Actor, past: Past, signal: AbortSignal): TaskSink {
  const { store, log, acts, clock, ids, runBy } = deps;
  const askFor = createInputQuestions(deps);
  const inFlight = new Map<string, { fingerprint: string; result: Promise<ActResult> }>();
  /** Calls that failed midway: the log has their progress. */
  const brokenOff = new Set<string>();

  const streamed = createStreamed(log.beginnings);
  const batcher = createBatcher((events) => log.commit(whileOpen(task, events, deps.repeats)));

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
    return log.commit(whileOpen(task, events, deps.repeats));
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
    const open = whileOpen(task, events, deps.repeats);
    const metering = await acts.metering(task, [fact.payload]);
    await log.commit(charging(open, metering));
    const passed = metering.passed?.();
    // Before the agent continues: its later facts belong to work that has been stopped.
    if (passed) acts.limitPassed(task, passed);
  }

  async function act(...[proposed, effect, withdrawn]: Parameters<Sink['act']>): Promise<ActResult> {
    const { tool_call_id: id, changes: _, ...call } = proposed;
    // Without an id each call is a new one, and no repeat can be recognised.
    if (!id)
      return await acts.perform(task, proposed, { actor, signal, takesArguments: true, withdrawn, runBy }, effect);
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
    const options = { actor, signal, takesArguments: true, withdrawn, runBy };
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
      const tool = proposed.tool ?? proposed.kind;
      await acts.ended(task, { id: callId, tool, evidence: 'held', paired, code: 'outcome_unknown', runBy }, result);
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
          runBy,
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
    const { key, question: text, schema, expires_ms, ext, withdrawn } = question;
    const more = { ...(schema && { schema }), ...(expires_ms && { expires_ms }), ...(ext && { ext }) };
    return await askFor(task, { key, question: text, ...more }, { actor, signal, withdrawn });
  }

  async function artifact(file: NewArtifact): Promise<{ id: string; sha256: string | null }> {
    const made = await newArtifact(file, { ...taskLocation(task), now: clock.now() }, store, ids);
    const known = past.artifact(made);
    if (known) return { id: known.id, sha256: known.sha256 };
    await log.commit(whileOpen(task, artifactEvents([made], { ...inTask(task), actor: actor.id })));
    return { id: made.id, sha256: made.sha256 };
  }

  return { emit, act, ask, artifact, settle };
}

const OF_A_CALL = /^tool\.(requested|completed|failed)$/;
const CUT = { metadata: { redactions: [{ field: '/payload/text', reason: 'known secret' }] } };

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
