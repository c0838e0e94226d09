/** Each caller uses a server with an account of its own: the first call leads to a sign-in, whose tokens are this caller's alone. */
import { expect, test } from 'vitest';
import { linkIn, openCallers, person } from '../../../support/mcp/callers.ts';

const PER_CALLER = () => ({ sign_in: { per: 'caller' } });

async function signedIn(callers: Awaited<ReturnType<typeof openCallers>>, who: string, account = `${who}@github`) {
  const said = await callers.call(who, 'sign_in');
  expect(said).toContain('/connect/');
  const link = linkIn(said);
  const { code } = await person(account).signsIn(link);
  expect(code).toMatch(/^\w{3}-\w{3}-\w{3}$/);
  expect(await callers.call(who, 'sign_in', { code })).toBe('Signed in. The tools of the server can be used.');
}

test('a caller without an account is refused with a link, signs in, and works with that account', async () => {
  const callers = await openCallers(PER_CALLER);
  const refused = await callers.call('ann', 'whoami');
  expect(refused).toMatch(
    /^github is used with an account of ann, who has to sign in first: open http:\/\/127\.0\.0\.1:\d+\/connect\/github\/[\w-]{40} in a browser, sign in, and call the tool sign_in of github with the code that the page shows$/,
  );
  expect(await callers.tools('ann')).toEqual(['sign_in']);
  // Nothing has been sent to the server: there were no credentials to send.
  expect(callers.accounts.bearers).toEqual([]);
  expect(callers.accounts.upstream.asked).toEqual([]);

  await signedIn(callers, 'ann');
  expect(await callers.tools('ann')).toEqual(['whoami']);
  expect(await callers.call('ann', 'whoami')).toBe('ann@github');
});

test('several callers at once have an account each, and sessions, lists and tokens are not shared', async () => {
  const callers = await openCallers(PER_CALLER);
  const names = ['ann', 'bob', 'Ann', 'an.n~'];
  await signedIn(callers, 'ann');
  await Promise.all(names.slice(1).map((who) => signedIn(callers, who)));
  const answers = await Promise.all(
    Array.from({ length: 24 }, async (_, at) => {
      const who = names[at % names.length] as string;
      return [who, await callers.call(who, 'whoami')];
    }),
  );
  for (const [who, account] of answers) expect(account).toBe(`${who}@github`);
  expect(await callers.tools('eve')).toEqual(['sign_in']);
  expect(await callers.call('eve', 'whoami')).toContain('has to sign in first');
  // One registration of the gateway, not one for each caller; people are sent back to the gateway.
  expect(callers.accounts.registered).toEqual([expect.stringMatching(/\/connect\/github\/back$/)]);
});

test('at the common address the sign-in stands for the tools, and a call of one of them leads there', async () => {
  const callers = await openCallers(PER_CALLER);
  expect(await callers.tools('ann', true)).toEqual(['github__sign_in']);
  const call = async (name: string, args = {}) =>
    (await callers.ask('ann', 'tools/call', { name, arguments: args }, { common: true })).content[0].text;
  const link = linkIn(await call('github__whoami'));
  const { code } = await person('ann@github').signsIn(link);
  await call('github__sign_in', { code });
  expect(await callers.tools('ann', true)).toEqual(['github__whoami']);
  expect(await call('github__whoami')).toBe('ann@github');
});

test('a client that opens pages and fills in forms is asked, and its call goes on', async () => {
  const callers = await openCallers(PER_CALLER);
  const capabilities = { elicitation: { form: {}, url: {} } };
  const params = { name: 'whoami', arguments: {} };
  const first = await callers.ask('ann', 'tools/call', params, { capabilities });
  expect(first.resultType).toBe('input_required');
  const page = first.inputRequests.tollbridge_sign_in.params;
  expect(page).toMatchObject({ mode: 'url', url: expect.stringContaining('/connect/github/') });
  const { code } = await person('ann@github').signsIn(page.url);
  const second = await callers.ask(
    'ann',
    'tools/call',
    { ...params, requestState: first.requestState, inputResponses: { tollbridge_sign_in: { action: 'accept' } } },
    { capabilities },
  );
  const form = second.inputRequests.tollbridge_sign_in_code.params;
  expect(form.requestedSchema.required).toEqual(['code']);
  const inputResponses = { tollbridge_sign_in_code: { action: 'accept', content: { code } } };
  const last = await callers.ask(
    'ann',
    'tools/call',
    { ...params, requestState: second.requestState, inputResponses },
    { capabilities },
  );
  expect(last.content).toEqual([{ type: 'text', text: 'ann@github' }]);
});

