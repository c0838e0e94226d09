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

test('an event of many lines has a largest size, as a line has', async () => {
  async function* body(line: string) {
    for (let count = 0; count < 20; count += 1) yield Buffer.from(line);
  }
  const megabyte = 'x'.repeat(1024 * 1024);
  await expect(readSse(body(`data: ${megabyte}\n`)).next()).rejects.toThrow('an event of the stream is too long');
  await expect(readSse(body(megabyte)).next()).rejects.toThrow('a line of the event stream is too long');
});

test('an id without a value is an id: the stream has no place to go on from', async () => {
  async function* body() {
    yield Buffer.from('id: 7\ndata: a\n\nid\ndata: b\n\n');
  }
  const ids: unknown[] = [];
  for await (const { id } of readSse(body())) ids.push(id);
  expect(ids).toEqual(['7', '']);
});
