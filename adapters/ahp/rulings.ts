/**
 * May it? One question to the gate and, when people are asked, the wait for them: in core, within a deadline, given up when
 * the asker is gone, joined when the same is asked again. An approval lets exactly one act through.
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
import type { Wait } from './patience.ts';
import type { Asked, Run } from './runs.ts';
import { type Ruled, ruledBy } from './translate.ts';

export interface Patience {
  /** Over when the answer has to go out, and when nobody is there to hear it. */
  readonly until: Wait;
  /** Fires when nobody is there to hear it. */
  readonly gone: AbortSignal;
  /** People may be waited for. */
  readonly hold: boolean;
}

export interface Question {
  readonly action: ProposedAction;
  /** The asker would run the arguments a rule wrote instead of its own. */
  readonly takesArguments: boolean;
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

/** Policy is given a little less time than there is, so that an outside harness's silence still has its configured meaning. */
const MARGIN_MS = 250;
/** Questions of one run that a repeat can still join. */
const MOST_ASKED = 1_000;

export function createRulings(bridge: Bridge, ids: Ids): Rulings {
  type Proposed = Accepted<'action.propose'> & { readonly decision: Decision };

  function propose(
    actor: Actor,
    run: Run,
    { action, takesArguments, ext, trace_id }: Question,
    callId: string | undefined,
    { until, gone, hold }: Patience,
    asked: (askId: string) => void,
  ) {
    const left = until.left();
    return bridge.submit({
      kind: 'action.propose',
      actor,
      body: {
        task_id: run.taskId,
        action: { ...action, ...(callId && { tool_call_id: callId }) },
        wait_ms: hold ? left : 0,
        decide_ms: Math.max(1, Math.ceil(left - Math.min(MARGIN_MS, left / 4))),
        takes_arguments: takesArguments,
        waits_out_deferral: false,
      },
      signal: gone,
      asked,
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
      run.asked.set(fingerprint, { call_id: tool_call_id, ask_id: id });
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
      let asked: Asked | undefined = before;
      const heard = (askId: string) => {
        if (asked || !fingerprint) return;
        asked = { call_id: callId as string, ask_id: askId };
        remember(run, fingerprint, asked);
      };
      let proposed: Proposed;
      try {
        proposed = await propose(actor, run, question, callId, patience, heard);
      } catch (cause) {
        // An approval lets one act through. Another that asked the same was quicker, and this one asks anew.
        if (!asked || asFault(cause).kind !== 'conflict') throw cause;
        if (fingerprint && run.asked.get(fingerprint) === asked) run.asked.delete(fingerprint);
        continue;
      }
      const { decision, answer, details } = proposed;
      // Its asker has gone: what people say is kept for when it asks again.
      const left = asked && answer?.kind === 'canceled' && patience.gone.aborted ? asked.ask_id : undefined;
      const askId = (details?.ask_id as string | undefined) ?? left;
      if (askId) return { ruled: { ...ruledBy(decision), verdict: 'escalate', ask_id: askId }, call_id: callId };
      if (fingerprint && asked && run.asked.get(fingerprint) === asked) run.asked.delete(fingerprint);
      return { ruled: ruledBy(decision), call_id: callId, ...valueIn(answer) };
    }
  }

  /** What was forgotten is asked anew, which is never a yes. */
  function remember({ asked }: Run, fingerprint: string, question: Asked): void {
    asked.set(fingerprint, question);
    const [oldest] = asked.keys();
    if (asked.size > MOST_ASKED && oldest !== undefined) asked.delete(oldest);
  }

  return { ask };
}

function valueIn(answer: Answer | undefined): { value?: Json } {
  return answer?.kind === 'value' ? { value: answer.value as Json } : {};
}
