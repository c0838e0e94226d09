/**
 * Tasks that are ours to keep: of callers of 2025-11-25, who decide that a call is a task, where their server knows tasks
 * otherwise or was never asked because the rules said no. The log has all of it already: whose a task is is bound there, and what
 * its call came to stands on the record of the call. So they outlive this process and are the same in every other.
 */

import { randomUUID } from 'node:crypto';
import { CODES } from '../../mappings/mcp.ts';
import { asFault, asText, type Bridge, type Clock, type Json, type JsonObject } from '../../src/index.ts';
import { type Caller, scopeOf } from './caller.ts';
import { lastCounted } from './counted.ts';
import { offersTasks } from './eras.ts';
import { failed, isObject, type Outcome } from './frames.ts';
import type { LineTasks, SessionLine } from './line.ts';
import { createTaskLog, isAlive } from './task-log.ts';
import type { TaskOwners } from './task-owners.ts';
import { type Kept, keptIn, keptName, related, toLegacyState } from './task-words.ts';
import { firstText } from './translate.ts';

export interface TaskRecords {
  /** A session has begun, with what the server says of itself. */
  opened(outcome: Outcome, caller: Caller): void;
  /** Whether this call's caller wants it to be a task, and was told that it may. */
  wants(params: JsonObject, caller: Caller): boolean;
  asked(params: JsonObject, caller: Caller): AskedTask | undefined;
  /** What a request about tasks carries. */
  line(caller: Caller): LineTasks;
  /** A server's list that was asked for with this, with what is kept here at its end. */
  listed(outcome: Outcome, params: JsonObject, caller: Caller): Promise<Outcome>;
}

export interface AskedTask {
  /** The name of its call on record. */
  readonly callId: string;
  readonly line: LineTasks;
  /**
   * What its caller hears of it, once the call of this task of ours has ended. `own`: these are our words and not the server's, who
   * would have made a task of it.
   */
  came(outcome: Outcome, own: boolean, taskId: string): Promise<Outcome>;
}

export interface RecordParts {
  readonly bridge: Bridge;
  /** Takes down whose a task is. */
  readonly made: TaskOwners['made'];
  readonly clock: Clock;
  /** Whether results of this tool have a shape they must fit. */
  readonly hasSchema: (tool: string, caller: Pick<Caller, 'actor'>) => Promise<boolean>;
}

/** What is known without reading the log; whatever falls out is read there. */
const MOST_FRESH = 200;
const PAGE = 50;
/** How far back a list goes: what a caller did at once is one task of ours, with its calls. */
const LONGEST_LIST = 20;
const POLL_MS = 1_000;
const KEPT_MS = 10 * 60_000;
const LONGEST_KEPT_MS = 60 * 60_000;

