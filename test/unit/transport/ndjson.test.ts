/** Lines read in both ways are the same lines, and lines written together are whole and in order. */
import { PassThrough, Readable, Writable } from 'node:stream';
import { expect, test } from 'vitest';
import { forEachLine, lineWriter, readLines } from '../../../src/transport/ndjson/ndjson.ts';

/** What comes of these pieces: lines, and in their place what was skipped. */
async function reported(pieces: readonly (string | Buffer)[], way: 'read' | 'heard'): Promise<readonly string[]> {
  const all: string[] = [];
  const options = { limit: 8, skipped: (why: string, head: string) => all.push(`(${why}: ${head})`) };
  const stream = Readable.from(pieces);
  if (way === 'heard') await forEachLine(stream, options, (line) => all.push(line));
  else for await (const line of readLines(stream, options)) all.push(line);
  return all;
}

const PIECES = ['one\ntw', 'o\n\n \nfar too long\nth', 'ree\n', Buffer.from([0xff, 0x0a]), 'last'];
const REPORTED = [
  'one',
  'two',
  '(a line is longer than 8 bytes: far too long)',
  'three',
  '(a line is not UTF-8: \ufffd)',
  'last',
];

test('lines are found wherever they are cut, and what is skipped is reported in its place', async () => {
  expect(await reported(PIECES, 'read')).toEqual(REPORTED);
  expect(await reported(PIECES, 'heard')).toEqual(REPORTED);
});

test('a stream that breaks off has no last line, and that is no error', async () => {
  const received: string[] = [];
  const stream = new PassThrough();
  const over = forEachLine(stream, { limit: 100 }, (line) => received.push(line));
  stream.write('whole\nhalf');
  await new Promise((resolve) => setImmediate(resolve));
  stream.destroy();
  await over;
  expect(received).toEqual(['whole']);
});

test('an error over a line rejects the read, and no later line is handed over', async () => {
  const received: string[] = [];
  const over = forEachLine(Readable.from(['one\ntwo\n', 'three\n']), { limit: 100 }, (line) => {
    received.push(line);
    if (line === 'two') throw new Error('not this one');
  });
  await expect(over).rejects.toThrow('not this one');
  expect(received).toEqual(['one', 'two']);
});

test('lines of one moment leave as one piece, in order; those before an end leave before it', async () => {
  const pieces: string[] = [];
  const stream = new Writable({
    decodeStrings: false,
    write: (chunk, _, done) => {
      pieces.push(chunk);
      done();
    },
    writev: (chunks, done) => {
      pieces.push(chunks.map(({ chunk }) => chunk).join(''));
      done();
    },
  });
  const write = lineWriter(stream, { batched: true });
  await Promise.all([write('a'), Promise.resolve().then(() => write('b')), write('c')]);
  await new Promise((resolve) => setImmediate(resolve));
  expect(pieces).toEqual(['a\nc\nb\n']);
  void write('d');
  void write('e');
  stream.end();
  await new Promise((resolve) => stream.once('finish', resolve));
  expect(pieces).toEqual(['a\nc\nb\n', 'd\ne\n']);
});
