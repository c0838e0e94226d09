/** Commands for declared resources: workspaces, personas, memories, vaults and the like. */

import type { Actor } from '../../model/actions.ts';
import type { CommandKind, DeclaredKind } from '../../model/commands.ts';
import type { EventDraft } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import { type Memory, OWN_RESOURCES, type Pointer, RESOURCES, type Session, type Task } from '../../model/resources.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import { check } from '../../model/validate.ts';
import { asText } from '../../model/values/as-text.ts';
import { own } from '../../model/values/own.ts';
import {
  AUTONOMY_TIERS,
  CONNECTOR_STATES,
  isTerminal,
  MEMORY_SCOPES,
  QUOTA_LIMITS,
  QUOTA_SCOPES,
  RECEIPT_POLICIES,
  VISIBILITIES,
} from '../../model/words.ts';
import type { Row, VaultAccess } from '../../ports/index.ts';
import { accepted, type Context, type Handlers, once, orEarlier } from '../context.ts';
import { inTask } from '../tasks/lifecycle.ts';
import { declaredEvent } from './declared-event.ts';
import { written } from './memories.ts';
import { judgeUse, secretsNamed } from './secret-use.ts';

type Kinds = Extract<CommandKind, `resource.${string}`>;

const SHAPES = { ...RESOURCES, ...OWN_RESOURCES };

/** Word lists that are open when read from others but closed when written here. */
const CLOSED: Partial<Record<DeclaredKind, Readonly<Record<string, readonly string[]>>>> = {
  persona: { autonomy_tier: AUTONOMY_TIERS, receipt_policy: RECEIPT_POLICIES },
  memory: { scope: MEMORY_SCOPES, visibility: VISIBILITIES },
  connector: { status: CONNECTOR_STATES },
  quota: { scope: QUOTA_SCOPES },
};

const DEFAULTS: Partial<Record<DeclaredKind, JsonObject>> = {
  workspace: { default_branch_id: null },
  quota: { hard_limit: true },
  connector: { status: 'ACTIVE' },
  vault: { workspace_id: null },
  skill: { input_schema: null, output_schema: null },
};

/** Members that name another resource. */
const NAMES: Partial<Record<DeclaredKind, Readonly<Record<string, string>>>> = {
  persona: { quota_id: 'quota' },
  workspace: { quota_id: 'quota', default_branch_id: 'branch' },
  connector: { target_persona_id: 'persona', target_session_id: 'session' },
};

/** Members that core assigns; values for them in a body are ignored. */
const OWNED = ['id', 'object', 'created_at', 'updated_at', 'tenant_id'];

export interface DeclaredDeps extends Context {
  readonly vaults: VaultAccess;
}

