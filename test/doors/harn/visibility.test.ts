/** Who may see what: hidden equals absent, and scopes hold. */
import { describe, expect, test } from 'vitest';
import { quick } from '../../support/gateway/agents.ts';
import { type Answer, expectFault, openDoor, text } from '../../support/harn/gateway.ts';

describe('who may see what', () => {
  test('another tenant’s things are exactly as absent as things that never were', async () => {
    const { call, task: submit, at } = await openDoor({ agents: [quick()] });
    const { task, session, workspace } = await submit();
    await at.until(task);
    const receipt = (await call('GET', `/v1/tasks/${task}`)).body.receipt_id;
    const event = (await call('GET', `/v1/tasks/${task}/events`)).body.data[0].id;
    const acme = { authorization: 'Bearer acme' };
    const paths = [
      ['GET', `/v1/workspaces/${workspace}`],
      ['PATCH', `/v1/workspaces/${workspace}`, { name: 'x' }],
      ['GET', `/v1/sessions/${session}`],
      ['GET', `/v1/sessions/${session}/messages`],
      ['GET', `/v1/sessions/${session}/tasks`],
      ['GET', `/v1/sessions/${session}/branches`],
      ['GET', `/v1/sessions/${session}/events`],
      ['GET', `/v1/sessions/${session}/events/stream`],
      ['POST', `/v1/sessions/${session}/tasks`, { input: text('x') }],
      ['POST', `/v1/sessions/${session}/close`],
      ['POST', `/v1/sessions/${session}/fork`],
      ['POST', `/v1/sessions/${session}/truncate`, { keep_first: 0 }],
      ['POST', `/v1/sessions/${session}/replay`],
      ['GET', `/v1/tasks/${task}`],
      ['POST', `/v1/tasks/${task}/cancel`],
      ['POST', `/v1/tasks/${task}/replay`],
      ['GET', `/v1/tasks/${task}/events`],
      ['GET', `/v1/tasks/${task}/stream`],
      ['GET', `/v1/tasks/${task}/receipts`],
      ['GET', `/v1/tasks/${task}/permission-requests`],
      ['GET', `/v1/receipts/${receipt}`],
      ['POST', `/v1/receipts/${receipt}/verify`],
      ['GET', `/v1/receipts/batches/${workspace}.0`],
      ['GET', `/v1/events/${event}`],
    ] as const;
    for (const [method, path, body] of paths) {
      const hidden = await call(method, path, body, acme);
      expectFault(hidden, 404, 'resource_not_found', 'not_found_error');
      const absentPath = path
        .replace(/(workspace|session|task|receipt)_[a-z0-9]+/, '$1_zz9999')
        .replace(/evt_\d+/, 'evt_0000009999999999');
      const absent = await call(method, absentPath, body, acme);
      const shape = ({ status, body: { error } }: Answer) => [
        status,
        error.code,
        error.message.replace(/\S*(_|evt)\S*/g, 'ID'),
      ];
      expect(shape(hidden), path).toEqual(shape(absent));
    }
    for (const list of [
      'workspaces',
      'sessions',
      'tasks',
      'events',
      'artifacts',
      'outcomes',
      'receipts',
      'permission-requests',
    ]) {
      expect((await call('GET', `/v1/${list}`, undefined, acme)).body.data, list).toEqual([]);
      expect((await call('GET', `/v1/${list}?workspace_id=${workspace}`, undefined, acme)).body.data, list).toEqual([]);
    }
  });

  test('a scope that is missing is 403, for every operation that needs one', async () => {
    const { call, task: submit, at } = await openDoor({ agents: [quick()] });
    const { task, session } = await submit();
    await at.until(task);
    const nothing = { authorization: 'Bearer nothing' };
    for (const [method, path, body] of [
      ['GET', '/v1/tasks'],
      ['GET', `/v1/tasks/${task}`],
      ['GET', `/v1/sessions/${session}`],
      ['GET', `/v1/tasks/${task}/events`],
      ['GET', `/v1/tasks/${task}/stream`],
      ['GET', '/v1/receipts'],
      ['GET', '/v1/personas'],
      ['GET', '/v1/tools'],
      ['GET', '/v1/runtime'],
      ['GET', '/metrics'],
      ['GET', '/health/deps'],
      ['POST', `/v1/sessions/${session}/tasks`, { input: text('x') }],
      ['POST', '/v1/workspaces', { name: 'x', root: 'r' }],
      ['POST', `/v1/tasks/${task}/cancel`],
      ['POST', `/v1/tasks/${task}/replay`],
    ] as const) {
      expectFault(await call(method, path, body, nothing), 403, 'permission_denied', 'permission_error');
    }
    const reader = { authorization: 'Bearer reader' };
    expect((await call('GET', `/v1/tasks/${task}`, undefined, reader)).status).toBe(200);
    expectFault(
      await call('POST', `/v1/tasks/${task}/cancel`, {}, reader),
      403,
      'permission_denied',
      'permission_error',
    );
  });

  test('an error is ASCII on the wire, whatever it says', async () => {
    const { url, headers } = await openDoor({
      agents: [quick()],
      rules: '[{ id: no, when: { kind: session.open }, then: deny, say: "heute nicht: \u00fc \u{1f600}" }]',
    });
    const post = (path: string, body: object) =>
      fetch(`${url}${path}`, {
        method: 'POST',
        headers: headers({ 'content-type': 'application/json' }),
        body: JSON.stringify(body),
      });
    const { id } = (await (await post('/v1/workspaces', { name: 'w', root: 'r' })).json()) as { id: string };
    const answer = await post('/v1/sessions', { workspace_id: id });
    expect(answer.status).toBe(422);
    const bytes = Buffer.from(await answer.arrayBuffer());
    expect(bytes.every((byte) => byte < 0x80)).toBe(true);
    expect(JSON.parse(bytes.toString()).error.message).toBe('heute nicht: \u00fc \u{1f600}');
  });
});
