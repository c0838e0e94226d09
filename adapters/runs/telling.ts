/**
 * A run told from the log: canonical events go in, one after the other, and the run's own events come out, numbered from
 * one without gaps. The same log always tells the same run, so a number is a cursor for good. Pure, and keeps no payloads.
 */

import { type InputKind, inputKind, isOver, type RunEventType, type RunStatus, signalOf } from '../../mappings/runs.ts';
import {
  type AskRecord,
  asText,
  type CoreEvent,
  type DecidedPayload,
  dialogText,
  type Json,
  type JsonObject,
  type Message,
  type Task,
  visibleText,
} from '../../src/index.ts';
import { type RunEvent, toRunEvent } from './frames.ts';
import { REJECTED, runMetadataOf } from './run-metadata.ts';
import { isObject } from './sensitive.ts';
import { summarize } from './summary.ts';
import { readMessage } from './translate.ts';

export interface Question {
  readonly ask_id: string;
  readonly kind: 'approval' | 'input';
  readonly input_kind: InputKind;
  readonly reason_code: string;
  /** All of it was shown: a yes to it is one. */
  readonly whole: boolean;
}

export interface Standing {
  readonly status: RunStatus;
  /** Number of the last event told. */
  readonly seq: number;
  /** Oldest first. */
  readonly questions: readonly Question[];
  readonly updated_at: string;
  /** When whoever does the work last gave a sign of life. */
  readonly heard_at: string;
}

export interface Telling {
  tell(event: CoreEvent): readonly RunEvent[];
  standing(): Standing;
}

interface Call {
  readonly name: string;
  readonly input: Json | undefined;
  readonly since: number;
}

/** What people and doors do is no sign of life of the worker. */
const OTHERS =
  /^(user\.|session\.|receipt\.|task\.(submitted|completed|failed|canceled)|vendor\.tollbridge\.(passthrough|bound|ask_closed|ask_used|recovered)$)/;
const TIMEOUT = /time_?out|timed_out|deadline/;

