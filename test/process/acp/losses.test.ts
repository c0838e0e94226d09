/** What a translation could not carry is told by `tollbridge task`: to people in lines, to programs as a list that names the events. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { showTask } from '../../../src/cli/commands/history/task.ts';
import { startGateway } from '../../../src/runtime/gateway.ts';
import { LOSSY_CONFIG, LOSSY_WORK } from '../../support/acp/lossy-agent.ts';
import { aDirectory, aLog, typed } from '../../support/process/cli.ts';
import { configIn } from '../../support/process/config-in.ts';

/** A log in which an agent of the gateway did this work; gives its task. */
async function aLogOf(work: string): Promise<{ readonly data: string; readonly task: string }> {
  const dir = await aDirectory();
  const data = join(dir, 'data');
  await writeFile(join(dir, 'tollbridge.yaml'), LOSSY_CONFIG);
  const gateway = await startGateway(await configIn(dir, { data, port: 0 }));
  onTestFinished(() => gateway.close());
  const headers = {
    authorization: `Bearer ${gateway.token}`,
    'content-type': 'application/json',
    'harn-agents-protocol-version': 'agents-protocol-2026-04-25',
  };
  const call = async (path: string, body?: object) =>
    (await (
      await fetch(`${gateway.url}${path}`, {
        headers,
        ...(body && { method: 'POST', body: JSON.stringify(body) }),
      })
    ).json()) as { id: string; status: string };
  const session_id = (await call('/v1/sessions', { workspace_id: 'workspace_default' })).id;
  const { id } = await call('/v1/tasks', { session_id, input: { text: work } });
  await expect
    .poll(async () => (await call(`/v1/tasks/${id}`)).status, { timeout: 20_000 })
    .toMatch(/COMPLETED|FAILED/);
  return { data, task: id };
}

test('for people each loss is a line with its event, its aspect and why; for programs it is a list', async () => {
  const { data, task } = await aLogOf(LOSSY_WORK);
  const { out, code } = await typed(() => showTask(task, { data }));
  expect(code).toBe(0);
  const lines = out.split('\n');
  const begin = lines.indexOf('could not be carried:');
  expect(lines.slice(begin + 1, begin + 4).map((line) => line.replace(/#\d+/, '#N'))).toEqual([
    '  #N effects: the agent ran the call itself and does not say what it changed',
    '  #N usage: the agent reports neither tokens nor money',
    '  #N report: of what the agent did without asking, only its own report is known',
  ]);

  const { loss, events } = JSON.parse((await typed(() => showTask(task, { data, json: true }))).out);
  expect(loss.map(({ aspect, why }: { aspect: string; why: string }) => [aspect, why])).toEqual([
    ['effects', 'the agent ran the call itself and does not say what it changed'],
    ['usage', 'the agent reports neither tokens nor money'],
    ['report', 'of what the agent did without asking, only its own report is known'],
  ]);
  const kindOf = (id: string) => events.find((event: { id: string }) => event.id === id)?.event;
  expect(loss.map(({ event_id }: { event_id: string }) => kindOf(event_id))).toEqual([
    'tool.completed',
    'task.completed',
    'task.completed',
  ]);
});

test('work that was carried whole says nothing of it, and its list is empty', async () => {
  const { dir, tasks } = await aLog(['read plan']);
  const task = tasks[0] ?? '';
  expect((await typed(() => showTask(task, { data: dir }))).out).not.toContain('could not be carried');
  expect(JSON.parse((await typed(() => showTask(task, { data: dir, json: true }))).out).loss).toEqual([]);
});
