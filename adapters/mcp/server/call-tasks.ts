/**
 * Records the calls of one caller: in one session for as long as the caller is active, as a sequence of tasks, each with its
 * receipt. Tasks are bounded, so that receipts are issued in time and no task grows without end.
 */
import { asFault, type Bridge, type Deps, type JsonObject, type Row, type Task } from '../../../src/index.ts';
import { createIdle, type Idle } from '../client/idle.ts';
import type { McpSettings } from '../config.ts';
import { createCallSessions } from './call-sessions.ts';
import { type Caller, scopeOf } from './caller.ts';

export interface CallTask {
  readonly sessionId: string;
  readonly taskId: string;
}

export interface CallTasks {
  /** Does something in the caller's current task, which stays open for as long as that takes. */
  within<T>(caller: Caller, endpoint: string, what: (callTask: CallTask) => Promise<T>): Promise<T>;
  /**
   * Runs one call in a task of its own, which has ended once this returns, so that its receipt can be named to the caller. No
   * receipt is returned where the caller works in a named session: the call is then part of the task that runs there.
   */
  alone<T>(caller: Caller, endpoint: string, what: (callTask: CallTask) => Promise<T>): Promise<Sealed<T>>;
  /** The gateway session, without a task. */
  session(caller: Caller, endpoint: string): Promise<string>;
  workspace(caller: Caller): Promise<string>;
  /** The members with which a new gateway session is opened. */
  home(caller: Caller): Promise<{ workspace_id: string; persona_id?: string }>;
  /** The caller's session has ended. */
  end(key: string): Promise<void>;
  close(): Promise<void>;
}

export interface Sealed<T> {
  readonly came: T;
  readonly receiptId?: string | undefined;
}

const AT_WORK = ['WORKING', 'AUTH_REQUIRED', 'INPUT_REQUIRED'];

interface Open {
  readonly task: Promise<string>;
  /** Both names, once they are known. */
  callTask: CallTask | undefined;
  readonly caller: Caller;
  calls: number;
  running: number;
  over: boolean;
  /** A quota counts running tasks or their time: the task ends with its last call, so that none is counted while idle. */
  limited: boolean;
}
interface Kept {
  readonly session: Promise<string>;
  /** When it was last used; a session that was idle for long is looked up again. */
  used: number;
  open: Open | undefined;
  idle: Idle | undefined;
  /** The end of the previous task: its quota is released before the next one asks for it. */
  ended: Promise<unknown> | undefined;
}

export function callTaskKey(caller: Caller, endpoint: string): string {
  return caller.session ? `session:${caller.session.id}` : `${scopeOf(caller.actor)}|${caller.at ?? endpoint}`;
}

