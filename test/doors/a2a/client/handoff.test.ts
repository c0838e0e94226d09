/** What goes along with a handoff and after it: files, words in between, and calls from a peer that cannot stream. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { a2aBackend } from '../../../../adapters/a2a/client/backend.ts';
import type { A2aBackendConfig } from '../../../../adapters/a2a/client/config.ts';
import type { JsonObject } from '../../../../src/model/schema.ts';
import type { AgentBackend } from '../../../../src/ports/index.ts';
import { createHttpHost } from '../../../../src/transport/http/server.ts';
import { openPeer, speech } from '../../../support/a2a/gateway.ts';
import { cardFor, openRawPeer, openSdkPeer } from '../../../support/a2a/peers.ts';
import { latch, scriptedAgent } from '../../../support/gateway/agents.ts';
import { of, openTestGateway, says } from '../../../support/gateway/test-gateway.ts';

const QUIET = { info() {}, warn() {}, error() {} };
/** So long that nothing is polled: the peer has to call. */
const NEVER = 600_000;

async function handing(url: string, more: Partial<A2aBackendConfig> = {}) {
  const http = createHttpHost({ requestId: () => 'r', log: QUIET, graceMs: 50 });
  const { url: ours } = await http.listen();
  onTestFinished(() => http.close());
  const timeouts = { poll_ms: 5, silence_ms: 2_000, cancel_ms: 500, ...more.timeouts };
  const config = { url, secret: 't', ...more, timeouts, ...(more.push && { push: { public_url: ours } }) };
  const deps = { log: QUIET, clock: { now: () => new Date().toISOString() }, secret: async () => 'ana', http };
  const runtime = await openTestGateway({ agents: [a2aBackend('peer', config, deps)] });
  return { runtime, room: await runtime.room() };
}

describe('files', () => {
  /** Says of each part what it is, and of each file its name, its type and its bytes. */
  const looker = scriptedAgent(async (sink, { task, bytes, artifact }) => {
    const reported: string[] = [];
    for (const part of task.input.parts as JsonObject[]) {
      const id = part.artifact_id as string | undefined;
      if (!id) {
        reported.push(String(part.text ?? part.uri));
        continue;
      }
      const about = await artifact?.(id);
      const content = Buffer.from((await bytes?.(id)) ?? []).toString();
      reported.push(`${part.type} ${about?.metadata.name} ${about?.mime_type} ${content}`);
    }
    for (const fact of speech('m1', [reported.join(' | ')])) await sink.emit(fact);
    return undefined;
  });

  async function handed(files: readonly JsonObject[], more: Partial<A2aBackendConfig> = {}) {
    const { runtime, room } = await handing((await openPeer({ agents: [looker] })).base(), more);
    const parts: JsonObject[] = [{ type: 'text', text: 'look at these', visibility: 'public' }];
    for (const { text, name, mime_type, uri } of files as readonly Record<string, string>[]) {
      const { resource } = await runtime.send(
        'artifact.register',
        {
          kind: 'file',
          mime_type: mime_type!,
          visibility: 'public',
          workspace_id: room.workspace,
          ...(uri && { uri }),
          metadata: { name: name! },
        },
        text === undefined ? {} : ({ bytes: Buffer.from(text) } as object),
      );
      const image = mime_type!.startsWith('image/');
      parts.push({
        type: image ? 'image_ref' : 'artifact_ref',
        artifact_id: resource.id,
        visibility: 'public',
        ...(image && { mime_type: mime_type! }),
      });
    }
    const task = await room.task({ input: { role: 'user', parts } });
    expect((await runtime.until(task.id)).status).toBe('COMPLETED');
    return JSON.stringify(of(await runtime.events(task.id), 'agent.message')[0]?.payload);
  }

  test('go along with their names, types and bytes', async () => {
    const reported = await handed([
      { name: 'notes.txt', mime_type: 'text/plain', text: 'buy milk' },
      { name: 'dot.png', mime_type: 'image/png', text: 'a dot' },
    ]);
    expect(reported).toContain(
      'look at these | artifact_ref notes.txt text/plain buy milk | image_ref dot.png image/png a dot',
    );
  });

  test('too large to go along are linked to where they have an address, and named where they have none', async () => {
    const reported = await handed(
      [
        { name: 'long.txt', mime_type: 'text/plain', text: 'too long for this' },
        { name: 'far.txt', mime_type: 'text/plain', uri: 'https://files.example/far.txt' },
      ],
      { file_limit: 5 },
    );
    expect(reported).toContain('[a file that was not handed over: long.txt; 17 bytes are too many to send]');
    expect(reported).toContain('https://files.example/far.txt');
  });
});

