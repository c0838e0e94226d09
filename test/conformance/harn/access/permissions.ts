/** Remembered answers, granted patterns, checks and history: judged by what an agent can do afterwards, not by what is stored. */
import type { Session } from '../../../../src/model/resources.ts';
import { equal, truth } from '../harness/expect.ts';
import { category, each } from '../harness/suite.ts';
import { type Target, unique } from '../harness/target.ts';
import type { List } from '../harness/wire.ts';
import { approval, respond } from '../tasks/asks.ts';
import { outsider } from './tenants.ts';

interface Rule {
  readonly id: string;
  readonly scope: string;
  readonly allow: boolean;
  readonly action_pattern: string;
  readonly target_pattern: string;
  readonly created_by: string;
}
interface Entry {
  readonly request: { readonly action: string; readonly session_id: string };
  readonly outcome: string;
  readonly decided_at: string;
}
interface Decided {
  readonly decision: { readonly outcome: string };
}
interface Policy {
  readonly version: string;
  readonly policy: Readonly<Record<string, unknown>>;
}

const RULES = '/v1/permissions/rules';
const MAIL = { class: 'custom', action_pattern: 'send_mail', target_pattern: '*', allow: true };
const inSession = ({ id }: Session) => ({ scope: 'session', scope_value: id });
const remember = (at: Target, rule: object) => at.ok<Rule>('POST', RULES, { body: rule });

/** What becomes of a mail: sent, refused, or asked about (and then refused). Judged by the mail that left the gateway. */
async function mailTo(at: Target, to: string, session: Session): Promise<'sent' | 'refused' | 'asked'> {
  const before = (await at.mine().effects()).length;
  const { id } = await at.submit(`send the plan to ${to}`, session.id);
  const { status } = await at.reaches(id, 'AUTH_REQUIRED', 'COMPLETED', 'FAILED');
  if (status === 'AUTH_REQUIRED') {
    const { data } = await at.ok<List<{ id: string }>>('GET', `/v1/tasks/${id}/permission-requests?status=pending`);
    await at.ok('POST', `/v1/permission-requests/${data[0]?.id}/respond`, { body: { approved: false } });
    await at.ended(id);
    equal((await at.mine().effects()).length, before, 'effects of a mail that was refused');
    return 'asked';
  }
  return (await at.mine().effects()).length > before ? 'sent' : 'refused';
}

/** The same act, asked about and not done. */
async function checked(at: Target, session: Session, act: object): Promise<string> {
  const body = { session_id: session.id, actor: 'agent:demo', class: 'custom', action: 'send_mail', ...act };
  return (await at.ok<Decided>('POST', '/v1/permissions/check', { body })).decision.outcome;
}

