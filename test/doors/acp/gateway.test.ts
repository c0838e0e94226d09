/** The whole gateway from its configuration: an ACP agent behind, an ACP editor and a REST caller in front, one log between. */
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { startGateway } from '../../../src/runtime/gateway.ts';
import { isAlive } from '../../support/acp/agent-gateway.ts';
import { editorKey, speakTo } from '../../support/acp/client.ts';
import { configIn } from '../../support/process/config-in.ts';

const AGENT = fileURLToPath(new URL('../../support/acp/agent.mjs', import.meta.url));

test('an agent of the configuration works for an editor, and a caller of another protocol answers its question', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'tb-acp-'));
  const journal = join(dir, 'journal');
  const agents = { scripted: { acp: { command: [process.execPath, AGENT, JSON.stringify({ journal })] } } };
  await writeFile(join(dir, 'tollbridge.yaml'), JSON.stringify({ agents, rules: [] }));
  const gateway = await startGateway(await configIn(dir, { data: join(dir, 'data'), port: 0 }));
  onTestFinished(async () => {
    await gateway.close();
    await rm(dir, { recursive: true, force: true });
  });
  const editor = await speakTo({ url: gateway.url, token: await editorKey(join(dir, 'data')) });
  const sessionId = await editor.session(dir);
  const toolCall = { toolCallId: 'c', title: 'rm -rf build', kind: 'execute', rawInput: { command: 'rm -rf build' } };
  const options = [{ optionId: 'go', name: 'Allow', kind: 'allow_once' }];
  const steps = [{ ask: 'session/request_permission', params: { toolCall, options } }];
  const done = editor.prompt(sessionId, JSON.stringify(steps));
  const question = await editor.next(({ method }) => method === 'session/request_permission');
  expect(question.params.toolCall).toMatchObject({
    title: 'May agent:scripted use execute on rm -rf build?',
    kind: 'execute',
  });

  const { askId } = question.params._meta.tollbridge;
  const answer = await fetch(`${gateway.url}/v1/permission-requests/${askId}/respond`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${gateway.token}`,
      'content-type': 'application/json',
      'harn-agents-protocol-version': 'agents-protocol-2026-04-25',
      'idempotency-key': 'one',
    },
    body: JSON.stringify({ approved: true }),
  });
  expect(answer.status).toBe(200);
  expect((await editor.next(({ method }) => method === '$/cancel_request')).params).toEqual({ requestId: question.id });
  expect((await done).stopReason).toBe('end_turn');
  const notes = existsSync(journal) ? readFileSync(journal, 'utf8').split('\n') : [];
  expect(notes).toContain('answer {"outcome":{"outcome":"selected","optionId":"go"}}');

  const pid = Number(notes.find((line) => line.startsWith('pid '))?.slice(4));
  expect(isAlive(pid)).toBe(true);
  await gateway.close();
  expect(isAlive(pid)).toBe(false);
});

test('a mistake in what is said of an agent is reported with its location', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'tb-acp-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  await writeFile(join(dir, 'tollbridge.yaml'), 'agents:\n  bad: { acp: { command: claude } }\n');
  const config = await configIn(dir, { data: join(dir, 'data'), port: 0 });
  await expect(startGateway(config)).rejects.toThrow(/tollbridge\.yaml:2:.*command/);
});
