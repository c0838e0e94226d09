/** Secrets recognized by their looks, and prose that only looks a little like one. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createRedactor } from '../../../../src/core/redaction/redact.ts';
import { createSecretNames } from '../../../../src/core/redaction/secret-names.ts';
import { findSecrets, SUSPICIOUS } from '../../../../src/core/redaction/secret-shapes.ts';

const JWT = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbmEifQ.c2lnbmF0dXJlLWJ5dGVz';
const PEM = '-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1h\n-----END PRIVATE KEY-----';

describe('secrets recognized by their looks', () => {
  const found: readonly [string, string][] = [
    ['call with Bearer canary-secret-value now', 'call with Bearer [redacted: bearer token] now'],
    ['bearer bearer abcdef123', 'bearer bearer [redacted: bearer token]'],
    ['Basic YW5hOmh1bnRlcjI=', 'Basic [redacted: basic credentials]'],
    [`see ${JWT}.`, 'see [redacted: signed token]'],
    [`key:\n${PEM}\nend`, 'key:\n[redacted: private key]\nend'],
    ['-----BEGIN RSA PRIVATE KEY-----\nMC4CAQ', '[redacted: private key]'],
    ['sk-proj-4f9aK2mZ71bQx0aa', '[redacted: provider key]'],
    ['use ghp_16C7e42F292c6912E7710c838347Ae178B4a', 'use [redacted: provider key]'],
    ['github_pat_11ABCDEFG0abcdefghijkl_mnop', '[redacted: provider key]'],
    ['xoxb-123456789012-abcdef', '[redacted: provider key]'],
    ['AKIAIOSFODNN7EXAMPLE', '[redacted: provider key]'],
    ['AIzaSyA1234567890abcdefghijklmnopqrstuv', '[redacted: provider key]'],
    ['npm_abcdefghijklmnopqrstuvwxyz0123456789', '[redacted: provider key]'],
    ['glpat-abcdefghij0123456789', '[redacted: provider key]'],
    ['postgres://ana:p@ss:w0rd@db.example/x', 'postgres://ana:[redacted: address password]@db.example/x'],
    ['https://h/x?a=1&token=abc&b=2', 'https://h/x?a=1&token=[redacted: address parameter]&b=2'],
    ['https://h/x?access_token=abc#z', 'https://h/x?access_token=[redacted: address parameter]#z'],
    ['/cb#id_token=abc', '/cb#id_token=[redacted: address parameter]'],
    ['https://h/x?X-Amz-Signature=0f0f', 'https://h/x?X-Amz-Signature=[redacted: address parameter]'],
    ['https://h/x?sig=abc', 'https://h/x?sig=[redacted: address parameter]'],
    ['curl -H "Authorization: token 4f9a" /x', 'curl -H "Authorization: [redacted: header]" /x'],
    ['Cookie: sid=abc; theme=dark\nAccept: */*', 'Cookie: [redacted: cookie]\nAccept: */*'],
    ['export STRIPE_API_KEY=abcdef\nPORT=8080', 'export STRIPE_API_KEY=[redacted: variable]\nPORT=8080'],
    ['mysql --password hunter2 db', 'mysql --password [redacted: command flag] db'],
    ['{"access_token":"abc","n":1}', '{"access_token":"[redacted: sensitive key]","n":1}'],
    ['{"password": "a\\"b", "n": 1}', '{"password": "[redacted: sensitive key]", "n": 1}'],
    ['"{\\"password\\":\\"abc\\",\\"n\\":1}"', '"{\\"password\\":\\"[redacted: sensitive key]\\",\\"n\\":1}"'],
  ];
  test.each(found)('%s', (input, expected) => {
    const redactor = createRedactor();
    expect(redactor.text(input)).toBe(expected);
    expect(redactor.text(expected)).toBe(expected);
  });

  const prose = [
    'Bearer authentication is described in the next chapter.',
    'basic understanding of the plan',
    'task_01JABCDEFGHIJKLMNOPQRSTUVW and risk-averse-people-everywhere',
    'sk-loading-indicator-wrapper',
    'npm_config_user_agent and npm_lifecycle_event',
    'http://localhost:8080/users/@me?page=2',
    'the secret: work slowly',
    'const password = await prompt()',
    'PORT=8080 SORT_KEY=created_at TOKEN=$OTHER',
    'eyJ is how they start',
    '{"name":"plan","value":"a"}',
    'sha256:f2ca1bb6c7e907d06dafe4687e579fce76b37e4e93b7605022da52e6ccc26fd2',
  ];
  test.each(prose)('left alone: %s', (text) => {
    const payload = { text };
    const result = createRedactor().redact(payload);
    expect(result.value).toBe(payload);
    expect(result.marks).toEqual([]);
  });

  test('marks say where and why, and never what', () => {
    const { marks } = createRedactor().redact({ 'a/b': [{ 'c~d': `x ${JWT}` }], list: ['ok', 'Bearer abc123xyz'] });
    expect(marks).toEqual([
      { field: '/a~1b/0/c~0d', reason: 'signed token' },
      { field: '/list/1', reason: 'bearer token' },
    ]);
  });

  test('more patterns can be given, whatever their flags', () => {
    const redactor = createRedactor({ patterns: [/emp-\d+/y, /badge [a-z]*/gi] });
    expect(redactor.text('EMP emp-1234 and Badge blue')).toBe('EMP [redacted: pattern] and [redacted: pattern]');
    expect(redactor.redact({ a: 'emp-1234', b: 'emp-77' }).value).toEqual({
      a: '[redacted: pattern]',
      b: '[redacted: pattern]',
    });
  });

  test('what the close look finds, the quick look suspects', () => {
    const names = createSecretNames();
    const pieces = fc.constantFrom(
      ...found.map(([input]) => input),
      'authorization',
      'Cookie',
      ':',
      '=',
      ' ',
      '\n',
      '--token',
      '"',
      '\\',
      '?key',
      'x-a-key',
      'API_KEY',
      'abc123DEF456',
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 6 }), (parts) => {
        const text = parts.join('');
        if (findSecrets(text, names).length > 0) expect(SUSPICIOUS.test(text)).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });
});
