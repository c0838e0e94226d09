/**
 * `tollbridge policy diff <rules>`: recorded decisions, evaluated with other rules. Reads the log, writes nothing. The log is read in
 * parts of equal length, so that a long one occupies every core; differences are listed in the order of the log all the same.
 */
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { type Cursor, eventId, position, type Stream } from '../../../model/events.ts';
import type { Store } from '../../../ports/index.ts';
import { type CommonOptions, lookInto } from '../../context.ts';
import { findTask } from '../../find.ts';
import { EXIT } from '../../output/exit-codes.ts';
import { createProgress } from '../../output/progress.ts';
import { counted } from '../../output/terminal-text.ts';
import { rulesFrom } from './policy.ts';
import { comparePart, type Differences, type LogPart } from './policy-diff-part.ts';
import { type DiffThread, startDiffThread } from './policy-diff-threads.ts';

export interface PolicyDiffOptions extends CommonOptions {
  readonly task?: string;
  readonly json?: boolean;
}

/** Positions of the log in one part. */
const PART = 5_000;
/** From so many parts on, starting threads pays. */
const MANY = 4;
const MOST_THREADS = 8;
const THREAD = fileURLToPath(new URL('./policy-diff-thread.js', import.meta.url));

export async function policyDiff(file: string, options: PolicyDiffOptions): Promise<number> {
  const policies = await rulesFrom(file);
  return await lookInto(options, async ({ store, config }) => {
    const task = options.task && (await findTask(store, options.task)).id;
    const parts = task ? [{ stream: { of: 'task', id: task } } as const] : await partsOf(store);
    const compareHere = comparePart(store, policies, options.json ?? false);
    // There is no thread where the program runs from source.
    const wanted = parts.length < MANY || !existsSync(THREAD) ? 0 : Math.min(availableParallelism(), MOST_THREADS);
    const threads = Array.from({ length: wanted }, () =>
      startDiffThread(THREAD, { location: config.store, rules: file, json: options.json ?? false }),
    );
    const progress = createProgress('asking the rules', parts.length);
    const total = { same: 0, changed: 0, unknown: 0 };
    try {
      let done = 0;
      for await (const { same, changed, unknown, text } of inOrder(parts, threads, compareHere)) {
        total.same += same;
        total.changed += changed;
        total.unknown += unknown;
        if (text) {
          progress.end();
          process.stdout.write(text);
        }
        done += 1;
        progress.at(done);
      }
    } finally {
      progress.end();
      await Promise.all(threads.map((thread) => thread.close()));
    }
    const { same, changed, unknown } = total;
    const decisions = same + changed + unknown;
    process.stdout.write(
      options.json
        ? `${JSON.stringify({ object: 'summary', decisions, ...total, version: policies.version })}\n`
        : `${counted(decisions, 'decision')} on record: ${changed} would change, ${unknown} unknown, ${same} stay as they were\n`,
    );
    return changed > 0 ? EXIT.no : EXIT.done;
  });
}

/** The whole log, from its first event that is kept. */
async function partsOf(store: Store): Promise<readonly LogPart[]> {
  const stream: Stream = { of: 'all' };
  const last = position((await store.tip(stream)) ?? '') ?? 0;
  for await (const { id } of store.read({ stream, limit: 1 })) {
    const first = (position(id) ?? 1) - 1;
    return Array.from({ length: Math.ceil((last - first) / PART) }, (_, at): LogPart => {
      const after: Cursor | undefined = at === 0 ? undefined : eventId(first + at * PART);
      return { stream, ...(after && { after }), upTo: eventId(Math.min(last, first + (at + 1) * PART)) };
    });
  }
  return [];
}

/** Results in the order of the parts. Each thread has one part at a time, and at most as many results wait as there are threads. */
async function* inOrder(
  parts: readonly LogPart[],
  threads: readonly DiffThread[],
  compareHere: (part: LogPart) => Promise<Differences>,
): AsyncGenerator<Differences> {
  if (threads.length === 0) {
    for (const part of parts) yield await compareHere(part);
    return;
  }
  const underWay: Promise<Differences>[] = [];
  for (const [at, part] of parts.entries()) {
    if (at >= threads.length) yield await (underWay.shift() as Promise<Differences>);
    const result = threads[at % threads.length]!.compare(part);
    // Reported when its turn comes.
    result.catch(() => {});
    underWay.push(result);
  }
  for (const result of underWay) yield await result;
}
