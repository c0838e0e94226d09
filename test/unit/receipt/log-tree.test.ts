/** The tree over the log grows behind it, in as many steps as it takes, to the root that all events together have. */
import { expect, test } from 'vitest';
import { eventLeaf, logRoot } from '../../../src/receipt/merkle/event-hash.ts';
import { growLogTree } from '../../../src/receipt/merkle/log-tree.ts';
import { rootOf } from '../../../src/receipt/merkle/merkle.ts';
import { quick } from '../../support/gateway/agents.ts';
import { openTestGateway } from '../../support/gateway/test-gateway.ts';

test('a tree that was grown in several steps has the root of the whole log', async () => {
  const life = await openTestGateway({ agents: [quick()] });
  const { store } = life.runtime;
  const room = await life.room();
  const work = async () => life.until((await room.task()).id);
  await work();
  await growLogTree(store, { most: 3 });
  await growLogTree(store);
  for (let count = 0; count < 3; count += 1) await work();
  const before = (await store.logTree.state()).size;
  const { state, news } = await growLogTree(store);
  const all = await life.all();
  expect(state.size).toBe(all.length);
  expect(rootOf(state)).toBe(logRoot(all));
  expect(news).toBe(true);
  const [node] = await store.logTree.nodes([{ level: 0, index: before }]);
  expect(node?.hash).toBe(eventLeaf(all[before]!));
});
