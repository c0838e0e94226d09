/** A session on its way in: checked and asked about before anything is written, and a row and an event once it is. */
import type { Actor } from '../model/actions.ts';
import type { EventDraft } from '../model/events.ts';
import { Fault } from '../model/faults.ts';
import type { Session } from '../model/resources.ts';
import type { Json, JsonObject } from '../model/schema.ts';
import type { Unit } from '../ports.ts';
import type { Access } from './access.ts';
import { type Context, orEarlier } from './context.ts';
import { placeOf } from './transcript.ts';

/** Asks policy whether a session may be opened; throws when it may not. */
export type Admit = (actor: Actor, workspaceId: string, about: JsonObject) => Promise<void>;

export interface Opening {
  readonly workspace_id: string;
  readonly persona_id?: string | null;
  readonly metadata?: JsonObject;
}

/** Refuses what this actor may not see; what is hidden is absent. */
export async function mayUse(access: Access, actor: Actor, { workspace_id, persona_id }: Opening): Promise<void> {
  if (!(await access.workspaceVisible(actor, workspace_id))) {
    throw new Fault('not_found', `no workspace ${workspace_id}`);
  }
  if (persona_id) await access.see(actor, 'persona', persona_id);
}

/** Asks whether it may be opened, or throws. What an earlier command with this claim came to is answered instead. */
export async function admitted(
  deps: Pick<Context, 'log'> & { readonly admit: Admit },
  claim: Pick<Unit, 'idempotency'>,
  actor: Actor,
  { workspace_id, persona_id, metadata }: Opening,
): Promise<Json | undefined> {
  const ask = async () => {
    // What a door says about it is there for rules to look at: a directory, servers it brings along.
    await deps.admit(actor, workspace_id, { persona_id: persona_id ?? null, about: metadata ?? {} });
    return undefined;
  };
  // Without a claim nothing can have come before.
  if (!claim.idempotency) return await ask();
  return await orEarlier<Json | undefined>(deps, claim, ask, async (result) => result);
}

export function freshSession(id: string, { workspace_id, persona_id, metadata }: Opening, now: string): Session {
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
    root_session_id: id,
    parent_session_id: null,
    branch_id: null,
    summary: null,
    expires_at: null,
  };
}

export function sessionEvent(event: string, session: Session, actor: Actor): EventDraft {
  const place = placeOf(session.id, session.workspace_id);
  // An agent's session is part of the work it acts for, and belongs where that belongs.
  const owned = event === 'session.created' && actor.on_behalf_of;
  return {
    event,
    actor: actor.id,
    payload: { session: session as unknown as Json },
    ...place,
    ...(owned && { metadata: { owner: owned } }),
  };
}
