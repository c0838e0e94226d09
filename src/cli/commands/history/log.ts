/** `tollbridge log`: the newest events, as lines for people or as JSON for programs; earlier ones by page, new ones with `--follow`. */
import { type CoreEvent, type Cursor, eventId, position, type Stream } from '../../../model/events.ts';
import type { Store } from '../../../ports/index.ts';
import { type CommonOptions, lookInto } from '../../context.ts';
import { findTask } from '../../find.ts';
import { trouble } from '../../output/error-output.ts';
import { createNarrator, logLine } from '../../output/event-lines.ts';
import { untilStopped } from '../../stop-signals.ts';

export interface LogOptions extends CommonOptions {
  readonly follow?: boolean;
  readonly last?: string;
  readonly before?: string;
  readonly all?: boolean;
  readonly task?: string;
  readonly json?: boolean;
}

/** A page: more than a screenful, less than one has to search in. */
const PAGE = 50;
/** Not every event has a line: this many are read for each line that is wanted, before more of them are. */
const EVENTS_PER_LINE = 4;

interface Printed {
  readonly event: CoreEvent;
  readonly text: string;
}

export async function showLog({ follow, last, before, all, task, json, ...options }: LogOptions): Promise<void> {
  if (follow && before) {
    throw trouble('invalid_request', '--before and --follow do not go together', 'leave out one of them');
  }
  const count = last === undefined ? PAGE : numberOf(last, 'a number of events', '--last 100');
  const end = before === undefined ? undefined : numberOf(before, 'the number of an event', '--before 1200') - 1;
  await lookInto(options, async ({ store }) => {
    const stream: Stream = task ? { of: 'task', id: (await findTask(store, task)).id } : { of: 'all' };
    const print = printer(json === true);
    // Programs get every event unless they ask for less.
    const whole = all || (json && last === undefined && before === undefined);
    await untilStopped(async (signal) => {
      const floor = await lastPruned(store);
      let seen = floor > 0 ? eventId(floor) : undefined;
      if (whole) process.stderr.write(prunedHint(floor));
      if (!whole) {
        const page = await newest(store, stream, { count, end, print, floor });
        for (const { text } of page.lines) process.stdout.write(text);
        if (page.earlier && !follow) process.stderr.write(earlierHint(page.lines[0]?.event, task));
        else if (!follow) process.stderr.write(prunedHint(floor));
        if (!follow || signal.aborted) return;
        seen = page.reached ?? seen;
      }
      const from = { stream, ...(seen && { after: seen }), ...(end !== undefined && { upTo: eventId(end) }) };
      for await (const event of follow ? store.follow(from, signal) : store.read(from)) {
        if (signal.aborted) return;
        process.stdout.write(print(event) ?? '');
      }
    });
  });
}

/** Returns the text of an event, or nothing where there is no line for it. */
function printer(json: boolean): (event: CoreEvent) => string | undefined {
  if (json) return (event) => `${JSON.stringify(event)}\n`;
  const narrate = createNarrator();
  const colours = takesColours(process.stdout, process.env);
  return (event) => {
    const line = narrate(event);
    return line && logLine(event, line, colours);
  };
}

interface Page {
  readonly lines: readonly Printed[];
  /** There are older events. */
  readonly earlier: boolean;
  /** The last event that was read. */
  readonly reached: Cursor | undefined;
}

interface PageOptions {
  readonly count: number;
  /** Position of the last event of the page; absent means the newest. */
  readonly end: number | undefined;
  /** Position of the last event that was pruned. */
  readonly floor: number;
  readonly print: (event: CoreEvent) => string | undefined;
}

/** Reads backwards in growing steps until there are enough lines, so that the length of the log does not matter. */
async function newest(store: Store, stream: Stream, { count, end, print, floor }: PageOptions): Promise<Page> {
  const tip = await store.tip(stream);
  const upTo = Math.min(position(tip ?? '') ?? 0, end ?? Number.POSITIVE_INFINITY);
  if (upTo <= floor) return { lines: [], earlier: false, reached: undefined };
  for (let size = count * EVENTS_PER_LINE; ; size *= 4) {
    const after = Math.max(floor, upTo - size);
    const lines: Printed[] = [];
    const range = { stream, ...(after > 0 && { after: eventId(after) }), upTo: eventId(upTo) };
    for await (const event of store.read(range)) {
      const text = print(event);
      if (text === undefined) continue;
      lines.push({ event, text });
      // Twice as many as are wanted at most, so that a page of a long task is not held whole.
      if (lines.length === 2 * count) lines.splice(0, count);
    }
    const enough = lines.length >= count;
    if (enough || after === floor)
      return { lines: lines.slice(-count), earlier: after > floor || lines.length > count, reached: eventId(upTo) };
  }
}

function earlierHint(first: CoreEvent | undefined, task: string | undefined): string {
  if (!first) return '';
  const of = task ? ` --task ${task}` : '';
  return `earlier events: tollbridge log --before ${position(first.id)}${of}    all of them: tollbridge log --all${of}\n`;
}

/** The position of the last event that is no longer kept; 0 when all are. */
async function lastPruned(store: Store): Promise<number> {
  for await (const { id } of store.read({ stream: { of: 'all' }, limit: 1 })) return (position(id) ?? 1) - 1;
  return 0;
}

function prunedHint(floor: number): string {
  return floor > 0 ? `events up to ${floor} are no longer kept\n` : '';
}

/** `FORCE_COLOR` and `NO_COLOR` as in other programs; without either, only a terminal gets colours. */
function takesColours({ isTTY }: NodeJS.WriteStream, { FORCE_COLOR, NO_COLOR }: NodeJS.ProcessEnv): boolean {
  if (NO_COLOR) return false;
  return FORCE_COLOR ? FORCE_COLOR !== '0' : isTTY === true;
}

function numberOf(text: string, what: string, example: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text)) {
    throw trouble('invalid_request', `${text} is not ${what}`, `write a whole number above 0: ${example}`);
  }
  return Number(text);
}
