/**
 * An agent's call to a server at which its principal has to sign in first, as each door tells that principal: the task waits in
 * AUTH_REQUIRED, or in the word the protocol has for it, with the link; the code of the page, given at that door, lets it go on.
 */
import { expect, test } from 'vitest';
import { a2a } from '../../../../adapters/a2a/index.ts';
import { acp } from '../../../../adapters/acp/index.ts';
import { harn } from '../../../../adapters/harn/index.ts';
import { runs } from '../../../../adapters/runs/index.ts';
import { speech, wire } from '../../../support/a2a/sdk.ts';
import { speakTo } from '../../../support/acp/client.ts';
import { eventually } from '../../../support/eventually.ts';
import { scriptedAgent } from '../../../support/gateway/agents.ts';
import { linkIn, openCallers, person } from '../../../support/mcp/callers.ts';
import type { Loose } from '../../../support/mcp/upstream.ts';

/** It says whose account its call used. */
async function openWork() {
  const agent = scriptedAgent(async (sink, { task }) => {
    const act = await sink.act({ kind: 'tool', tool: 'whoami', server: 'github', tool_call_id: 'c1', arguments: {} });
    const said = act.kind === 'done' ? (act.result.output as Loose).content[0].text : act.reason;
    for (const fact of speech(`${task.id}.m`, [said])) await sink.emit(fact);
    return undefined;
  });
  const callers = await openCallers(() => ({ sign_in: { per: 'caller' } }), {
    agents: [agent],
    doors: [harn, runs, a2a, acp],
  });
  const { url } = callers.gateway;
  const called = async (method: string, path: string, body?: object, headers: Record<string, string> = {}) => {
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: {
        authorization: 'Bearer ann',
        'content-type': 'application/json',
        'harn-agents-protocol-version': 'agents-protocol-2026-04-25',
        ...headers,
      },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, body: (text ? JSON.parse(text) : undefined) as Loose };
  };
  return { ...callers, url, called };
}
const codeFor = async (question: string) => (await person('ann@github').signsIn(linkIn(question))).code;
const input = { role: 'user', parts: [{ type: 'text', text: 'go', visibility: 'public' }] };

test('REST: AUTH_REQUIRED, a request with the link, and an answer that only its principal gives', async () => {
  const { called, call } = await openWork();
  const [workspace] = (await called('GET', '/v1/workspaces')).body.data;
  const session = (await called('POST', '/v1/sessions', { workspace_id: workspace.id })).body.id;
  const task = (await called('POST', `/v1/sessions/${session}/tasks`, { input })).body.id;
  const state = async () => (await called('GET', `/v1/tasks/${task}`)).body.status;
  await eventually(async () => (await state()) === 'AUTH_REQUIRED', 'AUTH_REQUIRED');
  const [request] = (await called('GET', `/v1/tasks/${task}/permission-requests`)).body.data;
  const code = await codeFor(JSON.stringify(request));
  const answer = (headers = {}) =>
    called('POST', `/v1/permission-requests/${request.id}/respond`, { answer: code }, headers);
  expect((await answer({ authorization: 'Bearer bob' })).status).toBeGreaterThanOrEqual(400);
  expect(await state()).toBe('AUTH_REQUIRED');
  expect((await answer()).status).toBe(200);
  await eventually(async () => (await state()) === 'COMPLETED', 'COMPLETED');
  const messages = JSON.stringify((await called('GET', `/v1/sessions/${session}/messages`)).body);
  expect(messages).toContain('ann@github');
  expect(messages).not.toContain(code);
  expect(await call('ann', 'whoami')).toBe('ann@github');
});

test('runs: awaiting input with the link, answered by a signal', async () => {
  const { called } = await openWork();
  const as = { authorization: 'Bearer ann:ann', 'idempotency-key': 'k1' };
  const made = await called('POST', '/v1/runs', { input: { user_query: 'go' }, metadata: {} }, as);
  const run = async () => (await called('GET', `/v1/runs/${made.body.id}`, undefined, as)).body;
  await eventually(async () => Boolean((await run()).awaiting_input), 'awaiting_input');
  const waiting = await run();
  expect(waiting.awaiting_input.input_kind).toBe('payload');
  const { events } = (await called('GET', `/v1/runs/${made.body.id}/events?cursor=0&limit=200`, undefined, as)).body;
  const payload = await codeFor(JSON.stringify(events));
  const signal = { action: 'submit_input', payload };
  expect((await called('POST', `/v1/runs/${made.body.id}/signal`, signal, as)).status).toBe(200);
  await eventually(async () => (await run()).status === 'succeeded', 'succeeded');
  const all = (await called('GET', `/v1/runs/${made.body.id}/events?cursor=0&limit=200`, undefined, as)).body;
  expect(JSON.stringify(all)).toContain('ann@github');
});

test('A2A: TASK_STATE_INPUT_REQUIRED, as every question its caller may answer, with the link, answered by the next message', async () => {
  const { called } = await openWork();
  const rpc = async (method: string, params: object) => {
    const body = { jsonrpc: '2.0', id: 1, method, params };
    return (await called('POST', '/a2a/agent', body, { 'a2a-version': '1.0' })).body.result;
  };
  const { task } = await rpc('SendMessage', wire('go'));
  expect(task.status.state).toBe('TASK_STATE_INPUT_REQUIRED');
  const code = await codeFor(task.status.message.parts[0].text);
  const done = (await rpc('SendMessage', wire(code, { taskId: task.id }))).task;
  expect(done.status.state).toBe('TASK_STATE_COMPLETED');
  expect(JSON.stringify(done.artifacts)).toContain('ann@github');
});

test.each([
  ['with forms', { elicitation: { form: {} } }],
  ['without', {}],
])('ACP: an editor %s is shown the link, takes the code, and the turn goes on', async (_, capabilities) => {
  const { url } = await openWork();
  const editor = await speakTo({ url, token: 'ann' }, capabilities);
  const session = await editor.session();
  const turn = editor.prompt(session, 'go');
  const words = () =>
    editor
      .updates('agent_message_chunk')
      .map(({ content }) => content.text)
      .join('');
  if ('elicitation' in capabilities) {
    const { id, params } = await editor.next(({ method }) => method === 'elicitation/create');
    editor.answer(id, { action: 'accept', content: { answer: await codeFor(params.message) } });
    expect((await turn).stopReason).toBe('end_turn');
  } else {
    expect((await turn).stopReason).toBe('end_turn');
    expect((await editor.prompt(session, await codeFor(words()))).stopReason).toBe('end_turn');
  }
  expect(words()).toContain('ann@github');
});
