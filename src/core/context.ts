/** What every command handler works with. Handed down once by the bridge. */
import type { Actor } from '../model/actions.ts';
import type { CommandBody, CommandEnvelope, CommandKind } from '../model/commands.ts';
import { Fault } from '../model/faults.ts';
import type { Json } from '../model/schema.ts';
import type { Accepted, Clock, Ids, Row, Store, Unit } from '../ports.ts';
import type { Access } from './access.ts';
import type { Log } from './log.ts';

export interface Context {
  readonly store: Store;
  readonly log: Log;
  readonly access: Access;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly hash: (value: Json) => string;
}

export type Given<K extends CommandKind> = CommandEnvelope & { readonly kind: K; readonly body: CommandBody<K> };
export type Handler<K extends CommandKind> = (command: Given<K>) => Promise<Accepted<K>>;
export type Handlers = { readonly [K in CommandKind]: Handler<K> };

/**
 * Actor, workspace, method, target and key: the same five again with the same body are the same command.
 * Undefined when the caller gave no key.
 */
export function once(
  { hash }: Pick<Context, 'hash'>,
  { actor, kind, body, idempotency }: CommandEnvelope & { readonly kind: CommandKind; readonly body: unknown },
  workspaceId: string | null,
  target: string,
): Pick<Unit, 'idempotency'> {
  if (!idempotency) return {};
  const scope = hash([tenantOf(actor), actor.id, workspaceId, kind, idempotency.target ?? target, idempotency.key]);
  return { idempotency: { scope, body: hash(body as Json) } };
}

/** What an earlier command with this claim came to, found without doing anything. */
export async function earlier(
  { log }: Pick<Context, 'log'>,
  claim: Pick<Unit, 'idempotency'>,
): Promise<Json | undefined> {
  if (!claim.idempotency) return undefined;
  const none = new Fault('not_found', 'no earlier command has this key');
  try {
    const { result } = await log.commit({
      ...claim,
      decide() {
        throw none;
      },
    });
    return result;
  } catch (cause) {
    if (cause === none) return undefined;
    throw cause;
  }
}

/**
 * For commands that look before they write: what made the first one possible may be gone by the time it is repeated,
 * not least through the first one itself. Then the repeat hears what the first one heard.
 */
export async function orEarlier<T>(
  context: Pick<Context, 'log'>,
  claim: Pick<Unit, 'idempotency'>,
  first: () => Promise<T>,
  again: (result: Json) => Promise<T>,
): Promise<T> {
  try {
    return await first();
  } catch (cause) {
    const before = await earlier(context, claim);
    if (before === undefined) throw cause;
    return await again(before);
  }
}

function tenantOf(actor: Actor): string | null {
  return actor.tenant_id ?? null;
}

export function accepted<K extends CommandKind>(
  kind: K,
  resource: Accepted<K>['resource'] & (Row | undefined),
  repeated: boolean,
  more: Partial<Accepted<K>> = {},
): Accepted<K> {
  return { kind, resource, repeated, ...more } as Accepted<K>;
}
