/**
 * Closes a question, once and in one commit with all that follows from it: by an approver, by expiry, or by the asker. A later
 * answer gets the first one in the error.
 */

import type { Actor } from '../../model/actions.ts';
import { type AskRecord, type AskState, type ChangedArguments, isChanged } from '../../model/asks.ts';
import { outcomeOfEnd } from '../../model/call-outcomes.ts';
import type { EventDraft } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { AskClosedPayload, ToolDecisionPayload } from '../../model/payloads.ts';
import type { Task } from '../../model/resources.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import { check } from '../../model/validate.ts';
import { asText } from '../../model/values/as-text.ts';
import { isObject } from '../../model/values/is-object.ts';
import { isTerminal } from '../../model/words.ts';
import type { At, Row, Store, Unit } from '../../ports/index.ts';
import type { Log } from '../events/log.ts';
import type { RunRow } from '../events/rows.ts';
import { stopEvent } from '../tasks/cancel.ts';
import { inTask, ours, readsOf, settle } from '../tasks/lifecycle.ts';
import type { ChangedActs } from './changed-acts.ts';
import { whyNoAnswer } from './may-answer.ts';
import type { TypedAnswers } from './typed-answers.ts';
import type { WholeActs } from './whole-acts.ts';

/** The message that carried an answer: written in the same commit, or not at all. */
export interface AnswerRecord {
  readonly events: readonly EventDraft[];
  readonly result: Json;
}

/** The closing state of a question, its actor, and the reason. */
type Closed = Omit<AskClosedPayload, 'ask_id' | 'at' | 'reason'> & { readonly reason?: string | undefined };

export interface AskClosing {
  close(
    askId: string,
    as: Closed,
    claim?: Pick<Unit, 'idempotency'>,
    message?: AnswerRecord,
  ): Promise<{ repeated: boolean; result: Json | undefined }>;
  answer(
    actor: Actor,
    body: { ask_id: string; approved?: boolean; value?: Json; arguments?: JsonObject; reason?: string },
    claim?: Pick<Unit, 'idempotency'>,
    message?: AnswerRecord,
  ): Promise<{ record: AskRecord; repeated: boolean; result: Json | undefined }>;
}

