/**
 * One answer over HTTP: a JSON text when there is nothing to say before it, a stream as soon as there is, or as soon as it
 * takes longer than a connection likes to be silent.
 */
import type { ServerResponse } from 'node:http';
import { openSse, type SseStream, sseFrame } from '../../src/wire/sse.ts';
import { Stop, type StopSignal } from '../../src/wire/stop.ts';
import { answerTo, type Frame, type Id, type Outcome } from './frames.ts';

export interface Reply {
  send(frame: Frame): void;
  finish(id: Id, outcome: Outcome, status: number): void;
  /** Fires when whoever asked is gone. */
  readonly gone: StopSignal;
}

/** Longer than nearly every answer, and shorter than anyone's patience with silence. */
export const SILENCE_MS = 1000;

export function createReply(response: ServerResponse): Reply {
  const gone = new Stop();
  let stream: SseStream | undefined;
  let over = false;
  const timer = setTimeout(streaming, SILENCE_MS).unref();

  function streaming(): SseStream {
    clearTimeout(timer);
    if (!stream) {
      stream = openSse(response);
      // The headers alone do not keep anyone from giving up.
      stream.write(': working\n\n');
    }
    return stream;
  }

  response.once('close', () => {
    clearTimeout(timer);
    if (!over) gone.abort();
  });

  return {
    gone,
    send(frame) {
      if (!over && !response.destroyed) streaming().write(sseFrame({ event: 'message', data: JSON.stringify(frame) }));
    },
    finish(id, outcome, status) {
      over = true;
      clearTimeout(timer);
      if (response.destroyed) return;
      const text = JSON.stringify(answerTo(id, outcome));
      if (stream) stream.close(sseFrame({ event: 'message', data: text }));
      else writeJson(response, status, text);
    },
  };
}

export function writeJson(
  response: ServerResponse,
  status: number,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    ...headers,
    ...(!response.req.complete && { connection: 'close' }),
  });
  response.end(text);
}
