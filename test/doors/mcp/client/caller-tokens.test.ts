/** Servers that are used with a token of each caller: one that was exchanged for the caller's own (RFC 8693), or a secret by name. */
import { expect, test } from 'vitest';
import { isPerCaller, type UpstreamConfig } from '../../../../adapters/mcp/config.ts';
import { mcp } from '../../../../adapters/mcp/index.ts';
import { createAuthenticator } from '../../../../src/auth/authenticate.ts';
import { systemClock } from '../../../../src/core/clock.ts';
import type { Authenticate } from '../../../../src/ports/index.ts';
import { callerName } from '../../../../src/transport/outbound/caller-credentials.ts';
import { type Accounts, openAccounts } from '../../../support/mcp/accounts.ts';
import { type Callers, openCallers } from '../../../support/mcp/callers.ts';
import { openLegacyClient } from '../../../support/mcp/one-server.ts';
import { exchange } from '../../../support/mcp/wire-client.ts';

/** Callers authenticate with access tokens of the same authorization server. */
async function exchanging(more: object = {}): Promise<Callers> {
  let verify: Authenticate | undefined;
  const callers = await openCallers(({ issuer }) => ({ exchange: { token_endpoint: `${issuer}/token`, ...more } }), {
    authenticate: (bearer, at) => (verify as Authenticate)(bearer, at),
  });
  const { issuer, jwks } = callers.accounts;
  const oauth = { issuer, audience: 'gateway', jwks };
  const options = { clock: systemClock, localToken: 'the-local-token', oauth, exchanges: () => true };
  verify = createAuthenticator(options);
  return callers;
}

const FULL = { scope: '*' };
const exchanges = ({ forms }: Accounts) => forms.filter((form) => form.get('grant_type')?.endsWith('token-exchange'));

test("a caller's token is exchanged for one for the server, and is itself sent to no server", async () => {
  const callers = await exchanging();
  const { accounts } = callers;
  const [ann, bob] = await Promise.all(['ann', 'bob'].map((who) => accounts.callerToken(who, 'gateway', FULL)));
  const answers = await Promise.all([ann, bob, ann, bob, ann].map((who) => callers.call(who as string, 'whoami')));
  expect(answers).toEqual(['ann@upstream', 'bob@upstream', 'ann@upstream', 'bob@upstream', 'ann@upstream']);
  // Each was exchanged once, for this server.
  expect(
    exchanges(accounts)
      .map((form) => form.get('subject_token'))
      .toSorted(),
  ).toEqual([ann, bob].toSorted());
  for (const form of exchanges(accounts)) expect(form.get('resource')).toBe(accounts.url);
  expect(accounts.bearers).not.toContain(ann);
  expect(accounts.bearers).not.toContain(bob);
  const text = `${JSON.stringify(await callers.events())}${callers.lines.join('\n')}`;
  for (const token of [ann as string, bob as string, ...accounts.bearers]) expect(text).not.toContain(token);
  for (const token of accounts.bearers) expect(callers.learned).toContain(token);
});

test('an authorization server that hands the same token back does not make the gateway pass it on', async () => {
  const callers = await exchanging();
  const { accounts } = callers;
  accounts.behaviour.token = (form) => ({
    status: 200,
    body: JSON.stringify({ access_token: form.get('subject_token'), token_type: 'Bearer' }),
  });
  const ann = await accounts.callerToken('ann', 'gateway', FULL);
  expect(await callers.call(ann, 'whoami')).toContain("returned the caller's own token");
  expect(accounts.bearers).toEqual([]);
});

test('a caller that did not authenticate with an access token has nothing to exchange', async () => {
  const callers = await exchanging();
  expect(await callers.call('the-local-token', 'whoami')).toContain('local did not authenticate with an access token');
  expect(exchanges(callers.accounts)).toEqual([]);
  expect(callers.accounts.bearers).toEqual([]);
});

test('two tokens of one caller with other rights are exchanged each for itself', async () => {
  const callers = await exchanging();
  const { accounts } = callers;
  const wide = await accounts.callerToken('ann', 'gateway', FULL);
  const narrow = await accounts.callerToken('ann', 'gateway', { scope: '*', groups: ['readers'] });
  await callers.call(wide, 'whoami');
  const before = new Set(accounts.bearers);
  await callers.call(narrow, 'whoami');
  const after = accounts.bearers.filter((token) => !before.has(token));
  expect(after.length).toBeGreaterThan(0);
  await callers.call(narrow, 'whoami');
  expect(accounts.bearers.at(-1)).toBe(after.at(-1));
});

test('a token that the server does not accept is exchanged anew, once; refused and malformed exchanges are refusals', async () => {
  const callers = await exchanging();
  const { accounts } = callers;
  const ann = await accounts.callerToken('ann', 'gateway', FULL);
  await callers.call(ann, 'whoami');
  accounts.expire();
  const answers = await Promise.all(Array.from({ length: 6 }, () => callers.call(ann, 'whoami')));
  expect(new Set(answers)).toEqual(new Set(['ann@upstream']));
  expect(exchanges(accounts).length).toBe(2);

  const bad: [number, string, string][] = [
    [400, '{"error":"invalid_target"}', "does not exchange the caller's token: invalid_target"],
    [401, '{"error":"bad <thing>","error_description":"secret"}', "does not exchange the caller's token"],
    [200, '{"access_token":"x y","token_type":"Bearer"}', 'github does not say which tools it has'],
    [200, '{"access_token":"good","token_type":"N_A"}', 'github does not say which tools it has'],
    [
      200,
      '{"access_token":"g","token_type":"Bearer","issued_token_type":"urn:x:saml2"}',
      'github does not say which tools it has',
    ],
    [200, '<html>', 'github does not say which tools it has'],
    [302, '', 'github does not say which tools it has'],
    [503, '{}', 'github does not say which tools it has'],
  ];
  for (const [status, body, said] of bad) {
    accounts.behaviour.token = () => ({ status, body });
    const eve = await accounts.callerToken('eve', 'gateway', { ...FULL, status, body });
    const answer = await callers.call(eve, 'whoami');
    expect(answer).toContain(said);
    expect(answer).not.toContain('secret');
  }
});

