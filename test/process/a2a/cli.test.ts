/** `tollbridge a2a -- <agent>`: an ACP agent called by an unmodified A2A client; what it did arrives as structure. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { ServiceParameters, withA2AExtensions } from '@a2a-js/sdk/client';
import { expect, onTestFinished, test } from 'vitest';
import { withAgent } from '../../../src/cli/commands/a2a/a2a.ts';
import { startGateway } from '../../../src/runtime/gateway.ts';
import { sdkClient, sending } from '../../support/a2a/sdk.ts';
import type { Body } from '../../support/harn/gateway.ts';
import { aLog, program, ran } from '../../support/process/cli.ts';
import { configIn } from '../../support/process/config-in.ts';

const AGENT = resolve(import.meta.dirname, '../../support/acp/agent.mjs');
const ACTIVITY = 'urn:tollbridge:a2a:activity:v1';

async function exposed() {
  const dir = await mkdtemp(join(tmpdir(), 'tb-a2a-cli-'));
  const read = await configIn(dir, { data: join(dir, 'data'), port: 0 });
  const config = withAgent(read, 'coder', [process.execPath, AGENT, '{}'], dir);
  const gateway = await startGateway(config);
  onTestFinished(async () => {
    await gateway.close();
    await rm(dir, { recursive: true, force: true });
  });
  return { gateway, config, dir };
}

test('plan, diff, tool outcome and cost survive as structure, and the answer as text', {
  timeout: 30_000,
}, async () => {
  const { gateway, dir } = await exposed();
  const file = join(dir, 'a.txt');
  const steps = [
    {
      update: { sessionUpdate: 'plan', entries: [{ content: 'edit a.txt', priority: 'high', status: 'in_progress' }] },
    },
    {
      update: {
        sessionUpdate: 'tool_call',
        toolCallId: 't1',
        title: 'Edit a.txt',
        kind: 'edit',
        status: 'pending',
        rawInput: { path: file },
      },
    },
    {
      update: {
        sessionUpdate: 'tool_call_update',
        toolCallId: 't1',
        status: 'completed',
        content: [{ type: 'diff', path: file, oldText: 'old\n', newText: 'new\n' }],
        rawOutput: { changed: 1 },
      },
    },
    { update: { sessionUpdate: 'usage_update', used: 10, size: 100, cost: { amount: 0.25, currency: 'USD' } } },
    { say: 'All done.' },
  ];
  const client = await sdkClient(`${gateway.url}/a2a/coder/`, 'JSONRPC', gateway.token as string);
  const serviceParameters = ServiceParameters.create(withA2AExtensions(ACTIVITY));
  const activity: Body[] = [];
  const artifacts = new Map<string, Body>();
  const states: unknown[] = [];
  for await (const { payload } of client.sendMessageStream(sending(JSON.stringify(steps)), { serviceParameters })) {
    if (payload?.$case === 'statusUpdate') {
      const reported = payload.value.metadata?.[ACTIVITY];
      if (reported) activity.push(reported);
      else states.push(payload.value.status?.state);
    }
    if (payload?.$case === 'artifactUpdate') {
      const { artifact, append } = payload.value;
      const before = append ? (artifacts.get(artifact!.artifactId)?.text ?? '') : '';
      const [part] = artifact!.parts;
      const text = part?.content?.$case === 'text' ? part.content.value : '';
      artifacts.set(artifact!.artifactId, { name: artifact!.name, part, text: before + text });
    }
  }
  const of = (event: string) => activity.filter((each) => each.event === event).map(({ payload }) => payload);
  expect(states.at(-1)).toBe(3);
  expect(of('vendor.tollbridge.plan')[0].entries[0]).toMatchObject({ content: 'edit a.txt' });
  expect(of('tool.requested')[0]).toMatchObject({ tool_call_id: 't1' });
  expect(of('tool.completed')[0]).toMatchObject({ tool_call_id: 't1', status: 'ok' });
  expect(of('vendor.tollbridge.usage').at(-1)).toMatchObject({ usd_micros: 250_000 });
  const made = [...artifacts.values()];
  expect(made.some(({ text }) => text.includes('All done.'))).toBe(true);
  expect(of('artifact.created')).toMatchObject([
    { artifact: { kind: 'diff', name: 'a.txt' }, content: { path: file, oldText: 'old\n', newText: 'new\n' } },
  ]);
});

test('the agent stands at the root, also after the configuration was read again', { timeout: 30_000 }, async () => {
  const { gateway, config } = await exposed();
  const card = (await (await fetch(`${gateway.url}/.well-known/agent-card.json`)).json()) as Body;
  expect(card.name).toBe('coder');
  const again = await config.again();
  expect([Object.keys(again.agents), again.defaultAgent]).toEqual([['coder'], 'coder']);
});

test('work of other agents on the same log is left to the process that runs them', { timeout: 60_000 }, async () => {
  const { dir } = await aLog(['send the plan to ana'], { approve: 'leave open' });
  const started = program(['--data', dir, 'a2a', '--port', '0', '--', process.execPath, AGENT, '{}']);
  await started.says(/is an A2A agent at/);
  expect((await ran(['--data', dir, 'approvals', '--json'])).out.trim().split('\n')).toHaveLength(1);
  started.child.kill('SIGTERM');
  await started.ended;
  const waiting = await ran(['--data', dir, 'approvals', '--json']);
  expect(JSON.parse(waiting.out)).toMatchObject({ state: 'open' });
});