describe('words in between', () => {
  /** Works until it has received as much as it wants to. */
  function listener(wanted: number): AgentBackend {
    const received: string[] = [];
    const enough = latch();
    return {
      name: 'agent',
      abilities: { resume: false, evidence: 'held', steer: true },
      start: async (_work, sink) => ({
        done: enough.promise.then(async () => {
          for (const fact of speech('m1', [received.join(', ')])) await sink.emit(fact);
          return { state: 'COMPLETED' as const };
        }),
        steer(message) {
          received.push((message.parts as { text: string }[])[0]!.text);
          if (received.length === wanted) enough.open();
        },
      }),
    };
  }
  const word = (text: string) => ({
    role: 'user' as const,
    parts: [{ type: 'text' as const, text, visibility: 'public' as const }],
  });

  test('reach a peer that takes them, in order', async () => {
    const { runtime, room } = await handing((await openPeer({ agents: [listener(2)] })).base());
    const task = await room.task();
    for (const text of ['to the left', 'a bit more']) {
      await runtime.send('task.message', { task_id: task.id, kind: 'interrupt', message: word(text) });
    }
    expect((await runtime.until(task.id)).status).toBe('COMPLETED');
    const [said] = of(await runtime.events(task.id), 'agent.message');
    expect(JSON.stringify(said?.payload)).toContain('to the left, a bit more');
  });

  test('a peer that takes none goes on, and the record says that the message was not taken', async () => {
    const done = latch();
    const agent = scriptedAgent(async () => {
      await done.promise;
      return undefined;
    });
    const { runtime, room } = await handing((await openPeer({ agents: [agent] })).base());
    const task = await room.task();
    await runtime.seen(task.id, 'agent.handoff');
    await runtime.send('task.message', { task_id: task.id, kind: 'interrupt', message: word('psst') });
    const note = await runtime.seen(task.id, 'vendor.tollbridge.note');
    expect(note.payload).toMatchObject({ code: 'message_not_taken' });
    done.open();
    expect((await runtime.until(task.id)).status).toBe('COMPLETED');
  });

  test('are no answer to what the peer asks: they wait until it has one', async () => {
    const answers: unknown[] = [];
    const received: string[] = [];
    const reported = latch();
    const agent: AgentBackend = {
      name: 'agent',
      abilities: { resume: false, evidence: 'held', steer: true },
      start: async (_work, sink) => ({
        done: (async () => {
          answers.push(await sink.ask({ kind: 'input', key: 'k', question: 'How many?' }));
          await reported.promise;
          return { state: 'COMPLETED' as const };
        })(),
        steer(message) {
          received.push((message.parts as { text: string }[])[0]!.text);
          reported.open();
        },
      }),
    };
    const { runtime, room } = await handing((await openPeer({ agents: [agent] })).base());
    const task = await room.task();
    const [ask] = await runtime.asks(task.id);
    await runtime.send('task.message', { task_id: task.id, kind: 'interrupt', message: word('hurry') });
    await runtime.answer(ask!.id, { value: 'seven' });
    expect((await runtime.until(task.id)).status).toBe('COMPLETED');
    expect(answers).toEqual([expect.objectContaining({ kind: 'value', value: 'seven' })]);
    expect(received).toEqual(['hurry']);
  });
});

