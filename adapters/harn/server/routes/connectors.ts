/**
 * Webhook deliveries. A provider holds no token of ours: its delivery is believed because it is signed with a secret that the
 * connector names, over the exact bytes received. An absent connector and a bad signature get the same answer.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { type Actor, type Connector, Fault, isObject, type JsonObject, type Row } from '../../../../src/index.ts';
import { parseJson } from '../../../../src/transport/http/body.ts';
import type { Call, Reply, RouteContext, Routes } from '../call.ts';

/** The system actor that looks up the connector of a delivery; it decides nothing. */
const SYSTEM_ACTOR: Actor = { id: 'system:harn', kind: 'system', scopes: ['*'] };

/** The headers in which providers send their signature, and their id of a delivery. */
const SIGNATURE_HEADERS = ['x-harn-signature', 'x-hub-signature-256', 'x-signature-256', 'x-signature'];
const DELIVERY_HEADERS = ['x-harn-delivery', 'x-delivery-id', 'x-github-delivery', 'webhook-id', 'idempotency-key'];
const KIND_HEADERS = ['x-harn-event', 'x-event-kind', 'x-github-event'];
const TOLERANCE_MS = 5 * 60 * 1000;

export function connectorRoutes(context: RouteContext): Pick<Routes, 'deliverToConnector'> {
  const { bridge, deps } = context;

  async function deliver(call: Call): Promise<Reply> {
    const { request } = call.http!;
    const header = (names: readonly string[]) => {
      for (const name of names) {
        const values = request.headersDistinct[name];
        if (values && values.length > 1) throw new Fault('invalid_request', `more than one ${name}`, { param: name });
        if (values?.[0]) return values[0];
      }
      return undefined;
    };
    const bytes = call.body as Buffer;
    const connector = await genuine(call.params.connector_id!, bytes, header(SIGNATURE_HEADERS));
    const payload = parseJson(bytes);
    if (!isObject(payload)) {
      throw new Fault('invalid_request', 'a delivery is a JSON object', { param: '/' });
    }
    const delivery_id = header(DELIVERY_HEADERS);
    if (!delivery_id || delivery_id.length > 255) {
      throw new Fault('invalid_request', 'a delivery needs an id', { param: DELIVERY_HEADERS[0]! });
    }
    const kind = header(KIND_HEADERS) ?? (payload as JsonObject).type ?? (payload as JsonObject).event;
    const { task } = await bridge.deliver(actorFor(connector), {
      connector_id: connector.id,
      delivery_id,
      event_kind: typeof kind === 'string' ? kind.slice(0, 200) : 'webhook',
      payload: payload as JsonObject,
    });
    return task ? { body: task } : { status: 204, body: undefined };
  }

  async function genuine(id: string, bytes: Buffer, signature: string | undefined): Promise<Connector & Row> {
    const refused = new Fault('unauthenticated', 'the delivery is not signed for this connector');
    const connector = await bridge.view<Connector & Row>(SYSTEM_ACTOR, 'connector', id).catch((thrown) => {
      if (thrown instanceof Fault && thrown.kind === 'not_found') throw refused;
      throw thrown;
    });
    // A connector without a secret, or with one it may not use, takes no deliveries: they could be forged.
    const named = signature ? await bridge.secretOf(SYSTEM_ACTOR, id) : undefined;
    if (!named || !signature) throw refused;
    const secret = await deps.secret(named.secret, named.user).catch((cause) => {
      deps.log.error({ err: cause, connector: id }, 'the secret of a connector cannot be read');
      throw new Fault('unavailable', 'deliveries cannot be checked now');
    });
    if (!signed(bytes, signature, secret, Date.parse(deps.clock.now()))) throw refused;
    return connector;
  }

  return { deliverToConnector: deliver };
}

/** `t=<seconds>,v1=<hex>` over "t.body", or a bare or `sha256=` hex digest of the body. */
export function signed(bytes: Buffer, signature: string, secret: string, now: number): boolean {
  const parts = Object.fromEntries(signature.split(',').map((part) => part.trim().split(/=(.*)/s).slice(0, 2)));
  if (parts.t !== undefined && parts.v1 !== undefined) {
    const age = Math.abs(now - Number(parts.t) * 1000);
    return age <= TOLERANCE_MS && same(parts.v1, createHmac('sha256', secret).update(`${parts.t}.`).update(bytes));
  }
  return same(signature.replace(/^sha256=/, ''), createHmac('sha256', secret).update(bytes));
}

function same(hex: string, hmac: ReturnType<typeof createHmac>): boolean {
  return /^[0-9a-f]{64}$/i.test(hex) && timingSafeEqual(Buffer.from(hex, 'hex'), hmac.digest());
}

/** A connector acts for itself: in its own workspace, and only by submitting tasks. */
function actorFor(connector: Connector & Row): Actor {
  const { tenant_id } = connector as { tenant_id?: string };
  return {
    id: `connector:${connector.id}`,
    kind: 'service',
    // The connector's session may be another principal's; without a read scope it still reads nothing.
    scopes: ['tasks:write', 'sessions:write', 'others:read'],
    workspaces: [connector.workspace_id],
    door: 'harn',
    ...(tenant_id && { tenant_id }),
  };
}
