/**
 * Tasks that the gateway keeps: for callers of 2025-11-25, which decide that a call is a task, where their server has tasks of the
 * other design or was not called because the rules refused. The log has everything they need: the owner is bound there, and the
 * outcome stands on the record of the call. So they survive a restart and are the same in every process.
 */

import { randomUUID } from 'node:crypto';
import { CODES } from '../../../mappings/mcp.ts';
import {
  asFault,
  asText,
  type Bridge,
  type Clock,
  isObject,
  type Json,
  type JsonObject,
  LruMap,
} from '../../../src/index.ts';
import { supportsTasks } from '../compat/convert.ts';
import { type FrameOutcome, failed } from '../frames.ts';
import type { ContextTasks, SessionContext } from '../request-context.ts';
import { lastCounted } from '../server/aggregate/numbered-names.ts';
import { type Caller, scopeOf } from '../server/caller.ts';
import { firstText } from '../translate.ts';
import { createTaskLog, isAlive } from './log.ts';
import type { TaskOwners } from './owners.ts';
import { type KeptTask, keptIn, keptName, related, toLegacyState } from './words.ts';

export interface TaskRecords {
  /** A session has begun, with this answer of the server to `initialize`. */
  opened(outcome: FrameOutcome, caller: Caller): void;
  /** Whether the caller asks for a task, after a tool list that said calls can be tasks. */
  wants(params: JsonObject, caller: Caller): boolean;
  asked(params: JsonObject, caller: Caller): AskedTask | undefined;
  /** The tasks part of the context of a request about tasks. */
  context(caller: Caller): ContextTasks;
  /** A server's list for these params, with the tasks that are kept here at its end. */
  listed(outcome: FrameOutcome, params: JsonObject, caller: Caller): Promise<FrameOutcome>;
}

export interface AskedTask {
  /** The name of its call on record. */
  readonly callId: string;
  readonly context: ContextTasks;
  /**
   * The answer to the caller, once the call has ended in this task of ours. `own`: the outcome is the gateway's and not the
   * server's, which would have made a task of it.
   */
  came(outcome: FrameOutcome, own: boolean, taskId: string): Promise<FrameOutcome>;
}

export interface RecordParts {
  readonly bridge: Bridge;
  /** Records the owner of a task. */
  readonly made: TaskOwners['made'];
  readonly clock: Clock;
  /** Whether the tool has an output schema that results must fit. */
  readonly hasSchema: (tool: string, caller: Pick<Caller, 'actor'>) => Promise<boolean>;
}

/** The size of the caches; entries that were dropped are read from the log. */
const MOST_FRESH = 200;
const PAGE = 50;
/** How many of the caller's gateway tasks a list goes back; each holds several calls. */
const LONGEST_LIST = 20;
const POLL_MS = 1_000;
const KEPT_MS = 10 * 60_000;
const LONGEST_KEPT_MS = 60 * 60_000;

