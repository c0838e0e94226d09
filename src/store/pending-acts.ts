/**
 * Acts as they will run, one file for each open question, readable with this installation's keys alone: AES-256-GCM under a key
 * made from its MAC key, bound to the question's id. Beside the log, never in it. Written whole or not at all.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { open, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { PendingAct } from '../model/asks.ts';
import { Fault } from '../model/faults.ts';
import type { PendingActs, Signer } from '../ports.ts';

interface PendingActsOptions {
  /** A directory for these files alone, made when the first act is kept. */
  readonly dir: string;
  readonly signer: Pick<Signer, 'mac'>;
  /** The longest act that is kept, in bytes. */
  readonly longest?: number;
}

/** Sealed and opened in one step, so short enough not to hold up everyone else. */
const LONGEST = 8 * 1024 * 1024;
const NONCE = 12;
const TAG = 16;
const MAGIC = Buffer.from('tollbridge-act-1');

/** Those of the installation whose data directory this is. */
export function pendingActsIn(dataDir: string, signer: Pick<Signer, 'mac'>): PendingActs {
  return filePendingActs({ dir: join(dataDir, 'pending-acts'), signer });
}

export function filePendingActs({ dir, signer, longest = LONGEST }: PendingActsOptions): PendingActs {
  // A keyed digest of a fixed text is as good as a key, and says nothing about the one it was made with.
  const key = () => createHash('sha256').update(signer.mac('pending-acts encryption key 1')).digest();

  function pathOf(askId: string): string {
    if (!/^[\w-]{1,200}$/.test(askId)) throw new Fault('invalid_request', 'not an id of a question');
    return join(dir, askId);
  }

  return {
    async keep(askId, act) {
      const path = pathOf(askId);
      const text = Buffer.from(JSON.stringify(act));
      if (text.length > longest) {
        throw new Fault('payload_too_large', `it is ${text.length} bytes long, and at most ${longest} are kept`);
      }
      const draft = `${path}.${randomBytes(6).toString('hex')}.draft`;
      try {
        mkdirSync(dir, { recursive: true, mode: 0o700 });
        writeFileSync(draft, seal(key(), askId, text), { flag: 'wx', mode: 0o600 });
        renameSync(draft, path);
      } catch (cause) {
        rmSync(draft, { force: true });
        throw new Fault('unavailable', 'it could not be kept', { cause });
      }
      // Nothing waits for the disk: an act that a power failure took can no longer be approved, and that is all.
      void flush(path, dir);
    },

    async read(askId) {
      const sealed = await readFile(pathOf(askId)).catch((cause: NodeJS.ErrnoException) => {
        if (cause.code === 'ENOENT') return undefined;
        throw new Fault('unavailable', 'the kept act cannot be read', { cause });
      });
      return sealed && (JSON.parse(unseal(key(), askId, sealed)) as PendingAct);
    },

    drop(askId) {
      rmSync(pathOf(askId), { force: true });
    },

    async list() {
      const names = await readdir(dir).catch((cause: NodeJS.ErrnoException) => {
        if (cause.code === 'ENOENT') return [];
        throw new Fault('unavailable', 'the kept acts cannot be listed', { cause });
      });
      const found = await Promise.all(names.map((name) => ageOf(dir, name)));
      for (const { askId, ageMs } of found) {
        // A process that died while it wrote left half a file under a name nobody asks for.
        if (askId.endsWith('.draft') && ageMs > STALE_DRAFT_MS) await rm(join(dir, askId), { force: true });
      }
      return found.filter(({ askId }) => /^[\w-]+$/.test(askId));
    },
  };
}
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

/** The file first, then its name in the directory. Some systems cannot open directories; they keep names their own way. */
async function flush(...paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    const handle = await open(path, 'r').catch(() => undefined);
    await handle?.sync().catch(() => {});
    await handle?.close().catch(() => {});
  }
}
