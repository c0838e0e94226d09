/**
 * Ends tasks: one terminal event, its outcome and its receipt in a single commit, and never a second end. The task accounts hold
 * the data for the receipt.
 */

import { OUTCOME_UNKNOWN, outcomeOfEnd } from '../../model/call-outcomes.ts';
import type { End } from '../../model/commands.ts';
import type { CoreEvent, EventDraft } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { Artifact, Failure, Outcome, Persona, Task, Workspace } from '../../model/resources.ts';
import type { JsonObject } from '../../model/schema.ts';
import { type AutonomyTier, isTerminal } from '../../model/words.ts';
import type {
  Account,
  At,
  Draft,
  Ids,
  Logger,
  QuotaRules,
  ReceiptClaim,
  ReceiptIssuer,
  Refusal,
  ReplayClaim,
  ReportedAct,
  Row,
  Store,
} from '../../ports/index.ts';
import { atMost, type PolicySubject, type ReadPolicyData, tierOf } from '../actions/policy-data.ts';
import type { Asks } from '../approvals/asks.ts';
import type { Log } from '../events/log.ts';
import type { Run } from '../events/rows.ts';
import { brokenOffReplay } from '../replay/broken-off.ts';
import { idsOfReplay } from '../replay/ids.ts';
import { inTask, move, ours, outcomeState, readsOf } from './lifecycle.ts';
import { createTaskAccounts, nextEvent, type TaskAccount } from './task-accounts.ts';

export interface EndingsDeps {
  readonly store: Store;
  readonly log: Log;
  readonly asks: Asks;
  readonly issuer: ReceiptIssuer;
  readonly ids: Ids;
  readonly logger: Logger;
  readonly quotas: Pick<QuotaRules, 'budget' | 'otherLimits'>;
  readonly policyData: ReadPolicyData;
  readonly defaultTier: () => AutonomyTier;
}

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
  readonly onlyIf?: (run: Run | undefined) => boolean;
}

export interface Endings {
  /** Called with every commit: keeps the accounts of running tasks current. */
  observe(events: readonly CoreEvent[]): void;
  /** The task afterwards, and whether this call ended it. */
  finish(taskId: string, end: End, options: EndOptions): Promise<{ task: Task; won: boolean }>;
  /** Starts an account from the log: all of the task is read, unless its events are given. */
  open(taskId: string, written?: readonly CoreEvent[]): undefined | Promise<unknown>;
  /** Why a call of this task should not have run. Synchronous where the account is in memory and has no objection. */
  refusal(taskId: string, callId: string, reported?: ReportedAct): Refusal | undefined | Promise<Refusal | undefined>;
}

