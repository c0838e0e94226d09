/** Packed bodies: the same text comes back, less of it is stored, and nothing that is stored can make a reader fail. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createPacker } from '../../../src/store/engine/packing/pack.ts';
import { createUnpacker } from '../../../src/store/engine/packing/unpack.ts';
import { createVocabulary } from '../../../src/store/engine/packing/vocabulary.ts';
import { append, event, sqliteHome } from '../../contract/store/scenes/sqlite-home.ts';

function packing() {
  const words: string[] = [];
  const vocabulary = createVocabulary({ add: (text) => words.push(text) - 1 });
  const { unpack, third } = createUnpacker((number) => words[number]);
  return { words, pack: createPacker(vocabulary), unpack, third, vocabulary };
}

const anything = fc.object({
  withBigInt: false,
  withNullPrototype: true,
  withDate: true,
  withSparseArray: true,
  withUnicodeString: true,
  values: [fc.string(), fc.string({ unit: 'binary' }), fc.double(), fc.boolean(), fc.constantFrom(null, undefined)],
});

describe('a packed object', () => {
  test('is the text that JSON makes of it, whatever is in it and however often it comes', () => {
    const { pack, unpack } = packing();
    fc.assert(
      fc.property(anything, (value) => {
        const text = JSON.stringify(value);
        for (let n = 0; n < 10; n++) expect(unpack(pack(value))).toBe(text);
      }),
      { numRuns: 300 },
    );
  });

  test('shows its third member without being unpacked', () => {
    const { pack, third } = packing();
    const value = { id: 'evt_0000000000000001', object: 'event', event: 'a "kind"', rest: { x: 1 } };
    expect(third(pack(value))).toBeUndefined();
    expect(third(pack(value))).toBe(JSON.stringify('a "kind"'));
  });

  test('whose text was cut, mixed up or lost its words is left as it is, and is no JSON', () => {
    const { pack, words } = packing();
    const value = {
      id: 'evt_0000000000000001',
      list: [1, 2, { a: 'some text', b: 'some text' }],
      at: '2026-11-16T09:00:00.000Z',
    };
    pack(value);
    pack(value);
    const packed = pack(value);
    expect(packed.length).toBeLessThan(JSON.stringify(value).length);
    fc.assert(
      fc.property(fc.nat(packed.length - 1), fc.string({ unit: 'binary-ascii', maxLength: 3 }), (at, other) => {
        const broken = packed.slice(0, at) + other + packed.slice(at + other.length + 1);
        const { unpack } = createUnpacker((number) => words[number]);
        const read = unpack(broken);
        if (read === broken) expect(() => JSON.parse(read)).toThrow();
      }),
    );
    expect(createUnpacker(() => undefined).unpack(packed)).toBe(packed);
  });

  test('keeps what has a form of its own for JSON as JSON', () => {
    const { pack } = packing();
    const made = { toJSON: () => ({ a: 1 }) };
    for (const value of [
      { at: new Date(0) },
      { made },
      { list: [undefined] },
      { list: [() => 1] },
      { map: new Map() },
    ]) {
      pack(value);
      expect(pack(value)).toBe(JSON.stringify(value));
    }
  });
});

describe('words', () => {
  test('are made of what repeats, and of nothing that a caller makes up once', () => {
    const { pack, words } = packing();
    for (let n = 0; n < 5_000; n++) pack({ id: `call_${n}`, [`key_${n}`]: `value ${n}` });
    expect(words).toEqual([]);
    for (let n = 0; n < 9; n++) pack({ id: `call_${n}`, kind: 'a kind' });
    expect(words).toEqual(['["id","kind"]', '"a kind"']);
  });

  test('an object of very many members, or of very long names, is JSON', () => {
    const { pack, words } = packing();
    const many = Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`n${n}`, n]));
    const long = { ['x'.repeat(3_000)]: 1 };
    for (let n = 0; n < 3; n++) for (const value of [many, long]) expect(pack(value)).toBe(JSON.stringify(value));
    expect(words).toEqual([]);
  });
});

describe('in the file', () => {
  const { start, other } = sqliteHome();

  test('an event takes a third of its text, and its words are stored once', async () => {
    const store = await start();
    const note = (n: number) => event('task_01M7QFSXDD6FTVHF1EAZ6BS8CZ', { step: 'the same words', n });
    for (let n = 0; n < 30; n++) await append(store, note(n));
    const { events } = await append(store, note(30));
    const db = other();
    const [body] = db.prepare('SELECT body FROM events WHERE position = 31').raw().get() as [string];
    expect(body.length).toBeLessThan(JSON.stringify(events[0]).length / 3);
    const words = (db.prepare('SELECT text FROM words').raw().all() as [string][]).map(([text]) => text);
    expect(new Set(words).size).toBe(words.length);
    expect(words).toContain('"task_01M7QFSXDD6FTVHF1EAZ6BS8CZ"');
  });

  test('a store that is opened again goes on with the words that are there', async () => {
    const note = event('task_01M7QFSXDD6FTVHF1EAZ6BS8CZ', { step: 'the same words' });
    const first = await start();
    for (let n = 0; n < 10; n++) await append(first, note);
    await first.close();
    const count = () => (other().prepare('SELECT count(*) FROM words').raw().get() as [number])[0];
    const before = count();
    await append(await start(), note);
    expect(count()).toBe(before);
  });

  test('the words of pruned events are gone, but for the last number', async () => {
    let now = '2026-11-16T09:00:00.000Z';
    const store = await start({ clock: { now: () => now } });
    const events = Array.from({ length: 400 }, () =>
      event('task_01M7QFSXDD6FTVHF1EAZ6BS8CZ', { step: 'the same words' }),
    );
    for (let n = 0; n < 42; n++) await append(store, ...events);
    const db = other();
    const numbers = () => db.prepare('SELECT min(id), max(id) FROM words').raw().get() as [number, number];
    const [lowest, highest] = numbers();
    now = '2026-11-17T09:00:00.000Z';
    expect((await store.retain('2026-11-16T12:00:00.000Z')).dropped).toBe(16_800);
    expect(numbers()[0]).toBeGreaterThan(lowest);
    expect(numbers()[1]).toBe(highest);
    await append(store, event('task_of_another_name'), event('task_of_another_name'));
    expect(numbers()[1]).toBeGreaterThan(highest);
  });
});
