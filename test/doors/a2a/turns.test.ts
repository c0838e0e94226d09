/** Several turns: questions, answers, approvals, messages in between, conversations, cancelling, and keys. */
import { TaskState } from '@a2a-js/sdk';
import { describe, expect, test } from 'vitest';
import { openPeer, type Peer, sending, speech, wire } from '../../support/a2a/gateway.ts';
import { latch, scriptedAgent, untilAborted } from '../../support/gateway/agents.ts';
import { countingTools } from '../../support/gateway/tools.ts';

const asker = scriptedAgent(async (sink, { task }) => {
  const answer = await sink.ask({ kind: 'input', key: 'colour', question: 'Which colour?' });
  const said = answer.kind === 'value' ? String(answer.value) : answer.kind;
  for (const fact of speech(`${task.id}.m`, [`You said ${said}.`])) await sink.emit(fact);
  return undefined;
});
const ASK = "- id: ask\n  when: { tool: pay }\n  then: ask\n  say: money is people's business\n";
const payer = scriptedAgent(async (sink, { task }) => {
  const done = await sink.act({ kind: 'tool', tool: 'pay', tool_call_id: 'c1', arguments: { sum: 7 } });
  for (const fact of speech(`${task.id}.m`, [done.kind])) await sink.emit(fact);
  return undefined;
});
const pay = () => countingTools({ pay: { effect: 'pay' } });
/** As the keys of partners have them: the last one lets them give values and deny, not approve their own work. */
const PEER_SCOPES = ['tasks:*', 'sessions:*', 'events:read', 'workspaces:read', 'artifacts:read', 'approvals:write'];
const textOf = (task: { artifacts: { parts: { text: string }[] }[] }) => task.artifacts[0]?.parts[0]?.text;

async function begun(peer: Peer, text = 'go') {
  const { body } = await peer.rpc('SendMessage', wire(text));
  return body.result.task;
}

describe('a question', () => {
  test('is INPUT_REQUIRED with words and data, and the next message answers it', async () => {
    const peer = await openPeer({ agents: [asker] });
    const task = await begun(peer);
    expect(task.status.state).toBe('TASK_STATE_INPUT_REQUIRED');
    const [words, data] = task.status.message.parts;
    expect(words.text).toBe('Which colour?');
    expect(data.data.kind).toBe('input');
    expect(data.data.answer).toEqual({ askId: data.data.askId, value: '' });
    // Not every SDK reads a member of data that is null.
    expect(JSON.stringify(data)).not.toContain('null');
    const { body } = await peer.rpc('SendMessage', wire('blue', { taskId: task.id }));
    expect(body.result.task.id).toBe(task.id);
    expect(body.result.task.status.state).toBe('TASK_STATE_COMPLETED');
    expect(textOf(body.result.task)).toBe('You said blue.');
    expect(body.result.task.history.map((said: { role: string }) => said.role)).toEqual([
      'ROLE_USER',
      'ROLE_AGENT',
      'ROLE_USER',
      'ROLE_AGENT',
    ]);
  });

  test('ends a send-stream, and the answer streams the rest', async () => {
    const peer = await openPeer({ agents: [asker] });
    const client = await peer.client();
    const states: (number | undefined)[] = [];
    let id = '';
    for await (const { payload } of client.sendMessageStream(sending('go'))) {
      if (payload?.$case === 'task') id = payload.value.id;
      if (payload?.$case === 'statusUpdate') states.push(payload.value.status?.state);
    }
    expect(states).toEqual([TaskState.TASK_STATE_WORKING, TaskState.TASK_STATE_INPUT_REQUIRED]);
    const reported: (string | undefined)[] = [];
    for await (const { payload } of client.sendMessageStream(sending('green', { taskId: id })))
      reported.push(payload?.$case);
    expect(reported[0]).toBe('task');
    expect(reported.at(-1)).toBe('statusUpdate');
  });
});

