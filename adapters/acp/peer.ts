/**
 * One end of a JSON-RPC connection over text messages: messages are handled in arrival order, requests to us run concurrently,
 * and responses are matched to their requests. It knows the protocol's envelope and cancellation, and no methods.
 */
import { judgeFrame } from '../../mappings/acp.ts';
import { anySignal, asFault, type Json, type JsonObject, type Logger } from '../../src/index.ts';
import { createPending } from '../../src/transport/json-rpc/pending-requests.ts';
import { rawIdOf } from '../../src/transport/json-rpc/raw-id.ts';
import { parseFrame } from './frame.ts';
import { objectOf } from './shapes.ts';
import { toWireError, type WireError } from './translate.ts';

/** The peer's error, as received. */
export class RpcError extends Error {
  readonly code: number;
  readonly data: Json | undefined;
  constructor({ code, message, data }: WireError) {
    super(message);
    this.name = 'RpcError';
    this.code = code;
    this.data = data;
  }
}

export interface Asked {
  readonly method: string;
  readonly params: JsonObject;
  /** Fires when the requester has canceled, or the connection is closed. */
  readonly signal: AbortSignal;
  /** Runs once the response has been sent. */
  afterwards(work: () => void): void;
}

export interface PeerOptions {
  send(text: string): Promise<void>;
  /** Returns the result, or throws a `Fault` or an `RpcError`. */
  request(asked: Asked): Promise<Json>;
  /** Awaited before the next message is read: this keeps the order and applies backpressure. */
  notification(method: string, params: JsonObject): Promise<void>;
  /** The peer's side of the protocol: the table says what it may send, and in which kind of frame. */
  readonly other: 'editor' | 'agent';
  readonly log: Logger;
  /** Whether malformed input is answered. Stray output of an agent is not a request. */
  readonly strict: boolean;
  /** The prefix of our request ids; the peer's own ids cannot look like it. */
  readonly prefix?: string;
}

export interface Peer {
  /** Resolves once the next message may be read. */
  receive(text: string): Promise<void>;
  /** Rejects with the peer's error, or when the connection is closed. Canceled on the wire when the signal fires. */
  request(method: string, params: JsonObject, signal?: AbortSignal): Promise<Json>;
  /** `beside`: members of the envelope that a transport adds. */
  notify(method: string, params: JsonObject, beside?: JsonObject): Promise<void>;
  /** Rejects all pending requests with this error, and aborts those of the peer. */
  cut(why: Error): void;
  readonly over: AbortSignal;
}

const NEVER = new AbortController().signal;
const MOST_AT_ONCE = 256;

export function createPeer(options: PeerOptions): Peer {
  const { log, strict, prefix = 'tb-' } = options;
  const pending = createPending();
  const running = new Map<string, AbortController>();
  const over = new AbortController();
  let count = 0;

  const send = async (message: JsonObject) => await options.send(JSON.stringify(message));
  const sendError = async (code: number, message: string) => {
    if (strict) await send({ jsonrpc: '2.0', id: null, error: { code, message } });
    else log.warn({ why: message }, 'a line of an agent is not of the protocol');
  };

  /** `id` is its raw JSON text. */
  async function answer(id: string, method: string, params: JsonObject): Promise<void> {
    const stop = new AbortController();
    const after: (() => void)[] = [];
    running.set(id, stop);
    let reply: string;
    try {
      const signal = anySignal([stop.signal, over.signal]);
      const result = await options.request({ method, params, signal, afterwards: (work) => after.push(work) });
      reply = `"result":${JSON.stringify(result ?? null)}`;
    } catch (thrown) {
      reply = `"error":${JSON.stringify(errorOf(thrown, method))}`;
    } finally {
      if (running.get(id) === stop) running.delete(id);
    }
    if (!over.signal.aborted) await options.send(`{"jsonrpc":"2.0","id":${id},${reply}}`);
    for (const work of after) work();
  }

  function errorOf(thrown: unknown, method: string): WireError {
    if (thrown instanceof RpcError) {
      const { code, message, data } = thrown;
      return { code, message, ...(data !== undefined && { data }) };
    }
    const fault = asFault(thrown);
    if (fault.kind === 'internal') log.error({ err: fault.cause ?? fault, method }, 'a call failed');
    return toWireError(fault);
  }

  return {
    over: over.signal,
    async receive(text) {
      const message = parseFrame(text);
      if (message === undefined) return await sendError(-32700, 'this is not JSON, or too much of it');
      const frame = objectOf(message);
      if (!frame) return await sendError(-32600, 'one JSON-RPC object at a time');
      const { method, id } = frame;
      if (typeof method !== 'string') {
        if (!('id' in frame) || !('result' in frame || 'error' in frame)) {
          return await sendError(-32600, 'neither a request nor an answer');
        }
        if (!pending.deliver(frame)) log.warn({}, 'a response arrived for an unknown request id');
        return;
      }
      const params = objectOf(frame.params) ?? {};
      const judged = judgeFrame(options.other, id === undefined ? 'notification' : 'request', method);
      if (id === undefined) {
        if (judged.handling === 'refuse') return await sendError(-32600, judged.reason);
        if (method === '$/cancel_request') {
          const { requestId } = params;
          running.get(JSON.stringify(requestId))?.abort();
          return;
        }
        try {
          await options.notification(method, params);
        } catch (cause) {
          log.warn({ err: cause, method }, 'a notification could not be dealt with');
        }
        return;
      }
      const named = id === null || typeof id === 'string' || typeof id === 'number';
      if (!named) return await sendError(-32600, 'an id is a string or a number');
      const raw = rawIdOf(text, id);
      if (judged.handling === 'refuse') {
        const error = { code: -32600, message: judged.reason };
        return await options.send(`{"jsonrpc":"2.0","id":${raw},"error":${JSON.stringify(error)}}`);
      }
      if (running.size >= MOST_AT_ONCE) {
        const error = { code: 1429, message: 'too many calls at once', data: { code: 'rate_limited' } };
        return await options.send(`{"jsonrpc":"2.0","id":${raw},"error":${JSON.stringify(error)}}`);
      }
      answer(raw, method, params).catch((cause) => log.warn({ err: cause, method }, 'no answer was sent'));
    },

    async request(method, params, signal = NEVER) {
      if (over.signal.aborted) throw over.signal.reason;
      count += 1;
      const id = `${prefix}${count}`;
      const reply = pending.wait(id, signal);
      reply.catch(() => {});
      try {
        await send({ jsonrpc: '2.0', id, method, params });
        const { result, error } = (await reply) as { result?: Json; error?: WireError };
        if (error !== undefined) throw new RpcError(soundError(error));
        return result ?? null;
      } catch (cause) {
        if (signal.aborted && !over.signal.aborted) {
          await send({ jsonrpc: '2.0', method: '$/cancel_request', params: { requestId: id } });
        }
        throw cause;
      }
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

function soundError(error: unknown): WireError {
  const { code, message, data } = objectOf(error) ?? {};
  return {
    code: typeof code === 'number' ? code : -32603,
    message: typeof message === 'string' ? message : 'an error without words',
    ...(data !== undefined && { data }),
  };
}
