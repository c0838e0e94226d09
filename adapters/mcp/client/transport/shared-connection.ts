/**
 * One connection that all requests share, as with a child process or a server of the oldest transport. Answers are matched by our
 * request ids, progress by our tokens. Frames that name no request go to the listener for the server as a whole.
 */

import { META } from '../../../../mappings/mcp.ts';
import { asText, Fault, type JsonObject } from '../../../../src/index.ts';
import { InFlightMap } from '../../../../src/transport/in-flight-map.ts';
import {
  type Frame,
  type FrameOutcome,
  isNotice,
  isResponse,
  metaOf,
  type Notice,
  notice,
  type Request,
} from '../../frames.ts';
import { unanswered } from '../unanswered.ts';
import type { Unasked, Wire } from './transport.ts';

export interface SharedConnection extends Pick<Wire, 'request' | 'notify' | 'respond'> {
  /** Handles a frame of the server. */
  take(frame: Frame): void;
  /** A frame could not be read. `head` is its beginning: the request it names there fails, or the only one that is pending. */
  unread(head: string, cause: Error): void;
  /** The connection has ended: all pending requests fail with this cause. */
  over(cause: Error): void;
}

interface Waiting {
  readonly received: (frame: Notice | Request) => void;
  settle(outcome: FrameOutcome): void;
  fail(cause: Error): void;
}

/** If `say` fails, the request fails with it. */
export function createSharedConnection(say: (frame: object) => Promise<void>, unasked: Unasked): SharedConnection {
  const waiting = new InFlightMap<string, Waiting>();
  let ended: Error | undefined;

  return {
    take(frame) {
      if (isResponse(frame)) {
        waiting.get(asText(frame.id))?.settle('error' in frame ? { error: frame.error } : { result: frame.result });
        return;
      }
      const owner = isNotice(frame) ? waiting.get(ownerOf(frame)) : undefined;
      if (owner) owner.received(frame);
      else unasked(frame);
    },
    unread(head, cause) {
      if (head === '') return;
      const id = /^\s*\{[^{}[\]]*"id"\s*:\s*"([^"\\]+)"/.exec(head)?.[1];
      const named = id === undefined ? undefined : waiting.get(id);
      const all = [...waiting.all()];
      (named ?? (all.length === 1 ? all[0] : undefined))?.fail(cause);
    },
    over(cause) {
      ended ??= cause;
      for (const each of waiting.all()) each.fail(unanswered(cause));
    },
    request(id, method, params, { signal, received }) {
      return new Promise<FrameOutcome>((resolve, reject) => {
        const done = () => {
          waiting.over(id);
          signal.removeEventListener('abort', giveUp);
        };
        const giveUp = () => {
          done();
          say(notice('notifications/cancelled', { requestId: id })).catch(() => {});
          reject(new Fault('client_closed', 'the request was given up'));
        };
        if (signal.aborted) return giveUp();
        signal.addEventListener('abort', giveUp, { once: true });
        const mine: Waiting = {
          received: received,
          settle(outcome) {
            done();
            resolve(outcome);
          },
          fail(cause) {
            done();
            reject(cause);
          },
        };
        waiting.begin(id, mine);
        if (ended) mine.fail(ended);
        else say({ jsonrpc: '2.0', id, method, ...(params && { params }) }).catch((cause) => mine.fail(cause));
      });
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
