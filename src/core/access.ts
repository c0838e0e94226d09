/**
 * Access rules, the same at every door: which actor may see and do what. A hidden resource and an absent one raise the same fault,
 * with the same message.
 *
 * Work belongs to the principal that opened its session, and everything in a session belongs with it: messages, tasks, questions,
 * events, artifacts, receipts. A principal sees its own work; other work only with the scope `others:read`. Its other scopes say
 * what it may then do with it.
 */

import type { Actor } from '../model/actions.ts';
import { type CommandKind, DECLARED_KINDS } from '../model/commands.ts';
import type { CoreEvent, Stream } from '../model/events.ts';
import { Fault } from '../model/faults.ts';
import type { Artifact, Workspace } from '../model/resources.ts';
import { LruMap } from '../model/values/lru-map.ts';
import type { Row, Store, VaultAccess } from '../ports/index.ts';
import type { Owner } from './events/rows.ts';

/** Core's own rows: no command shows them. */
const PRIVATE: ReadonlySet<string> = new Set(['run', 'tally', 'binding', 'taint', 'owner']);

export function isPrivate(object: string): boolean {
  return PRIVATE.has(object);
}

function isDeclared(object: string): boolean {
  return (DECLARED_KINDS as readonly string[]).includes(object);
}

const COMMAND_SCOPES: Readonly<Record<CommandKind, string>> = {
  'resource.create': 'resources:write',
  'resource.update': 'resources:write',
  'resource.delete': 'resources:write',
  'session.create': 'sessions:write',
  'session.update': 'sessions:write',
  'session.close': 'sessions:write',
  'session.fork': 'sessions:write',
  'session.truncate': 'sessions:write',
  'session.compact': 'sessions:write',
  'message.append': 'sessions:write',
  'branch.create': 'sessions:write',
  'branch.update': 'sessions:write',
  'branch.end': 'sessions:write',
  'task.submit': 'tasks:write',
  'task.cancel': 'tasks:write',
  'task.resume': 'tasks:write',
  'task.message': 'tasks:write',
  'task.report': 'tasks:write',
  'task.replay': 'tasks:write',
  'action.propose': 'tasks:write',
  'tool.call': 'tasks:write',
  'ask.answer': 'approvals:write',
  'artifact.register': 'artifacts:write',
  'artifact.link': 'artifacts:write',
  'artifact.redact': 'artifacts:write',
  'receipt.verify': 'receipts:read',
  'binding.set': 'sessions:write',
  passthrough: 'sessions:write',
};

const READ_SCOPES: ReadonlyMap<string, string> = new Map([
  ['session', 'sessions:read'],
  ['message', 'sessions:read'],
  ['branch', 'sessions:read'],
  ['task', 'tasks:read'],
  ['outcome', 'tasks:read'],
  ['ask', 'tasks:read'],
  ['event', 'events:read'],
  ['artifact', 'artifacts:read'],
  ['receipt', 'receipts:read'],
]);

/** `sessions:read` is granted by itself, by `sessions:*`, by the older `resources:*` family for declared resources, or by `*`. */
export function holds(actor: Actor, scope: string): boolean {
  if (actor.scopes.includes('*') || actor.scopes.includes(scope)) return true;
  const [family] = scope.split(':');
  return actor.scopes.includes(`${family}:*`);
}

/** Whether the actor may give work to this agent. */
export function mayCall({ agents }: Actor, name: string): boolean {
  return agents?.includes(name) ?? true;
}

/** Whether the actor sees other principals' work. */
export function seesOthers(actor: Actor): boolean {
  return actor.kind === 'system' || holds(actor, 'others:read');
}

function isOwn(actor: Actor, owner: string | undefined): boolean {
  return owner !== undefined && (owner === actor.id || owner === actor.on_behalf_of);
}

export function requireScope(actor: Actor, scope: string): void {
  if (!holds(actor, scope)) throw new Fault('permission_denied', `${actor.id} does not have the scope ${scope}`);
}

/** Declared resources have scopes by kind: `memories:write` is enough to write a memory. */
export function requireCommandScope(actor: Actor, kind: CommandKind, object?: string): void {
  // Only for commands whose body has a declared `object`: elsewhere a client may have invented that member.
  if (object && kind.startsWith('resource.') && holds(actor, `${plural(object)}:write`)) return;
  requireScope(actor, COMMAND_SCOPES[kind]);
}

