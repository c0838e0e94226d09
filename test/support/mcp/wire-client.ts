/**
 * A client of MCP that changes nothing of what it hears: one HTTP exchange at a time, with every frame, the status and the kind
 * of answer kept as they came. Answers what a server asks from a list, so that the same script can be played to anyone.
 */
import { type IncomingMessage, request } from 'node:http';
import { readSse } from '../../../src/transport/sse/read.ts';
import type { Loose } from './fixture/asking.ts';

export interface Received {
  readonly status: number;
  readonly type: string;
  readonly frames: readonly Loose[];
  readonly headers: Readonly<Record<string, string>>;
}
export interface Exchange {
  readonly method?: 'POST' | 'GET' | 'DELETE';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Loose | string;
  /** Each frame of a stream as it comes; true ends the exchange from our side. */
  frame?(frame: Loose): boolean | undefined | Promise<boolean | undefined>;
  /** Called when the headers of the answer have come. */
  begun?(): void;
  /** Hangs up. */
  readonly signal?: AbortSignal;
}

/** Settles when the answer is whole, or when a frame was the last one wanted. */
export function exchange(
  url: string,
  { method = 'POST', headers = {}, body, frame, begun, signal }: Exchange,
): Promise<Received> {
  const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const sent = request(url, {
      method,
      agent: false,
      ...(signal && { signal }),
      headers: {
        accept: 'application/json, text/event-stream',
        ...(text !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
    });
    sent.once('error', reject);
    sent.once('response', (response) => {
      begun?.();
      read(response, frame).then((frames) => {
        sent.destroy();
        const type = String(response.headers['content-type'] ?? '').split(';')[0] as string;
        const kept = response.headers as Record<string, string>;
        resolve({ status: response.statusCode ?? 0, type, frames, headers: kept });
      }, reject);
    });
    sent.end(text);
  });
}

async function read(response: IncomingMessage, frame: Exchange['frame']): Promise<readonly Loose[]> {
  const frames: Loose[] = [];
  if (!response.headers['content-type']?.startsWith('text/event-stream')) {
    let text = '';
    for await (const chunk of response.setEncoding('utf8')) text += chunk;
    return text === '' ? [] : [parsed(text)];
  }
  for await (const { data } of readSse(response)) {
    // A server may begin a stream with an event that says nothing, to give it an id.
    if (data === '') continue;
    const came = parsed(data);
    frames.push(came);
    if (await frame?.(came)) break;
  }
  return frames;
}

function parsed(text: string): Loose {
  try {
    return JSON.parse(text);
  } catch {
    return { text };
  }
}
