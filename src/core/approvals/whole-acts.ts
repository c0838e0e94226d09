/**
 * The unredacted act behind a question, for the actors who may answer it. The log, its events and receipts have it redacted; here
 * it is as it will run, stored from just before the question opens until it closes. An act that cannot be stored is not asked
 * about.
 */

import type { Action, Actor } from '../../model/actions.ts';
import { type Again, type AskRecord, IN_PART, isChanged, type PendingAct } from '../../model/asks.ts';
import type { CoreEvent } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { Task } from '../../model/resources.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import { asText } from '../../model/values/as-text.ts';
import { isTerminal } from '../../model/words.ts';
import type { Ids, Logger, PendingActs, ReadFileText, Row, Store } from '../../ports/index.ts';
import { type Access, requireScope } from '../access.ts';
import { describeForPeople } from '../actions/action-events.ts';
import type { RunRow } from '../events/rows.ts';
import { whyNoAnswer } from './may-answer.ts';

export interface WholeActs {
  /** Before a question opens: returns its id, with the act stored under it. Rejects when the act cannot be stored. */
  prepare(
    task: Task,
    action: Action,
    question: { readonly key: string; readonly digest: string; readonly again: Again },
  ): Promise<string>;
  /** No question was opened under this id after all. */
  discard(askId: string): void;
  /** The act as it will run. Refuses actors who may not answer; a closed question has no act any more. */
  show(actor: Actor, askId: string): Promise<PendingAct>;
  /** Rejects when the approver could not have seen the act that will run. */
  requireKept(askId: string): Promise<void>;
  /** The act behind an open question, for core only. */
  kept(askId: string): Promise<PendingAct>;
  /** Stores an approver's own arguments, from just before the answer is written until they are spent. */
  keepChanged(askId: string, digest: string, act: PendingAct): Promise<void>;
  /** Rejects when they are not stored here. */
  changed(askId: string, digest: string): Promise<JsonObject>;
  dropChanged(askId: string, digest: string): void;
  /** Drops the acts of questions that these events closed. */
  closed(events: readonly CoreEvent[]): void;
  /** Drops acts that a dead process left behind. */
  sweep(): Promise<void>;
}

export interface WholeActsDeps {
  readonly store: Pick<Store, 'get'>;
  readonly access: Pick<Access, 'see'>;
  readonly ids: Ids;
  readonly logger: Logger;
  readonly pending: PendingActs;
  readonly readFile: ReadFileText | undefined;
}

/** Longer than any process takes from storing an act to opening its question. */
const UNOPENED_MS = 10 * 60_000;

export function createWholeActs({ store, access, ids, logger, pending, readFile }: WholeActsDeps): WholeActs {
  function drop(askId: string): void {
    try {
      pending.drop(askId);
    } catch (cause) {
      logger.error({ err: cause, ask: askId }, 'a kept act could not be dropped; it is tried again');
    }
  }

  /** Adds the current file contents, where the agent did not send them. */
  async function withBefore(action: Action): Promise<PendingAct['changes']> {
    const changes = changesOf(action);
    const { cwd } = action;
    if (!changes || !cwd || !readFile) return changes;
    return await Promise.all(
      changes.map(async (change) => {
        if (change.before !== undefined) return change;
        const before = await readFile(change.path, cwd).catch(() => undefined);
        return before === undefined ? change : { ...change, before };
      }),
    );
  }

  return {
    async prepare(task, action, { key, digest, again }) {
      const run = await store.get<RunRow>('run', task.id);
      const known = run?.asks.find((ask) => ask.key === key && ask.digest === digest);
      const id = known?.id ?? ids.next('ask');
      // Answered already: there is no act left to show.
      if (known && known.state !== 'open') return id;
      const changes = await withBefore(action);
      await pending.keep(id, { ...wholeAct(action), ...(changes && { changes }), again });
      return id;
    },

    discard: drop,

    async show(actor, askId) {
      const ask = await access.see<AskRecord & Row>(actor, 'ask', askId);
      requireScope(actor, 'approvals:write');
      const task = await store.get<Task & Row>('task', ask.task_id);
      const why = whyNoAnswer(actor, ask, task ?? { created_by: actor.id }, false);
      if (why) throw new Fault('permission_denied', `${actor.id} may not answer question ${askId}: ${why.message}`);
      if (ask.state !== 'open') throw new Fault('conflict', `question ${askId} is closed; its act is no longer kept`);
      return asPeopleSee(await kept(askId));
    },

    kept,
    keepChanged: (askId, digest, act) => pending.keep(changedId(askId, digest), act),
    async changed(askId, digest) {
      return (await kept(changedId(askId, digest))).arguments;
    },
    dropChanged(askId, digest) {
      drop(changedId(askId, digest));
    },

    async requireKept(askId) {
      await kept(askId);
    },

    closed(events) {
      for (const { event, payload, replay } of events) {
        if (event === 'vendor.tollbridge.ask_closed' && !replay) drop(asText(payload.ask_id));
      }
    },

    async sweep() {
      for (const { askId: name, ageMs } of await pending.list()) {
        const [askId, changed] = name.split('-') as [string, string?];
        const ask = await store.get<AskRecord & Row>('ask', askId);
        // An answer is written just after its arguments are stored, as a question is after its act.
        const fresh = ageMs <= UNOPENED_MS && (ask === undefined || changed !== undefined);
        const needed = ask && (changed === undefined ? ask.state === 'open' : await isDue(ask, name));
        if (!needed && !fresh) drop(name);
      }
    },
  };

  /** Whether the question was approved with these arguments, under this name, and they have not run yet. */
  async function isDue({ id, state, answer, used_at, task_id }: AskRecord, name: string): Promise<boolean> {
    if (state !== 'approved' || used_at || !isChanged(answer)) return false;
    if (changedId(id, answer.arguments_digest) !== name) return false;
    const task = await store.get<Task & Row>('task', task_id);
    return task !== undefined && !isTerminal(task.status);
  }

  async function kept(askId: string): Promise<PendingAct> {
    const act = await pending.read(askId).catch((cause) => {
      throw new Fault('unavailable', `the act behind question ${askId} cannot be shown whole: ${reasonOf(cause)}`, {
        cause,
      });
    });
    if (act) return act;
    throw new Fault('unavailable', `the act behind question ${askId} cannot be shown whole: it is not kept here`);
  }
}

