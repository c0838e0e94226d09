/** Who may come in, and as whom: every token that is not exactly right is nobody's. */
import { absent, equal, Skip, truth } from '../harness/expect.ts';
import { category, each } from '../harness/suite.ts';
import type { Target } from '../harness/target.ts';

const BAD_TOKENS: readonly (readonly [string, string])[] = [
  ['made up', 'tbk_0000000000000000_0000000000000000000000000000000000000000000'],
  ['empty of meaning', 'x'],
  ['very long', 'y'.repeat(8000)],
  ['an unsigned JWT', `${base64({ alg: 'none' })}.${base64({ sub: 'root', aud: 'tollbridge', exp: 9999999999 })}.`],
  ['a JWT signed with nothing', `${base64({ alg: 'HS256' })}.${base64({ sub: 'root', exp: 9999999999 })}.c2ln`],
];

function base64(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

async function oauth(at: Target, claims: object, how?: { kid?: string; expires?: string }): Promise<string> {
  return await at.mine().token(claims as Record<string, unknown>, how);
}

export const auth = category('authentication', {
  ...each(
    BAD_TOKENS,
    ([what]) => `a token that is ${what} is 401`,
    async ([, token], at) => {
      const error = await at.refused('unauthenticated', 'GET', '/v1/tasks', { as: token });
      absent(JSON.stringify(error), token, 'the token is in the answer');
    },
  ),
  ...each(
    ['Basic dXNlcjpwYXNz', 'Bearer', 'Bearer ', 'bearer-x', 'Token abc'],
    (header) => `Authorization: ${header} is 401`,
    async (header, at) => {
      await at.refused('unauthenticated', 'GET', '/v1/tasks', { as: null, headers: { authorization: header } });
    },
  ),
  async 'a 401 says how to authenticate'(at) {
    const { headers } = await at.ask('GET', '/v1/tasks', { as: null });
    truth((headers.get('www-authenticate') ?? '').toLowerCase().startsWith('bearer'), 'no WWW-Authenticate: Bearer');
  },
  async 'the last character of a key counts'(at) {
    if (!at.key) throw new Skip('no key was given');
    const flipped = at.key.slice(0, -1) + (at.key.endsWith('A') ? 'B' : 'A');
    await at.refused('unauthenticated', 'GET', '/v1/tasks', { as: flipped });
  },
  async 'the scheme is not case sensitive'(at) {
    if (!at.key) throw new Skip('no key was given');
    const headers = { authorization: `bEaReR ${at.key}` };
    equal((await at.ask('GET', '/v1/tasks', { as: null, headers })).status, 200, 'status');
  },
  async 'an expired key is 401'(at) {
    const { key } = await at.mine().issue({ id: 'late', expires_at: '2020-01-01T00:00:00.000Z' });
    await at.refused('unauthenticated', 'GET', '/v1/tasks', { as: key });
  },
  async 'a revoked key is 401 from then on'(at) {
    const { key, id } = await at.mine().issue({ id: 'gone' });
    equal((await at.ask('GET', '/v1/tasks', { as: key })).status, 200, 'before');
    await at.mine().revoke(id);
    await at.refused('unauthenticated', 'GET', '/v1/tasks', { as: key });
  },
  async 'keys are kept as hashes, and never printed'(at) {
    absent(at.mine().output(), at.key ?? 'no key', 'the key is in the output');
  },
  async 'a client-credentials token with the right scope is let in'(at) {
    const token = await oauth(at, { sub: 'client-1', scope: 'tasks:read sessions:read' });
    equal((await at.ask('GET', '/v1/tasks', { as: token })).status, 200, 'status');
  },
  async 'a client-credentials token without the scope is 403'(at) {
    const token = await oauth(at, { sub: 'client-1', scope: 'tasks:read' });
    await at.refused('permission_denied', 'GET', '/v1/receipts/receipt_absent', { as: token });
  },
  ...each(
    [
      ['an audience that is not us', { sub: 'c', scope: 'tasks:read', aud: 'someone-else' }, {}],
      ['an issuer nobody named', { sub: 'c', scope: 'tasks:read', iss: 'https://evil.example' }, {}],
      ['an expiry in the past', { sub: 'c', scope: 'tasks:read' }, { expires: '-1h' }],
      ['a key nobody published', { sub: 'c', scope: 'tasks:read' }, { kid: 'unknown' }],
    ] as const,
    ([what]) => `a client-credentials token with ${what} is 401`,
    async ([, claims, how], at) => {
      await at.refused('unauthenticated', 'GET', '/v1/tasks', { as: await oauth(at, claims, how) });
    },
  ),
});
