/**
 * Personas, quotas and vaults of the configuration, as resources in the log. Counts survive a change of their limit;
 * resources no longer in the file are withdrawn; those an API client or another configuration file declared are left
 * alone. Several processes may declare the same file at the same moment.
 */
import { createHash } from 'node:crypto';
import type { Actor } from '../../model/actions.ts';
import { asFault, type FaultKind } from '../../model/faults.ts';
import type { Persona, Quota, Vault } from '../../model/resources.ts';
import type { JsonObject } from '../../model/schema.ts';
import { durationMs } from '../../model/values/duration.ts';
import { everyRow } from '../../model/values/every-row.ts';
import type { Bridge, Clock, Row } from '../../ports/index.ts';
import type { Config } from '../config/config.ts';

type Kind = 'persona' | 'quota' | 'vault';
interface Declared {
  readonly object: Kind;
  readonly id: string;
  readonly body: JsonObject;
}
type Found = (Persona | Quota | Vault) & Row;

/** Mark a resource as declared by a configuration, and by which one: only that file withdraws it. */
const OURS = 'configured';
const BY = 'configured_by';

/**
 * Brings the log in line with the configuration; returns the paths that changed. Without a file nothing is declared or
 * withdrawn.
 */
export async function declare(bridge: Bridge, actor: Actor, config: Config, clock: Clock): Promise<readonly string[]> {
  if (!config.file) return [];
  const mark = { [OURS]: true, [BY]: createHash('sha256').update(config.file).digest('hex').slice(0, 16) };
  const wanted = [...quotasOf(config, mark), ...personasOf(config, mark), ...vaultsOf(config, mark)];
  const changed: string[] = [];
  for (const each of wanted) {
    if (await declared(bridge, actor, each, clock)) changed.push(`${each.object}s.${nameOf(each.id)}`);
  }
  // Personas name quotas, so they go first.
  for (const object of ['persona', 'quota', 'vault'] as const) {
    for (const id of await declaredBy(bridge, actor, object, mark[BY] as string)) {
      if (wanted.some((each) => each.id === id)) continue;
      const gone = await bridge
        .submit({ kind: 'resource.delete', actor, body: { object, id } })
        .catch(unless('not_found'));
      if (gone) changed.push(`${object}s.${nameOf(id)}`);
    }
  }
  return changed;
}

/**
 * True when it had to be written. Another process that reads the same file may write it first; then there is nothing to
 * do.
 */
async function declared(bridge: Bridge, actor: Actor, wanted: Declared, clock: Clock): Promise<boolean> {
  const { object, id, body } = wanted;
  for (let tries = 1; ; tries += 1) {
    const before = await find(bridge, actor, object, id);
    if (before && saysTheSame(before, body)) return false;
    const command = before ? 'resource.update' : 'resource.create';
    const first = before ? {} : firstWindow(body, clock);
    const written = await bridge
      .submit({ kind: command, actor, body: { object, id, body: { ...body, ...first } } })
      .catch(tries < TRIES ? unless('conflict', 'not_found') : rethrow);
    if (written) return true;
  }
}
const TRIES = 5;

function unless(...kinds: readonly FaultKind[]): (thrown: unknown) => undefined {
  return (thrown) => {
    if (!kinds.includes(asFault(thrown).kind)) throw thrown;
    return undefined;
  };
}

function rethrow(thrown: unknown): never {
  throw thrown;
}

function quotasOf({ quotas }: Config, mark: JsonObject): readonly Declared[] {
  return Object.entries(quotas).map(([name, { limits, soft, per, scope }]) => ({
    object: 'quota',
    id: `quota_${name}`,
    body: {
      scope: scope ?? 'persona',
      limits: limits as JsonObject,
      hard_limit: !soft,
      soft_limit: soft ?? false,
      metadata: { ...mark, ...(per && { window_ms: durationMs(per) ?? null }) },
    },
  }));
}

function personasOf({ personas }: Config, mark: JsonObject): readonly Declared[] {
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
      metadata: mark,
    },
  }));
}

/** Location and capabilities of the vaults; never the names or values of secrets. */
function vaultsOf({ vaults }: Config, mark: JsonObject): readonly Declared[] {
  return vaults.map(({ name, provider }) => ({
    object: 'vault',
    id: `vault_${name}`,
    body: {
      workspace_id: null,
      provider,
      capabilities: provider === 'file' ? ['read', 'write'] : ['read'],
      metadata: { ...mark, name },
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

/** Ids of the resources this file declared, or an earlier version of this program that did not record the file. */
async function declaredBy(bridge: Bridge, actor: Actor, object: Kind, file: string): Promise<readonly string[]> {
  const ids: string[] = [];
  for await (const { id, metadata } of everyRow((paging) => bridge.list<Found>(actor, { object, ...paging })))
    if (metadata[OURS] === true && (metadata[BY] ?? file) === file) ids.push(id);
  return ids;
}

function saysTheSame(before: Found, body: JsonObject): boolean {
  return Object.entries(body).every(
    ([member, value]) => JSON.stringify((before as JsonObject)[member]) === JSON.stringify(value),
  );
}

/** A quota's first window begins when the quota is created. */
function firstWindow({ metadata }: JsonObject, clock: Clock): JsonObject {
  const { window_ms: length } = (metadata ?? {}) as { window_ms?: number };
  return length ? { reset_at: new Date(Date.parse(clock.now()) + length).toISOString() } : {};
}

const nameOf = (id: string) => id.replace(/^[a-z]+_/, '');
