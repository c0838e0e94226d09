/** Usage of runs, counted from the log on request. No counters are stored, so none can be out of date. */
import { GRANULARITIES, type Granularity, USAGE_EVENTS, type UsageEvent } from '../../../../mappings/runs.ts';
import type { CoreEvent, Task } from '../../../../src/index.ts';
import type { Call, Reply, RouteContext } from '../call.ts';
import { RunsRefusal } from '../refusal.ts';
import { type RunMetadata, runMetadataOf } from '../run-metadata.ts';

interface Query {
  readonly workspace: string | undefined;
  readonly subject: string | undefined;
  readonly type: UsageEvent | undefined;
  readonly start: string;
  readonly end: string;
  readonly granularity: Granularity;
}

interface Bucket {
  readonly period_start: string;
  readonly period_end: string;
  readonly event_type: UsageEvent;
  count: number;
  quantity: number;
}

/** Where each number is read from. */
const KINDS: Readonly<Record<string, UsageEvent>> = {
  'task.submitted': 'run.created',
  'task.completed': 'task.completed',
  'tool.completed': 'tool.invoked',
  'tool.failed': 'tool.invoked',
  'vendor.tollbridge.usage': 'tokens.consumed',
};
/** RFC 3339 with an offset. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;

export function getUsage({ bridge, deps }: RouteContext): (call: Call) => Promise<Reply> {
  return async ({ actor, query }) => {
    const wanted = readQuery(query, deps.clock.now());
    const runs = new Map<string, RunMetadata>();
    const buckets = new Map<string, Bucket>();
    for await (const event of bridge.events(actor, { stream: { of: 'all' }, kinds: Object.keys(KINDS) })) {
      if (event.created_at >= wanted.end) break;
      const type = KINDS[event.event] as UsageEvent;
      if (event.event === 'task.submitted') learn(runs, event);
      if (counts(event, runs.get(event.task_id ?? ''), type, wanted)) add(buckets, event, type, wanted.granularity);
    }
    const usage = [...buckets.values()].toSorted((a, b) => key(a).localeCompare(key(b)));
    const { start, end, granularity } = wanted;
    return { body: { usage, start, end, granularity } };
  };
}

function learn(runs: Map<string, RunMetadata>, { payload, replayed }: CoreEvent): void {
  const task = payload.task as Task;
  const metadata = runMetadataOf(task);
  if (metadata && !replayed) runs.set(task.id, metadata);
}

function counts(event: CoreEvent, run: RunMetadata | undefined, type: UsageEvent, wanted: Query): boolean {
  if (!run || event.created_at < wanted.start || (wanted.type && wanted.type !== type)) return false;
  // Another attempt is work, but no other run.
  if (type === 'run.created' && run.attempt > 1) return false;
  const here = wanted.workspace === undefined || run.workspace_id === wanted.workspace;
  return here && (wanted.subject === undefined || run.subject_id === wanted.subject);
}

function add(buckets: Map<string, Bucket>, event: CoreEvent, type: UsageEvent, granularity: Granularity): void {
  const [period_start, period_end] = periodOf(event.created_at, granularity);
  const fresh: Bucket = { period_start, period_end, event_type: type, count: 0, quantity: 0 };
  const bucket = buckets.get(key(fresh)) ?? fresh;
  bucket.count += 1;
  const { input_tokens, output_tokens } = event.payload;
  bucket.quantity += type === 'tokens.consumed' ? amount(input_tokens) + amount(output_tokens) : 1;
  buckets.set(key(fresh), bucket);
}

function amount(value: unknown): number {
  return typeof value === 'number' && value > 0 ? value : 0;
}

function key({ period_start, event_type }: Bucket): string {
  return `${period_start} ${event_type}`;
}

function periodOf(at: string, granularity: Granularity): readonly [string, string] {
  const time = new Date(at);
  const [year, month, day, hour] = [time.getUTCFullYear(), time.getUTCMonth(), time.getUTCDate(), time.getUTCHours()];
  const utc = (...parts: [number, number, number, number]) => new Date(Date.UTC(...parts)).toISOString();
  switch (granularity) {
    case 'hour':
      return [utc(year, month, day, hour), utc(year, month, day, hour + 1)];
    case 'day':
      return [utc(year, month, day, 0), utc(year, month, day + 1, 0)];
    case 'month':
      return [utc(year, month, 1, 0), utc(year, month + 1, 1, 0)];
  }
}

function readQuery(query: URLSearchParams, now: string): Query {
  const start = timeIn(query, 'start') ?? `${now.slice(0, 7)}-01T00:00:00.000Z`;
  const end = timeIn(query, 'end') ?? now;
  if (start > end) throw invalid();
  return {
    workspace: query.get('workspace_id') ?? undefined,
    subject: query.get('subject_id') ?? undefined,
    type: wordIn(query, 'event_type', USAGE_EVENTS),
    start,
    end,
    granularity: wordIn(query, 'granularity', GRANULARITIES) ?? 'day',
  };
}

function timeIn(query: URLSearchParams, name: string): string | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  if (!TIME.test(text) || Number.isNaN(Date.parse(text))) throw invalid();
  return new Date(text).toISOString();
}

function wordIn<const Words extends readonly string[]>(
  query: URLSearchParams,
  name: string,
  words: Words,
): Words[number] | undefined {
  const text = query.get(name);
  if (text !== null && !words.includes(text)) throw invalid();
  return text ?? undefined;
}

function invalid(): RunsRefusal {
  return new RunsRefusal('USAGE_QUERY_PARAMS_INVALID');
}
