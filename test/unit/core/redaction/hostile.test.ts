/** Whatever a payload holds, redacting ends, keeps the rest, and leaves nothing behind. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createRedactor } from '../../../../src/core/redaction/redact.ts';

describe('properties', () => {
  const words = 'redacted: known secret sensitive key in a could not be checked';
  const canaries = fc
    .string({ minLength: 6, maxLength: 40, unit: 'binary' })
    .map((text) => text.trim())
    .filter((text) => text.length >= 6 && !/\p{Cs}/u.test(text) && !words.includes(text) && !/^[\d\W]+$/.test(text));

  test('a planted secret survives nowhere', () => {
    fc.assert(
      fc.property(canaries, fc.jsonValue({ maxDepth: 4 }), fc.string(), fc.nat(), (canary, document, around, at) => {
        const redactor = createRedactor();
        redactor.learn(canary);
        const hidden = plant(document, `${around}${canary}${around}`, at);
        const { value, marks } = redactor.redact(hidden);
        expect(strings(value).some((text) => text.includes(canary))).toBe(false);
        expect(JSON.stringify(marks).includes(canary)).toBe(false);
        expect(marks.length).toBeGreaterThan(0);
      }),
      { numRuns: 1_000 },
    );
  });

  test('what holds no secret is the same object; what was redacted once is redacted', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (document) => {
        const redactor = createRedactor();
        const before = structuredClone(document);
        const once = redactor.redact(document);
        expect(document).toEqual(before);
        if (once.marks.length === 0) expect(once.value).toBe(document);
        const twice = redactor.redact(once.value);
        expect(twice.value).toBe(once.value);
        expect(twice.marks).toEqual([]);
      }),
      { numRuns: 1_000 },
    );
  });

  test('only the path to the secret is copied', () => {
    const payload = { a: { deep: ['x'] }, b: { password: 'hunter2' } };
    const { value } = createRedactor().redact(payload);
    expect(value.a).toBe(payload.a);
    expect(payload.b.password).toBe('hunter2');
  });

  function plant(document: unknown, secret: string, at: number): unknown {
    return [
      { kept: document, more: [secret] },
      [document, secret],
      { [secret]: document },
      { a: { b: [{ c: secret }] } },
      secret,
    ][at % 5];
  }

  function strings(value: unknown): string[] {
    if (typeof value === 'string') return [value];
    if (typeof value !== 'object' || value === null) return [];
    return Object.entries(value).flatMap(([key, child]) => [key, ...strings(child)]);
  }
});

describe('hostile payloads', () => {
  test('what is nested beyond reason is replaced, not followed', () => {
    let deep: unknown = 'Bearer abc123xyz';
    for (let level = 0; level < 20_000; level += 1) deep = { in: deep };
    const { value, marks } = createRedactor().redact(deep);
    expect(JSON.stringify(value)).toBe(`${'{"in":'.repeat(100)}"[redacted: nested deeper than 100]"${'}'.repeat(100)}`);
    expect(marks).toEqual([{ field: '/in'.repeat(100), reason: 'nested deeper than 100' }]);
  });

  test('the same under a sensitive name', () => {
    let deep: unknown = 'hunter2';
    for (let level = 0; level < 20_000; level += 1) deep = [deep];
    const { value } = createRedactor().redact({ password: deep });
    expect(JSON.stringify(value)).toBe(`{"password":${'['.repeat(99)}"[redacted: password]"${']'.repeat(99)}}`);
  });

  test('a document that contains itself comes to an end', () => {
    const loop: Record<string, unknown> = { password: 'hunter2' };
    loop.left = loop;
    const { value } = createRedactor().redact(loop);
    expect(JSON.stringify(value).includes('hunter2')).toBe(false);
  });

  test('a member called __proto__ is a member', () => {
    const { value } = createRedactor().redact(JSON.parse('{"__proto__":{"password":"hunter2"},"constructor":"x"}'));
    expect(JSON.stringify(value)).toBe('{"__proto__":{"password":"[redacted: password]"},"constructor":"x"}');
    expect(({} as { password?: string }).password).toBeUndefined();
  });

  const million = 1_000_000;
  const seeds = [
    'a',
    'eyJ',
    'eyJaaaaaa.',
    '-----BEGIN PRIVATE KEY-----',
    '-----BEGIN ',
    'sk-',
    'xoxb-',
    'bearer ',
    'basic YWFhYWFh ',
    'authorization: a ',
    'cookie:a=',
    '://',
    '://a:',
    '@',
    '?a=',
    '?token=',
    '&key=',
    'AAA=',
    'API_KEY=',
    '--a=',
    '--token=',
    '"a":"',
    '"password":"',
    '\\',
    '"\\',
    '{"',
    ' ',
    '-',
    '\u0000',
    '\ud800',
  ];
  // Quadratic work on a million characters would not come back within the test's time.
  test.each(seeds)('a million characters of %j', (seed) => {
    const redactor = createRedactor();
    redactor.learn('aaaaaaaa');
    const text = seed.repeat(Math.ceil(million / seed.length));
    for (const input of [text, `${text}"`, `bearer ${text}@`]) {
      const { value } = redactor.redact({ text: input });
      expect(typeof value.text).toBe('string');
    }
  });

  test('a hundred thousand secret keys keep a hundred thousand members', () => {
    const redactor = createRedactor();
    redactor.learn('c4nary-value');
    const many = Object.fromEntries(
      Array.from({ length: 100_000 }, (_, n) => [`${'c4nary-value'.repeat(1 + (n % 3))}${' '.repeat(n % 100)}${n}`, n]),
    );
    expect(Object.keys(redactor.redact(many).value)).toHaveLength(100_000);
  });
});

describe('error text', () => {
  test('one line, with causes, without secrets or control characters', () => {
    const redactor = createRedactor();
    redactor.learn('c4nary-value');
    const cause = new TypeError('got c4nary-value\u202e and\u0000 Bearer abc123xyz');
    const error = new Error('first\nsecond', { cause });
    expect(redactor.errorText(error)).toBe(
      'Error: first second <- TypeError: got [redacted: known secret] and Bearer [redacted: bearer token]',
    );
  });

  test('anything can be thrown', () => {
    const { errorText } = createRedactor();
    expect(errorText('plain text')).toBe('plain text');
    expect(errorText(undefined)).toBe('nothing was said');
    expect(errorText({ password: 'x' })).toBe('a thrown object');
    expect(errorText(new Error('x'.repeat(10_000)))).toHaveLength(500);
  });
});
