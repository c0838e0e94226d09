/** Push notifications: in order, with credentials, tried again, gone on with after a restart, and only to whom we may call. */

import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { lateAgent, openPeer, openPeerOn, type Peer, speech, wire } from '../../support/a2a/gateway.ts';
import { scriptedAgent } from '../../support/gateway/agents.ts';
import type { Body } from '../../support/harn/gateway.ts';
import { about, type Hook, openHook } from '../../support/wire/webhook.ts';

const talker = scriptedAgent(async (sink) => {
  for (const fact of speech('m1', ['One. ', 'Two.'])) await sink.emit(fact);
  return undefined;
});
const config = (hook: Hook) => ({ push: { allow: [hook.host], retry_ms: [1, 1] } });
const REPORTED = ['TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING', 'One. Two.', 'TASK_STATE_COMPLETED'];

async function sentWith(peer: Peer, push: object, headers = {}) {
  const configuration = { taskPushNotificationConfig: push };
  return (await peer.rpc('SendMessage', { ...wire('go'), configuration }, headers)).body;
}

describe('deliveries', () => {
  test('come in order, whole artifacts only, with credentials and the version', async () => {
    const hook = await openHook();
    const peer = await openPeer({ agents: [talker], config: config(hook) });
    const authentication = { scheme: 'Bearer', credentials: 'hook-credential-1' };
    await sentWith(peer, { url: hook.url, token: 'tok-1', authentication });
    await hook.until(4);
    expect(hook.got.map(({ body }) => about(body))).toEqual(REPORTED);
    expect(hook.got[0]?.headers).toMatchObject({
      authorization: 'Bearer hook-credential-1',
      'x-a2a-notification-token': 'tok-1',
      'a2a-version': '1.0',
      'content-type': 'application/a2a+json',
    });
  });

  test('are tried again, and what was received once is not said again', async () => {
    const hook = await openHook();
    hook.statuses.push(503, 200, 429, 500, 200);
    const peer = await openPeer({ agents: [talker], config: config(hook) });
    await sentWith(peer, { url: hook.url });
    await hook.until(4);
    expect(hook.got.map(({ body }) => about(body))).toEqual(REPORTED);
  });

  test('are given up after the last try, and never follow a redirect', async () => {
    for (const statuses of [[500, 500, 500], [302], [410]]) {
      const hook = await openHook();
      hook.statuses.push(...statuses);
      const peer = await openPeer({ agents: [talker], config: config(hook) });
      const { id } = (await sentWith(peer, { url: hook.url, id: 'c1' })).result.task;
      await peer.at.until(id);
      await peer.at.runtime.idle();
      const failed = async () =>
        (await peer.at.bridge.list({ id: 's', kind: 'system', scopes: ['*'] }, { object: 'connector' })).data as Body[];
      await expect.poll(async () => (await failed())[0].status).toBe('FAILED');
      expect(hook.got).toEqual([]);
      expect(hook.statuses).toEqual([]);
    }
  });

  test('are spelled as 0.3 spells them for the client that registered so', async () => {
    const hook = await openHook();
    const peer = await openPeer({ agents: [talker], config: config(hook) });
    const message = { kind: 'message', messageId: 'a', role: 'user', parts: [{ kind: 'text', text: 'go' }] };
    const configuration = { pushNotificationConfig: { url: hook.url } };
    await peer.rpc('message/send', { message, configuration }, { 'a2a-version': '' });
    await hook.until(4);
    expect(hook.got.at(-1)?.body).toMatchObject({ kind: 'task', status: { state: 'completed' } });
  });

  test('go on after a restart from where they were', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'tollbridge-push-'));
    onTestFinished(() => rm(dir, { recursive: true, force: true }));
    const hook = await openHook();
    const { gate, agent } = lateAgent();
    const options = { agents: [agent], config: config(hook), dir };
    const peer = await openPeer(options);
    const configuration = { returnImmediately: true, taskPushNotificationConfig: { url: hook.url } };
    await peer.rpc('SendMessage', { ...wire('go'), configuration });
    await hook.until(2);
    await peer.close();
    gate.open();
    const again = await peer.at.reopen(options);
    await openPeerOn(again, options);
    await expect.poll(() => hook.got.map(({ body }) => about(body)).at(-1)).toBe('TASK_STATE_COMPLETED');
    const reported = hook.got.map(({ body }) => about(body));
    expect(reported.slice(0, 2)).toEqual(['TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING']);
    expect(reported.filter((word) => word === 'TASK_STATE_SUBMITTED')).toHaveLength(1);
    expect(reported).toContain('Late.');
  });
});

