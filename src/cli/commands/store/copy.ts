/** `tollbridge store copy`: the whole log into a new file or database, read back and verified before any gateway opens it. */
import { join } from 'node:path';
import { directoryFiles } from '../../../auth/private-file.ts';
import { systemClock } from '../../../core/clock.ts';
import { projector } from '../../../core/events/projector.ts';
import type { Lease, Store } from '../../../ports/index.ts';
import { RECEIPT_KEYS } from '../../../receipt/seal/key-file.ts';
import type { Config } from '../../../runtime/config/config.ts';
import type { TableName } from '../../../store/engine/copy/content.ts';
import { copyContent } from '../../../store/engine/copy/copy.ts';
import {
  createContent,
  hasLog,
  hasPrivateFiles,
  isDatabase,
  openContent,
  openDatabaseFiles,
  openStore,
  type StoreLocation,
  storeName,
} from '../../../store/index.ts';
import { fileActs } from '../../../store/pending-acts.ts';
import { type CommonOptions, configFrom } from '../../context.ts';
import { trouble } from '../../output/error-output.ts';
import { createProgress, type Progress } from '../../output/progress.ts';
import { counted } from '../../output/terminal-text.ts';
import { requirePerson } from '../../person-only.ts';
import { verifyAll } from '../proof/verify-log.ts';
import { isPostgresUrl, keysOf, locate } from './locate.ts';

interface CopyOptions extends CommonOptions {
  readonly fromSecret?: string;
  readonly toSecret?: string;
  readonly fromSchema?: string;
  readonly toSchema?: string;
  readonly keys?: string;
  readonly json?: boolean;
}

export async function storeCopy(from: string, to: string, options: CopyOptions): Promise<void> {
  const config = await configFrom(options);
  requirePerson(config.dataDir, 'copying the log');
  const keysIn = (text: string) => (isPostgresUrl(text) ? options.keys : undefined);
  const source = locate(from, { secret: options.fromSecret, schema: options.fromSchema, keys: keysIn(from) }, config);
  const target = locate(to, { secret: options.toSecret, schema: options.toSchema, keys: keysIn(to) }, config);
  if (!(await hasLog(source)))
    throw trouble('not_found', `there is no log in ${storeName(source)}`, 'name the file, its directory, or a URL');
  if (storeName(source) === storeName(target))
    throw trouble('invalid_request', 'a log cannot be copied onto itself', 'name another file, database or schema');
  const keys = await keysOf(source, config);
  await requireSecret(source);
  const held = await holdSource(source);
  try {
    const { counts, tip } = await copied(source, target, held.store);
    await verified(target, keys, tip);
    const where = await copyKeys(source, target, config);
    const finishing = await createContent(target, 'complete');
    await finishing.finish();
    await finishing.close();
    said(options, { source, target, keys: where ?? keys.where, counts });
  } finally {
    await held.close();
  }
}

async function requireSecret(source: StoreLocation): Promise<void> {
  if (!isDatabase(source) || source.keys || !(await hasPrivateFiles(source))) return;
  throw trouble(
    'invalid_request',
    `keys lie in ${storeName(source)}, sealed under a secret`,
    'name that secret with --keys: without the keys nobody could verify what the copy holds',
  );
}

/** Keys that are sealed in the source go with it: into another database, or into the data directory. What is there already stays. */
async function copyKeys(
  source: StoreLocation,
  target: StoreLocation,
  { dataDir }: Config,
): Promise<string | undefined> {
  if (!isDatabase(source) || !source.keys) return undefined;
  const from = await openDatabaseFiles(source);
  try {
    const directory = { ...directoryFiles(dataDir), acts: fileActs(join(dataDir, 'pending-acts')) };
    const to = isDatabase(target)
      ? await openDatabaseFiles({ ...target, keys: target.keys ?? source.keys }, { incomplete: true })
      : directory;
    try {
      for (const file of from.list()) {
        const text = await from.read(file);
        if (text !== undefined) await to.replace(file, (there) => there ?? text);
      }
      for (const { askId } of await from.acts.list()) {
        const sealed = await from.acts.read(askId);
        if (sealed) await to.acts.keep(askId, sealed);
      }
      return to.nameOf(RECEIPT_KEYS);
    } finally {
      await to.close();
    }
  } finally {
    await from.close();
  }
}

