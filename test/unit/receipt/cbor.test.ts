import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeCbor, encodeCbor, RECEIPT_CBOR } from '../../../src/receipt/export/cbor.ts';
import { canonicalJson } from '../../../src/receipt/seal/canonical-json.ts';
import { verifyReceipt } from '../../../src/receipt/verify/verify.ts';

const hex = (value: unknown) => Buffer.from(encodeCbor(value)).toString('hex');
const read = (name: string) => readFileSync(new URL(`../../../fixtures/receipts/${name}`, import.meta.url), 'utf8');

test('the media type names the format', () => {
  expect(RECEIPT_CBOR).toBe('application/vnd.harn.receipt+cbor; schema=receipt-2026-04-25');
});

describe('the deterministic form', () => {
  test.each([
    [0, '00'],
    [-0, '00'],
    [23, '17'],
    [24, '1818'],
    [1000000, '1a000f4240'],
    [-1, '20'],
    [2.0, '02'],
    [1.5, 'f93e00'],
    [0.1, 'fb3fb999999999999a'],
    [100000.5, 'fa47c35040'],
    [9007199254740991, '1b001fffffffffffff'],
    [null, 'f6'],
    [true, 'f5'],
    ['€', '63e282ac'],
    [[1, [2]], '82018102'],
    [{}, 'a0'],
  ])('%j is %s', (value, bytes) => {
    expect(hex(value)).toBe(bytes);
  });

  test('keys are ordered by their encoded bytes, short ones first', () => {
    expect(hex({ aa: 1, b: 2, a: 3 })).toBe('a361610361620262616101');
    expect(hex({ 10: 1, 9: 2, '': 3 })).toBe('a36003613902623130' + '01');
  });

  test('members that are undefined are left out', () => {
    expect(hex({ a: undefined, b: 1 })).toBe('a1616201');
  });
});

describe('the round trip', () => {
  test('any value comes back as it was', () => {
    const json = fc.jsonValue({ maxDepth: 5 }).filter((value) => {
      try {
        return canonicalJson(value) !== '';
      } catch {
        return false;
      }
    });
    fc.assert(
      fc.property(json, (value) => {
        const bytes = encodeCbor(value);
        expect(canonicalJson(decodeCbor(bytes))).toBe(canonicalJson(value));
        expect(encodeCbor(decodeCbor(bytes))).toEqual(bytes);
      }),
    );
  });

  test('__proto__ is a key like any other', () => {
    const value = JSON.parse('{"__proto__":{"x":1}}');
    expect(canonicalJson(decodeCbor(encodeCbor(value)))).toBe('{"__proto__":{"x":1}}');
  });

  test('an archived receipt verifies as the JSON one does, good or bad', () => {
    const keys = JSON.parse(read('keys.json'));
    const lines = read('archive.jsonl').trim().split('\n');
    expect(lines).toHaveLength(7);
    for (const line of lines) {
      const receipt = JSON.parse(line);
      const forged = { ...receipt, issued_at: '2026-11-16T09:01:21.000Z' };
      expect(verifyReceipt(decodeCbor(encodeCbor(receipt)), { keys })).toEqual(verifyReceipt(line, { keys }));
      expect(verifyReceipt(decodeCbor(encodeCbor(receipt)), { keys }).valid).toBe(true);
      expect(verifyReceipt(decodeCbor(encodeCbor(forged)), { keys }).reason).toBe('hash_mismatch');
    }
  });
});

describe('other spellings are refused', () => {
  test.each([
    ['keys out of order', 'a2616201616101'],
    ['a key twice', 'a2616101616102'],
    ['a long way to write 1', '1801'],
    ['an integer written as a float', 'f93c00'],
    ['a float longer than needed', 'fb3ff8000000000000'],
    ['an indefinite list', '9f01ff'],
    ['undefined', 'f7'],
    ['not a number', 'f97e00'],
    ['infinity', 'f97c00'],
    ['a tag', 'c001'],
    ['bytes', '4101'],
    ['a big integer', '1bffffffffffffffff'],
    ['an integer beyond 2^53', '1b0020000000000001'],
    ['a key that is no text', 'a10101'],
    ['more after the end', '0101'],
    ['cut off', '82'],
    ['nothing', ''],
  ])('%s', (_, bytes) => {
    expect(() => decodeCbor(Buffer.from(bytes, 'hex'))).toThrow(/CBOR|no spelling/);
  });
});
