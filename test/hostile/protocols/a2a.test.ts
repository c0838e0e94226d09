/**
 * A2A against the built process, with an instrumented agent behind it: frames that no peer should send. Each is refused in the
 * protocol's own words, and the agent is given nothing.
 */
import { describe, expect, test } from 'vitest';
import { type Answer, type Serving, serving } from '../../support/process/served.ts';

const speech = (text: string) => ({ messageId: 'm1', role: 'ROLE_USER', parts: [{ text }] });
const sending = { message: speech('go'), configuration: { returnImmediately: true } };

async function open() {
  const gateway = await serving();
  const post = async (body: unknown, version = '1.0', more: Record<string, string> = {}): Promise<Answer> =>
    await gateway.send('/a2a/recorder', { method: 'POST', headers: { 'a2a-version': version, ...more }, body });
  return { gateway, post };
}

/** The agent was given nothing, and an honest message still gets through, after its decision was in the log. */
async function unharmed(gateway: Serving, post: (body: unknown) => Promise<Answer>): Promise<void> {
  expect(gateway.input()).toEqual([]);
  const message = { ...speech('still here'), messageId: 'honest' };
  const { json } = await post({ jsonrpc: '2.0', id: 'h', method: 'SendMessage', params: { message } });
  expect(json).toMatchObject({ id: 'h', result: { task: { status: { state: 'TASK_STATE_COMPLETED' } } } });
  expect(gateway.input()).toEqual(['still here']);
  const decided = await gateway.events('vendor.tollbridge.decided');
  expect(decided.filter(({ payload }) => (payload.action as { kind?: string }).kind === 'prompt')).toHaveLength(1);
}

