/**
 * Clients attached to live sessions: watchers and controllers. This is presence, not history: it lasts as long as the process, and
 * a client that falls silent is removed. The routes record attachments in the log. A client id belongs to the principal that
 * attached it; for every other principal it is taken.
 */
import { MODES } from '../../../mappings/harn-2026-10-11.ts';
import { type Actor, type Clock, Fault, type JsonObject } from '../../../src/index.ts';
import type { Revision } from '../revisions/revisions.ts';
import type { NewerWire } from '../revisions/schemas-2026-10-11.ts';

export type LiveClient = NewerWire<'LiveSessionClient'>;
export type LiveChange = NewerWire<'LiveSessionClientChange'>;

export interface Attachment {
  readonly client_id: string;
  readonly mode: 'observer' | 'controller';
  readonly takeover: boolean;
  readonly prompt_injection: boolean;
  readonly permission_routing: boolean;
  readonly metadata: JsonObject;
}

export interface LiveClients {
  list(sessionId: string): readonly LiveClient[];
  controller(sessionId: string): string | null;
  /** Why this client may not attach; undefined when it may. Changes nothing. */
  objection(sessionId: string, actor: Actor, attachment: Attachment): Fault | undefined;
  attach(sessionId: string, actor: Actor, attachment: Attachment): LiveChange;
  detach(sessionId: string, actor: Actor, clientId: string): LiveChange;
  heartbeat(sessionId: string, actor: Actor, clientId: string, metadata?: JsonObject): LiveChange;
}

interface Kept {
  client: LiveClient;
  readonly owner: string;
  seenMs: number;
}

interface Room {
  readonly clients: Map<string, Kept>;
  controller: string | null;
}

/** A client that has been silent for this long is removed. */
const SILENT_MS = 10 * 60_000;
/** More than people open; fewer than a faulty loop would. */
const MOST_CLIENTS = 64;

export function createLiveClients(clock: Clock, silentMs = SILENT_MS): LiveClients {
  const rooms = new Map<string, Room>();

  /** The current clients of a session: silent ones are removed, and so is a room without clients. */
  function roomOf(sessionId: string): Room {
    const room = rooms.get(sessionId) ?? { clients: new Map(), controller: null };
    const now = Date.parse(clock.now());
    for (const [id, { seenMs }] of room.clients) if (now - seenMs > silentMs) leave(room, id);
    if (room.clients.size === 0) rooms.delete(sessionId);
    return room;
  }

  function leave(room: Room, clientId: string): void {
    room.clients.delete(clientId);
    if (room.controller === clientId) room.controller = null;
  }

  function mine(room: Room, actor: Actor, clientId: string): Kept {
    const kept = room.clients.get(clientId);
    if (!kept || kept.owner !== actor.id) throw new Fault('not_found', `no live client ${clientId}`);
    return kept;
  }

  function keep(room: Room, owner: string, client: LiveClient): void {
    room.clients.set(client.client_id, { client, owner, seenMs: Date.parse(client.last_seen_at) });
  }

  function change(room: Room, client: LiveClient | null, before: string | null): LiveChange {
    return {
      client,
      previous_controller_id: before,
      active_controller_id: room.controller,
      clients: [...room.clients.values()].map((kept) => kept.client),
    };
  }

  function whyNot(room: Room, actor: Actor, wanted: Attachment): Fault | undefined {
    const { client_id, mode, takeover, prompt_injection, permission_routing } = wanted;
    const known = room.clients.get(client_id);
    if (known && known.owner !== actor.id) return new Fault('conflict', `the name ${client_id} is taken`);
    if (!known && room.clients.size >= MOST_CLIENTS) {
      return new Fault('rate_limited', `at most ${MOST_CLIENTS} clients attach to one session`);
    }
    if (mode === 'observer' && (prompt_injection || permission_routing)) {
      return new Fault('invalid_request', 'an observer neither prompts nor is asked', { param: 'mode' });
    }
    const { controller } = room;
    if (mode === 'controller' && controller !== null && controller !== client_id && !takeover) {
      return new Fault('conflict', `${controller} controls this session; ask for a takeover`);
    }
    return undefined;
  }

  return {
    list: (sessionId) => [...roomOf(sessionId).clients.values()].map(({ client }) => client),
    controller: (sessionId) => roomOf(sessionId).controller,
    objection: (sessionId, actor, attachment) => whyNot(roomOf(sessionId), actor, attachment),

    attach(sessionId, actor, attachment) {
      const room = roomOf(sessionId);
      const objection = whyNot(room, actor, attachment);
      if (objection) throw objection;
      const { client_id, mode, takeover: _, ...rest } = attachment;
      const now = clock.now();
      const before = room.controller;
      if (mode === 'controller') {
        const previous = before !== null && before !== client_id ? room.clients.get(before) : undefined;
        if (previous) {
          previous.client = {
            ...previous.client,
            mode: 'observer',
            prompt_injection: false,
            permission_routing: false,
          };
        }
        room.controller = client_id;
      } else if (before === client_id) {
        room.controller = null;
      }
      const attached_at = room.clients.get(client_id)?.client.attached_at ?? now;
      const client: LiveClient = { client_id, mode, ...rest, attached_at, last_seen_at: now };
      keep(room, actor.id, client);
      rooms.set(sessionId, room);
      return change(room, client, before);
    },

    detach(sessionId, actor, clientId) {
      const room = roomOf(sessionId);
      mine(room, actor, clientId);
      const before = room.controller;
      leave(room, clientId);
      if (room.clients.size === 0) rooms.delete(sessionId);
      return change(room, null, before);
    },

    heartbeat(sessionId, actor, clientId, metadata) {
      const room = roomOf(sessionId);
      const { client, owner } = mine(room, actor, clientId);
      const now: LiveClient = { ...client, last_seen_at: clock.now(), ...(metadata && { metadata }) };
      keep(room, owner, now);
      return change(room, now, room.controller);
    },
  };
}

interface Shown {
  readonly object?: string;
  readonly id?: string;
  readonly data?: unknown;
  readonly session?: unknown;
  readonly autonomy_tier?: string;
}

/** Sessions in an answer, with the members that this revision shows of them. */
export function withLiveMembers(live: LiveClients, { sessionMembers }: Revision, body: unknown): unknown {
  if (sessionMembers.length === 0 || typeof body !== 'object' || body === null) return body;
  const { object, id, data, session, autonomy_tier } = body as Shown;
  if (object === 'session' && typeof id === 'string') {
    const mode_id = MODES.find(({ core }) => core === autonomy_tier)?.wire;
    const members = { live_clients: live.list(id), live_controller_id: live.controller(id), mode_id };
    const shown = Object.entries(members).filter(
      ([name, value]) => sessionMembers.includes(name) && value !== undefined,
    );
    return { ...body, ...Object.fromEntries(shown) };
  }
  const inside = (value: unknown) => withLiveMembers(live, { sessionMembers } as Revision, value);
  if (object === 'list' && Array.isArray(data)) return { ...body, data: data.map(inside) };
  return object === 'session.truncate_result' ? { ...body, session: inside(session) } : body;
}
