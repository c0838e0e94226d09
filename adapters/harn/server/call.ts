/** One call as the routes see it: validated, authenticated, and the same over REST and WebSocket. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { QueryName } from '../../../mappings/harn.ts';
import type { Actor, Bridge, Deps } from '../../../src/index.ts';
import type { HarnSettings } from '../config.ts';
import type { KnownOperation, OperationId, Revision } from '../revisions/revisions.ts';
import type { Followers } from './followers.ts';
import type { LiveClients } from './live-clients.ts';
import type { Metrics } from './metrics.ts';
import type { Hosts } from './sockets/socket-tools.ts';

export interface Call {
  /** The revision the caller speaks. */
  readonly revision: Revision;
  readonly operation: KnownOperation;
  readonly actor: Actor;
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Partial<Record<QueryName, string>>>;
  /** Checked against the operation's schema; undefined when it takes none. */
  readonly body: unknown;
  /** Members to spread into a command: the idempotency key, and the trace of the request. */
  readonly once: {
    readonly idempotency?: { readonly key: string };
    readonly trace_id?: string;
    readonly tracestate?: string;
    readonly trace_flags?: string;
  };
  /** The prefix of the mount: empty, or that of the second mount. */
  readonly prefix: string;
  /** Absent on a WebSocket. */
  readonly http?: { readonly request: IncomingMessage; readonly response: ServerResponse };
}

export type Reply =
  | { readonly status?: number; readonly body: unknown; readonly headers?: Readonly<Record<string, string>> }
  | {
      readonly status?: number;
      readonly bytes: Uint8Array | string;
      readonly type: string;
      readonly headers?: Readonly<Record<string, string>>;
    }
  /** The route has answered by itself. */
  | 'answered';

export type Route = (call: Call) => Promise<Reply>;
export type Routes = Readonly<Record<OperationId, Route>>;

/** The dependencies of every route. */
export interface RouteContext {
  readonly bridge: Bridge;
  readonly deps: Deps;
  readonly settings: HarnSettings;
  readonly followers: Followers;
  readonly metrics: Metrics;
  readonly hosts: Hosts;
  readonly live: LiveClients;
  /** Since when this door is open. */
  readonly openedAt: string;
}