export function declaredHandlers(context: DeclaredDeps): Pick<Handlers, Kinds> {
  const { log, access, ids } = context;

  /**
   * The writer must be able to see every resource that the body names: a reference could be used to use a resource, or to learn
   * that it exists.
   */
  async function seesNamed(actor: Actor, object: DeclaredKind, body: JsonObject): Promise<void> {
    for (const [member, named] of Object.entries(NAMES[object] ?? {})) {
      const other = own(body, member);
      if (typeof other === 'string') await access.see(actor, named, other);
    }
  }

  /** The workspace of a resource: its own, or that of the session a memory belongs to. */
  async function homeFor(actor: Actor, object: DeclaredKind, id: string, body: JsonObject): Promise<string | null> {
    if (object === 'workspace') {
      if (!actor.workspaces || actor.workspaces.includes(id)) return id;
      throw new Fault('permission_denied', `${actor.id} may only use the workspaces it was given`);
    }
    const home = await workspaceOf(actor, object, body);
    if (home && !(await access.workspaceVisible(actor, home))) throw new Fault('not_found', `no workspace ${home}`);
    return home;
  }

  async function workspaceOf(actor: Actor, object: DeclaredKind, body: JsonObject): Promise<string | null> {
    const { workspace_id: named = null } = body;
    // Also for kinds without a workspace_id of their own: a given workspace_id counts.
    if (named !== null && typeof named !== 'string') {
      throw new Fault('invalid_request', 'workspace_id has to be the id of a workspace', { param: '/workspace_id' });
    }
    if (object !== 'memory' || typeof body.owner_id !== 'string') return named;
    const home = await memoryHome(actor, body as Pick<Memory, 'scope' | 'owner_id'>);
    if (home !== null && named !== null && home !== named) {
      throw new Fault('invalid_request', 'the owner of this memory is in another workspace', {
        param: '/workspace_id',
      });
    }
    if (home ?? named) return home ?? named;
    // It would be read in workspaces its writer may not see.
    if (actor.workspaces) throw new Fault('permission_denied', `${actor.id} may only use the workspaces it was given`);
    return null;
  }

  /**
   * The writer of a memory must be able to see its owner: the session, the workspace or the persona; for a tenant's memory, the
   * writer's own tenant.
   */
  async function memoryHome(
    actor: Actor,
    { scope, owner_id }: Pick<Memory, 'scope' | 'owner_id'>,
  ): Promise<string | null> {
    switch (scope) {
      case 'session':
        return (await access.see<Session & Row>(actor, 'session', owner_id)).workspace_id;
      case 'workspace':
        return (await access.see(actor, 'workspace', owner_id)).id;
      case 'persona':
        await access.see(actor, 'persona', owner_id);
        return null;
      case 'tenant':
        if (actor.tenant_id && actor.tenant_id !== owner_id) throw new Fault('not_found', `no tenant ${owner_id}`);
        return null;
      default:
        return null;
    }
  }

  /** The open task that a memory names as its source, where the writer is the agent of that task. */
  async function runBehind(actor: Actor, { provenance }: JsonObject): Promise<Task | undefined> {
    const { task_id: id } = (provenance ?? {}) as { task_id?: unknown };
    if (typeof id !== 'string') return undefined;
    const task = await access.see<Task & Row>(actor, 'task', id);
    const works = actor.kind === 'agent' || ((task.assigned_agent_id ?? null) === null && task.created_by === actor.id);
    return works ? task : undefined;
  }

  /** Whether each secret it names may be used there. A refusal is recorded before the caller gets it. */
  async function secretsOf(
    actor: Actor,
    by: Pointer,
    home: string | null,
    row: JsonObject,
  ): Promise<readonly EventDraft[]> {
    if (actor.kind === 'system' && actor.door === undefined) return [];
    const persona = typeof row.target_persona_id === 'string' ? row.target_persona_id : null;
    const user = { tenant_id: actor.tenant_id ?? null, workspace_id: home, persona_id: persona };
    const uses = secretsNamed(row).map((named) => judgeUse(context, context.vaults, { actor, user, by, ...named }));
    const refused = uses.find(({ allowed }) => !allowed);
    if (!refused) return uses.map(({ event }) => event);
    await log.commit({ decide: () => ({ events: [refused.event] }) });
    throw refused.refusal;
  }

  /** The resource to change, if this actor may change it, and its workspace. */
  async function mine(actor: Actor, object: DeclaredKind, id: string): Promise<{ row: Row; home: string | null }> {
    const row = await access.see<Row & { workspace_id?: string | null }>(actor, object, id);
    if (!access.owns(actor, row)) {
      throw new Fault('permission_denied', `${object} ${id} belongs to the gateway and is not ${actor.id}'s to change`);
    }
    return { row, home: object === 'workspace' ? id : (row.workspace_id ?? null) };
  }

  function whole(object: DeclaredKind, row: JsonObject): Row {
    for (const [member, words] of Object.entries(CLOSED[object] ?? {})) {
      const value = own(row, member);
      if (value !== undefined && !words.includes(asText(value))) {
        throw new Fault('invalid_request', `${member} must be one of ${words.join(', ')}`, { param: `/${member}` });
      }
    }
    if (object === 'quota') requireCountable(own(row, 'limits'));
    return check(SHAPES[object], row, object);
  }

  return {
    'resource.create': async (command) => {
      const { actor, body } = command;
      const id = body.id ?? ids.next(body.object);
      const home = await homeFor(actor, body.object, id, body.body);
      await seesNamed(actor, body.object, body.body);
      const secrets = await secretsOf(actor, { object: body.object, id }, home, body.body);
      const run = body.object === 'memory' ? await runBehind(actor, body.body) : undefined;
      const { result, repeated } = await log.commit({
        ...once(context, command, body.object === 'workspace' ? null : home, body.object),
        reads: [{ object: body.object, id }, ...(run ? [{ object: 'task', id: run.id }] : [])],
        decide(at) {
          // An id is not reused even after deletion: the log still holds the old resource's history, which is not the new one's. A
          // name that was removed from the configuration and comes back is the same resource, and the process itself declares it
          // again.
          const again = actor.kind === 'system' && actor.door === undefined;
          if (at.get(body.object, id) || (!again && at.sequence(body.object, id) > 0)) {
            throw new Fault('conflict', `${body.object} ${id} exists already`);
          }
          const row = whole(body.object, {
            ...DEFAULTS[body.object],
            ...(body.object === 'quota' && { usage: nothingUsed(body.body.limits) }),
            metadata: body.metadata ?? {},
            ...without(body.body, OWNED),
            id,
            object: body.object,
            created_at: at.now,
            updated_at: at.now,
            ...(actor.tenant_id && { tenant_id: actor.tenant_id }),
            ...(body.object === 'memory' && home && { workspace_id: home }),
          });
          const created = declaredEvent('created', row, home, actor.id);
          const work = run && at.get<Task & Row>('task', run.id);
          if (!work || isTerminal(work.status)) return { events: [...secrets, created], result: { id } };
          const payload = written(row as Memory, context.hash);
          const writeEvent: EventDraft = { event: 'agent.memory_write', actor: actor.id, payload, ...inTask(work) };
          return { events: [created, writeEvent], result: { id } };
        },
      });
      const made = (result as { id: string }).id;
      return accepted('resource.create', await access.see<Row>(actor, body.object, made), repeated);
    },

    'resource.update': async (command) => {
      const { actor, body } = command;
      const { row: before, home } = await mine(actor, body.object, body.id);
      staysWhereItIs(body.object, before, body.body);
      await seesNamed(actor, body.object, body.body);
      // Includes the secrets it named before: its tenant or persona may be what changes.
      const next = { ...before, ...body.body };
      const secrets = await secretsOf(actor, { object: body.object, id: body.id }, home, next);
      const { repeated } = await log.commit({
        ...once(context, command, home, body.id),
        reads: [{ object: body.object, id: body.id }],
        decide(at) {
          const now = at.get<Row>(body.object, body.id);
          if (!now) throw new Fault('not_found', `no ${body.object} ${body.id}`);
          const merged = {
            ...now,
            ...(body.object === 'quota' && { usage: countedFrom(now, body.body.limits) }),
            ...without(body.body, OWNED),
            updated_at: at.now,
          };
          const row = whole(body.object, body.metadata ? { ...merged, metadata: body.metadata } : merged);
          return { events: [...secrets, declaredEvent('updated', row, home, actor.id)], result: { id: body.id } };
        },
      });
      return accepted('resource.update', await access.see<Row>(actor, body.object, body.id), repeated);
    },

    'resource.delete': async (command) => {
      const { actor, body } = command;
      const claim = once(context, command, null, body.id);
      const withdraw = async () => {
        const { row, home } = await mine(actor, body.object, body.id);
        const { repeated } = await log.commit({
          ...claim,
          reads: [{ object: body.object, id: body.id }],
          decide(at) {
            if (!at.get(body.object, body.id)) throw new Fault('not_found', `no ${body.object} ${body.id}`);
            return { events: [declaredEvent('deleted', row, home, actor.id)], result: row };
          },
        });
        return accepted('resource.delete', row, repeated);
      };
      return await orEarlier(context, claim, withdraw, async (row) => accepted('resource.delete', row as Row, true));
    },
  };
}

