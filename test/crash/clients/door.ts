/**
 * A client of the native HTTP door: writes with idempotency keys, reads, and event streams. Knows the wire and nothing
 * behind it. A connection that breaks off is `Gone`: nobody knows whether the write was taken.
 */
import type { JsonObject } from '../../../src/model/schema.ts';

export interface Door {
  write(path: string, key: string, body: JsonObject): Promise<Reply>;
  read(path: string): Promise<JsonObject>;
  /** Every item of a list, page by page. */
  list(path: string): Promise<JsonObject[]>;
  /** Hands over each event as it arrives, until the stream ends, breaks off or is not wanted any more. */
  follow(path: string, after: string | undefined, received: (frame: Frame) => void, signal: AbortSignal): Promise<void>;
}
export interface Reply {
  readonly status: number;
  readonly body: JsonObject;
}
export interface Frame {
  readonly id: string;
  readonly event: string;
  /** As it came. */
  readonly data: string;
}

export class Gone extends Error {}

/** A read that was answered, and not with what was asked for. */
export class Refused extends Error {
  readonly status: number;
  constructor(path: string, status: number, text = '') {
    super(`GET ${path} was answered with ${status}: ${text.slice(0, 500)}`);
    this.status = status;
  }
}

/** Longer than anything here should take, also on a busy machine. */
const TIMEOUT_MS = 20_000;

/** Work is given with the token that is printed, which approves none of it: answers are another principal's. */
export function httpDoor(url: string, token: string, approver: string): Door {
  const headers = {
    authorization: `Bearer ${token}`,
    'harn-agents-protocol-version': 'agents-protocol-2026-04-25',
  };

  async function ask(path: string, init: RequestInit): Promise<{ status: number; text: string }> {
    try {
      const response = await fetch(url + path, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) });
      return { status: response.status, text: await response.text() };
    } catch (cause) {
      throw new Gone(`${path}: the connection broke off`, { cause });
    }
  }

  async function read(path: string): Promise<JsonObject> {
    const { status, text } = await ask(path, { headers });
    if (status !== 200) throw new Refused(path, status, text);
    return JSON.parse(text) as JsonObject;
  }

  return {
    read,
    async write(path, key, body) {
      const { status, text } = await ask(path, {
        method: 'POST',
        headers: {
          ...headers,
          'content-type': 'application/json',
          'idempotency-key': key,
          ...(answers(path, body) && { authorization: `Bearer ${approver}` }),
        },
        body: JSON.stringify(body),
      });
      return { status, body: bodyOf(status, text) };
    },
    async list(path) {
      const all: JsonObject[] = [];
      let cursor: string | null = null;
      do {
        const page = await read(
          `${path}${path.includes('?') ? '&' : '?'}limit=200${cursor ? `&cursor=${cursor}` : ''}`,
        );
        all.push(...(page.data as JsonObject[]));
        const { has_more, next_cursor } = page.page as { has_more: boolean; next_cursor: string | null };
        cursor = has_more ? next_cursor : null;
      } while (cursor);
      return all;
    },
    async follow(path, after, received, signal) {
      try {
        const response = await fetch(url + path, {
          headers: { ...headers, ...(after && { 'last-event-id': after }) },
          signal,
        });
        if (response.status === 204) return;
        if (response.status !== 200) throw new Refused(path, response.status);
        let text = '';
        for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
          text += chunk;
          const frames = text.split('\n\n');
          text = frames.pop() ?? '';
          for (const frame of frames) if (!frame.startsWith(':')) received(readFrame(frame));
        }
      } catch (cause) {
        if (signal.aborted) return;
        if (cause instanceof TypeError) throw new Gone(`${path}: the stream broke off`, { cause });
        throw cause;
      }
    },
  };
}

/** What stands before the gateway may answer in its place, in its own words. */
function bodyOf(status: number, text: string): JsonObject {
  return status >= 500 && !text.startsWith('{') ? { text } : (JSON.parse(text) as JsonObject);
}

function readFrame(text: string): Frame {
  const fields = Object.fromEntries(text.split('\n').map((line) => splitOnce(line, ': ')));
  return { id: fields.id ?? '', event: fields.event ?? '', data: fields.data ?? '' };
}

function splitOnce(line: string, mark: string): [string, string] {
  const at = line.indexOf(mark);
  return at < 0 ? [line, ''] : [line.slice(0, at), line.slice(at + mark.length)];
}

function answers(path: string, body: JsonObject): boolean {
  return path.endsWith('/respond') || body.kind === 'tool_confirmation';
}
