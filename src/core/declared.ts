/** Resources that are written down rather than lived through: workspaces, personas, memories, vaults and the like. */
import type { CommandKind, DeclaredKind } from '../model/commands.ts';
import { Fault } from '../model/faults.ts';
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
import { accepted, type Context, type Handlers, once } from './context.ts';

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

/** What identity and history own; a body that names them is not obeyed. */
const OWNED = ['id', 'object', 'created_at', 'updated_at', 'tenant_id'];

export function declaredHandlers(context: Context): Pick<Handlers, Kinds> {
  const { store, log, access, ids } = context;

  /** Where a resource lives: its own workspace, or that of the session a memory belongs to. */
  async function workspaceOf(object: DeclaredKind, id: string, body: JsonObject): Promise<string | null> {
    if (object === 'workspace') return id;
    if (typeof body.workspace_id === 'string') return body.workspace_id;
    if (object !== 'memory') return null;
    const { scope, owner_id } = body as unknown as Pick<Memory, 'scope' | 'owner_id'>;
    if (scope === 'workspace') return owner_id;
    if (scope === 'session') return (await store.get<Session & Row>('session', owner_id))?.workspace_id ?? null;
    return null;
  }

  function whole(object: DeclaredKind, row: JsonObject): Row {
    for (const [member, words] of Object.entries(CLOSED[object] ?? {})) {
      const value = row[member];
      if (value !== undefined && !words.includes(String(value))) {
        throw new Fault('invalid_request', `${member} must be one of ${words.join(', ')}`, { param: `/${member}` });
      }
    }
    return check(RESOURCES[object], row, object) as unknown as Row;
  }

  return {
    'resource.create': async (command) => {
      const { actor, body } = command;
      const id = body.id ?? ids.next(body.object);
      const home = await workspaceOf(body.object, id, body.body);
      if (home && body.object !== 'workspace' && !(await access.workspaceVisible(actor, home))) {
        throw new Fault('not_found', `no workspace ${home}`);
      }
      const { result, repeated } = await log.commit({
        ...once(context, command, body.object === 'workspace' ? null : home, body.object),
        reads: [{ object: body.object, id }],
        decide(at) {
          if (at.get(body.object, id)) throw new Fault('conflict', `${body.object} ${id} exists already`);
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
          return { events: [event('created', row, home, actor.id)], result: { id } };
        },
      });
      const made = (result as { id: string }).id;
      return accepted('resource.create', await access.see<Row>(actor, body.object, made), repeated);
    },

    'resource.update': async (command) => {
      const { actor, body } = command;
      const before = await access.see<Row>(actor, body.object, body.id);
      const home = await workspaceOf(body.object, body.id, before as unknown as JsonObject);
      const { repeated } = await log.commit({
        ...once(context, command, home, body.id),
        reads: [{ object: body.object, id: body.id }],
        decide(at) {
          const now = at.get<Row>(body.object, body.id);
          if (!now) throw new Fault('not_found', `no ${body.object} ${body.id}`);
          const merged = { ...now, ...without(body.body, OWNED), updated_at: at.now } as unknown as JsonObject;
          const row = whole(body.object, body.metadata ? { ...merged, metadata: body.metadata } : merged);
          return { events: [event('updated', row, home, actor.id)], result: { id: body.id } };
        },
      });
      return accepted('resource.update', await access.see<Row>(actor, body.object, body.id), repeated);
    },

    'resource.delete': async (command) => {
      const { actor, body } = command;
      const before = await access.see<Row>(actor, body.object, body.id);
      const home = await workspaceOf(body.object, body.id, before as unknown as JsonObject);
      const { repeated } = await log.commit({
        ...once(context, command, home, body.id),
        reads: [{ object: body.object, id: body.id }],
        decide(at) {
          if (!at.get(body.object, body.id)) throw new Fault('not_found', `no ${body.object} ${body.id}`);
          return { events: [event('deleted', before, home, actor.id)], result: { id: body.id } };
        },
      });
      return accepted('resource.delete', before, repeated);
    },
  };
}

function event(what: 'created' | 'updated' | 'deleted', row: Row, home: string | null, actor: string) {
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