export function createTaskRecords(server: string, { bridge, clock, made, hasSchema }: RecordParts): TaskRecords {
  const log = createTaskLog(server, bridge, hasSchema);
  const told = new WeakSet<SessionLine>();
  /** Results as they came; the log has them without what must not be written down. */
  const fresh = new Map<string, JsonObject>();
  /** Tasks of ours that are on their caller's list. */
  const noted = new Map<string, true>();
  const now = () => Date.parse(clock.now());

  function remember<T>(map: Map<string, T>, key: string, value: T): void {
    map.set(key, value);
    if (map.size > MOST_FRESH) map.delete(map.keys().next().value as string);
  }

  function latest(scope: string) {
    return lastCounted(async (count) => (await bridge.bound('mcp', scope, placeId(count)))?.id);
  }
  const placeId = (count: number) => `${server}:tasks:${count}`;

  /** Puts it on its caller's list, once for all calls it holds. */
  async function note({ actor }: Caller, taskId: string): Promise<void> {
    const scope = scopeOf(actor);
    while (!noted.has(taskId)) {
      const { count } = await latest(scope);
      const body = { protocol: 'mcp', scope, wire_id: placeId(count + 1), to: { object: 'task', id: taskId } };
      try {
        await bridge.submit({ kind: 'binding.set', actor, body });
        remember(noted, taskId, true);
      } catch (cause) {
        // Somebody was quicker, here or in another process; the next place is free.
        if (asFault(cause).kind !== 'conflict') throw cause;
      }
    }
  }

  /** Undefined when it is past its time, or not one of ours. */
  async function ended(taskId: Json | undefined, caller: Caller): Promise<JsonObject | undefined> {
    const kept = keptIn(taskId);
    if (!kept || typeof taskId !== 'string' || now() > kept.created + kept.ttl) return undefined;
    const known = fresh.get(taskId) ?? (await log.ended(taskId, kept.callId, caller));
    if (!known) return undefined;
    remember(fresh, taskId, known);
    return stateOf(taskId, kept, known);
  }

  async function answer(method: string, params: JsonObject, caller: Caller): Promise<Outcome | undefined> {
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
    const from = cursor === undefined ? { count: newest, skip: 0 } : placeIn(cursor);
    if (!from || (cursor !== undefined && (from.count < 1 || from.count > newest))) return undefined;
    const oldest = Math.max(1, newest - LONGEST_LIST + 1);
    const ids: string[] = [];
    let { count, skip } = from;
    for (; count >= oldest; count -= 1, skip = 0) {
      const place = await bridge.bound('mcp', scope, placeId(count));
      const begun = place ? await log.begun(place.id, scope, now()) : [];
      for (const [at, { taskId, alive }] of begun.entries()) {
        if (at < skip || !alive || !wanted(taskId)) continue;
        if (ids.length === PAGE) return { ids, next: `${count}.${at}` };
        ids.push(taskId);
      }
    }
    return { ids };
  }

  /** Of what is kept here, a page from where the last one ended. */
  async function keptFrom(cursor: string | undefined, caller: Caller): Promise<Outcome> {
    const page = await walk(caller, (taskId) => !isTheirs(taskId), cursor?.slice(OURS.length));
    if (!page) return failed(CODES.invalidParams, 'Invalid cursor');
    const kept = await Promise.all(page.ids.map((taskId) => ended(taskId, caller)));
    const tasks = kept.flatMap((task) => (task ? [toLegacyState(task)] : []));
    return { result: { tasks, ...(page.next !== undefined && { nextCursor: `${OURS}${page.next}` }) } };
  }

  function line(caller: Caller, keep: LineTasks['keep'] = () => {}): LineTasks {
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

  function keepResult(callId: string, result: JsonObject, ttl: Json | undefined): Outcome {
    const wanted = typeof ttl === 'number' && ttl >= 0 ? Math.min(Math.floor(ttl), LONGEST_KEPT_MS) : KEPT_MS;
    const kept: Kept = { callId, created: now(), ttl: wanted };
    const name = keptName(kept);
    remember(fresh, name, result);
    const { statusMessage: _, ...begun } = toLegacyState(stateOf(name, kept, result));
    // By 2025-11-25 every task begins as `working`; what it is by now is for whoever looks.
    return { result: { task: { ...begun, status: 'working' } } };
  }

  function wants({ task }: JsonObject, { era, session, tasks }: Caller): boolean {
    return era === 'legacy' && isObject(task) && session !== undefined && (tasks === true || told.has(session));
  }

  return {
    line,
    wants,
    opened(outcome, { session }) {
      if (session && 'result' in outcome && offersTasks(outcome.result)) told.add(session);
    },
    asked(params, caller) {
      if (!wants(params, caller)) return undefined;
      const { ttl } = params.task as JsonObject;
      const callId = randomUUID();
      let onRecord: (() => void) | undefined;
      const keep: LineTasks['keep'] = (kept) => {
        onRecord = kept;
      };
      return {
        callId,
        line: line(caller, keep),
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

/** Where a list goes on among what is kept here, told from places a server gave. */
const OURS = 'tollbridge.kept.';

function isOurs(cursor: Json | undefined): cursor is string {
  return typeof cursor === 'string' && cursor.startsWith(OURS);
}

function placeIn(cursor: string): { readonly count: number; readonly skip: number } | undefined {
  const [, count, skip] = /^(\d{1,15})\.(\d{1,15})$/.exec(cursor) ?? [];
  return count && skip ? { count: Number(count), skip: Number(skip) } : undefined;
}

function isTheirs(taskId: string): boolean {
  return keptIn(taskId) === undefined;
}

/** In the words of the extension, which has the result inside. */
function stateOf(taskId: string, { created, ttl }: Kept, result: JsonObject): JsonObject {
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