test('a session of the legacy era uses the token of each request, not the one it was opened with', async () => {
  const callers = await exchanging();
  const { accounts, gateway } = callers;
  const [first, second] = [
    await accounts.callerToken('ann', 'gateway', FULL),
    await accounts.callerToken('ann', 'gateway', FULL),
  ];
  const url = gateway.at('github');
  const client = await openLegacyClient(url, {}, { headers: { authorization: `Bearer ${first}` } });
  await client.request('tools/call', { name: 'whoami' });
  accounts.expire();
  const { frames } = await exchange(url, {
    headers: {
      authorization: `Bearer ${second}`,
      'mcp-session-id': client.session,
      'mcp-protocol-version': '2025-11-25',
    },
    body: { jsonrpc: '2.0', id: 'again', method: 'tools/call', params: { name: 'whoami' } },
  });
  expect(frames.at(-1)?.result.content).toEqual([{ type: 'text', text: 'ann@upstream' }]);
  expect(exchanges(accounts).map((form) => form.get('subject_token'))).toEqual([first, second]);
});

test('each caller has a secret of its own, by the name that the configuration gives it', async () => {
  const callers = await openCallers(() => ({ caller_tokens: { bob: 'bobs-own', '*': 'github-{caller}' } }));
  const { accounts, secrets } = callers;
  const odd = 'an.n~';
  const tokens = new Map<string, string>();
  for (const [who, name] of [
    ['ann', 'github-ann'],
    ['bob', 'bobs-own'],
    [odd, `github-${callerName({ id: odd })}`],
  ] as const) {
    const token = await accounts.callerToken(`${who}@github`, accounts.url, { scope: 'tools', generation: 0 });
    tokens.set(who, token);
    await secrets.keep?.(name, token);
  }
  for (const who of ['ann', 'bob', odd]) expect(await callers.call(who, 'whoami')).toBe(`${who}@github`);
  expect(await callers.call('eve', 'whoami')).toBe(
    'github has no credentials of eve: its operator stores them with: tollbridge vault set github-eve',
  );
  expect(new Set(accounts.bearers)).toEqual(new Set(tokens.values()));
});

test('a caller that the configuration does not name gets nothing of another caller', async () => {
  const callers = await openCallers(() => ({ caller_tokens: { bob: 'bobs-own' } }));
  await callers.secrets.keep?.('bobs-own', 'the-token-of-bob');
  expect(await callers.call('eve', 'whoami')).toContain('github has no credentials of eve');
  expect(await callers.tools('eve', true)).toEqual([]);
  expect(callers.accounts.bearers).toEqual([]);
});

test('names of callers in names of secrets are distinct', () => {
  const callers = [
    { id: 'ann' },
    { id: 'a/nn' },
    { id: 'a-nn' },
    { id: 'ann', tenant_id: 'acme' },
    { id: 'ann', tenant_id: 'globex' },
    { id: 'acme/ann' },
    { id: callerName({ id: 'a/nn' }) },
  ];
  expect(new Set(callers.map(callerName)).size).toBe(callers.length);
  for (const caller of callers) expect(callerName(caller)).toMatch(/^[A-Za-z0-9_.-]{1,64}$/);
});

test('the configuration is refused where a common credential could take the place of a missing one', () => {
  const url = 'https://tools.example/mcp';
  const sign_in = { per: 'caller' } as const;
  const exchange = { token_endpoint: 'https://login.example/token' };
  const wrong: [UpstreamConfig, string][] = [
    [{ url, sign_in, token: 'shared' }, 'sign_in and token are two credentials for one server: leave one out'],
    [{ url, exchange, sign_in: {} }, 'exchange and sign_in are two credentials'],
    [{ url, exchange, caller_tokens: 'x-{caller}' }, 'caller_tokens and exchange are two credentials'],
    [{ url, caller_tokens: 'shared' }, 'shared is one secret for all callers: put {caller} into its name'],
    [{ url, caller_tokens: { ann: 'a', '*': 'shared' } }, 'shared is one secret for all callers'],
    [{ url, sign_in, headers: { Authorization: 'Bearer x' } }, 'leave out the common ones in url and headers'],
    [{ url, sign_in, header_secrets: { authorization: 'x' } }, 'leave out the common ones in url and headers'],
    [{ url: 'https://a:b@tools.example/mcp', sign_in }, 'leave out the common ones in url and headers'],
    [{ command: ['x'], exchange }, 'exchange is for servers with a url'],
  ];
  for (const [config, why] of wrong) expect(() => isPerCaller(config)).toThrow(why);
  expect(isPerCaller({ url, sign_in: {} })).toBe(false);
  expect(isPerCaller({ url, sign_in: { per: 'gateway' }, header_secrets: { authorization: 'x' } })).toBe(false);
  expect(isPerCaller({ url, sign_in, header_secrets: { 'x-api-key': 'x' } })).toBe(true);
});

test('tokens are exchanged over https only, unless the authorization server is on this machine', async () => {
  const accounts = await openAccounts();
  const config = { url: accounts.url, exchange: { token_endpoint: 'http://login.example/token' } };
  await accounts.close();
  expect(() => mcp.parts.tools.open(config, { clock: systemClock } as never)).toThrow('over https only');
});
