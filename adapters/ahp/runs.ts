/**
 * Work we did not start: which session and task of ours an agent's words are about. A task opens with the first event of
 * an agent in a session and is found again after a restart. Ids are the agent's own, so they stand for something only
 * together with the credential they came with.
 */
import {
  type Actor,
  asFault,
  type Bridge,
  type Deps,
  type End,
  type Fact,
  Fault,
  isTerminal,
  type JsonObject,
  type Row,
  type Session,
  type Task,
  type Workspace,
} from '../../src/index.ts';
import type { AhpSettings } from './config.ts';
import { createOpenCalls, type OpenCalls } from './open-calls.ts';

export interface Place {
  readonly session_id: string;
  readonly agent_id: string;
  readonly depth: number;
}

/** A question the agent asked and whose answer it has not taken yet. */
export interface Asked {
  readonly call_id: string;
  readonly ask_id: string;
}

export interface Run extends Place {
  readonly scope: string;
  readonly actor: Actor;
  readonly taskId: string;
  readonly sessionId: string;
  runId: string | undefined;
  /** Calls that were let through and have no result yet. */
  readonly open: OpenCalls;
  /** Calls the agent was told no to, so that a report about one is known for what it is. */
  readonly refused: OpenCalls;
  /** How many of them were given up. */
  unseen: number;
  readonly asked: Map<string, Asked>;
  /** No question stands that this process does not know of; false until someone looks, who may be waited for. */
  asksKnown: boolean | Promise<void>;
  prompts: number;
  spans: number;
  model: { readonly provider: string; readonly model: string } | undefined;
  /** The last thing told was an error nobody recovered from. */
  failure: string | undefined;
  verification: JsonObject | undefined;
  heartbeatAt: number;
  /** When it last said or asked anything. */
  heardAt: number;
  /** How it said it ended, while its checks may still come in. */
  ending: { readonly end: End; readonly timer: NodeJS.Timeout } | undefined;
}

export interface Opening {
  readonly input: JsonObject;
  readonly metadata?: JsonObject;
  readonly trace_id?: string;
}

export interface Runs {
  /** The open run of this agent in this session, made when there is none. */
  open(actor: Actor, place: Place, opening: Opening): Promise<Run>;
  /** The run a contract event names; undefined when it has ended before. */
  contract(actor: Actor, place: Place, runId: string, opening: Opening): Promise<Run | undefined>;
  /** The open run of this agent in this session, if there is one. */
  found(actor: Actor, place: Place): Promise<Run | undefined>;
  /** Our session for the agent's, if it has one open. */
  sessionOf(actor: Actor, sessionId: string): Promise<string | undefined>;
  /** Ends a run. Whoever was quicker has ended it. */
  end(run: Run, end: End, facts: readonly Fact[]): Promise<void>;
  closeSession(actor: Actor, sessionId: string): Promise<void>;
  /** Things told about one agent happen one after the other. */
  inOrder<T>(actor: Actor, place: Pick<Place, 'session_id' | 'agent_id'>, what: () => Promise<T>): Promise<T>;
  /** The same as `open`, once everything told so far about this agent is written down. */
  caughtUp(actor: Actor, place: Place, opening: () => Opening): Promise<Run>;
  ofSession(actor: Actor, sessionId: string): readonly Run[];
  all(): readonly Run[];
  workspace(actor: Actor): Promise<string>;
}

export const PROTOCOL_NAME = 'ahp';
const OPEN_STATES = ['SUBMITTED', 'WORKING', 'INPUT_REQUIRED', 'AUTH_REQUIRED'];

export function scopeOf({ tenant_id, id }: Actor): string {
  return `${tenant_id ?? ''}/${id}`;
}

