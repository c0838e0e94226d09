/**
 * Work that this gateway did not start: maps an agent's messages to our sessions and tasks. A task opens with the first event
 * of an agent in a session and is found again after a restart. Ids are chosen by the agent, so they are valid only together
 * with the credential they came with.
 */
import {
  type Actor,
  asFault,
  type Bridge,
  type Deps,
  type End,
  type Fact,
  isTerminal,
  type JsonObject,
  LruMap,
  type Row,
  type Session,
  type Task,
} from '../../../src/index.ts';
import type { AhpSettings } from '../config.ts';
import { createOpenCalls, type OpenCalls } from './open-calls.ts';
import { restorePairs } from './recorded-calls.ts';

export interface TaskLocation {
  readonly session_id: string;
  readonly agent_id: string;
  readonly depth: number;
}

/** A question of the agent whose answer it has not received yet. */
export interface ProposedCall {
  readonly call_id: string;
  readonly ask_id: string;
}

export interface SupervisedRun extends TaskLocation {
  readonly scope: string;
  readonly actor: Actor;
  readonly taskId: string;
  readonly sessionId: string;
  runId: string | undefined;
  /** Allowed calls without a result. */
  readonly open: OpenCalls;
  /** Refused calls, so that a report about one is recognised. */
  readonly refused: OpenCalls;
  /** How many of them were given up. */
  unseen: number;
  readonly asked: Map<string, ProposedCall>;
  /** Whether this process knows all open questions; false until the log is read, a promise while it is. */
  asksKnown: boolean | Promise<void>;
  prompts: number;
  spans: number;
  /** Reports received so far, to detect repeats. */
  readonly reports: Set<string>;
  /** The last reported response, because some agents report it in two kinds of event. */
  said: AgentReport | undefined;
  model: { readonly provider: string; readonly model: string } | undefined;
  /** The last report was an error without recovery. */
  failure: string | undefined;
  verification: JsonObject | undefined;
  heartbeatAt: number;
  /** When it last sent anything. */
  receivedAt: number;
  /** Its reported end, while its checks may still arrive. */
  ending: { readonly end: End; readonly timer: NodeJS.Timeout } | undefined;
}

export interface AgentReport {
  readonly by: string;
  /** The model call it is about. */
  readonly span: number;
  readonly text: string;
  readonly usage: string;
}

export interface TaskOpening {
  readonly input: JsonObject;
  readonly metadata?: JsonObject;
  readonly trace_id?: string;
}

export interface Runs {
  /** The open run of this agent in this session, created when there is none. */
  open(actor: Actor, location: TaskLocation, opening: TaskOpening): Promise<SupervisedRun>;
  /** The run a contract event names; undefined when it has already ended. */
  contract(
    actor: Actor,
    location: TaskLocation,
    runId: string,
    opening: TaskOpening,
  ): Promise<SupervisedRun | undefined>;
  /** The open run of this agent in this session, if there is one. */
  found(actor: Actor, location: TaskLocation): Promise<SupervisedRun | undefined>;
  /** The run of this agent that ended a moment ago, if nothing has begun since: reports now are about that run. */
  justEnded(actor: Actor, location: TaskLocation & { readonly event_type: string }): SupervisedRun | undefined;
  /** Our session for the agent's, if it has one open. */
  sessionOf(actor: Actor, sessionId: string): Promise<string | undefined>;
  /** Ends a run. A run that is already ended stays as it is. */
  end(run: SupervisedRun, end: End, facts: readonly Fact[]): Promise<void>;
  closeSession(actor: Actor, sessionId: string): Promise<void>;
  /** Runs tasks about one agent one after the other. */
  inOrder<T>(actor: Actor, location: Pick<TaskLocation, 'session_id' | 'agent_id'>, what: () => Promise<T>): Promise<T>;
  /** The same as `open`, once all earlier reports of this agent are recorded. */
  caughtUp(actor: Actor, location: TaskLocation, opening: () => TaskOpening): Promise<SupervisedRun>;
  ofSession(actor: Actor, sessionId: string): readonly SupervisedRun[];
  all(): readonly SupervisedRun[];
  workspace(actor: Actor): Promise<string>;
}

export const PROTOCOL_NAME = 'ahp';
/** Reports may arrive late; within this time after the end of a run they are still about it. */
const LATE_MS = 60_000;
/** The most questions of one run that a repeat can join. A forgotten one is asked anew, which is never a yes. */
const MOST_ASKED = 1_000;
const MOST_ENDED = 1_000;
const OPEN_STATES = ['SUBMITTED', 'WORKING', 'INPUT_REQUIRED', 'AUTH_REQUIRED'];

export function scopeOf({ tenant_id, id }: Actor): string {
  return `${tenant_id ?? ''}/${id}`;
}

