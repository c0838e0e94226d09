/**
 * One answer over HTTP: a JSON body when nothing has to be sent before it; a stream as soon as something has, or when the answer
 * takes longer than `silenceMs`, so that the connection is not silent.
 */
import type { ServerResponse } from 'node:http';
import { Stop, type StopSignal } from '../../../../src/transport/light-abort-signal.ts';
import { openSse, type SseStream, sseFrame } from '../../../../src/transport/sse/write.ts';
import { answerTo, type Frame, type FrameOutcome, type Id } from '../../frames.ts';

export interface Reply {
  send(frame: Frame): void;
  finish(id: Id, outcome: FrameOutcome, status: number): void;
  /** Fires when the client has disconnected. */
  readonly gone: StopSignal;
}

export function createReply(response: ServerResponse, silenceMs: number): Reply {
  const gone = new Stop();
  let stream: SseStream | undefined;
  let over = false;
  const timer = setTimeout(streaming, silenceMs).unref();

  function streaming(): SseStream {
    clearTimeout(timer);
    if (!stream) {
      stream = openSse(response);
      // Headers alone do not keep a client from timing out.
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