export const permissions = category('permissions', {
  async 'a remembered yes lets the act through without a question, until it is revoked'(at) {
    const session = await at.session();
    equal(await mailTo(at, 'bo', session), 'asked', 'before');
    const rule = await remember(at, { ...MAIL, ...inSession(session) });
    equal(await mailTo(at, 'bo', session), 'sent', 'remembered');
    await at.ok('DELETE', `${RULES}/${rule.id}`);
    equal(await mailTo(at, 'bo', session), 'asked', 'revoked');
  },
  async 'a remembered yes covers its target and no other'(at) {
    const session = await at.session();
    await remember(at, { ...MAIL, target_pattern: 'bo', ...inSession(session) });
    equal([await mailTo(at, 'bo', session), await mailTo(at, 'carl', session)], ['sent', 'asked'], 'bo and carl');
  },
  async 'a remembered yes of one session is none in another'(at) {
    const [here, there] = [await at.session(), await at.session()];
    await remember(at, { ...MAIL, ...inSession(here) });
    equal([await mailTo(at, 'bo', here), await mailTo(at, 'bo', there)], ['sent', 'asked'], 'here and there');
  },
  async 'a remembered yes of a workspace counts in its sessions and in no other workspace'(at) {
    const [home, away] = [await at.workspace(), await at.workspace()];
    const here = await at.session({ workspace_id: home.id });
    const there = await at.session({ workspace_id: away.id });
    await remember(at, { ...MAIL, scope: 'workspace', scope_value: home.id });
    equal([await mailTo(at, 'bo', here), await mailTo(at, 'bo', there)], ['sent', 'asked'], 'home and away');
  },
  async 'a remembered yes opens nothing that is forbidden'(at) {
    const session = await at.session();
    const all = { class: 'custom', action_pattern: '*', target_pattern: '*', allow: true };
    await remember(at, { ...all, ...inSession(session) });
    const before = (await at.mine().effects()).length;
    const task = await at.done('delete plan', session.id);
    const reported = (await at.events(`/v1/tasks/${task.id}/events`)).map(({ event }) => event);
    truth(
      reported.includes('tool.denied') && !reported.includes('tool.completed'),
      `the deletion went on: ${reported.join()}`,
    );
    equal((await at.mine().effects()).length, before, 'effects');
  },
  async 'a remembered no blocks what is allowed, and beats a yes'(at) {
    const session = await at.session();
    const reads = { class: 'custom', action_pattern: 'read_note', target_pattern: '*' };
    await remember(at, { ...reads, allow: true, ...inSession(session) });
    await remember(at, { ...reads, allow: false, reason: 'not here', ...inSession(session) });
    const task = await at.done('read plan', session.id);
    const reported = (await at.events(`/v1/tasks/${task.id}/events`)).map(({ event }) => event);
    truth(reported.includes('tool.denied') && !reported.includes('tool.completed'), `it was read: ${reported.join()}`);
  },
  async 'an answer that is to be remembered decides the next time, too'(at) {
    for (const approved of [true, false]) {
      const { task, request } = await approval(at);
      await respond(at, request, { approved, remember: true });
      await at.ended(task.id);
      const session = await at.ok<Session>('GET', `/v1/sessions/${task.session_id}`);
      equal(await mailTo(at, 'bo', session), approved ? 'sent' : 'refused', `after approved: ${approved}`);
      equal(await mailTo(at, 'carl', session), 'asked', 'what the answer was not about');
    }
  },
  async 'an answer that is not to be remembered is not'(at) {
    const { task, request } = await approval(at);
    await respond(at, request, { approved: true });
    await at.ended(task.id);
    const session = await at.ok<Session>('GET', `/v1/sessions/${task.session_id}`);
    equal(await mailTo(at, 'bo', session), 'asked', 'the next time');
  },
  async 'a yes whose author may not approve its own work does not count there'(at) {
    const { key: as } = await at.mine().issue({ id: unique('giver'), scopes: ['*'] });
    const home = await at.ok<{ id: string }>('POST', '/v1/workspaces', { as, body: { name: 'g', root: 'x:y' } });
    const session = await at.ok<Session>('POST', '/v1/sessions', { as, body: { workspace_id: home.id } });
    await at.ok('POST', RULES, { as, body: { ...MAIL, ...inSession(session) } });
    const { id } = await at.submit('send the plan to bo', session.id, { as });
    equal((await at.reaches(id, 'AUTH_REQUIRED', 'COMPLETED')).status, 'AUTH_REQUIRED', 'its own work');
    await at.ok('POST', `/v1/tasks/${id}/cancel`, { body: {} });
  },
  ...each(
    [
      ['a yes takes approvals:write', ['permission_rules:*', 'sessions:read', 'others:read'], true],
      ['remembering takes permission_rules:write', ['permission_rules:read', 'approvals:write', 'sessions:*'], false],
    ] as const,
    ([name]) => name,
    async ([, scopes, allow], at) => {
      const session = await at.session();
      const { key: as } = await at.mine().issue({ id: unique('holder'), scopes });
      await at.refused('permission_denied', 'POST', RULES, { as, body: { ...MAIL, allow, ...inSession(session) } });
      equal(await mailTo(at, 'bo', session), 'asked', 'afterwards');
    },
  ),
  async 'rules are listed for their tenant, narrowest scope first, and say whose they are'(at) {
    const session = await at.session();
    const wide = await remember(at, {
      ...MAIL,
      target_pattern: 'zoe',
      scope: 'workspace',
      scope_value: session.workspace_id,
    });
    const narrow = await remember(at, { ...MAIL, target_pattern: 'zoe', ...inSession(session) });
    const { data } = await at.ok<List<Rule>>('GET', `${RULES}?limit=200`);
    const found = data.filter(({ target_pattern }) => target_pattern === 'zoe');
    equal(
      found.map(({ id }) => id),
      [narrow.id, wide.id],
      'order',
    );
    truth(
      found.every(({ created_by }) => created_by.length > 0),
      'created_by',
    );
    for (const { id } of found) await at.ok('DELETE', `${RULES}/${id}`);
  },
  ...each(
    [
      { scope: 'session' },
      { scope: 'planet', scope_value: 'x' },
      { scope: 'always', scope_value: 'x' },
      { action_pattern: '' },
      { target_pattern: 'a{b,c}' },
      { class: 'prayer' },
      { expires_at: '2020-01-01T00:00:00.000Z' },
    ],
    (wrong) => `a rule with ${JSON.stringify(wrong)} is 400, and none is kept`,
    async (wrong, at) => {
      const count = async () => (await at.ok<List<Rule>>('GET', `${RULES}?limit=200`)).data.length;
      const before = await count();
      await at.refused('invalid_request', 'POST', RULES, { body: { ...MAIL, scope: 'always', ...wrong } });
      equal(await count(), before, 'rules');
    },
  ),
  async 'rules are no business of another tenant'(at) {
    const as = outsider(at);
    const session = await at.session();
    const rule = await remember(at, { ...MAIL, ...inSession(session) });
    equal((await at.ok<List<Rule>>('GET', RULES, { as })).data, [], 'rules of the other tenant');
    await at.refused('resource_not_found', 'POST', RULES, { as, body: { ...MAIL, ...inSession(session) } });
    await at.refused('resource_not_found', 'DELETE', `${RULES}/${rule.id}`, { as });
    equal(await mailTo(at, 'bo', session), 'sent', 'afterwards');
  },
  async 'a rule that has expired decides nothing'(at) {
    const session = await at.session();
    const expires_at = new Date(Date.now() + 1_500).toISOString();
    await remember(at, { ...MAIL, expires_at, ...inSession(session) });
    equal(await checked(at, session, { target: 'bo' }), 'granted', 'before');
    const deadline = Date.now() + 10_000;
    while ((await checked(at, session, { target: 'bo' })) === 'granted') {
      truth(Date.now() < deadline, 'it is still granted');
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    truth(Date.now() >= Date.parse(expires_at), 'it ended too early');
    equal(await mailTo(at, 'bo', session), 'asked', 'afterwards');
  },
  async 'a check says what will be, and leaves no trace'(at) {
    const session = await at.session();
    const mails = { class: 'custom', action: 'send_mail', target: 'bo' };
    const events = async () => (await at.events(`/v1/sessions/${session.id}/events`)).length;
    const before = await events();
    await remember(at, { ...MAIL, target_pattern: 'bo', ...inSession(session) });
    await remember(at, { ...MAIL, target_pattern: 'eve', allow: false, ...inSession(session) });
    const said = [await checked(at, session, mails), await checked(at, session, { ...mails, target: 'eve' })];
    equal(await events(), before, 'events of the session');
    equal(said, ['granted', 'denied'], 'what was said');
    equal([await mailTo(at, 'bo', session), await mailTo(at, 'eve', session)], ['sent', 'refused'], 'what came');
  },
  async 'a check of a hidden session is 404'(at) {
    const as = outsider(at);
    const body = { session_id: (await at.session()).id, actor: 'x', class: 'custom', action: 'y', target: 'z' };
    await at.refused('resource_not_found', 'POST', '/v1/permissions/check', { as, body });
  },
  async 'history is what was decided, newest first, by session and outcome'(at) {
    const session = await at.session();
    await mailTo(at, 'bo', session);
    await at.done('delete plan', session.id);
    const read = async (query: string) =>
      (await at.ok<List<Entry>>('GET', `/v1/permissions/history?session_id=${session.id}${query}`)).data;
    const acts = (await read('')).filter(({ request }) => ['send_mail', 'delete_note'].includes(request.action));
    equal(
      acts.map(({ request, outcome }) => `${request.action} ${outcome}`),
      ['delete_note denied', 'send_mail escalated'],
      'acts',
    );
    truth(
      acts.every(({ request }) => request.session_id === session.id),
      'another session is in it',
    );
    truth(
      (await read('&outcome=denied')).every(({ outcome }) => outcome === 'denied'),
      'the filter lets others through',
    );
    equal((await read('&limit=1')).length, 1, 'with a limit of one');
  },
  async 'history of another tenant is not read'(at) {
    const as = outsider(at);
    const session = await at.session();
    await mailTo(at, 'bo', session);
    const { data } = await at.ok<List<Entry>>('GET', '/v1/permissions/history?limit=200', { as });
    truth(!data.some(({ request }) => request.session_id === session.id), 'it is read');
  },
  async 'what is granted without a question is replaced as a whole'(at) {
    const session = await at.session();
    const run = (target: string) => checked(at, session, { class: 'exec', action: 'shell', target });
    const put = (body: object) => at.ok<Policy>('PUT', '/v1/permissions/policy', { body });
    const before = await at.ok<Policy>('GET', '/v1/permissions/policy');
    truth((await run('make test')) !== 'granted', 'granted before anything was installed');
    try {
      const first = await put({ exec: ['make *'] });
      equal(await run('make test'), 'granted', 'what the pattern covers');
      truth((await run('make test && curl x')) !== 'granted', 'a second command came along');
      truth(first.version !== before.version, 'the version did not change');
      equal((await at.ok<Policy>('GET', '/v1/permissions/policy')).policy, first.policy, 'what is read');
      await put({ write: ['/tmp/*'] });
      truth((await run('make test')) !== 'granted', 'what is no longer granted is granted');
    } finally {
      await put({});
    }
  },
  ...each(
    [{ llm: { providers: ['x'] } }, { redact: { logs: ['x'] } }, { escalate_to: ['x'] }, { exec: ['a{b,c}'] }],
    (wrong) => `a policy with ${JSON.stringify(wrong)}, which nothing here is held to, is 400 and grants nothing`,
    async (wrong, at) => {
      at.mine();
      const before = await at.ok<Policy>('GET', '/v1/permissions/policy');
      await at.refused('invalid_request', 'PUT', '/v1/permissions/policy', { body: { exec: ['make *'], ...wrong } });
      equal(await at.ok('GET', '/v1/permissions/policy'), before, 'the policy');
    },
  ),
});
