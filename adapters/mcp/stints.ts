/**
 * Calls of one caller, kept together: a session of ours for as long as the caller comes, and in it one task after the
 * other, each with its receipt. Tasks are bounded, so that a receipt comes in time and an account never grows without end.
 */
import { asFault, type Bridge, type Deps, Fault, type JsonObject, type Row, type Workspace } from '../../src/index.ts';
import { type Caller, scopeOf } from './caller.ts';
import type { McpSettings } from './config.ts';
import { createIdle, type Idle } from './idle.ts';
import { createStintSessions } from './stint-sessions.ts';

export interface Stint {
  readonly sessionId: string;
  readonly taskId: string;
}

export interface Stints {
  /** Does something in the caller's current task, which stays open for as long as that takes. */
  within<T>(caller: Caller, endpoint: string, what: (stint: Stint) => Promise<T>): Promise<T>;
  /** The session of ours, and no task. */
  session(caller: Caller, endpoint: string): Promise<string>;
  workspace(caller: Caller): Promise<string>;
  /** What a new session of ours is opened with. */
  home(caller: Caller): Promise<{ workspace_id: string; persona_id?: string }>;
  /** This caller comes no more. */
  end(key: string): Promise<void>;
  close(): Promise<void>;
}

const AT_WORK = ['WORKING', 'AUTH_REQUIRED', 'INPUT_REQUIRED'];

interface Open {
  readonly task: Promise<string>;
  /** Both names, once they are known. */
  stint: Stint | undefined;
  readonly caller: Caller;
  calls: number;
  running: number;
  over: boolean;
}
interface Kept {
  readonly session: Promise<string>;
  /** When it was last used; one that nobody used for long is looked for anew. */
  used: number;
  open: Open | undefined;
  idle: Idle | undefined;
}

export function stintKey(caller: Caller, endpoint: string): string {
  return caller.session ? `session:${caller.session.id}` : `${scopeOf(caller.actor)}|${caller.at ?? endpoint}`;
}

export function createStints(
  bridge: Bridge,
  settings: Pick<McpSettings, 'workspace' | 'persona' | 'receiptCalls' | 'receiptIdleMs' | 'sessionIdleMs'>,
  { log, clock }: Pick<Deps, 'log' | 'clock'>,
): Stints {
  const kept = new Map<string, Kept>();
  const workspaces = new Map<string, Promise<string>>();
  const ending = new Set<Promise<void>>();
  const sessions = createStintSessions({ bridge, clock, idleMs: settings.sessionIdleMs, home });

  async function findWorkspace({ actor }: Caller): Promise<string> {
    if (settings.workspace) return settings.workspace;
    const [first] = (await bridge.list<Workspace & Row>(actor, { object: 'workspace', limit: 1 })).data;
    if (!first) throw new Fault('not_found', 'there is no workspace for this caller to work in');
    return first.id;
  }

  function workspace(caller: Caller): Promise<string> {
    return memo(workspaces, scopeOf(caller.actor), () => findWorkspace(caller));
  }

  async function home(caller: Caller) {
    return { workspace_id: await workspace(caller), ...(settings.persona && { persona_id: settings.persona }) };
  }

  async function openTask(caller: Caller, endpoint: string, session: Promise<string>): Promise<string> {
    const input: JsonObject = { mcp: { endpoint, client: caller.client } };
    const body = { session_id: await session, input, agent: 'none' };
    return (await bridge.submit({ kind: 'task.submit', actor: caller.actor, body })).resource.id;
  }

  function keep(caller: Caller, endpoint: string): Kept {
    const key = stintKey(caller, endpoint);
    const known = kept.get(key);
    const now = Date.now();
    if (known && (caller.session || known.open || now - known.used <= settings.sessionIdleMs)) {
      known.used = now;
      return known;
    }
    const session = sessions.open(caller, caller.at ?? endpoint);
    const made: Kept = { session, used: now, open: undefined, idle: undefined };
    made.session.catch(() => kept.get(key) === made && kept.delete(key));
    kept.set(key, made);
    return made;
  }

  function opened(entry: Kept, caller: Caller, endpoint: string): Open {
    if (entry.open && !entry.open.over && entry.open.calls < settings.receiptCalls) return entry.open;
    if (entry.open) finish(entry.open);
    const task = openTask(caller, endpoint, entry.session);
    const made: Open = { task, stint: undefined, caller, calls: 0, running: 0, over: false };
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
    const done = report(open);
    ending.add(done);
    done.finally(() => ending.delete(done));
  }

  async function report({ task, caller, calls }: Open): Promise<void> {
    try {
      const summary = calls === 1 ? '1 tool was called' : `${calls} tools were called`;
      const body = { task_id: await task, end: { state: 'COMPLETED' as const, summary } };
      await bridge.submit({ kind: 'task.report', actor: caller.actor, body });
    } catch (cause) {
      // Somebody was quicker, or it never began; either way there is nothing left to end.
      if (asFault(cause).kind !== 'conflict') log.warn({ err: cause }, 'calls could not be brought to an end');
    }
  }

  /** What is being done in the session a caller works in. Nothing there, or not theirs to see: undefined. */
  async function underWay({ actor }: Caller, session_id: string): Promise<Stint | undefined> {
    const where = { session_id, state: AT_WORK };
    const { data } = await bridge.list<Row>(actor, { object: 'task', where, newestFirst: true, limit: 1 });
    return data[0] && { sessionId: session_id, taskId: data[0].id };
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
    async within(caller, endpoint, what) {
      const there = caller.home ? await underWay(caller, caller.home) : undefined;
      if (there) {
        try {
          return await what(there);
        } catch (cause) {
          // Over in the same moment: then the call stands by itself.
          if (asFault(cause).kind !== 'conflict') throw cause;
        }
      }
      const entry = keep(caller, endpoint);
      for (let again = false; ; again = true) {
        const open = opened(entry, caller, endpoint);
        open.calls += 1;
        open.running += 1;
        try {
          open.stint ??= { sessionId: await entry.session, taskId: await open.task };
          return await what(open.stint);
        } catch (cause) {
          // Ended by somebody else, who may: what comes next belongs to another.
          const over = asFault(cause).kind === 'conflict' && !again;
          if (!over) throw cause;
          open.over = true;
        } finally {
          open.running -= 1;
          if (open.over && open.running === 0 && entry.open !== open) finish(open);
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

/** One attempt at a time; a failed one leaves no trace. */
function memo<T>(known: Map<string, Promise<T>>, key: string, make: () => Promise<T>): Promise<T> {
  const before = known.get(key);
  if (before) return before;
  const made = make();
  known.set(key, made);
  made.catch(() => known.delete(key));
  return made;
}
