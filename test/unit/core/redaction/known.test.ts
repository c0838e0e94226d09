/** Values the redactor knows are found however they are spelled. */
import { describe, expect, test } from 'vitest';
import { createRedactor } from '../../../../src/core/redaction/redact.ts';

describe('values it knows', () => {
  const canary = 'c4nary/väl ue+9';
  const encoded = [
    canary,
    encodeURIComponent(canary),
    encodeURI(canary),
    encodeURIComponent(canary).toLowerCase(),
    Buffer.from(canary).toString('base64'),
    Buffer.from(`ana:${canary}`).toString('base64'),
    Buffer.from(`${canary} and more`).toString('base64url'),
    Buffer.from(`xy${canary}z`).toString('base64'),
  ];
  test.each(encoded)('%s', (spelling) => {
    const redactor = createRedactor();
    redactor.learn(canary);
    const text = redactor.text(`before (${spelling}) after`);
    expect(text).toBe('before ([redacted: known secret]) after');
  });

  test('also in keys, without losing a member', () => {
    const redactor = createRedactor();
    redactor.learn('c4nary-value');
    const { value, marks } = redactor.redact({ by: { 'c4nary-value': 1, 'x-c4nary-value': 2, 'y c4nary-value': 3 } });
    expect(value).toEqual({
      by: { '[redacted: known secret]': 1, 'x-[redacted: known secret]': 2, 'y [redacted: known secret]': 3 },
    });
    expect(marks.map(({ reason }) => reason)).toEqual(['secret in a key', 'secret in a key', 'secret in a key']);
    const twice = redactor.redact({ 'c4nary-value': 1, [Buffer.from('c4nary-value').toString('base64')]: 2 }).value;
    expect(twice).toEqual({ '[redacted: known secret]': 1, '[redacted: known secret] 2': 2 });
  });

  test('also as a number, and in names already seen to be harmless', () => {
    const redactor = createRedactor();
    expect(redactor.redact({ pin4711: 271828 }).value).toEqual({ pin4711: 271828 });
    redactor.learn('271828');
    redactor.learn('pin4711');
    expect(redactor.redact({ pin4711: 271828 }).value).toEqual({
      '[redacted: known secret]': '[redacted: known secret]',
    });
  });

  test('also in texts already seen to be harmless', () => {
    const redactor = createRedactor();
    const said = { text: 'open c4nary-value' };
    expect(redactor.redact(said).value).toBe(said);
    redactor.learn('c4nary-value');
    expect(redactor.redact(said).value).toEqual({ text: 'open [redacted: known secret]' });
  });

  test('a value too short to be distinguished from ordinary text is not learned', () => {
    const redactor = createRedactor();
    redactor.learn('hello');
    redactor.learn('   ');
    expect(redactor.text('hello there')).toBe('hello there');
  });

  test('one that overlaps a shape goes with it, whole', () => {
    const redactor = createRedactor();
    redactor.learn('abc?token=xyz;end');
    expect(redactor.text('<abc?token=xyz;end>')).toBe('<[redacted: known secret]>');
  });

  test('one of a thousand known values is found, and a similar text is left alone', () => {
    const redactor = createRedactor();
    for (let n = 0; n < 1_000; n += 1) redactor.learn(`sec-ret-${n}-value`);
    expect(redactor.text('a sec-ret-999-value, a sec-ret-1000-value')).toBe(
      'a [redacted: known secret], a sec-ret-1000-value',
    );
  });
});
