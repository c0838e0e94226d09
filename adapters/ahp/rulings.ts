/**
 * May it? One question to the gate and, when people are asked, the wait for them: within a deadline, given up when the
 * asker is gone, joined by whoever asks the same again. An approval lets exactly one act through.
 */
import {
  type Accepted,
  type Actor,
  type Answer,
  type AskRecord,
  asFault,
  type Bridge,
  type Decision,
  type Ids,
  type Json,
  type JsonObject,
  type ProposedAction,
  type Row,
} from '../../src/index.ts';
import { pause, type Wait } from './patience.ts';
import type { Asked, Run } from './runs.ts';
import { type Ruled, ruledBy } from './translate.ts';

export interface Patience {
  /** Over when the answer has to go out, and when nobody is there to hear it. */
  readonly until: Wait;
  /** People may be waited for. */
  readonly hold: boolean;
}

export interface Question {
  readonly action: ProposedAction;
  /** Same fingerprint, same question. Absent for what is not a call: the gate tells those apart itself. */
  readonly fingerprint?: string;
  readonly ext?: JsonObject;
  readonly trace_id?: string;
}

export interface Answered {
  readonly ruled: Ruled;
  readonly call_id: string | undefined;
  /** What a person said, when it was a word that was wanted. */
  readonly value?: Json;
}

export interface Rulings {
  ask(actor: Actor, run: Run, question: Question, patience: Patience): Promise<Answered>;
}

const LOOK_MS = 100;
/** Questions of one run that a repeat can still join. */
const MOST_ASKED = 1_000;
type State = AskRecord['state'];

export function createRulings(bridge: Bridge, ids: Ids): Rulings {
  type Proposed = Accepted<'action.propose'> & { readonly decision: Decision };

  function propose(actor: Actor, run: Run, { action, ext, trace_id }: Question, callId: string | undefined) {
    return bridge.submit({
      kind: 'action.propose',
      actor,
      body: { task_id: run.taskId, action: { ...action, ...(callId && { tool_call_id: callId }) }, wait_ms: 0 },
      ...(ext && { ext }),
      ...(trace_id && { trace_id }),
    }) as Promise<Proposed>;
  }

  /** After a restart questions may still stand in the log, under the calls they were asked for. Looked up once. */
  async function stillAsked(actor: Actor, run: Run): Promise<void> {
    const where = { task_id: run.taskId };
    const { data } = await bridge.list<AskRecord & Row>(actor, { object: 'ask', where, newestFirst: true, limit: 200 });
    for (const { id, tool_call_id, used_at, state } of data) {
      const fingerprint = tool_call_id?.split('.').at(-1);
      if (!tool_call_id || !fingerprint || used_at || state === 'canceled' || run.asked.has(fingerprint)) continue;
      run.asked.set(fingerprint, { call_id: tool_call_id, ask_id: id, taken: false });
    }
  }

  async function lookUp(actor: Actor, run: Run): Promise<void> {
    run.asksKnown ||= stillAsked(actor, run);
    try {
      await run.asksKnown;
      run.asksKnown = true;
    } catch (cause) {
      run.asksKnown = false;
      throw cause;
    }
  }

  async function ask(actor: Actor, run: Run, question: Question, patience: Patience): Promise<Answered> {
    const { fingerprint } = question;
    for (;;) {
      if (fingerprint && run.asksKnown !== true) await lookUp(actor, run);
      const before = fingerprint ? run.asked.get(fingerprint) : undefined;
      const callId = fingerprint ? (before?.call_id ?? `${ids.next('call')}.${fingerprint}`) : undefined;
      const first = await propose(actor, run, question, callId);
      const askId = first.details?.ask_id as string | undefined;
      if (!askId) {
        // Ruled without people, or with an answer that was waiting to be taken.
        if (fingerprint && run.asked.get(fingerprint) === before) run.asked.delete(fingerprint);
        return { ruled: ruledBy(first.decision), call_id: callId, ...valueIn(first.answer) };
      }
      const asked: Asked = before ?? { call_id: callId ?? '', ask_id: askId, taken: false };
      if (fingerprint && !before) remember(run, fingerprint, asked);
      const waiting: Answered = { ruled: { ...ruledBy(first.decision), ask_id: askId }, call_id: callId };
      if (!patience.hold) return waiting;
      const closed = await untilClosed(actor, askId, patience.until.signal);
      if (!closed) return waiting;
      const mine = !asked.taken;
      asked.taken = true;
      if (fingerprint && run.asked.get(fingerprint) === asked) run.asked.delete(fingerprint);
      if (mine) {
        const taken = await propose(actor, run, question, callId);
        return { ruled: ruledBy(taken.decision), call_id: callId, ...valueIn(taken.answer) };
      }
      // The same no is a no for everyone who asked; a yes was for one of them, and the others ask anew.
      if (closed.state !== 'approved') {
        return { ruled: { verdict: 'block', reason: closed.reason ?? 'not approved' }, call_id: callId };
      }
    }
  }

  /** What was forgotten is asked anew, which is never a yes. */
  function remember({ asked }: Run, fingerprint: string, question: Asked): void {
    asked.set(fingerprint, question);
    const [oldest] = asked.keys();
    if (asked.size > MOST_ASKED && oldest !== undefined) asked.delete(oldest);
  }

  async function untilClosed(actor: Actor, askId: string, signal: AbortSignal) {
    for (;;) {
      if (signal.aborted) return undefined;
      const { state, reason } = await bridge.view<AskRecord & Row>(actor, 'ask', askId).catch((cause) => {
        // Looking again is harmless, and the deadline is watched elsewhere.
        if (asFault(cause).kind === 'unavailable') return { state: 'open' as State, reason: null };
        throw cause;
      });
      if (state !== 'open') return { state, reason };
      await pause(LOOK_MS, signal);
    }
  }

  return { ask };
}

function valueIn(answer: Answer | undefined): { value?: Json } {
  return answer?.kind === 'value' ? { value: answer.value as Json } : {};
}