export function createRuns(bridge: Bridge, settings: AhpSettings, deps: Pick<Deps, 'log'>): Runs {
  const sessions = new Map<string, Promise<string>>();
  const runs = new Map<string, Promise<Run>>();
  const live = new Set<Run>();
  const lanes = new Map<string, Promise<unknown>>();

  const keyOf = (actor: Actor, ...parts: readonly string[]) => JSON.stringify([scopeOf(actor), ...parts]);

  /** One attempt at a time per key; a failed one leaves no trace. */
  function once<T>(memo: Map<string, Promise<T>>, key: string, make: () => Promise<T>): Promise<T> {
    const known = memo.get(key);
    if (known) return known;
    const made = make();
    memo.set(key, made);
    made.catch(() => memo.delete(key));
    return made;
  }

  async function workspace(actor: Actor): Promise<string> {
    if (settings.workspace) return settings.workspace;
    const [first] = (await bridge.list<Workspace & Row>(actor, { object: 'workspace', limit: 1 })).data;
    if (!first) throw new Fault('not_found', 'there is no workspace for this agent to work in');
    return first.id;
  }

  /** The agent's id may have stood for sessions that are closed by now; the next one goes by the next number. */
  async function findSession(actor: Actor, wireId: string, make?: Opening): Promise<string | undefined> {
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
        // Another gateway was quicker; its session is the one.
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

  function session(actor: Actor, wireId: string, opening: Opening): Promise<string> {
    return once(sessions, keyOf(actor, wireId), () => findSession(actor, wireId, opening) as Promise<string>);
  }

  async function make(actor: Actor, place: Place, opening: Opening, fresh: boolean): Promise<Run> {
    const sessionId = await session(actor, place.session_id, opening);
    const found = fresh ? undefined : await leftOpen(actor, sessionId, place.agent_id);
    const parent = found ? undefined : parentOf(actor, place);
    const { agent_id, depth } = place;
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
            ...(parent && { parent_task_id: parent.taskId }),
            metadata: { ahp: { ...opening.metadata, agent_id, depth } },
          },
          ...(opening.trace_id && { trace_id: opening.trace_id }),
        })
      ).resource.id;
    const run: Run = {
      ...place,
      scope: scopeOf(actor),
      actor,
      taskId,
      sessionId,
      runId: undefined,
      open: createOpenCalls(),
      refused: createOpenCalls(),
      unseen: 0,
      asked: new Map(),
      asksKnown: !found,
      prompts: found ? 1 : 0,
      spans: 0,
      model: undefined,
      failure: undefined,
      verification: undefined,
      heartbeatAt: Number.NEGATIVE_INFINITY,
      heardAt: Date.now(),
      ending: undefined,
    };
    live.add(run);
    return run;
  }

  /** After a restart: the task this agent was at. */
  async function leftOpen(actor: Actor, session_id: string, agentId: string): Promise<Task | undefined> {
    const where = { session_id, state: OPEN_STATES };
    const { data } = await bridge.list<Task & Row>(actor, { object: 'task', where, newestFirst: true, limit: 200 });
    return data.find(({ metadata, assigned_agent_id }) => {
      return !assigned_agent_id && (metadata.ahp as JsonObject | undefined)?.agent_id === agentId;
    });
  }

  /** A sub-agent works for whoever is one level up in the same session, or the nearest above that. */
  function parentOf(actor: Actor, place: Place): Run | undefined {
    return ofSession(actor, place.session_id)
      .filter(({ depth, agent_id }) => depth < place.depth && agent_id !== place.agent_id)
      .toSorted((a, b) => b.depth - a.depth)[0];
  }

  function ofSession(actor: Actor, sessionId: string): Run[] {
    const scope = scopeOf(actor);
    return [...live].filter((run) => run.scope === scope && run.session_id === sessionId);
  }

  function pairKey(actor: Actor, { session_id, agent_id }: Pick<Place, 'session_id' | 'agent_id'>): string {
    return keyOf(actor, session_id, agent_id);
  }

  function forget(run: Run): void {
    live.delete(run);
    if (run.ending) clearTimeout(run.ending.timer);
    for (const [key, made] of runs) made.then((known) => known === run && runs.delete(key)).catch(() => {});
    runs.delete(pairKey(run.actor, run));
  }

  return {
    workspace,
    ofSession,
    all: () => [...live],

    open: async (actor, place, opening) =>
      heard(await once(runs, pairKey(actor, place), () => make(actor, place, opening, false))),

    async contract(actor, place, runId, opening) {
      const pair = pairKey(actor, place);
      const wire_id = `run:${place.session_id}:${runId}`;
      const current = await runs.get(pair)?.catch(() => undefined);
      if (current?.runId === runId) return heard(current);
      const scope = scopeOf(actor);
      const bound = await bridge.bound(PROTOCOL_NAME, scope, wire_id);
      if (bound) {
        const task = await visible<Task & Row>(actor, 'task', bound.id);
        if (!task || isTerminal(task.status)) return undefined;
        const known = [...live].find(({ taskId }) => taskId === bound.id);
        if (known) return heard(known);
      }
      // An implicit run that has no name yet is this one; another run of the same agent is another task.
      const adopts = !current?.runId;
      if (current?.runId) runs.delete(pair);
      const run = heard(await once(runs, pair, () => make(actor, place, opening, !adopts)));
      run.runId = runId;
      if (!bound) {
        const to = { object: 'task', id: run.taskId };
        await bridge.submit({ kind: 'binding.set', actor, body: { protocol: PROTOCOL_NAME, scope, wire_id, to } });
      }
      return run;
    },

    async found(actor, place) {
      const key = pairKey(actor, place);
      const sessionId = runs.has(key) ? undefined : await findSession(actor, place.session_id);
      const left = sessionId && (await leftOpen(actor, sessionId, place.agent_id));
      return left ? await once(runs, key, () => make(actor, place, { input: {} }, false)) : await runs.get(key);
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

    inOrder(actor, place, what) {
      const key = pairKey(actor, place);
      const before = lanes.get(key) ?? Promise.resolve();
      const now = before.then(what, what);
      const quiet = now.catch(() => {});
      lanes.set(key, quiet);
      quiet.then(() => lanes.get(key) === quiet && lanes.delete(key));
      return now;
    },

    async caughtUp(actor, place, opening) {
      const key = pairKey(actor, place);
      const told = lanes.get(key);
      if (told) await told;
      return heard(await once(runs, key, () => make(actor, place, opening(), false)));
    },
  };
}

function heard(run: Run): Run {
  run.heardAt = Date.now();
  return run;
}
