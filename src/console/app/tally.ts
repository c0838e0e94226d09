/** Counts of the overview, in columns of one minute. Extended as rows come: each row is read once, however many there are. Pure. */
import type { EventRow, GrowingRows } from './rows.ts';

export interface Measure {
  readonly name: string;
  /** Of a tool: servers may each have one of this name. Empty for callers, and for tools of no server. */
  readonly server: string;
  decisions: number;
  blocked: number;
  calls: number;
  failed: number;
  usd: number;
  /** How long calls took, without the wait for a person. */
  readonly times: number[];
}

interface Minute {
  readonly verdicts: Map<string, number>;
  readonly tools: Map<string, Measure>;
  readonly callers: Map<string, Measure>;
}

export interface Tally {
  readonly epoch: number;
  read: number;
  readonly minutes: Map<number, Minute>;
  /** When calls that have not ended began to run. */
  readonly begun: Map<string, number>;
}

export const MINUTE_MS = 60_000;
/** Of one tool in one minute; the median of more would be the same. */
const MOST_TIMES = 200;
/** Tools or callers of one minute; names that an agent makes up do not fill the memory. */
const MOST_NAMES = 500;
/** Calls that never end are forgotten beyond this. */
const MOST_BEGUN = 20_000;

export function extendTally(before: Tally | undefined, feed: GrowingRows): Tally {
  const tally: Tally =
    before && before.epoch === feed.epoch
      ? before
      : { epoch: feed.epoch, read: 0, minutes: new Map(), begun: new Map() };
  for (; tally.read < feed.rows.length; tally.read += 1) take(tally, feed.rows[tally.read] as EventRow);
  return tally;
}

function take({ minutes, begun }: Tally, row: EventRow): void {
  const { verdict, event, tool, server, call, at, usd } = row;
  if (!verdict && !call && usd === 0) return;
  const number = Math.floor(at / MINUTE_MS);
  const minute: Minute = minutes.get(number) ?? { verdicts: new Map(), tools: new Map(), callers: new Map() };
  minutes.set(number, minute);
  const caller = row.agent || row.person;
  if (verdict) {
    minute.verdicts.set(verdict, (minute.verdicts.get(verdict) ?? 0) + 1);
    for (const one of [measure(minute.callers, caller), measure(minute.tools, tool, server)]) {
      one.decisions += 1;
      one.usd += usd;
      if (verdict === 'block') one.blocked += 1;
    }
  } else if (usd > 0) measure(minute.callers, caller).usd += usd;
  if (event === 'tool.requested') {
    for (const one of [measure(minute.callers, caller), measure(minute.tools, tool, server)]) one.calls += 1;
    if (begun.size >= MOST_BEGUN) begun.clear();
    begun.set(call, at);
  }
  const start = begun.get(call);
  // The call runs from here on; until then a person had it.
  if (event === 'tool.approved' && start !== undefined) begun.set(call, at);
  if (event !== 'tool.completed' && event !== 'tool.failed') return;
  begun.delete(call);
  for (const one of [measure(minute.callers, caller), measure(minute.tools, tool, server)]) {
    if (event === 'tool.failed') one.failed += 1;
    if (start !== undefined && one.times.length < MOST_TIMES) one.times.push(at - start);
  }
}

function measure(map: Map<string, Measure>, name: string, server = ''): Measure {
  const key = measureKey(server, name);
  const known = map.get(key);
  if (known) return known;
  const of = map.size >= MOST_NAMES ? { name: '', server: '' } : { name, server };
  const kept = map.get(measureKey(of.server, of.name)) ?? {
    ...of,
    decisions: 0,
    blocked: 0,
    calls: 0,
    failed: 0,
    usd: 0,
    times: [],
  };
  map.set(measureKey(of.server, of.name), kept);
  return kept;
}

export function measureKey(server: string, name: string): string {
  return `${server}\n${name}`;
}

export interface Counted {
  readonly verdicts: ReadonlyMap<string, number>;
  readonly failed: number;
  /** Most calls first. */
  readonly tools: readonly Measure[];
  readonly callers: readonly Measure[];
}

/** Everything since the beginning of this minute. */
export function countedSince({ minutes }: Tally, since: number): Counted {
  const verdicts = new Map<string, number>();
  const tools = new Map<string, Measure>();
  const callers = new Map<string, Measure>();
  for (const [number, minute] of minutes) {
    if (number * MINUTE_MS < since) continue;
    for (const [verdict, count] of minute.verdicts) verdicts.set(verdict, (verdicts.get(verdict) ?? 0) + count);
    for (const [from, to] of [
      [minute.tools, tools],
      [minute.callers, callers],
    ] as const) {
      for (const one of from.values()) {
        const sum = measure(to, one.name, one.server);
        sum.decisions += one.decisions;
        sum.blocked += one.blocked;
        sum.calls += one.calls;
        sum.failed += one.failed;
        sum.usd += one.usd;
        sum.times.push(...one.times);
      }
    }
  }
  const sorted = (map: Map<string, Measure>) =>
    [...map.values()]
      .filter(({ name }) => name !== '')
      .sort((a, b) => b.calls - a.calls || b.decisions - a.decisions || (a.name < b.name ? -1 : 1));
  const failed = [...tools.values()].reduce((sum, one) => sum + one.failed, 0);
  // A prompt is decided about like a call, under the name of its agent; it is no tool.
  const called = sorted(tools).filter(({ calls, blocked }) => calls > 0 || blocked > 0);
  return { verdicts, failed, tools: called, callers: sorted(callers) };
}

export function median(times: readonly number[]): number | undefined {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)];
}
