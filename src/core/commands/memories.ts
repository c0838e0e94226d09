/**
 * Memories of work. A memory belongs to a session, a persona, a workspace or a tenant, and applies only to work of that owner; the
 * same rule covers memories given with a task, memories read at a door, and memories an agent writes.
 */

import type { Actor } from '../../model/actions.ts';
import { type Fact, memoryRead } from '../../model/commands.ts';
import { Fault } from '../../model/faults.ts';
import type { MemoryPayload } from '../../model/payloads.ts';
import { type Memory, Memory as MemoryShape, type Session, type Task, type Workspace } from '../../model/resources.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import { check } from '../../model/validate.ts';
import { asText } from '../../model/values/as-text.ts';
import { everyRow } from '../../model/values/every-row.ts';
import { isTerminal, MEMORY_SCOPES } from '../../model/words.ts';
import type { Row } from '../../ports/index.ts';
import { holds, requireReadScope } from '../access.ts';
import type { Context } from '../context.ts';
import { maySee } from '../events/visibility.ts';
import { inTask, ours } from '../tasks/lifecycle.ts';
import { declaredEvent } from './declared-event.ts';

/** The position of work by which memories apply to it. */
interface Standing {
  readonly tenant_id: string | null;
  readonly workspace_id: string;
  readonly persona_id: string | null;
  /** The session itself, and those it was forked from: a fork continues with their memories. */
  readonly sessions: readonly string[];
}

type Kept = Memory & Row & { readonly tenant_id?: string | null };

export function reaches(memory: Kept, standing: Standing): boolean {
  if ((memory.tenant_id ?? null) !== standing.tenant_id) return false;
  if (memory.workspace_id && memory.workspace_id !== standing.workspace_id) return false;
  switch (memory.scope) {
    case 'session':
      return standing.sessions.includes(memory.owner_id);
    case 'persona':
      return memory.owner_id === standing.persona_id;
    case 'workspace':
      return memory.owner_id === standing.workspace_id;
    case 'tenant':
      // Without tenants the whole installation counts as one, whatever owner a writer named.
      return standing.tenant_id === null || memory.owner_id === standing.tenant_id;
    default:
      return false;
  }
}

/** Whether an agent may be given a memory: not one that has expired, and not one for receipts only. */
function isReadable({ expires_at, visibility }: Memory, now: string): boolean {
  if (visibility !== undefined && visibility !== 'public' && visibility !== 'internal') return false;
  return !expires_at || Date.parse(expires_at) > Date.parse(now);
}

export interface Memories {
  /** The memories a task's session names and this work may read, and the facts that record the reads. */
  memoriesFor(
    task: Task,
    session: Session,
  ): Promise<{ readonly memories: readonly Memory[]; readonly facts: readonly Fact[] }>;
  /** All memories that apply to a session, for clients that work in it. */
  recall(actor: Actor, sessionId: string): AsyncIterable<Memory & Row>;
  /** Stores a memory that the work writes: for later work of the same session, persona, workspace or tenant, and for no other. */
  write(task: Task, actor: Actor, wanted: JsonObject, callId: string): Promise<string>;
}

