/**
 * Renders a run from the log: reads canonical events in order and returns the run's own events, numbered from one without gaps.
 * The same log always gives the same run, so a number is a permanent cursor. Pure, and stores no payloads.
 */

import {
  type DECISION_TYPES,
  isOver,
  NOT_RENDERED,
  type RunEventType,
  type RunStatus,
} from '../../../../mappings/runs.ts';
import {
  type AskRecord,
  asText,
  type CoreEvent,
  emptyTaskView,
  evolve,
  isObject,
  type Json,
  type JsonObject,
  leftOut,
  type Message,
  type MessageView,
  type Task,
  type TaskView,
} from '../../../../src/index.ts';
import { readMessage } from '../../translate.ts';
import { type Rendered, type RunEvent, toRunEvent } from '../frames.ts';
import { CLASS_LIMIT, REJECTED, runMetadataOf, UNANSWERED } from '../run-metadata.ts';
import { toDecided, toDecision, toEnded, toProgress, toRequested } from './calls.ts';
import { type RunQuestion, toAnswered, toAsked, toQuestion } from './questions.ts';

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

/** Events of people and doors are no sign of life of the worker. */
const OTHERS =
  /^(user\.|session\.|receipt\.|task\.(submitted|completed|failed|canceled)|vendor\.tollbridge\.(passthrough|bound|ask_closed|ask_used|recovered)$)/;

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
/** Of an unfinished step only the beginning is shown. */
const LONGEST_STEP = 64 * 1024;

