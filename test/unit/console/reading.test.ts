/** What the console's lists and counts cost: each row is read once, however many there are and however often they are drawn. */
import { expect, test } from 'vitest';
import { extend, extendChoices, type FilterName, wantedBy } from '../../../src/console/app/filters.ts';
import { type EventRow, type LogEvent, toRow } from '../../../src/console/app/rows.ts';
import { countedSince, extendTally, median } from '../../../src/console/app/tally.ts';

const AT = Date.parse('2026-05-01T10:00:30.000Z');
let made = 0;
function row(event: string, payload: object, more: Partial<LogEvent> = {}): EventRow {
  made += 1;
  const created_at = new Date(AT + made).toISOString();
  return toRow({ id: `evt_${String(made).padStart(16, '0')}`, event, created_at, payload: { ...payload }, ...more });
}

const decided = (tool: string, verdict: string, cost: object = {}) =>
  row('vendor.tollbridge.decided', { action: { tool, actor: { id: 'agent:demo' }, cost }, decision: { verdict } });

/** Rows that count how often any of them is looked at. */
function counted(rows: readonly EventRow[]) {
  const reads = { count: 0 };
  const watched = new Proxy(rows as EventRow[], {
    get(target, name, receiver) {
      if (typeof name === 'string' && /^\d+$/.test(name)) reads.count += 1;
      return Reflect.get(target, name, receiver);
    },
  });
  return { reads, watched };
}

test('a list, the choices of its filters and the counts read each row once while rows come', () => {
  const all = Array.from({ length: 2000 }, (_, at) => decided(`tool ${at % 5}`, at % 2 === 0 ? 'allow' : 'block'));
  for (const read of [
    (kept: unknown, feed: { rows: readonly EventRow[]; epoch: number }) =>
      extend(kept as never, feed, 'verdict=block', wantedBy(new URLSearchParams('verdict=block'))),
    (kept: unknown, feed: { rows: readonly EventRow[]; epoch: number }) =>
      extendChoices(kept as never, feed, ['tool', 'verdict'] satisfies FilterName[]),
    (kept: unknown, feed: { rows: readonly EventRow[]; epoch: number }) => extendTally(kept as never, feed),
  ]) {
    const rows: EventRow[] = [];
    const { reads, watched } = counted(rows);
    let kept: unknown;
    for (const one of all) {
      rows.push(one);
      // Drawn for each of them, and once more for another reason.
      kept = read(kept, { rows: watched, epoch: 1 });
      kept = read(kept, { rows: watched, epoch: 1 });
    }
    expect(reads.count).toBe(all.length);
    read(kept, { rows: watched, epoch: 2 });
    expect(reads.count, 'rows at the beginning are new').toBe(2 * all.length);
  }
});

test('calls are counted for tool and caller, with the time they ran and not the time a person had them', () => {
  const call = { tool_call_id: 'call_1', name: 'send_mail' };
  const rows = [
    decided('send_mail', 'escalate', { usd_micros: 2_000_000 }),
    row('tool.requested', call, { actor: 'agent:demo' }),
    row('tool.approved', { ...call, by: 'ana' }, { created_at: new Date(AT + 10_000).toISOString() }),
    row('tool.completed', call, { created_at: new Date(AT + 10_250).toISOString() }),
    decided('send_mail', 'block'),
    row('tool.requested', { ...call, tool_call_id: 'call_2' }, { actor: 'agent:demo' }),
    row('tool.failed', { ...call, tool_call_id: 'call_2' }),
    row('vendor.tollbridge.usage', { usd_micros: 500_000 }, { actor: 'agent:demo' }),
  ];
  const tally = extendTally(undefined, { rows, epoch: 1 });
  const { tools, callers, verdicts, failed } = countedSince(tally, 0);
  expect(Object.fromEntries(verdicts)).toEqual({ escalate: 1, block: 1 });
  expect(failed).toBe(1);
  expect(tools).toMatchObject([{ name: 'send_mail', calls: 2, decisions: 2, blocked: 1, failed: 1, usd: 2 }]);
  expect(callers).toMatchObject([{ name: 'agent:demo', calls: 2, failed: 1, usd: 2.5 }]);
  expect(Math.max(...(tools[0]?.times ?? []))).toBe(250);
  expect(median([3, 1, 2])).toBe(2);
  expect(countedSince(tally, AT + 3_600_000)).toMatchObject({ verdicts: new Map(), tools: [], callers: [] });
});

test('names that an agent makes up do not fill the memory', () => {
  const rows = Array.from({ length: 3000 }, (_, at) => decided(`made up ${at}`, 'block'));
  const { minutes } = extendTally(undefined, { rows, epoch: 1 });
  for (const { tools } of minutes.values()) expect(tools.size).toBeLessThanOrEqual(501);
});
