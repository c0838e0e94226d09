/** Commands for sessions: open, append, fork, truncate, compact, close. Messages in a session keep log order. */
import type { Actor } from '../../model/actions.ts';
import type { CommandBody, CommandKind } from '../../model/commands.ts';
import type { EventDraft } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { Memory, Message, Session, Task } from '../../model/resources.ts';
import type { JsonObject } from '../../model/schema.ts';
import { isTerminal } from '../../model/words.ts';
import type { At, Row, VaultAccess } from '../../ports/index.ts';
import { configuredVault } from '../access.ts';
import { accepted, type Context, earlier, type Handlers, once } from '../context.ts';
import type { Tally } from '../events/rows.ts';
import { linkEvents, linkedBy } from './artifact-changes.ts';
import { PENDING } from './asked-session.ts';
import { branchEvent, newBranch, openBranch, seeBranch } from './branches.ts';
import {
  type Admit,
  admitted,
  freshSession,
  mayUse,
  type ServingDeps,
  serving,
  sessionEvent,
  unserved,
} from './session-opening.ts';
import {
  allMessages,
  closed,
  messageEvents,
  messagesAsOf,
  openSession,
  sessionLocation,
  transcriptEvents,
} from './transcript.ts';
import { completeSession, newSession } from './views.ts';

type Kinds = Extract<CommandKind, `session.${string}` | 'message.append'>;

export interface SessionDeps extends Context, ServingDeps {
  readonly admit: Admit;
  readonly vaults: Pick<VaultAccess, 'open'>;
  /** Ends a task that prevents closing or truncating a session. */
  readonly cancelTask: (taskId: string, by: string, reason: string) => Promise<unknown>;
}

