/**
 * The native door on a story's gateway, and someone outside who speaks to it over HTTP, event streams and sockets. A frame
 * is written down short where the whole of it is in the log: what was read is kept beside, to be held against the log.
 */
import { WebSocket } from 'ws';
import { settingsOf } from '../../../adapters/harn/config.ts';
import { harnDoor } from '../../../adapters/harn/server/door.ts';
import type { CoreEvent } from '../../../src/model/events.ts';
import type { Json, JsonObject } from '../../../src/model/schema.ts';
import type { Hear } from '../playing.ts';
import type { World } from '../world.ts';
import { openHttpDoor } from './http.ts';

export interface Outside {
  /** `{"method", "path", "headers"?, "body"?}`; the answer is received as `{"status", "body"}`. Nobody here waits long for one. */
  request(frame: JsonObject): Promise<void>;
  /** The same, for a stream: each event is received on the channel, and `{"end": true}` when it is over. */
  follow(frame: JsonObject, channel: string): Promise<void>;
  /** `{"open": path}` opens a socket, `{"hang_up": true}` closes it, anything else is a command and is answered. */
  socket(frame: JsonObject): Promise<void>;
  /** Stops reading. */
  hangUp(): void;
  /** Every event that was read, whole. */
  readonly read: readonly CoreEvent[];
  close(): Promise<void>;
}

const TOKEN = 'a-token-for-ana';
const HEADERS = { authorization: `Bearer ${TOKEN}`, 'harn-agents-protocol-version': 'agents-protocol-2026-04-25' };

export async function openOutside(world: World, hear: Hear): Promise<Outside> {
  const { url, close } = await openHttpDoor(world, TOKEN, (deps) => harnDoor(settingsOf({}), deps));
  const read: CoreEvent[] = [];
  const talking = new Set<Promise<void>>();
  let line = new AbortController();
  let peer: WebSocket | undefined;
  /** What someone waits for on the socket: the answer to a command, or that the past has been reported. */
  const pending = new Map<string, () => void>();
  const until = (what: string) => new Promise<void>((resolve) => pending.set(what, resolve));

  /** Said now, answered when it is answered. */
  function begin(talk: Promise<void>): void {
    talking.add(talk);
    talk.catch(() => {}).finally(() => talking.delete(talk));
  }

  async function ask({ method, path, headers, body }: JsonObject, signal?: AbortSignal): Promise<Response> {
    return await fetch(`${url}${path}`, {
      method: String(method),
      headers: {
        ...HEADERS,
        ...(headers as Record<string, string> | undefined),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
    });
  }

  async function answered(frame: JsonObject): Promise<void> {
    const response = await ask(frame);
    const text = await response.text();
    const type = response.headers.get('content-type') ?? '';
    const { status } = response;
    hear(type === 'application/json' ? { status, body: JSON.parse(text) as Json } : { status, type, text });
  }

  async function streamed(frame: JsonObject, channel: string, signal: AbortSignal): Promise<void> {
    const response = await ask(
      { ...frame, headers: { accept: 'text/event-stream', ...(frame.headers as object) } },
      signal,
    );
    let rest = '';
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      rest += chunk;
      const frames = rest.split('\n\n');
      rest = frames.pop() ?? '';
      for (const reported of frames) {
        if (reported.startsWith(':')) continue;
        const [id, event, data] = reported.split('\n').map((text) => text.slice(text.indexOf(': ') + 2));
        read.push(JSON.parse(data!) as CoreEvent);
        hear({ event: event!, id: id! }, { on: channel });
      }
    }
    hear({ end: true }, { on: channel });
  }

  function received(frame: JsonObject): void {
    const { type, event, ...more } = frame;
    const about = type === 'result' || type === 'error' ? frame.id : type;
    pending.get(String(about))?.();
    if (type === 'event') {
      const whole = event as unknown as CoreEvent;
      read.push(whole);
      hear({ type: 'event', event: whole.event, ...more }, { on: 'events' });
    } else {
      hear(frame, type === 'request' ? { on: 'questions' } : {});
    }
  }

  async function connect(path: string): Promise<void> {
    const socket = new WebSocket(`${url.replace(/^http/, 'ws')}${path}`, { headers: HEADERS });
    socket.on('message', (data) => received(JSON.parse(String(data)) as JsonObject));
    peer = socket;
    const caughtUp = until('caught_up');
    await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
    await caughtUp;
  }

  async function command(frame: JsonObject): Promise<void> {
    const answer = until(String(frame.id));
    peer?.send(JSON.stringify(frame));
    await answer;
  }

  async function disconnect(): Promise<void> {
    const socket = peer;
    peer = undefined;
    if (!socket || socket.readyState === WebSocket.CLOSED) return;
    await new Promise<void>((resolve) => {
      socket.once('close', () => resolve());
      socket.close();
    });
  }

  return {
    read,
    request: answered,
    async follow(frame, channel) {
      line = new AbortController();
      begin(streamed(frame, channel, line.signal));
    },
    async socket(frame) {
      if (typeof frame.open === 'string') await connect(frame.open);
      else if (frame.hang_up) await disconnect();
      else await command(frame);
    },
    hangUp: () => line.abort(),
    async close() {
      line.abort();
      await disconnect();
      await Promise.allSettled(talking);
      await close();
    },
  };
}
