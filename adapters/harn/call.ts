/** One wish as the routes see it: checked, authenticated, and the same whether it came by REST or by WebSocket. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { OperationId, QueryName } from '../../mappings/harn.ts';
import type { Actor, Bridge, Deps } from '../../src/index.ts';
import type { HarnSettings } from './config.ts';
import type { Followers } from './followers.ts';
import type { Hosts } from './hosts.ts';
import type { Metrics } from './metrics.ts';
import type { KnownOperation } from './router.ts';

export interface Call {
  readonly operation: KnownOperation;
  readonly actor: Actor;
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Partial<Record<QueryName, string>>>;
  /** Checked against the operation's schema; undefined when it takes none. */
  readonly body: unknown;
  /** Ready to be spread into a command: its key, and the trace it came in with. */
  readonly once: { readonly idempotency?: { readonly key: string }; readonly trace_id?: string };
  /** The mount it came in by: empty, or the second mount's prefix. */
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

/** What every route works with. */
export interface Desk {
  readonly bridge: Bridge;
  readonly deps: Deps;
  readonly settings: HarnSettings;
  readonly followers: Followers;
  readonly metrics: Metrics;
  readonly hosts: Hosts;
  /** Since when this door is open. */
  readonly openedAt: string;
}
