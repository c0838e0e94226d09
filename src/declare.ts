/**
 * Personas and quotas that stand in the configuration, as resources of the house. What is counted stays counted when a limit
 * changes; what no longer stands there is withdrawn; what others declared is left alone.
 */
import type { Config } from './config.ts';
import type { Actor } from './model/actions.ts';
import { asFault } from './model/faults.ts';
import type { Persona, Quota } from './model/resources.ts';
import type { JsonObject } from './model/schema.ts';
import { durationMs } from './policy/duration.ts';
import type { Bridge, Clock, Row } from './ports.ts';

type Kind = 'persona' | 'quota';
interface Declared {
  readonly object: Kind;
  readonly id: string;
  readonly body: JsonObject;
}
type Found = (Persona | Quota) & Row;

/** Marks what came from here. */
const OURS = 'configured';

/** Brings the house in line with the configuration; comes back with what had to change. */
export async function declare(bridge: Bridge, actor: Actor, config: Config, clock: Clock): Promise<readonly string[]> {
  const wanted = [...quotasOf(config), ...personasOf(config)];
  const changed: string[] = [];
  for (const { object, id, body } of wanted) {
    const before = await find(bridge, actor, object, id);
    if (before && saysTheSame(before, body)) continue;
    const command = before ? 'resource.update' : 'resource.create';
    const first = before ? {} : firstWindow(body, clock);
    await bridge.submit({ kind: command, actor, body: { object, id, body: { ...body, ...first } } });
    changed.push(`${object}s.${nameOf(id)}`);
  }
  // Personas name quotas, so they go first.
  for (const object of ['persona', 'quota'] as const) {
    for (const id of await oursOf(bridge, actor, object)) {
      if (wanted.some((each) => each.id === id)) continue;
      await bridge.submit({ kind: 'resource.delete', actor, body: { object, id } });
      changed.push(`${object}s.${nameOf(id)}`);
    }
  }
  return changed;
}

function quotasOf({ quotas }: Config): readonly Declared[] {
  return Object.entries(quotas).map(([name, { limits, soft, per }]) => ({
    object: 'quota',
    id: `quota_${name}`,
    body: {
      scope: 'persona',
      limits,
      hard_limit: !soft,
      soft_limit: soft ?? false,
      metadata: { [OURS]: true, ...(per && { window_ms: durationMs(per) ?? null }) },
    },
  }));
}

function personasOf({ personas }: Config): readonly Declared[] {
  return Object.entries(personas).map(([name, { agent, description, autonomy, tools, handoffs, quota }]) => ({
    object: 'persona',
    id: `persona_${name}`,
    body: {
      name,
      version: '1',
      entry_workflow: agent ?? 'default',
      description: description ?? '',
      autonomy_tier: autonomy ?? 'act_auto',
      receipt_policy: 'required',
      tools: [...(tools ?? [])],
      handoffs: [...(handoffs ?? [])],
      quota_id: quota ? `quota_${quota}` : null,
      metadata: { [OURS]: true },
    },
  }));
}

async function find(bridge: Bridge, actor: Actor, object: Kind, id: string): Promise<Found | undefined> {
  try {
    return await bridge.view<Found>(actor, object, id);
  } catch (thrown) {
    if (asFault(thrown).kind === 'not_found') return undefined;
    throw thrown;
  }
}

async function oursOf(bridge: Bridge, actor: Actor, object: Kind): Promise<readonly string[]> {
  const ids: string[] = [];
  let after: string | undefined;
  do {
    const page = await bridge.list<Found>(actor, { object, limit: 200, ...(after && { after }) });
    ids.push(...page.data.flatMap(({ id, metadata }) => (metadata[OURS] === true ? [id] : [])));
    after = page.next;
  } while (after);
  return ids;
}

function saysTheSame(before: Found, body: JsonObject): boolean {
  return Object.entries(body).every(
    ([member, value]) => JSON.stringify((before as unknown as JsonObject)[member]) === JSON.stringify(value),
  );
}

/** A window begins when the quota does, and opens anew from there. */
function firstWindow({ metadata }: JsonObject, clock: Clock): JsonObject {
  const { window_ms: length } = (metadata ?? {}) as { window_ms?: number };
  return length ? { reset_at: new Date(Date.parse(clock.now()) + length).toISOString() } : {};
}

const nameOf = (id: string) => id.replace(/^[a-z]+_/, '');