export function createAskClosing(
  store: Store,
  log: Log,
  typed: Pick<TypedAnswers, 'keep'>,
  wholeActs: Pick<WholeActs, 'requireKept'> | undefined,
  changedActs: ChangedActs | undefined,
): AskClosing {
  /**
   * An approval covers the act that will run: it counts only while the unredacted act can be shown. A question closed meanwhile is
   * reported by the commit.
   */
  async function requireShown({ id, state }: AskRecord): Promise<void> {
    if (state !== 'open') return;
    try {
      await wholeActs?.requireKept(id);
    } catch (cause) {
      if ((await store.get<AskRecord & Row>('ask', id))?.state === 'open') throw cause;
    }
  }

  async function close(
    askId: string,
    { state, by, reason, answer }: Closed,
    claim: Pick<Unit, 'idempotency'> = {},
    message: AnswerRecord = { events: [], result: { id: askId } },
  ): Promise<{ repeated: boolean; result: Json | undefined }> {
    const known = await store.get<AskRecord & Row>('ask', askId);
    if (!known) throw new Fault('not_found', `no question ${askId}`);
    const { repeated, result } = await log.commit({
      ...claim,
      reads: [{ object: 'ask', id: askId }, ...readsOf(known.task_id)],
      decide(at) {
        const ask = at.get<AskRecord & Row>('ask', askId);
        if (!ask) throw new Fault('not_found', `no question ${askId}`);
        if (ask.state !== 'open') throw alreadyClosed(ask);
        const late = ask.expires_at <= at.now;
        // An answer after the deadline becomes an expiry, and the person gets that as an error.
        if (late && state !== 'expired' && state !== 'canceled') {
          return { events: closing(at, ask, 'expired', 'bridge', EXPIRED), result: message.result };
        }
        return { events: [...message.events, ...closing(at, ask, state, by, reason, answer)], result: message.result };
      },
    });
    const now = state === 'expired' ? undefined : await store.get<AskRecord & Row>('ask', askId);
    if (now?.state === 'expired') {
      throw new Fault('conflict', `question ${askId} expired at ${now.expires_at}`, { details: decided(now) });
    }
    return { repeated, result };
  }

  const noted = new Set<string>();

  /** Once for each question and actor: an actor that keeps trying does not fill the log. */
  async function noteRefused({ id }: Task, refused: EventDraft): Promise<void> {
    const name = `${asText(refused.payload.ask_id)} ${refused.actor}`;
    if (noted.has(name)) return;
    if (noted.size >= MOST_NOTED) noted.clear();
    noted.add(name);
    await log.commit({
      reads: readsOf(id),
      decide(at) {
        const now = at.get<Task & Row>('task', id);
        // A task that has ended has its receipt, and a replay only repeats its record: nothing is added to either.
        const open = now && !isTerminal(now.status) && at.get<RunRow>('run', id)?.agent !== 'replay';
        return { events: open ? [refused] : [] };
      },
    });
  }

  /** A refused answer is on record: an agent or a program may be trying to approve itself. */
  async function admit(actor: Actor, ask: AskRecord, refuses: boolean): Promise<void> {
    const task = await store.get<Task & Row>('task', ask.task_id);
    if (!task) throw new Fault('not_found', `no task ${ask.task_id}`);
    const why = whyNoAnswer(actor, ask, task, refuses);
    if (!why) return;
    await noteRefused(task, {
      event: 'vendor.tollbridge.answer_refused',
      actor: actor.id,
      payload: { ask_id: ask.id, by: actor.id, code: why.code, reason: why.message },
      ...inTask(task),
    });
    const details = { ask_id: ask.id, code: why.code };
    throw new Fault('permission_denied', `${actor.id} may not answer question ${ask.id}: ${why.message}`, { details });
  }

  return {
    close,

    async answer(actor, { ask_id, approved, value, arguments: replacement, reason }, claim, message) {
      const ask = await store.get<AskRecord & Row>('ask', ask_id);
      if (!ask) throw new Fault('not_found', `no question ${ask_id}`);
      await admit(actor, ask, approved === false);
      const by = actor.id;
      if (ask.kind === 'approval' && typeof approved !== 'boolean') {
        throw new Fault('invalid_request', 'say whether it is approved: true or false', { param: '/approved' });
      }
      const args = ask.kind === 'approval' ? (replacement ?? argumentsIn(value)) : replacement;
      if (args && approved !== true) {
        throw new Fault('invalid_request', 'only a yes can change the arguments', { param: '/arguments' });
      }
      // The commit reports that a question is closed; nothing more is decided about it.
      const change = args && ask.state === 'open' ? await changedActs?.prepare(actor, ask, args) : undefined;
      let answer: Closed;
      if (approved === false) answer = { state: 'denied', by, reason: reason ?? `${by} said no` };
      else if (ask.kind === 'approval') {
        await requireShown(ask);
        answer = { state: 'approved', by, reason, ...(change && { answer: change.answer }) };
      } else {
        if (value === undefined) throw new Fault('invalid_request', 'the answer needs a value', { param: '/value' });
        if (ask.schema) checkValue(ask.schema, value);
        answer = { state: 'answered', by, reason, answer: value };
        typed.keep(ask_id, value);
      }
      const { repeated, result } = await close(
        ask_id,
        answer,
        claim,
        change ? withEvents(message, change.events, ask_id) : message,
      ).catch((cause) => {
        change?.undo();
        throw cause;
      });
      if (repeated) change?.undo();
      return { record: (await store.get<AskRecord & Row>('ask', ask_id)) as AskRecord, repeated, result };
    },
  };
}

function withEvents(message: AnswerRecord | undefined, events: readonly EventDraft[], askId: string): AnswerRecord {
  return { events: [...events, ...(message?.events ?? [])], result: message?.result ?? { id: askId } };
}

/**
 * An approval takes no value but replacement arguments. Any other value might be meant as such; if it were ignored, the act would
 * run as it was asked about.
 */
function argumentsIn(value: Json | undefined): JsonObject | undefined {
  if (!isObject(value)) return undefined;
  const { arguments: args } = value;
  if (isObject(args)) return args;
  const other = Object.keys(value).find((name) => !REMARKS.has(name));
  if (other === undefined) return undefined;
  const name = JSON.stringify(other.slice(0, 80));
  throw new Fault('invalid_request', `an approval has no member ${name}; other arguments go in {"arguments": {…}}`, {
    param: '/answer',
  });
}
const REMARKS = new Set(['approved', 'request_id', 'ask_id', 'reason', 'comment', 'note', 'outcome', 'reviewer']);

