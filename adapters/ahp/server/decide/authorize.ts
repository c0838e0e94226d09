/**
 * Asks the gate about one act and, when people are asked, waits for them: in core, within a deadline, abandoned when the agent
 * disconnects, joined when the same act is asked again. An approval lets exactly one act through.
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
} from '../../../../src/index.ts';
import type { TimedWait } from '../../timeout.ts';
import { type GateDecision, toGateDecision } from '../../translate.ts';
import type { ProposedCall, SupervisedRun } from '../supervised-tasks.ts';

export interface HoldTimeout {
  /** Over when the answer is due, or when the agent has disconnected. */
  readonly until: TimedWait;
  /** Fires when the agent has disconnected. */
  readonly gone: AbortSignal;
  /** Whether to wait for people. */
  readonly hold: boolean;
}

export interface ActQuestion {
  readonly action: ProposedAction;
  /** The agent runs arguments that a rule rewrote. */
  readonly takesArguments: boolean;
  /** Acts with the same fingerprint share a question. Absent for acts that are not calls: the gate distinguishes those itself. */
  readonly fingerprint?: string;
  readonly ext?: JsonObject;
  readonly trace_id?: string;
}

export interface GateAnswer {
  readonly gateDecision: GateDecision;
  readonly call_id: string | undefined;
  /** A person's answer, when a value was asked for. */
  readonly value?: Json;
}

export interface Authorizer {
  ask(actor: Actor, run: SupervisedRun, question: ActQuestion, timeout: HoldTimeout): Promise<GateAnswer>;
}

/** Policy gets a little less than the whole time, so that the timeout of an outside harness still has its configured meaning. */
const MARGIN_MS = 250;

export function createAuthorizer(bridge: Bridge, ids: Ids): Authorizer {
  type Proposed = Accepted<'action.propose'> & { readonly decision: Decision };

  function propose(
    actor: Actor,
    run: SupervisedRun,
    { action, takesArguments, ext, trace_id }: ActQuestion,
    callId: string | undefined,
    { until, gone, hold }: HoldTimeout,
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

  /** After a restart the log may hold open questions, under the calls they were asked for. Read once. */
  async function stillAsked(actor: Actor, run: SupervisedRun): Promise<void> {
    const where = { task_id: run.taskId };
    const { data } = await bridge.list<AskRecord & Row>(actor, { object: 'ask', where, newestFirst: true, limit: 200 });
    for (const { id, tool_call_id, used_at, state } of data) {
      const fingerprint = tool_call_id?.split('.').at(-1);
      if (!tool_call_id || !fingerprint || used_at || state === 'canceled' || run.asked.has(fingerprint)) continue;
      run.asked.set(fingerprint, { call_id: tool_call_id, ask_id: id });
    }
  }

  async function lookUp(actor: Actor, run: SupervisedRun): Promise<void> {
    run.asksKnown ||= stillAsked(actor, run);
    try {
      await run.asksKnown;
      run.asksKnown = true;
    } catch (cause) {
      run.asksKnown = false;
      throw cause;
    }
  }

  async function ask(
    actor: Actor,
    run: SupervisedRun,
    question: ActQuestion,
    timeout: HoldTimeout,
  ): Promise<GateAnswer> {
    const { fingerprint } = question;
    for (;;) {
      if (fingerprint && run.asksKnown !== true) await lookUp(actor, run);
      const before = fingerprint ? run.asked.get(fingerprint) : undefined;
      const callId = fingerprint ? (before?.call_id ?? `${ids.next('call')}.${fingerprint}`) : undefined;
      let asked: ProposedCall | undefined = before;
      const onAsked = (askId: string) => {
        if (asked || !fingerprint) return;
        asked = { call_id: callId as string, ask_id: askId };
        run.asked.set(fingerprint, asked);
      };
      let proposed: Proposed;
      try {
        proposed = await propose(actor, run, question, callId, timeout, onAsked);
      } catch (cause) {
        // An approval lets one act through. Another act that joined the question was first, so this one asks anew.
        if (!asked || asFault(cause).kind !== 'conflict') throw cause;
        if (fingerprint && run.asked.get(fingerprint) === asked) run.asked.delete(fingerprint);
        continue;
      }
      const { decision, answer, details } = proposed;
      // The agent has disconnected: the answer is kept for when it asks again.
      const left = asked && answer?.kind === 'canceled' && timeout.gone.aborted ? asked.ask_id : undefined;
      const askId = (details?.ask_id as string | undefined) ?? left;
      if (askId)
        return { gateDecision: { ...toGateDecision(decision), verdict: 'escalate', ask_id: askId }, call_id: callId };
      if (fingerprint && asked && run.asked.get(fingerprint) === asked) run.asked.delete(fingerprint);
      return { gateDecision: toGateDecision(decision), call_id: callId, ...valueIn(answer) };
    }
  }

  return { ask };
}

function valueIn(answer: Answer | undefined): { value?: Json } {
  return answer?.kind === 'value' ? { value: answer.value as Json } : {};
}
