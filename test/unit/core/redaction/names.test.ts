/** Secrets recognized by the name they stand under, and names that only sound like it. */
import { describe, expect, test } from 'vitest';
import { createRedactor } from '../../../../src/core/redaction/redact.ts';

describe('names that promise a secret', () => {
  const sensitive = [
    'authorization',
    'Proxy-Authorization',
    'cookie',
    'Set-Cookie',
    'password',
    'db_password',
    'passwd',
    'secret',
    'client_secret',
    'clientSecret',
    'api_key',
    'X-API-Key',
    'x-goog-api-key',
    'access_token',
    'refreshToken',
    'id_token',
    'private_key',
    'bearer',
    'credentials',
    'GITHUB_TOKEN',
    'AWS_SECRET_ACCESS_KEY',
  ];
  test.each(sensitive)('%s is taken out and leaves its name', (name) => {
    const { value, marks } = createRedactor().redact({ outer: { [name]: 'hunter2!', kept: 1 } });
    expect(value).toEqual({ outer: { [name]: `[redacted: ${name}]`, kept: 1 } });
    expect(marks).toEqual([{ field: `/outer/${name}`, reason: 'sensitive key' }]);
  });

  const harmless = [
    'input_tokens',
    'token_count',
    'max_tokens',
    'tokens',
    'secret_name',
    'password_hint',
    'api_key_id',
    'public_key',
    'token_type',
    'next_page_token',
    'progressToken',
    'authorization_endpoint',
    'signature',
    'key',
    'author',
    'session_id',
    'tool_call_id',
  ];
  test.each(harmless)('%s is left alone', (name) => {
    const payload = { [name]: 'something of no consequence' };
    const result = createRedactor().redact(payload);
    expect(result.value).toBe(payload);
    expect(result.marks).toEqual([]);
  });

  test('structure under a sensitive name stays, its leaves go', () => {
    const { value, marks } = createRedactor().redact({
      credentials: { user: 'ana', codes: [1, 'x'], on: true, no: null },
    });
    const gone = '[redacted: credentials]';
    expect(value).toEqual({ credentials: { user: gone, codes: [gone, gone], on: true, no: null } });
    expect(marks).toEqual([{ field: '/credentials', reason: 'sensitive key' }]);
  });

  test('a flag, an absence and an empty text hold no secret', () => {
    const payload = { has_password: true, password: null, secret: '', cookie: false };
    expect(createRedactor().redact(payload).value).toBe(payload);
  });

  test('a pair is named by its neighbour, as headers and variables are', () => {
    const { value } = createRedactor().redact({
      env: [
        { name: 'API_KEY', value: 'abc' },
        { name: 'HOME', value: '/home/ana' },
      ],
      override: { kind: 'secret_value', target: 'mail', value: 'abc' },
    });
    expect(value).toEqual({
      env: [
        { name: 'API_KEY', value: '[redacted: API_KEY]' },
        { name: 'HOME', value: '/home/ana' },
      ],
      override: { kind: 'secret_value', target: 'mail', value: '[redacted: secret_value]' },
    });
  });

  test('a schema that asks for a password is a description, not a password', () => {
    const schema = { type: 'object', properties: { password: { type: 'string', description: 'for the mail box' } } };
    expect(createRedactor().redact({ input_schema: schema }).value).toEqual({ input_schema: schema });
    const withDefault = { properties: { password: { type: 'string', default: 'hunter2' } } };
    expect(createRedactor().redact(withDefault).value).toEqual({
      properties: { password: { type: 'string', default: '[redacted: password]' } },
    });
  });

  test('the flag before it names an argument', () => {
    expect(createRedactor().redact({ args: ['login', '--token', 'abcd1234', '--verbose', 'yes'] }).value).toEqual({
      args: ['login', '--token', '[redacted: token]', '--verbose', 'yes'],
    });
  });

  test('token is a credential when it looks like one, and a piece of text when it does not', () => {
    expect(createRedactor().redact({ token: 'a8f5f167f44f4964' }).value).toEqual({ token: '[redacted: token]' });
    const piece = { token: 'Hello there' };
    expect(createRedactor().redact(piece).value).toBe(piece);
  });

  test('more names can be given', () => {
    const { value } = createRedactor({ keys: ['badge-number'] }).redact({ badgeNumber: 'B-77' });
    expect(value).toEqual({ badgeNumber: '[redacted: badgeNumber]' });
  });
});
