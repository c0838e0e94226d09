/**
 * API keys: made here, shown once, kept only as a hash. Each speaks for one actor and carries that actor's scopes,
 * doors and expiry. The file is private to its owner; a reader of the file still cannot use a key.
 * A key is 256 random bits, so one SHA-256 is enough at rest: there is nothing to guess, and a slow hash would only let
 * unauthenticated callers slow the gateway down.
 */
import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Actor } from '../model/actions.ts';
import { Fault } from '../model/faults.ts';
import { Id, MaybeTime, NonEmpty, Timestamp } from '../model/schema.ts';
import { type Static, Type } from '../model/type.ts';
import { check } from '../model/validate.ts';
import type { Clock, PrivateFiles } from '../ports/index.ts';
import { isReserved } from './principals.ts';
import { filesIn } from './private-file.ts';

const Optional = Type.Optional;

const KeyRecord = Type.Object({
  id: Id,
  name: Type.String(),
  /** SHA-256 of the whole key, hex. */
  hash: Type.Unsafe<string>({ type: 'string', pattern: '^[0-9a-f]{64}$' }),
  actor: Type.Object({
    id: NonEmpty,
    kind: Type.Unsafe<'person' | 'service' | 'agent'>({ type: 'string', enum: ['person', 'service', 'agent'] }),
    tenant_id: Optional(NonEmpty),
    workspaces: Optional(Type.Array(Id)),
    scopes: Type.Array(NonEmpty),
    /** Absent: every door, as for keys made before this member existed. */
    doors: Optional(Type.Array(NonEmpty)),
    /** Absent: every agent. */
    agents: Optional(Type.Array(NonEmpty)),
  }),
  /** The preset it was made from, shown in lists of keys. */
  preset: Optional(NonEmpty),
  created_at: Timestamp,
  expires_at: MaybeTime,
  revoked_at: MaybeTime,
});
type KeyRecord = Static<typeof KeyRecord>;

const KeyFile = Type.Object({ format: Type.Literal('tollbridge-api-keys-1'), keys: Type.Array(KeyRecord) });
type KeyFile = Static<typeof KeyFile>;

/** The part of a record that lists of keys show. */
export type ApiKey = Omit<KeyRecord, 'hash'> & { readonly state: 'active' | 'expired' | 'revoked' };

export interface NewApiKey {
  readonly name: string;
  readonly actor: KeyRecord['actor'];
  readonly preset?: string;
  readonly expires_at?: string;
}

export interface ApiKeys {
  /** The key itself is in this answer and nowhere else, ever. */
  create(wanted: NewApiKey): Promise<{ readonly key: string; readonly record: ApiKey }>;
  list(): Promise<readonly ApiKey[]>;
  revoke(id: string): Promise<ApiKey>;
  /**
   * The actor this key speaks for; undefined when the key is unknown. A revoked or expired key is a fault that says so.
   */
  actor(key: string): Promise<Actor | undefined>;
  /** The actor of the key with this id while the key is active. */
  activeActor(id: string): Promise<Actor | undefined>;
}

export interface ApiKeysOptions {
  readonly files: PrivateFiles;
  readonly clock: Clock;
  readonly random: (bytes: number) => Uint8Array;
}

/** `tbk_<id>_<secret>`: the id finds the record, the whole text is what is hashed. */
const KEY = /^tbk_([0-9a-f]{16})_[A-Za-z0-9_-]{43}$/;
const NO_HASH = '0'.repeat(64);
const EMPTY: KeyFile = { format: 'tollbridge-api-keys-1', keys: [] };

export const API_KEYS = 'auth/api-keys.json';

/** The API keys of a data directory, or of all gateways that share these files. */
export function openApiKeys(where: string | PrivateFiles, clock: Clock): ApiKeys {
  return createApiKeys({ files: filesIn(where), clock, random: randomBytes });
}

/** The public part of a token in our key format. */
export function keyIdOf(bearer: string): string | undefined {
  return KEY.exec(bearer)?.[1];
}

export function isApiKey(bearer: string): boolean {
  return KEY.test(bearer);
}