test('a link that another person opened puts no account under the name of the caller, nor of the other', async () => {
  const callers = await openCallers(PER_CALLER);
  const link = linkIn(await callers.call('mallory', 'whoami'));
  const { text, code } = await person('victim@github').signsIn(link);
  expect(text).toContain('used for the caller <b>mallory</b>');
  // Mallory has the link and not the code; the victim has the code and is another caller.
  expect(await callers.call('mallory', 'sign_in', { code: 'BBB-BBB-BBB' })).toContain('this is not the code');
  expect(await callers.call('victim', 'sign_in', { code })).toContain('this is not the code');
  expect(await callers.call('mallory', 'whoami')).toContain('has to sign in first');
  expect(callers.accounts.bearers).toEqual([]);
});

test('a code is good for a few tries and for one use', async () => {
  const callers = await openCallers(PER_CALLER);
  const { code } = await person('ann@github').signsIn(linkIn(await callers.call('ann', 'sign_in')));
  for (let tries = 0; tries < 5; tries += 1) await callers.call('ann', 'sign_in', { code: `wrong${tries}` });
  expect(await callers.call('ann', 'sign_in', { code })).toContain('this is not the code');
  await signedIn(callers, 'ann');
  expect(await callers.call('ann', 'whoami')).toBe('ann@github');
});

test('a sign-in that comes back in another browser, twice, or with a made-up state stores nothing', async () => {
  const callers = await openCallers(PER_CALLER);
  const [ann, other] = [person('ann@github'), person('other@github')];
  const link = linkIn(await callers.call('ann', 'sign_in'));
  const back = await other.consent(await ann.begin(link));
  const elsewhere = await other.go(back);
  expect([elsewhere.status, elsewhere.text]).toEqual([403, expect.stringContaining('began in another browser')]);
  expect((await ann.go(back)).status).toBe(400);
  expect((await ann.go(link)).status).toBe(404);

  const again = linkIn(await callers.call('ann', 'sign_in'));
  const made = new URL(await ann.consent(await ann.begin(again)));
  made.searchParams.set('state', 'made-up');
  expect((await ann.go(made.href)).status).toBe(400);
  expect(callers.accounts.forms).toEqual([]);
});

test('consent that is refused, an issuer of another server and malformed answers end in a page that says so', async () => {
  const callers = await openCallers(PER_CALLER);
  const { behaviour } = callers.accounts;
  const fails = async () => {
    const { status, text, code } = await person('ann@github').signsIn(linkIn(await callers.call('ann', 'sign_in')));
    expect([status, code]).toEqual([400, '']);
    expect(await callers.call('ann', 'whoami')).toContain('has to sign in first');
    return text;
  };
  behaviour.refusesConsent = true;
  expect(await fails()).toContain('sign-in refused: access_denied');
  behaviour.refusesConsent = false;
  behaviour.iss = 'https://attacker.example';
  await fails();
  // The code was not sent anywhere.
  expect(callers.accounts.forms).toEqual([]);
  delete behaviour.iss;
  for (const body of ['', 'null', '{"access_token":7}', '{"token_type":"Bearer"}', '<html>']) {
    behaviour.token = () => ({ status: 200, body });
    await fails();
  }
  behaviour.token = () => ({ status: 500, body: 'secret-in-an-error' });
  expect(await fails()).not.toContain('secret-in-an-error');
  behaviour.token = undefined;
  await signedIn(callers, 'ann');
});

