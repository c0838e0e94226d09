/**
 * One connection that all requests share, as with a child process or a server of the oldest transport. Answers are matched by our
 * request ids, progress by our tokens. Frames that name no request go to the listener for the server as a whole.
 */

import { META } from '../../../../mappings/mcp.ts';
import { asText, Fault, type JsonObject } from '../../../../src/index.ts';
import type { WireError } from '../../../../src/transport/json-rpc/messages.ts';
import { createPendingRequests, RequestAbandoned } from '../../../../src/transport/json-rpc/pending-requests.ts';
import { type Frame, isNotice, isResponse, metaOf, type Notice, notice } from '../../frames.ts';
import { unanswered } from '../unanswered.ts';
import type { Sending, Unasked, Wire } from './transport.ts';

export interface SharedConnection extends Pick<Wire, 'request' | 'notify' | 'respond'> {
  /** Handles a frame of the server. */
  take(frame: Frame): void;
  /** A frame could not be read. `head` is its beginning: the request it names there fails, or the only one that is pending. */
  unread(head: string, cause: Error): void;
  /** The connection has ended: all pending requests fail with this cause. */
  over(cause: Error): void;
}

/** If `say` fails, the request fails with it. */
export function createSharedConnection(say: (frame: object) => Promise<void>, unasked: Unasked): SharedConnection {
  /** The note of a request receives the notifications that belong to it. */
  const pending = createPendingRequests<Sending['received']>(say);
  let ended: Error | undefined;

  return {
    take(frame) {
      if (isResponse(frame)) {
        // A frame is an object of JSON.
        pending.deliver(frame as unknown as JsonObject);
        return;
      }
      const received = isNotice(frame) ? pending.noteOf(ownerOf(frame)) : undefined;
      if (received) received(frame);
      else unasked(frame);
    },
    unread(head, cause) {
      if (head === '') return;
      const id = /^\s*\{[^{}[\]]*"id"\s*:\s*"([^"\\]+)"/.exec(head)?.[1];
      const ids = pending.ids();
      const named = id !== undefined && pending.noteOf(id) ? id : ids.length === 1 ? ids[0] : undefined;
      if (named !== undefined) pending.fail(cause, named);
    },
    over(cause) {
      ended ??= cause;
      pending.fail(unanswered(cause));
    },
    async request(id, method, params, { signal, received }) {
      if (ended) throw ended;
      try {
        const answer = await pending.request(
          { jsonrpc: '2.0', id, method, ...(params && { params }) },
          signal,
          received,
          () => say(notice('notifications/cancelled', { requestId: id })).catch(() => {}),
        );
        // What a server calls an error is handed on as it came.
        return 'error' in answer
          ? { error: answer.error as unknown as WireError }
          : { result: answer.result as JsonObject };
      } catch (cause) {
        if (!(cause instanceof RequestAbandoned)) throw cause;
        throw new Fault('client_closed', 'the request was given up');
      }
    },
    notify: say,
    respond: (id, outcome) => say({ jsonrpc: '2.0', id, ...outcome }),
  };
}

/** The request a notification names: by its subscription, or by its progress. Both are ids of ours. */
function ownerOf({ method, params }: Notice): string {
  const subscription = metaOf(params as JsonObject | undefined)[META.subscription];
  if (subscription !== undefined) return asText(subscription);
  return method === 'notifications/progress' ? asText(params?.progressToken ?? '') : '';
}
