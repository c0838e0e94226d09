/**
 * Hears of other stores' commits, on a connection of its own that is made anew when it breaks; and asks for the state from time to time,
 * because a notice can be lost: sent while nobody listened, or never sent by a store that died after its commit.
 */
import { createHash } from 'node:crypto';
import pg from 'pg';
import type { Target } from '../location.ts';
import { filledIn } from '../schema/migrations.ts';
import { type DatabaseClock, TIME } from './clock.ts';
import { type Connections, clientConfig, endClient, letExit } from './connections.ts';
import { SERVER, type Versions } from './versions.ts';

export interface Notices {
  /** Resolves once the state was asked for the first time. */
  readonly ready: Promise<void>;
  /** After a commit. One notice is under way at a time: the next one covers all commits since. */
  announce(generation: number): void;
  close(): Promise<void>;
}
export interface NoticesDeps {
  readonly connections: Connections;
  readonly versions: Versions;
  readonly clock: DatabaseClock;
  readonly target: Target;
  readonly schema: string;
  readonly writer: string;
}

const LISTENING_POLL_MS = 500;
const DEAF_POLL_MS = 50;
const RECONNECT_MS = 250;

export function createNotices({ connections, versions, clock, target, schema, writer }: NoticesDeps): Notices {
  const channel = `tollbridge_${createHash('sha256').update(schema).digest('hex').slice(0, 16)}`;
  const STATE = filledIn(`SELECT generation, writer, ${SERVER}, ${TIME} FROM $S.state`, schema);
  let client: pg.Client | undefined;
  let listening = false;
  let closed = false;
  let timer: NodeJS.Timeout | undefined;
  let reconnect: NodeJS.Timeout | undefined;
  let announced = 0;
  let wanted = 0;
  let announcing: Promise<void> | undefined;
  let polling: Promise<void> | undefined;

  function listen(): void {
    if (closed) return;
    const fresh = new pg.Client({ ...clientConfig(target), application_name: 'tollbridge notices' });
    client = fresh;
    const lost = (): void => {
      if (client !== fresh) return;
      client = undefined;
      listening = false;
      void endClient(fresh);
      if (closed) return;
      look();
      reconnect = setTimeout(listen, RECONNECT_MS).unref();
    };
    fresh.on('error', lost);
    fresh.on('end', lost);
    fresh.on('notification', ({ payload = '' }) => {
      const [generation, by = ''] = payload.split(' ');
      if (by !== writer) versions.seen(Number(generation), by);
    });
    fresh.connect().then(() => {
      letExit(fresh);
      fresh.query(`LISTEN ${channel}`).then(() => {
        listening = client === fresh;
        // What was announced before is read.
        look();
      }, lost);
    }, lost);
  }

  function look(): void {
    polling ??= poll().finally(() => {
      polling = undefined;
      clearTimeout(timer);
      if (!closed) timer = setTimeout(look, listening ? LISTENING_POLL_MS : DEAF_POLL_MS).unref();
    });
  }
  async function poll(): Promise<void> {
    try {
      const askedAt = Date.now();
      const [found] = await connections.query(STATE);
      if (!found) return;
      clock.seen(found[3] as number, askedAt, Date.now());
      versions.seen(found[0] as number, found[1] as string, found[2] as string);
    } catch {
      // A caller that reads or writes meets the error too.
    }
  }

  async function send(): Promise<void> {
    while (announced < wanted && !closed) {
      announced = wanted;
      // A lost notice is made up for by the others' polling.
      await connections.query('SELECT pg_notify($1, $2)', [channel, `${announced} ${writer}`]).catch(() => undefined);
    }
  }

  listen();
  look();
  return {
    ready: polling ?? Promise.resolve(),
    announce(generation) {
      wanted = Math.max(wanted, generation);
      announcing ??= send().finally(() => {
        announcing = undefined;
      });
    },
    async close() {
      closed = true;
      clearTimeout(timer);
      clearTimeout(reconnect);
      const last = client;
      client = undefined;
      await Promise.all([polling, announcing, last && endClient(last)]);
    },
  };
}
