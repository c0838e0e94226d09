/**
 * Work from another gateway: that gateway's reference to itself, stored with the task so that its receipt can name it. It is a
 * claim of an authenticated caller, never a permission. Work that has come round in a circle is refused, and so is work that has
 * come through too many gateways.
 */

import { Fault } from '../../../model/faults.ts';
import type { JsonObject } from '../../../model/schema.ts';
import { isObject } from '../../../model/values/is-object.ts';
import type { CallerReference } from '../../../ports/index.ts';

/** Gateways in a row; a longer chain is an error, or a circle of gateways that do not identify themselves. */
export const MOST_HOPS = 8;
const LONGEST = 200;
const HASH = /^sha256:[0-9a-f]{64}$/;

/** The calling gateway's reference in a command's metadata. Malformed values are ignored. */
export function callerOf(metadata: JsonObject | undefined): CallerReference | undefined {
  const { caller } = membersOf(metadata?.tollbridge);
  const members = membersOf(caller);
  const task_id = shortText(members.task_id);
  if (!task_id) return undefined;
  const hops = Array.isArray(members.hops)
    ? members.hops.flatMap((hop) => shortText(hop) ?? []).slice(0, MOST_HOPS + 1)
    : [];
  const [issuer, key_id, protocol] = [
    shortText(members.issuer),
    shortText(members.key_id),
    shortText(members.protocol),
  ];
  const [event_id, tool_call_id] = [shortText(members.event_id), shortText(members.tool_call_id)];
  const event_hash =
    typeof members.event_hash === 'string' && HASH.test(members.event_hash) ? members.event_hash : undefined;
  return {
    task_id,
    hops,
    ...(issuer && { issuer }),
    ...(key_id && { key_id }),
    ...(protocol && { protocol }),
    ...(event_id && { event_id }),
    ...(event_hash && { event_hash }),
    ...(tool_call_id && { tool_call_id }),
  };
}

/** One gateway and the agent or server it uses for the work: forwarding to another of its agents is not a circle. */
export function hopOf(keyId: string, target: string): string {
  return `${keyId}/${target}`.slice(0, LONGEST);
}

/** Throws for work that has passed through here before, or through too many gateways. */
export function refuseCircle(caller: CallerReference | undefined, here: string | undefined): void {
  if (!caller) return;
  const details = { code: 'gateway_loop', hops: caller.hops };
  if (here && caller.hops.includes(here)) {
    const message = `this work has come back to a gateway it came from (${caller.hops.length} hops): ${here}`;
    throw new Fault('policy_violation', message, { details });
  }
  if (caller.hops.length > MOST_HOPS) {
    throw new Fault('policy_violation', `this work has come through more than ${MOST_HOPS} gateways`, { details });
  }
}

function shortText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' && value.length <= LONGEST ? value : undefined;
}

function membersOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}
