/** Resources that are written down rather than lived through: workspaces, personas, memories, vaults and the like. */

import type { Actor } from '../model/actions.ts';
import { asText } from '../model/as-text.ts';
import type { CommandKind, DeclaredKind } from '../model/commands.ts';
import { Fault } from '../model/faults.ts';
import { own } from '../model/own.ts';
import { type Memory, RESOURCES, type Session } from '../model/resources.ts';
import type { Json, JsonObject } from '../model/schema.ts';
import { check } from '../model/validate.ts';
import {
  AUTONOMY_TIERS,
  CONNECTOR_STATES,
  MEMORY_SCOPES,
  QUOTA_SCOPES,
  RECEIPT_POLICIES,
  VISIBILITIES,
} from '../model/words.ts';
import type { Row } from '../ports.ts';
import { accepted, type Context, type Handlers, once, orEarlier } from './context.ts';

type Kinds = Extract<CommandKind, `resource.${string}`>;

/** Words we may read from others as they come, but write only if we know them. */
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

/** What identity and history own; a body that names them is not obeyed. */
const OWNED = ['id', 'object', 'created_at', 'updated_at', 'tenant_id'];

export function declaredHandlers(context: Context): Pick<Handlers, Kinds> {
  const { log, access, ids } = context;

  /** Whatever it names has to be there for its writer: a reference is a way to use a thing, and to learn that it is there. */
  async function seesNamed(actor: Actor, object: DeclaredKind, body: JsonObject): Promise<void> {
    for (const [member, named] of Object.entries(NAMES[object] ?? {})) {
      const other = own(body, member);
      if (typeof other === 'string') await access.see(actor, named, other);
    }
  }

  /** Where a resource lives: its own workspace, or that of the session a memory belongs to. */
  async function homeFor(actor: Actor, object: DeclaredKind, id: string, body: JsonObject): Promise<string | null> {
    if (object === 'workspace') {
      if (!actor.workspaces || actor.workspaces.includes(id)) return id;
      throw new Fault('permission_denied', `${actor.id} may only use the workspaces it was given`);
    }
    const home = await placeOf(actor, object, body);
    if (home && !(await access.workspaceVisible(actor, home))) throw new Fault('not_found', `no workspace ${home}`);
    return home;
  }

  async function placeOf(actor: Actor, object: DeclaredKind, body: JsonObject): Promise<string | null> {
    const { workspace_id: named = null } = body;
    // Whatever workspace it names: a memory of a session is written by those who see that session.
    if (object === 'memory' && body.scope === 'session' && typeof body.owner_id === 'string') {
      const { workspace_id } = await access.see<Session & Row>(actor, 'session', body.owner_id);
      if (named === null) return workspace_id;
    }
    if (typeof named === 'string') return named;
    // Also where a resource has no such member of its own: what it says about its place is what counts.
    if (named !== null) {
      throw new Fault('invalid_request', 'workspace_id has to be the id of a workspace', { param: '/workspace_id' });
    }
    if (object !== 'memory') return null;
    const { scope, owner_id } = body as unknown as Pick<Memory, 'scope' | 'owner_id'>;
    return scope === 'workspace' && typeof owner_id === 'string' ? owner_id : null;
  }

  /** What is there to be changed, if this actor may change it, and where it lives. */
  async function mine(actor: Actor, object: DeclaredKind, id: string): Promise<{ row: Row; home: string | null }> {
    const row = await access.see<Row & { workspace_id?: string | null }>(actor, object, id);
    if (!access.owns(actor, row)) {
      throw new Fault('permission_denied', `${object} ${id} is the house's, not ${actor.id}'s to change`);
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
    return check(RESOURCES[object], row, object) as unknown as Row;
  }

  return {
    'resource.create': async (command) => {
      const { actor, body } = command;
      const id = body.id ?? ids.next(body.object);
      const home = await homeFor(actor, body.object, id, body.body);
      await seesNamed(actor, body.object, body.body);
      const { result, repeated } = await log.commit({
        ...once(context, command, body.object === 'workspace' ? null : home, body.object),
        reads: [{ object: body.object, id }],
        decide(at) {
          // Not even after it was withdrawn: what happened under the name is still in the log, and is not the new one's. A name
          // that went out of the configuration and comes back is the same one, and the process itself declares it again.
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
          return { events: [declaredEvent('created', row, home, actor.id)], result: { id } };
        },
      });
      const made = (result as { id: string }).id;
      return accepted('resource.create', await access.see<Row>(actor, body.object, made), repeated);
    },

    'resource.update': async (command) => {
      const { actor, body } = command;
      const { row: before, home } = await mine(actor, body.object, body.id);
      staysWhereItIs(body.object, before as unknown as JsonObject, body.body);
      await seesNamed(actor, body.object, body.body);
      const { repeated } = await log.commit({
        ...once(context, command, home, body.id),
        reads: [{ object: body.object, id: body.id }],
        decide(at) {
          const now = at.get<Row>(body.object, body.id);
          if (!now) throw new Fault('not_found', `no ${body.object} ${body.id}`);
          const merged = { ...now, ...without(body.body, OWNED), updated_at: at.now } as unknown as JsonObject;
          const row = whole(body.object, body.metadata ? { ...merged, metadata: body.metadata } : merged);
          return { events: [declaredEvent('updated', row, home, actor.id)], result: { id: body.id } };
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
            return { events: [declaredEvent('deleted', row, home, actor.id)], result: row as unknown as Json };
          },
        });
        return accepted('resource.delete', row, repeated);
      };
      return await orEarlier(context, claim, withdraw, async (row) =>
        accepted('resource.delete', row as unknown as Row, true),
      );
    },
  };
}

/** Moving would put it under other eyes, and its history would not follow. */
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

export function declaredEvent(what: 'created' | 'updated' | 'deleted', row: Row, home: string | null, actor: string) {
  return {
    event: `vendor.tollbridge.resource_${what}`,
    resource: { object: row.object, id: row.id },
    workspace_id: home,
    actor,
    payload: what === 'deleted' ? { id: row.id, object: row.object } : { resource: row as unknown as Json },
  };
}

/** A new quota is known to be unused; a limit without a figure would be unknown, which is not the same. */
function nothingUsed(limits: Json | undefined): JsonObject {
  return Object.fromEntries(Object.keys((limits ?? {}) as JsonObject).map((limit) => [limit, 0]));
}

function without(body: JsonObject, members: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(body).filter(([name]) => !members.includes(name)));
}