describe('frames of A2A', { timeout: 60_000 }, () => {
  test('SendMessage without an id is refused, in both revisions', async () => {
    const { gateway, post } = await open();
    const refused = await post({ jsonrpc: '2.0', method: 'SendMessage', params: sending });
    expect(refused.json).toMatchObject({
      id: null,
      error: { code: -32600, message: expect.stringContaining('needs an id') },
    });
    const message = { kind: 'message', messageId: 'm', role: 'user', parts: [{ kind: 'text', text: 'hello' }] };
    const older = await post({ jsonrpc: '2.0', method: 'message/send', params: { message } }, '0.3');
    expect(older.json).toMatchObject({ id: null, error: { code: -32600 } });
    // What else is wrong with it is said first.
    const empty = await post({ jsonrpc: '2.0', method: 'message/send', params: {} }, '0.3');
    expect(empty.json).toMatchObject({ id: null, error: { code: -32602 } });
    await unharmed(gateway, post);
  });

  test('H11: batches, empty, nested or mixed, are refused whole', async () => {
    const { gateway, post } = await open();
    const call = { jsonrpc: '2.0', id: 'r', method: 'SendMessage', params: sending };
    for (const batch of [[], [call], [[call]], [call, { jsonrpc: '2.0', method: 'GetTask', params: {} }]])
      expect((await post(JSON.stringify(batch))).json).toMatchObject({ error: { code: -32600 } });
    await unharmed(gateway, post);
  });

  test('a body that can be read in two ways, or that is no JSON of ours, is a parse error', async () => {
    const { gateway, post } = await open();
    const params = JSON.stringify(sending);
    for (const body of [
      `{"jsonrpc":"2.0","id":"r","method":"GetTask","method":"SendMessage","params":${params}}`,
      `{"jsonrpc":"2.0","id":"r","method":"GetTask","\\u006dethod":"SendMessage","params":${params}}`,
      `{"jsonrpc":"2.0","id":"r","method":"SendMessage","params":${params},"params":{}}`,
      `{"jsonrpc":"2.0","id":"r","method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a","text":"b"}]}}}`,
      `\ufeff{"jsonrpc":"2.0","id":"r","method":"SendMessage","params":${params}}`,
      `{"jsonrpc":"2.0","id":"r","method":"SendMessage","params":${params}}{}`,
    ])
      expect((await post(body)).json, body).toMatchObject({ error: { code: -32700 } });
    const wide = Buffer.from(
      JSON.stringify({ jsonrpc: '2.0', id: 'r', method: 'SendMessage', params: sending }),
      'utf16le',
    );
    const utf16 = await fetch(`${gateway.url}/a2a/recorder`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${gateway.token}`,
        'a2a-version': '1.0',
        'content-type': 'application/json; charset=utf-16',
      },
      body: new Uint8Array(wide),
    });
    expect(await utf16.json()).toMatchObject({ error: { code: expect.any(Number) } });
    await unharmed(gateway, post);
  });

  test('methods of another revision, of the language, and answers that no request asked for are no methods', async () => {
    const { gateway, post } = await open();
    for (const method of ['message/send', '__proto__', 'constructor', 'toString', 'sendmessage', 'SendMessage ']) {
      const { json } = await post({ jsonrpc: '2.0', id: 'r', method, params: sending });
      expect(json, method).toMatchObject({ id: 'r', error: { code: -32601 } });
    }
    for (const method of ['SendMessage', 'SendStreamingMessage', 'CancelTask', 'tasks/send']) {
      const { json } = await post({ jsonrpc: '2.0', id: 'r', method, params: sending }, '0.3');
      expect(json, `0.3 ${method}`).toMatchObject({ id: 'r', error: { code: -32601 } });
    }
    const answer = { jsonrpc: '2.0', id: 'r', method: 'SendMessage', params: sending, result: {} };
    expect((await post(answer)).json).toMatchObject({ error: { code: -32600 } });
    for (const version of ['2.0', '0.2', '1.0, 0.3', '__proto__']) {
      const { json } = await post({ jsonrpc: '2.0', id: 'r', method: 'SendMessage', params: sending }, version);
      expect(json, version).toMatchObject({ error: { code: expect.any(Number) } });
    }
    await unharmed(gateway, post);
  });

  test('members that are not what the method takes are wrong parameters, not a failure of the gateway', async () => {
    const { gateway, post } = await open();
    for (const parts of [[null], [[]], [7], null]) {
      const params = { message: { ...speech('go'), parts } };
      const { json } = await post({ jsonrpc: '2.0', id: 'r', method: 'SendMessage', params });
      expect(json).toMatchObject({ id: 'r', error: { code: -32602 } });
    }
    await unharmed(gateway, post);
  });

  test('H26: an address for notifications that leads inside is refused, however it is spelled', async () => {
    const { gateway, post } = await open();
    const urls = [
      'http://127.0.0.1:1/hook',
      'https://127.0.0.1/hook',
      'https://[::1]/hook',
      'https://[::ffff:127.0.0.1]/hook',
      'https://169.254.169.254/latest/meta-data',
      'https://10.0.0.7/hook',
      'https://192.168.1.1/hook',
      'https://172.16.0.1/hook',
      'https://0.0.0.0/hook',
      'https://2130706433/hook',
      'https://0177.0.0.1/hook',
      'https://0x7f.1/hook',
      'https://127.1/hook',
      'https://localhost/hook',
      'https://localhost./hook',
      'https://user:pass@127.0.0.1/hook',
      'https://[fe80::1]/hook',
      'https://[fd00::1]/hook',
      'https://[64:ff9b::7f00:1]/hook',
      'https://100.64.0.1/hook',
      'file:///etc/passwd',
      'gopher://127.0.0.1/',
      'unix:/var/run/docker.sock',
      'ftp://example.com/',
      '//127.0.0.1/hook',
      'javascript:alert(1)',
      '',
    ];
    for (const url of urls) {
      const configuration = { returnImmediately: true, taskPushNotificationConfig: { url } };
      const params = { message: speech('go'), configuration };
      const { json } = await post({ jsonrpc: '2.0', id: 'r', method: 'SendMessage', params });
      expect(json, url).toMatchObject({ id: 'r', error: { code: expect.any(Number) } });
    }
    await unharmed(gateway, post);
  });
});
