/** Questions reported by webhook and answered by link: who can, who cannot, and what never decides. */
import { createHmac } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { questionPage } from '../../src/inbox/page.ts';
import { viewQuestion } from '../../src/inbox/question-view.ts';
import { openWebhooks } from '../../src/inbox/webhook.ts';
import type { Actor } from '../../src/model/actions.ts';
import type { AskRecord } from '../../src/model/asks.ts';
import type { Bridge, Logger, Row } from '../../src/ports/index.ts';
import { type Gateway, startGateway } from '../../src/runtime/gateway.ts';
import { latch } from '../support/gateway/agents.ts';
import { says } from '../support/gateway/test-gateway.ts';
import { configIn } from '../support/process/config-in.ts';

const OWNER: Actor = { id: 'owner', kind: 'person', scopes: ['*'] };
const KEY = 'a key of the duty channel';

interface Message {
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: { type: string; data: { id: string; decide_url?: string } & Record<string, unknown> };
}

/** A webhook receiver: it keeps what it is sent, after it has refused as many deliveries as it was told to, with these statuses. */
async function channel(refusals: readonly number[] = []) {
  const left = [...refusals];
  const messages: Message[] = [];
  let arrived = latch();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const status = left.shift() ?? 204;
      response.writeHead(status, status === 302 ? { location: '/elsewhere' } : {}).end();
      if (status !== 204) return;
      const text = Buffer.concat(chunks).toString();
      messages.push({ headers: request.headers, text, body: JSON.parse(text) });
      arrived.open();
      arrived = latch();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    messages,
    async next(type: string): Promise<Message> {
      for (;;) {
        const found = messages.findIndex(({ body }) => body.type === type);
        if (found >= 0) return messages.splice(found, 1)[0] as Message;
        await arrived.promise;
      }
    },
  };
}