export function createRuns(bridge: Bridge, settings: AhpSettings, deps: Pick<Deps, 'log'>): Runs {
  const sessions = new Map<string, Promise<string>>();
  const runs = new Map<string, Promise<SupervisedRun>>();
  const live = new Set<SupervisedRun>();
  const ended = new LruMap<string, { readonly run: SupervisedRun; readonly at: number }>(MOST_ENDED);
  const lanes = new Map<string, Promise<unknown>>();

  const keyOf = (actor: Actor, ...parts: readonly string[]) => JSON.stringify([scopeOf(actor), ...parts]);

  /** One attempt at a time per key; a failed one is forgotten. */
  function once<T>(memo: Map<string, Promise<T>>, key: string, make: () => Promise<T>): Promise<T> {
    const known = memo.get(key);
    if (known) return known;
    const made = make();
    memo.set(key, made);
    made.catch(() => memo.delete(key));
    return made;
  }

  const workspace = async (actor: Actor): Promise<string> => settings.workspace ?? (await bridge.home(actor));

  /** The agent's id may have been bound to sessions that are closed by now; the next one gets the next number. */
  async function findSession(actor: Actor, wireId: string, make?: TaskOpening): Promise<string | undefined> {
    const scope = scopeOf(actor);
    for (let count = 1; ; count += 1) {
      const wire_id = `session:${wireId}${count === 1 ? '' : `#${count}`}`;
      const bound = await bridge.bound(PROTOCOL_NAME, scope, wire_id);
      if (bound) {
        const session = await visible<Session & Row>(actor, 'session', bound.id);
        if (session && session.state !== 'CLOSED' && session.state !== 'FAILED') return session.id;
        continue;
      }
      if (!make) return undefined;
      const body = {
        workspace_id: await workspace(actor),
        ...(settings.persona && { persona_id: settings.persona }),
        metadata: { ahp: { session_id: wireId, ...(make.metadata?.via && { via: make.metadata.via }) } },
      };
      const { resource } = await bridge.submit({ kind: 'session.create', actor, body });
      const to = { object: 'session', id: resource.id };
      try {
        await bridge.submit({ kind: 'binding.set', actor, body: { protocol: PROTOCOL_NAME, scope, wire_id, to } });
        return resource.id;
      } catch (cause) {
        if (asFault(cause).kind !== 'conflict') throw cause;
        // Another gateway was first; its session counts.
        await bridge.submit({ kind: 'session.close', actor, body: { session_id: resource.id } });
        count -= 1;
      }
    }
  }

  async function visible<T extends Row>(actor: Actor, object: string, id: string): Promise<T | undefined> {
    return await bridge.view<T>(actor, object, id).catch((cause) => {
      if (asFault(cause).kind === 'not_found') return undefined;
      throw cause;
    });
  }

  function session(actor: Actor, wireId: string, opening: TaskOpening): Promise<string> {
    return once(sessions, keyOf(actor, wireId), () => findSession(actor, wireId, opening) as Promise<string>);
  }

  async function make(
    actor: Actor,
    location: TaskLocation,
    opening: TaskOpening,
    fresh: boolean,
  ): Promise<SupervisedRun> {
    const sessionId = await session(actor, location.session_id, opening);
    const found = fresh ? undefined : await leftOpen(actor, sessionId, location.agent_id);
    const parent = found ? undefined : parentOf(actor, location);
    const { agent_id, depth } = location;
    const taskId =
      found?.id ??
      (
        await bridge.submit({
          kind: 'task.submit',
          actor,
          body: {
            session_id: sessionId,
            input: opening.input,
            agent: 'none',
            served: { away_ms: settings.awayMs },
            ...(parent && { parent_task_id: parent.taskId }),
            metadata: { ahp: { ...opening.metadata, agent_id, depth } },
          },
          ...(opening.trace_id && { trace_id: opening.trace_id }),
        })
      ).resource.id;
    const run: SupervisedRun = {
      ...location,
      scope: scopeOf(actor),
      actor,
      taskId,
      sessionId,
      runId: undefined,
      open: createOpenCalls(),
      refused: createOpenCalls(),
      unseen: 0,
      asked: new LruMap(MOST_ASKED),
      asksKnown: !found,
      prompts: found ? 1 : 0,
      spans: 0,
      reports: new Set(),
      said: undefined,
      model: undefined,
      failure: undefined,
      verification: undefined,
      heartbeatAt: Number.NEGATIVE_INFINITY,
      receivedAt: Date.now(),
      ending: undefined,
    };
    if (found) {
      await bridge.submit({ kind: 'task.resume', actor, body: { task_id: taskId } });
      await restorePairs(bridge, actor, run, deps.log);
    }
    live.add(run);
    ended.delete(pairKey(actor, location));
    return run;
  }

  /** After a restart: the task this agent was working on. */
  async function leftOpen(actor: Actor, session_id: string, agentId: string): Promise<Task | undefined> {
    const where = { session_id, state: OPEN_STATES };
    const { data } = await bridge.list<Task & Row>(actor, { object: 'task', where, newestFirst: true, limit: 200 });
    return data.find(({ metadata, assigned_agent_id }) => {
      return !assigned_agent_id && (metadata.ahp as JsonObject | undefined)?.agent_id === agentId;
    });
  }

  /** A sub-agent works for the agent one level up in the same session, or the nearest above that. */
  function parentOf(actor: Actor, location: TaskLocation): SupervisedRun | undefined {
    return ofSession(actor, location.session_id)
      .filter(({ depth, agent_id }) => depth < location.depth && agent_id !== location.agent_id)
      .toSorted((a, b) => b.depth - a.depth)[0];
  }

  function ofSession(actor: Actor, sessionId: string): SupervisedRun[] {
    const scope = scopeOf(actor);
    return [...live].filter((run) => run.scope === scope && run.session_id === sessionId);
  }

  function pairKey(actor: Actor, { session_id, agent_id }: Pick<TaskLocation, 'session_id' | 'agent_id'>): string {
    return keyOf(actor, session_id, agent_id);
  }

  function forget(run: SupervisedRun): void {
    live.delete(run);
    ended.set(pairKey(run.actor, run), { run, at: Date.now() });
    if (run.ending) clearTimeout(run.ending.timer);
    for (const [key, made] of runs) made.then((known) => known === run && runs.delete(key)).catch(() => {});
    runs.delete(pairKey(run.actor, run));
  }

  return {
    workspace,
    ofSession,
    all: () => [...live],

    open: async (actor, location, opening) =>
      touched(await once(runs, pairKey(actor, location), () => make(actor, location, opening, false))),

    async contract(actor, location, runId, opening) {
      const pair = pairKey(actor, location);
      const wire_id = `run:${location.session_id}:${runId}`;
      const current = await runs.get(pair)?.catch(() => undefined);
      if (current?.runId === runId) return touched(current);
      const scope = scopeOf(actor);
      const bound = await bridge.bound(PROTOCOL_NAME, scope, wire_id);
      if (bound) {
        const task = await visible<Task & Row>(actor, 'task', bound.id);
        if (!task || isTerminal(task.status)) return undefined;
        const known = [...live].find(({ taskId }) => taskId === bound.id);
        if (known) return touched(known);
      }
      // An implicit run without an id is this one; another run of the same agent is another task.
      const adopts = !current?.runId;
      if (current?.runId) runs.delete(pair);
      const run = touched(await once(runs, pair, () => make(actor, location, opening, !adopts)));
      run.runId = runId;
      if (!bound) {
        const to = { object: 'task', id: run.taskId };
        await bridge.submit({ kind: 'binding.set', actor, body: { protocol: PROTOCOL_NAME, scope, wire_id, to } });
      }
      return run;
    },

    async found(actor, location) {
      const key = pairKey(actor, location);
      const sessionId = runs.has(key) ? undefined : await findSession(actor, location.session_id);
      const left = sessionId && (await leftOpen(actor, sessionId, location.agent_id));
      return left ? await once(runs, key, () => make(actor, location, { input: {} }, false)) : await runs.get(key);
    },

    justEnded(actor, location) {
      const key = pairKey(actor, location);
      const last = runs.has(key) ? undefined : ended.get(key);
      // A heartbeat begins nothing, however late it is.
      const late = last && (location.event_type === 'heartbeat' || Date.now() - last.at <= LATE_MS);
      return late ? last.run : undefined;
    },

    async sessionOf(actor, wireId) {
      return (await sessions.get(keyOf(actor, wireId))) ?? (await findSession(actor, wireId));
    },

    async end(run, end, facts) {
      forget(run);
      try {
        const body = { task_id: run.taskId, facts: [...facts], end };
        await bridge.submit({ kind: 'task.report', actor: run.actor, body });
      } catch (cause) {
        if (asFault(cause).kind !== 'conflict') throw cause;
        deps.log.info({ task: run.taskId }, 'a supervised task had already ended');
      }
    },

    async closeSession(actor, wireId) {
      const sessionId = await (sessions.get(keyOf(actor, wireId)) ?? findSession(actor, wireId));
      sessions.delete(keyOf(actor, wireId));
      for (const run of ofSession(actor, wireId)) forget(run);
      if (sessionId) await bridge.submit({ kind: 'session.close', actor, body: { session_id: sessionId } });
    },

    inOrder(actor, location, what) {
      const key = pairKey(actor, location);
      const before = lanes.get(key) ?? Promise.resolve();
      const now = before.then(what, what);
      const quiet = now.catch(() => {});
      lanes.set(key, quiet);
      quiet.then(() => lanes.get(key) === quiet && lanes.delete(key));
      return now;
    },

    async caughtUp(actor, location, opening) {
      const key = pairKey(actor, location);
      const pending = lanes.get(key);
      if (pending) await pending;
      return touched(await once(runs, key, () => make(actor, location, opening(), false)));
    },
  };
}

function touched(run: SupervisedRun): SupervisedRun {
  run.receivedAt = Date.now();
  return run;
}
