/** Bytes on disk: parts of blobs, and the text of an event. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { EventDraft } from '../../../src/model/events.ts';
import type { Json } from '../../../src/model/schema.ts';
import { buildEvent, isOfKind } from '../../../src/store/engine/commit/event.ts';
import { sqliteHome } from '../../contract/store/scenes/sqlite-home.ts';

const home = sqliteHome();
const { start, other } = home;

describe('bytes', () => {
  test('damaged ones are a fault, whichever part is asked for', async () => {
    const store = await start();
    const sha256 = await store.putBlob(new Uint8Array(600_000).fill(5));
    const db = other();
    expect(db.prepare('SELECT count(*), max(length(bytes)) FROM blob_parts').raw().get()).toEqual([3, 262_144]);
    db.exec(`UPDATE blob_parts SET bytes = zeroblob(length(bytes)) WHERE part = 1`);
    await expect(store.blob(sha256)).rejects.toMatchObject({ kind: 'internal' });
    await expect(store.blob(sha256, { start: 300_000, end: 300_001 })).rejects.toMatchObject({ kind: 'internal' });
    expect(await store.blob(sha256, { start: 0, end: 3 })).toEqual(new Uint8Array([5, 5, 5]));
    db.exec(`UPDATE blob_parts SET bytes = x'00' WHERE part = 2`);
    await expect(store.blob(sha256, { start: 599_999, end: 600_000 })).rejects.toMatchObject({ kind: 'internal' });
    db.exec('DELETE FROM blob_parts');
    await expect(store.blob(sha256)).rejects.toMatchObject({ kind: 'internal' });
  });

  test('a put that was cut off leaves nothing to read, and its parts are swept up', async () => {
    const store = await start();
    const db = other();
    db.exec(`INSERT INTO blob_parts VALUES ('abc', 0, 'abc', x'01')`);
    expect(await store.hasBlob('abc')).toBe(false);
    await store.retain('2026-11-16T00:00:00.000Z');
    expect(db.prepare('SELECT count(*) FROM blob_parts').raw().get()).toEqual([0]);
  });
});

describe('bytes in the making', () => {
  test('a put survives a sweep in the middle of it', async () => {
    const store = await start();
    const bytes = new Uint8Array(9_000_000).map((_, i) => i % 253);
    const putting = store.putBlob(bytes);
    const db = other();
    while ((db.prepare('SELECT count(*) FROM blob_parts').raw().get() as [number])[0] === 0) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    db.exec('DELETE FROM blob_parts');
    const sha256 = await putting;
    expect(Buffer.compare((await store.blob(sha256))!, bytes)).toBe(0);
  });
});

describe('the text of an event', () => {
  const text = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.constantFrom('task_1', 'a"b', '\\', '\u2028'));
  const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(fc.option(value, { nil: null }), { nil: undefined });
  const json = fc.dictionary(fc.string(), fc.jsonValue()) as fc.Arbitrary<Record<string, Json>>;
  const draft = fc.record(
    {
      event: text,
      resource: fc.record({ object: text, id: text }),
      payload: json,
      workspace_id: maybe(text),
      session_id: maybe(text),
      task_id: maybe(text),
      actor: maybe(text),
      trace_id: maybe(text),
      span_id: maybe(text),
      idempotency_key: maybe(text),
      receipt_id: maybe(text),
      replayed: fc.boolean(),
      metadata: json,
      ext: json,
    },
    { requiredKeys: ['event', 'resource', 'payload'] },
  );

  test('shows the kind without being parsed, for any draft', () => {
    fc.assert(
      fc.property(draft, fc.nat(), fc.nat(), (input, position, sequence) => {
        const wanted = input as EventDraft;
        const encoded = JSON.stringify(buildEvent(wanted, position, sequence, '2026-11-16T09:00:00.000Z'));
        const ofKind = (...kinds: string[]) =>
          isOfKind(
            encoded,
            kinds.map((kind) => JSON.stringify(kind)),
          );
        expect(ofKind(wanted.event)).toBe(true);
        expect(ofKind(`${wanted.event}x`, `x${wanted.event}`)).toBe(false);
      }),
      { numRuns: 500 },
    );
  });
});
