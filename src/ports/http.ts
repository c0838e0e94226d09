/** The one port of the house for every door that speaks HTTP, and who stands before it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Actor } from '../model/actions.ts';

/** One port for every HTTP door. Host, Origin, size limits and request ids are dealt with before a door sees anything. */
export interface HttpHost {
  /** Where it listens, once it does: `http://127.0.0.1:4319`. */
  readonly url: string;
  mount(prefix: string, handler: HttpHandler): void;
  /** WebSocket upgrades whose path it says yes to. The checks above have passed; authentication is the door's. */
  upgrade(mine: (path: string) => boolean, handler: UpgradeHandler): void;
}

export type HttpHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  next: (thrown?: unknown) => void,
) => void;

export type UpgradeHandler = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

/** The principal that holds this bearer token. Anything wrong with it is `unauthenticated`; there is no default principal. */
export type Authenticate = (bearer: string | undefined, at?: LoginPlace) => Promise<Actor>;

export interface LoginPlace {
  /** A credential that is limited to other doors is not valid here. Filled in where a door is mounted. */
  readonly door?: string;
  /** The remote address. Absent where no one logs in: a connection is looked at again, whether its token still holds. */
  readonly address?: string | undefined;
}
