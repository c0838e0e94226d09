/**
 * The act behind a question, whole, for the people who may answer it. The log, its events and receipts have it redacted; here it
 * is as it will run, kept from just before the question opens until it closes. An act that cannot be kept is not asked about.
 */

import type { Action, Actor } from '../model/actions.ts';
import { asText } from '../model/as-text.ts';
import { type AskRecord, IN_PART, type PendingAct } from '../model/asks.ts';
import type { CoreEvent } from '../model/events.ts';
import { Fault } from '../model/faults.ts';
import type { Task } from '../model/resources.ts';
import type { Json, JsonObject } from '../model/schema.ts';
import type { Ids, Logger, PendingActs, ReadFileText, Row, Store } from '../ports.ts';
import { type Access, requireScope } from './access.ts';
import { describeForPeople } from './act-events.ts';
import { whyNoAnswer } from './may-answer.ts';
import type { Run } from './rows.ts';

export interface WholeActs {
  /** Before a question opens: its id, with the act kept under it. Rejects when the act cannot be kept. */
  prepare(task: Task, action: Action, question: { readonly key: string; readonly digest: string }): Promise<string>;
  /** The question was not opened under this id after all. */
  discard(askId: string): void;
  /** The act as it will run. Refuses those who may not answer; a closed question has none any more. */
  show(actor: Actor, askId: string): Promise<PendingAct>;
  /** Rejects when a yes to this question could not have been given to what will run. */
  requireKept(askId: string): Promise<void>;
  /** What a commit closed has nothing left to show. */
  closed(events: readonly CoreEvent[]): void;
  /** Drops what a process that died left behind. */
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

/** Longer than any process takes from keeping an act to opening its question. */
const UNOPENED_MS = 10 * 60_000;

export function createWholeActs({ store, access, ids, logger, pending, readFile }: WholeActsDeps): WholeActs {
  function drop(askId: string): void {
    try {
      pending.drop(askId);
    } catch (cause) {
      logger.error({ err: cause, ask: askId }, 'a kept act could not be dropped; it is tried again');
    }
  }

  /** Files as they are now, where the agent did not say. */
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
    async prepare(task, action, { key, digest }) {
      const run = await store.get<Run>('run', task.id);
      const known = run?.asks.find((ask) => ask.key === key && ask.digest === digest);
      const id = known?.id ?? ids.next('ask');
      // Answered already: there is nothing left to show.
      if (known && known.state !== 'open') return id;
      const changes = await withBefore(action);
      await pending.keep(id, { ...wholeAct(action), ...(changes && { changes }) });
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
      return await kept(askId);
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
      for (const { askId, ageMs } of await pending.list()) {
        const ask = await store.get<AskRecord & Row>('ask', askId);
        if (ask ? ask.state !== 'open' : ageMs > UNOPENED_MS) drop(askId);
      }
    },
  };

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

export function reasonOf(cause: unknown): string {
  return cause instanceof Fault ? cause.message : 'it could not be read';
}

/** Files it would write: as its proposer shows them, or as its own arguments say. */
function changesOf({ kind, changes, target, arguments: args }: Action): PendingAct['changes'] {
  if (changes || kind !== 'fs.write' || typeof args.content !== 'string') return changes;
  const path = target ?? args.path;
  return typeof path === 'string' ? [{ path, after: args.content }] : undefined;
}

/** The members a person needs, as they are. */
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

/** What an agent said in place of a question is its claim about the act. */
export function withWords(action: Action, title: string | undefined): Action {
  return title ? { ...action, claims: { title, ...action.claims } } : action;
}

/** Whether the log shows less than what will run. */
export function isInPart(action: Action, logged: JsonObject, clean: <T>(value: T) => T): boolean {
  const spelled = JSON.stringify(action.arguments);
  // Content that the arguments name by its hash alone stands nowhere in the log.
  if (action.changes?.some(({ after }) => !spelled.includes(JSON.stringify(after).slice(1, -1)))) return true;
  const whole = describeForPeople(action, action.arguments);
  return JSON.stringify(clean(logged)) !== JSON.stringify(whole as Json);
}

export function shownAs(inPart: boolean): JsonObject {
  return inPart ? { shown: IN_PART } : {};
}

/** For a core without a place to keep anything: acts are kept as long as it lives. */
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
