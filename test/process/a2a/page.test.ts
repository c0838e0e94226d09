/** The A2A page as a partner reads it: its example call is made, and its example answer is given. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openApiKeys } from '../../../src/auth/api-keys.ts';
import { PRESETS, type Preset } from '../../../src/auth/presets.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { startGateway } from '../../../src/runtime/gateway.ts';
import { aDirectory } from '../../support/process/cli.ts';
import { configIn } from '../../support/process/config-in.ts';
import { PROJECT } from '../../support/process/project.ts';

const page = await readFile(join(PROJECT, 'docs/a2a.md'), 'utf8');

async function aGateway() {
  const dir = await aDirectory();
  await writeFile(
    join(dir, 'tollbridge.yaml'),
    'demo: true\nrules: [{ id: reads, when: { effect: read }, then: allow }, { id: mail, when: { tool: send_mail }, then: ask }]\n',
  );
  const gateway = await startGateway(await configIn(dir, { data: join(dir, 'data'), port: 0 }));
  onTestFinished(() => gateway.close());
  // As `keys create partner --for a2a-peer --scope approvals:own` makes one.
  const { scopes, doors } = PRESETS.get('a2a-peer') as Preset;
  const actor = {
    id: 'partner',
    kind: 'service' as const,
    scopes: [...scopes, 'approvals:own'],
    doors: [...(doors ?? [])],
  };
  const { key } = await openApiKeys(join(dir, 'data'), systemClock).create({ name: 'partner', actor });
  return { url: gateway.url, token: key };
}

/** The headers and the body that the example sends. */
function exampleCall() {
  const block = /```bash\ncurl -s (\S+)([\s\S]*?) -d '([\s\S]*?)'\n```/.exec(page);
  const [, address = '', flags = '', body = '{}'] = block ?? [];
  const headers = [...flags.matchAll(/-H ["']([^:]+): ([^"']+)["']/g)].map(([, name = '', value = '']) => [
    name,
    value,
  ]);
  return { path: new URL(address).pathname, headers: Object.fromEntries(headers), body };
}

test('the example call does its work, with the headers and the body of the page', async () => {
  const { url, token } = await aGateway();
  const { path, headers, body } = exampleCall();
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
  const { path, headers, body } = exampleCall();
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
