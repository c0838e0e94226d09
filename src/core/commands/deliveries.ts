/**
 * Deliveries from outside providers: each becomes at most one task, however often it is sent. The door has verified that it is
 * genuine; here it is recorded, deduplicated, and turned into a task.
 */

import type { Actor } from '../../model/actions.ts';
import type { DraftEnvelope, EventDraft } from '../../model/events.ts';
import { asFault, Fault } from '../../model/faults.ts';
import type { Connector, MessageInput } from '../../model/resources.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import { asText } from '../../model/values/as-text.ts';
import type { Bridge, Delivery, Row, SecretUser, VaultAccess } from '../../ports/index.ts';
import type { Context } from '../context.ts';
import { judgeUse } from './secret-use.ts';

export interface DeliveryDeps extends Context {
  readonly submit: Bridge['submit'];
  readonly vaults: VaultAccess;
}

/** How long a refused secret is refused without another event: deliveries come from unauthenticated callers. */
const QUIET_MS = 60_000;
const MOST_QUIET = 1000;

export function createDeliveries(deps: DeliveryDeps): Pick<Bridge, 'deliver' | 'secretOf'> {
  const { log, access, hash, submit } = deps;

  function at({ id, workspace_id }: Connector, actor: Actor): DraftEnvelope {
    return { resource: { object: 'connector', id }, workspace_id, actor: actor.id };
  }

  /** Deliveries without a target session share one per connector. */
  async function sessionFor(connector: Connector, actor: Actor): Promise<string> {
    if (connector.target_session_id) return connector.target_session_id;
    const { resource } = await submit({
      kind: 'session.create',
      actor,
      idempotency: { key: 'deliveries', target: `connectors/${connector.id}` },
      body: {
        workspace_id: connector.workspace_id,
        ...(connector.target_persona_id && { persona_id: connector.target_persona_id }),
        metadata: { connector_id: connector.id },
      },
    });
    return resource.id;
  }

  /** The secret a connector names, and whether it may use it now: a permission granted when it was named may have been withdrawn. */
  function useOf(connector: Connector & Row, actor: Actor) {
    const secret = connector.auth?.secret_name;
    if (typeof secret !== 'string') return undefined;
    const user = userOf(connector);
    const by = { object: 'connector', id: connector.id };
    return { secret, user, use: judgeUse(deps, deps.vaults, { actor, secret, user, by }) };
  }

  const refusedAt = new Map<string, number>();
  async function noteRefused(id: string, event: EventDraft): Promise<void> {
    const now = Date.parse(deps.clock.now());
    if (now - (refusedAt.get(id) ?? Number.NEGATIVE_INFINITY) < QUIET_MS) return;
    if (refusedAt.size >= MOST_QUIET) refusedAt.clear();
    refusedAt.set(id, now);
    await log.commit({ decide: () => ({ events: [event] }) });
  }

  return {
    async secretOf(actor, connectorId) {
      const connector = await access.see<Connector & Row>(actor, 'connector', connectorId);
      const named = useOf(connector, actor);
      if (!named) return undefined;
      if (named.use.allowed) return { secret: named.secret, user: named.user };
      await noteRefused(connector.id, named.use.event);
      return undefined;
    },

    async deliver(actor, delivery) {
      const connector = await access.see<Connector & Row>(actor, 'connector', delivery.connector_id);
      const named = useOf(connector, actor);
      if (named && !named.use.allowed) {
        await noteRefused(connector.id, named.use.event);
        throw named.use.refusal;
      }
      if (connector.status !== 'ACTIVE')
        throw new Fault('conflict', `connector ${connector.id} is ${connector.status}`);
      const { delivery_id, event_kind } = delivery;
      const about = { delivery_id, event_kind };
      const where = at(connector, actor);
      const record = (event: EventDraft) => log.commit({ decide: () => ({ events: [event] }) });

      const wanted = connector.event_kinds.length === 0 || connector.event_kinds.includes(event_kind);
      const { repeated } = await log.commit({
        idempotency: {
          scope: hash(['delivery', connector.id, delivery_id]),
          body: hash({ event_kind, payload: delivery.payload }),
        },
        decide: () => ({
          events: [
            ...(named ? [named.use.event] : []),
            {
              ...where,
              event: 'connector.delivery_received',
              payload: { ...about, payload_hash: hash(log.clean(delivery.payload)), wanted },
            },
          ],
          result: { delivery_id },
        }),
      });
      if (repeated) await record({ ...where, event: 'connector.delivery_deduped', payload: about });
      if (!wanted) return { task: undefined, repeated };

      try {
        const session_id = await sessionFor(connector, actor);
        const input = toInput(connector, delivery);
        if (!repeated) await record({ ...where, event: 'connector.normalized', payload: { ...about, session_id } });
        const { resource: task } = await submit({
          kind: 'task.submit',
          actor,
          // After a crash between the two commits, the retry finds the task here, or creates it now.
          idempotency: { key: delivery_id, target: `connectors/${connector.id}/deliveries` },
          body: {
            session_id,
            input,
            ...(connector.target_persona_id && { persona_id: connector.target_persona_id }),
            metadata: { connector_id: connector.id, delivery_id },
          },
        });
        if (!repeated)
          await record({ ...where, event: 'connector.task_submitted', payload: { ...about, task_id: task.id } });
        return { task, repeated };
      } catch (thrown) {
        const { kind, message } = asFault(thrown);
        await record({ ...where, event: 'connector.failed', payload: { ...about, code: kind, reason: message } });
        throw thrown;
      }
    },
  };
}

/** A connector uses a secret for the tenant and the workspace it was declared in, and for the persona it targets. */
function userOf(connector: Connector & { readonly tenant_id?: string | null }): SecretUser {
  const { tenant_id = null, workspace_id, target_persona_id = null } = connector;
  return { tenant_id, workspace_id, persona_id: target_persona_id };
}

/** The agent's input: the sender's text if there is one, and the whole payload as data. */
function toInput(connector: Connector, { event_kind, payload }: Delivery): JsonObject {
  const text = ['text', 'message', 'prompt'].map((name) => payload[name]).find((value) => typeof value === 'string');
  const message: MessageInput = {
    role: 'user',
    parts: [
      { type: 'text', text: text ? asText(text) : `${connector.provider}: ${event_kind}`, visibility: 'public' },
      { type: 'json', value: payload as Json, visibility: 'internal' },
    ],
  };
  return message;
}
