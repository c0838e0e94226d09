/**
 * Time limits, and limits that change while work runs. Time is charged ahead in slices, in commits like every other charge:
 * concurrent tasks, in one process or several, share the limit and never exceed it. The unused part of a slice is refunded when the
 * task ends; the slice of a dead process stays charged. Work that cannot charge its next slice is stopped. Work outside the gateway
 * goes on while its process is gone: the process that takes it over charges the time since its last slice, and only one process
 * does.
 */
import type { EventDraft } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { Failure, Quota, Task } from '../../model/resources.ts';
import { isTerminal } from '../../model/words.ts';
import type { LimitPassed, Logger, QuotaRules, Row } from '../../ports/index.ts';
import type { Log } from '../events/log.ts';
import type { RunRow } from '../events/rows.ts';
import { readsOf } from '../tasks/lifecycle.ts';
import { chargeEvents } from './charging.ts';
import type { ReadPolicyData } from './policy-data.ts';

/** Called once for each task that is past a hard limit and has to stop. */
export type LimitReached = (task: Pick<Task, 'id'>, passed: LimitPassed) => void;

export interface TimeLimits {
  /** Starts counting a task's time. Returns the limit when no time is left: then the work must not begin. */
  begin(task: Task): Promise<LimitPassed | undefined>;
  /** Counts nothing yet: no time limit applied when the work was accepted. A limit added later is noticed. */
  watch(task: Task): void;
  /** For work outside the gateway that may no longer be counted by any process: continues from the time the log says is charged. */
  takeUp(task: Task): Promise<void>;
  /** The task has ended; the unused part of its slice is refunded. */
  end(taskId: string): void;
  /** Limits have changed: work that is past one of them by now is stopped. */
  recheck(): void;
  close(): void;
}

export interface TimeLimitsDeps {
  readonly log: Pick<Log, 'commit'>;
  readonly policyData: ReadPolicyData;
  readonly quotas: Pick<QuotaRules, 'charge' | 'softPassed' | 'timeLeft' | 'passed'>;
  readonly logger: Logger;
  readonly now: () => string;
  readonly reached: LimitReached;
}

interface Watched {
  readonly task: Task;
  /** The charged time, and since when it is in use. */
  slice:
    | { readonly ms: number; readonly since: number; readonly windows: ReadonlyMap<string, string | null> }
    | undefined;
  timer: NodeJS.Timeout | undefined;
  buying: Promise<LimitPassed | undefined> | undefined;
  stopped: boolean;
  /** The time up to which this process has charged. */
  until: string | undefined;
}

const SHORTEST_SLICE_MS = 50;
const LONGEST_SLICE_MS = 5_000;
/** Slices per limit, so that several tasks can share a small one. */
const SLICES = 10;

