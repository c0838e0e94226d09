/** Large values are cleaned on a thread, by the same knowledge; without one, here. */
import { resolve } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createRedactor } from '../../src/core/redaction/redact.ts';
import { createLargeValues, type LargeValues } from '../../src/runtime/large-values.ts';

const built = (await import(resolve(import.meta.dirname, '../../dist/src/runtime/large-values.js'))) as {
  createLargeValues: typeof createLargeValues;
};

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString('utf8');

test.each([
  ['on a thread, as built', built.createLargeValues],
  ['here, from source', createLargeValues],
])('%s: known secrets leave, also those learned after it began', async (_, create) => {
  const redactor = createRedactor();
  redactor.learn('first-secret-value');
  const large: LargeValues = create(redactor);
  onTestFinished(() => large.close());
  const first = await large.clean({ note: `a first-secret-value b ${'x'.repeat(100_000)}` });
  expect(text(first.bytes)).toContain('a [redacted: known secret] b');
  expect(first.marks).toEqual([{ field: '/note', reason: 'known secret' }]);
  redactor.learn('second-secret-value');
  const both = await Promise.all([
    large.clean(['second-secret-value']),
    large.clean({ password: 'open sesame', plain: 'é' }),
  ]);
  expect(text(both[0].bytes)).toBe('["[redacted: known secret]"]');
  expect(text(both[1].bytes)).toBe('{"password":"[redacted: password]","plain":"é"}');
});

test('what is asked after it was closed is cleaned here', async () => {
  const large = built.createLargeValues(createRedactor());
  await large.clean('x');
  await large.close();
  expect(text((await large.clean({ password: 'open sesame' })).bytes)).toBe('{"password":"[redacted: password]"}');
});
