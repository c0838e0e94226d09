/**
 * `tollbridge export`: writes receipts, keys, a signed head and events to a directory, for verification or archiving
 * elsewhere.
 */
import type { Stream } from '../../../model/events.ts';
import { type CommonOptions, lookInto, requireUsable } from '../../context.ts';
import { findTask } from '../../find.ts';
import { counted } from '../../output/terminal-text.ts';
import { ownName, quoted } from '../../own-name.ts';
import { NAMES, oneMoment, writeEvents, writeReceipts } from './archive.ts';

export interface ExportOptions extends CommonOptions {
  readonly events?: boolean;
  readonly cbor?: boolean;
  readonly task?: string;
  readonly json?: boolean;
}

export async function exportAll(dir: string, options: ExportOptions): Promise<void> {
  await lookInto(options, async ({ store, keyring }) => {
    const now = () => new Date().toISOString();
    const stream: Stream = options.task ? { of: 'task', id: (await findTask(store, options.task)).id } : { of: 'all' };
    await requireUsable(dir, 'the directory', '');
    const source = { store, keys: keyring.jwks(), signer: keyring.signer(), now: now() };
    const moment = await oneMoment(store);
    const receipts = await writeReceipts(dir, source, { moment, ...(options.cbor && { cbor: true }) });
    const events = options.events === false ? undefined : await writeEvents(dir, source, stream, moment.upTo);
    if (options.json) {
      const files = [
        NAMES.receipts,
        NAMES.keys,
        NAMES.head,
        ...(options.cbor ? [NAMES.archive] : []),
        ...(events === undefined ? [] : [NAMES.events]),
        ...(events === undefined || options.task ? [] : [NAMES.logHead]),
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
