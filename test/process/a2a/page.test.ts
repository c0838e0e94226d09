/** The A2A page as a partner reads it: its example call is made, and its example answer is given. */
import { expect, test } from 'vitest';
import { exampleCall, gatewayWithKey, readPage } from '../../support/process/example-call.ts';

const page = await readPage('a2a.md');
const aGateway = () => gatewayWithKey('a2a-peer', 'approvals:own');

test('the example call does its work, with the headers and the body of the page', async () => {
  const { url, token } = await aGateway();
  const { path, headers, body } = exampleCall(page);
  expect(headers).toEqual({
    Authorization: 'Bearer $TOKEN',
    'A2A-Version': '1.0',
    'Content-Type': 'application/json',
  });
  const sent = { ...headers, Authorization: `Bearer ${token}` };
  const answer = await fetch(`${url}${path}`, { method: 'POST', headers: sent, body });
  const { result } = (await answer.json()) as { result: { task: { status: { state: string }; artifacts: object[] } } };
  expect(result.task.status.state).toBe('TASK_STATE_COMPLETED');
  expect(JSON.stringify(result.task.artifacts)).toContain('First look, then leap.');
});

test('the example answer is one, with the ids of a real question', async () => {
  const { url, token } = await aGateway();
  const { path, headers, body } = exampleCall(page);
  const post = async (params: object) => {
    const call = { ...JSON.parse(body), params };
    const sent = { ...headers, Authorization: `Bearer ${token}` };
    const answer = await fetch(`${url}${path}`, { method: 'POST', headers: sent, body: JSON.stringify(call) });
    return (await answer.json()) as { result: { task: { id: string; status: { state: string; message?: object } } } };
  };
  const message = { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'send the plan to bo' }] };
  const { task } = (await post({ message })).result;
  expect(task.status.state).toBe('TASK_STATE_INPUT_REQUIRED');
  const askId = /"askId":"(ask_\w+)"/.exec(JSON.stringify(task.status.message))?.[1] ?? '';
  const [, example = ''] = /```json\n(\{\s+"message"[\s\S]*?)```/.exec(page) ?? [];
  const answer = JSON.parse(
    example.replace('"task_01"', JSON.stringify(task.id)).replace('"ask_01"', JSON.stringify(askId)),
  );
  const answered = await post(answer);
  expect(answered).toMatchObject({ result: { task: { status: { state: 'TASK_STATE_COMPLETED' } } } });
});

test('it names the scope of approvals, how a partner gets a key, gRPC and push', () => {
  for (const word of ['approvals:own', '--for a2a-peer', 'grpc:', 'CreateTaskPushNotificationConfig'])
    expect([word, page.includes(word)]).toEqual([word, true]);
});