/** A separate name for each answer: two approvers may answer at once. */
function changedId(askId: string, digest: string): string {
  return `${askId}-${digest.slice(digest.indexOf(':') + 1).slice(0, 40)}`;
}

/** The data core needs for deciding again is not part of the act. */
export function asPeopleSee({ again: _, ...act }: PendingAct): PendingAct {
  return act;
}

export function reasonOf(cause: unknown): string {
  return cause instanceof Fault ? cause.message : 'it could not be read';
}

/** The files the act would write: as its proposer shows them, or as its arguments say. */
function changesOf({ kind, changes, target, arguments: args }: Action): PendingAct['changes'] {
  if (changes || kind !== 'fs.write' || typeof args.content !== 'string') return changes;
  const path = target ?? args.path;
  return typeof path === 'string' ? [{ path, after: args.content }] : undefined;
}

/** The members an approver needs, unredacted. */
function wholeAct(action: Action): PendingAct {
  const { kind, tool, server, target, cwd, effect, evidence, claims, actor, arguments: args } = action;
  return {
    kind,
    actor: actor.id,
    ...(actor.door && { door: actor.door }),
    ...(tool && { tool }),
    ...(server && { server }),
    ...(target && { target }),
    ...(cwd && { cwd }),
    effect,
    evidence,
    arguments: args,
    ...(claims && { claims }),
  };
}

/** A question text from the agent is its claim about the act. */
export function withWords(action: Action, title: string | undefined): Action {
  return title ? { ...action, claims: { title, ...action.claims } } : action;
}

/** Whether the log shows less of the act than will run. */
export function isInPart(action: Action, logged: JsonObject, clean: <T>(value: T) => T): boolean {
  const spelled = JSON.stringify(action.arguments);
  // Content that the arguments name only by hash is not in the log.
  if (action.changes?.some(({ after }) => !spelled.includes(JSON.stringify(after).slice(1, -1)))) return true;
  const whole = describeForPeople(action, action.arguments);
  return JSON.stringify(clean(logged)) !== JSON.stringify(whole as Json);
}

export function shownAs(inPart: boolean): JsonObject {
  return inPart ? { shown: IN_PART } : {};
}

/** For a core without a store for pending acts: they are kept in memory as long as the process lives. */
export function inMemory(): PendingActs {
  const kept = new Map<string, { readonly act: PendingAct; readonly at: number }>();
  return {
    async keep(askId, act) {
      kept.set(askId, { act, at: Date.now() });
    },
    async read(askId) {
      return kept.get(askId)?.act;
    },
    drop(askId) {
      kept.delete(askId);
    },
    async list() {
      return [...kept].map(([askId, { at }]) => ({ askId, ageMs: Date.now() - at }));
    },
  };
}
