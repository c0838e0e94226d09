/** Events, receipts and random histories for the tests of a store, and readers that collect its streams. */
import fc from 'fast-check';
import { type CoreEvent, type EventDraft, vendorEvent } from '../../../src/model/events.ts';
import type { Fault } from '../../../src/model/faults.ts';
import type { Receipt } from '../../../src/model/receipt.ts';
import type { ChainHead, SealedReceipt, Store } from '../../../src/ports/index.ts';
import { eventually } from '../../support/eventually.ts';

/** An event as core writes them: inside a task, with the task as its resource. */
export function taskEvent(
  task: string,
  payload: EventDraft['payload'] = {},
  rest: Partial<EventDraft> = {},
): EventDraft {
  return {
    event: 'vendor.tollbridge.note',
    resource: { object: 'task', id: task },
    payload,
    task_id: task,
    session_id: 'session_1',
    workspace_id: 'workspace_1',
    ...rest,
  } as EventDraft;
}

export const randomEvent = fc
  .record({
    task: fc.nat(5),
    session: fc.option(fc.nat(2)),
    kind: fc.constantFrom('note', 'note', 'note', 'withdrawn'),
    status: fc.option(fc.constantFrom('WORKING', 'COMPLETED')),
  })
  .map(({ task, session, kind, status }) =>
    taskEvent(`task_${task}`, status ? { status } : {}, {
      event: vendorEvent(`task.${kind}`),
      session_id: session === null ? null : `session_${session}`,
    }),
  );
export const randomUnits = fc.array(fc.array(randomEvent, { maxLength: 4 }), { minLength: 1, maxLength: 30 });

/** A stand-in for the real seal: what the store has to get right is the head it hands over and what it keeps. */
export function sealFor(id: string, head: ChainHead): SealedReceipt {
  const receipt = { id, previous: head.previous, size: head.tree.size } as unknown as Receipt;
  return {
    id,
    hash: `hash-${id}`,
    task_id: `task_${id}`,
    receipt,
    tree: { size: head.tree.size + 1, frontier: [...head.tree.frontier, id] },
    nodes: [{ level: 0, index: head.tree.size, hash: `leaf-${id}` }],
  };
}

/** Each run of a property has tasks of its own, so that each begins with tasks nobody has heard of. */
export function ofRun(event: EventDraft, run: number): EventDraft {
  const id = `${event.resource.id}_${run}`;
  return { ...event, resource: { object: 'task', id }, task_id: id };
}

/** All rows, and what follows each task of a run in the order: nothing but a refusal for one that never was. */
export async function everyRow(store: Store, run: number): Promise<unknown[]> {
  const objects = ['task', 'session'];
  const found = await Promise.all(objects.map((object) => store.list({ object, limit: 10_000 })));
  const tails = await Promise.all(
    [0, 1, 2, 3, 4, 5].map((n) =>
      store
        .list({ object: 'task', after: `task_${n}_${run}`, limit: 10_000 })
        .then((rows) => rows.map(({ id }) => id))
        .catch((fault: Fault) => fault.kind),
    ),
  );
  return [...found, ...tails];
}

export async function collect(events: AsyncIterable<CoreEvent>): Promise<CoreEvent[]> {
  const all: CoreEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

export async function take(events: AsyncIterable<CoreEvent>, count: number): Promise<CoreEvent[]> {
  const some: CoreEvent[] = [];
  for await (const event of events) {
    some.push(event);
    if (some.length === count) break;
  }
  return some;
}

/** Collects in the background until the stream ends. */
export function watch(events: AsyncIterable<CoreEvent>): { seen: CoreEvent[]; over: Promise<void> } {
  const seen: CoreEvent[] = [];
  const over = (async () => {
    for await (const event of events) seen.push(event);
  })();
  return { seen, over };
}

export async function until(condition: () => boolean): Promise<void> {
  await eventually(condition);
}
