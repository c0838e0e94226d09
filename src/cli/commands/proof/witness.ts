/**
 * `tollbridge witness`: heads of the log kept elsewhere, so that a log that was rolled back or replaced is detected.
 */
import { resolve } from 'node:path';
import { eventId } from '../../../model/events.ts';
import { growLogTree } from '../../../receipt/merkle/log-tree.ts';
import { rootOf } from '../../../receipt/merkle/merkle.ts';
import { lastLogHead } from '../../../receipt/seal/checkpoints.ts';
import { logHeadHash, signLogHead } from '../../../receipt/seal/log-head.ts';
import { sendHead } from '../../../witness/send.ts';
import { type CommonOptions, lookInto } from '../../context.ts';
import { trouble } from '../../output/error-output.ts';
import { EXIT } from '../../output/exit-codes.ts';
import { verify } from './verify.ts';
import { headsFrom, isAddress } from './witness-heads.ts';

export interface WitnessOptions extends CommonOptions {
  readonly json?: boolean;
}

/**
 * Signs a head over the log as it is now and sends it to a witness: for a timer, where no gateway is configured to do
 * it.
 */
export async function witnessRun(to: string, options: WitnessOptions): Promise<number> {
  return await lookInto(options, async ({ store, keyring }) => {
    const now = () => new Date().toISOString();
    const { state } = await growLogTree(store);
    const { first, size, frontier } = state;
    if (first === undefined) throw trouble('not_found', 'the log is empty', 'there is nothing to witness yet');
    const previous = await lastLogHead(store);
    const head = signLogHead(
      {
        tree: 'events',
        size,
        root: rootOf({ size, frontier }),
        at: now(),
        first_event_id: eventId(first),
        last_event_id: eventId(first + size - 1),
        previous: previous ? logHeadHash(previous) : null,
      },
      keyring.signer(),
    );
    const token = process.env.TOLLBRIDGE_WITNESS_TOKEN;
    const target = isAddress(to) ? { name: to, url: to, ...(token && { token }) } : { name: to, file: resolve(to) };
    try {
      await sendHead(target, head, { store, keys: () => keyring.jwks() });
    } catch (cause) {
      process.stdout.write(`BAD  ${to} does not take the head: ${(cause as Error).message}\n`);
      return EXIT.no;
    }
    process.stdout.write(
      options.json ? `${JSON.stringify(head)}\n` : `ok   ${to} keeps the head over ${size} events\n`,
    );
    return EXIT.done;
  });
}

export async function witnessList(from: string, { json }: WitnessOptions): Promise<void> {
  for (const { kept_by: _, ...head } of await headsFrom([from])) {
    const line = json ? JSON.stringify(head) : `${head.at}  ${head.size} events to ${head.last_event_id}  ${head.root}`;
    process.stdout.write(`${line}\n`);
  }
}

export async function witnessCheck(from: string, options: WitnessOptions): Promise<number> {
  return await verify('all', { ...options, witness: [from] });
}
