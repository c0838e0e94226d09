/** The dependencies of every command handler, built once by the bridge; and the idempotency of commands. */
import type { Actor } from '../model/actions.ts';
import type { CommandBody, CommandEnvelope, CommandKind } from '../model/commands.ts';
import type { CoreEvent } from '../model/events.ts';
import { Fault } from '../model/faults.ts';
import type { Json } from '../model/schema.ts';
import type { Accepted, Clock, Ids, Row, Store, Unit } from '../ports/index.ts';
import type { Access } from './access.ts';
import type { Log } from './events/log.ts';

export interface Context {
  readonly store: Store;
  readonly log: Log;
  readonly access: Access;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly hash: (value: Json) => string;
  /** The root over a task's events, as in its receipt. */
  readonly logRoot: (events: readonly CoreEvent[]) => string;
}

export type Received<K extends CommandKind> = CommandEnvelope & { readonly kind: K; readonly body: CommandBody<K> };
export type Handler<K extends CommandKind> = (command: Received<K>) => Promise<Accepted<K>>;
export type Handlers = { readonly [K in CommandKind]: Handler<K> };

/**
 * Actor, workspace, method, target and key: a command that repeats all five with the same body is the same command. Undefined when
 * the caller gave no key.
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

/** The result of an earlier command with this claim, read without side effects. */
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
 * For commands that read before they write: the state that made the first one possible may be gone when it is repeated, not least
 * through the first one itself. Then the repeat gets the first one's result.
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
