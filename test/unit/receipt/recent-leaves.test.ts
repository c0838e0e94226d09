/** Leaves that accounts have made are taken for the tree over the log: it comes out the same as when every event is read. */
import { expect, test } from 'vitest';
import { storyLog } from '../../../fixtures/receipts/story.ts';
import { type CoreEvent, eventId } from '../../../src/model/events.ts';
import type { EventRange, Store } from '../../../src/ports/index.ts';
import { eventLeaf, leafBytes, logRoot } from '../../../src/receipt/merkle/event-hash.ts';
import { growLogTree } from '../../../src/receipt/merkle/log-tree.ts';
import { rootOf } from '../../../src/receipt/merkle/merkle.ts';
import { createRecentLeaves } from '../../../src/receipt/merkle/recent-leaves.ts';
import { quick } from '../../support/gateway/agents.ts';
import { openTestGateway } from '../../support/gateway/test-gateway.ts';

const at = (position: number): CoreEvent => ({ ...storyLog()[0]!, id: eventId(position) });

test('the tree over a log is the same whether leaves were at hand or all events were read', async () => {
  const life = await openTestGateway({ agents: [quick()] });
  const { store, leaves } = life.runtime;
  const room = await life.room();
  const work = async () => life.until((await room.task()).id);
  await work();
  // Begun by reading: nothing says which event is the first.
  await growLogTree(store, { leaves });
  for (let count = 0; count < 3; count += 1) await work();
  const before = (await store.logTree.state()).size;
  const read: CoreEvent[] = [];
  const counted: Pick<Store, 'read' | 'logTree'> = {
    logTree: store.logTree,
    read: (range: EventRange) => noting(store.read(range), read),
  };
  const { state, news } = await growLogTree(counted, { leaves });
  const all = await life.all();
  expect(state.size).toBe(all.length);
  expect(rootOf(state)).toBe(logRoot(all));
  expect(news).toBe(true);
  // What belongs to no task, and what a task ended with, stands between the leaves at hand.
  expect(read.length).toBeGreaterThan(0);
  expect(read.length).toBeLessThan(all.length - before);
  const [node] = await store.logTree.nodes([{ level: 0, index: before }]);
  expect(node?.hash).toBe(eventLeaf(all[before]!));
});

test('a leaf is found where it was noted, and the next one across a gap', () => {
  const leaves = createRecentLeaves();
  for (const position of [5, 6, 5_000]) leaves.note(at(position), leafBytes(at(position)));
  expect(leaves.at(5)).toBe(leafBytes(at(5)));
  expect(leaves.at(7)).toBeUndefined();
  expect([1, 6, 7, 5_001].map(leaves.nextFrom)).toEqual([5, 6, 5_000, undefined]);
});

test('what the tree holds is forgotten and not taken again', () => {
  const leaves = createRecentLeaves();
  leaves.note(at(5), leafBytes(at(5)));
  leaves.forgetBefore(2_000);
  leaves.note(at(6), leafBytes(at(6)));
  expect([leaves.at(5), leaves.at(6), leaves.nextFrom(0)]).toEqual([undefined, undefined, undefined]);
});

test('a log that nobody grows a tree over does not fill the memory: the oldest leaves go', () => {
  const leaves = createRecentLeaves();
  const leaf = leafBytes(at(1));
  for (let position = 1; position < 300_000; position += 512) leaves.note(at(position), leaf);
  expect(leaves.at(1)).toBeUndefined();
  expect(leaves.at(299_521)).toBe(leaf);
});

async function* noting(source: AsyncIterable<CoreEvent>, into: CoreEvent[]): AsyncGenerator<CoreEvent> {
  for await (const event of source) {
    into.push(event);
    yield event;
  }
}
