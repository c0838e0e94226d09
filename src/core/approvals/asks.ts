/**
 * Durable questions to people: opened by an agent or a rule that needs an answer, answered once by an actor who may, at any door,
 * in this process or another, before or after a restart. Each is bound to exactly the act that would run.
 */

import type { Action, Decision } from '../../model/actions.ts';
import { type Answer, type AskKind, type AskRecord, type AskState, isChanged } from '../../model/asks.ts';
import type { EventDraft } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { AskClosedPayload } from '../../model/payloads.ts';
import type { Task } from '../../model/resources.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import { everyRow } from '../../model/values/every-row.ts';
import { anySignal } from '../../model/values/signals.ts';
import { isTerminal } from '../../model/words.ts';
import type { At, Clock, Ids, Row, Signer, Store } from '../../ports/index.ts';
import { later } from '../clock.ts';
import type { Log } from '../events/log.ts';
import type { RunRow } from '../events/rows.ts';
import { inTask, settle } from '../tasks/lifecycle.ts';
import type { ChangedActs } from './changed-acts.ts';
import { type AskClosing, createAskClosing, EXPIRED } from './close-ask.ts';
import { createTypedAnswers } from './typed-answers.ts';
import { shownAs, type WholeActs } from './whole-acts.ts';

export interface AsksDeps {
  readonly store: Store;
  readonly log: Log;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly signer: Pick<Signer, 'mac'>;
  /** Canonical text of a value; the digest is a keyed hash of it. */
  readonly canonical: (value: Json) => string;
  readonly expiresMs: number;
  /** Absent in a replay, which asks no one. */
  readonly wholeActs?: Pick<WholeActs, 'requireKept'>;
  /** As above. */
  readonly changedActs?: ChangedActs;
}

export interface NewAsk {
  /** The id under which the unredacted act is stored. */
  readonly id?: string;
  /** The log shows less of the act than will run. */
  readonly inPart?: boolean;
  readonly kind: AskKind;
  readonly key: string;
  readonly digest: string;
  readonly question: string;
  readonly action: JsonObject;
  readonly tool_call_id?: string;
  readonly name: string;
  readonly schema?: JsonObject;
  readonly decision?: Decision;
  readonly expires_ms?: number;
  readonly ext?: JsonObject;
}

/** An open question to wait on, or one already answered and not yet spent, and the events to write. */
export interface Raised {
  readonly ask_id: string;
  readonly state: AskState;
  readonly task: Task;
  readonly events: readonly EventDraft[];
  /** The same question is in the log already. */
  readonly joined: boolean;
}

/** The party that asked, and that may withdraw the question. */
interface Asker {
  readonly id: string;
  readonly withdrawn: AbortSignal | undefined;
}

export interface Asks {
  /** Binds an approval to the act that would run. The same act gives the same digest; any other act gives another. */
  digest(action: Pick<Action, 'actor' | 'tool' | 'server' | 'kind' | 'definition' | 'target' | 'arguments'>): string;
  /** Inside a commit: joins the same question if it still exists, or opens it. */
  raise(at: At, task: Task, run: RunRow, wanted: NewAsk): Raised;
  answer: AskClosing['answer'];
  /** Closes a question as the record says it was closed. Called by core only, never by a door. */
  settle(askId: string, state: Exclude<AskState, 'open'>, by: string, reason?: string, answer?: Json): Promise<boolean>;
  /** Inside a commit: withdraws every open question of a task that is ending. */
  withdraw(task: Task, run: RunRow | undefined, now: string, reason: string): readonly EventDraft[];
  /** Waits for the answer, whichever process receives it; expiry and withdrawal are answers too. */
  wait(askId: string, taskId: string, signal: AbortSignal, asker?: Asker): Promise<Answer>;
  /** Inside a commit: spends the answer. A second attempt to spend it fails. */
  take(at: At, task: Task, run: RunRow | undefined, askId: string): EventDraft;
  expireDue(): Promise<number>;
}

