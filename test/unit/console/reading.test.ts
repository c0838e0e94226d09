/** What the console's lists and counts cost: each row is read once, however many there are and however often they are drawn. */
import { expect, test } from 'vitest';
import { extend, extendChoices, type FilterName, wantedBy } from '../../../src/console/app/filters.ts';
import { type EventRow, type LogEvent, toRow } from '../../../src/console/app/rows.ts';
import { spansOf } from '../../../src/console/app/spans.ts';
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

test('tools of one name are told apart by their server, and calls of one number by their task', () => {
  const begun = (server: string, task_id: string) =>
    row(
      'tool.requested',
      { tool_call_id: 'call_1', name: 'search', server, effect: 'read' },
      { actor: 'agent:demo', task_id },
    );
  const over = (task_id: string, after: number) =>
    row(
      'tool.completed',
      { tool_call_id: 'call_1', name: 'search' },
      { task_id, created_at: new Date(AT + made + after).toISOString() },
    );
  const rows = [begun('files', 'task_1'), begun('web', 'task_2'), over('task_2', 20_000), over('task_1', 50_000)];
  const { tools } = countedSince(extendTally(undefined, { rows, epoch: 1 }), 0);
  expect(tools.map(({ name, server, calls }) => [name, server, calls]).sort()).toEqual([
    ['search', 'files', 1],
    ['search', 'web', 1],
  ]);
  const slow = tools.find(({ server }) => server === 'files')?.times[0] ?? 0;
  const quick = tools.find(({ server }) => server === 'web')?.times[0] ?? 0;
  expect([slow > 49_000, quick < 21_000]).toEqual([true, true]);
  // The rows behind the numbers: the end of a call names its server, caller and effect no more than its beginning did.
  const wanted = wantedBy(new URLSearchParams('tool=search&server=web&effect=read&agent=agent:demo'));
  expect(rows.filter(wanted).map(({ event, task }) => [event, task])).toEqual([
    ['tool.requested', 'task_2'],
    ['tool.completed', 'task_2'],
  ]);
  const none = row(
    'tool.requested',
    { tool_call_id: 'call_2', name: 'search' },
    { actor: 'agent:demo', task_id: 'task_3' },
  );
  expect([...rows, none].filter(wantedBy(new URLSearchParams('tool=search&server=')))).toEqual([none]);
});

test('an agent has one name in rows, however an event spells it', () => {
  const submitted = row('task.submitted', { agent: 'demo', task: { input: { text: 'read plan' } } }, { actor: 'ana' });
  const called = row('agent.tool_use', { name: 'read_note' }, { actor: 'agent:demo' });
  expect([submitted.agent, called.agent]).toEqual(['agent:demo', 'agent:demo']);
  expect([submitted.person, submitted.text]).toEqual(['ana', 'read plan']);
});

test('a period has a beginning and an end', () => {
  const rows = [decided('a', 'allow'), decided('b', 'allow'), decided('c', 'allow')];
  const [first, second, third] = rows.map(({ at }) => at);
  const between = wantedBy(new URLSearchParams({ since: String(second), until: String(third) }));
  expect(rows.filter(between).map(({ tool }) => tool)).toEqual(['b']);
  expect(rows.filter(wantedBy(new URLSearchParams({ until: String(first) })))).toEqual([]);
});

test('work that was handed over stands inside its handoff, and a model call says what it used', () => {
  const event = (name: string, task_id: string, payload: object, after: number): LogEvent => ({
    ...{ id: `evt_${String(after).padStart(16, '0')}`, event: name, task_id, payload: { ...payload } },
    created_at: new Date(AT + after).toISOString(),
  });
  const spans = spansOf([
    event('task.submitted', 'task_1', { agent: 'demo', task: { input: { text: 'hand it over' } } }, 1),
    event('span.completed', 'task_1', { span: { call_id: 'llm_1' }, model: { model: 'm' } }, 2),
    event(
      'vendor.tollbridge.usage',
      'task_1',
      { call_id: 'llm_1', input_tokens: 5, output_tokens: 1200, usd_micros: 2500 },
      3,
    ),
    event(
      'task.submitted',
      'task_2',
      { agent: 'second', task: { parent_task_id: 'task_1', input: { text: 'do it' } } },
      4,
    ),
    event('agent.handoff', 'task_1', { target_agent: 'second', task_id: 'task_2', status: 'accepted' }, 5),
    event('agent.handoff', 'task_2', { target_agent: 'second', task_id: 'task_1', status: 'accepted' }, 6),
    event('tool.requested', 'task_2', { tool_call_id: 'call_1', name: 'read_note', server: 'demo' }, 7),
    event('tool.completed', 'task_2', { tool_call_id: 'call_1' }, 8),
    event('task.completed', 'task_2', {}, 9),
    event('agent.handoff', 'task_1', { target_agent: 'second', task_id: 'task_2', status: 'completed' }, 10),
    event('task.completed', 'task_1', {}, 11),
  ]);
  expect(spans.map(({ depth, kind, name, note, tone }) => [depth, kind, name, note, tone])).toEqual([
    [0, 'task', 'demo', 'hand it over', 'good'],
    [1, 'model', 'm', '5 tokens in · 1,200 tokens out · 0.0025 USD', ''],
    [1, 'handoff', 'second', '', 'good'],
    [2, 'task', 'second', 'do it', 'good'],
    [3, 'call', 'demo · read_note', '', 'good'],
  ]);
});
