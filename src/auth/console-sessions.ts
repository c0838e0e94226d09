/**
 * Sign-ins of the console: one-time codes and browser sessions, in one private file that only holds hashes. A session has two
 * secrets: one in an HttpOnly cookie, one that the page keeps in storage of its own origin. A browser sends a host's cookies to every
 * port of that host; without the second secret a cookie that another port received is worth nothing.
 */
import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Actor } from '../model/actions.ts';
import { Fault } from '../model/faults.ts';
import { Id, NonEmpty, Timestamp } from '../model/schema.ts';
import { type Static, Type } from '../model/type.ts';
import { check } from '../model/validate.ts';
import type { Clock, PrivateFiles } from '../ports/index.ts';
import { filesIn } from './private-file.ts';

const Optional = Type.Optional;
const Hash = Type.Unsafe<string>({ type: 'string', pattern: '^[0-9a-f]{64}$' });

const SessionRecord = Type.Object({
  id: Id,
  cookie_hash: Hash,
  proof_hash: Hash,
  /** The Host header it was opened under; a session is not valid under another one. */
  host: NonEmpty,
  how: Type.Unsafe<'link' | 'key' | 'oauth'>({ type: 'string', enum: ['link', 'key', 'oauth'] }),
  actor: Type.Object({
    id: NonEmpty,
    kind: Type.Unsafe<'person' | 'service'>({ type: 'string', enum: ['person', 'service'] }),
    tenant_id: Optional(NonEmpty),
    workspaces: Optional(Type.Array(Id)),
    scopes: Type.Array(NonEmpty),
    agents: Optional(Type.Array(NonEmpty)),
  }),
  /** The API key it was opened with: the session ends when the key does. */
  key_id: Optional(NonEmpty),
  created_at: Timestamp,
  expires_at: Timestamp,
});
type SessionRecord = Static<typeof SessionRecord>;

const SessionFile = Type.Object({
  format: Type.Literal('tollbridge-console-sessions-1'),
  codes: Type.Array(Type.Object({ hash: Hash, expires_at: Timestamp })),
  sessions: Type.Array(SessionRecord),
});
type SessionFile = Static<typeof SessionFile>;

type ConsoleSession = Omit<SessionRecord, 'cookie_hash' | 'proof_hash'>;

export interface NewConsoleSession {
  readonly host: string;
  readonly how: SessionRecord['how'];
  readonly actor: SessionRecord['actor'];
  readonly key_id?: string;
  /** An earlier end than the usual one. */
  readonly expires_at?: string;
}

export interface ConsoleSessions {
  /** A code that opens one session, within ten minutes. Shown once. */
  createCode(): Promise<string>;
  /** True for a valid code, which is used up by this call. */
  useCode(code: string): Promise<boolean>;
  /** Both secrets are in this answer and nowhere else. */
  open(wanted: NewConsoleSession): Promise<{ cookie: string; proof: string; session: ConsoleSession }>;
  /** The session that both secrets belong to; undefined when it has ended or never was. */
  find(cookie: string, proof: string, host: string | undefined): Promise<ConsoleSession | undefined>;
  /** The actor of a session token, which is made of both secrets. */
  actor(token: string): Promise<Actor | undefined>;
  list(): Promise<readonly ConsoleSession[]>;
  /** Ends one session, or all of them; returns how many it ended. */
  end(id?: string): Promise<number>;
}

export const CONSOLE_SESSIONS = 'auth/console-sessions.json';
const CODE_MS = 10 * 60_000;
const SESSION_MS = 12 * 3_600_000;
const EMPTY: SessionFile = { format: 'tollbridge-console-sessions-1', codes: [], sessions: [] };
const COOKIE = /^([0-9a-f]{16})\.[A-Za-z0-9_-]{43}$/;
const PROOF = /^[A-Za-z0-9_-]{43}$/;
const TOKEN = /^tbc\.([0-9a-f]{16}\.[A-Za-z0-9_-]{43})\.([A-Za-z0-9_-]{43})$/;
const NO_HASH = '0'.repeat(64);
/** The doors that a session is valid at: the console is a client of the native door. */
const DOORS = ['harn', 'console'];

export function consoleToken(cookie: string, proof: string): string {
  return `tbc.${cookie}.${proof}`;
}

export function isConsoleToken(bearer: string): boolean {
  return TOKEN.test(bearer);
}

export interface ConsoleSessionsOptions {
  /** The data directory, or files that several gateways share. */
  readonly files: string | PrivateFiles;
  readonly clock: Clock;
  /** The actor of an API key that is still active. */
  readonly keyActor: (id: string) => Promise<Actor | undefined>;
}

