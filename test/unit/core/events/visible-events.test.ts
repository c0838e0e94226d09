/** A tenant that sees little of a long log reads what it sees and nothing else, in the order and with the cursors of the log. */
import { expect, test } from 'vitest';
import type { Actor } from '../../../../src/model/actions.ts';
import type { CoreEvent } from '../../../../src/model/events.ts';
import type { EventRange, Store } from '../../../../src/ports/index.ts';
import { openTestGateway } from '../../../support/gateway/test-gateway.ts';

const acme: Actor = { id: 'wile', kind: 'person', tenant_id: 'acme', scopes: ['*'] };
const other: Actor = { id: 'bugs', kind: 'person', tenant_id: 'other', scopes: ['*'] };

/** Counts what is taken out of the log. */
function counted() {
  const taken = { events: 0 };
  const watch = (store: Store): Store => ({
    ...store,
    read: (range) =>
      (async function* () {
        for await (const event of store.read(range)) {
          taken.events += 1;
          yield event;
        }
      })(),
  });
  return { taken, watch };
}

async function scene() {
  const { taken, watch } = counted();
  const at = await openTestGateway({ store: watch });
  const workspace = async (actor: Actor, name: string) =>
    (await at.send('resource.create', { object: 'workspace', body: { name, root: 'harn://w' } }, { actor })).resource
      .id;
  const mine = [await workspace(acme, 'a'), await workspace(acme, 'b')];
  const theirs = [await workspace(other, 'c'), await workspace(other, 'd'), await workspace(other, 'e')];
  const talk = async (actor: Actor, workspace_id: string) => {
    await at.send('session.create', { workspace_id }, { actor });
  };
  for (let round = 0; round < 40; round += 1) {
    for (const id of theirs) await talk(other, id);
    if (round % 10 === 0) await talk(acme, mine[(round / 10) % 2]!);
  }
  const events = async (actor: Actor, range: Partial<EventRange> = {}) => {
    const found: CoreEvent[] = [];
    taken.events = 0;
    for await (const event of at.bridge.events(actor, { stream: { of: 'all' }, ...range })) found.push(event);
    return found;
  };
  return { at, mine, taken, events };
}

test('the same events as the whole log holds for it, without reading the rest', async () => {
  const { at, mine, taken, events } = await scene();
  const all = (await at.all()).filter(({ workspace_id }) => mine.includes(workspace_id ?? ''));
  const seen = await events(acme);
  expect(seen.map(({ id }) => id)).toEqual(all.map(({ id }) => id));
  expect(taken.events).toBe(all.length);
  expect(new Set(seen.map(({ workspace_id }) => workspace_id))).toEqual(new Set(mine));
});

test('pages go on from a cursor, and a page reads a page', async () => {
  const { taken, events } = await scene();
  const whole = (await events(acme)).map(({ id }) => id);
  const paged: string[] = [];
  for (let after: string | undefined; ; ) {
    const page = await events(acme, { limit: 2, ...(after && { after }) });
    // Two to show, one more to know that there is more, and the first of the other workspace.
    expect(taken.events).toBeLessThanOrEqual(5);
    paged.push(...page.map(({ id }) => id));
    after = page.at(-1)?.id;
    if (page.length < 2) break;
  }
  expect(paged).toEqual(whole);
});

test('a caller that sees most of the log reads it straight through', async () => {
  const { at, mine, events } = await scene();
  const rest = (await at.all()).filter(({ workspace_id }) => workspace_id && !mine.includes(workspace_id));
  expect((await events(other)).map(({ id }) => id)).toEqual(rest.map(({ id }) => id));
});

test('someone who sees nothing reads nothing', async () => {
  const { taken, events } = await scene();
  expect(await events({ ...acme, tenant_id: 'nobody' })).toEqual([]);
  expect(taken.events).toBe(0);
});
