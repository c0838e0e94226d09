/** Our client against an agent made with the published kit, and what that agent receives about tool servers. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { openAgentGateway } from '../../support/acp/agent-gateway.ts';
import { of } from '../../support/gateway/test-gateway.ts';

const AGENT = fileURLToPath(new URL('../../support/acp/sdk-agent.mjs', import.meta.url));
const RULES = `
- { id: edits, when: { kind: tool, effect: write }, then: ask, say: a person has to look }
- { id: files, when: { kind: [fs.read, fs.write] }, then: allow, say: files are fine }
- { id: cat, when: { kind: terminal, target: 'cat *' }, then: allow, say: looking is fine }`;

test('a published agent asks, writes, reads and runs through us, and its turn is on record as held', async () => {
  const at = await openAgentGateway({ rules: RULES, config: { command: [process.execPath, AGENT] } });
  const path = join(at.dir, 'touched.txt');
  const task = await at.task(path);
  const [ask] = await at.t.asks(task.id);
  expect(ask?.action).toMatchObject({ tool: 'edit', target: path, effect: 'write' });
  await at.t.answer(ask!.id);
  expect((await at.t.until(task.id)).status).toBe('COMPLETED');
  expect(readFileSync(path, 'utf8')).toBe('touched');
  const events = await at.t.events(task.id);
  expect(of(events, 'agent.message')[0]?.payload.message).toMatchObject({ parts: [{ text: 'touched touched' }] });
  const [receipt] = await at.t.receipts(task.id);
  const calls = receipt?.side_effects.tool_calls.map(({ tool, status, metadata }) => [
    tool,
    status,
    metadata?.evidence,
  ]);
  expect(calls).toEqual([
    ['edit', 'succeeded', 'asked'],
    ['fs.write', 'succeeded', 'held'],
    ['fs.read', 'succeeded', 'held'],
    ['terminal', 'succeeded', 'held'],
  ]);
  expect(receipt?.side_effects.fs_writes.map(({ path: file, operation }) => [file, operation])).toEqual([
    ['touched.txt', 'create'],
  ]);
});

test('a cancel while it asks calls its question off, and its turn ends as canceled', async () => {
  const at = await openAgentGateway({ rules: RULES, config: { command: [process.execPath, AGENT] } });
  const task = await at.task(join(at.dir, 'never.txt'));
  await at.t.asks(task.id);
  await at.t.send('task.cancel', { task_id: task.id });
  expect((await at.t.until(task.id)).status).toBe('CANCELED');
});

test('servers of tools are offered to an agent that can reach them, and their tokens stay out of the log', async () => {
  const mcp = [{ name: 'gateway', url: 'http://127.0.0.1:4319/mcp', token: 'mcp-token' }];
  const secrets = { 'mcp-token': 'tok-12345678' };
  const able = await openAgentGateway({
    config: { mcp },
    secrets,
    agent: { can: { mcpCapabilities: { http: true } } },
  });
  await able.run('x');
  expect(JSON.parse(able.notes('new')[0]!).mcpServers).toEqual([
    {
      type: 'http',
      name: 'gateway',
      url: 'http://127.0.0.1:4319/mcp',
      headers: [
        { name: 'Authorization', value: 'Bearer tok-12345678' },
        { name: 'tollbridge-session', value: able.room.session },
      ],
    },
  ]);
  expect(JSON.stringify(await able.t.all())).not.toContain('tok-12345678');
  const unable = await openAgentGateway({ config: { mcp }, secrets });
  await unable.run('x');
  expect(JSON.parse(unable.notes('new')[0]!).mcpServers).toEqual([]);
});
