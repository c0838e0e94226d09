/** What callers do wrong, and what the gateway does: each has its status, its code and its words. */
import { describe, expect, test } from 'vitest';
import { FAULT_KINDS, Fault } from '../../../src/model/faults.ts';
import { patient, quick } from '../../support/gateway/agents.ts';
import { expectFault, openDoor, text, VERSION } from '../../support/harn/gateway.ts';
import { rawHttp } from '../../support/wire/raw-http.ts';

describe('what callers do wrong', () => {
  test('bodies are checked, and the answer names the member', async () => {
    const { call, room, url, headers } = await openDoor({ agents: [quick()] });
    const { session } = await room();
    for (const [path, body, param] of [
      ['/v1/workspaces', {}, 'name'],
      ['/v1/workspaces', { name: 'x', root: 7 }, 'root'],
      ['/v1/workspaces', undefined, null],
      ['/v1/sessions', { workspace_id: 'no such/id' }, 'workspace_id'],
      ['/v1/tasks', { input: {} }, 'session_id'],
      [`/v1/sessions/${session}/tasks`, { input: 'text' }, 'input'],
      [`/v1/sessions/${session}/tasks`, { input: { role: 'user', parts: [{ type: 'text' }] } }, 'input.parts.0.text'],
      [`/v1/sessions/${session}/tasks`, { input: text('x'), agent: 'none' }, 'agent'],
      [`/v1/sessions/${session}/messages`, { message: { role: 'king', parts: [] } }, 'message.role'],
      [`/v1/sessions/${session}/truncate`, { keep_first: -1 }, 'keep_first'],
    ] as const) {
      const answer = await call('POST', path, body);
      expectFault(answer, 400, 'invalid_request', 'request_error');
      expect(answer.body.error.param, `${path} ${JSON.stringify(body)}`).toBe(param);
    }
    for (const body of ['{', 'nope', '"\\ud800"', '[1e999]']) {
      const answer = await call('POST', '/v1/workspaces', body);
      expectFault(answer, 400, 'invalid_request', 'request_error');
    }
    const form = await fetch(`${url}/v1/workspaces`, {
      method: 'POST',
      headers: headers(),
      body: new URLSearchParams('a=1'),
    });
    expect(form.status).toBe(400);
  });

  test('bodies too large, too deep or too many are refused', async () => {
    const { call } = await openDoor({ config: { json_limit: 10_000 } });
    for (const body of [
      JSON.stringify({ name: 'x'.repeat(20_000), root: 'r' }),
      `${'['.repeat(200)}${']'.repeat(200)}`,
      `{"a":${'['.repeat(70)}${']'.repeat(70)}}`,
    ]) {
      expectFault(await call('POST', '/v1/workspaces', body), 413, 'payload_too_large', 'request_error');
    }
    const deep = await openDoor();
    const many = `{"a":[${'1,'.repeat(150_000)}1]}`;
    expectFault(await deep.call('POST', '/v1/workspaces', many), 413, 'payload_too_large', 'request_error');
    expect((await deep.call('GET', '/v1/workspaces')).body.data).toEqual([]);
  });

  test('an endless chunked body is cut off and its connection closed', async () => {
    const { url } = await openDoor({ config: { json_limit: 2000 } });
    const { host } = new URL(url);
    const answer = await rawHttp(
      url,
      `POST /v1/workspaces HTTP/1.1\r\nHost: ${host}\r\nHarn-Agents-Protocol-Version: ${VERSION}\r\n` +
        `Authorization: Bearer ana\r\nTransfer-Encoding: chunked\r\n\r\n${`3e8\r\n${'x'.repeat(1000)}\r\n`.repeat(5)}`,
    );
    expect(answer.status).toBe(413);
    expect(answer.head.toLowerCase()).toContain('connection: close');
  });

  test('what is not there, and what cannot be done now, have their own codes', async () => {
    const { call, task: submit } = await openDoor({ agents: [patient()] });
    const { task, session } = await submit();
    for (const path of ['tasks', 'sessions', 'workspaces', 'messages', 'events', 'receipts', 'artifacts', 'memories']) {
      expectFault(await call('GET', `/v1/${path}/nothing`), 404, 'resource_not_found', 'not_found_error');
    }
    expectFault(await call('POST', `/v1/tasks/${task}/replay`), 409, 'conflict', 'conflict_error');
    expectFault(await call('POST', `/v1/sessions/${session}/replay`), 409, 'conflict', 'conflict_error');
    const wrong = await call('POST', `/v1/tasks/${task}/replay`, { mode: 'sideways' });
    expectFault(wrong, 400, 'invalid_request', 'request_error');
    const cursor = await call('GET', `/v1/tasks/${task}/events?after_event_id=evt_9999999999999999`);
    expectFault(cursor, 410, 'cursor_expired', 'request_error');
  });

  test('every kind of trouble has its status, its code and its type', async () => {
    const { call, at } = await openDoor();
    const bridge = at.runtime.bridge as { view: unknown };
    const { view } = bridge;
    for (const [kind, status, code, type] of [
      ['invalid_request', 400, 'invalid_request', 'request_error'],
      ['invalid_state_transition', 400, 'invalid_state_transition', 'request_error'],
      ['unauthenticated', 401, 'unauthenticated', 'auth_error'],
      ['permission_denied', 403, 'permission_denied', 'permission_error'],
      ['not_found', 404, 'resource_not_found', 'not_found_error'],
      ['conflict', 409, 'conflict', 'conflict_error'],
      ['idempotency_key_reused', 409, 'idempotency_key_reused', 'conflict_error'],
      ['cursor_expired', 410, 'cursor_expired', 'request_error'],
      ['payload_too_large', 413, 'payload_too_large', 'request_error'],
      ['policy_violation', 422, 'policy_violation', 'permission_error'],
      ['locked', 423, 'resource_locked', 'conflict_error'],
      ['unsupported_version', 426, 'unsupported_protocol_version', 'request_error'],
      ['rate_limited', 429, 'rate_limited', 'rate_limit_error'],
      ['client_closed', 499, 'client_closed_request', 'request_error'],
      ['internal', 500, 'internal_error', 'server_error'],
      ['not_implemented', 501, 'not_implemented', 'server_error'],
      ['upstream_unavailable', 502, 'upstream_unavailable', 'upstream_error'],
      ['unavailable', 503, 'service_unavailable', 'server_error'],
      ['deadline_exceeded', 504, 'deadline_exceeded', 'upstream_error'],
    ] as const) {
      bridge.view = async () => {
        throw new Fault(kind, 'because', { param: '/x', details: { retry_after_ms: 1500 } });
      };
      const answer = await call('GET', '/v1/tasks/x');
      expectFault(answer, status, code, type);
      expect(answer.body.error).toMatchObject({ message: 'because', param: 'x', details: { retry_after_ms: 1500 } });
      expect(answer.headers.get('retry-after')).toBe(kind === 'rate_limited' ? '2' : null);
    }
    bridge.view = view;
    expect(FAULT_KINDS).toHaveLength(19);
  });

  test('HEAD is GET without the body, also where GET would stream', async () => {
    const { url, headers, task: submit, at } = await openDoor({ agents: [quick()] });
    const { task } = await submit();
    await at.until(task);
    for (const [path, type] of [
      ['/v1/tasks', 'application/json'],
      [`/v1/tasks/${task}/stream`, 'text/event-stream'],
      ['/v1/events/stream', 'text/event-stream'],
    ] as const) {
      const answer = await fetch(`${url}${path}`, { method: 'HEAD', headers: headers() });
      expect([answer.status, answer.headers.get('content-type'), await answer.text()]).toEqual([200, type, '']);
    }
  });

  test('when the gateway itself fails, nobody hears why', async () => {
    const { call, at, room } = await openDoor();
    const { session } = await room();
    const broken = at.runtime.bridge as { view: unknown };
    const { view } = broken;
    broken.view = async () => {
      throw new Error('password=hunter2 at /srv/secret');
    };
    const answer = await call('GET', `/v1/sessions/${session}`);
    broken.view = view;
    expectFault(answer, 500, 'internal_error', 'server_error');
    expect(JSON.stringify(answer.body)).not.toMatch(/hunter2|srv/);
  });

  test('while the gateway shuts down, new work is 503', async () => {
    const { call, room, at } = await openDoor();
    const { workspace } = await room();
    await at.close();
    const answer = await call('POST', '/v1/sessions', { workspace_id: workspace });
    expectFault(answer, 503, 'service_unavailable', 'server_error');
  });
});
