/** What waits for the readers of a connection over HTTP: kept until it is read, within one bound for all of its streams. */
import { expect, test } from 'vitest';
import { createOutboxes } from '../../../adapters/acp/server/outbox.ts';
import type { SseStream } from '../../../src/transport/sse/write.ts';

/** A reader with or without room; `leave` is the end of its connection. */
function aReader() {
  const gone = new AbortController();
  const frames: string[] = [];
  const stream = {
    signal: gone.signal,
    write: (frame: string) => frames.push(frame) > 0,
    room: async () => true,
    close: () => gone.abort(),
  } as unknown as SseStream;
  const ids = () => frames.map((frame) => /^id: (\d+)/m.exec(frame)?.[1]);
  return { open: () => stream, ids, leave: () => gone.abort() };
}

function aConnection(limits: { unsent: number; streams: number }) {
  let overflows = 0;
  const outboxes = createOutboxes(limits, () => {
    overflows += 1;
  });
  return { outboxes, overflows: () => overflows };
}

test('streams that nobody reads are given up together, however many there are', async () => {
  const { outboxes, overflows } = aConnection({ unsent: 100, streams: 4 });
  for (let n = 0; n < 10; n += 1) await outboxes.of(`s${n}`).put('ten chars.');
  expect(overflows()).toBe(0);
  await outboxes.of('s10').put('one more');
  expect(overflows()).toBe(1);
});

test('what was read makes room, and nothing that waits is forgotten for another stream', async () => {
  const { outboxes, overflows } = aConnection({ unsent: 100, streams: 2 });
  await outboxes.of('first').put('waits here');
  for (let n = 0; n < 30; n += 1) {
    const reader = aReader();
    const stream = outboxes.of(`s${n}`);
    stream.attach(reader.open, undefined);
    await stream.put('ten chars.');
    reader.leave();
  }
  expect(overflows()).toBe(0);
  const late = aReader();
  outboxes.of('first').attach(late.open, undefined);
  expect(late.ids()).toEqual(['1']);
  expect(outboxes.read).toBe(true);
});

test('a stream that has a reader stays, though more streams are opened', async () => {
  const { outboxes } = aConnection({ unsent: 100, streams: 1 });
  const reader = aReader();
  outboxes.of('mine').attach(reader.open, undefined);
  for (const other of ['a', 'b', 'c']) outboxes.of(other);
  await outboxes.of('mine').put('for me');
  expect(reader.ids()).toEqual(['1']);
});
