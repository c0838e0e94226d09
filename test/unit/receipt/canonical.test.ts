import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalJson, hashBytes, hashOf, spellOnce } from '../../../src/receipt/seal/canonical-json.ts';
import { receiptHash } from '../../../src/receipt/seal/receipt-hash.ts';
import { parseStrict } from '../../../src/receipt/seal/strict-json.ts';

const harn = new URL('../../../fixtures/harn/', import.meta.url);

describe('numbers', () => {
  const spelled: [number, string][] = [
    [0, '0'],
    [-0, '0'],
    [1, '1'],
    [-1, '-1'],
    [2.0, '2'],
    [4.5, '4.5'],
    [0.002, '0.002'],
    [1e-7, '1e-7'],
    [0.000001, '0.000001'],
    [1e-27, '1e-27'],
    [5e-324, '5e-324'],
    [1.7976931348623157e308, '1.7976931348623157e+308'],
    [9007199254740991, '9007199254740991'],
    [-9007199254740991, '-9007199254740991'],
    [1e21, '1e+21'],
    [1e30, '1e+30'],
    [333333333.3333333, '333333333.3333333'],
    [0.1 + 0.2, '0.30000000000000004'],
  ];
  test.each(spelled)('%d is %s', (value, text) => {
    expect(canonicalJson(value)).toBe(text);
  });

  test.each([NaN, Infinity, -Infinity, Number('1e400')])('%d has no spelling', (value) => {
    expect(() => canonicalJson({ amount: value })).toThrow(/no spelling for the number/);
  });

  test.each([2 ** 53, -(2 ** 53), 2 ** 60, JSON.parse('12345678901234567890')])(
    'the integer %d is beyond what a double holds',
    (value) => {
      expect(() => canonicalJson([value])).toThrow(/beyond 2\^53/);
    },
  );
});

describe('text', () => {
  const spelled: [string, string][] = [
    ['plain', '"plain"'],
    ['"\\/', '"\\"\\\\/"'],
    ['\b\t\n\f\r', '"\\b\\t\\n\\f\\r"'],
    ['\u0000\u000f\u001f', '"\\u0000\\u000f\\u001f"'],
    ['\u007f\u0080\u2028\u2029', '"\u007f\u0080\u2028\u2029"'],
    ['€ö', '"€ö"'],
    ['😀', '"😀"'],
    ['\\ud800 written out', '"\\\\ud800 written out"'],
    ['\\\\ud800', '"\\\\\\\\ud800"'],
  ];
  test.each(spelled)('%j', (value, text) => {
    expect(canonicalJson(value)).toBe(text);
  });

  test.each(['\ud800', 'a\udfffb', '\udc00\ud800', '\\\ud800', '\\ud800 \ud800'])(
    'half a pair has no spelling: %j',
    (value) => {
      expect(() => canonicalJson(value)).toThrow(/surrogate/);
      expect(() => canonicalJson({ [value]: 1 })).toThrow(/surrogate/);
    },
  );
});

