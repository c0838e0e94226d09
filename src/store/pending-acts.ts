/**
 * Acts that wait for approval, exactly as they will run: one encrypted file, or row, for each open question. AES-256-GCM under a key
 * derived from this installation's MAC key, bound to the question's id, so only this installation can read them. They lie
 * beside the log, never in it, and each is written whole or not at all.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { open, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { PendingAct } from '../model/asks.ts';
import { Fault } from '../model/faults.ts';
import type { PendingActs, Signer } from '../ports/index.ts';

/** Sealed acts by the id of their question. */
export interface ActRows {
  keep(askId: string, sealed: Uint8Array): Promise<void>;
  read(askId: string): Promise<Uint8Array | undefined>;
  drop(askId: string): void;
  list(): Promise<readonly { readonly askId: string; readonly ageMs: number }[]>;
}

interface PendingActsOptions {
  readonly rows: ActRows;
  readonly signer: Pick<Signer, 'mac'>;
  /** The longest act that is kept, in bytes. */
  readonly longest?: number;
}

/** An act is encrypted and decrypted in one synchronous step, so it must be short enough not to block the event loop. */
const LONGEST = 8 * 1024 * 1024;
const NONCE = 12;
const TAG = 16;
const MAGIC = Buffer.from('tollbridge-act-1');

export function createPendingActs({ rows, signer, longest = LONGEST }: PendingActsOptions): PendingActs {
  // A keyed digest of a fixed text serves as a key and reveals nothing about the MAC key it was made with.
  const key = () => createHash('sha256').update(signer.mac('pending-acts encryption key 1')).digest();

  function named(askId: string): string {
    if (!isName(askId)) throw new Fault('invalid_request', 'not an id of a question');
    return askId;
  }

  return {
    async keep(askId, act) {
      const text = Buffer.from(JSON.stringify(act));
      if (text.length > longest) {
        throw new Fault('payload_too_large', `it is ${text.length} bytes long, and at most ${longest} are kept`);
      }
      await rows.keep(named(askId), seal(key(), askId, text));
    },
    async read(askId) {
      const sealed = await rows.read(named(askId));
      return sealed && (JSON.parse(unseal(key(), askId, Buffer.from(sealed))) as PendingAct);
    },
    drop: (askId) => rows.drop(named(askId)),
    list: rows.list,
  };
}

/** `dir`: a directory for these files alone, made when the first act is kept. */
export function fileActs(dir: string): ActRows {
  return {
    async keep(askId, sealed) {
      const path = join(dir, askId);
      const draft = `${path}.${randomBytes(6).toString('hex')}.draft`;
      try {
        mkdirSync(dir, { recursive: true, mode: 0o700 });
        writeFileSync(draft, sealed, { flag: 'wx', mode: 0o600 });
        renameSync(draft, path);
      } catch (cause) {
        rmSync(draft, { force: true });
        throw new Fault('unavailable', 'it could not be kept', { cause });
      }
      // Not awaited: the one consequence of a power failure here is that the act can no longer be approved.
      void flush(path, dir);
    },

    read: (askId) =>
      readFile(join(dir, askId)).catch((cause: NodeJS.ErrnoException) => {
        if (cause.code === 'ENOENT') return undefined;
        throw new Fault('unavailable', 'the kept act cannot be read', { cause });
      }),

    drop(askId) {
      rmSync(join(dir, askId), { force: true });
    },

    async list() {
      const names = await readdir(dir).catch((cause: NodeJS.ErrnoException) => {
        if (cause.code === 'ENOENT') return [];
        throw new Fault('unavailable', 'the kept acts cannot be listed', { cause });
      });
      const found = await Promise.all(names.map((name) => ageOf(dir, name)));
      for (const { askId, ageMs } of found) {
        // A process that died while writing left a partial draft that no read will ever name.
        if (askId.endsWith('.draft') && ageMs > STALE_DRAFT_MS) await rm(join(dir, askId), { force: true });
      }
      return found.filter(({ askId }) => isName(askId));
    },
  };
}

/** Ids of a replay's questions have a dot: `ask_replay_….q1`. */
const isName = (askId: string): boolean =>
  askId.length <= 200 && /^[\w-]+(\.[\w-]+)*$/.test(askId) && !askId.endsWith('.draft');

const STALE_DRAFT_MS = 10 * 60_000;

async function ageOf(dir: string, askId: string): Promise<{ askId: string; ageMs: number }> {
  const found = await stat(join(dir, askId)).catch(() => undefined);
  return { askId, ageMs: found ? Date.now() - found.mtimeMs : 0 };
}

function seal(key: Buffer, askId: string, text: Buffer): Buffer {
  const nonce = randomBytes(NONCE);
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(askId));
  const data = Buffer.concat([cipher.update(text), cipher.final()]);
  return Buffer.concat([MAGIC, nonce, cipher.getAuthTag(), data]);
}

function unseal(key: Buffer, askId: string, sealed: Buffer): string {
  const at = MAGIC.length;
  if (sealed.length < at + NONCE + TAG || !sealed.subarray(0, at).equals(MAGIC)) throw damaged();
  const nonce = sealed.subarray(at, at + NONCE);
  const tag = sealed.subarray(at + NONCE, at + NONCE + TAG);
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(askId)).setAuthTag(tag);
    return Buffer.concat([decipher.update(sealed.subarray(at + NONCE + TAG)), decipher.final()]).toString('utf8');
  } catch (cause) {
    throw damaged(cause);
  }
}

function damaged(cause?: unknown): Fault {
  return new Fault('unavailable', 'the kept act is damaged, or was kept under another key', { cause });
}

/** Syncs the file first, then its directory entry. Some systems cannot open directories and persist names on their own. */
async function flush(...paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    const handle = await open(path, 'r').catch(() => undefined);
    await handle?.sync().catch(() => {});
    await handle?.close().catch(() => {});
  }
}
