/**
 * The answers the clients received, and the requests that were never answered. Lives outside the gateway and is never
 * corrected by it: whatever stands here as acknowledged has to be found after every crash.
 */
import type { JsonObject } from '../../../src/model/schema.ts';
import type { Frame } from './door.ts';

export type WriteKind =
  | 'persona'
  | 'session'
  | 'task'
  | 'message'
  | 'task-message'
  | 'answer'
  | 'cancel'
  | 'close'
  | 'replay';

/** One thing a client wants done. Retries are the same write: same key, same body. */
export interface Write {
  readonly kind: WriteKind;
  readonly path: string;
  readonly body: JsonObject;
  /** In the body as well, where the gateway keeps it: the log shows what it did with this write. */
  readonly nonce: string;
  /** What it is about: the question, the task. */
  readonly about?: string;
  /** How often it was sent. */
  sent: number;
  /** The answer that arrived. */
  reply?: { readonly status: number; readonly body: JsonObject };
  /** Nobody will send it again: it may or may not have happened. */
  abandoned?: boolean;
}

/** What one stream delivered, over any number of reconnects. */
export interface Received {
  readonly path: string;
  /** Which events belong to it, as `session_id`, `task_id` or `workspace_id` say. */
  readonly of: { readonly member: 'task_id' | 'session_id' | 'workspace_id'; readonly id: string };
  readonly frames: Frame[];
  /** Events before the first one it delivered are none of its business. */
  readonly fromNow: boolean;
  done: boolean;
}

export interface Ledger {
  readonly writes: Write[];
  readonly streams: Received[];
  /** States of tasks as a client was shown them. */
  readonly looks: { readonly task: string; readonly status: string }[];
  /** Questions a client was shown as open, with the time they expire. */
  readonly asks: Map<string, { readonly expires_at: string }>;
  want(write: Omit<Write, 'sent'>): Write;
  listen(received: Omit<Received, 'frames' | 'done'>): Received;
  /** Sent, and not answered yet. */
  unanswered(): Write[];
  accepted(kind: WriteKind): (Write & { reply: { body: JsonObject } })[];
}

export function createLedger(): Ledger {
  const writes: Write[] = [];
  const streams: Received[] = [];
  return {
    writes,
    streams,
    looks: [],
    asks: new Map(),
    want(write) {
      const wanted: Write = { ...write, sent: 0 };
      writes.push(wanted);
      return wanted;
    },
    listen(received) {
      const stream: Received = { ...received, frames: [], done: false };
      streams.push(stream);
      return stream;
    },
    unanswered: () => writes.filter(({ reply, abandoned }) => !reply && !abandoned),
    accepted: (kind) =>
      writes.filter((write) => write.kind === kind && isAccepted(write)) as ReturnType<Ledger['accepted']>,
  };
}

export function isAccepted({ reply }: Pick<Write, 'reply'>): boolean {
  return reply !== undefined && reply.status >= 200 && reply.status < 300;
}