export function createMemories({ store, log, access, clock, ids, hash }: Context): Memories {
  async function standingOf(session: Session, personaId: string | null | undefined): Promise<Standing> {
    const workspace = await store.get<Workspace & Row>('workspace', session.workspace_id);
    const { id, parent_session_id, root_session_id } = session;
    return {
      tenant_id: workspace?.tenant_id ?? null,
      workspace_id: session.workspace_id,
      persona_id: personaId ?? session.persona_id ?? null,
      sessions: [id, parent_session_id, root_session_id].filter((each) => typeof each === 'string'),
    };
  }

  async function memoriesFor(task: Task, session: Session) {
    const named = (Array.isArray(session.metadata.memory_ids) ? session.metadata.memory_ids : []) as readonly string[];
    const memories: Memory[] = [];
    const facts: Fact[] = [];
    if (named.length === 0) return { memories, facts };
    const standing = await standingOf(session, task.persona_id);
    for (const id of new Set(named)) {
      const memory = await store.get<Kept>('memory', id);
      if (!memory || !reaches(memory, standing) || !isReadable(memory, clock.now())) continue;
      memories.push(memory);
      facts.push(memoryRead(memory, hash));
    }
    return { memories, facts };
  }

  async function* recall(actor: Actor, sessionId: string): AsyncGenerator<Memory & Row, void, undefined> {
    requireReadScope(actor, 'memory');
    // The agent is a client with a credential of its own here, so internal memories need the scope for them.
    const sight = { internal: holds(actor, 'internal:read'), receiptOnly: false };
    const session = await access.see<Session & Row>(actor, 'session', sessionId);
    const standing = await standingOf(session, undefined);
    const { tenant_id, persona_id, workspace_id, sessions } = standing;
    const owners = [...sessions, workspace_id, persona_id, tenant_id].filter((id) => id !== null);
    // Without tenants the owner id of a tenant's memory is unknown, so it is not filtered by.
    const where = tenant_id === null ? {} : { where: { owner_id: owners } };
    for await (const memory of everyRow((paging) => store.list<Kept>({ object: 'memory', ...where, ...paging }))) {
      if (!reaches(memory, standing) || !isReadable(memory, clock.now()) || !maySee(memory.visibility, sight)) continue;
      if (await access.visible(actor, memory)) yield memory;
    }
  }

  async function write(task: Task, actor: Actor, wanted: JsonObject, callId: string): Promise<string> {
    const session = await store.get<Session & Row>('session', task.session_id);
    const workspace = await store.get<Workspace & Row>('workspace', task.workspace_id);
    const scope = asText(wanted.scope ?? 'session');
    if (!(MEMORY_SCOPES as readonly string[]).includes(scope)) {
      throw new Fault('invalid_request', `scope must be one of ${MEMORY_SCOPES.join(', ')}`, { param: '/scope' });
    }
    const tenant = workspace?.tenant_id ?? ours(task).tenant_id ?? null;
    const owner = {
      session: task.session_id,
      persona: task.persona_id ?? session?.persona_id ?? null,
      workspace: task.workspace_id,
      tenant: tenant ?? 'default',
    }[scope as 'session'];
    if (owner === null)
      throw new Fault('invalid_request', 'this work has no persona to remember for', { param: '/scope' });
    if (wanted.owner_id !== undefined && wanted.owner_id !== owner) {
      throw new Fault('permission_denied', `work here remembers for its own ${scope} and no other`);
    }
    const id = ids.next('memory');
    const { content, visibility, expires_at, confidence } = wanted;
    await log.commit({
      reads: [{ object: 'task', id: task.id }],
      decide(at) {
        const now = at.get<Task & Row>('task', task.id);
        if (!now || isTerminal(now.status)) throw new Fault('conflict', `task ${task.id} already ended`);
        const row = check(
          MemoryShape,
          {
            id,
            object: 'memory',
            created_at: at.now,
            updated_at: at.now,
            metadata: {},
            scope,
            owner_id: owner,
            content: content ?? null,
            provenance: { task_id: task.id, actor: actor.id, tool_call_id: callId },
            ...(visibility !== undefined && { visibility }),
            ...(expires_at !== undefined && { expires_at }),
            ...(confidence !== undefined && { confidence }),
            ...((scope === 'session' || scope === 'workspace') && { workspace_id: task.workspace_id }),
            ...(tenant && { tenant_id: tenant }),
          },
          'memory',
        ) as Memory & Row;
        return {
          events: [
            declaredEvent('created', row, row.workspace_id ?? null, actor.id),
            { event: 'agent.memory_write', actor: actor.id, payload: written(row, hash, callId), ...inTask(now) },
          ],
        };
      },
    });
    return id;
  }

  return { memoriesFor, recall, write };
}

/** The log entry for a memory that work has written: its id, its owner, and its content by hash. */
export function written(memory: Memory, hash: Context['hash'], callId?: string): MemoryPayload {
  return {
    memory_id: memory.id,
    scope: memory.scope,
    owner_id: memory.owner_id,
    content_hash: hash(memory.content as Json),
    ...(callId && { tool_call_id: callId }),
  };
}

/** The input with the agent's memories before it. Only the agent gets it: neither the task nor the log changes. */
export function withMemories(input: Task['input'], memories: readonly Memory[]): Task['input'] {
  if (memories.length === 0) return input;
  const listed = memories.map(({ id, scope, content }) => ({ id, scope, content }));
  if (!Array.isArray(input.parts)) return { ...input, memories: listed };
  const part = { type: 'json', value: { memories: listed }, visibility: 'public' };
  return { ...input, parts: [part, ...(input.parts as readonly Json[])] };
}
