/** Events and receipts that are alike: however a store keeps them, each reads back as the text that was written. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type EventDraft, eventId } from '../../../src/model/events.ts';
import type { Receipt } from '../../../src/model/receipt.ts';
import type { Store } from '../../../src/ports/index.ts';
import { collect, sealFor, taskEvent } from './events.ts';
import type { Scene } from './scenes/scene.ts';

const text = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    'task_1',
    'a "quoted" word',
    '\\u0001',
    '\u0001',
    '\ud800',
    'evt_0000000000000007',
    'evt_000000000000000x',
  ),
  fc.constantFrom('2026-11-16T09:00:00.000Z', '2026-02-30T09:00:00.000Z', '0000-01-01T00:00:00.000Z', 'x'.repeat(121)),
  fc.constantFrom('sha256:3b58f2b8c22564d1b3d666c2336d097e6019655ebaf50f38b358552db03b888d', '{"a":1}', ''),
);
const json = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    text,
    fc.constantFrom(0, -0, 1, 93, 94, -1, 1e21, 0.1, Number.MAX_SAFE_INTEGER, null, true, false, {}, []),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(fc.oneof(text, fc.constantFrom('__proto__', 'toJSON', '7', 'id')), tie('value'), { maxKeys: 4 }),
  ),
}));
const payload = fc.dictionary(fc.string(), json.value, { maxKeys: 4 }) as fc.Arbitrary<EventDraft['payload']>;

export function repeatsPromises({ store, append, fill, reopen, second, clock }: Scene): void {
  describe('events that repeat', () => {
    const texts = async (of: Store = store, after?: string) =>
      (await collect(of.read({ stream: { of: 'all' }, ...(after && { after }) }))).map((one) => JSON.stringify(one));

    test('any JSON reads back as the text that was written, the first time and the tenth', async () => {
      let run = 0;
      let last: string | undefined;
      await fc.assert(
        fc.asyncProperty(payload, text, payload, async (payload, name, ext) => {
          const rest = { event: `vendor.x.${name}` as 'vendor.tollbridge.note', ext: { x: ext }, metadata: payload };
          const drafts = Array.from({ length: 10 }, (_, n) => taskEvent(`task_${n % 3}`, payload, rest));
          run += drafts.length;
          const written = (await append(...drafts)).events.map((one) => JSON.stringify(one));
          expect(await texts(store, last)).toEqual(written);
          const kinds = await collect(
            store.read({ stream: { of: 'all' }, kinds: [`vendor.x.${name}`], ...(last && { after: last }) }),
          );
          expect(kinds.map((one) => JSON.stringify(one))).toEqual(written);
          last = JSON.parse(written.at(-1)!).id;
        }),
        { numRuns: 40 },
      );
      await reopen();
      expect((await texts()).length).toBe(run);
    });

    test('two stores on one log read what the other wrote, and which of them used a word first makes no difference', async () => {
      const other = await second();
      const written: string[] = [];
      for (let n = 0; n < 24; n++) {
        const event = taskEvent(`task_of_some_length_${n % 3}`, { step: 'the same words', n, list: [{ n }, { n }] });
        const { events } = await (n % 3 === 0 ? other : store).commit({ decide: () => ({ events: [event, event] }) });
        written.push(...events.map((one) => JSON.stringify(one)));
        expect(await texts(n % 2 === 0 ? store : other)).toEqual(written);
      }
      await reopen();
      await append(taskEvent('task_of_some_length_1', { step: 'the same words', n: 24, list: [] }));
      expect((await texts(other)).slice(0, -1)).toEqual(written);
      expect(await texts()).toEqual(await texts(other));
    });

    test('a unit that fails takes no word with it that others use', async () => {
      const event = (n: number) => taskEvent('task_of_some_length', { step: 'the same words', n });
      await append(event(0));
      const results = await Promise.allSettled(
        Array.from({ length: 12 }, (_, n) =>
          store.commit({
            decide: () => ({
              events: [event(n + 1), event(n + 1)],
              ...(n % 2 === 0 && {
                receipt: {
                  chain: 'chain',
                  seal: () => {
                    throw new Error('no seal');
                  },
                },
              }),
            }),
          }),
        ),
      );
      expect(results.map(({ status }) => status).filter((status) => status === 'rejected')).toHaveLength(6);
      const read = await collect(store.read({ stream: { of: 'all' } }));
      expect(read.map(({ payload, sequence }) => [payload.step, sequence])).toEqual(
        Array.from({ length: 13 }, (_, n) => ['the same words', n + 1]),
      );
    });

    test('words go with the events that used them, and the rest is read as before', async () => {
      const event = (n: number) =>
        taskEvent(`task_number_${n % 5}`, { status: 'COMPLETED', step: 'the same words', n });
      await fill(16_500, event);
      clock.set('2026-11-16T10:00:00.000Z');
      await fill(500, event);
      expect(await store.retain('2026-11-16T09:30:00.000Z')).toEqual({ dropped: 16_500 });
      const rest = await texts();
      expect(rest).toHaveLength(500);
      await reopen();
      expect(await texts()).toEqual(rest);
      await append(event(17_000));
      expect((await texts()).slice(0, -1)).toEqual(rest);
      expect(await store.event(eventId(17_001))).toMatchObject({ payload: { step: 'the same words', n: 17_000 } });
    });

    test('receipts read back as they were sealed, also when the events are gone', async () => {
      const sealed: string[] = [];
      for (let n = 0; n < 20; n++) {
        await store.commit({
          decide: () => ({
            events: [taskEvent('task_1', { status: 'COMPLETED' })],
            receipt: {
              chain: 'chain',
              seal: (head) => {
                const found = sealFor(`receipt_${n}`, head);
                const receipt = { ...found.receipt, by: 'the same words', list: [{ n }, { n: 'x' }] } as Receipt;
                sealed.push(JSON.stringify(receipt));
                return { ...found, receipt };
              },
            },
          }),
        });
      }
      clock.set('2026-11-17T10:00:00.000Z');
      await store.retain('2026-11-17T00:00:00.000Z');
      await reopen();
      const kept = await store.receipts({ chain: 'chain' });
      expect(kept.map(({ receipt }) => JSON.stringify(receipt))).toEqual(sealed);
      expect(JSON.stringify((await store.receipt('receipt_19'))?.receipt)).toBe(sealed[19]);
    });
  });
}