export function createRunRenderer(): RunRenderer {
  let view: TaskView = emptyTaskView('open');
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
  /** The routing hint: which role takes the first step. */
  let hint: string | undefined;
  /** The steps of the last plan, to detect a changed one. */
  let planned: string | undefined;
  /** The questions as they were shown: whether an act is shown whole takes its whole text to find out. */
  const shown = new WeakMap<AskRecord, RunQuestion>();

  function frames(at: string, ...rendered: readonly Rendered[]): readonly RunEvent[] {
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
    rejecting = false;
    planned = undefined;
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

  function failed(at: string, { failure }: Task, unfinished: MessageView | undefined): readonly RunEvent[] {
    const code = failure?.code ?? 'failed';
    const limit = /quota|limit_exceeded/.test(`${code} ${asText(failure?.details?.code ?? '')}`);
    const value = { request_id: requestId, reason_code: 'limit_exceeded' };
    const before = limit ? frames(at, ['run.limit_exceeded', value]) : [];
    // Work that was never begun had no step.
    const ended = status === 'queued' ? [] : stepEnded(at, unfinished, 'fail_run', code);
    const judged = limit || JUDGED.has(code) ? decision(at, 'stop', code, 'judge', failure?.message) : [];
    return [...ended, ...before, ...judged, ...moved(at, 'run.worker.failed', 'failed', code)];
  }

  /** An unfinished step: its text so far, and the outcome. */
  function stepEnded(
    at: string,
    unfinished: MessageView | undefined,
    outcome: 'retry_step' | 'fail_run',
    reason: string,
  ): readonly RunEvent[] {
    const { id, written } =
      unfinished?.role === 'assistant' ? unfinished : { id: asText(view.task?.id ?? ''), written: '' };
    const content = written.slice(0, LONGEST_STEP);
    return frames(at, ['step.done', { task_id: id, content, outcome, reason_code: reason, request_id: requestId }]);
  }

  function decision(
    at: string,
    type: (typeof DECISION_TYPES)[number],
    reason_code: string,
    role: 'planner' | 'worker' | 'judge',
    reason = '',
  ): readonly RunEvent[] {
    const judge = role === 'judge' ? { judge_decision: { decision: type, reason } } : {};
    return frames(at, toDecision(requestId, type, reason_code, role, judge));
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

  function said(at: string, message: Message): readonly RunEvent[] {
    const { content, hidden, files } = readMessage(message);
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

  function plainly(event: CoreEvent, before: Before): readonly RunEvent[] {
    const { payload, created_at: at } = event;
    // Each kind has the ones it is read for.
    const { task, message, ask } = payload as unknown as { task: Task; message: Message; ask: AskRecord };
    switch (event.event) {
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
        return failed(at, task, before.writing);
      case 'task.canceled':
        return moved(at, 'run.cancelled', 'cancelled');
      case 'vendor.tollbridge.recovered': {
        const lost = status === 'running' ? stalled(at) : [];
        // The agent takes the step again that its process did not finish.
        const again = stepEnded(at, before.writing, 'retry_step', 'worker_lost');
        return [...lost, ...again, ...moved(at, 'run.resumed', 'running')];
      }
      case 'vendor.tollbridge.passthrough':
        return marked(at, payload);
      case 'vendor.tollbridge.message_delta': {
        if (payload.role !== 'assistant') return [];
        const content_delta = asText(payload.text ?? '');
        return frames(at, toProgress('content_delta', asText(payload.message_id), { content_delta }, requestId));
      }
      case 'agent.message':
        return said(at, message);
      case 'tool.requested':
        return frames(at, ...toRequested(event, requestId));
      case 'tool.completed':
      case 'tool.failed':
      case 'tool.denied':
        return frames(at, ...toEnded(event, view.calls.get(asText(payload.tool_call_id)), requestId));
      case 'vendor.tollbridge.decided':
        return frames(at, ...toDecided(payload, requestId));
      case 'vendor.tollbridge.ask_opened':
        return frames(at, ...toAsked(ask, requestId));
      case 'vendor.tollbridge.ask_closed':
        if (!before.asked) return [];
        return frames(at, ...toAnswered(before.asked, payload, { requestId, rejecting, failing }));
      case 'user.cancel_requested':
        rejecting = isObject(payload.failure) && payload.failure.code === REJECTED;
        failing = isObject(payload.failure) && payload.failure.code === UNANSWERED;
        return [];
      case 'task.submitted': // rendered before any other event
        return [];
      default:
        return leftOut(NOT_RENDERED, event.event);
    }
  }

  /** The original frame of a remote that uses this protocol too, unchanged. */
  function asItCame(event: CoreEvent): readonly RunEvent[] | undefined {
    const { runs } = event.ext ?? {};
    if (!isObject(runs) || runs.frame === undefined) return undefined;
    const { frame } = runs;
    if (!isObject(frame) || typeof frame.type !== 'string') return [];
    return frames(event.created_at, [frame.type, isObject(frame.value) ? frame.value : {}]);
  }

  /** The event changes the view before it is rendered: what it ends is looked up first. */
  function take(event: CoreEvent): Before {
    const before = { writing: view.writing, asked: view.questions.get(asText(event.payload.ask_id)) };
    evolve(view, event);
    return before;
  }

  function questionOf(ask: AskRecord): RunQuestion {
    const question = shown.get(ask) ?? toQuestion(ask);
    shown.set(ask, question);
    return question;
  }

  return {
    render(event) {
      const { created_at: at } = event;
      if (event.event === 'task.submitted') {
        view = evolve(emptyTaskView('open'), event);
        return submitted(at, event.payload.task);
      }
      if (!created || isOver(status)) return [];
      const before = take(event);
      if (OTHERS.test(event.event)) return plainly(event, before);
      received = at;
      // A stalled worker has given a sign again.
      const back = status === 'stalled' ? moved(at, 'run.resumed', 'running') : [];
      return [...back, ...(asItCame(event) ?? plainly(event, before))];
    },
    standing: () => ({
      status,
      seq,
      questions: [...view.questions.values()].map(questionOf),
      updated_at: updated,
      received_at: received || updated,
    }),
  };
}

interface Before {
  readonly writing: MessageView | undefined;
  /** The open question that the event names. */
  readonly asked: AskRecord | undefined;
}
