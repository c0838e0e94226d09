/** An event stream reads the same however it is cut up, and its marks come also without an event. */
import { expect, test } from 'vitest';
import { readSse } from '../../../src/transport/sse/read.ts';

const TEXT = [
  '\uFEFFid: 1\r\nevent: first\r\ndata: one\r\ndata:  two\r\n\r\n',
  ': nothing but a comment\n\n',
  'retry: 250\rid: 2\r\r',
  'data\ndata: ü€😀\n\n',
  'id: bad\0id\nunknown: x\nretry: soon\ndata: kept: as it is\n\n',
  'event: none\n\n',
  'data: last\r\r',
].join('');

async function read(size: number) {
  const marks: unknown[] = [];
  const seen: unknown[] = [];
  let moved = 0;
  const bytes = Buffer.from(TEXT);
  async function* cut() {
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
  }
  const noted = { id: (id: string) => marks.push(id), retry: (ms: number) => marks.push(ms) };
  const count = () => {
    moved += 1;
  };
  for await (const message of readSse(cut(), count, noted)) seen.push(message);
  expect(moved).toBe(Math.ceil(bytes.length / size));
  return { seen, marks };
}

test.each([1, 2, 3, 7, 64, 10_000])('in pieces of %i', async (size) => {
  const { seen, marks } = await read(size);
  expect(seen).toEqual([
    { id: '1', event: 'first', data: 'one\n two' },
    { id: '2', event: 'message', data: '\nü€😀' },
    { id: '2', event: 'message', data: 'kept: as it is' },
    { id: '2', event: 'message', data: 'last' },
  ]);
  expect(marks).toEqual(['1', 250, '2']);
});

test('what is not ended was never said', async () => {
  async function* body() {
    yield Buffer.from('data: said\n\ndata: not ended\n');
  }
  const seen: string[] = [];
  for await (const { data } of readSse(body())) seen.push(data);
  expect(seen).toEqual(['said']);
});
