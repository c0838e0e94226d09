/** Verifies exported events: the whole log with its signed head, or those of one task. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { CoreEvent } from '../../../model/events.ts';
import type { Receipt } from '../../../model/receipt.ts';
import { EVENT_TREE } from '../../../receipt/seal/checkpoints.ts';
import { isLogHead, type LogHead } from '../../../receipt/seal/log-head.ts';
import type { Jwks } from '../../../receipt/seal/public-keys.ts';
import { parseStrict } from '../../../receipt/seal/strict-json.ts';
import {
  bySize,
  createCovering,
  type EventsReport,
  type KnownHead,
  verifyEvents,
} from '../../../receipt/verify/events.ts';
import { readReceipt } from '../../../receipt/verify/verify.ts';
import { trouble } from '../../output/error-output.ts';
import { type LogHeadFile, NAMES } from './archive.ts';
import { readJson } from './verify-files.ts';

type Committed = Pick<Receipt, 'receipt_id' | 'replay_input' | 'subject'>;

export interface Commitments {
  /** Passes the documents through and remembers what each commits to. */
  noting(documents: AsyncIterable<unknown> | Iterable<unknown>): AsyncGenerator<unknown>;
  readonly byId: ReadonlyMap<string, Committed>;
  readonly byTask: ReadonlyMap<string, Committed>;
  readonly covered: ReturnType<typeof createCovering>['covered'];
}

export function createCommitments(): Commitments {
  const [byId, byTask] = [new Map<string, Committed>(), new Map<string, Committed>()];
  const covering = createCovering();
  return {
    byId,
    byTask,
    covered: covering.covered,
    async *noting(documents) {
      for await (const document of documents) {
        const read = readReceipt(document);
        if (typeof read !== 'string') {
          const { receipt_id, replay_input, subject, identifiers } = read.receipt;
          const materials = replay_input.materials.filter(({ kind }) => kind === 'event_log');
          const committed = { receipt_id, subject, replay_input: { ...replay_input, materials } };
          byId.set(receipt_id, committed);
          byTask.set(identifiers.task_id, committed);
          covering.note(committed);
        }
        yield document;
      }
    },
  };
}

export async function verifyEventFiles(
  dir: string,
  lines: () => AsyncIterable<string>,
  { byId, byTask, covered }: Commitments,
  keys: Jwks,
  { trust }: { readonly trust?: string },
  kept: readonly KnownHead[],
): Promise<EventsReport> {
  const path = join(dir, NAMES.logHead);
  const whole = existsSync(path);
  const { head, pruned } = whole ? logHeadIn(await readJson<LogHeadFile>(path, 'signed log head', '--head')) : NOTHING;
  return await verifyEvents({
    events: eventsIn(lines()),
    ...(pruned && { pruned }),
    partial: !whole,
    heads: bySize(head ? headsIn(lines(), head) : [], kept),
    receipt: async (id) => byId.get(id),
    receiptOf: async (task) => byTask.get(task),
    covered,
    keys,
    trustAnchor: trust,
  });
}

const NOTHING: { head: undefined; pruned: undefined } = { head: undefined, pruned: undefined };

function logHeadIn(file: LogHeadFile): LogHeadFile {
  const { pruned } = file ?? {};
  if (isLogHead(file?.head) && Number.isSafeInteger(pruned?.size) && Array.isArray(pruned?.frontier)) return file;
  throw trouble('invalid_request', `${NAMES.logHead} holds no signed log head`, 'export the log once more');
}

/** A line that is no event becomes an event without an id, which is reported by its position. */
async function* eventsIn(lines: AsyncIterable<string>): AsyncGenerator<CoreEvent> {
  for await (const line of lines) if (line.trim() !== '') yield eventIn(line) ?? ({} as CoreEvent);
}

function eventIn(line: string): CoreEvent | undefined {
  try {
    return parseStrict(line) as CoreEvent;
  } catch {
    return undefined;
  }
}

/**
 * The heads the log itself holds, then the one over everything. A head comes after the events it covers, so heads are
 * read ahead in a second pass over the file: only the next one is in memory.
 */
async function* headsIn(lines: AsyncIterable<string>, last: LogHead): AsyncGenerator<LogHead> {
  for await (const line of lines) {
    if (!line.includes(EVENT_TREE.object)) continue;
    const event = eventIn(line);
    const head = (event?.payload as { head?: unknown } | undefined)?.head;
    if (event?.resource?.object === EVENT_TREE.object && isLogHead(head)) yield head;
  }
  yield last;
}