describe('calls of a peer that cannot stream', () => {
  const silent = (url: string) => cardFor(url, { capabilities: { streaming: false, pushNotifications: true } });
  const task = (state: string, more: object = {}) => ({ id: 't1', contextId: 'c1', status: { state }, ...more });
  const working = { result: task('TASK_STATE_WORKING') };
  const whole = { artifacts: [{ artifactId: 'a1', name: 'answer', parts: [{ text: 'called' }] }] };
  const PUSH = { push: { public_url: 'ours' } };

  test('an unmodified SDK server calls, and that is enough', async () => {
    const gate = latch();
    const url = await openSdkPeer({ streaming: false, push: true, gate: gate.promise });
    const { runtime, room } = await handing(url, { ...PUSH, timeouts: { poll_ms: NEVER, push_poll_ms: NEVER } });
    const input = await room.task({ input: says('work') });
    // It answers as soon as it has the task; from then on only its calls make us look.
    await runtime.seen(input.id, 'agent.handoff');
    gate.open();
    expect((await runtime.until(input.id)).status).toBe('COMPLETED');
    const events = await runtime.events(input.id);
    expect(JSON.stringify(of(events, 'agent.message')[0]?.payload)).toContain('work: done');
  });

  async function called(script: Record<string, readonly object[]>, timeouts: object) {
    const peer = await openRawPeer(
      { SendMessage: [{ result: { task: task('TASK_STATE_WORKING') } }], ...script } as never,
      silent,
    );
    const { runtime, room } = await handing(peer.url, { ...PUSH, timeouts: timeouts as never });
    const input = await room.task();
    const registered = async () => {
      await expect
        .poll(() => peer.calls.some(({ body }) => body?.method === 'CreateTaskPushNotificationConfig'))
        .toBe(true);
      return peer.calls.find(({ body }) => body?.method === 'CreateTaskPushNotificationConfig')!.body.params;
    };
    const looks = () => peer.calls.filter(({ body }) => body?.method === 'GetTask').length;
    return { peer, runtime, input: input, registered, looks };
  }

  test('a call counts only from the peer, with the credential and the task that it was given', async () => {
    const { runtime, input, registered, looks } = await called(
      {
        CreateTaskPushNotificationConfig: [{ result: { taskId: 't1', id: 'x', url: 'https://x.example/' } }],
        GetTask: [working, working, { result: task('TASK_STATE_COMPLETED', whole) }],
      },
      { poll_ms: NEVER, push_poll_ms: NEVER },
    );
    const { url, token, authentication } = await registered();
    await expect.poll(looks).toBe(2);
    const tell = async (headers: Record<string, string>, taskId = 't1', to = url) => {
      const body = JSON.stringify({
        statusUpdate: { taskId, contextId: 'c1', status: { state: 'TASK_STATE_COMPLETED' } },
      });
      const type = { 'content-type': 'application/a2a+json' };
      return (await fetch(to, { method: 'POST', body, headers: { ...type, ...headers } })).status;
    };
    const bearer = { authorization: `Bearer ${authentication.credentials}` };
    expect(await tell({})).toBe(404);
    expect(await tell({ authorization: 'Bearer guess' })).toBe(404);
    expect(await tell({ ...bearer, 'x-a2a-notification-token': 'guess' })).toBe(404);
    expect(await tell(bearer, 't1', url.replace(/.$/, '~'))).toBe(404);
    expect(await tell(bearer, 'another')).toBe(400);
    expect(looks()).toBe(2);
    expect(await tell({ ...bearer, 'x-a2a-notification-token': token })).toBe(204);
    expect((await runtime.until(input.id)).status).toBe('COMPLETED');
    const events = await runtime.events(input.id);
    const [delivery] = of(events, 'connector.delivery_received');
    expect(delivery?.payload).toMatchObject({ provider: 'a2a.push', peer: 'peer', task_id: 't1' });
    expect(JSON.stringify(events)).not.toContain(authentication.credentials);
    // Over: nobody is there any more.
    expect(await tell(bearer)).toBe(404);
  });

  test('a peer that will not call is asked from time to time', async () => {
    const { runtime, input } = await called(
      {
        CreateTaskPushNotificationConfig: [{ error: { code: -32003, message: 'no' } }],
        GetTask: [working, working, { result: task('TASK_STATE_COMPLETED', whole) }],
      },
      { poll_ms: 5, push_poll_ms: NEVER },
    );
    expect((await runtime.until(input.id)).status).toBe('COMPLETED');
  });

  test('one that promised and does not is found out, and asked from then on', async () => {
    const asks = { result: task('TASK_STATE_SUBMITTED') };
    const { runtime, input } = await called(
      {
        SendMessage: [{ result: { task: task('TASK_STATE_SUBMITTED') } }],
        CreateTaskPushNotificationConfig: [{ result: { taskId: 't1', id: 'x', url: 'https://x.example/' } }],
        GetTask: [asks, asks, working, working, working, { result: task('TASK_STATE_COMPLETED', whole) }],
      },
      { poll_ms: 1, push_poll_ms: 30 },
    );
    expect((await runtime.until(input.id)).status).toBe('COMPLETED');
  });

  test('we are only to be called over https, or from this machine', () => {
    const deps = { log: QUIET, clock: { now: () => '' }, secret: async () => '' };
    const config = { url: 'https://peer.example/', push: { public_url: 'http://bridge.example' } };
    expect(() => a2aBackend('p', config, deps)).toThrow('has to be https');
  });
});
