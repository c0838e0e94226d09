/** `tollbridge store copy`: the whole log into a new file or database, read back and verified before any gateway opens it. */
import { systemClock } from '../../../core/clock.ts';
import { projector } from '../../../core/events/projector.ts';
import type { Lease, Store } from '../../../ports/index.ts';
import { copyContent } from '../../../store/engine/copy/copy.ts';
import {
  createContent,
  hasLog,
  isDatabase,
  openContent,
  openStore,
  type StoreLocation,
  storeName,
} from '../../../store/index.ts';
import { type CommonOptions, configFrom } from '../../context.ts';
import { trouble } from '../../output/error-output.ts';
import { createProgress, type Progress } from '../../output/progress.ts';
import { counted } from '../../output/terminal-text.ts';
import { requirePerson } from '../../person-only.ts';
import { verifyAll } from '../proof/verify-log.ts';
import { keysOf, locate } from './locate.ts';

export interface CopyOptions extends CommonOptions {
  readonly fromSecret?: string;
  readonly toSecret?: string;
  readonly fromSchema?: string;
  readonly toSchema?: string;
  readonly json?: boolean;
}

export async function storeCopy(from: string, to: string, options: CopyOptions): Promise<void> {
  const config = await configFrom(options);
  requirePerson(config.dataDir, 'copying the log');
  const source = locate(from, { secret: options.fromSecret, schema: options.fromSchema }, config);
  const target = locate(to, { secret: options.toSecret, schema: options.toSchema }, config);
  if (!(await hasLog(source)))
    throw trouble('not_found', `there is no log in ${storeName(source)}`, 'name the file, its directory, or a URL');
  if (storeName(source) === storeName(target))
    throw trouble('invalid_request', 'a log cannot be copied onto itself', 'name another file, database or schema');
  const keys = await keysOf(source, config);
  const held = await holdSource(source);
  try {
    const { rows, tip } = await copied(source, target, held.store);
    await verified(target, keys, tip);
    const finishing = await createContent(target, 'complete');
    await finishing.finish();
    await finishing.close();
    said(options, { source, target, keys: keys.where, rows });
  } finally {
    await held.close();
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
      return { rows: Object.fromEntries(counts), tip };
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
  readonly rows: Readonly<Record<string, number>>;
}

function said({ json }: CopyOptions, { source, target, keys, rows }: Done): void {
  const [from, to] = [storeName(source), storeName(target)];
  if (json) {
    process.stdout.write(`${JSON.stringify({ object: 'store_copy', from, to, rows, verified: true })}\n`);
    return;
  }
  const { events = 0, receipts = 0, blobs = 0 } = rows;
  const section = isDatabase(target) ? `url: ${target.url}` : `path: ${target.path}`;
  process.stdout.write(
    `Copied and verified: ${counted(events, 'event')}, ${counted(receipts, 'receipt')}, ${counted(blobs, 'file')}\n` +
      `  from ${from}\n  to   ${to}\nThe source is as it was. To use the copy, write into the configuration:\n` +
      `  store: { ${section} }\nKeys and open questions stay where they are: ${keys}.\n`,
  );
}