export function requireReadScope(actor: Actor, object: string): void {
  const scope = READ_SCOPES.get(object);
  if (!scope && holds(actor, 'resources:read')) return;
  requireScope(actor, scope ?? `${plural(object)}:read`);
}

function plural(object: string): string {
  return object.endsWith('y') ? `${object.slice(0, -1)}ies` : `${object}s`;
}

export interface Access {
  /** The row if this actor may see it; otherwise the same `not_found` as for a missing row. */
  see<T extends Row>(actor: Actor, object: string, id: string): Promise<T>;
  /** Synchronous where no lookup is needed. */
  visible(actor: Actor, row: Row): boolean | Promise<boolean>;
  /** A resource declared for all tenants is not one tenant's to change. */
  owns(actor: Actor, row: Row): boolean;
  /** An artifact whose content this actor may read: `internal` and `receipt_only` content needs a scope of its own. */
  seeContent(actor: Actor, artifactId: string): Promise<Artifact & Row>;
  workspaceVisible(actor: Actor, workspaceId: string | null | undefined): Promise<boolean>;
  /** Whether the actor may see an event or resource of this workspace and session, by workspace and by owner. */
  locationVisible(actor: Actor, location: ResourceOwner): Promise<boolean>;
  /** Refuses a stream of a hidden resource; returns a filter for streams that mix owners, and undefined for others. */
  streamFilter(actor: Actor, stream: Stream): Promise<((event: CoreEvent) => Promise<boolean>) | undefined>;
}

export interface ResourceOwner {
  readonly workspace_id?: string | null | undefined;
  readonly session_id?: string | null | undefined;
}

/** Work and its results: hidden from every principal but the owner. Declared resources, workspaces included, are shared. */
const OWNED: ReadonlySet<string> = new Set(['session', 'message', 'branch', 'task', 'outcome', 'ask', 'artifact']);
/** The vault's name in the configuration that declared it; undefined for every other row, including vaults that a client declared. */
export function configuredVault(row: Row): string | undefined {
  if (row.object !== 'vault') return undefined;
  const { metadata, tenant_id } = row as Row & {
    metadata?: { configured?: unknown; name?: unknown };
    tenant_id?: string | null;
  };
  return metadata?.configured === true && typeof metadata.name === 'string' && !tenant_id ? metadata.name : undefined;
}

/** Owners never change, so the cache is never stale. */
const OWNERS_REMEMBERED = 10_000;

