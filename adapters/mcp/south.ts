/** A way to one server, as whoever speaks over it sees it: requests, and what comes back with them and without them. */
import type { JsonObject } from '../../src/index.ts';
import type { StopSignal } from '../../src/wire/stop.ts';
import type { Id, Notice, Outcome, Request } from './frames.ts';

export interface Sending {
  readonly signal: StopSignal;
  readonly headers?: Readonly<Record<string, string>>;
  /** What comes while this request is under way and is known to belong to it. */
  heard(frame: Notice | Request): void;
}

export interface Wire {
  /** The id is ours, and nobody else's on this wire. */
  request(id: string, method: string, params: JsonObject | undefined, sending: Sending): Promise<Outcome>;
  notify(notice: Notice): Promise<void>;
  /** Answers a request of the server's. */
  respond(id: Id, outcome: Outcome): Promise<void>;
  /** Settles when the wire is cut, whoever cut it. */
  readonly gone: Promise<void>;
  close(): Promise<void>;
}

/** What comes and belongs to no request that could be named. */
export type Unasked = (frame: Notice | Request) => void;

/** A session of the legacy era has these once it is open. */
export interface Opened {
  revision: string | undefined;
}