export function createAsks(deps: AsksDeps): Asks {
  const { store, log, clock, ids, signer, canonical } = deps;
  // Redacted as in the event, where the member's name affects redaction.
  const typed = createTypedAnswers((value) => log.clean({ answer: value }).answer);
  const closing = createAskClosing(store, log, typed, deps.wholeActs, deps.changedActs);

  function digest(action: Parameters<Asks['digest']>[0]): string {
    return signer.mac(
      canonical({
        actor: action.actor.id,
        kind: action.kind,
        tool: action.tool ?? null,
        server: action.server ?? null,
        definition: action.definition ?? null,
        target: action.target ?? null,
        arguments: action.arguments,
      }),
    );
  }

  function raise(at: At, task: Task, run: RunRow, wanted: NewAsk): Raised {
    const known = run.asks.find((ask) => ask.key === wanted.key && ask.digest === wanted.digest);
    if (known) {
      // After a restart the task works until it asks again; joining the open question returns it to waiting.
      const again = settle(task, run.asks, { now: at.now, reason: wanted.question, more: { ask_id: known.id } });
      return { ask_id: known.id, state: known.state, task: again.task, events: again.events, joined: true };
    }

    const id = wanted.id ?? ids.next('ask');
    const wished = wanted.expires_ms ?? wanted.decision?.ask?.expires_ms;
    const expiresMs = wished !== undefined && wished >= 0 && wished <= LONGEST_ASK ? wished : deps.expiresMs;
    const ask: AskRecord = {
      id,
      object: 'ask',
      created_at: at.now,
      updated_at: at.now,
      metadata: { key: wanted.key, ...shownAs(wanted.inPart ?? false) },
      kind: wanted.kind,
      state: 'open',
      workspace_id: task.workspace_id,
      session_id: task.session_id,
      task_id: task.id,
      tool_call_id: wanted.tool_call_id ?? null,
      question: wanted.question,
      action: wanted.action,
      schema: wanted.schema ?? null,
      digest: wanted.digest,
      rule_id: wanted.decision?.rule_id ?? null,
      reason: wanted.decision?.reason ?? null,
      to: [...(wanted.decision?.ask?.to ?? [])],
      expires_at: later(at.now, expiresMs),
      answered_by: null,
      answered_at: null,
      answer: null,
      used_at: null,
    };
    const opened: EventDraft = {
      ...inTask(task),
      event: 'vendor.tollbridge.ask_opened',
      payload: { ask: ask },
      ...(wanted.ext && { ext: wanted.ext }),
    };
    const required: EventDraft = {
      ...inTask(task),
      event: 'tool.approval_required',
      payload: {
        ask_id: id,
        tool_call_id: ask.tool_call_id,
        name: wanted.name,
        question: wanted.question,
        expires_at: ask.expires_at,
      },
    };
    const after = [
      ...run.asks,
      { id, kind: wanted.kind, key: wanted.key, digest: wanted.digest, state: 'open' as const },
    ];
    const settled = settle(task, after, { now: at.now, reason: wanted.question, more: { ask_id: id } });
    const events = [opened, ...(wanted.kind === 'approval' ? [required] : []), ...settled.events];
    return { ask_id: id, state: 'open', task: settled.task, events, joined: false };
  }

  function asTyped(answer: Answer): Answer {
    if (answer.kind !== 'value' || !answer.ask_id) return answer;
    return { ...answer, value: typed.handOver(answer.ask_id, answer.value) };
  }

  return {
    digest,
    raise,
    answer: closing.answer,

    async settle(askId, state, by, reason, answer) {
      const { repeated } = await closing.close(askId, { state, by, reason, ...(answer !== undefined && { answer }) });
      return repeated;
    },

    withdraw(task, run, now, reason) {
      return (run?.asks ?? [])
        .filter((ask) => ask.state === 'open')
        .map((ask) => ({
          ...inTask(task),
          event: 'vendor.tollbridge.ask_closed',
          payload: { ask_id: ask.id, state: 'canceled', by: 'bridge', at: now, reason },
        }));
    },

    async wait(askId, taskId, signal, asker) {
      const stop = new AbortController();
      const over = anySignal([signal, stop.signal]);
      const after = await store.tip({ of: 'task', id: taskId });
      const ask = await store.get<AskRecord & Row>('ask', askId);
      if (!ask) throw new Fault('not_found', `no question ${askId}`);
      if (ask.state !== 'open') return asTyped(toAnswer(ask));

      const timer = whenDue(ask.expires_at, clock, () => {
        closing.close(askId, { state: 'expired', by: 'bridge', reason: EXPIRED }).catch(() => {}); // answered meanwhile; that answer arrives below
      });
      const withdrawn = whenAborted(asker?.withdrawn, () => {
        const by = asker?.id ?? 'bridge';
        closing.close(askId, { state: 'canceled', by, reason: TAKEN_BACK }).catch(() => {}); // as above
      });
      try {
        for await (const event of store.follow({ stream: { of: 'task', id: taskId }, ...(after && { after }) }, over)) {
          if (event.event !== 'vendor.tollbridge.ask_closed' || event.payload.ask_id !== askId) continue;
          return asTyped(toAnswer({ ...ask, ...closedFields(event.payload) }));
        }
        return { kind: 'canceled', ask_id: askId, reason: 'the work that asked no longer waits for this answer' };
      } finally {
        timer.cancel();
        withdrawn.cancel();
        stop.abort();
      }
    },

    take(at, task, run, askId) {
      const ask = run?.asks.find((a) => a.id === askId);
      if (!ask || ask.state === 'open') throw new Fault('conflict', `the answer to ${askId} was already used`);
      if (isTerminal(task.status)) throw new Fault('conflict', `task ${task.id} already ended as ${task.status}`);
      return { ...inTask(task), event: 'vendor.tollbridge.ask_used', payload: { ask_id: askId, at: at.now } };
    },

    async expireDue() {
      let count = 0;
      const now = clock.now();
      const open = { object: 'ask', where: { state: 'open' } };
      for await (const ask of everyRow((paging) => store.list<AskRecord & Row>({ ...open, ...paging }))) {
        if (ask.expires_at > now) continue;
        await closing.close(ask.id, { state: 'expired', by: 'bridge', reason: EXPIRED }).catch(() => {}); // answered meanwhile
        count += 1;
      }
      return count;
    },
  };
}

