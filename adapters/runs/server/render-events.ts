/**
 * Renders a run from the log: reads canonical events in order and returns the run's own events, numbered from one without gaps.
 * The same log always gives the same run, so a number is a permanent cursor. Pure, and stores no payloads.
 */

import {
  type DECISION_TYPES,
  type InputKind,
  inputKind,
  isOver,
  type RunEventType,
  type RunStatus,
  signalOf,
} from '../../../mappings/runs.ts';
import {
  type AskRecord,
  asText,
  type CoreEvent,
  type DecidedPayload,
  dialogText,
  isObject,
  type Json,
  type JsonObject,
  type Message,
  type Task,
  visibleText,
} from '../../../src/index.ts';
import { decisionIn, ownWord } from '../gateway-extension.ts';
import { readMessage } from '../translate.ts';
import { type RunEvent, toRunEvent } from './frames.ts';
import { CLASS_LIMIT, REJECTED, runMetadataOf, UNANSWERED } from './run-metadata.ts';
import { summarize } from './summary.ts';

export interface RunQuestion {
  readonly ask_id: string;
  readonly kind: 'approval' | 'input';
  readonly input_kind: InputKind;
  readonly reason_code: string;
  /** The whole act was shown, so that it can be approved here. */
  readonly whole: boolean;
}

export interface RunProgress {
  readonly status: RunStatus;
  /** The number of the last rendered event. */
  readonly seq: number;
  /** Oldest first. */
  readonly questions: readonly RunQuestion[];
  readonly updated_at: string;
  /** When the worker last gave a sign of life. */
  readonly received_at: string;
}

export interface RunRenderer {
  render(event: CoreEvent): readonly RunEvent[];
  standing(): RunProgress;
}

interface Call {
  readonly name: string;
  readonly input: Json | undefined;
  /** The requested arguments, where a rule or an approver changed them. */
  readonly asked?: Json | undefined;
  /** The decision on the call, and who made it. */
  readonly ruled?: JsonObject;
  readonly since: number;
}

/** Events of people and doors are no sign of life of the worker. */
const OTHERS =
  /^(user\.|session\.|receipt\.|task\.(submitted|completed|failed|canceled)|vendor\.tollbridge\.(passthrough|bound|ask_closed|ask_used|recovered)$)/;
const TIMEOUT = /time_?out|timed_out|deadline/;

/** The steps of a plan without their progress. */
function stepsOf(entries: Json | undefined): string {
  if (!Array.isArray(entries)) return '';
  const steps = entries.map((entry: Json) => {
    const { content, title, text } = isObject(entry) ? entry : { content: entry };
    return JSON.stringify(content ?? title ?? text ?? null);
  });
  return steps.join(',').slice(0, LONGEST_STEP);
}

/** Failures that the gateway decided, as opposed to the worker's own. */
const JUDGED: ReadonlySet<string> = new Set([REJECTED, UNANSWERED, CLASS_LIMIT, 'quota_exceeded', 'policy_violation']);
/** Of an unfinished step only the beginning is kept. */
const LONGEST_STEP = 64 * 1024;

function grown(step: { id: string; text: string } | undefined, id: string, more: string): { id: string; text: string } {
  const text = step?.id === id ? step.text + more : more;
  return { id, text: text.slice(0, LONGEST_STEP) };
}

