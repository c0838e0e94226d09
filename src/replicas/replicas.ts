/** This process as one of the replicas on its store: known to the others, and linked with them. */
import type { Clock, Closable, Ids, InternalLink, Logger, Store } from '../ports/index.ts';
import type { GatewayRequest, GatewayResponse } from '../transport/http/response.ts';
import { createHolds } from './holds.ts';
import { createHopTokens } from './hop-token.ts';
import { createLinkClient } from './link-client.ts';
import { openLinkServer, type TcpAddress } from './link-server.ts';
import { markOf } from './mark.ts';
import { openRegistry } from './registry.ts';
import type { Commit } from './rows.ts';

export interface Replicas extends Closable {
  readonly id: string;
  readonly link: InternalLink;
  /** The mark of the replica that holds the thing of this name; ours, when it was free. */
  hold(key: string): Promise<string>;
  letGo(key: string): Promise<void>;
}

export interface ReplicasDeps {
  readonly store: Pick<Store, 'get' | 'list' | 'lease'>;
  readonly commit: Commit;
  readonly ids: Ids;
  readonly clock: Clock;
  readonly log: Logger;
  /** The data directory. */
  readonly directory: string;
  readonly tcp?: TcpAddress;
  /** Shared by all replicas of the installation. */
  readonly secret: string;
  readonly headerLimit?: number;
  /** Serves a request that another replica handed on. */
  readonly serve: (request: GatewayRequest, response: GatewayResponse) => void;
}

export async function openReplicas(deps: ReplicasDeps): Promise<Replicas> {
  const { store, commit, ids, clock, log, secret, serve } = deps;
  const id = ids.next('replica');
  const server = await openLinkServer({ ...deps, id });
  try {
    const registry = await openRegistry({ store, commit, id, address: server.address, log });
    const tokens = createHopTokens({ id, secret, now: () => Date.parse(clock.now()) });
    const holds = createHolds({ store, commit, id, lease: registry.lease });
    server.begin({ tokens, serve });
    return {
      id,
      link: createLinkClient({ registry, tokens, log }),
      hold: async (key) => markOf(await holds.hold(key)),
      letGo: holds.letGo,
      async close() {
        try {
          await server.close();
        } finally {
          await registry.close();
        }
      },
    };
  } catch (cause) {
    await server.close();
    throw cause;
  }
}
