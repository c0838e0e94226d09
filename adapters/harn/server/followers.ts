/**
 * All long-lived connections: counted, rechecked from time to time for a valid token, and closed in order when the door
 * closes.
 */

import type { Actor, Authenticate } from '../../../src/index.ts';
import { asText } from '../../../src/index.ts';
import type { Metrics, StreamKind } from './metrics.ts';

interface Follower {
  readonly kind: StreamKind;
  /** As it was presented; a revoked key or an expired token ends the connection. */
  readonly bearer: string | undefined;
  readonly actor: Actor;
  /** The token no longer holds. */
  dismiss(): void;
  /** The gateway is shutting down. */
  drain(): void;
}

export interface Followers {
  add(follower: Follower): { leave(cutOff?: boolean): void };
  close(): void;
}

export function createFollowers(authenticate: Authenticate, metrics: Metrics, recheckMs: number): Followers {
  const all = new Set<Follower>();
  const timer = setInterval(recheck, recheckMs).unref();

  function recheck(): void {
    // One check per token, however many connections use it.
    const tokens = new Map<string | undefined, Follower[]>();
    for (const follower of all) {
      const group = tokens.get(follower.bearer);
      if (group) group.push(follower);
      else tokens.set(follower.bearer, [follower]);
    }
    for (const [bearer, group] of tokens) {
      authenticate(bearer).then(
        (actor) => {
          for (const follower of group) if (!sameRights(actor, follower.actor)) follower.dismiss();
        },
        (thrown) => {
          // A failure to check is no reason to disconnect a client that was authenticated.
          if ((thrown as { kind?: string }).kind !== 'unauthenticated') return;
          for (const follower of group) follower.dismiss();
        },
      );
    }
  }

  return {
    add(follower) {
      all.add(follower);
      metrics.streamOpened(follower.kind);
      return {
        leave(cutOff = false) {
          if (all.delete(follower)) metrics.streamClosed(follower.kind, cutOff);
        },
      };
    },
    close() {
      clearInterval(timer);
      for (const follower of [...all]) follower.drain();
    },
  };
}

function sameRights(now: Actor, then: Actor): boolean {
  return (
    now.id === then.id &&
    now.tenant_id === then.tenant_id &&
    asText(now.workspaces) === asText(then.workspaces) &&
    asText(now.scopes) === asText(then.scopes)
  );
}