describe('objects', () => {
  test('keys are sorted by code unit, not by code point or by locale', () => {
    // U+FB33 sorts after the surrogates of U+1F600 by code unit and before it by code point.
    const value = { '\ufb33': 1, '😀': 2, '€': 3, ö: 4, '\u0080': 5, 1: 6, '\r': 7 };
    expect(canonicalJson(value)).toBe('{"\\r":7,"1":6,"\u0080":5,"ö":4,"€":3,"😀":2,"\ufb33":1}');
  });

  test('keys that look like indexes are text like any other', () => {
    expect(canonicalJson({ 10: 'b', 9: 'c', 1: 'a' })).toBe('{"1":"a","10":"b","9":"c"}');
    expect(canonicalJson({ a: { b: [{ 2: 0, 10: 1 }], '!': 1 } })).toBe('{"a":{"!":1,"b":[{"10":1,"2":0}]}}');
    expect(canonicalJson({ 0: 'a', '!': 'b', '/': 'c' })).toBe('{"!":"b","/":"c","0":"a"}');
    expect(canonicalJson({ 1: 'a', 2: 'b', z: 'c' })).toBe('{"1":"a","2":"b","z":"c"}');
  });

  test('__proto__ is a key like any other', () => {
    expect(canonicalJson(JSON.parse('{"b":1,"__proto__":{"y":2,"x":1}}'))).toBe('{"__proto__":{"x":1,"y":2},"b":1}');
    expect(canonicalJson(JSON.parse('{"__proto__":{"y":2,"x":1},"b":1}'))).toBe('{"__proto__":{"x":1,"y":2},"b":1}');
    expect(({} as { x?: number }).x).toBeUndefined();
  });

  test('members that are undefined are left out, and only members', () => {
    expect(canonicalJson({ b: undefined, a: 1 })).toBe('{"a":1}');
    expect(canonicalJson({ 2: undefined, 10: 1, a: undefined })).toBe('{"10":1}');
    expect(() => canonicalJson(undefined)).toThrow(/undefined/);
    expect(() => canonicalJson([undefined])).toThrow(/undefined/);
    expect(() => canonicalJson(new Array(1))).toThrow(/undefined/);
  });

  test('objects without a prototype are plain', () => {
    const bare = Object.assign(Object.create(null), { b: 1, a: 2 });
    expect(canonicalJson(bare)).toBe('{"a":2,"b":1}');
  });

  test.each([
    ['a function', () => 1],
    ['a bigint', 1n],
    ['a symbol', Symbol('s')],
    ['a date', new Date(0)],
    ['a map', new Map()],
    ['boxed text', new String('a')],
    ['bytes', new Uint8Array(1)],
    ['a member that is a function', { toJSON: () => 1 }],
  ])('%s is not JSON', (_, value) => {
    expect(() => canonicalJson(value)).toThrow(/no spelling/);
    expect(() => canonicalJson({ z: [value], a: 1, 10: 1, 9: 2 })).toThrow(/no spelling/);
  });

  test('nesting without end is refused, not a crash', () => {
    let deep: unknown = 1;
    for (let i = 0; i < 200_000; i += 1) deep = [deep];
    expect(() => canonicalJson(deep)).toThrow(/nested too deeply/);
  });

  test('the value itself is left alone', () => {
    const value = { b: [{ d: 1, c: 2 }], a: 1 };
    canonicalJson(value);
    expect(JSON.stringify(value)).toBe('{"b":[{"d":1,"c":2}],"a":1}');
  });
});