const TAKEN_BACK = 'the client that asked took the question back';

function closedFields({ state, by, reason, answer }: AskClosedPayload) {
  return { state, answered_by: by, reason: reason ?? null, answer: answer ?? null };
}

function toAnswer(ask: Pick<AskRecord, 'id' | 'state' | 'answered_by' | 'reason' | 'answer'>): Answer {
  const by = ask.answered_by ?? 'bridge';
  switch (ask.state) {
    case 'approved':
      return {
        kind: 'approved',
        by,
        ask_id: ask.id,
        ...(ask.reason && { reason: ask.reason }),
        ...(isChanged(ask.answer) && { changed: ask.answer }),
      };
    case 'denied':
      return { kind: 'denied', by, ask_id: ask.id, reason: ask.reason ?? `${by} said no` };
    case 'answered':
      return { kind: 'value', by, ask_id: ask.id, value: ask.answer };
    case 'expired':
      return { kind: 'expired', ask_id: ask.id, reason: ask.reason ?? EXPIRED };
    default:
      return { kind: 'canceled', ask_id: ask.id, reason: ask.reason ?? 'the question was withdrawn' };
  }
}

function whenAborted(signal: AbortSignal | undefined, then: () => void): { cancel(): void } {
  if (signal?.aborted) then();
  else signal?.addEventListener('abort', then, { once: true });
  return { cancel: () => signal?.removeEventListener('abort', then) };
}

/** A timer that outlives the 24.8 days a single one can count. */
function whenDue(at: string, clock: Clock, fire: () => void): { cancel(): void } {
  let timer: NodeJS.Timeout;
  const arm = () => {
    const left = Date.parse(at) - Date.parse(clock.now());
    // The clock decides, not the timer: it may have been set, or be a test clock that only the test moves.
    timer = setTimeout(() => (clock.now() < at ? arm() : fire()), Math.max(1, Math.min(left, LONGEST)));
    timer.unref();
  };
  arm();
  return { cancel: () => clearTimeout(timer) };
}
const LONGEST = 2 ** 31 - 1;
/** A hundred years; later times cannot be formatted. */
const LONGEST_ASK = 100 * 365 * 24 * 3600 * 1000;