export function createAccess(store: Pick<Store, 'get' | 'read'>, vaults?: Pick<VaultAccess, 'listed'>): Access {
  function absent(object: string, id: string): Fault {
    return new Fault('not_found', `no ${object} ${id}`);
  }

  async function workspaceVisible(actor: Actor, id: string | null | undefined): Promise<boolean> {
    if (actor.kind === 'system') return true;
    if (!id) return false;
    if (actor.workspaces && !actor.workspaces.includes(id)) return false;
    const workspace = await store.get<Workspace & Row>('workspace', id);
    return workspace !== undefined && (workspace.tenant_id ?? null) === (actor.tenant_id ?? null);
  }

  const owners = new LruMap<string, string>(OWNERS_REMEMBERED);

  /**
   * The owner of a session, or of an artifact outside any session. Undefined when no row names one: then no restricted principal
   * sees it.
   */
  function ownerOf(id: string): string | undefined | Promise<string | undefined> {
    return owners.get(id) ?? lookUp(id);
  }

  async function lookUp(id: string): Promise<string | undefined> {
    const owner = (await store.get<Owner>('owner', id))?.owner_id ?? (await opener(id));
    if (owner === undefined) return undefined;
    owners.set(id, owner);
    return owner;
  }

  /** For sessions older than owner rows: the first event names the principal that opened it. */
  async function opener(id: string): Promise<string | undefined> {
    for await (const event of store.read({ stream: { of: 'session', id }, limit: 1 })) {
      return event.event === 'session.created' ? (event.actor ?? undefined) : undefined;
    }
    return undefined;
  }

  function mine(actor: Actor, row: Row): boolean | Promise<boolean> {
    if (seesOthers(actor)) return true;
    const location = row as Row & {
      session_id?: string | null;
      task_id?: string | null;
      scope?: string;
      owner_id?: string;
    };
    // A session's memory is part of that session.
    if (row.object === 'memory') {
      return location.scope !== 'session' || !location.owner_id || ownsSession(actor, location.owner_id);
    }
    if (!OWNED.has(row.object)) return true;
    if (row.object === 'session') return ownsSession(actor, row.id);
    if (location.session_id) return ownsSession(actor, location.session_id);
    if (location.task_id) return ownsTask(actor, location.task_id);
    return ownsSession(actor, row.id);
  }

  function ownsSession(actor: Actor, id: string): boolean | Promise<boolean> {
    const owner = ownerOf(id);
    return owner instanceof Promise ? owner.then((found) => isOwn(actor, found)) : isOwn(actor, owner);
  }

  async function ownsTask(actor: Actor, id: string): Promise<boolean> {
    const task = await store.get<Row & { session_id?: string }>('task', id);
    return task?.session_id !== undefined && (await ownsSession(actor, task.session_id));
  }

  async function locationVisible(actor: Actor, { workspace_id, session_id }: ResourceOwner): Promise<boolean> {
    if (!(await workspaceVisible(actor, workspace_id))) return false;
    return seesOthers(actor) || (session_id ? await ownsSession(actor, session_id) : false);
  }

  function visible(actor: Actor, row: Row): boolean | Promise<boolean> {
    if (isPrivate(row.object)) return false;
    if (actor.kind === 'system') return true;
    const placed = inReach(actor, row);
    if (placed === false) return false;
    const own = mine(actor, row);
    if (own === false || placed === true) return own;
    return own === true ? placed : Promise.all([placed, own]).then(([reached, owned]) => reached && owned);
  }

  /** Whether the row's workspace or tenant is visible to this actor. */
  function inReach(actor: Actor, row: Row): boolean | Promise<boolean> {
    if (row.object === 'workspace') return workspaceVisible(actor, row.id);
    const { workspace_id, tenant_id } = row as Row & { workspace_id?: string | null; tenant_id?: string | null };
    if (workspace_id) return workspaceVisible(actor, workspace_id);
    const listed = configuredVault(row);
    if (listed !== undefined)
      return vaults?.listed(listed, actor.tenant_id ?? null, actor.workspaces) ?? owns(actor, row);
    // Rows without a workspace: declared for all tenants, or by one tenant for itself. Memories and vaults are never shared by all.
    const shared = isDeclared(row.object) && row.object !== 'memory' && row.object !== 'vault';
    return ((tenant_id ?? null) === null && shared) || owns(actor, row);
  }

  function owns(actor: Actor, row: Row): boolean {
    const { tenant_id } = row as Row & { tenant_id?: string | null };
    return actor.kind === 'system' || (tenant_id ?? null) === (actor.tenant_id ?? null);
  }

  async function see<T extends Row>(actor: Actor, object: string, id: string): Promise<T> {
    const row = await store.get<T>(object, id);
    const seen = row !== undefined && visible(actor, row);
    if (seen === false || !(await seen)) throw absent(object, id);
    return row as T;
  }

  async function seeContent(actor: Actor, artifactId: string): Promise<Artifact & Row> {
    requireReadScope(actor, 'artifact');
    const artifact = await see<Artifact & Row>(actor, 'artifact', artifactId);
    // `receipt_only` and unknown words need the strictest scope.
    if (artifact.visibility === 'internal') requireScope(actor, 'internal:read');
    else if (artifact.visibility !== 'public') requireReadScope(actor, 'receipt');
    return artifact;
  }

  async function streamFilter(actor: Actor, stream: Stream) {
    if (actor.kind === 'system') return undefined;
    if (stream.of === 'workspace' || stream.of === 'session' || stream.of === 'task') {
      await see(actor, stream.of, stream.id);
      if (stream.of !== 'workspace' || seesOthers(actor)) return undefined;
    }
    const known = new Map<string, boolean>();
    const reaches = async (id: string) => {
      const before = known.get(id);
      if (before !== undefined) return before;
      const now = await workspaceVisible(actor, id);
      known.set(id, now);
      return now;
    };
    const all = seesOthers(actor);
    return async ({ workspace_id, session_id }: CoreEvent) => {
      if (!workspace_id || !(await reaches(workspace_id))) return false;
      return all || (session_id ? await ownsSession(actor, session_id) : false);
    };
  }

  return { see, seeContent, visible, owns, workspaceVisible, locationVisible, streamFilter };
}