const MOST_NOTED = 1_000;
export const EXPIRED = 'nobody answered in time';
/** The failure of a task that fails when its question is not answered. */
const UNANSWERED = 'signal_timed_out';

/** Everything that follows from one question being closed, in one commit. */
function closing(
  at: At,
  ask: AskRecord,
  state: Exclude<AskState, 'open'>,
  by: string,
  reason: string | undefined,
  answer?: Json,
) {
  const task = at.get<Task & Row>('task', ask.task_id);
  const run = at.get<RunRow>('run', ask.task_id);
  if (!task) throw new Fault('not_found', `no task ${ask.task_id}`);
  const events: EventDraft[] = [];
  const byPerson = state === 'approved' || state === 'denied' || state === 'answered';
  const location = { ...inTask(task), actor: by };
  if (state === 'expired' && ours(task).unanswered === 'fail' && !run?.cancel_requested) {
    // In the same commit: an agent that sees the expiry must not be able to finish first.
    const failure = { code: UNANSWERED, message: EXPIRED, details: { ask_id: ask.id } };
    events.push(stopEvent(task, 'bridge', EXPIRED, failure));
  }
  if (byPerson && ask.kind === 'approval') {
    events.push({
      ...location,
      event: 'user.tool_confirmation',
      payload: {
        ask_id: ask.id,
        tool_call_id: ask.tool_call_id,
        approved: state === 'approved',
        reason: reason ?? null,
        ...(isChanged(answer) && confirmed(answer)),
      },
    });
  }
  if (byPerson && ask.kind === 'input') {
    events.push({ ...location, event: 'user.input_submitted', payload: { ask_id: ask.id, value: answer ?? null } });
  }
  const closed: AskClosedPayload = {
    ask_id: ask.id,
    state,
    by,
    at: at.now,
    ...(reason && { reason }),
    ...(answer !== undefined && { answer }),
  };
  events.push({ ...location, event: 'vendor.tollbridge.ask_closed', payload: closed });
  if (ask.kind === 'approval') events.push(decisionEvent(location, ask, state, by, reason));

  const asks = (run?.asks ?? []).map((a) => (a.id === ask.id ? { ...a, state } : a));
  const settled = settle(task, asks, { now: at.now, reason: `question ${ask.id} ${state}`, actor: by });
  return [...events, ...settled.events];
}

/** The public part of an approval with other arguments. */
function confirmed({ arguments: args, asked_hash, arguments_hash }: ChangedArguments): JsonObject {
  return { arguments: args, asked_hash, arguments_hash };
}

function decisionEvent(
  location: Pick<EventDraft, 'resource'>,
  ask: AskRecord,
  state: AskState,
  by: string,
  reason: string | undefined,
): EventDraft {
  const codes: Partial<Record<AskState, string>> = { expired: 'approval_timed_out', canceled: 'approval_withdrawn' };
  const code = codes[state];
  const event = state === 'approved' ? 'tool.approved' : 'tool.denied';
  const payload: ToolDecisionPayload = {
    tool_call_id: ask.tool_call_id,
    name: asText(ask.action.tool ?? ask.action.kind ?? 'action'),
    by,
    ask_id: ask.id,
    ...(reason && { reason }),
    ...(code && { code }),
    ...(ask.rule_id && { rule_id: ask.rule_id }),
    ...(event === 'tool.denied' && { outcome: outcomeOfEnd(event, { code }) }),
  };
  return {
    ...location,
    event,
    payload: payload,
  };
}

function alreadyClosed(ask: AskRecord): Fault {
  const by = ask.answered_by ?? 'the bridge';
  const said = `question ${ask.id} was already ${ask.state} by ${by}`;
  // A yes that comes too late must not leave its approver to believe that the act has run.
  return new Fault('conflict', ask.state === 'canceled' ? `${said}; nothing ran` : said, { details: decided(ask) });
}

/** The closing answer, for a later one. */
function decided({ id, state, answered_by, answered_at }: AskRecord): JsonObject {
  return { ask_id: id, state, decided_by: answered_by, decided_at: answered_at };
}

/** The asker wrote the schema; an unreadable schema constrains nothing, and the asker gets the value it asked for. */
function checkValue(schema: JsonObject, value: Json): void {
  try {
    check(schema as never, value, 'the answer');
  } catch (cause) {
    if (cause instanceof Fault) throw cause;
  }
}
