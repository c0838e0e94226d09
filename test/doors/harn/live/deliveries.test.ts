import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { scriptedAgent } from '../../../support/gateway/agents.ts';
import { type Answer, type Door, openDoor } from '../../../support/harn/gateway.ts';

const SECRET = 'the webhook secret of the tests';
const echo = () =>
  scriptedAgent(async (_sink, work) => {
    const [said] = (work.task.input as { parts: { text: string }[] }).parts;
    return { state: 'COMPLETED', summary: said!.text };
  });

async function open(connector: object = {}) {
  const door = await openDoor({ agents: [echo()], secrets: { hook: SECRET } });
  const { workspace, session } = await door.room();
  const { body } = await door.call('POST', '/v1/connectors', {
    provider: 'forge',
    workspace_id: workspace,
    event_kinds: ['issue.opened'],
    auth: { scheme: 'hmac-sha256', secret_name: 'hook' },
    webhook: { deliveries: true },
    ...connector,
  });
  return { door, workspace, session, connector: body.id as string };
}

const hmac = (text: string) => createHmac('sha256', SECRET).update(text).digest('hex');

async function deliver(
  door: Door,
  connector: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const answer = await fetch(`${door.url}/v1/connectors/${connector}/deliveries`, {
    method: 'POST',
    body: text,
    headers: {
      'x-hub-signature-256': `sha256=${hmac(text)}`,
      'x-harn-delivery': 'd-1',
      'x-harn-event': 'issue.opened',
      ...headers,
    },
  });
  const said = await answer.text();
  return { status: answer.status, headers: answer.headers, body: said === '' ? undefined : JSON.parse(said) };
}

async function reported(door: Door, connector: string): Promise<string[]> {
  const events = await door.at.all();
  return events.filter(({ resource }) => resource.id === connector).map(({ event }) => event);
}

test('a signed delivery becomes one task, however often it comes', async () => {
  const { door, connector } = await open();
  const first = await deliver(door, connector, { text: 'please look', number: 7 });
  expect([first.status, first.body.object]).toEqual([202, 'task']);
  expect(first.body).toMatchObject({
    created_by: `connector:${connector}`,
    metadata: { connector_id: connector, delivery_id: 'd-1' },
  });
  const ended = await door.at.until(first.body.id);
  expect(ended.status).toBe('COMPLETED');
  const again = await Promise.all([1, 2, 3].map(() => deliver(door, connector, { text: 'please look', number: 7 })));
  expect(again.map(({ body }) => body.id)).toEqual([first.body.id, first.body.id, first.body.id]);
  expect((await door.call('GET', '/v1/tasks')).body.data).toHaveLength(1);
  expect((await door.call('GET', '/v1/outcomes')).body.data[0].summary).toBe('please look');
  expect((await reported(door, connector)).filter((event) => event.startsWith('connector.'))).toEqual([
    'connector.delivery_received',
    'connector.normalized',
    'connector.task_submitted',
    'connector.delivery_deduped',
    'connector.delivery_deduped',
    'connector.delivery_deduped',
  ]);

  const second = await deliver(door, connector, { text: 'another' }, { 'x-harn-delivery': 'd-2' });
  expect(second.body.id).not.toBe(first.body.id);
  expect(second.body.session_id).toBe(first.body.session_id);
  const altered = await deliver(door, connector, { text: 'changed' });
  expect([altered.status, altered.body.error.code]).toEqual([409, 'idempotency_key_reused']);
});

test('a timestamped signature holds for a while; a session can be named', async () => {
  const setup = await open();
  const { door, connector } = await open({});
  const body = JSON.stringify({ type: 'issue.opened', n: 1 });
  const at = (seconds: number) => {
    const t = Math.floor(Date.parse(door.at.clock.now()) / 1000) + seconds;
    return { 'x-harn-signature': `t=${t},v1=${hmac(`${t}.${body}`)}`, 'x-hub-signature-256': '' };
  };
  expect((await deliver(door, connector, body, at(0))).status).toBe(202);
  expect((await deliver(door, connector, body, { ...at(-600), 'x-harn-delivery': 'd-9' })).status).toBe(401);

  const aimed = await setup.door.call('POST', '/v1/connectors', {
    provider: 'forge',
    workspace_id: setup.workspace,
    event_kinds: [],
    auth: { secret_name: 'hook' },
    target_session_id: setup.session,
  });
  const answer = await deliver(setup.door, aimed.body.id, { n: 1 }, { 'x-harn-event': 'anything' });
  expect(answer.body.session_id).toBe(setup.session);
});

test('a delivery that is not signed for this connector is refused, and a connector that is not there answers the same', async () => {
  const { door, connector } = await open();
  const unsigned = await open({ auth: {} });
  const cases: Answer[] = [
    await deliver(door, connector, { a: 1 }, { 'x-hub-signature-256': '' }),
    await deliver(door, connector, { a: 1 }, { 'x-hub-signature-256': `sha256=${hmac('{"a":2}')}` }),
    await deliver(door, connector, { a: 1 }, { 'x-hub-signature-256': 'sha256=zz' }),
    await deliver(door, connector, { a: 1 }, { 'x-harn-signature': 't=1,v1=00' }),
    await deliver(door, 'connector_nowhere', { a: 1 }),
    await deliver(unsigned.door, unsigned.connector, { a: 1 }),
  ];
  for (const { status, body } of cases) {
    expect([status, body.error.code, body.error.message]).toEqual([
      401,
      'unauthenticated',
      'the delivery is not signed for this connector',
    ]);
  }
  expect((await reported(door, connector)).filter((event) => event.startsWith('connector.'))).toEqual([]);
});

test('kinds that are not wanted are acknowledged and come to nothing; paused connectors take nothing', async () => {
  const { door, connector } = await open();
  const other = await deliver(door, connector, { a: 1 }, { 'x-harn-event': 'star.added' });
  expect([other.status, other.body]).toEqual([204, undefined]);
  expect((await door.call('GET', '/v1/tasks')).body.data).toEqual([]);
  const paused = await open({ status: 'PAUSED' });
  expect((await deliver(paused.door, paused.connector, { a: 1 })).status).toBe(409);
});

test('a delivery is a JSON object with an id; its secret may be away for a while', async () => {
  const { door, connector } = await open();
  for (const body of ['[]', '"x"', 'nope', '']) {
    expect((await deliver(door, connector, body)).status, body).toBe(400);
  }
  expect((await deliver(door, connector, { a: 1 }, { 'x-harn-delivery': '' })).status).toBe(400);
  const lost = await open({ auth: { secret_name: 'elsewhere' } });
  const answer = await deliver(lost.door, lost.connector, { a: 1 });
  expect([answer.status, answer.body.error.code]).toEqual([503, 'service_unavailable']);
  expect(JSON.stringify(answer.body)).not.toContain('elsewhere');
});
