/**
 * `tollbridge verify`: receipts from files, which needs nothing but them and public keys, or from this installation's
 * log. A broken receipt is an answer: it is reported with the reason, and the exit code is 1.
 */
import { existsSync } from 'node:fs';
import type { RowsReport } from '../../../ports/index.ts';
import type { EventsReport } from '../../../receipt/verify/events.ts';
import type { TaskEventsState } from '../../../receipt/verify/task-events.ts';
import type { CommonOptions } from '../../context.ts';
import { trouble } from '../../output/error-output.ts';
import { EXIT } from '../../output/exit-codes.ts';
import { counted, terminalText } from '../../output/terminal-text.ts';
import { verifyFiles } from './verify-files.ts';
import { followLinks, type LinkCounts } from './verify-linked.ts';
import { verifyInLog } from './verify-log.ts';

export interface VerifyOptions extends CommonOptions {
  readonly keys?: string;
  readonly head?: string;
  readonly trust?: string;
  readonly json?: boolean;
  /** The receipts of another gateway, to follow links into. */
  readonly linked?: string;
  readonly linkedKeys?: string;
  /** Heads kept elsewhere: files or addresses. */
  readonly witness?: readonly string[];
}

/** The result, the same for files and for the log. */
export interface Verified {
  readonly valid: boolean;
  /** Valid records before the first bad one. */
  readonly records: number;
  /** Whether the last record is proven to be the last; a single receipt has no end. */
  readonly end?: 'complete' | 'unknown' | 'missing';
  readonly keys: readonly string[];
  readonly links?: LinkCounts;
  /** Absent when there were no events to check. */
  readonly events?: Omit<EventsReport, 'valid' | 'firstBad'>;
  /** For one receipt in the log: whether the events of its task are those it was sealed over. */
  readonly task_events?: TaskEventsState;
  /**
   * Rows of the database that equal what the events fold to, and rows that cannot be compared because their events were
   * pruned.
   */
  readonly rows?: Omit<RowsReport, 'fault'>;
  readonly first_bad?: {
    readonly code: string;
    readonly message: string;
    readonly line?: number;
    /** Location of a bad row. */
    readonly table?: string;
    readonly object?: string;
    readonly id?: string;
  };
}

export async function verify(what: string, options: VerifyOptions): Promise<number> {
  const isFile = what !== 'all' && existsSync(what);
  const checked = isFile ? await verifyFiles(what, options) : await verifyInLog(what, options);
  const found = options.linked ? await withLinks(checked, what, isFile, options.linked, options.linkedKeys) : checked;
  process.stdout.write(options.json ? `${JSON.stringify(found)}\n` : terminalText(said(found)));
  return found.valid ? EXIT.done : EXIT.no;
}

/** Links are followed from files into files; receipts in the log have to be exported first. */
async function withLinks(checked: Verified, what: string, isFile: boolean, other: string, keys?: string) {
  if (!isFile) {
    throw trouble('invalid_request', '--linked compares files', `write them first: tollbridge export DIR`);
  }
  const links = await followLinks(what, other, keys);
  const wrong = links.checks.find(({ state }) => state === 'mismatch');
  if (!wrong || checked.first_bad) return { ...checked, links };
  const message = `receipt ${wrong.receipt_id} is linked and does not match: ${wrong.reason}`;
  return { ...checked, links, valid: false, first_bad: { code: 'link_mismatch', message } };
}

function saidOfLinks(links: LinkCounts | undefined): string {
  if (!links) return '';
  const { linked, mismatch, not_available } = links;
  return `     links: ${linked} linked and valid, ${mismatch} linked and mismatching, ${not_available} not available\n`;
}

function said({ first_bad, records, end, keys, events, rows, links, task_events }: Verified): string {
  if (first_bad) return `BAD  ${first_bad.message}\n${saidOfLinks(links)}`;
  const chain = end === undefined ? 'nothing changed' : 'nothing missing, nothing changed';
  const open = end === 'unknown' ? '; no tree head says where it ends, so a missing end would not be noticed' : '';
  return `ok   ${counted(records, 'receipt')}, ${chain}${open}\n${events ? saidOfEvents(events) : ''}${rows ? saidOfRows(rows) : ''}${task_events ? TASK_EVENTS[task_events] : ''}     signed with ${keys.join(', ') || 'no key'}\n${saidOfLinks(links)}`;
}

const TASK_EVENTS: Readonly<Record<TaskEventsState, string>> = {
  ok: '     the events of its task are the ones it was sealed over\n',
  mismatch: '     the events of its task are not the ones it was sealed over\n',
  pruned: '     the events of its task were pruned: only their hashes are kept\n',
  absent: '     it commits to no events of this log\n',
};

function saidOfRows({ compared, unproven }: NonNullable<Verified['rows']>): string {
  const rest = unproven > 0 ? `; cannot be compared: ${counted(unproven, 'row')}, made of pruned events` : '';
  return `     ${counted(compared, 'row')} ${compared === 1 ? 'is' : 'are'} what the events fold to${rest}\n`;
}

function saidOfEvents({ events, pruned, heads, commitments, unsigned }: NonNullable<Verified['events']>): string {
  const gone = pruned > 0 ? `, ${pruned} more known by their hashes` : '';
  const signed = heads > 0 ? `${counted(heads, 'signed head')} ${heads === 1 ? 'fits' : 'fit'}` : 'no signed head';
  const rest = unsigned > 0 ? ` (${counted(unsigned, 'event')} since)` : '';
  return `     ${counted(events, 'event')}${gone}: ${signed}${rest}, ${counted(commitments, 'receipt')} sealed over exactly these\n`;
}