export function sessionHandlers(deps: SessionDeps): Pick<Handlers, Kinds> {
  const { store, log, access, ids } = deps;

  async function openTasks(sessionId: string): Promise<readonly Task[]> {
    const runs = await store.list<Row>({ object: 'run', where: { session_id: sessionId }, limit: 200 });
    const tasks = await Promise.all(runs.map(({ id }) => store.get<Task & Row>('task', id)));
    return tasks.filter((task) => task !== undefined && !isTerminal(task.status)) as Task[];
  }

  async function seen(actor: Actor, id: string): Promise<Row> {
    return await completeSession(store, await access.see<Session & Row>(actor, 'session', id));
  }

  async function stopAll(sessionId: string, by: string, reason: string): Promise<void> {
    for (const task of await openTasks(sessionId)) await deps.cancelTask(task.id, by, reason);
  }

  return {
    'session.create': async (command) => {
      const { actor, body } = command;
      await mayUse(access, actor, body);
      const named = { vault: body.vault_ids, memory: body.memory_ids, skill: body.skill_ids };
      for (const [object, list] of Object.entries(named)) {
        for (const id of list ?? []) await access.see(actor, object, id);
      }
      for (const { parts } of body.initial_messages ?? []) await linkedBy(deps, actor, parts);
      await mayRemember(deps, body);
      await mayOpen(deps, actor, body);
      const claim = once(deps, command, body.workspace_id, 'sessions');
      const before = await admitted(deps, claim, actor, body);
      if (before) return accepted('session.create', await seen(actor, (before as { id: string }).id), true);

      const id = ids.next('session');
      const lists = Object.fromEntries(
        Object.entries(named).flatMap(([o, list]) => (list ? [[`${o}_ids`, list]] : [])),
      );
      const location = sessionLocation(id, body.workspace_id);
      const messages = await Promise.all(
        (body.initial_messages ?? []).map((input) => messageEvents(deps, location, input, actor.id)),
      );
      const { result, repeated, events } = await log.commit({
        ...claim,
        decide(at) {
          const metadata = { ...unnamed(body.metadata), ...lists, ...serving(deps, body.agent) };
          const session = freshSession(id, { ...body, metadata }, at.now);
          const created = sessionEvent('session.created', session, actor);
          return { events: [created, ...messages.flat()], born: [id], result: { id } };
        },
      });
      const [created] = events;
      if (created?.event === 'session.created' && events.length === 1)
        return accepted('session.create', newSession(created), false);
      const made = (result as { id: string }).id;
      return accepted('session.create', await seen(actor, made), repeated);
    },

    'session.update': async (command) => {
      const { actor, body } = command;
      const before = await access.see<Session & Row>(actor, 'session', body.session_id);
      const { repeated } = await log.commit({
        ...once(deps, command, before.workspace_id, body.session_id),
        reads: [{ object: 'session', id: body.session_id }],
        decide(at) {
          const session = openSession(at, body.session_id);
          const next = {
            ...session,
            ...(body.summary !== undefined && { summary: body.summary }),
            metadata: { ...session.metadata, ...unnamed(body.metadata), ...serving(deps, body.agent) },
          };
          return {
            events: [
              {
                ...sessionLocation(session.id, session.workspace_id),
                event: 'vendor.tollbridge.resource_updated',
                actor: actor.id,
                payload: { resource: next },
              },
            ],
            result: { id: session.id },
          };
        },
      });
      return accepted('session.update', await seen(actor, body.session_id), repeated);
    },

    'session.close': async (command) => {
      const { actor, body } = command;
      const before = await access.see<Session & Row>(actor, 'session', body.session_id);
      for (;;) {
        if (before.state !== 'CLOSED') await stopAll(before.id, actor.id, 'the session was closed');
        try {
          const { repeated } = await log.commit({
            ...once(deps, command, before.workspace_id, body.session_id),
            reads: [
              { object: 'session', id: body.session_id },
              { object: 'tally', id: body.session_id },
            ],
            decide(at) {
              const session = at.get<Session & Row>('session', body.session_id) as Session;
              if (session.state === 'CLOSED') return { events: [], result: { id: session.id } };
              // Work submitted after the other tasks were stopped must not outlive the session.
              if ((at.get<Tally>('tally', session.id)?.open_tasks ?? 0) > 0) throw new Busy(session.id);
              const closed: Session = { ...session, state: 'CLOSED', updated_at: at.now };
              return { events: [sessionEvent('session.closed', closed, actor)], result: { id: session.id } };
            },
          });
          return accepted('session.close', await seen(actor, body.session_id), repeated);
        } catch (cause) {
          if (!(cause instanceof Busy)) throw cause;
        }
      }
    },

    'session.fork': async (command) => {
      const { actor, body } = command;
      const source = await access.see<Session & Row>(actor, 'session', body.session_id);
      if (body.at_event_id) {
        const event = await store.event(body.at_event_id);
        if (event?.session_id !== source.id)
          throw new Fault('not_found', `no event ${body.at_event_id} in this session`);
      }
      const existing = body.branch_id ? await seeBranch(deps, actor, body.branch_id, source.workspace_id) : undefined;
      const from = body.at_event_id ?? (await store.tip({ of: 'session', id: source.id })) ?? null;
      const copied = body.at_event_id
        ? await messagesAsOf(deps, source.id, body.at_event_id)
        : await allMessages(deps, source.id);
      const id = ids.next('session');
      const branchId = existing?.id ?? ids.next('branch');
      const location = sessionLocation(id, source.workspace_id);
      const { result, repeated } = await log.commit({
        ...once(deps, command, source.workspace_id, source.id),
        reads: existing ? [{ object: 'branch', id: branchId }] : [],
        decide(at) {
          const branched = existing
            ? takenBranch(at, branchId, id, actor.id)
            : branchEvent(
                'branch.created',
                newBranch({
                  id: branchId,
                  now: at.now,
                  created_by: actor.id,
                  kind: 'session',
                  base_ref: from ? `${source.id}@${from}` : source.id,
                  workspace_id: source.workspace_id,
                  parent_branch_id: source.branch_id ?? null,
                  session_id: id,
                }),
                actor.id,
              );
          const fork: Session = {
            ...source,
            id,
            created_at: at.now,
            updated_at: at.now,
            metadata: { ...unserved(source.metadata), ...unnamed(body.metadata) },
            state: 'IDLE',
            transcript: {},
            root_session_id: source.root_session_id ?? source.id,
            parent_session_id: source.id,
            branch_id: branchId,
          };
          const messages = copied.flatMap((message) => {
            const copy: Message = {
              ...message,
              id: ids.next('message'),
              session_id: id,
              task_id: null,
              metadata: { ...message.metadata, copied_from: message.id },
            };
            return transcriptEvents(location, copy, actor.id);
          });
          const forked: EventDraft = {
            ...sessionLocation(source.id, source.workspace_id),
            event: 'session.thread_forked',
            actor: actor.id,
            payload: {
              session_id: id,
              branch_id: branchId,
              at_event_id: body.at_event_id ?? null,
              messages: copied.length,
            },
          };
          const events = [sessionEvent('session.created', fork, actor), branched, ...messages, forked];
          return { events, result: { id } };
        },
      });
      const made = (result as { id: string }).id;
      return accepted('session.fork', await seen(actor, made), repeated);
    },

    'session.truncate': async (command) => {
      const { actor, body } = command;
      const before = await access.see<Session & Row>(actor, 'session', body.session_id);
      const claim = once(deps, command, before.workspace_id, before.id);
      // A repeat must not stop tasks that were submitted after the first.
      const first = await earlier(deps, claim);
      if (first) {
        return accepted('session.truncate', await seen(actor, before.id), true, { details: first as JsonObject });
      }
      if (before.state === 'CLOSED') throw closed(before.id);
      await stopAll(before.id, actor.id, 'the session was cut back');
      for (;;) {
        const messages = await allMessages(deps, before.id);
        const removed = messages.slice(body.keep_first);
        const details = {
          kept_turn_count: messages.length - removed.length,
          removed_turn_count: removed.length,
          new_tip_turn_id:
            messages[body.keep_first - 1]?.id ?? (removed.length === 0 ? (messages.at(-1)?.id ?? null) : null),
        };
        try {
          const { repeated, result } = await log.commit({
            ...claim,
            reads: [
              { object: 'session', id: before.id },
              { object: 'tally', id: before.id },
            ],
            decide(at) {
              openSession(at, before.id);
              if ((at.get<Tally>('tally', before.id)?.messages ?? 0) !== messages.length) throw new Busy(before.id);
              const payload = { ...details, removed: removed.map(({ id }) => id), reason: body.reason ?? null };
              const location = sessionLocation(before.id, before.workspace_id);
              return {
                events: [{ ...location, event: 'session.truncated', actor: actor.id, payload }],
                result: details,
              };
            },
          });
          const session = await seen(actor, before.id);
          return accepted('session.truncate', session, repeated, { details: result as JsonObject });
        } catch (cause) {
          if (!(cause instanceof Busy)) throw cause;
        }
      }
    },

    'session.compact': async (command) => {
      const { actor, body } = command;
      const before = await access.see<Session & Row>(actor, 'session', body.session_id);
      const through = await access.see<Message & Row>(actor, 'message', body.through_message_id);
      if (through.session_id !== before.id) throw new Fault('not_found', `no message ${through.id} in this session`);
      const { repeated } = await log.commit({
        ...once(deps, command, before.workspace_id, before.id),
        reads: [{ object: 'session', id: before.id }],
        decide(at) {
          openSession(at, before.id);
          return {
            events: [
              {
                ...sessionLocation(before.id, before.workspace_id),
                event: 'session.compacted',
                actor: actor.id,
                payload: { summary: body.summary, through_message_id: body.through_message_id },
              },
            ],
            result: { id: before.id },
          };
        },
      });
      return accepted('session.compact', await seen(actor, before.id), repeated);
    },

    'message.append': async (command) => {
      const { actor, body } = command;
      const session = await access.see<Session & Row>(actor, 'session', body.session_id);
      const location = sessionLocation(session.id, session.workspace_id);
      const id = ids.next('message');
      const files = await linkedBy(deps, actor, body.message.parts);
      const added = await messageEvents(deps, location, { ...body.message, id }, actor.id);
      const events = [...added, ...linkEvents(files, { object: 'message', id }, { ...location, actor: actor.id })];
      const { result, repeated } = await log.commit({
        ...once(deps, command, session.workspace_id, `${session.id}/messages`),
        reads: [{ object: 'session', id: session.id }],
        decide(at) {
          openSession(at, session.id);
          return { events, result: { id } };
        },
      });
      const made = (result as { id: string }).id;
      return accepted('message.append', await access.see<Row>(actor, 'message', made), repeated);
    },
  };
}

