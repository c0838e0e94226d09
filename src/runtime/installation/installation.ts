/**
 * What belongs to an installation and not to its log: keys, API keys, sign-ins, switches, and acts that wait. It lies in the data directory,
 * or, sealed, in the database of the log, where all gateways of the log share it.
 */
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { API_KEYS } from '../../auth/api-keys.ts';
import { CONSOLE_SESSIONS } from '../../auth/console-sessions.ts';
import { directoryFiles } from '../../auth/private-file.ts';
import { later, systemClock } from '../../core/clock.ts';
import type { Clock, Closable, PendingActs, PrivateFiles, Signer } from '../../ports/index.ts';
import { type KeyFile, RECEIPT_KEYS, sharedKeyFile } from '../../receipt/seal/key-file.ts';
import { type Keyring, openKeyring, withRetired } from '../../receipt/seal/keys.ts';
import type { DatabaseFiles } from '../../store/index.ts';
import { createPendingActs, fileActs } from '../../store/pending-acts.ts';
import { AGENT_SWITCHES } from '../mounts/agent-switches.ts';

export interface Installation extends Closable {
  readonly files: PrivateFiles;
  keyring(clock?: Clock): Promise<Keyring>;
  pendingActs(signer: Pick<Signer, 'mac'>): PendingActs;
}

export interface InstallationOptions {
  readonly dataDir: string;
  /** Absent: they lie in the data directory. */
  readonly sharedFiles?: (() => Promise<DatabaseFiles>) | undefined;
}

export async function openInstallation({ dataDir, sharedFiles }: InstallationOptions): Promise<Installation> {
  const own = directoryFiles(dataDir);
  const ownActs = fileActs(join(dataDir, 'pending-acts'));
  if (!sharedFiles) {
    return {
      files: own,
      keyring: (clock = systemClock) => openKeyring({ dir: join(dataDir, 'keys'), now: () => clock.now() }),
      pendingActs: (signer) => createPendingActs({ rows: ownActs, signer }),
      close: async () => {},
    };
  }
  const files = await sharedFiles();
  try {
    await moveInto(files, own, ownActs);
  } catch (thrown) {
    await files.close();
    throw thrown;
  }
  return {
    files,
    keyring: (clock = systemClock) => openKeyring({ dir: sharedKeyFile(files), now: () => clock.now() }),
    pendingActs: (signer) => createPendingActs({ rows: files.acts, signer }),
    close: files.close,
  };
}

/** How what lies in a data directory is added to what the gateways share already. */
const MOVED: readonly (readonly [file: string, join: (shared: string, own: string, at: string) => string])[] = [
  [RECEIPT_KEYS, withOldKeys],
  [API_KEYS, withApiKeys],
  [CONSOLE_SESSIONS, (shared) => shared],
  [AGENT_SWITCHES, (shared) => shared],
];

/** Once for each data directory: a gateway that had files of its own brings them along. */
async function moveInto(files: DatabaseFiles, own: PrivateFiles, ownActs: ReturnType<typeof fileActs>): Promise<void> {
  const at = later(systemClock.now(), files.lagMs);
  for (const [file, joined] of MOVED) {
    const text = await own.read(file);
    if (text === undefined) continue;
    await files.replace(file, (shared) => (shared === undefined ? text : joined(shared, text, at)));
    if (file === RECEIPT_KEYS) await moveActs(files, macKeyIn(text), ownActs);
    // Workers of one machine do this at the same time: one of them renames it.
    await rename(own.nameOf(file), `${own.nameOf(file)}.moved`).catch((cause: NodeJS.ErrnoException) => {
      if (cause.code !== 'ENOENT') throw cause;
    });
  }
}

/** Acts are sealed under the MAC key: those of another one could not be read. */
async function moveActs(files: DatabaseFiles, macKey: string, own: ReturnType<typeof fileActs>): Promise<void> {
  const shared = await files.read(RECEIPT_KEYS);
  if (shared === undefined || macKeyIn(shared) !== macKey) return;
  for (const { askId } of await own.list()) {
    const sealed = await own.read(askId);
    if (sealed) await files.acts.keep(askId, sealed);
  }
}

const macKeyIn = (text: string): string => (JSON.parse(text) as KeyFile).mac_key;

function withOldKeys(shared: string, own: string, at: string): string {
  const file = withRetired(JSON.parse(shared) as KeyFile, (JSON.parse(own) as KeyFile).keys, at);
  return `${JSON.stringify(file, null, 2)}\n`;
}

function withApiKeys(shared: string, own: string): string {
  type File = { readonly keys: readonly { readonly id: string }[] };
  const file = JSON.parse(shared) as File;
  const known = new Set(file.keys.map(({ id }) => id));
  const more = (JSON.parse(own) as File).keys.filter(({ id }) => !known.has(id));
  return `${JSON.stringify({ ...file, keys: [...file.keys, ...more] }, null, 2)}\n`;
}
