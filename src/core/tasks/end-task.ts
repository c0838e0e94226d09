/**
 * Ends tasks: one terminal event, its outcome and its receipt in a single commit, and never a second end. The task accounts hold
 * the data for the receipt.
 */
import type { End } from '../../model/commands.ts';
import type { CoreEvent } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { Artifact, Failure, Persona, Task, Workspace } from '../../model/resources.ts';
import { isTerminal } from '../../model/words.ts';
import type { Logger, QuotaRules, ReceiptIssuer, RefusedCall, ReportedAct, Row, Store } from '../../ports/index.ts';
import type { ReadPolicyData } from '../actions/policy-data.ts';
import type { Log } from '../events/log.ts';
import type { RunRow } from '../events/rows.ts';
import { brokenOffReplay } from '../replay/broken-off.ts';
import { type EndingDeps, type EndingFacts, type EndOptions, ending, NO_RECEIPT, type ReceiptState } from './ending.ts';
import { readsOf } from './lifecycle.ts';
import { createTaskAccounts, nextEvent, type TaskAccount } from './task-accounts.ts';

export interface EndingsDeps extends EndingDeps {
  readonly store: Store;
  readonly log: Log;
  readonly issuer: ReceiptIssuer;
  readonly logger: Logger;
  readonly quotas: Pick<QuotaRules, 'budget' | 'otherLimits'>;
  readonly policyData: ReadPolicyData;
}

export interface Endings {
  /** Called with every commit: keeps the accounts of running tasks current. */
  observe(events: readonly CoreEvent[]): void;
  /** The task afterwards, and whether this call ended it. */
  finish(taskId: string, end: End, options: EndOptions): Promise<{ task: Task; won: boolean }>;
  /** Starts an account from the log: all of the task is read, unless its events are given. */
  open(taskId: string, written?: readonly CoreEvent[]): undefined | Promise<unknown>;
  /** Why a call of this task should not have run. Synchronous where the account is in memory and has no objection. */
  refusal(
    taskId: string,
    callId: string,
    reported?: ReportedAct,
  ): RefusedCall | undefined | Promise<RefusedCall | undefined>;
}

export function createEndings(deps: EndingsDeps): Endings {
  const { store, log, issuer } = deps;
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
    facts: EndingFacts,
    tries: number,
  ) {
    let result = { task: undefined as Task | undefined, won: false };
    const wantsReceipt = facts.persona?.receipt_policy !== 'disabled';
    const commit = (receipt: ReceiptState, as: End) =>
      log.commit({
        reads: readsOf(taskId),
        decide(at) {
          const task = at.get<Task & Row>('task', taskId);
          const run = at.get<RunRow>('run', taskId);
          if (!task) throw new Fault('not_found', `no task ${taskId}`);
          if (isTerminal(task.status) || (options.onlyIf && !options.onlyIf(run))) {
            result = { task, won: false };
            return { events: [] };
          }
          accounts.readUp();
          // A receipt over unread events would claim more than is known.
          if (at.sequence('task', taskId) !== entry.account.sequence || entry.files !== facts.files)
            throw new Stale(tries);
          const { account } = entry;
          const draft = ending(deps, at, { task, run, end: as, options, account, facts, receipt });
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

/** An event was written to the task after its account was read. */
class Stale extends Fault {
  constructor(tries: number) {
    super('conflict', `the task changed while its receipt was being made (${tries + 1} times)`);
  }
}
const MOST_TRIES = 50;
const NOTHING_LIMITS = { quotas: [] } as const;

function withoutReceipt(end: End): End {
  const failure: Failure = { ...NO_RECEIPT, message: 'the persona requires a receipt and none could be issued' };
  return { ...end, state: 'FAILED', failure };
}
