/**
 * Checks the responses of a peer before the SDK reads them: size, JSON syntax, and no repeated keys. Other responses are
 * dropped: an SDK that takes the last of two equal keys would show an approver another act than the peer meant, and an SDK that
 * prints what it cannot read would let a peer write to our terminal.
 */
import { StreamResponse } from '@a2a-js/sdk';
import { Fault, isObject } from '../../../src/index.ts';
import { JSON_LIMITS, parseJson, parseJsonText } from '../../../src/transport/http/body.ts';
import { readWithin } from '../../../src/transport/outbound/remote.ts';
import { readSse } from '../../../src/transport/sse/read.ts';
import type { PeerSettings } from './config.ts';
import { PeerStatusError } from './faults.ts';

type Fetch = typeof fetch;

/** Files travel inside responses in base64, which is a third longer. */
const ROOM_FOR_FILES = 4 / 3;

export function soundFetch(inner: Fetch, { artifactLimit }: Pick<PeerSettings, 'artifactLimit'>): Fetch {
  const limit = Math.ceil(JSON_LIMITS.bytes + artifactLimit * ROOM_FOR_FILES);
  return async (input, init) => {
    const answer = await inner(input, init);
    const { status, statusText, body } = answer;
    const headers = new Headers(answer.headers);
    // The body that is passed on is already decompressed.
    headers.delete('content-encoding');
    headers.delete('content-length');
    if (!body) return answer;
    if (answer.ok && headers.get('content-type')?.startsWith('text/event-stream'))
      return new Response(soundEvents(body), { status, statusText, headers });
    const bytes = await readWithin(answer, limit).catch((cause) => {
      throw cause instanceof Fault ? unreadable(cause) : cause;
    });
    if (!answer.ok && !hasError(bytes)) throw new PeerStatusError(answer, new TextDecoder().decode(bytes));
    if (answer.ok && bytes.byteLength > 0) sound(() => parseJson(bytes));
    return new Response(new Uint8Array(bytes), { status, statusText, headers });
  };
}

/** The same events, each parsed once here; the stream breaks at the first event that is not valid JSON or has repeated keys. */
function soundEvents(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const events = readSse(body);
  const encoder = new TextEncoder();
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await events.next();
      if (done) return controller.close();
      const { event, data } = value;
      try {
        sound(() => {
          const said = parseJsonText(data);
          // Over HTTP+JSON an event has no envelope; the SDK prints an event that it cannot build, with its content.
          if (isBare(said)) StreamResponse.fromJSON(said);
        });
      } catch (cause) {
        events.return(undefined).catch(() => {});
        throw cause;
      }
      const lines = data.split('\n').map((line) => `data: ${line}\n`);
      controller.enqueue(encoder.encode(`event: ${event}\n${lines.join('')}\n`));
    },
    async cancel() {
      await events.return(undefined);
    },
  });
}

function isBare(said: unknown): boolean {
  return typeof said !== 'object' || said === null || !('jsonrpc' in said);
}

/** Both bindings have an object there; the SDK makes "an unexpected error" of anything else, and its status is lost. */
function hasError(bytes: Uint8Array): boolean {
  try {
    const said = parseJson(bytes);
    return isObject(said) && isObject(said.error);
  } catch {
    return false;
  }
}

function sound(read: () => unknown): void {
  try {
    read();
  } catch (cause) {
    throw unreadable(cause);
  }
}

/** The peer's failure, whatever the readers of our own doors call it. */
function unreadable(cause: unknown): Fault {
  const why = cause instanceof Fault ? cause.message : 'it is not of the protocol';
  return new Fault('upstream_unavailable', `the peer sent what cannot be read: ${why}`, { cause });
}