/** A gateway that serves the source would write what the copy lacks: it holds this lease. */
async function holdSource(source: StoreLocation): Promise<{ store: Store; close(): Promise<void> }> {
  const store = await openStore(source, { clock: systemClock, projector });
  let lease: Lease | undefined;
  try {
    lease = await store.lease('duty:upkeep');
  } finally {
    if (!lease) await store.close();
  }
  if (!lease)
    throw trouble(
      'conflict',
      `a gateway is running on ${storeName(source)}`,
      'stop all gateways of this log: what they write from now on would be missing',
    );
  return {
    store,
    async close() {
      await lease.close();
      await store.close();
    },
  };
}

async function copied(source: StoreLocation, target: StoreLocation, store: Store) {
  const content = await openContent(source);
  try {
    const to = await createContent(target);
    try {
      let progress: Progress | undefined;
      const tip = await store.tip({ of: 'all' });
      const counts = await copyContent({
        from: content,
        to,
        begun(rows) {
          progress = createProgress('copying', rows);
        },
        progress: (rows) => progress?.at(rows),
        copied: (table, rows) => line(`copied ${counted(rows, 'row')} of ${table}`),
      });
      progress?.end();
      if ((await store.tip({ of: 'all' })) !== tip)
        throw trouble(
          'conflict',
          `${storeName(source)} was written to meanwhile: the copy is incomplete`,
          'stop all programs that use this log, and copy again',
        );
      return { counts, tip };
    } finally {
      await to.close();
    }
  } finally {
    await content.close();
  }
}

/** Progress where there is no terminal to draw a bar in. */
function line(text: string): void {
  if (!process.stderr.isTTY) process.stderr.write(`${text}\n`);
}

type Keys = Awaited<ReturnType<typeof keysOf>>;

async function verified(target: StoreLocation, { jwks, where }: Keys, tip: string | undefined): Promise<void> {
  const store = await openStore(target, { clock: systemClock, projector, incomplete: true });
  try {
    line('verifying receipts, events and rows');
    const { first_bad } = await verifyAll(store, jwks ?? { keys: [] });
    const wrong =
      first_bad?.message ?? ((await store.tip({ of: 'all' })) === tip ? undefined : 'its end is another one');
    if (wrong === undefined) return;
    throw trouble(
      'conflict',
      `the copy in ${storeName(target)} is not valid: ${wrong}`,
      `it holds what the source holds, so check that one: tollbridge verify all (keys: ${where})`,
    );
  } finally {
    await store.close();
  }
}

interface Done {
  readonly source: StoreLocation;
  readonly target: StoreLocation;
  readonly keys: string;
  readonly counts: ReadonlyMap<TableName, number>;
}

function said({ json }: CopyOptions, { source, target, keys, counts }: Done): void {
  const [from, to] = [storeName(source), storeName(target)];
  if (json) {
    process.stdout.write(
      `${JSON.stringify({ object: 'store_copy', from, to, tables: Object.fromEntries(counts), verified: true })}\n`,
    );
    return;
  }
  const count = (table: TableName) => counts.get(table) ?? 0;
  const section = isDatabase(target) ? `url: ${target.url}` : `path: ${target.path}`;
  process.stdout.write(
    `Copied and verified: ${counted(count('events'), 'event')}, ${counted(count('receipts'), 'receipt')}, ${counted(count('blobs'), 'file')}\n` +
      `  from ${from}\n  to   ${to}\nThe source is as it was. To use the copy, write into the configuration:\n` +
      `  store: { ${section} }\nKeys and open questions: ${keys}.\n`,
  );
}
