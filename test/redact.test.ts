import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createRedactor } from '../src/core/redact.ts';
import { createSecretNames } from '../src/core/secret-names.ts';
import { findSecrets, SUSPICIOUS } from '../src/core/secret-shapes.ts';

const JWT = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbmEifQ.c2lnbmF0dXJlLWJ5dGVz';
const PEM = '-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1h\n-----END PRIVATE KEY-----';

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

describe('secrets told by their looks', () => {
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
  test.each(found)('%s', (given, expected) => {
    const redactor = createRedactor();
    expect(redactor.text(given)).toBe(expected);
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
      ...found.map(([given]) => given),
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

describe('values it was told about', () => {
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

  test('a value too short to be told from ordinary text is not learned', () => {
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

  test('a thousand are told apart', () => {
    const redactor = createRedactor();
    for (let n = 0; n < 1_000; n += 1) redactor.learn(`sec-ret-${n}-value`);
    expect(redactor.text('a sec-ret-999-value, a sec-ret-1000-value')).toBe(
      'a [redacted: known secret], a sec-ret-1000-value',
    );
  });
});

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
    for (const given of [text, `${text}"`, `bearer ${text}@`]) {
      const { value } = redactor.redact({ given });
      expect(typeof value.given).toBe('string');
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
