/** What is written when a task ends: its last events, its outcome, and what its receipt says of it. Reads and writes nothing. */
import { OUTCOME_UNKNOWN, outcomeOfEnd } from '../../model/call-outcomes.ts';
import type { End } from '../../model/commands.ts';
import type { EventDraft } from '../../model/events.ts';
import type { Artifact, Failure, Outcome, Persona, Task, Workspace } from '../../model/resources.ts';
import type { JsonObject } from '../../model/schema.ts';
import type { AutonomyTier } from '../../model/words.ts';
import type { Account, At, Draft, Ids, ReceiptClaim, ReplayClaim } from '../../ports/index.ts';
import { atMost, type PolicySubject, tierOf } from '../actions/policy-data.ts';
import type { Asks } from '../approvals/asks.ts';
import type { Log } from '../events/log.ts';
import type { RunRow } from '../events/rows.ts';
import { idsOfReplay } from '../replay/ids.ts';
import { inTask, move, ours, outcomeState } from './lifecycle.ts';

export interface EndOptions {
  readonly by: string;
  readonly reason?: string;
  readonly stillRunning?: boolean;
  /** The work was canceled and has stopped, so its open calls were stopped with it. */
  readonly stopped?: boolean;
  /** The process that did the work is gone; calls it had begun may or may not have run. */
  readonly interrupted?: boolean;
  readonly replay?: ReplayClaim & {
    readonly times: { created_at: string; started_at: string; completed_at: string };
    readonly tiers: { start: string; end: string };
  };
  /** The task's workspace, persona and quota, where known: they never change. */
  readonly belongs?: PolicySubject;
  /** Only if the run still belongs to this process. Another may have taken it over. */
  readonly onlyIf?: (run: RunRow | undefined) => boolean;
}

export interface EndingFacts {
  readonly persona: Persona | undefined;
  readonly workspace: Workspace | undefined;
  readonly budget: ReceiptClaim['budget_limit'];
  readonly limits: ReceiptClaim['limits'];
  readonly files: boolean;
  readonly artifacts: readonly Artifact[];
}

export type ReceiptState = 'issued' | 'not wanted' | 'unavailable';

export const NO_RECEIPT = { code: 'receipt_unavailable', message: 'a receipt could not be issued' } as const;

export interface EndingDeps {
  readonly ids: Ids;
  readonly asks: Pick<Asks, 'withdraw'>;
  readonly log: Pick<Log, 'clean'>;
  readonly defaultTier: () => AutonomyTier;
}

export interface EndingTask {
  readonly task: Task;
  readonly run: RunRow | undefined;
  readonly end: End;
  readonly options: EndOptions;
  readonly account: Account;
  readonly facts: EndingFacts;
  readonly receipt: ReceiptState;
}

