/** A harness that the configuration names is asked by every command that opens a gateway, not only by `serve`. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/core/clock.ts';
import { startRelay } from '../../support/acp/process.ts';
import { harness } from '../../support/ahp/harness.ts';
import { of, openTestGateway } from '../../support/gateway/test-gateway.ts';
import { EVERYTHING } from '../../support/mcp/command.ts';
import { PROGRAM } from '../../support/process/cli.ts';

/** A gateway whose rules allow everything and whose harness allows no act. */
async function guarded() {
  const dir = await mkdtemp(join(tmpdir(), 'tb-guarded-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const { path, received } = await harness(({ id, params }, say) => {
    const no = { decision: 'block', reason: 'not while I watch' };
    const result = params.event_type === 'pre_action' ? no : { decision: 'allow' };
    if (id !== undefined) say({ jsonrpc: '2.0', id, result });
  });
  const config = join(dir, 'tollbridge.yaml');
  await writeFile(
    config,
    `harnesses: { guard: { ahp: { socket: ${path} } } }\nrules:\n  - { id: all, when: { kind: tool }, then: allow }\n`,
  );
  const asked = () => received.filter(({ params }) => params.event_type === 'pre_action');
  return { dir, config, asked };
}

test('tollbridge mcp asks it before a tool is called', async () => {
  const { dir, config, asked } = await guarded();
  const ours = [PROGRAM, '--data', join(dir, 'data'), '--config', config, 'mcp', '--name', 'everything', '--'];
  const client = new Client({ name: 'c', version: '1' });
  const args = [...ours, ...EVERYTHING];
  await client.connect(new StdioClientTransport({ command: process.execPath, args }));
  onTestFinished(() => client.close());
  const said = await client.callTool({ name: 'echo', arguments: { message: 'hi' } });
  expect(said.isError).toBe(true);
  expect(JSON.stringify(said.content)).toContain('not while I watch');
  expect(asked()).toHaveLength(1);
}, 60_000);

test('tollbridge acp asks it before an agent gets its leave, and the editor is not asked', async () => {
  const { dir, config, asked } = await guarded();
  const { editor, exited } = startRelay({ dir: join(dir, 'data'), before: ['--config', config] });
  await editor.ask('initialize', { protocolVersion: 1 });
  await editor.ask('session/new', { cwd: dir, mcpServers: [] });
  void editor.ask('session/prompt', { sessionId: 's1', prompt: [{ type: 'text', text: 'go' }] });
  await expect.poll(asked, { timeout: 20_000 }).not.toHaveLength(0);
  editor.close();
  await exited;
  expect(editor.frames.filter(({ method }) => method === 'session/request_permission')).toEqual([]);
  const t = await openTestGateway({ dir: join(dir, 'data'), clock: systemClock });
  expect(of(await t.all(), 'tool.denied')[0]?.payload).toMatchObject({ by: 'ahp:guard', reason: 'not while I watch' });
}, 60_000);