export function createTimeLimits({ log, policyData, quotas: rules, logger, now, reached }: TimeLimitsDeps): TimeLimits {
  const watched = new Map<string, Watched>();
  let closed = false;

  function watch(task: Task): Watched {
    const known = watched.get(task.id);
    if (known) return known;
    const fresh: Watched = {
      task,
      slice: undefined,
      timer: undefined,
      buying: undefined,
      stopped: false,
      until: undefined,
    };
    if (!closed) watched.set(task.id, fresh);
    return fresh;
  }

  /** One slice at a time: concurrent requests share the charge. */
  function buy(entry: Watched): Promise<LimitPassed | undefined> {
    entry.buying ??= buyNext(entry).finally(() => {
      entry.buying = undefined;
    });
    return entry.buying;
  }

  /** Charges the next slice to every quota that limits time; undefined when that succeeded or no quota does. */
  async function buyNext(entry: Watched): Promise<LimitPassed | undefined> {
    const { task } = entry;
    const timed = (await policyData(task)).quotas.filter(({ limits }) => Object.hasOwn(limits, 'wall_time_ms'));
    if (timed.length === 0) return undefined;
    let passed: LimitPassed | undefined;
    let ms = 0;
    let until: string | undefined;
    let windows = new Map<string, string | null>();
    await log.commit({
      reads: [...readsOf(task.id), ...timed.map(({ id }) => ({ object: 'quota', id }))],
      decide(at) {
        passed = undefined;
        ms = 0;
        windows = new Map();
        const known = at.get<Task & Row>('task', task.id);
        if (!known || isTerminal(known.status)) return { events: [] };
        const paid = task.assigned_agent_id ? undefined : at.get<RunRow>('run', task.id)?.timed_until;
        const since = paid === undefined || paid === entry.until ? 0 : Date.parse(at.now) - Date.parse(paid);
        // Another process has charged beyond this moment: it does the counting.
        if (since < 0) return { events: [] };
        let most = LONGEST_SLICE_MS;
        for (const { id } of timed) {
          const quota = at.get<Quota & Row>('quota', id);
          const left = quota && rules.timeLeft(quota, at.now);
          if (!quota || left === undefined) continue;
          const allowed = quota.limits.wall_time_ms ?? 0;
          if (left <= since) passed ??= { quota_id: id, limit: 'wall_time_ms', allowed, used: allowed - left + since };
          most = Math.min(most, left - since, Math.max(SHORTEST_SLICE_MS, Math.ceil(allowed / SLICES)));
        }
        if (passed && since === 0) return { events: [] };
        ms = passed ? 0 : most;
        until = new Date(Date.parse(at.now) + ms).toISOString();
        const about = { timed_until: until };
        const charge = { quotas: timed.map(({ id }) => id), amounts: () => ({ wall_time_ms: ms + since }), about };
        return {
          events: chargeEvents(rules, at, task, charge, ({ id, reset_at }) => windows.set(id, reset_at ?? null)),
        };
      },
    });
    if (passed || ms === 0) return passed;
    entry.until = until;
    entry.slice = { ms, since: performance.now(), windows };
    if (watched.get(task.id) === entry) entry.timer = setTimeout(() => goOn(entry), ms).unref();
    // The task ended while its slice was being charged.
    else await giveBack(entry);
    return undefined;
  }

  function goOn(entry: Watched): void {
    if (!watched.has(entry.task.id)) return;
    entry.slice = undefined;
    buy(entry).then(
      (passed) => passed && stop(entry, passed),
      // Time that could not be charged may not be used.
      (cause) => {
        logger.error({ err: cause, task: entry.task.id }, 'the time of a task could not be charged; it is stopped');
        stop(entry, { quota_id: 'unknown', limit: 'wall_time_ms', allowed: 0, used: undefined });
      },
    );
  }

  function stop(entry: Watched, passed: LimitPassed): void {
    if (entry.stopped) return;
    entry.stopped = true;
    reached(entry.task, passed);
  }

  async function giveBack({ slice }: Watched): Promise<void> {
    const unused = slice ? Math.floor(slice.ms - (performance.now() - slice.since)) : 0;
    if (!slice || unused <= 0) return;
    await log.commit({
      reads: [...slice.windows.keys()].map((id) => ({ object: 'quota', id })),
      decide(at) {
        const events = [...slice.windows].flatMap(([id, window]): EventDraft[] => {
          const quota = at.get<Quota & Row>('quota', id);
          const used = quota?.usage.wall_time_ms;
          // A charge in a window that has been reset no longer counts.
          if (!quota || used === undefined || (quota.reset_at ?? null) !== window) return [];
          const usage = { ...quota.usage, wall_time_ms: Math.max(0, used - unused) };
          const payload = { quota_id: id, amounts: { wall_time_ms: -unused }, usage, reset_at: window };
          return [{ event: 'vendor.tollbridge.quota_used', resource: { object: 'quota', id }, payload }];
        });
        return { events };
      },
    });
  }

  async function check(entry: Watched): Promise<void> {
    const { quotas } = await policyData(entry.task);
    const at = now();
    for (const quota of quotas) {
      const passed = rules.passed(quota, at);
      if (passed) return stop(entry, passed);
    }
    if (entry.slice) return;
    const passed = await buy(entry);
    if (passed) stop(entry, passed);
  }

  return {
    watch(task) {
      watch(task);
    },
    begin: (task) => buy(watch(task)),
    async takeUp(task) {
      // Counted already: `recheck` checks its limits.
      if (watched.has(task.id)) return;
      const entry = watch(task);
      const passed = await buy(entry);
      if (passed) stop(entry, passed);
    },
    end(taskId) {
      const entry = watched.get(taskId);
      if (!entry) return;
      watched.delete(taskId);
      clearTimeout(entry.timer);
      giveBack(entry).catch((cause) => {
        const closing = cause instanceof Fault && cause.kind === 'unavailable';
        if (!closing)
          logger.warn({ err: cause, task: taskId }, 'unused time could not be given back; it stays charged');
      });
    },
    recheck() {
      for (const entry of watched.values()) {
        check(entry).catch((cause) =>
          logger.error({ err: cause, task: entry.task.id }, 'a limit could not be looked at'),
        );
      }
    },
    close() {
      closed = true;
      for (const { timer } of watched.values()) clearTimeout(timer);
      watched.clear();
    },
  };
}

export function limitFailure({ quota_id, limit, allowed, used }: LimitPassed): Failure {
  const message = `limit ${limit} (${allowed}) of quota ${quota_id} is used up${used === undefined ? '' : `: ${used} used`}`;
  return {
    code: 'quota_exceeded',
    message,
    details: { quota_id, limit, allowed, ...(used !== undefined && { used }) },
  };
}
