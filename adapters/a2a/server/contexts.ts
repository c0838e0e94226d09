/**
 * A peer's context is one of our sessions. A context id that the peer made up belongs to that peer: the same id from another
 * caller is another session, so no caller can enter one by guessing.
 */
import { createHash } from 'node:crypto';
import type { Actor, Bridge, JsonObject, Row, Session } from '../../../src/index.ts';
import { isAbsent } from './refusal.ts';

/** The session of a message: an existing one, or one that begins with the message and then has our id as its context id. */
type Context =
  | { readonly in: { readonly session_id: string }; readonly contextId: string }
  | { readonly in: { readonly session: Beginning }; readonly contextId: undefined };
interface Beginning {
  readonly workspace_id: string;
  readonly metadata: JsonObject;
}

export interface Contexts {
  /** The session of this context id, created if there is none. Without an id: one that begins with the message. */
  open(actor: Actor, contextId: string): Promise<Context>;
  /** The session of a context id, if this caller has one. */
  find(actor: Actor, contextId: string): Promise<string | undefined>;
  /** The workspace of this caller. */
  workspace(actor: Actor): Promise<string>;
}

type Marked = Session & Row & { readonly metadata: { readonly a2a?: { owner?: string } } };

export function createContexts(bridge: Bridge, named: string | undefined): Contexts {
  const homes = new Map<string, string>();

  /** The workspace in which this caller worked before. */
  function home(actor: Actor): string | undefined {
    return named ?? homes.get(homeKey(actor));
  }

  async function workspace(actor: Actor): Promise<string> {
    const known = home(actor);
    if (known) return known;
    const id = await bridge.home(actor);
    homes.set(homeKey(actor), id);
    return id;
  }

  /** A session by its own id, if this caller opened it here. */
  async function ours(actor: Actor, id: string): Promise<string | undefined> {
    if (!id.startsWith('session_')) return undefined;
    try {
      const { metadata } = await bridge.view<Marked>(actor, 'session', id);
      return metadata.a2a?.owner === actor.id ? id : undefined;
    } catch (thrown) {
      if (isAbsent(thrown)) return undefined;
      throw thrown;
    }
  }

  async function find(actor: Actor, contextId: string): Promise<string | undefined> {
    const bound = await bridge.bound('a2a', scopeOf(actor), contextId);
    return bound?.id ?? (await ours(actor, contextId));
  }

  return {
    workspace,
    find,
    async open(actor, contextId) {
      const workspace_id = home(actor) ?? (await workspace(actor));
      if (!contextId) return { in: { session: { workspace_id, metadata: markOf(actor) } }, contextId: undefined };
      const known = await find(actor, contextId);
      if (known) return { in: { session_id: known }, contextId };
      const { resource } = await bridge.submit({
        kind: 'session.create',
        actor,
        body: { workspace_id, metadata: markOf(actor, contextId) },
        // The context id is the idempotency key, so two simultaneous messages create one session.
        idempotency: { key: `context-${digest(contextId)}`, target: 'a2a' },
      });
      const to = { object: 'session', id: resource.id };
      const body = { protocol: 'a2a', scope: scopeOf(actor), wire_id: contextId, to };
      await bridge.submit({ kind: 'binding.set', actor, body });
      return { in: { session_id: resource.id }, contextId };
    },
  };
}

function homeKey({ tenant_id = '', workspaces }: Actor): string {
  return `${tenant_id} ${workspaces?.join() ?? ''}`;
}

function markOf({ id: owner }: Actor, context_id?: string): JsonObject {
  return { a2a: { owner, ...(context_id && { context_id }) } };
}

function scopeOf({ id, tenant_id = '' }: Actor): string {
  return `${tenant_id}/${id}`;
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}
