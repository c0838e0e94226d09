/**
 * A connection over HTTP: messages arrive in separate requests, and our messages wait on streams to be read. A connection
 * belongs to its opener alone.
 */
import type { Actor, Bridge, Logger } from '../../../src/index.ts';
import type { SseStream } from '../../../src/transport/sse/write.ts';
import type { AcpSettings } from '../config.ts';
import { objectOf, textOf, within } from '../shapes.ts';
import { type ClientConnection, createConnection } from './connection.ts';
import { createOutboxes } from './outbox.ts';

export interface RemoteClient {
  readonly id: string;
  readonly owner: string;
  /** Handles one message of the client; resolves when the next may come. */
  post(text: string): Promise<void>;
  /** Handles the first message and returns its response. */
  greet(text: string): Promise<string>;
  read(sessionId: string | undefined, open: () => SseStream, after: number | undefined): void;
  /** The token it was last used with. */
  bearer: string | undefined;
  /** True when it has no reader and was unused for this long. */
  forgotten(now: number): boolean;
  close(): Promise<void>;
}

interface RemoteOptions {
  readonly id: string;
  readonly bridge: Bridge;
  readonly actor: Actor;
  readonly settings: AcpSettings;
  readonly log: Logger;
  /** Called when it ends by itself. */
  ended(): void;
}

const LIMITS = { unsent: 64 * 1024 * 1024, streams: 256 };

/** Tenants may have actors of the same id. */
export function ownerOf({ id, kind, tenant_id }: Actor): string {
  return JSON.stringify([tenant_id ?? null, kind, id]);
}

export function createRemote({ id, bridge, actor, settings, log, ended }: RemoteOptions): RemoteClient {
  const streams = createOutboxes(LIMITS, () => {
    log.warn({ connection: id }, 'a connection was closed: its client stopped reading');
    close().catch((cause) => log.warn({ err: cause }, 'a connection did not close well'));
  });
  /** Responses to calls that named a session go to the stream of its updates, because their order matters. */
  const routes = new Map<string, string>();
  let greeted: { key: string; answer(text: string): void } | undefined;
  let turn: Promise<void> = Promise.resolve();
  let spokenAt = performance.now();
  let closed = false;

  async function send(text: string): Promise<void> {
    if (closed) return;
    const frame = objectOf(JSON.parse(text)) ?? {};
    if (frame.method === undefined) {
      const key = JSON.stringify(frame.id);
      if (greeted?.key === key) {
        greeted.answer(text);
        greeted = undefined;
        return;
      }
      const route = routes.get(key) ?? '';
      routes.delete(key);
      return await streams.of(route).put(text);
    }
    await streams.of(textOf(within(frame, 'params', 'sessionId')) ?? '').put(text);
  }

  const connection: ClientConnection = createConnection({ bridge, actor, settings, log, send });

  async function close(): Promise<void> {
    if (closed) return;
    closed = true;
    ended();
    await connection.close(settings.onDisconnect ?? 'continue');
    streams.close();
  }

  function post(text: string): Promise<void> {
    spokenAt = performance.now();
    const { id: requestId, method, params } = objectOf(JSON.parse(text)) ?? {};
    const session = textOf(within(params, 'sessionId'));
    if (method !== undefined && requestId !== undefined && session) routes.set(JSON.stringify(requestId), session);
    // In arrival order, as on a socket.
    turn = turn.then(() => connection.receive(text));
    return turn;
  }

  return {
    id,
    owner: ownerOf(actor),
    bearer: undefined,
    post,
    greet(text) {
      const key = JSON.stringify(objectOf(JSON.parse(text))?.id);
      return new Promise((resolve, reject) => {
        greeted = { key, answer: resolve };
        post(text).catch(reject);
      });
    },
    read(sessionId, open, after) {
      spokenAt = performance.now();
      streams
        .of(sessionId ?? '')
        .attach(open, after)
        .signal.addEventListener('abort', () => {
          spokenAt = performance.now();
        });
    },
    forgotten: (now) => now - spokenAt > settings.lingerMs && !streams.read,
    close,
  };
}
