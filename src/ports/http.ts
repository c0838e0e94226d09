/** The gateway's one HTTP port, shared by every door that speaks HTTP, and the authentication of its callers. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Actor } from '../model/actions.ts';

/** One port for every HTTP door. Host, Origin, size limits and request ids are checked before a door sees a request. */
export interface HttpHost {
  /** The address clients reach it at, once it listens: the configured one, or the one it listens on. Never `0.0.0.0`. */
  readonly url: string;
  /**
   * Claims paths for the door of this name. Two doors that claim one path are a fault. A request no door claims gets 404, and one
   * with a method its route does not list gets 405. The returned function gives the paths back; a door that closes with the port
   * need not call it.
   */
  claim(door: string, routes: readonly HttpRoute[]): () => void;
  /** Several doors share the root: each registers its API as an OpenAPI document, for the door that publishes them all. */
  describe?(name: string, document: Described): void;
  readonly described?: ReadonlyMap<string, Described>;
  /** A public document of one door that another door serves as well, by its path. Undefined: no door serves it at the moment. */
  publish?(path: string, make: () => Promise<object | undefined>): void;
  published?(path: string): Promise<object | undefined>;
  /** Ends each name that a door gives to a thing which only this process holds. Empty or absent: no other process serves this store. */
  readonly mark?: string;
  /** It will soon accept no more connections: load balancers are to send requests elsewhere. */
  readonly leaving?: boolean;
  /**
   * Hands the request on to the replica whose mark ends this name. False: it is to be answered here, because the thing is held here,
   * or nowhere any more. For doors that find the name in the body, which they pass on as they read it.
   */
  handOn?(held: string, request: IncomingMessage, response: ServerResponse, body?: Uint8Array): Promise<boolean>;
}

/**
 * The link between replicas, as a port uses it. A replica that gets a request for a thing that another one holds hands the request on,
 * once, with the caller's own credentials.
 */
export interface InternalLink {
  readonly mark: string;
  /** False: nothing was read or answered, and the request is to be served here. */
  handOn(held: string, request: IncomingMessage, response: ServerResponse, body?: Uint8Array): Promise<boolean>;
}

/** One path of a door. The door sees the request's URL whole, as it was sent. */
export interface HttpRoute {
  /** `/acp` is this path alone, `/mcp/*` this path and every path below it. Of two routes that match, the longer one is asked. */
  readonly path: string;
  /** The methods that are served; absent: the door answers every method itself. */
  readonly methods?: readonly string[];
  /** Calls `next` for a request that is not the door's after all. */
  readonly handler?: HttpHandler;
  /** Takes WebSocket upgrades. Host and Origin are checked already; authentication is the door's task. */
  readonly upgrade?: UpgradeHandler;
  /**
   * For a path that another door owns. `first`: this door sees requests before the owner and passes on those it does not answer.
   * `last`: this door answers only where no owner does.
   */
  readonly shared?: 'first' | 'last';
  /**
   * A part that is opened anew before its predecessor is closed may claim its path again: the newest claim is asked first, and may pass
   * the request on to the one before.
   */
  readonly handsOver?: true;
  /** False: not named in the answer to a request that no door claims. */
  readonly listed?: false;
  /**
   * Where a request names the thing it is about. If the name has the mark of another replica, the request is handed on to it. A path that
   * ends in a mark needs no mention.
   */
  readonly names?: readonly NameLocation[];
}

export type NameLocation = { readonly header: string } | { readonly query: string };

/** The parts of an OpenAPI document that another document can include. */
export interface Described {
  readonly paths: Readonly<Record<string, unknown>>;
  readonly components: { readonly schemas?: Readonly<Record<string, unknown>>; readonly securitySchemes?: object };
}

export type HttpHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  next: (thrown?: unknown) => void,
) => void;

export type UpgradeHandler = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

/** The principal that holds this bearer token. An invalid or missing token is `unauthenticated`; there is no default principal. */
export type Authenticate = (bearer: string | undefined, at?: LoginSource) => Promise<Actor>;

export interface LoginSource {
  /** A credential limited to other doors is not valid at this one. Set where a door is mounted. */
  readonly door?: string;
  /** The remote address. Absent when no login takes place: an open connection is rechecked for whether its token is still valid. */
  readonly address?: string | undefined;
}