describe('an approval', () => {
  test('is INPUT_REQUIRED, says what would run and what an answer looks like, and takes a data part', async () => {
    const tools = pay();
    const peer = await openPeer({ agents: [payer], tools: [tools], rules: ASK });
    const task = await begun(peer);
    expect(task.status.state).toBe('TASK_STATE_INPUT_REQUIRED');
    const [{ text }, { data }] = task.status.message.parts;
    expect(text).toContain(
      `To answer, send a message to this task with the data part {"askId":"${data.askId}","approved":true}`,
    );
    expect(text).not.toContain('the text yes');
    expect(data.answer).toEqual({ askId: data.askId, approved: true });
    expect(data.action).toEqual({ tool: 'pay', server: 'box', effect: 'pay', arguments: { sum: 7 } });
    expect(tools.calls).toEqual([]);
    const parts = [{ data: { askId: data.askId, approved: true, reason: 'fine' } }];
    const { body } = await peer.rpc('SendMessage', wire('', { taskId: task.id, parts }));
    expect(body.result.task.status.state).toBe('TASK_STATE_COMPLETED');
    expect(tools.calls.map(({ tool, arguments: args }) => [tool, args])).toEqual([['pay', { sum: 7 }]]);
  });

  test('is not given by a plain yes', async () => {
    const tools = pay();
    const peer = await openPeer({ agents: [payer], tools: [tools], rules: ASK });
    const task = await begun(peer);
    const { body } = await peer.rpc('SendMessage', wire('yes', { taskId: task.id }));
    expect(body.error.code).toBe(-32602);
    expect(tools.calls).toEqual([]);
    expect((await peer.rpc('GetTask', { id: task.id })).body.result.status.state).toBe('TASK_STATE_INPUT_REQUIRED');
  });

  test('is given by a plain yes where the configuration says so', async () => {
    const tools = pay();
    const peer = await openPeer({ agents: [payer], tools: [tools], rules: ASK, config: { text_approvals: true } });
    const task = await begun(peer);
    const { body } = await peer.rpc('SendMessage', wire('Yes.', { taskId: task.id }));
    expect(body.result.task.status.state).toBe('TASK_STATE_COMPLETED');
    expect(tools.calls.length).toBe(1);
  });

  test('is given by a plain yes of a caller that asked for that, in a header or in the message', async () => {
    const uri = 'urn:tollbridge:a2a:text-answers:v1';
    const tools = pay();
    const peer = await openPeer({ agents: [payer], tools: [tools], rules: ASK });
    const header = { 'a2a-extensions': uri };
    const { task } = (await peer.rpc('SendMessage', wire('go'), header)).body.result;
    expect(task.status.message.parts[0].text).toMatch(/with false to deny, or with the text yes or no\.$/);
    const yes = await peer.rpc('SendMessage', wire('yes', { taskId: task.id }), header);
    expect(yes.body.result.task.status.state).toBe('TASK_STATE_COMPLETED');
    const second = await begun(peer);
    const no = await peer.rpc('SendMessage', wire('No', { taskId: second.id, extensions: [uri] }));
    expect(textOf(no.body.result.task)).toBe('refused');
    expect(tools.calls).toHaveLength(1);
  });

  test('is AUTH_REQUIRED to everybody where the configuration says so, and its stream stays open', async () => {
    const peer = await openPeer({
      agents: [payer],
      tools: [pay()],
      rules: ASK,
      config: { approvals: 'auth_required' },
    });
    const client = await peer.client();
    const states: (number | undefined)[] = [];
    for await (const { payload } of client.sendMessageStream(sending('go'))) {
      if (payload?.$case !== 'statusUpdate') continue;
      states.push(payload.value.status?.state);
      if (payload.value.status?.state !== TaskState.TASK_STATE_AUTH_REQUIRED) continue;
      const [ask] = await peer.at.asks(payload.value.taskId);
      await peer.at.answer(ask?.id ?? '', { approved: true });
    }
    expect(states).toEqual([
      TaskState.TASK_STATE_WORKING,
      TaskState.TASK_STATE_AUTH_REQUIRED,
      TaskState.TASK_STATE_WORKING,
      TaskState.TASK_STATE_COMPLETED,
    ]);
  });

  test('is AUTH_REQUIRED to a caller that may not give it: nothing is offered, and the stream waits for the one who may', async () => {
    const people = { partner: { id: 'partner', kind: 'service', scopes: PEER_SCOPES } as const };
    const peer = await openPeer({ agents: [payer], tools: [pay()], rules: ASK, people });
    const client = await peer.client('JSONRPC', 'partner');
    const states: (number | undefined)[] = [];
    for await (const { payload } of client.sendMessageStream(sending('go'))) {
      if (payload?.$case !== 'statusUpdate') continue;
      const { taskId, status } = payload.value;
      states.push(status?.state);
      if (status?.state !== TaskState.TASK_STATE_AUTH_REQUIRED) continue;
      const [words, data] = status.message?.parts ?? [];
      expect(words?.content?.value).toMatch(/This is answered on the agent's side, and not by you\. .*$/);
      expect(words?.content?.value).not.toContain('askId');
      expect(data?.content?.value).toMatchObject({ kind: 'approval', answerable: false });
      expect(data?.content?.value).not.toHaveProperty('answer');
      const as = { authorization: 'Bearer partner' };
      const chatter = await peer.rpc('SendMessage', wire('well?', { taskId }), as);
      expect(chatter.body.error.message).toContain("given on the agent's side");
      const waiting = await peer.rpc('ListTasks', { status: 'TASK_STATE_AUTH_REQUIRED' }, as);
      expect(waiting.body.result.tasks).toHaveLength(1);
      const [ask] = await peer.at.asks(taskId);
      await peer.at.answer(ask?.id ?? '', { approved: true });
    }
    expect(states).toEqual([
      TaskState.TASK_STATE_WORKING,
      TaskState.TASK_STATE_AUTH_REQUIRED,
      TaskState.TASK_STATE_WORKING,
      TaskState.TASK_STATE_COMPLETED,
    ]);
  });

  test('is listed in the state the caller is shown', async () => {
    const peer = await openPeer({ agents: [payer], tools: [pay()], rules: ASK });
    await begun(peer);
    const count = async (status: string) => (await peer.rpc('ListTasks', { status })).body.result.totalSize;
    expect([await count('TASK_STATE_INPUT_REQUIRED'), await count('TASK_STATE_AUTH_REQUIRED')]).toEqual([1, 0]);
  });

  test('takes the right to give one', async () => {
    const tools = pay();
    const people = { worker: { id: 'worker', kind: 'service', scopes: PEER_SCOPES.slice(0, -1) } as const };
    const peer = await openPeer({ agents: [payer], tools: [tools], rules: ASK, people });
    const as = { authorization: 'Bearer worker' };
    const { task } = (await peer.rpc('SendMessage', wire('go'), as)).body.result;
    const parts = [{ data: { approved: true } }];
    const answer = await peer.rpc('SendMessage', wire('', { taskId: task.id, parts }), as);
    expect(answer.status).toBe(403);
    expect(answer.body.error.data[0]).toMatchObject({ reason: 'PERMISSION_DENIED', domain: 'tollbridge' });
    expect(tools.calls).toEqual([]);
  });

  test('can be refused, with a reason the agent hears', async () => {
    const tools = pay();
    const peer = await openPeer({ agents: [payer], tools: [tools], rules: ASK });
    const task = await begun(peer);
    const parts = [{ data: { approved: false, reason: 'too much' } }];
    const { body } = await peer.rpc('SendMessage', wire('', { taskId: task.id, parts }));
    expect(textOf(body.result.task)).toBe('refused');
    expect(tools.calls).toEqual([]);
  });
});

describe('a message that names only the context', () => {
  test('answers the question that waits there', async () => {
    const peer = await openPeer({ agents: [asker] });
    const task = await begun(peer);
    const { body } = await peer.rpc('SendMessage', wire('blue', { contextId: task.contextId }));
    expect([body.result.task.id, textOf(body.result.task)]).toEqual([task.id, 'You said blue.']);
  });

  test('gives the approval that waits there, when it is one', async () => {
    const tools = pay();
    const peer = await openPeer({ agents: [payer], tools: [tools], rules: ASK });
    const task = await begun(peer);
    const parts = [{ data: { approved: true } }];
    const { body } = await peer.rpc('SendMessage', wire('', { contextId: task.contextId, parts }));
    expect([body.result.task.id, body.result.task.status.state]).toEqual([task.id, 'TASK_STATE_COMPLETED']);
    expect(tools.calls).toHaveLength(1);
  });

  test('is otherwise work that has not begun, and says at once what it waits for', async () => {
    const peer = await openPeer({ agents: [payer], tools: [pay()], rules: ASK });
    const task = await begun(peer);
    const { body } = await peer.rpc('SendMessage', wire('and then?', { contextId: task.contextId }));
    const second = body.result.task;
    expect(second.id).not.toBe(task.id);
    expect(second.status.state).toBe('TASK_STATE_SUBMITTED');
    const why = `This task begins when task ${task.id} of the same context has ended, and that one waits for an approval: `;
    expect(second.status.message.parts[0].text).toContain(why);
    const got = (await peer.rpc('GetTask', { id: second.id })).body.result;
    expect(got.status.message.parts[0].text).toContain(why);
    const parts = [{ data: { approved: false } }];
    await peer.rpc('SendMessage', wire('', { taskId: task.id, parts }));
    await peer.at.until(second.id, 'AUTH_REQUIRED');
    const later = (await peer.rpc('GetTask', { id: second.id })).body.result;
    expect(later.status.state).toBe('TASK_STATE_INPUT_REQUIRED');
  });
});

describe('a message to one agent in a context in which another one waits', () => {
  test('is work for the one it was sent to, and says what it waits for; the answer to the other is taken at its own address', async () => {
    const second = { ...asker, name: 'second' };
    const peer = await openPeer({ agents: [asker, second] });
    const first = await begun(peer);
    const { contextId } = first;
    const to = (agent: string, params: unknown) =>
      peer.call('POST', peer.base(agent), { jsonrpc: '2.0', id: 'r1', method: 'SendMessage', params });
    const { body } = await to('second', wire('go on', { contextId }));
    const { task } = body.result;
    expect([task.id === first.id, task.status.state]).toEqual([false, 'TASK_STATE_SUBMITTED']);
    expect(task.status.message.parts[0].text).toContain(`task ${first.id} of the same context has ended`);
    const parts = [{ data: first.status.message.parts[1].data.answer }];
    expect((await to('second', wire('', { contextId, parts }))).body.result.task.status.state).toBe(
      'TASK_STATE_SUBMITTED',
    );
    const done = (await to(asker.name, wire('blue', { contextId }))).body.result.task;
    expect([done.id, done.status.state]).toEqual([first.id, 'TASK_STATE_COMPLETED']);
  });
});

describe('a message in between', () => {
  test('reaches an agent that takes them', async () => {
    const received = latch<string>();
    const steered = {
      ...scriptedAgent(async () => undefined),
      abilities: { resume: false, evidence: 'held', steer: true } as const,
      start: async () => ({
        done: received.promise.then(() => ({ state: 'COMPLETED' as const })),
        steer: (message: { parts?: unknown }) => received.open(JSON.stringify(message.parts)),
      }),
    };
    const peer = await openPeer({ agents: [steered] });
    const { task } = (await peer.rpc('SendMessage', { ...wire('go'), configuration: { returnImmediately: true } })).body
      .result;
    const { body } = await peer.rpc('SendMessage', wire('hurry', { taskId: task.id }));
    expect(body.result.task.status.state).toBe('TASK_STATE_COMPLETED');
    expect(await received.promise).toContain('hurry');
  });

  test('is refused by one that does not', async () => {
    const peer = await openPeer({
      agents: [scriptedAgent((_, __, signal) => untilAborted(signal).then(() => undefined))],
    });
    const { task } = (await peer.rpc('SendMessage', { ...wire('go'), configuration: { returnImmediately: true } })).body
      .result;
    const { body } = await peer.rpc('SendMessage', wire('hurry', { taskId: task.id }));
    expect(body.error.code).toBe(-32004);
    expect((await peer.rpc('CancelTask', { id: task.id })).body.result.status.state).toBe('TASK_STATE_CANCELED');
  });
});

describe('a conversation', () => {
  const echo = scriptedAgent(async (sink, work) => {
    const said: string[] = [];
    for await (const { parts } of work.transcript()) said.push((parts[0] as { text: string }).text);
    for (const fact of speech(`${work.task.id}.m`, [said.join('|')])) await sink.emit(fact);
    return undefined;
  });

  test('goes on under the context the server gave, and under one the peer made up', async () => {
    const peer = await openPeer({ agents: [echo] });
    const first = (await peer.rpc('SendMessage', wire('one'))).body.result.task;
    const second = (await peer.rpc('SendMessage', wire('two', { contextId: first.contextId }))).body.result.task;
    expect(second.contextId).toBe(first.contextId);
    expect(textOf(second)).toBe('one|one|two');
    const mine = (await peer.rpc('SendMessage', wire('three', { contextId: 'my own' }))).body.result.task;
    const more = (await peer.rpc('SendMessage', wire('four', { contextId: 'my own' }))).body.result.task;
    expect([mine.contextId, more.contextId]).toEqual(['my own', 'my own']);
    expect(textOf(more)).toBe('three|three|four');
  });

  test('of a peer whose tenant has never worked here is in a workspace of that tenant', async () => {
    const scopes = ['sessions:read', 'sessions:write', 'tasks:read', 'tasks:write', 'events:read', 'workspaces:read'];
    const people = { cy: { id: 'cy', kind: 'service', tenant_id: 'acme', scopes } } as const;
    const peer = await openPeer({ agents: [echo], people });
    const { body } = await peer.rpc('SendMessage', wire('hello'), { authorization: 'Bearer cy' });
    expect(textOf(body.result.task)).toBe('hello');
  });

  test("is one's own: the same name from someone else is another one", async () => {
    const peer = await openPeer({ agents: [echo] });
    const first = (await peer.rpc('SendMessage', wire('secret'))).body.result.task;
    for (const contextId of [first.contextId, 'shared']) {
      await peer.rpc('SendMessage', wire('secret', { contextId }));
      const as = { authorization: 'Bearer bo' };
      const theirs = (await peer.rpc('SendMessage', wire('hello', { contextId }), as)).body.result.task;
      expect(theirs.contextId).toBe(contextId);
      expect(textOf(theirs)).toBe('hello');
    }
  });

  test('cannot be swapped under a task', async () => {
    const peer = await openPeer({ agents: [asker] });
    const task = await begun(peer);
    const { body } = await peer.rpc('SendMessage', wire('blue', { taskId: task.id, contextId: 'another' }));
    expect(body.error.code).toBe(-32602);
  });
});

describe('keys', () => {
  const counted = () => {
    let count = 0;
    const agent = scriptedAgent(async () => {
      count += 1;
      return undefined;
    });
    return { agent, count: () => count };
  };

  test('the same message id twice is two tasks, unless the peer wants one', async () => {
    const { agent, count } = counted();
    const peer = await openPeer({ agents: [agent] });
    const message = wire('go');
    const ids = async (headers = {}) => (await peer.rpc('SendMessage', message, headers)).body.result.task.id;
    expect(await ids()).not.toBe(await ids());
    expect(count()).toBe(2);
    const once = { 'a2a-extensions': 'urn:tollbridge:a2a:once:v1' };
    expect(await ids(once)).toBe(await ids(once));
    expect(count()).toBe(3);
    const key = { 'idempotency-key': 'k1' };
    expect(await ids(key)).toBe(await ids(key));
    expect(count()).toBe(4);
    const other = await peer.rpc('SendMessage', wire('something else'), key);
    expect(other.body.error.data[0].reason).toBe('IDEMPOTENCY_KEY_REUSED');
  });
});
