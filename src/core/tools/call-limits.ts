/**
 * How often one caller may call one tool, where its server's configuration limits that. Each caller has a quota of its own for each
 * limited tool: it is declared with the first call, and calls are counted in the commits that decide on them, so that all processes
 * on one log share the count. A call over the limit is deferred until there is room again, and is not counted.
 */
import type { Actor } from '../../model/actions.ts';
import { Quota } from '../../model/resources.ts';
import { check } from '../../model/validate.ts';
import type { CallLimit, Row } from '../../ports/index.ts';
import { later } from '../clock.ts';
import { declaredEvent } from '../commands/declared-event.ts';
import type { Context } from '../context.ts';

export interface CalledTool {
  readonly server: string;
  readonly tool: string;
}

/** Undefined, and not a promise, for tools whose calls are not limited. */
export type CallQuotaOf = (actor: Actor, called: CalledTool) => Promise<Quota> | undefined;

export interface CallQuotasDeps extends Pick<Context, 'store' | 'log' | 'hash'> {
  readonly limitOf: (server: string, tool: string) => CallLimit | undefined;
}

export function createCallQuotas({ store, log, hash, limitOf }: CallQuotasDeps): CallQuotaOf {
  async function quotaOf(actor: Actor, { server, tool }: CalledTool, limit: CallLimit): Promise<Quota> {
    const { calls, perMs } = limit;
    const digest = hash(['calls', actor.tenant_id ?? null, actor.id, server, tool]);
    const id = `quota_calls_${digest.slice('sha256:'.length, 'sha256:'.length + 24)}`;
    const metadata = {
      window_ms: perMs,
      call_limit: `${tool} of ${server} may be called ${calls} times in ${perMs / 1000} s by one caller`,
    };
    const isCurrent = (row: Quota) => row.metadata.call_limit === metadata.call_limit;
    const known = await store.get<Quota & Row>('quota', id);
    if (known && isCurrent(known)) return known;
    let made: Quota | undefined;
    await log.commit({
      reads: [{ object: 'quota', id }],
      decide(at) {
        const now = at.get<Quota & Row>('quota', id);
        made = now;
        if (now && isCurrent(now)) return { events: [] };
        const row = check(
          Quota,
          {
            id,
            object: 'quota',
            created_at: now?.created_at ?? at.now,
            updated_at: at.now,
            scope: 'caller',
            limits: { tool_calls: calls },
            usage: now?.usage ?? { tool_calls: 0 },
            reset_at: later(at.now, perMs),
            hard_limit: true,
            metadata,
            ...(actor.tenant_id && { tenant_id: actor.tenant_id }),
          },
          'quota',
        );
        made = row;
        return { events: [declaredEvent(now ? 'updated' : 'created', row as Quota & Row, null, 'bridge')] };
      },
    });
    return made as Quota;
  }

  return (actor, called) => {
    const limit = limitOf(called.server, called.tool);
    return limit && quotaOf(actor, called, limit);
  };
}

/** The quotas of the work as they are now, and those of the call itself, which the work does not name. */
export function withCallQuotas(quotas: readonly Quota[], before: readonly Quota[] = []): readonly Quota[] {
  const own = before.filter(({ metadata }) => metadata.call_limit !== undefined);
  return own.length === 0 ? quotas : [...quotas, ...own];
}
