/** Opens a session, and finds where one belongs: access and policy are checked before anything is written; then the row and the event are built. */
import type { Action, Actor } from '../../model/actions.ts';
import type { EventDraft } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { Session } from '../../model/resources.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import type { AutonomyTier } from '../../model/words.ts';
import type { AgentBackend, Bridge, Row, Unit } from '../../ports/index.ts';
import type { Access } from '../access.ts';
import { decidedEvent, type Gate } from '../actions/gate.ts';
import { type Context, orEarlier } from '../context.ts';
import { sessionLocation } from './transcript.ts';

/** The member of a session's metadata that says which agent it is with, and in which process. Clients cannot write it. */
const SERVED = 'served';

export interface Served {
  readonly agent: string;
  readonly instance: string;
}

/** What knows the agents of this process, and its name as long as others can check that it lives. */
export interface ServingDeps {
  readonly backends: ReadonlyMap<string, AgentBackend>;
  readonly servedBy: () => string | undefined;
}

/** The member for an agent of this process: the work of clients at other processes is done here, where the agent is. */
export function serving({ backends, servedBy }: ServingDeps, agent: string | undefined): JsonObject {
  const instance = servedBy();
  if (agent !== undefined && !backends.has(agent))
    throw new Fault('invalid_request', `no agent ${agent} is mounted`, { param: '/agent' });
  return agent !== undefined && instance !== undefined ? { [SERVED]: { agent, instance } } : {};
}

/** Without the member: what clients wrote, and forks, in which that process does not look for work. */
export function unserved({ [SERVED]: _, ...rest }: JsonObject = {}): JsonObject {
  return rest;
}

export function servedIn(metadata: JsonObject | undefined): Served | undefined {
  return metadata?.[SERVED] as Served | undefined;
}

/** Asks policy whether a session may be opened; throws when it may not. */
export type Admit = (actor: Actor, workspaceId: string, about: JsonObject) => Promise<void>;

/** Opening a session is an act: policy may forbid it, and only an allowed act opens it. */
export function createAdmit({ log, ids, gate }: Pick<Context, 'log' | 'ids'> & { readonly gate: Gate }): Admit {
  return async (actor, workspaceId, about) => {
    const action: Action = {
      id: ids.next('action'),
      kind: 'session.open',
      actor,
      workspace_id: workspaceId,
      arguments: about,
      effect: 'none',
      evidence: 'held',
    };
    const decision = await gate(action);
    if (decision.verdict === 'allow') return;
    const location = { resource: { object: 'workspace', id: workspaceId }, session_id: null };
    await log.commit({ decide: () => ({ events: [{ ...decidedEvent(action, decision), ...location }] }) });
    const { rule_id = null, verdict } = decision;
    const details = { rule_id, ...(verdict === 'escalate' && { verdict }) };
    throw new Fault('policy_violation', decision.reason, { details });
  };
}

export interface Opening {
  readonly workspace_id: string;
  readonly persona_id?: string | null;
  readonly autonomy_tier?: AutonomyTier;
  readonly metadata?: JsonObject;
}

/** Refuses a workspace or persona this actor may not see, as if it were absent. */
export async function mayUse(access: Access, actor: Actor, { workspace_id, persona_id }: Opening): Promise<void> {
  if (!(await access.workspaceVisible(actor, workspace_id))) {
    throw new Fault('not_found', `no workspace ${workspace_id}`);
  }
  if (persona_id) await access.see(actor, 'persona', persona_id);
}

/** Asks policy whether the session may be opened, or throws. A repeated command returns the first one's result instead. */
export async function admitted(
  deps: Pick<Context, 'log'> & { readonly admit: Admit },
  claim: Pick<Unit, 'idempotency'>,
  actor: Actor,
  { workspace_id, persona_id, metadata }: Opening,
): Promise<Json | undefined> {
  const ask = async () => {
    // The door's metadata is passed on for rules to match: a directory, servers the client brings along.
    await deps.admit(actor, workspace_id, { persona_id: persona_id ?? null, about: metadata ?? {} });
    return undefined;
  };
  // Without a claim there can be no earlier command.
  if (!claim.idempotency) return await ask();
  return await orEarlier<Json | undefined>(deps, claim, ask, async (result) => result);
}

export function freshSession(id: string, opening: Opening, now: string): Session {
  const { workspace_id, persona_id, autonomy_tier, metadata } = opening;
  return {
    id,
    object: 'session',
    created_at: now,
    updated_at: now,
    metadata: metadata ?? {},
    workspace_id,
    state: 'IDLE',
    transcript: {},
    persona_id: persona_id ?? null,
    ...(autonomy_tier && { autonomy_tier }),
    root_session_id: id,
    parent_session_id: null,
    branch_id: null,
    summary: null,
    expires_at: null,
  };
}

export function sessionEvent(event: 'session.created' | 'session.closed', session: Session, actor: Actor): EventDraft {
  const location = sessionLocation(session.id, session.workspace_id);
  // An agent's session is part of the work it acts for, and has the same owner.
  const owned = event === 'session.created' && actor.on_behalf_of;
  return {
    event,
    actor: actor.id,
    payload: { session: session },
    ...location,
    ...(owned && { metadata: { owner: owned } }),
  };
}

/**
 * Where a caller works that names no workspace: the first one it sees. A tenant whose callers see none gets one of its own, made by the
 * gateway, because a key that starts work need not be one that declares workspaces. A key that is limited to workspaces gets no other.
 */
export function createHome({ list, submit }: Pick<Bridge, 'list' | 'submit'>): Bridge['home'] {
  return async (actor) => {
    const [first] = (await list<Row>(actor, { object: 'workspace', limit: 1 })).data;
    if (first) return first.id;
    if (actor.workspaces) throw new Fault('permission_denied', `there is no workspace for ${actor.id} to work in`);
    const { tenant_id } = actor;
    const gateway: Actor = { id: 'system:home', kind: 'system', scopes: ['*'], ...(tenant_id && { tenant_id }) };
    const body = { name: 'default', root: `tollbridge://${encodeURIComponent(tenant_id ?? 'default')}` };
    const { resource } = await submit({
      kind: 'resource.create',
      actor: gateway,
      body: { object: 'workspace', body },
      // Two callers at once get the same one.
      idempotency: { key: 'home' },
    });
    return resource.id;
  };
}
