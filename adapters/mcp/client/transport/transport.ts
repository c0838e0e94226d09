/** The interface of a connection to one server: requests, the frames that arrive with them, and frames that belong to none. */
import type { JsonObject } from '../../../../src/index.ts';
import type { FrameOutcome, Id, Notice, Request } from '../../frames.ts';

export interface Sending {
  readonly signal: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
  /** Receives frames that arrive while this request is under way and belong to it. */
  received(frame: Notice | Request): void;
}

export interface Wire {
  /** The id is ours, and unique on this connection. */
  request(id: string, method: string, params: JsonObject | undefined, sending: Sending): Promise<FrameOutcome>;
  notify(notice: Notice): Promise<void>;
  /** Answers a request of the server. */
  respond(id: Id, outcome: FrameOutcome): Promise<void>;
  /** Settles when the connection is closed, by either side. */
  readonly gone: Promise<void>;
  close(): Promise<void>;
}

/** Receives frames that belong to no known request. */
export type Unasked = (frame: Notice | Request) => void;

/** A session of the legacy era has these once it is open. */
export interface Opened {
  revision: string | undefined;
}
