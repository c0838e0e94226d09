/**
 * The requests of one connection that are not yet answered. `json-rpc-2.0` matches responses to requests; beside it stand the
 * signal of each request, the error it fails with, and a note of its owner's. A response with an unknown id is not delivered.
 * The whole response is handed on as received, with members that JSON-RPC does not know. Ids are ours, so each is unique.
 */
import { JSONRPCClient, type JSONRPCRequest, type JSONRPCResponse } from 'json-rpc-2.0';
import type { JsonObject } from '../../model/schema.ts';

/** The signal of a request fired before its response came. */
export class RequestAbandoned extends Error {
  constructor() {
    super('no answer in time');
  }
}

export type OwnRequest = JsonObject & { readonly jsonrpc: '2.0'; readonly id: string; readonly method: string };

export interface PendingRequests<Note> {
  /** The whole response. Rejects with `RequestAbandoned`, with the error of sending, or with the cause of `fail`. */
  /** `onAbandon` is called in the moment the signal fires, so that the peer is notified before anything that follows. */
  request(
    message: OwnRequest,
    signal: AbortSignal | undefined,
    note: Note,
    onAbandon?: () => void,
  ): Promise<JsonObject>;
  /** True when a request was waiting for it. That request is not pending any more when this returns. */
  deliver(response: JsonObject): boolean;
  noteOf(id: string): Note | undefined;
  /** Rejects one request, or all of them. */
  fail(cause: Error, id?: string): void;
  readonly size: number;
  /** Oldest first. */
  ids(): readonly string[];
}

interface Entry<Note> {
  readonly note: Note;
  failure: Error | undefined;
}

/** Sending is not awaited: a peer that stops reading must not delay the signal. */
export function createPendingRequests<Note = undefined>(
  send: (message: OwnRequest) => Promise<unknown>,
): PendingRequests<Note> {
  const entries = new Map<string, Entry<Note>>();
  const client = new JSONRPCClient((message: OwnRequest) => {
    send(message).catch((cause) => failOne(message.id, cause));
  });

  function failOne(id: string, cause: Error): void {
    const entry = entries.get(id);
    if (!entry) return;
    entry.failure = cause;
    entries.delete(id);
    client.receive({ jsonrpc: '2.0', id, error: FAILED });
  }

  return {
    async request(message, signal, note, onAbandon) {
      if (signal?.aborted) {
        onAbandon?.();
        throw new RequestAbandoned();
      }
      const entry: Entry<Note> = { note, failure: undefined };
      entries.set(message.id, entry);
      const giveUp = () => {
        if (!entries.has(message.id)) return;
        onAbandon?.();
        failOne(message.id, new RequestAbandoned());
      };
      signal?.addEventListener('abort', giveUp, { once: true });
      const response = await client.requestAdvanced(message as JSONRPCRequest);
      signal?.removeEventListener('abort', giveUp);
      if (entry.failure) throw entry.failure;
      // A frame is handed on as it was parsed, whatever the types of the library say of it.
      return response as unknown as JsonObject;
    },
    deliver(response) {
      if (!entries.delete(response.id as string)) return false;
      // The library reads the id, and compares it; a frame may hold more than its types say.
      client.receive(response as unknown as JSONRPCResponse);
      return true;
    },
    noteOf: (id) => entries.get(id)?.note,
    fail(cause, id) {
      for (const each of id === undefined ? [...entries.keys()] : [id]) failOne(each, cause);
    },
    get size() {
      return entries.size;
    },
    ids: () => [...entries.keys()],
  };
}

/** Ends the wait in the library; the failure itself is in the entry. */
const FAILED = { code: 0, message: 'failed' };