export function createCallTasks(
  bridge: Bridge,
  settings: Pick<McpSettings, 'workspace' | 'persona' | 'receiptCalls' | 'receiptIdleMs' | 'sessionIdleMs'>,
  { log, clock }: Pick<Deps, 'log' | 'clock'>,
  conversation?: string,
): CallTasks {
  const kept = new Map<string, Kept>();
  const workspaces = new Map<string, Promise<string>>();
  const ending = new Set<Promise<unknown>>();
  const sessions = createCallSessions({ bridge, clock, idleMs: settings.sessionIdleMs, home, conversation });

  function workspace(caller: Caller): Promise<string> {
    return memo(workspaces, scopeOf(caller.actor), async () => settings.workspace ?? (await bridge.home(caller.actor)));
  }

  async function home(caller: Caller) {
    return { workspace_id: await workspace(caller), ...(settings.persona && { persona_id: settings.persona }) };
  }

  async function openTask(caller: Caller, endpoint: string, { session, ended }: Kept): Promise<string> {
    const input: JsonObject = { mcp: { endpoint, client: caller.client } };
    await ended;
    const body = { session_id: await session, input, agent: 'none', served: {} };
    return (await bridge.submit({ kind: 'task.submit', actor: caller.actor, body })).resource.id;
  }

  function keep(caller: Caller, endpoint: string): Kept {
    const key = callTaskKey(caller, endpoint);
    const known = kept.get(key);
    const now = Date.now();
    if (known && (caller.session || known.open || now - known.used <= settings.sessionIdleMs)) {
      known.used = now;
      return known;
    }
    const session = sessions.open(caller, caller.at ?? endpoint);
    const made: Kept = { session, used: now, open: undefined, idle: undefined, ended: undefined };
    made.session.catch(() => kept.get(key) === made && kept.delete(key));
    kept.set(key, made);
    return made;
  }

  function opened(entry: Kept, caller: Caller, endpoint: string): Open {
    if (entry.open && !entry.open.over && entry.open.calls < settings.receiptCalls) return entry.open;
    if (entry.open) finish(entry.open);
    const task = openTask(caller, endpoint, entry);
    const made: Open = { task, callTask: undefined, caller, calls: 0, running: 0, over: false, limited: false };
    task.catch(() => {
      if (entry.open === made) entry.open = undefined;
    });
    entry.open = made;
    return made;
  }

  /** Ends once the last of its calls has. */
  function finish(open: Open): void {
    open.over = true;
    if (open.running > 0) return;
    void reported(open);
  }

  /** `close()` waits for it. */
  function reported(open: Pick<Open, 'task' | 'caller' | 'calls'>): Promise<string | undefined> {
    const done = report(open);
    ending.add(done);
    done.finally(() => ending.delete(done));
    return done;
  }

  /** The receipt it ended with. */
  async function report({ task, caller, calls }: Pick<Open, 'task' | 'caller' | 'calls'>): Promise<string | undefined> {
    try {
      const summary = calls === 1 ? '1 tool was called' : `${calls} tools were called`;
      const body = { task_id: await task, end: { state: 'COMPLETED' as const, summary } };
      const { resource } = await bridge.submit({ kind: 'task.report', actor: caller.actor, body });
      return (resource as Row & Partial<Task>).receipt_id ?? undefined;
    } catch (cause) {
      // Another caller or process ended the task first, or it never began: nothing is left to end.
      if (asFault(cause).kind !== 'conflict') log.warn({ err: cause }, 'calls could not be brought to an end');
      return undefined;
    }
  }

  /** Under a limit on how much is at work or for how long, the task ends with its last call and not when its caller has been idle. */
  async function endIdle(entry: Kept, open: Open): Promise<void> {
    if (open.running > 0 || open.over || entry.open !== open) return;
    entry.open = undefined;
    open.over = true;
    entry.ended = reported(open);
    await entry.ended;
  }

  async function isLimited({ actor }: Caller, taskId: string): Promise<boolean> {
    const quotas = await bridge.quotasOf(actor, taskId);
    return quotas.some(({ limits }) => 'concurrency' in limits || 'wall_time_ms' in limits);
  }

  /** The task that runs in the session a caller named. Undefined: none runs, or the caller may not see it. */
  async function runningTask({ actor }: Caller, session_id: string): Promise<CallTask | undefined> {
    const where = { session_id, state: AT_WORK };
    const { data } = await bridge.list<Row>(actor, { object: 'task', where, newestFirst: true, limit: 1 });
    return data[0] && { sessionId: session_id, taskId: data[0].id };
  }

  /** In the work its caller is part of, if it is part of any. */
  async function atHome<T>(caller: Caller, what: (callTask: CallTask) => Promise<T>): Promise<Sealed<T> | undefined> {
    const there = caller.home ? await runningTask(caller, caller.home) : undefined;
    if (!there) return undefined;
    try {
      return { came: await what(there) };
    } catch (cause) {
      // Over in the same moment: then the call stands by itself.
      if (asFault(cause).kind !== 'conflict') throw cause;
      return undefined;
    }
  }

  function rest(entry: Kept): void {
    entry.idle ??= createIdle(settings.receiptIdleMs, () => {
      if (entry.open && entry.open.running === 0) {
        finish(entry.open);
        entry.open = undefined;
      } else if (entry.open) rest(entry);
    });
    entry.idle.used();
  }

  async function end(key: string): Promise<void> {
    const entry = kept.get(key);
    if (!entry) return;
    kept.delete(key);
    entry.idle?.stop();
    if (entry.open) finish(entry.open);
    await Promise.all(ending);
  }

  return {
    workspace,
    home,
    session: (caller, endpoint) => keep(caller, endpoint).session,
    async alone(caller, endpoint, what) {
      const part = await atHome(caller, what);
      if (part) return part;
      const entry = keep(caller, endpoint);
      const task = openTask(caller, endpoint, entry);
      const callTask = { sessionId: await entry.session, taskId: await task };
      let receiptId: string | undefined;
      const came = await what(callTask).finally(async () => {
        receiptId = await reported({ task, caller, calls: 1 });
      });
      return { came, receiptId };
    },
    async within(caller, endpoint, what) {
      const part = await atHome(caller, what);
      if (part) return part.came;
      const entry = keep(caller, endpoint);
      for (let again = false; ; again = true) {
        const open = opened(entry, caller, endpoint);
        open.calls += 1;
        open.running += 1;
        try {
          if (!open.callTask) {
            const callTask = { sessionId: await entry.session, taskId: await open.task };
            open.limited = await isLimited(caller, callTask.taskId);
            open.callTask = callTask;
          }
          return await what(open.callTask);
        } catch (cause) {
          // An authorized caller ended the task: the call is made in a new one.
          const over = asFault(cause).kind === 'conflict' && !again;
          if (!over) throw cause;
          open.over = true;
        } finally {
          open.running -= 1;
          if (open.over && open.running === 0 && entry.open !== open) finish(open);
          if (open.limited) await endIdle(entry, open);
          rest(entry);
        }
      }
    },
    end,
    async close() {
      await Promise.all([...kept.keys()].map(end));
      await Promise.all(ending);
    },
  };
}

/** One attempt at a time; a failed attempt is not cached. */
function memo<T>(known: Map<string, Promise<T>>, key: string, make: () => Promise<T>): Promise<T> {
  const before = known.get(key);
  if (before) return before;
  const made = make();
  known.set(key, made);
  made.catch(() => known.delete(key));
  return made;
}
