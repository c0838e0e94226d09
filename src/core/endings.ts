/**
 * How tasks end: one terminal event, its outcome and its receipt in a single commit, and never a second end.
 * The account behind the receipt is in the books.
 */

import type { End } from '../model/commands.ts';
import type { CoreEvent, EventDraft } from '../model/events.ts';
import { Fault } from '../model/faults.ts';
import { own } from '../model/own.ts';
import type { Artifact, Failure, Outcome, Persona, Quota, Task, Workspace } from '../model/resources.ts';
import type { Json, JsonObject } from '../model/schema.ts';
import { type AutonomyTier, isTerminal } from '../model/words.ts';
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
} from '../ports.ts';
import type { Asks } from './asks.ts';
import { type Book, createBooks, nextWord } from './books.ts';
import { inTask, move, ours, outcomeState } from './lifecycle.ts';
import type { Log } from './log.ts';
import { tierOf } from './policy-data.ts';
import type { Run } from './rows.ts';

export interface EndingsDeps {
  readonly store: Store;
  readonly log: Log;
  readonly asks: Asks;
  readonly issuer: ReceiptIssuer;
  readonly ids: Ids;
  readonly logger: Logger;
  readonly quotas: Pick<QuotaRules, 'budget'>;
  readonly defaultTier: () => AutonomyTier;
}

export interface EndOptions {
  readonly by: string;
  readonly reason?: string;
  readonly stillRunning?: boolean;
  /** The process that did the work is gone; what it had begun may or may not have happened. */
  readonly interrupted?: boolean;
  readonly replay?: ReplayClaim & {
    readonly times: { created_at: string; started_at: string; completed_at: string };
    readonly tiers: { start: string; end: string };
  };
  /** What the task belongs to, where that is at hand: it stays as long as the task does. */
  readonly belongs?: Pick<Task, 'persona_id' | 'workspace_id' | 'quota_id'>;
  /** Only if the run still belongs to this process. Another may have taken it over. */
  readonly onlyIf?: (run: Run | undefined) => boolean;
}

export interface Endings {
  /** Called with every commit: keeps the accounts of running tasks current. */
  observe(events: readonly CoreEvent[]): void;
  /** The task as it stands afterwards, and whether this call ended it. */
  finish(taskId: string, end: End, options: EndOptions): Promise<{ task: Task; won: boolean }>;
  /** Starts keeping an account from what the log already holds: all of it is read, unless it is at hand. */
  open(taskId: string, written?: readonly CoreEvent[]): undefined | Promise<unknown>;
  openCalls(taskId: string): Promise<ReturnType<Account['open']>>;
  /** Why a call of this task should not have run. At once where the account is at hand and has no objection. */
  refusal(taskId: string, callId: string, told?: ReportedAct): Refusal | undefined | Promise<Refusal | undefined>;
}