async function location() {
  const dir = await mkdtemp(join(tmpdir(), 'tb-inbox-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

async function gatewayAt(dir: string, yaml: string): Promise<Gateway> {
  vi.stubEnv('TOLLBRIDGE_SECRET_duty', KEY);
  onTestFinished(() => void vi.unstubAllEnvs());
  await writeFile(join(dir, 'tollbridge.yaml'), yaml);
  const gateway = await startGateway(await configIn(dir, { data: join(dir, 'data'), port: 0 }));
  onTestFinished(() => gateway.close());
  return gateway;
}

const hook = (url: string, links = true) =>
  `approvals: { webhooks: { duty: { url: "${url}", secret: duty, links: ${links} } } }`;

async function work({ core: runtime }: Gateway, text: string) {
  const { bridge } = runtime;
  const body = { workspace_id: 'workspace_default' };
  const { resource: session } = await bridge.submit({ kind: 'session.create', actor: OWNER, body });
  const task = { session_id: session.id, input: says(text) };
  return (await bridge.submit({ kind: 'task.submit', actor: OWNER, body: task })).resource.id;
}

const askOf = ({ core: runtime }: Gateway, id: string) => runtime.bridge.view<AskRecord & Row>(OWNER, 'ask', id);
const post = (url: string, form: Record<string, string>, headers: Record<string, string> = {}) =>
  fetch(url, { method: 'POST', body: new URLSearchParams(form), headers });

test('nothing an agent says can turn the page round, or put something into it', () => {
  const ask = {
    kind: 'approval',
    question: 'Send \u202egpj.exe\u2066?',
    action: { tool: '<b>x</b>', arguments: { '</pre>': '<script>' }, claims: { title: 'Only a </aside> read' } },
    reason: '"why"',
    rule_id: null,
    to: [],
    metadata: {},
    created_at: '2026-11-16T17:30:00Z',
    expires_at: '2026-11-16T18:30:00Z',
  };
  const page = questionPage({ view: viewQuestion(ask as never, undefined), kind: 'approval' });
  expect(page).toContain('<h1>Send \\u{202e}gpj.exe\\u{2066}?</h1>');
  expect(page).toContain('<dd>&lt;b&gt;x&lt;/b&gt;</dd>');
  expect(page).toContain('<dd>&quot;why&quot;</dd>');
  expect(page).toContain('<h3>&quot;&lt;/pre&gt;&quot;</h3><pre>&lt;script&gt;</pre>');
  expect(page).toContain('<pre>Only a &lt;/aside&gt; read</pre></aside>');
});

test('a question is reported, signed, with a link; looking decides nothing, the form decides once', async () => {
  const duty = await channel();
  const gateway = await gatewayAt(await location(), hook(duty.url));
  await work(gateway, 'send <b>hi</b> to bob');
  const { headers, text, body } = await duty.next('approval.requested');
  const { id, decide_url: link = '' } = body.data;
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${text}`;
  expect(headers['webhook-id']).toBe(`${id}.requested`);
  expect(headers['webhook-signature']).toBe(`v1,${createHmac('sha256', KEY).update(signed).digest('base64')}`);
  expect(body.data).toMatchObject({ kind: 'approval', reason: 'data leaves this host, so a person decides' });

  for (const method of ['GET', 'HEAD', 'GET']) {
    const looked = await fetch(link, { method });
    expect(looked.status).toBe(200);
    expect(looked.headers.get('content-security-policy')).toContain("default-src 'none'");
    if (method === 'GET') expect(await looked.text()).toContain('&lt;b&gt;hi&lt;/b&gt;');
  }
  expect((await askOf(gateway, id)).state).toBe('open');

  expect((await post(link, { decision: 'perhaps' })).status).toBe(400);
  expect((await fetch(link, { method: 'PUT' })).status).toBe(405);
  expect((await post(link, { decision: 'approve' }, { origin: 'https://evil.example' })).status).toBe(403);
  expect((await askOf(gateway, id)).state).toBe('open');

  const answered = await post(link, { decision: 'deny', reason: 'not today' }, { origin: gateway.url });
  expect([answered.status, await answered.text()]).toEqual([200, expect.stringContaining('Denied')]);
  expect(await askOf(gateway, id)).toMatchObject({ state: 'denied', answered_by: 'link:duty' });
  expect((await duty.next('approval.closed')).body.data).toMatchObject({ id, state: 'denied', by: 'link:duty' });
  const again = await post(link, { decision: 'approve' });
  expect([again.status, await again.text()]).toEqual([409, expect.stringContaining('Already denied')]);
});

test('a link is worth nothing after its time, and a secret in an act is reported to nobody', async () => {
  const duty = await channel();
  const secret = 'sk-ant-api03-Zm9yIHRlc3RzIG9ubHksIG5vdCBhIGtleSBhdCBhbGw';
  const yaml = hook(duty.url).replace('approvals: {', 'approvals: { expire_after: 500ms,');
  const gateway = await gatewayAt(await location(), yaml);
  await work(gateway, `send ${secret} to bob`);
  const { text, body } = await duty.next('approval.requested');
  expect(text).not.toContain(secret);
  expect(text).toContain('send_mail');
  const closed = await duty.next('approval.closed');
  expect(closed.body.data).toMatchObject({ id: body.data.id, state: 'expired' });
  expect(closed.text).not.toContain(secret);
  const { decide_url: link = '' } = body.data;
  for (const late of [await fetch(link), await post(link, { decision: 'approve' })]) {
    const page = await late.text();
    expect([late.status, page]).toEqual([409, expect.stringContaining('Not answered in time: denied.')]);
    expect(page).not.toContain('<button');
  }
  expect((await askOf(gateway, body.data.id)).state).toBe('expired');
});

test('a value that is wanted can be sent the same way', async () => {
  const duty = await channel();
  const gateway = await gatewayAt(await location(), hook(duty.url));
  await work(gateway, 'ask which colour');
  const { id, decide_url: link = '' } = (await duty.next('approval.requested')).body.data;
  expect(await (await fetch(link)).text()).toContain('name="value"');
  expect((await post(link, { value: '' })).status).toBe(400);
  expect((await post(link, { value: 'blue' })).status).toBe(200);
  expect(await askOf(gateway, id)).toMatchObject({ state: 'answered', answer: 'blue' });
});

test('a link that is not ours, changed, of another question or of nobody we tell leads nowhere', async () => {
  const duty = await channel();
  const dir = await location();
  const gateway = await gatewayAt(dir, hook(duty.url));
  await work(gateway, 'send one to bob');
  await work(gateway, 'send two to bob');
  const one = (await duty.next('approval.requested')).body.data;
  const two = (await duty.next('approval.requested')).body.data;
  const link = one.decide_url ?? '';
  const [, , proof = ''] = (link.split('/').at(-1) ?? '').split('.');
  const wrong = [
    link.slice(0, -1),
    `${link}0`,
    link.replace(one.id, two.id),
    link.replace('/duty.', '/other.'),
    `${link}.more`,
    `${gateway.url}/decide/`,
    `${gateway.url}/decide/%ff.${one.id}.${proof}`,
  ];
  for (const url of wrong) {
    const answer = await post(url, { decision: 'approve' });
    expect([url, answer.status]).toEqual([url, 404]);
    expect(await answer.text()).toContain('This link leads nowhere');
  }
  expect((await askOf(gateway, one.id)).state).toBe('open');
  expect((await askOf(gateway, two.id)).state).toBe('open');

  await gateway.close();
  const without = await gatewayAt(dir, hook(duty.url).replace('duty:', 'other:'));
  expect((await post(link.replace(gateway.url, without.url), { decision: 'approve' })).status).toBe(404);
});

test('what cannot be reported is reported later, what was open is reported again after a restart, and no redirect is followed', async () => {
  const duty = await channel([500, 302]);
  const dir = await location();
  const gateway = await gatewayAt(dir, hook(duty.url, false));
  await work(gateway, 'send hello to bob');
  const first = await duty.next('approval.requested');
  expect(first.body.data.decide_url).toBeUndefined();
  expect((await fetch(new URL(`/decide/duty.${first.body.data.id}.00`, gateway.url))).status).toBe(404);
  await gateway.close();
  await gatewayAt(dir, hook(duty.url, false));
  const second = await duty.next('approval.requested');
  expect(second.headers['webhook-id']).toBe(first.headers['webhook-id']);
});

test('without its key nobody is notified, and the start says so', async () => {
  const yaml = 'approvals: { webhooks: { duty: { url: "http://127.0.0.1:9", secret: gone } } }';
  await expect(gatewayAt(await location(), yaml)).rejects.toThrow('no secret gone');
});

test('a question that is answered at once is reported before its end, and a recipient that hangs delays no other', async () => {
  const ask = {
    id: 'ask_1',
    task_id: 'task_1',
    kind: 'approval',
    question: 'May it?',
    action: { tool: 'send', arguments: {} },
    reason: 'a rule',
    rule_id: null,
    to: [],
    metadata: {},
    created_at: '2026-11-01T00:00:00Z',
    expires_at: '2027-11-01T00:00:00Z',
  };
  const followed = [
    { event: 'vendor.tollbridge.ask_opened', payload: { ask } },
    { event: 'vendor.tollbridge.ask_closed', payload: { ask_id: ask.id, state: 'approved', by: 'owner', at: '1' } },
  ];
  const bridge = {
    async *follow() {
      yield* followed;
    },
    list: async () => ({ data: [] }),
    view: () => new Promise((found) => setImmediate(found, { id: 'task_1', metadata: {} })),
  } as unknown as Bridge;
  const both = latch();
  const taken: string[] = [];
  const hooks = openWebhooks({
    bridge,
    actor: OWNER,
    recipients: ['hangs', 'takes'].map((name) => ({
      name,
      url: `http://${name}.example`,
      key: KEY,
      link: undefined,
    })),
    clock: { now: () => '2026-11-01T00:00:00.000Z' },
    log: { warn() {}, error() {}, info() {}, debug() {} } as unknown as Logger,
    pause: () => new Promise(() => {}),
    fetch: async (url, init) => {
      if (String(url).includes('hangs')) return new Promise(() => {});
      taken.push(new Headers(init?.headers).get('webhook-id') ?? '');
      if (taken.length === 2) both.open();
      return new Response(null, { status: 204 });
    },
  });
  onTestFinished(() => hooks.close());
  await both.promise;
  expect(taken).toEqual(['ask_1.requested', 'ask_1.closed']);
});