test('an expired token is refreshed once for all calls; one that cannot be refreshed leads to a new sign-in', async () => {
  const callers = await openCallers(PER_CALLER);
  await Promise.all(['ann', 'bob'].map((who) => signedIn(callers, who)));
  const refreshed = () => callers.accounts.forms.filter((form) => form.get('grant_type') === 'refresh_token').length;
  callers.accounts.expire();
  const answers = await Promise.all(Array.from({ length: 10 }, () => callers.call('ann', 'whoami')));
  expect(new Set(answers)).toEqual(new Set(['ann@github']));
  expect(refreshed()).toBe(1);
  expect(await callers.call('bob', 'whoami')).toBe('bob@github');
  expect(refreshed()).toBe(2);

  callers.accounts.expire(true);
  expect(await callers.call('ann', 'whoami')).toContain('has to sign in first');
  expect(await callers.tools('ann')).toEqual(['sign_in']);
  await signedIn(callers, 'ann', 'ann-2@github');
  expect(await callers.call('ann', 'whoami')).toBe('ann-2@github');
});

test('a server that wants more scopes leads to a sign-in for all of them', async () => {
  const callers = await openCallers(PER_CALLER);
  await signedIn(callers, 'ann');
  callers.accounts.behaviour.scope = 'tools write';
  const refused = await callers.call('ann', 'whoami');
  const ann = person('ann@github');
  const onward = await ann.begin(linkIn(refused));
  expect(new URL(onward).searchParams.get('scope')?.split(' ').toSorted()).toEqual(['tools', 'write']);
  expect(await callers.tools('ann')).toEqual(['sign_in']);
  const { text } = await ann.go(await ann.consent(onward));
  await callers.call('ann', 'sign_in', { code: /<code>([^<]*)</.exec(text)?.[1] });
  expect(await callers.call('ann', 'whoami')).toBe('ann@github');
});

test('the link, the way back and the code may each reach another process with the same vaults', async () => {
  const one = await openCallers(PER_CALLER);
  const two = await openCallers(() => ({ url: one.accounts.url, ...PER_CALLER() }), { deps: one.secrets });
  const at = (address: string, { gateway }: typeof one) => {
    const { pathname, search } = new URL(address);
    return `${gateway.url.replace('localhost', '127.0.0.1')}${pathname}${search}`;
  };
  const link = linkIn(await one.call('ann', 'whoami'));
  // Both processes hand out the same link: it is the caller's, not the process's.
  expect(new URL(linkIn(await two.call('ann', 'whoami'))).pathname).toBe(new URL(link).pathname);
  const ann = person('ann@github');
  const back = await ann.consent(await ann.begin(at(link, two)));
  const { text } = await ann.go(at(back, one));
  const code = /<code>([^<]*)</.exec(text)?.[1];
  expect(code).toMatch(/^\w{3}-\w{3}-\w{3}$/);
  // The answer counts once, at whichever process.
  expect((await ann.go(at(back, two))).status).toBe(400);
  expect(await two.call('bob', 'sign_in', { code })).toContain('this is not the code');
  expect(await two.call('ann', 'sign_in', { code })).toBe('Signed in. The tools of the server can be used.');
  expect(await two.call('ann', 'whoami')).toBe('ann@github');
  expect(await one.call('ann', 'sign_in', { code })).not.toContain('has to sign in');
  const seen = [...(await one.events()), ...(await two.events())];
  const text2 = `${JSON.stringify(seen)}${one.lines.join('')}${two.lines.join('')}`;
  for (const form of one.accounts.forms) expect(text2).not.toContain(form.get('code_verifier') ?? 'absent');
});

test('tokens, codes and verifiers are in no event and no line of the log, and events name the kind of credentials', async () => {
  const callers = await openCallers(PER_CALLER);
  await signedIn(callers, 'ann');
  callers.accounts.expire();
  expect(await callers.call('ann', 'whoami')).toBe('ann@github');
  const events = await callers.events();
  const text = `${JSON.stringify(events)}${callers.lines.join('\n')}`;
  const secret = [
    ...callers.accounts.bearers,
    ...callers.accounts.forms.flatMap((form) =>
      ['code', 'code_verifier', 'refresh_token'].flatMap((name) => form.get(name) ?? []),
    ),
  ];
  expect(secret.length).toBeGreaterThan(3);
  for (const each of secret) expect(text).not.toContain(each);
  for (const each of new Set(callers.accounts.bearers)) expect(callers.learned).toContain(each);
  const decided = events.filter(({ event }) => event === 'vendor.tollbridge.decided').map(({ payload }) => payload);
  expect(JSON.stringify(decided)).toContain('"account":"sign_in"');
});