describe('properties', () => {
  const json = fc.jsonValue({ maxDepth: 5, stringUnit: 'binary' }).filter(hasSpelling);

  test('the canonical text reads back as the same value and is its own canonical text', () => {
    fc.assert(
      fc.property(json, (value) => {
        const text = canonicalJson(value);
        expect(canonicalJson(JSON.parse(text))).toBe(text);
        // `toEqual` tells -0 from 0; JSON does not.
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  test('the order in which keys were put in does not matter', () => {
    const entries = fc.uniqueArray(fc.tuple(fc.oneof(fc.string(), fc.nat().map(String)), fc.nat()), {
      selector: ([key]) => key,
    });
    fc.assert(
      fc.property(entries, fc.infiniteStream(fc.nat()), (list, random) => {
        const shuffled = list
          .map((entry) => ({ entry, at: random.next().value as number }))
          .sort((a, b) => a.at - b.at)
          .map(({ entry }) => entry);
        expect(canonicalJson(Object.fromEntries(shuffled))).toBe(canonicalJson(Object.fromEntries(list)));
      }),
    );
  });

  test('a value is spelled the same alone and inside another', () => {
    fc.assert(
      fc.property(json, (value) => {
        // Engines list index-like keys by number, the canonical form as text.
        const exact = canonicalJson({ 10: 0, 9: 0, z: value });
        expect(exact).toBe(`{"10":0,"9":0,"z":${canonicalJson(value)}}`);
      }),
    );
  });
});

describe('parts spelled once', () => {
  test('a value put together from them is spelled as if it were new', () => {
    const parts = fc.array(
      fc.tuple(
        fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue({ maxDepth: 2, stringUnit: 'binary' })),
        fc.boolean(),
      ),
    );
    fc.assert(
      fc.property(parts, fc.jsonValue({ maxDepth: 3, stringUnit: 'binary' }), (list, rest) => {
        const sound = list.filter(([part]) => hasSpelling(part));
        fc.pre(hasSpelling(rest));
        const whole = { z: sound.map(([part, once]) => (once ? spellOnce(part) : part)), rest, 10: 1, 9: 2 };
        expect(canonicalJson(whole)).toBe(canonicalJson(JSON.parse(JSON.stringify(whole))));
      }),
    );
  });

  test('they cannot change afterwards', () => {
    const part = spellOnce({ a: { b: [1] } });
    expect(() => part.a.b.push(2)).toThrow(TypeError);
    expect(canonicalJson({ part })).toBe('{"part":{"a":{"b":[1]}}}');
  });

  test('what has no spelling is refused here too', () => {
    expect(() => spellOnce({ a: NaN })).toThrow(/no spelling/);
    expect(() => canonicalJson({ a: '\udc00' })).toThrow(/surrogate/);
    expect(() => canonicalJson({ a: [() => 1] })).toThrow(/no spelling/);
  });
});

function hasSpelling(value: unknown): boolean {
  try {
    canonicalJson(value);
    return true;
  } catch {
    return false;
  }
}

describe('hashes', () => {
  test('of bytes and of values', () => {
    const empty = 'sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
    expect(hashBytes('')).toBe(empty);
    expect(hashBytes(new Uint8Array())).toBe(empty);
    expect(hashBytes('a')).toBe('sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb');
    expect(hashOf({ b: 2, a: '€' })).toBe(hashBytes('{"a":"€","b":2}'));
    expect(hashOf('2026-04-25T19:16:14Z')).toBe(
      'sha256:0d8835fa600686b398e6284d7ab628aca3fb58e5a6be3f0cf7a4391c9f70246d',
    );
    expect(
      hashOf({ id: 'chatcmpl_fixture_1', choices: [{ message: { role: 'assistant', content: 'approved' } }] }),
    ).toBe('sha256:f6b0ea0e0508850baa308f6d4c2ad5b897612b548911185bfe3d426a136cd8b9');
  });

  test('of our own receipt, computed elsewhere', () => {
    const receipt = JSON.parse(
      readFileSync(new URL('../../../fixtures/receipts/receipt.json', import.meta.url), 'utf8'),
    );
    expect(Buffer.byteLength(canonicalJson(receipt))).toBe(5771);
    expect(hashOf(receipt)).toBe('sha256:307fa5b7c8abb9e481471b590c3f3c0ac8b1329b969360539f06794a6323a03f');
  });

  test('of the published receipts', () => {
    for (const [path, length, hash, bareLength, bareHash] of PUBLISHED) {
      const receipt = JSON.parse(readFileSync(new URL(path, harn), 'utf8'));
      expect(receiptHash(receipt), path).toBe(hash);
      const { signatures: _, ...body } = receipt;
      delete body.chain.receipt_hash;
      expect(Buffer.byteLength(canonicalJson(body)), path).toBe(length);
      delete body.chain.merkle_root;
      expect(Buffer.byteLength(canonicalJson(body)), path).toBe(bareLength);
      expect(hashOf(body), path).toBe(bareHash);
    }
  });
});

const PUBLISHED = [
  [
    'agents-protocol-receipts/fixtures/valid/task-receipt.json',
    3545,
    'sha256:6dda1c76c5adc8c210892ba1b7e566dd3b6e3644f7ab6b0dcd14ae34a0b323a7',
    3457,
    'sha256:4de11caa92ab3bdf6a12ec38fea70bde2014510d182bd924db1c7c722bd6e0cb',
  ],
  [
    'agents-protocol-replay/fixtures/valid/task-replay-receipt.json',
    2991,
    'sha256:c665e22ccc7b42cd3d910b2c0767a1709bd4e135c9be159816c19a917aea9d04',
    2903,
    'sha256:7a79d9c129568887d4ebd6b368a0276f16d73fb1db05958eeb93f556cfd395b2',
  ],
  [
    'agents-protocol-receipts/fixtures/invalid/missing-chain-hash.json',
    1000,
    'sha256:3d4ef26fbb27243661cefc09737f583b8cf87fe912e6084bbfb839514e7172c0',
    1000,
    'sha256:3d4ef26fbb27243661cefc09737f583b8cf87fe912e6084bbfb839514e7172c0',
  ],
] as const;

describe('strict reading', () => {
  test('a repeated key is refused wherever it stands and however it is written', () => {
    expect(() => parseStrict('{"a":1,"a":1}')).toThrow(/"a" appears twice/);
    expect(() => parseStrict('[{"x":{"b":1, "c":[], "b" : 2}}]')).toThrow(/"b" appears twice/);
    expect(() => parseStrict('{"a":1,"\\u0061":2}')).toThrow(/"a" appears twice/);
    expect(() => parseStrict('{"a\\\\":1,"b":"\\\\\\"","a\\\\":2}')).toThrow(/appears twice/);
    expect(() => parseStrict('{"__proto__":1,"__proto__":2}')).toThrow(/appears twice/);
  });

  test('what only looks like a repeated key is fine', () => {
    const texts = [
      '{"a":{"a":1},"b":[{"a":1},{"a":2}]}',
      '{"a":"a","b":"\\"a\\":1"}',
      '["a","a"]',
      ' "a" ',
      '{"}":1,"{":2}',
    ];
    for (const text of texts) expect(parseStrict(text)).toEqual(JSON.parse(text));
  });

  test('what is not JSON is a fault', () => {
    for (const text of ['', '{', '{"a":1}x', "{'a':1}", 'NaN']) expect(() => parseStrict(text)).toThrow(/not JSON/);
  });

  test('any JSON reads as the platform reads it', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value, null, 1);
        expect(parseStrict(text)).toEqual(JSON.parse(text));
      }),
    );
  });
});
