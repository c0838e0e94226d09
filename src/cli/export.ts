/** `tollbridge export`: receipts, keys, a signed end and events out of the house, for whoever checks or keeps them. */
import { join } from 'node:path';
import type { Stream } from '../model/events.ts';
import { openKeyring } from '../receipt/keys.ts';
import { NAMES, writeEvents, writeReceipts } from './archive.ts';
import { type CommonOptions, lookInto, requireUsable } from './context.ts';
import { findTask } from './find.ts';
import { ownName, quoted } from './own-name.ts';
import { counted } from './plain.ts';

export interface ExportOptions extends CommonOptions {
  readonly events?: boolean;
  readonly cbor?: boolean;
  readonly task?: string;
  readonly json?: boolean;
}

export async function exportAll(dir: string, options: ExportOptions): Promise<void> {
  await lookInto(options, async ({ store, config }) => {
    const now = () => new Date().toISOString();
    const stream: Stream = options.task ? { of: 'task', id: (await findTask(store, options.task)).id } : { of: 'all' };
    await requireUsable(dir, 'the directory', '');
    const keyring = await openKeyring({ dir: join(config.dataDir, 'keys'), now });
    const source = { store, keys: keyring.jwks(), signer: keyring.signer(), now: now() };
    const receipts = await writeReceipts(dir, source, options.cbor);
    const events = options.events === false ? undefined : await writeEvents(dir, store, stream);
    if (options.json) {
      const files = [
        NAMES.receipts,
        NAMES.keys,
        NAMES.head,
        ...(options.cbor ? [NAMES.archive] : []),
        ...(events === undefined ? [] : [NAMES.events]),
      ];
      process.stdout.write(`${JSON.stringify({ dir, files, receipts, events: events ?? null })}\n`);
      return;
    }
    const name = ownName({ argv: process.argv, env: process.env, cwd: process.cwd() });
    const more = events === undefined ? '' : ` and ${counted(events, 'event')}`;
    process.stdout.write(
      `${counted(receipts, 'receipt')}, the public keys, a signed end${more} written to ${dir}\nCheck them with: ${name} verify ${quoted(dir)}\n`,
    );
  });
}
