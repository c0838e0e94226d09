/** A tool server behind `tollbridge mcp` with an outside harness as its guard: what it was asked about and what it hears of fit together. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { harness } from '../../support/ahp/harness.ts';
import { aDirectory } from '../../support/process/cli.ts';
import { PROJECT } from '../../support/process/project.ts';
import { startSpeaking } from '../../support/process/stdio-process.ts';

const SERVER = join(PROJECT, 'test/support/upstreams/counting-server.mjs');

test('the question and the result of a call have the same agent, session, tool and route', async () => {
  const dir = await aDirectory();
  const { path, received } = await harness(({ id }, say) => {
    if (id !== undefined) say({ jsonrpc: '2.0', id, result: { decision: 'allow' } });
  });
  const config = join(dir, 'tollbridge.yaml');
  await writeFile(
    config,
    `harnesses: { guard: { ahp: { socket: ${path} } } }\nrules: [{ id: all, when: { kind: tool }, then: allow }]\n`,
  );
  const data = join(dir, 'data');
  const words = ['--data', data, '--config', config, 'mcp', '--name', 'counting', '--'];
  const { child, end, exited } = startSpeaking([...words, process.execPath, SERVER, join(dir, 'contacts'), data], {});
  onTestFinished(async () => {
    child.stdin.end();
    const late = setTimeout(() => child.kill('SIGKILL'), 10_000);
    await exited;
    clearTimeout(late);
  });
  const clientInfo = { name: 'c', version: '1' };
  await end.ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
  end.notify('notifications/initialized', {});
  for (const count of [1, 2]) await end.ask('tools/call', { name: 'act', arguments: { count } });
  const about = (type: string) =>
    received.filter(({ params }) => params?.event_type === type).map(({ params }) => params);
  await expect.poll(() => about('post_action').length, { timeout: 15_000 }).toBe(2);
  const named = (type: string) =>
    about(type).map(({ agent_id, session_id, depth, payload, metadata }) => [
      ...[agent_id, session_id, depth, payload.tool_name, payload.tool],
      metadata.via,
    ]);
  expect(named('post_action')).toEqual(named('pre_action'));
  expect(named('pre_action')[0]?.[3]).toBe('act');
});