export function createTelling(): Telling {
  let status: RunStatus = 'queued';
  let seq = 0;
  let updated = '';
  let heard = '';
  let requestId = '';
  let created = false;
  /** Set when a signal has rejected the run: the no that follows is that signal's. */
  let rejecting = false;
  let questions: readonly Question[] = [];
  const calls = new Map<string, Call>();

  function frames(at: string, ...told: readonly (readonly [string, JsonObject])[]): readonly RunEvent[] {
    return told.map(([type, value]) => {
      seq += 1;
      updated = at;
      return toRunEvent(seq, type, at, value);
    });
  }

  function moved(at: string, type: RunEventType, to: RunStatus, reason?: string | null): readonly RunEvent[] {
    const value = { request_id: requestId, from_status: status, to_status: to };
    status = to;
    return frames(at, [type, reason === undefined ? value : { ...value, reason_code: reason }]);
  }

  function submitted(at: string, task: Task): readonly RunEvent[] {
    const given = runMetadataOf(task);
    requestId = given?.request_id ?? requestId;
    calls.clear();
    questions = [];
    rejecting = false;
    if (created) return moved(at, 'run.worker.retry_scheduled', 'queued', null);
    created = true;
    const { streaming, routing_hint } = given ?? {};
    const value = {
      request_id: requestId,
      input: task.input as Json,
      metadata: task.metadata,
      ...(streaming !== undefined && { streaming }),
      ...(routing_hint !== undefined && { routing_hint }),
    };
    return frames(at, ['run.created', value]);
  }

  function failed(at: string, { failure }: Task): readonly RunEvent[] {
    const code = failure?.code ?? 'failed';
    const limit = /quota|limit_exceeded/.test(`${code} ${asText(failure?.details?.code ?? '')}`);
    const value = { request_id: requestId, reason_code: 'limit_exceeded' };
    const before = limit ? frames(at, ['run.limit_exceeded', value]) : [];
    return [...before, ...moved(at, 'run.worker.failed', 'failed', code)];
  }

  function progress(kind: string, step: string, more: JsonObject): readonly [string, JsonObject] {
    return ['step.progress', { task_id: step, kind, ...more, request_id: requestId }];
  }

  function requested(at: string, payload: JsonObject): readonly RunEvent[] {
    const id = asText(payload.tool_call_id);
    const name = asText(payload.name ?? 'unknown');
    calls.set(id, { name, input: payload.input, since: Date.parse(at) });
    return frames(at, progress('tool_call_start', id, { tool_call_id: id, tool_name: name }));
  }

  /** A call that was waited for began when it was let through, with the arguments it was let through with. */
  function approved(at: string, payload: JsonObject): readonly RunEvent[] {
    const call = calls.get(asText(payload.tool_call_id));
    if (call) {
      const input = payload.input ?? call.input;
      calls.set(asText(payload.tool_call_id), { ...call, input, since: Date.parse(at) });
    }
    return [];
  }

  function invoked(at: string, payload: JsonObject, outcome: string, policy: string | null): readonly RunEvent[] {
    const id = payload.tool_call_id;
    const call = typeof id === 'string' ? calls.get(id) : undefined;
    if (typeof id !== 'string' || !call) return [];
    calls.delete(id);
    const about = { tool_call_id: id, tool_name: call.name };
    const came = outcome === 'policy_denied' ? undefined : (payload.output ?? payload.error);
    return frames(at, progress('tool_call_done', id, about), [
      'run.tool.invoked',
      {
        ...about,
        tool_outcome: outcome,
        tool_input_summary: summarize(call.input),
        tool_output_summary: summarize(came),
        policy_reason_code: policy,
        duration_ms: outcome === 'policy_denied' ? 0 : Math.max(0, Date.parse(at) - call.since),
      },
    ]);
  }

  function decided(at: string, { action, decision }: DecidedPayload): readonly RunEvent[] {
    if (!action.tool_call_id || (decision.verdict !== 'escalate' && decision.verdict !== 'block')) return [];
    return frames(at, [
      'run.coordination.decision',
      {
        request_id: requestId,
        decision_type: decision.verdict === 'escalate' ? 'await_input' : 'continue',
        reason_code: decision.code ?? decision.rule_id ?? decision.verdict,
        role: 'judge',
        judge_decision: { decision: decision.verdict, reason: decision.reason },
      },
    ]);
  }

  function asked(at: string, ask: AskRecord): readonly RunEvent[] {
    const { text, whole } = dialogText(ask);
    const question: Question = {
      whole,
      ask_id: ask.id,
      kind: ask.kind,
      input_kind: inputKind.toWire(ask.kind),
      reason_code: ask.rule_id ?? `${ask.kind}_required`,
    };
    questions = [...questions, question];
    const { tool, arguments: args } = ask.action;
    return frames(at, [
      'run.awaiting_input',
      {
        request_id: requestId,
        reason_code: question.reason_code,
        input_kind: question.input_kind,
        question: ask.kind === 'approval' ? text : visibleText(ask.question),
        ...(ask.tool_call_id && { tool_call_id: ask.tool_call_id }),
        ...(typeof tool === 'string' && { tool_name: tool }),
        ...(ask.kind === 'approval' && { tool_input_summary: summarize(args) }),
      },
    ]);
  }

  function answered(at: string, { ask_id, state, reason }: JsonObject): readonly RunEvent[] {
    const question = questions.find((each) => each.ask_id === ask_id);
    questions = questions.filter((each) => each !== question);
    const action = Object.hasOwn(signalOf, asText(state)) ? signalOf[asText(state)] : undefined;
    if (!question || state === 'canceled') return [];
    if (action === 'submit_input') return frames(at, ['run.input_received', { request_id: requestId, action }]);
    if (action === 'approve' || (action === 'reject' && rejecting)) {
      return frames(at, ['run.signal_applied', { request_id: requestId, action }]);
    }
    // Refused elsewhere, or by nobody in time: only what was asked about is off, the run goes on.
    const value = {
      request_id: requestId,
      decision_type: 'continue',
      reason_code: state === 'expired' ? `${question.kind}_timed_out` : `${question.kind}_denied`,
      role: 'judge',
      judge_decision: { decision: asText(state), reason: typeof reason === 'string' ? reason : '' },
    };
    return frames(at, ['run.coordination.decision', value]);
  }

  function said(at: string, message: Message): readonly RunEvent[] {
    const { content, hidden, files } = readMessage(message);
    const value = {
      task_id: message.id,
      content,
      outcome: 'succeeded',
      request_id: requestId,
      ...(files.length > 0 && { artifact_refs: files }),
    };
    const told = frames(at, ['step.done', value]);
    return hidden ? told.map((event) => ({ ...event, payload: { ...event.payload, redacted: true } })) : told;
  }

  /** What the door itself noted about the worker. */
  function marked(at: string, { protocol, method }: JsonObject): readonly RunEvent[] {
    if (protocol !== 'runs') return [];
    if (method === 'run.worker.stalled' && status === 'running') return stalled(at);
    if (method === 'run.resumed' && status === 'stalled') return moved(at, 'run.resumed', 'running');
    return [];
  }

  function stalled(at: string): readonly RunEvent[] {
    return moved(at, 'run.worker.stalled', 'stalled', 'heartbeat_lost');
  }

  function plainly({ event, payload, created_at: at }: CoreEvent): readonly RunEvent[] {
    const { task, message, ask } = payload as unknown as { task: Task; message: Message; ask: AskRecord };
    switch (event) {
      case 'task.started':
        return moved(at, 'run.worker.started', 'running', null);
      case 'task.completed': {
        // Whoever was given up had only been quiet.
        const back = status === 'stalled' ? moved(at, 'run.resumed', 'running') : [];
        return [...back, ...moved(at, 'run.worker.succeeded', 'succeeded', null)];
      }
      case 'task.failed':
        return failed(at, task);
      case 'task.canceled':
        return moved(at, 'run.cancelled', 'cancelled');
      case 'vendor.tollbridge.recovered': {
        const before = status === 'running' ? stalled(at) : [];
        return [...before, ...moved(at, 'run.resumed', 'running')];
      }
      case 'vendor.tollbridge.passthrough':
        return marked(at, payload);
      case 'vendor.tollbridge.message_delta':
        if (payload.role !== 'assistant') return [];
        return frames(
          at,
          progress('content_delta', asText(payload.message_id), { content_delta: asText(payload.text ?? '') }),
        );
      case 'agent.message':
        return said(at, message);
      case 'tool.requested':
        return requested(at, payload);
      case 'tool.approved':
        return approved(at, payload);
      case 'tool.completed':
        return invoked(at, payload, 'succeeded', null);
      case 'tool.failed':
        return invoked(at, payload, TIMEOUT.test(asText(payload.code ?? '')) ? 'timeout' : 'failed', null);
      case 'tool.denied':
        return invoked(at, payload, 'policy_denied', asText(payload.code ?? payload.rule_id ?? 'policy_denied'));
      case 'vendor.tollbridge.decided':
        return decided(at, payload as unknown as DecidedPayload);
      case 'vendor.tollbridge.ask_opened':
        return asked(at, ask);
      case 'vendor.tollbridge.ask_closed':
        return answered(at, payload);
      case 'user.cancel_requested':
        rejecting = isObject(payload.failure) && payload.failure.code === REJECTED;
        return [];
      default:
        return [];
    }
  }

  /** A remote that speaks this protocol too has said it already: its own frame, as it came. */
  function asItCame(event: CoreEvent): readonly RunEvent[] | undefined {
    const { runs } = event.ext ?? {};
    if (!isObject(runs) || runs.frame === undefined) return undefined;
    keepBooks(event);
    const { frame } = runs;
    if (!isObject(frame) || typeof frame.type !== 'string') return [];
    return frames(event.created_at, [frame.type, isObject(frame.value) ? frame.value : {}]);
  }

  function keepBooks({ event, payload }: CoreEvent): void {
    const id = asText(payload.tool_call_id);
    if (event === 'tool.requested') calls.set(id, { name: asText(payload.name), input: undefined, since: 0 });
    else if (/^tool\.(completed|failed|denied)$/.test(event)) calls.delete(id);
  }

  return {
    tell(event) {
      const { created_at: at, payload } = event;
      if (event.event === 'task.submitted') return submitted(at, payload.task as unknown as Task);
      if (!created || isOver(status)) return [];
      if (OTHERS.test(event.event)) return plainly(event);
      heard = at;
      // Whoever was given up speaks again.
      const back = status === 'stalled' ? moved(at, 'run.resumed', 'running') : [];
      return [...back, ...(asItCame(event) ?? plainly(event))];
    },
    standing: () => ({ status, seq, questions, updated_at: updated, heard_at: heard || updated }),
  };
}
