/** One request as the routes see it, and the dependencies of every route. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { OperationId } from '../../../mappings/runs.ts';
import type { Actor, Bridge, Deps, Json } from '../../../src/index.ts';
import type { RunsSettings } from '../config.ts';
import type { KeyQueue } from './key-queue.ts';
import type { RunReader } from './run-reader.ts';
import type { Cleaner } from './sensitive.ts';

export interface Call {
  readonly actor: Actor;
  /** From the path. Empty where it has none. */
  readonly id: string;
  readonly query: URLSearchParams;
  /** In every answer; stands for this request everywhere. */
  readonly requestId: string;
  /** The JSON of the body; it is read once and cached. */
  body(): Promise<unknown>;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** Every answer also carries `request_id`. */
export interface Reply {
  readonly status?: number;
  readonly body: { readonly [member: string]: unknown };
}

/** Undefined: the route has answered by itself. */
type Route = (call: Call) => Promise<Reply | undefined>;
export type Routes = Readonly<Record<OperationId, Route>>;

export interface RouteContext {
  readonly bridge: Bridge;
  readonly deps: Deps;
  readonly settings: RunsSettings;
  readonly runReader: RunReader;
  readonly turns: KeyQueue;
  readonly cleaner: Cleaner;
  /** Keyed: digests can be compared within this installation only. */
  digest(value: Json): string;
  /** Fires when the door closes. */
  readonly closing: AbortSignal;
}