/** The task as it is when it has ended, and the draft of the commit that ends it. */
export function ending(
  deps: EndingDeps,
  at: At,
  { task, run, end, options, account, facts, receipt }: EndingTask,
): { task: Task; draft: Draft } {
  const stem = ours(task).replay?.stem;
  const names = stem ? idsOfReplay(stem) : deps.ids;
  const receiptId = receipt === 'issued' ? names.next('receipt') : null;
  const outcomeId = names.next('outcome');
  const before: EventDraft[] = [...deps.asks.withdraw(task, run, at.now, `the task ended as ${end.state}`)];
  for (const call of account.open()) {
    before.push({ event: 'tool.failed', payload: unended(call, options), ...inTask(task) });
  }
  // A completed task passes through WORKING, whatever it waited for when its agent reported the end.
  let current = task;
  if (task.status === 'SUBMITTED' && end.state === 'COMPLETED') {
    const started = move(current, 'WORKING', { now: at.now });
    before.push(...started.events);
    current = started.task;
  } else if (end.state === 'COMPLETED' && task.status !== 'WORKING') {
    const back = move(current, 'WORKING', { now: at.now, reason: 'the agent went on without an answer' });
    before.push(...back.events);
    current = back.task;
  }

  const failure = end.state === 'FAILED' ? (end.failure ?? { code: 'failed', message: 'the agent failed' }) : undefined;
  const outcome = outcomeOf(outcomeId, current, end, failure, receiptId, facts, at.now, receipt);
  if (receipt === 'unavailable' && failure?.code !== NO_RECEIPT.code) {
    before.push({ ...inTask(task), event: 'vendor.tollbridge.note', payload: NO_RECEIPT });
  }
  if (receiptId) {
    before.push({
      event: 'receipt.issued',
      receipt_id: receiptId,
      payload: {
        receipt_id: receiptId,
        subject: { object: options.replay ? 'replay_segment' : 'task', id: task.id },
      },
      ...inTask(task),
    });
  }
  const ended = move({ ...current, outcome_id: outcomeId, ...(receiptId && { receipt_id: receiptId }) }, end.state, {
    now: at.now,
    actor: options.by,
    ...(options.reason && { reason: options.reason }),
    ...(failure && { failure }),
    more: {
      outcome: outcome,
      ...(end.not_reported && { not_reported: end.not_reported }),
      ...(end.loss && end.loss.length > 0 && { loss: end.loss }),
      ...(options.stillRunning && { still_running: true }),
      ...(run?.holds && { released: run.holds }),
    },
  });
  const tier = atMost(tierOf(facts.persona, deps.defaultTier()), ours(task).most);
  const tiers = options.replay?.tiers ?? { start: ours(task).tier ?? tier, end: tier };
  const times = options.replay?.times ?? {
    created_at: task.created_at,
    started_at: ended.task.started_at ?? task.created_at,
    completed_at: at.now,
  };
  return {
    task: ended.task,
    draft: {
      events: [...before, ...ended.events],
      born: [outcomeId],
      ...(receiptId && {
        receipt: {
          chain: task.workspace_id,
          seal: (head, written) =>
            account.seal(
              {
                receipt_id: receiptId,
                // The log redacts the events; the task members in the receipt must be redacted as well.
                task: deps.log.clean(repeatedOf(ended.task)),
                final_state: outcomeState(end.state),
                times: { issued_at: options.replay ? times.completed_at : at.now, ...times },
                tiers,
                ...(facts.budget && { budget_limit: facts.budget }),
                ...(facts.limits && { limits: facts.limits }),
                last: before,
                ...(facts.workspace?.tenant_id && { tenant_id: facts.workspace.tenant_id }),
                ...(end.not_reported && { not_reported: deps.log.clean(end.not_reported) }),
                ...(options.stillRunning && { still_running: true }),
                ...(options.interrupted && { interrupted: true }),
                ...(options.replay && { replay: options.replay }),
              },
              head,
              written,
            ),
        },
      }),
    },
  };
}

function repeatedOf(task: Task): ReceiptClaim['task'] {
  return {
    id: task.id,
    session_id: task.session_id,
    workspace_id: task.workspace_id,
    created_at: task.created_at,
    started_at: task.started_at ?? null,
    branch_id: task.branch_id ?? null,
    persona_id: task.persona_id ?? null,
    parent_task_id: task.parent_task_id ?? null,
    failure: task.failure ?? null,
  };
}

/** The outcome of a call without an end when its work ends: only a stopped call, or one that never began, is known not to continue. */
function unended({ tool_call_id, name, cleared }: OpenCall, options: EndOptions): JsonObject {
  const code = cleared && !options.stopped ? OUTCOME_UNKNOWN : 'canceled';
  const error = cleared ? whyUnended(options) : 'it was not let through before the work ended';
  const outcome = outcomeOfEnd('tool.failed', { code });
  return { tool_call_id, name, status: 'error', error, code, outcome };
}

function whyUnended({ stopped, interrupted, stillRunning }: EndOptions): string {
  if (stopped) return 'stopped before it ended';
  if (interrupted) return 'it may have happened: the process that ran it ended first, and it will not be tried again';
  if (stillRunning) return 'it may have happened: a stop was requested, and its end was not seen';
  return 'it may have happened: it was still open when its work ended';
}
type OpenCall = ReturnType<Account['open']>[number];

function outcomeOf(
  id: string,
  task: Task,
  end: End,
  failure: Failure | undefined,
  receiptId: string | null,
  { artifacts }: EndingFacts,
  now: string,
  receipt: ReceiptState,
): Outcome & { workspace_id: string; session_id: string } {
  const summaries = { COMPLETED: 'completed', FAILED: failure?.message ?? 'failed', CANCELED: 'canceled' };
  return {
    id,
    object: 'outcome',
    created_at: now,
    updated_at: now,
    metadata: receipt === 'unavailable' ? { receipt } : {},
    task_id: task.id,
    workspace_id: task.workspace_id,
    session_id: task.session_id,
    status: outcomeState(end.state),
    summary: end.summary ?? summaries[end.state],
    artifacts: artifacts.map((artifact) => ({ ...artifact, receipt_id: receiptId })),
    receipt_id: receiptId,
    ...(failure && { failure }),
    ...(end.metrics && { metrics: end.metrics }),
  };
}