export function createEndings(deps: EndingsDeps): Endings {
  const { store, log, asks, issuer, ids } = deps;
  const books = createBooks(store, issuer);

  async function finish(taskId: string, end: End, options: EndOptions): Promise<{ task: Task; won: boolean }> {
    const known = options.belongs ?? (await store.get<Task & Row>('task', taskId));
    if (!known) throw new Fault('not_found', `no task ${taskId}`);
    const persona = known.persona_id ? await store.get<Persona & Row>('persona', known.persona_id) : undefined;
    const workspace = await store.get<Workspace & Row>('workspace', known.workspace_id);
    const quotas = [persona?.quota_id, workspace?.quota_id, known.quota_id].filter((id) => typeof id === 'string');
    // A replay spends nothing, so nothing limits it.
    const budget = options.replay || quotas.length === 0 ? undefined : await budgetFor(new Set(quotas));

    for (let tries = 0; ; tries += 1) {
      books.readUp();
      // What this process wrote it has seen; whatever else there is turns up as stale, and then it is read.
      const book = (tries % 2 === 0 && books.get(taskId)) || (await books.catchUp(taskId));
      try {
        const { files } = book;
        const facts = { persona, workspace, budget, files, artifacts: files ? await filesOf(taskId) : [] };
        return await tryFinish(taskId, end, options, book, facts, tries);
      } catch (cause) {
        if (!(cause instanceof Stale && tries < MOST_TRIES)) throw cause;
        if (tries % 2 === 1) await nextWord(book);
      }
    }
  }

  async function budgetFor(named: ReadonlySet<string>): Promise<Known['budget']> {
    const found = await Promise.all([...named].map((id) => store.get<Quota & Row>('quota', id)));
    return deps.quotas.budget(found.filter((quota) => quota !== undefined));
  }

  async function filesOf(taskId: string): Promise<readonly Artifact[]> {
    const all = await store.list<Artifact & Row>({ object: 'artifact', where: { task_id: taskId }, limit: 200 });
    return all.filter(({ metadata }) => metadata.spilled !== true);
  }

  async function tryFinish(taskId: string, end: End, options: EndOptions, book: Book, facts: Known, tries: number) {
    let result = { task: undefined as Task | undefined, won: false };
    const wantsReceipt = facts.persona?.receipt_policy !== 'disabled';
    const commit = (receipt: ReceiptState, as: End) =>
      log.commit({
        reads: [
          { object: 'task', id: taskId },
          { object: 'run', id: taskId },
        ],
        decide(at) {
          const task = at.get<Task & Row>('task', taskId);
          const run = at.get<Run>('run', taskId);
          if (!task) throw new Fault('not_found', `no task ${taskId}`);
          if (isTerminal(task.status) || (options.onlyIf && !options.onlyIf(run))) {
            result = { task, won: false };
            return { events: [] };
          }
          books.readUp();
          // A receipt over events it has not read would claim what it does not know.
          if (at.sequence('task', taskId) !== book.account.sequence || book.files !== facts.files)
            throw new Stale(tries);
          const draft = ending(at, task, run, as, options, book.account, facts, receipt);
          result = { task: draft.task, won: true };
          return draft.draft;
        },
      });

    try {
      await commit(wantsReceipt ? 'issued' : 'not wanted', end);
    } catch (cause) {
      if (cause instanceof Stale || (cause instanceof Fault && cause.kind !== 'internal')) throw cause;
      // The receipt could not be made. Where one is required the task has failed; elsewhere it ends and says so.
      deps.logger.error({ err: cause, task: taskId }, 'receipt could not be issued');
      await commit('unavailable', facts.persona?.receipt_policy === 'required' ? withoutReceipt(end) : end);
    }
    if (result.won || (result.task && isTerminal(result.task.status))) books.close(taskId);
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
    const receiptId = receipt === 'issued' ? ids.next('receipt') : null;
    const outcomeId = ids.next('outcome');
    const before: EventDraft[] = [...asks.withdraw(task, run, at.now, `the task ended as ${end.state}`)];
    for (const call of account.open()) {
      const code = options.interrupted && call.cleared ? 'outcome_unknown' : 'canceled';
      before.push({
        event: 'tool.failed',
        payload: { tool_call_id: call.tool_call_id, name: call.name, status: 'error', error: own(WORDS, code), code },
        ...inTask(task),
      });
    }
    // A completed task has passed through WORKING, whatever it was waiting for when its agent said it was done.
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
        outcome: outcome as unknown as Json,
        ...(end.not_reported && { not_reported: end.not_reported }),
        ...(options.stillRunning && { still_running: true }),
      } as JsonObject,
    });
    const tier = tierOf(facts.persona, deps.defaultTier());
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
            seal: (head) =>
              account.seal(
                {
                  receipt_id: receiptId,
                  // The log cleans the events; what else the receipt repeats has to be as clean.
                  task: log.clean(repeatedOf(ended.task)),
                  final_state: outcomeState(end.state),
                  times: { issued_at: options.replay ? times.completed_at : at.now, ...times },
                  tiers,
                  ...(facts.budget && { budget_limit: facts.budget }),
                  last: before,
                  ...(facts.workspace?.tenant_id && { tenant_id: facts.workspace.tenant_id }),
                  ...(end.not_reported && { not_reported: log.clean(end.not_reported) }),
                  ...(options.stillRunning && { still_running: true }),
                  ...(options.interrupted && { interrupted: true }),
                  ...(options.replay && { replay: options.replay }),
                },
                head,
              ),
          },
        }),
      },
    };
  }

  return {
    observe: books.observe,
    finish,
    open: books.open,
    async openCalls(taskId) {
      return (await books.catchUp(taskId)).account.open();
    },
    refusal(taskId, callId, told) {
      books.readUp();
      const book = books.get(taskId);
      if (book && !book.behind && !book.account.refusal(callId, told)) return undefined;
      // An answer given in another process may have let it through since.
      return books.catchUp(taskId).then(({ account }) => account.refusal(callId, told));
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
  readonly files: boolean;
  readonly artifacts: readonly Artifact[];
}

/** Something was written to the task after its account was read. */
class Stale extends Fault {
  constructor(tries: number) {
    super('conflict', `the task changed while its receipt was being made (${tries + 1} times)`);
  }
}
const MOST_TRIES = 50;

const WORDS: Readonly<Record<string, string>> = {
  outcome_unknown: 'it may have happened: the process that ran it ended first, and it will not be tried again',
  canceled: 'stopped before it ended',
};

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
    artifacts: [...artifacts],
    receipt_id: receiptId,
    ...(failure && { failure }),
    ...(end.metrics && { metrics: end.metrics }),
  };
}