export function createTaskRecords(server: string, { bridge, clock, made, hasSchema }: RecordParts): TaskRecords {
  const log = createTaskLog(server, bridge, hasSchema);
  const taskSessions = new WeakSet<SessionContext>();
  /** Results as received; the log has them without secret content. */
  const fresh = new LruMap<string, JsonObject>(MOST_FRESH);
  /** Gateway tasks that are on their caller's list. */
  const noted = new LruMap<string, true>(MOST_FRESH);
  const now = () => Date.parse(clock.now());

  function latest(scope: string) {
    return lastCounted(async (count) => (await bridge.bound('mcp', scope, entryId(count)))?.id);
  }
  const entryId = (count: number) => `${server}:tasks:${count}`;

  /** Puts it on its caller's list, once for all calls it holds. */
  async function note({ actor }: Caller, taskId: string): Promise<void> {
    const scope = scopeOf(actor);
    while (!noted.has(taskId)) {
      const { count } = await latest(scope);
      const body = { protocol: 'mcp', scope, wire_id: entryId(count + 1), to: { object: 'task', id: taskId } };
      try {
        await bridge.submit({ kind: 'binding.set', actor, body });
        noted.set(taskId, true);
      } catch (cause) {
        // Another call or process took this number; the next one is tried.
        if (asFault(cause).kind !== 'conflict') throw cause;
      }
    }
  }

  /** Undefined when its lifetime has passed, or it is not kept here. */
  async function ended(taskId: Json | undefined, caller: Caller): Promise<JsonObject | undefined> {
    const kept = keptIn(taskId);
    if (!kept || typeof taskId !== 'string' || now() > kept.created + kept.ttl) return undefined;
    const known = fresh.get(taskId) ?? (await log.ended(taskId, kept.callId, caller));
    if (!known) return undefined;
    fresh.set(taskId, known);
    return stateOf(taskId, kept, known);
  }

  async function answer(method: string, params: JsonObject, caller: Caller): Promise<FrameOutcome | undefined> {
    if (caller.era !== 'legacy') return undefined;
    if (method === 'tasks/list') return isOurs(params.cursor) ? await keptFrom(params.cursor, caller) : undefined;
    const { taskId } = params;
    const task = await ended(taskId, caller);
    if (!task) return undefined;
    const state = toLegacyState(task);
    if (method === 'tasks/get') return { result: state };
    if (method === 'tasks/result') return { result: related(task.result as JsonObject, taskId as string) };
    return method === 'tasks/cancel'
      ? failed(CODES.invalidParams, `the task has ended as ${asText(state.status)}`)
      : undefined;
  }

  /** From the newest task of ours back; in each, in the order they began. */
  async function walk(caller: Caller, wanted: (taskId: string) => boolean, cursor?: string) {
    const scope = scopeOf(caller.actor);
    const { count: newest } = await latest(scope);
    const from = cursor === undefined ? { count: newest, skip: 0 } : cursorIn(cursor);
    if (!from || (cursor !== undefined && (from.count < 1 || from.count > newest))) return undefined;
    const oldest = Math.max(1, newest - LONGEST_LIST + 1);
    const ids: string[] = [];
    let { count, skip } = from;
    for (; count >= oldest; count -= 1, skip = 0) {
      const entry = await bridge.bound('mcp', scope, entryId(count));
      const begun = entry ? await log.begun(entry.id, scope, now()) : [];
      for (const [at, { taskId, alive }] of begun.entries()) {
        if (at < skip || !alive || !wanted(taskId)) continue;
        if (ids.length === PAGE) return { ids, next: `${count}.${at}` };
        ids.push(taskId);
      }
    }
    return { ids };
  }

  /** A page of the tasks that are kept here. */
  async function keptFrom(cursor: string | undefined, caller: Caller): Promise<FrameOutcome> {
    const page = await walk(caller, (taskId) => !isTheirs(taskId), cursor?.slice(OURS.length));
    if (!page) return failed(CODES.invalidParams, 'Invalid cursor');
    const kept = await Promise.all(page.ids.map((taskId) => ended(taskId, caller)));
    const tasks = kept.flatMap((task) => (task ? [toLegacyState(task)] : []));
    return { result: { tasks, ...(page.next !== undefined && { nextCursor: `${OURS}${page.next}` }) } };
  }

  function context(caller: Caller, keep: ContextTasks['keep'] = () => {}): ContextTasks {
    return {
      keep,
      answer: (method, params) => answer(method, params, caller),
      async begun(cursor) {
        return await walk(caller, isTheirs, cursor === undefined ? undefined : asText(cursor));
      },
      async known(taskId) {
        const state = await log.known(taskId, scopeOf(caller.actor));
        return state && isAlive(state, now()) ? state : undefined;
      },
    };
  }

  function keepResult(callId: string, result: JsonObject, ttl: Json | undefined): FrameOutcome {
    const wanted = typeof ttl === 'number' && ttl >= 0 ? Math.min(Math.floor(ttl), LONGEST_KEPT_MS) : KEPT_MS;
    const kept: KeptTask = { callId, created: now(), ttl: wanted };
    const name = keptName(kept);
    fresh.set(name, result);
    const { statusMessage: _, ...begun } = toLegacyState(stateOf(name, kept, result));
    // By 2025-11-25 every task begins as `working`; its present state is read with `tasks/get`.
    return { result: { task: { ...begun, status: 'working' } } };
  }

  function wants({ task }: JsonObject, { era, session, tasks }: Caller): boolean {
    return era === 'legacy' && isObject(task) && session !== undefined && (tasks === true || taskSessions.has(session));
  }

  return {
    context,
    wants,
    opened(outcome, { session }) {
      if (session && 'result' in outcome && supportsTasks(outcome.result)) taskSessions.add(session);
    },
    asked(params, caller) {
      if (!wants(params, caller)) return undefined;
      const { ttl } = params.task as JsonObject;
      const callId = randomUUID();
      let onRecord: (() => void) | undefined;
      const keep: ContextTasks['keep'] = (kept) => {
        onRecord = kept;
      };
      return {
        callId,
        context: context(caller, keep),
        async came(outcome, own, taskId) {
          if ('error' in outcome) return outcome;
          const ours = onRecord !== undefined || own;
          const said = isObject(outcome.result.task) || !ours ? outcome : keepResult(callId, outcome.result, ttl);
          await made(said, caller, taskId);
          if (ours) await note(caller, taskId);
          onRecord?.();
          return said;
        },
      };
    },
    async listed(outcome, { cursor }, caller) {
      if (caller.era !== 'legacy' || isOurs(cursor) || 'error' in outcome) return outcome;
      const { tasks, nextCursor } = outcome.result;
      if (!Array.isArray(tasks) || nextCursor !== undefined) return outcome;
      const kept = await keptFrom(undefined, caller);
      if ('error' in kept || !Array.isArray(kept.result.tasks)) return outcome;
      return { result: { ...outcome.result, ...kept.result, tasks: [...tasks, ...kept.result.tasks] } };
    },
  };
}

/** Marks a cursor into the tasks that are kept here, distinguished from cursors of a server. */
const OURS = 'tollbridge.kept.';

function isOurs(cursor: Json | undefined): cursor is string {
  return typeof cursor === 'string' && cursor.startsWith(OURS);
}

function cursorIn(cursor: string): { readonly count: number; readonly skip: number } | undefined {
  const [, count, skip] = /^(\d{1,15})\.(\d{1,15})$/.exec(cursor) ?? [];
  return count && skip ? { count: Number(count), skip: Number(skip) } : undefined;
}

function isTheirs(taskId: string): boolean {
  return keptIn(taskId) === undefined;
}

/** In the form of the extension, which contains the result. */
function stateOf(taskId: string, { created, ttl }: KeptTask, result: JsonObject): JsonObject {
  const at = new Date(created).toISOString();
  const why = result.isError === true ? firstText(result) : undefined;
  return {
    taskId,
    status: 'completed',
    ...(why !== undefined && { statusMessage: why }),
    createdAt: at,
    lastUpdatedAt: at,
    ttlMs: ttl,
    pollIntervalMs: POLL_MS,
    result,
  };
}
