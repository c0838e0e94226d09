/** A long answer arrives equal by every way there is: to a client that joins updates, and to one that keeps only the last. */
import { describe, expect, test } from 'vitest';
import { openPeer, type Peer, speech, wire } from '../../support/a2a/gateway.ts';
import { latch, scriptedAgent } from '../../support/gateway/agents.ts';
import type { Body } from '../../support/harn/gateway.ts';
import { openHook } from '../../support/wire/webhook.ts';

const PIECES = Array.from({ length: 100 }, (_, n) => `${String(n).padStart(4, '0')}${'é'.repeat(96)}`);
const ANSWER = PIECES.join('');

/** Half of the answer is written when a reader comes; the rest after it said so. */
function writer(go: Promise<void> = Promise.resolve(), begun = () => {}) {
  return scriptedAgent(async (sink) => {
    const facts = speech('m1', PIECES);
    for (const fact of facts.slice(0, 50)) await sink.emit(fact);
    begun();
    await go;
    for (const fact of facts.slice(50)) await sink.emit(fact);
    return { state: 'COMPLETED', summary: ANSWER.slice(0, 500) };
  });
}

interface Words {
  readonly headers: Record<string, string>;
  readonly send: string;
  readonly stream: string;
  readonly get: string;
  readonly subscribe: string;
  readonly params: object;
  readonly push: (url: string) => object;
}

const message = { kind: 'message', messageId: 'a', role: 'user', parts: [{ kind: 'text', text: 'go' }] };
const REVISIONS: Record<string, Words> = {
  '1.0': {
    headers: {},
    send: 'SendMessage',
    stream: 'SendStreamingMessage',
    get: 'GetTask',
    subscribe: 'SubscribeToTask',
    params: wire('go'),
    push: (url) => ({ taskPushNotificationConfig: { url } }),
  },
  '0.3': {
    headers: { 'a2a-version': '' },
    send: 'message/send',
    stream: 'message/stream',
    get: 'tasks/get',
    subscribe: 'tasks/resubscribe',
    params: { message },
    push: (url) => ({ pushNotificationConfig: { url } }),
  },
};

const textsOf = ({ parts }: Body): string[] => parts.map(({ text }: Body) => text ?? '');
const artifactIn = (said: Body): Body => said.artifactUpdate?.artifact ?? said.artifact;
const statusIn = (said: Body): Body => said.statusUpdate?.status ?? (said.task ?? said).status;

/** Every text in a stream: what a client has that joins whatever comes, the messages of states included. */
function joined(all: readonly Body[]): string {
  return all
    .flatMap((said) => {
      const task = said.task ?? said;
      const shown = artifactIn(said) ? [artifactIn(said)] : (task.artifacts ?? []);
      const status = statusIn(said)?.message;
      return [...shown, ...(status ? [status] : [])].flatMap(textsOf);
    })
    .join('');
}

function lastOf(all: readonly Body[]): string {
  const updates = all.flatMap((said) => (artifactIn(said) ? [said.artifactUpdate ?? said] : []));
  expect(updates.filter(({ lastChunk }) => lastChunk).length).toBe(1);
  return textsOf(updates.at(-1)?.artifact).join('');
}

async function streamed(peer: Peer, method: string, params: object, headers: Record<string, string>) {
  const answer = await fetch(peer.base(), {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer ana', 'a2a-version': '1.0', ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  return async () => {
    const lines = (await answer.text()).split('\n').filter((line) => line.startsWith('data: '));
    return lines.map((line) => JSON.parse(line.slice(6)).result as Body);
  };
}

describe.each(Object.entries(REVISIONS))('in %s', (_, words) => {
  test('a send and a later look bring the whole answer, and no summary beside it', async () => {
    const peer = await openPeer({ agents: [writer()] });
    const { result } = (await peer.rpc(words.send, words.params, words.headers)).body;
    const task = result.task ?? result;
    expect(task.artifacts.flatMap(textsOf).join('')).toBe(ANSWER);
    expect(task.status.message).toBeUndefined();
    const again = (await peer.rpc(words.get, { id: task.id }, words.headers)).body.result;
    expect(again.artifacts.flatMap(textsOf).join('')).toBe(ANSWER);
    expect(again.status.message).toBeUndefined();
  });

  test('a stream brings it once', async () => {
    const peer = await openPeer({ agents: [writer()] });
    const all = await (await streamed(peer, words.stream, words.params, words.headers))();
    expect(joined(all)).toBe(ANSWER);
    expect(lastOf(all)).toBe(ANSWER);
  });

  test('a subscription that begins in the middle of it brings it once', async () => {
    const [go, begun] = [latch(), latch()];
    const peer = await openPeer({ agents: [writer(go.promise, begun.open)] });
    const first = await streamed(peer, words.stream, words.params, words.headers);
    await begun.promise;
    const [task] = (await peer.at.bridge.list({ id: 's', kind: 'system', scopes: ['*'] }, { object: 'task' })).data;
    const rest = await streamed(peer, words.subscribe, { id: task!.id }, words.headers);
    go.open();
    const all = await rest();
    expect(joined(all)).toBe(ANSWER);
    expect(lastOf(all)).toBe(ANSWER);
    expect(joined(await first())).toBe(ANSWER);
  });

  test('a webhook is told it once', async () => {
    const hook = await openHook();
    const peer = await openPeer({ agents: [writer()], config: { push: { allow: [hook.host], retry_ms: [1] } } });
    const configuration = words.push(hook.url);
    await peer.rpc(words.send, { ...words.params, configuration }, words.headers);
    await hook.until(4);
    // 0.3 tells of the whole task each time: the last one counts.
    const bodies = hook.got.map(({ body }) => body as Body);
    const updates = bodies.filter((body) => artifactIn(body));
    expect(updates.length > 0 ? joined(updates) : joined([bodies.at(-1) as Body])).toBe(ANSWER);
  });
});
