/** A message in, a task out: on both HTTP bindings, by the SDK's own client and by bare requests. */
import { TaskState } from '@a2a-js/sdk';
import { describe, expect, test } from 'vitest';
import { openPeer, sending, speech, wire } from '../../support/a2a/gateway.ts';
import { latch, scriptedAgent } from '../../support/gateway/agents.ts';

const greeter = scriptedAgent(async (sink) => {
  for (const fact of speech('m1', ['Hel', 'lo.'])) await sink.emit(fact);
  return { state: 'COMPLETED', summary: 'said hello' };
});

describe.each(['JSONRPC', 'HTTP+JSON'] as const)('over %s', (binding) => {
  test('a blocking send answers with the ended task', async () => {
    const peer = await openPeer({ agents: [greeter] });
    const client = await peer.client(binding);
    const task = await client.sendMessage(sending('hi'));
    if ('messageId' in task) throw new Error('a message came back');
    expect(task.status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
    expect(task.artifacts.map(({ name, parts }) => [name, parts.map(({ content }) => content)])).toEqual([
      ['response', [{ $case: 'text', value: 'Hello.' }]],
    ]);
    expect(task.history.map(({ role, parts }) => [role, parts[0]?.content?.value])).toEqual([
      [1, 'hi'],
      [2, 'Hello.'],
    ]);
    const again = await client.getTask({ id: task.id, tenant: '' });
    expect(again).toEqual(task);
    expect(peer.logged).toEqual([]);
  });

  test('a stream begins with the task and ends with its end', async () => {
    const peer = await openPeer({ agents: [greeter] });
    const client = await peer.client(binding);
    const reported: unknown[] = [];
    for await (const { payload } of client.sendMessageStream(sending('hi'))) {
      if (payload?.$case === 'task') reported.push(['task', payload.value.status?.state, payload.value.history.length]);
      if (payload?.$case === 'statusUpdate') reported.push(['status', payload.value.status?.state]);
      if (payload?.$case === 'artifactUpdate') {
        const { artifact, append, lastChunk } = payload.value;
        reported.push(['artifact', artifact?.parts[0]?.content?.value, append, lastChunk]);
      }
    }
    expect(reported).toEqual([
      ['task', TaskState.TASK_STATE_SUBMITTED, 1],
      ['status', TaskState.TASK_STATE_WORKING],
      ['artifact', 'Hello.', false, true],
      ['status', TaskState.TASK_STATE_COMPLETED],
    ]);
  });

  test('a send that does not block is answered with the task as it stands, and the client reads on by subscribing', async () => {
    const door = latch();
    const slow = scriptedAgent(async (sink) => {
      await door.promise;
      for (const fact of speech('m1', ['Done.'])) await sink.emit(fact);
      return undefined;
    });
    const peer = await openPeer({ agents: [slow] });
    const client = await peer.client(binding);
    const task = await client.sendMessage(sending('hi', {}, { returnImmediately: true }));
    if ('messageId' in task) throw new Error('a message came back');
    expect(task.status?.state).toBe(TaskState.TASK_STATE_WORKING);
    const reported: unknown[] = [];
    for await (const { payload } of client.resubscribeTask({ id: task.id, tenant: '' })) {
      reported.push(payload?.$case);
      if (payload?.$case === 'task') door.open();
    }
    expect(reported).toEqual(['task', 'artifactUpdate', 'statusUpdate']);
  });
});

test('a bare JSON-RPC request is answered as the specification spells it', async () => {
  const peer = await openPeer({ agents: [greeter] });
  const { status, body } = await peer.rpc('SendMessage', wire('hi'));
  expect(status).toBe(200);
  expect(body.jsonrpc).toBe('2.0');
  expect(body.id).toBe('r1');
  expect(body.result.task.status.state).toBe('TASK_STATE_COMPLETED');
  expect(body.result.task.artifacts[0].parts).toEqual([{ text: 'Hello.', mediaType: 'text/plain' }]);
});
