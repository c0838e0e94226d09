/**
 * Deliveries from outside: whatever a provider sends, and however often it sends it, becomes at most one task. The door
 * has made sure it is genuine; here it is written down, told apart from its repeats, and put in the words of a task.
 */

import type { Actor } from '../model/actions.ts';
import { asText } from '../model/as-text.ts';
import type { EventDraft } from '../model/events.ts';
import { asFault, Fault } from '../model/faults.ts';
import type { Connector, MessageInput } from '../model/resources.ts';
import type { Json, JsonObject } from '../model/schema.ts';
import type { Bridge, Delivery, Row } from '../ports.ts';
import type { Context } from './context.ts';

export interface DeliveryDeps extends Context {
  readonly submit: Bridge['submit'];
}

export function createDeliveries(deps: DeliveryDeps): Pick<Bridge, 'deliver'> {
  const { log, access, hash, submit } = deps;

  function note(connector: Connector, actor: Actor, event: string, payload: JsonObject): EventDraft {
    return {
      event,
      resource: { object: 'connector', id: connector.id },
      workspace_id: connector.workspace_id,
      actor: actor.id,
      payload,
    };
  }

  /** Deliveries without a session of their own share one per connector. */
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

  return {
    async deliver(actor, delivery) {
      const connector = await access.see<Connector & Row>(actor, 'connector', delivery.connector_id);
      if (connector.status !== 'ACTIVE')
        throw new Fault('conflict', `connector ${connector.id} is ${connector.status}`);
      const { delivery_id, event_kind } = delivery;
      const about = { delivery_id, event_kind };
      const tell = (event: string, payload: JsonObject) =>
        log.commit({ decide: () => ({ events: [note(connector, actor, event, { ...about, ...payload })] }) });

      const wanted = connector.event_kinds.length === 0 || connector.event_kinds.includes(event_kind);
      const { repeated } = await log.commit({
        idempotency: {
          scope: hash(['delivery', connector.id, delivery_id]),
          body: hash({ event_kind, payload: delivery.payload }),
        },
        decide: () => ({
          events: [
            note(connector, actor, 'connector.delivery_received', {
              ...about,
              payload_hash: hash(log.clean(delivery.payload)),
              wanted,
            }),
          ],
          result: { delivery_id },
        }),
      });
      if (repeated) await tell('connector.delivery_deduped', {});
      if (!wanted) return { task: undefined, repeated };

      try {
        const session_id = await sessionFor(connector, actor);
        const input = toInput(connector, delivery);
        if (!repeated) await tell('connector.normalized', { session_id });
        const { resource: task } = await submit({
          kind: 'task.submit',
          actor,
          // A process that died between the two commits finds its task here, or makes it now.
          idempotency: { key: delivery_id, target: `connectors/${connector.id}/deliveries` },
          body: {
            session_id,
            input,
            ...(connector.target_persona_id && { persona_id: connector.target_persona_id }),
            metadata: { connector_id: connector.id, delivery_id },
          },
        });
        if (!repeated) await tell('connector.task_submitted', { task_id: task.id });
        return { task, repeated };
      } catch (thrown) {
        const { kind, message } = asFault(thrown);
        await tell('connector.failed', { code: kind, reason: message });
        throw thrown;
      }
    },
  };
}

/** What the agent reads: the sender's own words when there are some, and all of it as data. */
function toInput(connector: Connector, { event_kind, payload }: Delivery): JsonObject {
  const said = ['text', 'message', 'prompt'].map((name) => payload[name]).find((value) => typeof value === 'string');
  const message: MessageInput = {
    role: 'user',
    parts: [
      { type: 'text', text: said ? asText(said) : `${connector.provider}: ${event_kind}`, visibility: 'public' },
      { type: 'json', value: payload as Json, visibility: 'internal' },
    ],
  };
  return message as unknown as JsonObject;
}