export function createRunRenderer(): RunRenderer {
  let status: RunStatus = 'queued';
  let seq = 0;
  let updated = '';
  let received = '';
  let requestId = '';
  let created = false;
  /** Set when a signal has rejected the run: the no that follows is that signal's. */
  let rejecting = false;
  /** Set when a question that was not answered in time fails the run. */
  let failing = false;
  let questions: readonly RunQuestion[] = [];
  /** The step whose text is still being written, and its text so far. */
  let step: { readonly id: string; readonly text: string } | undefined;
  let taskId = '';
  /** The routing hint: which role takes the first step. */
  let hint: string | undefined;
  /** The steps of the last plan, to detect a changed one. */
  let planned: string | undefined;
  const calls = new Map<string, Call>();

  function frames(at: string, ...rendered: readonly (readonly [string, JsonObject])[]): readonly RunEvent[] {
    return rendered.map(([type, value]) => {
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
    const metadata = runMetadataOf(task);
    requestId = metadata?.request_id ?? requestId;
    calls.clear();
    questions = [];
    rejecting = false;
    step = undefined;
    planned = undefined;
    taskId = task.id;
    hint = metadata?.routing_hint;
    if (created) return moved(at, 'run.worker.retry_scheduled', 'queued', null);
    created = true;
    const { streaming, routing_hint } = metadata ?? {};
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
    // Work that was never begun had no step.
    const ended = status === 'queued' ? [] : stepEnded(at, 'fail_run', code);
    const judged = limit || JUDGED.has(code) ? decision(at, 'stop', code, 'judge', failure?.message) : [];
    return [...ended, ...before, ...judged, ...moved(at, 'run.worker.failed', 'failed', code)];
  }

  /** An unfinished step: its text so far, and the outcome. */
  function stepEnded(at: string, outcome: 'retry_step' | 'fail_run', reason: string): readonly RunEvent[] {
    const { id, text } = step ?? { id: taskId, text: '' };
    step = undefined;
    return frames(at, [
      'step.done',
      { task_id: id, content: text, outcome, reason_code: reason, request_id: requestId },
    ]);
  }

  function decision(
    at: string,
    type: (typeof DECISION_TYPES)[number],
    reason_code: string,
    role: 'planner' | 'worker' | 'judge',
    reason = '',
  ): readonly RunEvent[] {
    const judge = role === 'judge' ? { judge_decision: { decision: type, reason } } : {};
    return frames(at, [
      'run.coordination.decision',
      { request_id: requestId, decision_type: type, reason_code, role, ...judge },
    ]);
  }

  /** The role of the first step, where the caller named one. */
  function begun(at: string): readonly RunEvent[] {
    const started = moved(at, 'run.worker.started', 'running', null);
    if (hint === 'require_planning') return [...started, ...decision(at, 'continue', 'planner_first_step', 'planner')];
    if (hint === 'skip_planning') return [...started, ...decision(at, 'continue', 'worker_first_step', 'worker')];
    return started;
  }

  /** The agent has a first plan, or a changed one. Progress on the same plan is no decision. */
  function plan(at: string, entries: Json | undefined): readonly RunEvent[] {
    const steps = stepsOf(entries);
    const before = planned;
    planned = steps;
    if (before === steps) return [];
    return before === undefined
      ? decision(at, 'continue', 'plan_ready', 'worker')
      : decision(at, 'replan', 'plan_changed', 'planner');
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
      const changed = payload.input === undefined ? {} : { input: payload.input, asked: call.asked ?? call.input };
      const ruled = decisionIn(payload, at);
      calls.set(asText(payload.tool_call_id), { ...call, ...changed, ruled, since: Date.parse(at) });
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
        ...ownWord(call, outcome === 'policy_denied' ? decisionIn(payload, at) : call.ruled, {
          ended: outcome === 'failed' ? payload.code : undefined,
          output: outcome === 'policy_denied' ? undefined : payload.output,
        }),
        duration_ms: outcome === 'policy_denied' ? 0 : Math.max(0, Date.parse(at) - call.since),
      },
    ]);
  }

  function decided(at: string, { action, decision }: DecidedPayload): readonly RunEvent[] {
    const call = calls.get(action.tool_call_id ?? '');
    if (call && action.tool_call_id && decision.verdict === 'allow') {
      const ruled = decisionIn({ ...decision, by: decision.engine } as unknown as JsonObject, at);
      calls.set(action.tool_call_id, { ...call, ruled });
    }
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
    const question: RunQuestion = {
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
        tollbridge: { ask_id: ask.id },
        ...(ask.kind === 'approval' && { tool_input_summary: summarize(args) }),
      },
    ]);
  }

  function answered(at: string, { ask_id, state, reason }: JsonObject): readonly RunEvent[] {
    const question = questions.find((each) => each.ask_id === ask_id);
    questions = questions.filter((each) => each !== question);
    const action = Object.hasOwn(signalOf, asText(state)) ? signalOf[asText(state)] : undefined;
    if (!question || state === 'canceled') return [];
    const tollbridge = { ask_id: question.ask_id };
    if (action === 'submit_input')
      return frames(at, ['run.input_received', { request_id: requestId, action, tollbridge }]);
    if (action === 'approve' || (action === 'reject' && rejecting)) {
      return frames(at, ['run.signal_applied', { request_id: requestId, action, tollbridge }]);
    }
    // Not answered in time: where that fails the run, its end says so; otherwise the agent has to replan without the act.
    if (state === 'expired') return failing ? [] : decision(at, 'replan', `${question.kind}_timed_out`, 'planner');
    // Denied at another door: only the act is denied, and the run continues.
    const value = {
      request_id: requestId,
      decision_type: 'continue',
      reason_code: `${question.kind}_denied`,
      role: 'judge',
      judge_decision: { decision: asText(state), reason: typeof reason === 'string' ? reason : '' },
      tollbridge,
    };
    return frames(at, ['run.coordination.decision', value]);
  }

  function said(at: string, message: Message): readonly RunEvent[] {
    const { content, hidden, files } = readMessage(message);
    step = undefined;
    const value = {
      task_id: message.id,
      content,
      outcome: 'succeeded',
      request_id: requestId,
      ...(files.length > 0 && { artifact_refs: files }),
    };
    const rendered = frames(at, ['step.done', value]);
    return hidden ? rendered.map((event) => ({ ...event, payload: { ...event.payload, redacted: true } })) : rendered;
  }

  /** Marks that this door itself recorded about the worker. */
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
        return begun(at);
      case 'vendor.tollbridge.plan':
        return plan(at, payload.entries);
      case 'task.completed': {
        // A worker that was marked as stalled had only been silent.
        const back = status === 'stalled' ? moved(at, 'run.resumed', 'running') : [];
        return [...back, ...moved(at, 'run.worker.succeeded', 'succeeded', null)];
      }
      case 'task.failed':
        return failed(at, task);
      case 'task.canceled':
        return moved(at, 'run.cancelled', 'cancelled');
      case 'vendor.tollbridge.recovered': {
        const before = status === 'running' ? stalled(at) : [];
        // The agent takes the step again that its process did not finish.
        return [...before, ...stepEnded(at, 'retry_step', 'worker_lost'), ...moved(at, 'run.resumed', 'running')];
      }
      case 'vendor.tollbridge.passthrough':
        return marked(at, payload);
      case 'vendor.tollbridge.message_delta':
        if (payload.role !== 'assistant') return [];
        step = grown(step, asText(payload.message_id), asText(payload.text ?? ''));
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
        failing = isObject(payload.failure) && payload.failure.code === UNANSWERED;
        return [];
      default:
        return [];
    }
  }

  /** The original frame of a remote that uses this protocol too, unchanged. */
  function asItCame(event: CoreEvent): readonly RunEvent[] | undefined {
    const { runs } = event.ext ?? {};
    if (!isObject(runs) || runs.frame === undefined) return undefined;
    count(event);
    const { frame } = runs;
    if (!isObject(frame) || typeof frame.type !== 'string') return [];
    return frames(event.created_at, [frame.type, isObject(frame.value) ? frame.value : {}]);
  }

  function count({ event, payload }: CoreEvent): void {
    const id = asText(payload.tool_call_id);
    if (event === 'tool.requested') calls.set(id, { name: asText(payload.name), input: undefined, since: 0 });
    else if (/^tool\.(completed|failed|denied)$/.test(event)) calls.delete(id);
  }

  return {
    render(event) {
      const { created_at: at, payload } = event;
      if (event.event === 'task.submitted') return submitted(at, payload.task as unknown as Task);
      if (!created || isOver(status)) return [];
      if (OTHERS.test(event.event)) return plainly(event);
      received = at;
      // A stalled worker has given a sign again.
      const back = status === 'stalled' ? moved(at, 'run.resumed', 'running') : [];
      return [...back, ...(asItCame(event) ?? plainly(event))];
    },
    standing: () => ({ status, seq, questions, updated_at: updated, received_at: received || updated }),
  };
}