export function openConsoleSessions({ files: where, clock, keyActor }: ConsoleSessionsOptions): ConsoleSessions {
  const files = filesIn(where);
  const path = files.nameOf(CONSOLE_SESSIONS);
  let held: { readonly version: string; readonly byId: ReadonlyMap<string, SessionRecord> } | undefined;

  async function read(): Promise<SessionFile> {
    const text = await files.read(CONSOLE_SESSIONS);
    return text === undefined ? EMPTY : parse(text, path);
  }

  /** Another process may have ended sessions: each use compares the file's version. */
  async function current(): Promise<ReadonlyMap<string, SessionRecord>> {
    const version = await files.fresh(CONSOLE_SESSIONS);
    if (held?.version === version) return held.byId;
    const { sessions } = await read();
    held = { version, byId: new Map(sessions.map((session) => [session.id, session])) };
    return held.byId;
  }

  async function change(next: (file: SessionFile) => SessionFile): Promise<void> {
    await files.replace(CONSOLE_SESSIONS, (text) => {
      const file = next(text === undefined ? EMPTY : parse(text, path));
      const now = clock.now();
      const live = <T extends { readonly expires_at: string }>(all: readonly T[]) =>
        all.filter((one) => !over(one, now));
      return `${JSON.stringify({ ...file, codes: live(file.codes), sessions: live(file.sessions) }, null, 2)}\n`;
    });
  }

  async function record(cookie: string, proof: string): Promise<SessionRecord | undefined> {
    const id = COOKIE.exec(cookie)?.[1];
    if (!id || !PROOF.test(proof)) return undefined;
    const found = (await current()).get(id);
    // Both are compared in any case, so that a wrong half is not told apart from two.
    const both = [matches(cookie, found?.cookie_hash ?? NO_HASH), matches(proof, found?.proof_hash ?? NO_HASH)];
    if (!found || both.includes(false) || over(found, clock.now())) return undefined;
    if (!found.key_id) return found;
    const actor = await keyActor(found.key_id);
    return actor && actor.kind !== 'agent' && actor.kind !== 'system' ? found : undefined;
  }

  return {
    async createCode() {
      const code = randomBytes(24).toString('base64url');
      const expires_at = after(clock.now(), CODE_MS);
      await change((file) => ({ ...file, codes: [...file.codes, { hash: sha256(code), expires_at }] }));
      return code;
    },
    async useCode(code) {
      const wanted = sha256(code);
      let used = false;
      await change((file) => {
        const now = clock.now();
        used = file.codes.some((one) => one.hash === wanted && !over(one, now));
        return { ...file, codes: file.codes.filter((one) => one.hash !== wanted) };
      });
      return used;
    },
    async open({ host, how, actor, key_id, expires_at }) {
      const id = randomBytes(8).toString('hex');
      const cookie = `${id}.${randomBytes(32).toString('base64url')}`;
      const proof = randomBytes(32).toString('base64url');
      const now = clock.now();
      const usual = after(now, SESSION_MS);
      const made: SessionRecord = {
        id,
        cookie_hash: sha256(cookie),
        proof_hash: sha256(proof),
        host,
        how,
        // A link names nobody: people who open one each are told apart by their session, so that the log says whose answer counted.
        actor: how === 'link' ? { ...actor, id: `${actor.id}:${id}` } : actor,
        ...(key_id && { key_id }),
        created_at: now,
        expires_at: expires_at && expires_at < usual ? expires_at : usual,
      };
      check(SessionRecord, made, 'the session');
      await change((file) => ({ ...file, sessions: [...file.sessions, made] }));
      return { cookie, proof, session: shown(made) };
    },
    async find(cookie, proof, host) {
      const found = await record(cookie, proof);
      return found && found.host === host ? shown(found) : undefined;
    },
    async actor(token) {
      const [, cookie = '', proof = ''] = TOKEN.exec(token) ?? [];
      const found = await record(cookie, proof);
      return found && { ...found.actor, doors: DOORS };
    },
    async list() {
      const now = clock.now();
      return (await read()).sessions.filter((session) => !over(session, now)).map(shown);
    },
    async end(id) {
      let ended = 0;
      await change((file) => {
        const left = file.sessions.filter((session) => id !== undefined && session.id !== id);
        ended = file.sessions.length - left.length;
        return { ...file, sessions: left };
      });
      return ended;
    },
  };
}

function parse(text: string, path: string): SessionFile {
  try {
    return check(SessionFile, JSON.parse(text), 'the file');
  } catch (cause) {
    // An unreadable file signs in no one, and is never overwritten.
    throw new Fault('unavailable', `the file of console sessions ${path} cannot be read`, { cause });
  }
}

function shown({ cookie_hash: _, proof_hash: __, ...session }: SessionRecord): ConsoleSession {
  return session;
}

function over({ expires_at }: { readonly expires_at: string }, now: string): boolean {
  return Date.parse(expires_at) <= Date.parse(now);
}

function after(now: string, ms: number): string {
  return new Date(Date.parse(now) + ms).toISOString();
}

function sha256(text: string): string {
  return hash('sha256', text);
}

function matches(secret: string, kept: string): boolean {
  return timingSafeEqual(Buffer.from(sha256(secret), 'hex'), Buffer.from(kept, 'hex'));
}