export function createEndings(deps: EndingsDeps): Endings {
  const { store, log, asks, issuer, ids } = deps;
  const accounts = createTaskAccounts(store, issuer);

  async function finish(taskId: string, end: End, requested: EndOptions): Promise<{ task: Task; won: boolean }> {
    const task = requested.belongs ? undefined : await store.get<Task & Row>('task', taskId);
    // A replay that is ended from elsewhere ran none of the acts it repeated: its receipt must not claim them.
    const replay = requested.replay ?? (task && (await brokenOffReplay(store, task)));
    const options = replay ? { ...requested, replay } : requested;
    const known = requested.belongs ?? task;
    if (!known) throw new Fault('not_found', `no task ${taskId}`);
    const persona = known.persona_id ? await store.get<Persona & Row>('persona', known.persona_id) : undefined;
    const workspace = await store.get<Workspace & Row>('workspace', known.workspace_id);
    // A replay charges nothing, so nothing limits it.
    const { quotas } = options.replay ? NOTHING_LIMITS : await deps.policyData(known);
    const budget = quotas.length === 0 ? undefined : deps.quotas.budget(quotas);
    const limits = quotas.length === 0 ? undefined : deps.quotas.otherLimits(quotas);

    for (let tries = 0; ; tries += 1) {
      accounts.readUp();
      // The account has every event this process wrote; others show as stale in the commit, and are then read.
      const entry = (tries % 2 === 0 && accounts.get(taskId)) || (await accounts.catchUp(taskId));
      try {
        const { files } = entry;
        const facts = { persona, workspace, budget, limits, files, artifacts: files ? await filesOf(taskId) : [] };
        return await tryFinish(taskId, end, options, entry, facts, tries);
      } catch (cause) {
        if (!(cause instanceof Stale && tries < MOST_TRIES)) throw cause;
        if (tries % 2 === 1) await nextEvent(entry);
      }
    }
  }

  async function filesOf(taskId: string): Promise<readonly Artifact[]> {
    const all = await store.list<Artifact & Row>({ object: 'artifact', where: { task_id: taskId }, limit: 200 });
    return all.filter(({ metadata }) => metadata.spilled !== true);
  }

  async function tryFinish(
    taskId: string,
    end: End,
    options: EndOptions,
    entry: TaskAccount,
    facts: Known,
    tries: number,
  ) {
    let result = { task: undefined as Task | undefined, won: false };
    const wantsReceipt = facts.persona?.receipt_policy !== 'disabled';
    const commit = (receipt: ReceiptState, as: End) =>
      log.commit({
        reads: readsOf(taskId),
        decide(at) {
          const task = at.get<Task & Row>('task', taskId);
          const run = at.get<Run>('run', taskId);
          if (!task) throw new Fault('not_found', `no task ${taskId}`);
          if (isTerminal(task.status) || (options.onlyIf && !options.onlyIf(run))) {
            result = { task, won: false };
            return { events: [] };
          }
          accounts.readUp();
          // A receipt over unread events would claim more than is known.
          if (at.sequence('task', taskId) !== entry.account.sequence || entry.files !== facts.files)
            throw new Stale(tries);
          const draft = ending(at, task, run, as, options, entry.account, facts, receipt);
          result = { task: draft.task, won: true };
          return draft.draft;
        },
      });

    try {
      await commit(wantsReceipt ? 'issued' : 'not wanted', end);
    } catch (cause) {
      if (cause instanceof Stale || (cause instanceof Fault && cause.kind !== 'internal')) throw cause;
      // The receipt could not be issued. Where one is required the task fails; elsewhere it ends and says so.
      deps.logger.error({ err: cause, task: taskId }, 'receipt could not be issued');
      await commit('unavailable', facts.persona?.receipt_policy === 'required' ? withoutReceipt(end) : end);
    }
    if (result.won || (result.task && isTerminal(result.task.status))) accounts.close(taskId);
    return { task: result.task as Task, won: result.won };
  }

  function ending(
    at: At,
    task: Task,
    run: Run | undefined,
    end: End,
    options: EndOptions,
    account: Account,
    facts: Known,
    receipt: ReceiptState,
  ): { task: Task; draft: Draft } {
    const stem = ours(task).replay?.stem;
    const names = stem ? idsOfReplay(stem) : ids;
    const receiptId = receipt === 'issued' ? names.next('receipt') : null;
    const outcomeId = names.next('outcome');
    const before: EventDraft[] = [...asks.withdraw(task, run, at.now, `the task ended as ${end.state}`)];
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

    const failure =
      end.state === 'FAILED' ? (end.failure ?? { code: 'failed', message: 'the agent failed' }) : undefined;
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
                  task: log.clean(repeatedOf(ended.task)),
                  final_state: outcomeState(end.state),
                  times: { issued_at: options.replay ? times.completed_at : at.now, ...times },
                  tiers,
                  ...(facts.budget && { budget_limit: facts.budget }),
                  ...(facts.limits && { limits: facts.limits }),
                  last: before,
                  ...(facts.workspace?.tenant_id && { tenant_id: facts.workspace.tenant_id }),
                  ...(end.not_reported && { not_reported: log.clean(end.not_reported) }),
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

  return {
    observe: accounts.observe,
    finish,
    open: accounts.open,
    refusal(taskId, callId, reported) {
      accounts.readUp();
      const entry = accounts.get(taskId);
      if (entry && !entry.behind && !entry.account.refusal(callId, reported)) return undefined;
      // An answer given in another process may have allowed the call since.
      return accounts.catchUp(taskId).then(({ account }) => account.refusal(callId, reported));
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

interface Known {
  readonly persona: Persona | undefined;
  readonly workspace: Workspace | undefined;
  readonly budget: ReceiptClaim['budget_limit'];
  readonly limits: ReceiptClaim['limits'];
  readonly files: boolean;
  readonly artifacts: readonly Artifact[];
}

/** An event was written to the task after its account was read. */
class Stale extends Fault {
  constructor(tries: number) {
    super('conflict', `the task changed while its receipt was being made (${tries + 1} times)`);
  }
}
const MOST_TRIES = 50;
const NOTHING_LIMITS = { quotas: [] } as const;

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

type ReceiptState = 'issued' | 'not wanted' | 'unavailable';

const NO_RECEIPT = { code: 'receipt_unavailable', message: 'a receipt could not be issued' } as const;

function withoutReceipt(end: End): End {
  const failure: Failure = { ...NO_RECEIPT, message: 'the persona requires a receipt and none could be issued' };
  return { ...end, state: 'FAILED', failure };
}

function outcomeOf(
  id: string,
  task: Task,
  end: End,
  failure: Failure | undefined,
  receiptId: string | null,
  { artifacts }: Known,
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
