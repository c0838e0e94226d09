/** Lines as bytes: cut where they end and nowhere else, passed together where they may, held while asked to. */
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { type LineVerdict, readByteLines } from '../../../src/transport/ndjson/byte-lines.ts';
import { createOrderedWriter } from '../../../src/transport/ndjson/ordered-writer.ts';

function reading(line: (text: string) => LineVerdict = () => true, limit = 100) {
  const stream = new PassThrough();
  const passed: string[] = [];
  const seen: string[] = [];
  const ends: (string | undefined)[] = [];
  const lines = readByteLines(stream, {
    limit,
    line(bytes) {
      seen.push(bytes.toString());
      return line(bytes.toString());
    },
    pass: (bytes) => passed.push(bytes.toString()),
    end: (why) => ends.push(why?.message),
  });
  return { stream, passed, seen, ends, lines };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

test('lines that arrive together leave together, and a line in pieces leaves whole', async () => {
  const { stream, passed, seen } = reading();
  stream.write('one\ntwo\r\n\nthr');
  await turn();
  stream.write('ee\nfour\n');
  await turn();
  expect(seen).toEqual(['one\n', 'two\r\n', '\n', 'three\n', 'four\n']);
  expect(passed).toEqual(['one\ntwo\r\n\n', 'three\n', 'four\n']);
});

test('what stands before a line that is dealt with has left when it is', async () => {
  const order: string[] = [];
  const { stream, passed } = reading((text) => (text === 'stop\n' ? () => order.push(passed.join('')) : true));
  stream.write('a\nb\nstop\nc\n');
  await turn();
  expect(order).toEqual(['a\nb\n']);
  expect(passed).toEqual(['a\nb\n', 'c\n']);
});

test('lines that need no look leave with those around them, and one that began earlier is looked at', async () => {
  const stream = new PassThrough();
  const [passed, seen]: string[][] = [[], []];
  readByteLines(stream, {
    limit: 100,
    through(chunk, from) {
      const known = /^(?:same\n)*/.exec(chunk.toString().slice(from));
      return from + (known?.[0].length ?? 0);
    },
    line(bytes) {
      seen?.push(bytes.toString());
      return bytes.toString() === 'stop\n' ? () => passed?.push('(dealt with)') : true;
    },
    pass: (bytes) => passed?.push(bytes.toString()),
    end() {},
  });
  stream.write('same\nsame\none\nsame\nstop\nsame\nsa');
  await turn();
  stream.write('me\nsame\n');
  await turn();
  expect(seen).toEqual(['one\n', 'stop\n', 'same\n']);
  expect(passed).toEqual(['same\nsame\none\nsame\n', '(dealt with)', 'same\n', 'same\n', 'same\n']);
});

test('nothing is looked at while asked to wait, and nothing is lost', async () => {
  const { stream, passed, seen, lines, ends } = reading((text) => (text === 'hold\n' ? () => lines.pause() : true));
  stream.write('a\nhold\nb\nc\n');
  await turn();
  stream.write('d\n');
  stream.end();
  await turn();
  expect(seen).toEqual(['a\n', 'hold\n']);
  expect(ends).toEqual([]);
  lines.resume();
  await turn();
  await turn();
  expect(passed.join('')).toBe('a\nb\nc\nd\n');
  expect(ends).toEqual([undefined]);
});

test('a last line without its end is a line, and stays without', async () => {
  const { stream, passed, ends } = reading();
  stream.end('a\nlast');
  await turn();
  await turn();
  expect(passed).toEqual(['a\n', 'last']);
  expect(ends).toEqual([undefined]);
});

test('a line without end is not waited for for ever', async () => {
  const { stream, passed, ends } = reading(() => true, 10);
  stream.write('ok\n');
  for (let at = 0; at < 20; at += 1) stream.write('xxxx');
  await turn();
  expect(passed).toEqual(['ok\n']);
  expect(ends).toEqual(['a line is longer than 10 bytes']);
});

test('bytes leave in the order of their places, whatever they wait for', async () => {
  const out = new PassThrough();
  const writer = createOrderedWriter(out, () => {});
  let release: () => void = () => {};
  const ready = new Promise<void>((resolve) => {
    release = resolve;
  });
  writer.send(Buffer.from('1'));
  writer.sendAfter(ready, () => Buffer.from('2'));
  writer.send(Buffer.from('3'));
  writer.sendAfter(Promise.reject(new Error('no')), () => Buffer.from('never'));
  writer.send(Buffer.from('4'));
  await turn();
  expect(String(out.read())).toBe('1');
  release();
  await turn();
  expect(String(out.read())).toBe('234');
});

test('a full sink is said to be full, and there is room again once it was read', async () => {
  const out = new PassThrough({ highWaterMark: 4 });
  let rooms = 0;
  const writer = createOrderedWriter(out, () => {
    rooms += 1;
  });
  writer.send(Buffer.alloc(100));
  expect(writer.full).toBe(true);
  out.resume();
  await turn();
  await turn();
  expect({ full: writer.full, rooms: rooms > 0 }).toEqual({ full: false, rooms: true });
});

test('what comes one by one leaves at once; the rest of a flood leaves together, in its order', async () => {
  const out = new PassThrough({ highWaterMark: 1 << 20 });
  const pieces: string[] = [];
  out.on('data', (piece: Buffer) => pieces.push(String(piece)));
  const writer = createOrderedWriter(out, () => {});
  const said = Array.from({ length: 500 }, (_, n) => `${n}\n`);
  writer.send(Buffer.from(said[0] as string));
  await turn();
  expect(pieces).toEqual(['0\n']);
  for (const line of said.slice(1)) writer.send(Buffer.from(line));
  await writer.flushed();
  expect(pieces.join('')).toBe(said.join(''));
  expect(pieces.length).toBeLessThan(100);
});

test('a line that is too long is skipped where that is asked for, and one without an end is cut off', async () => {
  const stream = new PassThrough();
  const passed: string[] = [];
  let skipped = 0;
  const ended = new Promise<Error | undefined>((resolve) => {
    readByteLines(stream, {
      limit: 8,
      line: () => true,
      tooLong: () => {
        skipped += 1;
      },
      pass: (bytes) => {
        passed.push(bytes.toString());
      },
      end: resolve,
    });
  });
  for (const piece of ['one\n', 'longer than ', 'eight\ntwo\n', 'much longer than eight\nthree\n']) stream.write(piece);
  for (let at = 0; at < 4; at += 1) stream.write('without');
  expect((await ended)?.message).toBe('a line is longer than 8 bytes');
  expect(passed.join('')).toBe('one\ntwo\nthree\n');
  expect(skipped).toBe(3);
});
