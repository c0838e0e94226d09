/**
 * One end of a JSON-RPC connection over text messages: messages are handled in arrival order, requests to us run concurrently and
 * are answered under their raw ids, and responses are matched to our requests. It knows the envelope and cancellation; methods
 * and errors are the protocol's.
 */

import type { Json, JsonObject } from '../../model/schema.ts';
import { isObject } from '../../model/values/is-object.ts';
import { anySignal } from '../../model/values/signals.ts';
import type { Logger } from '../../ports/index.ts';
import {
  envelopeOf,
  errorText,
  NOT_A_MESSAGE,
  NOT_JSON,
  RpcError,
  resultText,
  soundError,
  type WireError,
} from './messages.ts';
import { createPendingRequests } from './pending-requests.ts';
import { rawIdOf, sameId } from './raw-id.ts';

export interface Asked {
  /** As raw JSON text. */
  readonly id: string;
  readonly method: string;
  readonly params: JsonObject;
  /** Fires when the requester has canceled, or the connection is closed. */
  readonly signal: AbortSignal;
  /** Runs once the response has been sent. */
  afterwards(work: () => void): void;
}

export interface PeerOptions {
  send(text: string): Promise<void>;
  /** Undefined when the text is not JSON, or exceeds the bounds. */
  parse(text: string): unknown;
  /** Why the other side may not send this message; undefined when it may. */
  refuses(kind: 'request' | 'notification', method: string): string | undefined;
  /** Returns the result; anything thrown becomes an error. */
  request(asked: Asked): Promise<Json>;
  /** Awaited before the next message is read: this keeps the order and applies backpressure. */
  notification(method: string, params: JsonObject): Promise<void>;
  errorOf(thrown: unknown, method: string): WireError;
  /** The notification that cancels a request; `requestId` names it. */
  readonly cancel: string;
  readonly log: Logger;
  /** Whether malformed input is answered. Stray output of a program is not a request. */
  readonly strict: boolean;
  /** The prefix of our request ids; the peer's own ids cannot look like it. */
  readonly prefix?: string;
}

export interface Peer {
  /** Resolves once the next message may be read; after a response, that is when its requester has the result. */
  receive(text: string): Promise<void>;
  /** Rejects with the peer's error, or when the connection is closed. Canceled on the wire when the signal fires. */
  request(method: string, params: JsonObject, signal?: AbortSignal): Promise<Json>;
  /** `beside`: members of the envelope that a transport adds. */
  notify(method: string, params: JsonObject, beside?: JsonObject): Promise<void>;
  /** Rejects all pending requests with this error, and aborts those of the peer. */
  cut(why: Error): void;
  readonly over: AbortSignal;
}

const MOST_AT_ONCE = 256;
const TOO_MANY: WireError = { code: 1429, message: 'too many calls at once', data: { code: 'rate_limited' } };

export function createPeer(options: PeerOptions): Peer {
  const { log, strict, prefix = 'tb-' } = options;
  const send = async (message: JsonObject) => await options.send(JSON.stringify(message));
  const pending = createPendingRequests<{ settled?: Promise<unknown> }>(send);
  /** Requests of the peer, by their ids. */
  const running = new Map<string, AbortController>();
  const over = new AbortController();
  let count = 0;

  async function sendError(code: number, message: string): Promise<void> {
    if (strict) await options.send(errorText('null', { code, message }));
    else log.warn({ why: message }, 'a line of an agent is not of the protocol');
  }

  /** `id` is its raw JSON text. */
  async function answer(id: string, method: string, params: JsonObject): Promise<void> {
    const stop = new AbortController();
    const after: (() => void)[] = [];
    const key = sameId(id);
    running.set(key, stop);
    let reply: string;
    try {
      const signal = anySignal([stop.signal, over.signal]);
      reply = resultText(
        id,
        await options.request({ id, method, params, signal, afterwards: (work) => after.push(work) }),
      );
    } catch (thrown) {
      reply = errorText(id, thrown instanceof RpcError ? thrown.toWire() : options.errorOf(thrown, method));
    } finally {
      if (running.get(key) === stop) running.delete(key);
    }
    if (!over.signal.aborted) await options.send(reply);
    for (const work of after) work();
  }

  async function notified(method: string, params: JsonObject): Promise<void> {
    if (method === options.cancel) {
      running.get(JSON.stringify(params.requestId))?.abort();
      return;
    }
    try {
      await options.notification(method, params);
    } catch (cause) {
      log.warn({ err: cause, method }, 'a notification could not be dealt with');
    }
  }

  async function answered(response: JsonObject): Promise<void> {
    const settled = pending.noteOf(response.id as string)?.settled;
    if (!pending.deliver(response)) log.warn({}, 'a response arrived for an unknown request id');
    // A notification behind the response may rely on what its requester does with it.
    await settled?.catch(() => {});
  }

  async function ask(method: string, params: JsonObject, signal: AbortSignal | undefined, note: object): Promise<Json> {
    if (over.signal.aborted) throw over.signal.reason;
    count += 1;
    const id = `${prefix}${count}`;
    try {
      const { result, error } = await pending.request({ jsonrpc: '2.0', id, method, params }, signal, note);
      if (error !== undefined) throw new RpcError(soundError(error));
      return result ?? null;
    } catch (cause) {
      if (signal?.aborted && !over.signal.aborted) {
        await send({ jsonrpc: '2.0', method: options.cancel, params: { requestId: id } });
      }
      throw cause;
    }
  }

  return {
    over: over.signal,
    async receive(text) {
      const message = options.parse(text);
      if (message === undefined) return await sendError(NOT_JSON, 'this is not JSON, or too much of it');
      if (!isObject(message)) return await sendError(NOT_A_MESSAGE, 'one JSON-RPC object at a time');
      const envelope = envelopeOf(message);
      if (envelope.kind === 'invalid') return await sendError(NOT_A_MESSAGE, envelope.reason);
      if (envelope.kind === 'response') return await answered(message);
      const { kind, method } = envelope;
      const refusal = options.refuses(kind, method);
      const params = isObject(message.params) ? message.params : {};
      if (kind === 'notification')
        return await (refusal ? sendError(NOT_A_MESSAGE, refusal) : notified(method, params));
      const id = rawIdOf(text, envelope.id);
      if (refusal) return await options.send(errorText(id, { code: NOT_A_MESSAGE, message: refusal }));
      if (running.size >= MOST_AT_ONCE) return await options.send(errorText(id, TOO_MANY));
      answer(id, method, params).catch((cause) => log.warn({ err: cause, method }, 'no answer was sent'));
    },

    request(method, params, signal) {
      const note: { settled?: Promise<unknown> } = {};
      const reply = ask(method, params, signal, note);
      note.settled = reply;
      return reply;
    },

    async notify(method, params, beside = {}) {
      if (!over.signal.aborted) await send({ jsonrpc: '2.0', method, params, ...beside });
    },

    cut(why) {
      if (over.signal.aborted) return;
      over.abort(why);
      pending.fail(why);
    },
  };
}
