/** What a door follows is opened with its first look and left with its last, whenever that is. */
import { expect, test } from 'vitest';
import type { Access } from '../../../../src/core/access.ts';
import { createViews } from '../../../../src/core/commands/views.ts';
import type { Actor } from '../../../../src/model/actions.ts';
import { type CoreEvent, vendorEvent } from '../../../../src/model/events.ts';
import { Fault } from '../../../../src/model/faults.ts';
import type { Store } from '../../../../src/ports/index.ts';

const ANA: Actor = { id: 'ana', kind: 'person', scopes: ['*'] };
const event = (id: string, more: object = {}) =>
  ({ id, event: vendorEvent('x'), workspace_id: 'w', ...more }) as CoreEvent;

function scene(said: readonly CoreEvent[], streamFilter: Access['streamFilter'] = async () => undefined) {
  const steps: string[] = [];
  const follow: Store['follow'] = () => {
    steps.push('opened');
    const left = [...said];
    const iterator: AsyncIterableIterator<CoreEvent> = {
      [Symbol.asyncIterator]: () => iterator,
      next: async () => (left.length > 0 ? { value: left.shift()!, done: false } : { value: undefined, done: true }),
      return: async () => {
        steps.push('left');
        return { value: undefined, done: true };
      },
    };
    return iterator;
  };
  const views = createViews({ store: { follow } as Store, access: { streamFilter } as Access });
  const stream = { of: 'task', id: 't' } as const;
  const events = views.follow(ANA, { stream }, new AbortController().signal)[Symbol.asyncIterator]();
  return { events, steps };
}

test('nothing is opened before the first look, and leaving the loop leaves it', async () => {
  const { events, steps } = scene([event('1'), event('2')]);
  expect(steps).toEqual([]);
  expect(await events.next()).toEqual({ value: event('1'), done: false });
  await events.return?.();
  expect(steps).toEqual(['opened', 'left']);
  expect(await events.next()).toEqual({ value: undefined, done: true });
});

test('a follower that leaves while its stream is being opened leaves nothing open', async () => {
  const { events, steps } = scene([event('1')]);
  const first = events.next();
  await events.return?.();
  expect(await first).toEqual({ value: event('1'), done: false });
  expect(steps).toEqual(['opened', 'left']);
});

test('what is hidden is refused at the first look', async () => {
  const { events, steps } = scene([event('1')], async () => {
    throw new Fault('not_found', 'no task t');
  });
  await expect(events.next()).rejects.toThrow('no task t');
  await events.return?.();
  expect(steps).toEqual([]);
});

test('a stream that mixes owners shows one their own, and a replayed event says where its reader is', async () => {
  const mine = async ({ id }: CoreEvent) => id !== '2';
  const { events } = scene([event('1'), event('2'), event('3', { replay: { source: 'evt' } })], async () => mine);
  expect((await events.next()).value.id).toBe('1');
  expect((await events.next()).value).toMatchObject({ id: '3', replay: { source: 'evt', replay_cursor: '3' } });
  expect((await events.next()).done).toBe(true);
});