describe('configurations', () => {
  const idle = scriptedAgent(async () => undefined);

  test('are kept, shown without credentials, and removed, on both bindings', async () => {
    const hook = await openHook();
    const peer = await openPeer({ agents: [idle], config: config(hook) });
    const { task } = (await peer.rpc('SendMessage', wire('go'))).body.result;
    const input = { url: hook.url, token: 't', authentication: { scheme: 'Bearer', credentials: 'shh-credential' } };
    const made = await peer.call('POST', `/a2a/agent/tasks/${task.id}/pushNotificationConfigs`, input);
    expect(made.status).toBe(200);
    const shown = {
      id: made.body.id,
      taskId: task.id,
      url: hook.url,
      token: 't',
      authentication: { scheme: 'Bearer' },
    };
    expect(made.body).toEqual(shown);
    const id = made.body.id as string;
    expect((await peer.rpc('GetTaskPushNotificationConfig', { taskId: task.id, id })).body.result).toEqual(shown);
    const { body } = await peer.call('GET', `/a2a/agent/tasks/${task.id}/pushNotificationConfigs`);
    expect(body.configs).toEqual([shown]);
    const path = `/a2a/agent/tasks/${task.id}/pushNotificationConfigs/${id}`;
    const gone = await peer.call('DELETE', path);
    expect([gone.status, gone.body]).toEqual([200, {}]);
    expect((await peer.call('GET', path)).status).toBe(404);
    expect((await peer.rpc('ListTaskPushNotificationConfigs', { taskId: task.id })).body.result).toEqual({
      configs: [],
    });
  });

  test.each([
    ['as the mapping of 0.3 has it', (config: object) => config],
    ['inside the whole request', (config: object) => ({ parent: 'tasks/x', configId: 'c1', config })],
  ])('are taken over HTTP in 0.3: %s', async (_, wrapped) => {
    const hook = await openHook();
    const peer = await openPeer({ agents: [idle], config: config(hook) });
    const { task } = (await peer.rpc('SendMessage', wire('go'))).body.result;
    const path = `/a2a/agent/v1/tasks/${task.id}/pushNotificationConfigs`;
    const input = {
      name: `tasks/${task.id}/pushNotificationConfigs/c1`,
      pushNotificationConfig: { id: 'c1', url: hook.url },
    };
    const made = await peer.call('POST', path, wrapped(input), { 'a2a-version': '' });
    expect([made.status, made.body.pushNotificationConfig.url]).toEqual([201, hook.url]);
  });

  test.each([
    'http://hook.example/',
    'https://127.0.0.1/',
    'https://[::1]/',
    'https://169.254.169.254/',
    'https://inside/',
  ])('%s is refused when it is given, and no task begins to tell it anything', async (url) => {
    const peer = await openPeer({ agents: [idle] });
    const { task } = (await peer.rpc('SendMessage', wire('go'))).body.result;
    const rpc = await peer.rpc('CreateTaskPushNotificationConfig', { taskId: task.id, url });
    expect(rpc.body.error.code).toBe(-32602);
    const rest = await peer.call('POST', `/a2a/agent/tasks/${task.id}/pushNotificationConfigs`, { url });
    expect(rest.status).toBe(400);
    expect((await peer.rpc('ListTaskPushNotificationConfigs', { taskId: task.id })).body.result.configs).toEqual([]);
  });

  test('a name that resolves inside is refused', async () => {
    const peer = await openPeer({ agents: [idle], resolve: async () => [{ address: '10.0.0.8', family: 4 }] });
    const { task } = (await peer.rpc('SendMessage', wire('go'))).body.result;
    const rpc = await peer.rpc('CreateTaskPushNotificationConfig', { taskId: task.id, url: 'https://hook.example/' });
    expect(rpc.body.error.message).toBe('url: the address is not a public one');
  });

  test('a name that turns inside after it was registered is not dialled', async () => {
    const answers = [[{ address: '93.184.216.34', family: 4 }]];
    const asked: string[] = [];
    const resolve = async (host: string) => {
      asked.push(host);
      return answers.shift() ?? [{ address: '127.0.0.1', family: 4 }];
    };
    const peer = await openPeer({ agents: [talker], config: { push: { retry_ms: [1] } }, resolve });
    await sentWith(peer, { url: 'https://hook.example/', id: 'c1' });
    const kept = async () =>
      (await peer.at.bridge.list({ id: 's', kind: 'system', scopes: ['*'] }, { object: 'connector' })).data as Body[];
    await expect.poll(async () => (await kept())[0].status).toBe('FAILED');
    // Once when it was given, and again for each try.
    expect(asked).toEqual(['hook.example', 'hook.example', 'hook.example']);
    expect(peer.logged.join()).toContain('the address is not a public one');
  });

  test('are not there where they are switched off', async () => {
    const peer = await openPeer({ agents: [idle], config: { push: { enabled: false } } });
    const { task } = (await peer.rpc('SendMessage', wire('go'))).body.result;
    const rpc = await peer.rpc('ListTaskPushNotificationConfigs', { taskId: task.id });
    expect(rpc.body.error.code).toBe(-32003);
    const card = (await peer.call('GET', '/.well-known/agent-card.json')).body;
    expect(card.capabilities.pushNotifications ?? false).toBe(false);
  });

  test('outlive a change of the signing key, here and after a restart', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'tollbridge-push-'));
    onTestFinished(() => rm(dir, { recursive: true, force: true }));
    const hook = await openHook();
    const options = { agents: [idle], config: config(hook), dir };
    const first = await openPeer(options);
    const { task } = (await first.rpc('SendMessage', wire('go'))).body.result;
    await first.rpc('CreateTaskPushNotificationConfig', { taskId: task.id, url: hook.url, id: 'c1' });
    const shown = async (peer: Peer) =>
      (await peer.rpc('GetTaskPushNotificationConfig', { taskId: task.id, id: 'c1' })).body.result?.url;
    await first.at.runtime.keyring.rotate();
    expect(await shown(first)).toBe(hook.url);
    await first.close();
    expect(await shown(await openPeerOn(await first.at.reopen(options), options))).toBe(hook.url);
  });

  test('sealed as they used to be still open, and are sealed anew before the key they depend on goes', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'tollbridge-push-'));
    onTestFinished(() => rm(dir, { recursive: true, force: true }));
    const hook = await openHook();
    const options = { agents: [idle], config: config(hook), dir };
    const sealedBySignature = { ...options, deps: { mac: undefined } as never };
    const before = await openPeer(sealedBySignature);
    const { task } = (await before.rpc('SendMessage', wire('go'))).body.result;
    await before.rpc('CreateTaskPushNotificationConfig', { taskId: task.id, url: hook.url, id: 'c1' });
    await before.close();
    let at = await before.at.reopen(options);
    for (const turn of ['the old seal', 'the new one']) {
      const peer = await openPeerOn(at, options);
      const found = await peer.rpc('GetTaskPushNotificationConfig', { taskId: task.id, id: 'c1' });
      expect([turn, found.body.result?.url]).toEqual([turn, hook.url]);
      await at.runtime.keyring.rotate();
      await peer.close();
      at = await at.reopen(options);
    }
  });

  test('leave no credential behind on disk', async () => {
    const hook = await openHook();
    const peer = await openPeer({ agents: [talker], config: config(hook) });
    const authentication = { scheme: 'Bearer', credentials: 'CANARY-credential-77' };
    await sentWith(peer, { url: `${hook.url}?key=CANARY-query-77`, token: 'CANARY-token-77', authentication });
    await hook.until(4);
    await peer.close();
    await peer.at.close();
    for (const name of await readdir(peer.at.dir)) {
      const bytes = await readFile(join(peer.at.dir, name)).catch(() => Buffer.alloc(0));
      expect([name, bytes.includes('CANARY')]).toEqual([name, false]);
    }
    expect(peer.logged.join()).not.toContain('CANARY');
  });
});