/**
 * A session's vaults, memories and skills are checked when named as members; any client may write metadata, so ids there are
 * removed.
 */
function unnamed(metadata: JsonObject | undefined): JsonObject {
  const { vault_ids: _v, memory_ids: _m, skill_ids: _s, [PENDING]: _p, ...rest } = unserved(metadata);
  return rest;
}

/** A memory of another owner would never be read in this session: an error now is better than silence. */
async function mayRemember(
  { store }: Pick<Context, 'store'>,
  { workspace_id, persona_id, memory_ids }: CommandBody<'session.create'>,
): Promise<void> {
  for (const [at, id] of (memory_ids ?? []).entries()) {
    const { scope, owner_id, ...memory } = (await store.get<Memory & Row>('memory', id)) as Memory & Row;
    const other =
      scope === 'session' ||
      (scope === 'persona' && persona_id && owner_id !== persona_id) ||
      (memory.workspace_id && memory.workspace_id !== workspace_id);
    if (!other) continue;
    const message = `memory ${id} is of another ${scope} and would not be read here`;
    throw new Fault('invalid_request', message, { param: `/memory_ids/${at}` });
  }
}

/** A vault listed for a tenant need not be open to work in this workspace, or of this persona. */
async function mayOpen(
  { store, vaults }: Pick<SessionDeps, 'store' | 'vaults'>,
  { tenant_id = null }: { readonly tenant_id?: string | null },
  { workspace_id, persona_id = null, vault_ids }: CommandBody<'session.create'>,
): Promise<void> {
  for (const id of vault_ids ?? []) {
    const name = configuredVault((await store.get<Row>('vault', id)) as Row);
    const open = name === undefined || vaults.open(name, { tenant_id, workspace_id, persona_id });
    if (!open) throw new Fault('not_found', `no vault ${id}`);
  }
}

/** An existing branch takes one fork: two would be two histories under one name. */
function takenBranch(at: At, branchId: string, sessionId: string, actor: string): EventDraft {
  const branch = openBranch(at, branchId);
  if (branch.metadata.forked_session_id) throw new Fault('conflict', `branch ${branchId} has a session already`);
  const next = { ...branch, metadata: { ...branch.metadata, forked_session_id: sessionId } };
  return branchEvent('branch.updated', next, actor);
}

/** A task was submitted between reading and writing. */
class Busy extends Fault {
  constructor(sessionId: string) {
    super('conflict', `session ${sessionId} changed meanwhile`);
  }
}