export function createApiKeys({ files, clock, random }: ApiKeysOptions): ApiKeys {
  let held: { readonly version: string; readonly byId: ReadonlyMap<string, KeyRecord> } | undefined;

  async function read(): Promise<KeyFile> {
    const text = await files.read(API_KEYS);
    return text === undefined ? EMPTY : parse(text, files.nameOf(API_KEYS));
  }

  /** Another process may have made or revoked keys: each use compares the file's version. */
  async function current(): Promise<ReadonlyMap<string, KeyRecord>> {
    const version = await files.fresh(API_KEYS);
    if (held?.version === version) return held.byId;
    const { keys } = await read();
    held = { version, byId: new Map(keys.map((key) => [key.id, key])) };
    return held.byId;
  }

  async function change(next: (file: KeyFile) => KeyFile): Promise<void> {
    await files.replace(API_KEYS, (text) => {
      const found = text === undefined ? EMPTY : parse(text, files.nameOf(API_KEYS));
      return `${JSON.stringify(next(found), null, 2)}\n`;
    });
  }

  return {
    async create({ name, actor, preset, expires_at }) {
      if (isReserved(actor.id)) throw new Fault('invalid_request', `${actor.id} is a name of the gateway's own`);
      const id = Buffer.from(random(8)).toString('hex');
      const key = `tbk_${id}_${Buffer.from(random(32)).toString('base64url')}`;
      const record: KeyRecord = {
        id,
        name,
        hash: sha256(key),
        actor,
        ...(preset && { preset }),
        created_at: clock.now(),
        expires_at: expires_at ?? null,
        revoked_at: null,
      };
      check(KeyRecord, record, 'the key');
      await change((file) => ({ ...file, keys: [...file.keys, record] }));
      return { key, record: shown(record, clock.now()) };
    },

    async list() {
      const now = clock.now();
      return (await read()).keys.map((record) => shown(record, now));
    },

    async revoke(id) {
      const now = clock.now();
      let revoked: KeyRecord | undefined;
      await change((file) => ({
        ...file,
        keys: file.keys.map((record) => {
          if (record.id !== id) return record;
          revoked = { ...record, revoked_at: record.revoked_at ?? now };
          return revoked;
        }),
      }));
      if (!revoked) throw new Fault('not_found', `no API key ${id}`);
      return shown(revoked, now);
    },

    async actor(key) {
      const id = KEY.exec(key)?.[1];
      const record = id === undefined ? undefined : (await current()).get(id);
      // An unknown key takes as long to refuse as a known one.
      if (!matches(key, record?.hash ?? NO_HASH) || !record) return undefined;
      // The record was edited by hand, or made before names were reserved.
      if (isReserved(record.actor.id)) return undefined;
      const state = stateOf(record, clock.now());
      // The holder of the whole key may learn why it is refused; other callers do not learn that it ever existed.
      if (state === 'revoked') {
        throw new Fault('unauthenticated', 'the token is not valid', { details: { reason: 'revoked' } });
      }
      if (state === 'expired') {
        const message = `this API key expired at ${record.expires_at}; ask for a new one (tollbridge keys create)`;
        throw new Fault('unauthenticated', message, { details: { reason: 'expired' } });
      }
      return record.actor;
    },

    async activeActor(id) {
      const record = (await current()).get(id);
      return record && stateOf(record, clock.now()) === 'active' ? record.actor : undefined;
    },
  };
}

function parse(text: string, path: string): KeyFile {
  try {
    return check(KeyFile, JSON.parse(text), 'the file');
  } catch (cause) {
    // An unreadable file authenticates no caller, and is never overwritten.
    throw new Fault('unavailable', `the API key file ${path} does not add up`, { cause });
  }
}

function stateOf({ revoked_at, expires_at }: KeyRecord, now: string): ApiKey['state'] {
  if (revoked_at) return 'revoked';
  return expires_at && Date.parse(expires_at) <= Date.parse(now) ? 'expired' : 'active';
}

function shown({ hash: _, ...record }: KeyRecord, now: string): ApiKey {
  return { ...record, state: stateOf({ hash: '', ...record }, now) };
}

function sha256(text: string): string {
  return hash('sha256', text);
}

function matches(key: string, kept: string): boolean {
  return timingSafeEqual(Buffer.from(sha256(key), 'hex'), Buffer.from(kept, 'hex'));
}
