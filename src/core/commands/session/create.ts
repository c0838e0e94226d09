/** Creates a session. The vaults, memories and skills that it names are checked before anything is written. */
import type { CommandBody } from '../../../model/commands.ts';
import { Fault } from '../../../model/faults.ts';
import type { Memory } from '../../../model/resources.ts';
import type { JsonObject } from '../../../model/schema.ts';
import type { Row, VaultAccess } from '../../../ports/index.ts';
import { configuredVault } from '../../access.ts';
import { accepted, type Context, type Handlers, once } from '../../context.ts';
import { linkedBy } from '../artifact-changes.ts';
import { PENDING } from '../asked-session.ts';
import {
  type Admit,
  admitted,
  freshSession,
  mayUse,
  type ServingDeps,
  serving,
  sessionEvent,
  unserved,
} from '../session-opening.ts';
import { messageEvents, sessionLocation } from '../transcript.ts';
import { newSession, seenSession } from '../views.ts';

export interface CreateSessionDeps extends Context, ServingDeps {
  readonly admit: Admit;
  readonly vaults: Pick<VaultAccess, 'open'>;
}

export function sessionCreation(deps: CreateSessionDeps): Handlers['session.create'] {
  const { log, access, ids } = deps;
  return async (command) => {
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
    if (before) return accepted('session.create', await seenSession(deps, actor, (before as { id: string }).id), true);

    const id = ids.next('session');
    const lists = Object.fromEntries(Object.entries(named).flatMap(([o, list]) => (list ? [[`${o}_ids`, list]] : [])));
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
    return accepted('session.create', await seenSession(deps, actor, made), repeated);
  };
}

/**
 * A session's vaults, memories and skills are checked when named as members; any client may write metadata, so ids there are
 * removed.
 */
export function unnamed(metadata: JsonObject | undefined): JsonObject {
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
  { store, vaults }: Pick<CreateSessionDeps, 'store' | 'vaults'>,
  { tenant_id = null }: { readonly tenant_id?: string | null },
  { workspace_id, persona_id = null, vault_ids }: CommandBody<'session.create'>,
): Promise<void> {
  for (const id of vault_ids ?? []) {
    const name = configuredVault((await store.get<Row>('vault', id)) as Row);
    const open = name === undefined || vaults.open(name, { tenant_id, workspace_id, persona_id });
    if (!open) throw new Fault('not_found', `no vault ${id}`);
  }
}
