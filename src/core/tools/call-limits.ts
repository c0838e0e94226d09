/**
 * How often one caller may call one tool, where its server's configuration limits that. Counted in this process, at the gate, before
 * the call is decided on: a call over the limit is deferred until there is room again, and is not counted.
 */
import type { Action, Decision } from '../../model/actions.ts';
import { LruMap } from '../../model/values/lru-map.ts';
import type { CallLimit } from '../../ports/index.ts';
import type { Gate } from '../actions/gate.ts';

export interface CallLimitDeps {
  readonly limitOf: (server: string, tool: string) => CallLimit | undefined;
  /** In milliseconds. */
  readonly now: () => number;
}

/** More callers than this within one window are counted anew. */
const MOST = 50_000;

export function limitCalls(gate: Gate, { limitOf, now }: CallLimitDeps): Gate {
  const windows = new LruMap<string, { readonly ends: number; used: number }>(MOST);

  function room({ actor, server = '', tool = '' }: Action, { perMs }: CallLimit) {
    const key = JSON.stringify([actor.tenant_id ?? '', actor.id, server, tool]);
    const known = windows.get(key);
    if (known && known.ends > now()) return known;
    const fresh = { ends: now() + perMs, used: 0 };
    windows.set(key, fresh);
    return fresh;
  }

  return (action, ...more) => {
    const { tool, server, evidence } = action;
    const limit = tool && server && evidence === 'held' ? limitOf(server, tool) : undefined;
    if (!limit) return gate(action, ...more);
    const window = room(action, limit);
    if (window.used >= limit.calls) return over(action, limit, window.ends - now());
    // Counted before the decision, so that calls decided at the same time cannot pass together.
    window.used += 1;
    const counted = (decision: Decision): Decision => {
      if (decision.verdict === 'block' || decision.verdict === 'defer') window.used -= 1;
      return decision;
    };
    const decision = gate(action, ...more);
    return 'verdict' in decision ? counted(decision) : decision.then(counted);
  };
}

function over({ tool, server }: Action, { calls, perMs }: CallLimit, retryMs: number): Decision {
  return {
    verdict: 'defer',
    code: 'rate_limited',
    reason: `${tool} of ${server} may be called ${calls} times in ${perMs / 1000} s by one caller`,
    engine: 'bridge',
    retry_after_ms: Math.max(1, Math.ceil(retryMs)),
  };
}
