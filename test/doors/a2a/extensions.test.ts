/** What is reported on request: the activity of an agent, cursors to resume from, and lists in pages. */
import { request } from 'node:http';
import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { roomIn } from '../../../adapters/a2a/bindings/backpressure.ts';
import { settingsOf } from '../../../adapters/a2a/config.ts';
import type { Row } from '../../../src/ports/index.ts';
import { openPeer, type Peer, speech, wire } from '../../support/a2a/gateway.ts';
import { ana } from '../../support/gateway/actors.ts';
import { latch, scriptedAgent } from '../../support/gateway/agents.ts';
import { countingTools } from '../../support/gateway/tools.ts';
import type { Body } from '../../support/harn/gateway.ts';

const URN = (name: string) => `urn:tollbridge:a2a:${name}:v1`;
const ALLOW = '- id: ok\n  when: { tool: look }\n  then: allow\n  say: fine\n';

async function streamed(peer: Peer, method: string, params: object, headers: Record<string, string> = {}) {
  const answer = await fetch(peer.base(), {
    method: 'POST',
    headers: { authorization: 'Bearer ana', 'a2a-version': '1.0', 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  return answer;
}
const results = (text: string): Body[] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => JSON.parse(line.slice(6)).result);

describe('activity', () => {
  const worker = scriptedAgent(async (sink) => {
    await sink.emit({
      event: 'vendor.tollbridge.plan',
      payload: { entries: [{ content: 'look', status: 'pending' }] },
    });
    await sink.act({ kind: 'tool', tool: 'look', tool_call_id: 'c1', arguments: { at: 'x' } });
    await sink.emit({
      event: 'vendor.tollbridge.usage',
      payload: { usd_micros: 1200, input_tokens: 5, output_tokens: 7 },
    });
    return undefined;
  });
  const options = () => ({ agents: [worker], tools: [countingTools({ look: { effect: 'read' } })], rules: ALLOW });

  test('is not sent to a client that did not ask for it', async () => {
    const peer = await openPeer(options());
    const answer = await streamed(peer, 'SendStreamingMessage', wire('go'));
    expect(answer.headers.get('a2a-extensions')).toBeNull();
    expect(await answer.text()).not.toContain('usd_micros');
  });

  test('tells of plans, calls and costs as structure', async () => {
    const peer = await openPeer(options());
    const answer = await streamed(peer, 'SendStreamingMessage', wire('go'), {
      'a2a-extensions': `x:unknown, ${URN('activity')}`,
    });
    expect(answer.headers.get('a2a-extensions')).toBe(URN('activity'));
    const reported = results(await answer.text()).flatMap(
      ({ statusUpdate }) => statusUpdate?.metadata?.[URN('activity')] ?? [],
    );
    expect(reported.map(({ event }) => event)).toEqual([
      'vendor.tollbridge.plan',
      'tool.requested',
      'tool.completed',
      'vendor.tollbridge.usage',
    ]);
    expect(reported[0].payload.entries).toEqual([{ content: 'look', status: 'pending' }]);
    expect(reported[2].payload).toMatchObject({
      tool_call_id: 'c1',
      name: 'look',
      status: 'ok',
      output: { did: 'look' },
    });
    expect(reported[3].payload).toMatchObject({ usd_micros: 1200, input_tokens: 5, output_tokens: 7 });
  });
});

describe('pieces', () => {
  test('text comes as it is written, to be appended, and ends with an empty last chunk', async () => {
    const agent = scriptedAgent(async (sink) => {
      for (const fact of speech('m1', ['Hel', 'lo.'])) await sink.emit(fact);
      return undefined;
    });
    const peer = await openPeer({ agents: [agent] });
    const headers = { 'a2a-extensions': URN('pieces') };
    const all = results(await (await streamed(peer, 'SendStreamingMessage', wire('go'), headers)).text());
    const updates = all.flatMap(({ artifactUpdate }) => artifactUpdate ?? []);
    expect(
      updates.map(({ artifact, append = false, lastChunk = false }: Body) => [
        artifact.parts[0].text,
        append,
        lastChunk,
      ]),
    ).toEqual([
      ['Hel', false, false],
      ['lo.', true, false],
      ['', true, true],
    ]);
  });
});

describe('resume', () => {
  const headers = { 'a2a-extensions': `${URN('resume')}, ${URN('pieces')}` };
  const cursorOf = (said: Body) =>
    (said.task ?? said.statusUpdate ?? said.artifactUpdate).metadata[URN('resume')].cursor;

  test('goes on after a cursor without loss, even when the task has ended', async () => {
    const agent = scriptedAgent(async (sink) => {
      for (const fact of speech('m1', ['a', 'b', 'c'])) await sink.emit(fact);
      return undefined;
    });
    const peer = await openPeer({ agents: [agent] });
    const all = results(await (await streamed(peer, 'SendStreamingMessage', wire('go'), headers)).text());
    expect(all.length).toBe(7);
    for (const [location, said] of all.entries()) {
      const again = { ...headers, 'last-event-id': cursorOf(said) };
      const rest = results(await (await streamed(peer, 'SubscribeToTask', { id: all[0].task.id }, again)).text());
      expect(rest[0].task.id).toBe(all[0].task.id);
      expect(rest.slice(1)).toEqual(all.slice(location + 1));
    }
  });

  test('a cursor of another task, or none at all, is refused', async () => {
    const peer = await openPeer({ agents: [scriptedAgent(async () => undefined)] });
    const one = (await peer.rpc('SendMessage', wire('go'))).body.result.task;
    const [other] = results(await (await streamed(peer, 'SendStreamingMessage', wire('go'), headers)).text());
    for (const cursor of [cursorOf(other), 'evt_9999999999999999', 'nonsense']) {
      const { body } = await peer.rpc('SubscribeToTask', { id: one.id }, { ...headers, 'last-event-id': cursor });
      expect(body.error.data[0].reason).toBe('CURSOR_EXPIRED');
    }
  });
});

describe('streams', () => {
  test('every subscriber hears the same in the same order, and one that leaves disturbs nobody', async () => {
    const gate = latch();
    const agent = scriptedAgent(async (sink) => {
      await gate.promise;
      for (const fact of speech('m1', ['a', 'b', 'c'])) await sink.emit(fact);
      return undefined;
    });
    const peer = await openPeer({ agents: [agent] });
    const { task } = (await peer.rpc('SendMessage', { ...wire('go'), configuration: { returnImmediately: true } })).body
      .result;
    const readers = await Promise.all([1, 2, 3].map(() => streamed(peer, 'SubscribeToTask', { id: task.id })));
    await readers[0]!.body!.cancel();
    gate.open();
    const [, second, third] = await Promise.all(readers.map((each, n) => (n === 0 ? '' : each.text())));
    expect(results(second!)).toEqual(results(third!));
    expect(results(second!).at(-1).statusUpdate.status.state).toBe('TASK_STATE_COMPLETED');
  });

  test('the router of 0.3 does not pile up what nobody reads: the reader is let go, and the task ends without it', async () => {
    const piece = 'x'.repeat(48 * 1024);
    const agent = scriptedAgent(async (sink, { task }) => {
      for (let n = 0; n < 400; n += 1) {
        const payload = { message_id: `${task.id}.m`, role: 'assistant', text: piece };
        await sink.emit({ event: 'vendor.tollbridge.message_delta', payload });
      }
      return undefined;
    });
    const peer = await openPeer({ agents: [agent], config: { stream: { stall_ms: 100 } } });
    const headers = { authorization: 'Bearer ana', 'content-type': 'application/json' };
    const sent = request(`${peer.url}/a2a/agent/v1/message:stream`, { method: 'POST', headers }, (answer) => {
      answer.pause();
    });
    sent.on('error', () => {});
    sent.end(JSON.stringify({ message: { messageId: 'm', role: 'ROLE_USER', content: [{ text: 'go' }] } }));
    const letGo = 'a stream was ended: its client stopped reading';
    await expect.poll(() => peer.logged, { timeout: 30_000 }).toContain(letGo);
    sent.destroy();
    const [task] = (await peer.at.bridge.list<Row>(ana, { object: 'task', limit: 1 })).data;
    expect((await peer.at.until(task!.id)).status).toBe('COMPLETED');
  }, 60_000);

  test('a writer waits for room, and hears when nobody reads', async () => {
    const line = () => {
      const full = new PassThrough({ highWaterMark: 1 });
      full.write('more than fits');
      return full;
    };
    expect(await roomIn(new PassThrough(), 'close', 60_000)).toBe('room');
    const read = line();
    const drained = roomIn(read, 'close', 60_000);
    read.resume();
    expect(await drained).toBe('room');
    const left = line();
    const gone = roomIn(left, 'close', 60_000);
    left.destroy();
    expect(await gone).toBe('gone');
    expect(await roomIn(line(), 'close', 1)).toBe('late');
  });

  test('quiet ones are kept open, before half a minute in which clients give up', async () => {
    expect(settingsOf({}).keepAliveMs).toBe(15_000);
    const gate = latch();
    const agent = scriptedAgent(() => gate.promise.then(() => undefined));
    const peer = await openPeer({ agents: [agent], config: { stream: { keep_alive_ms: 5 } } });
    const answer = await streamed(peer, 'SendStreamingMessage', wire('go'));
    let text = '';
    for await (const chunk of answer.body!.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      if (text.includes(': keep-alive')) gate.open();
    }
    expect(results(text).at(-1).statusUpdate.status.state).toBe('TASK_STATE_COMPLETED');
  });
});

describe('lists', () => {
  const agent = scriptedAgent(async (sink, { task }) => {
    const [part] = task.input.parts as { text: string }[];
    for (const fact of speech(`${task.id}.m`, ['x'])) await sink.emit(fact);
    return part!.text === 'fail' ? { state: 'FAILED', failure: { code: 'bad', message: 'bad' } } : undefined;
  });
  const idsOf = (list: Body) => list.tasks.map((task: Body) => task.id);

  test('come in pages, newest first, filtered, without artifacts unless wanted', async () => {
    const peer = await openPeer({ agents: [agent] });
    const ids: string[] = [];
    for (const text of ['a', 'fail', 'c']) {
      peer.at.clock.advance(1_000);
      ids.unshift(
        (await peer.rpc('SendMessage', wire(text, { contextId: text === 'c' ? 'mine' : '' }))).body.result.task.id,
      );
    }
    const list = async (params: object) => (await peer.rpc('ListTasks', params)).body;
    const first = (await list({ pageSize: 2 })).result;
    expect([idsOf(first), first.totalSize, first.pageSize]).toEqual([ids.slice(0, 2), 3, 2]);
    const last = (await list({ pageSize: 2, pageToken: first.nextPageToken })).result;
    expect([idsOf(last), last.nextPageToken]).toEqual([ids.slice(2), '']);
    expect(first.tasks[0].artifacts).toBeUndefined();
    expect(first.tasks[0].history).toBeUndefined();
    expect((await list({ includeArtifacts: true })).result.tasks[0].artifacts.length).toBe(1);
    expect((await list({ historyLength: 1 })).result.tasks[0].history.length).toBe(1);
    expect(idsOf((await list({ status: 'TASK_STATE_FAILED' })).result)).toEqual([ids[1]]);
    expect(idsOf((await list({ contextId: 'mine' })).result)).toEqual([ids[0]]);
    expect(idsOf((await list({ contextId: 'nobody' })).result)).toEqual([]);
    const since = first.tasks[1].status.timestamp;
    expect(idsOf((await list({ statusTimestampAfter: since })).result)).toEqual(ids.slice(0, 2));
    const rest = await peer.call(
      'GET',
      '/a2a/agent/tasks?pageSize=1&status=TASK_STATE_COMPLETED&includeArtifacts=true',
    );
    expect([idsOf(rest.body), rest.body.totalSize, rest.body.tasks[0].artifacts.length]).toEqual([[ids[0]], 2, 1]);
    for (const bad of [
      { pageSize: 0 },
      { pageSize: 101 },
      { pageToken: 'x' },
      { status: 'NOPE' },
      { statusTimestampAfter: 'noon' },
    ]) {
      expect((await list(bad)).error.code).toBe(-32602);
    }
    expect((await peer.call('GET', '/a2a/agent/tasks?pageSize=many')).status).toBe(400);
  });
});