/** Moving it would show it to other readers, and its history would not follow. */
function staysWhereItIs(object: DeclaredKind, before: JsonObject, body: JsonObject): void {
  const placed = object === 'memory' ? ['workspace_id', 'scope', 'owner_id'] : ['workspace_id'];
  for (const member of placed) {
    if (own(body, member) !== undefined && (own(body, member) ?? null) !== (own(before, member) ?? null)) {
      throw new Fault('invalid_request', `${member} says where a ${object} lives and cannot change`, {
        param: `/${member}`,
      });
    }
  }
}

/** A limit that is not counted would be attested and never enforced. */
function requireCountable(limits: Json | undefined): void {
  for (const [name, most] of Object.entries((limits ?? {}) as JsonObject)) {
    const param = `/limits/${name}`;
    if (!(QUOTA_LIMITS as readonly string[]).includes(name)) {
      throw new Fault('invalid_request', `there is no limit ${name}; limits are ${QUOTA_LIMITS.join(', ')}`, { param });
    }
    if (typeof most === 'number' && !(Number.isFinite(most) && most >= 0)) {
      throw new Fault('invalid_request', `limit ${name} has to be a number that is not negative`, { param });
    }
  }
}

/** A new quota is known to be unused; a limit without a usage figure would be unknown, which is not the same. */
function countedFrom(quota: Row, limits: Json | undefined): JsonObject {
  return { ...nothingUsed(limits), ...(quota as Row & { usage?: JsonObject }).usage };
}

function nothingUsed(limits: Json | undefined): JsonObject {
  return Object.fromEntries(Object.keys((limits ?? {}) as JsonObject).map((limit) => [limit, 0]));
}

function without(body: JsonObject, members: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(body).filter(([name]) => !members.includes(name)));
}
