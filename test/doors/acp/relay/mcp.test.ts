/**
 * Tools an agent has through our own door: offered when its session opens, reached with a client as published, and a real
 * server behind. What it calls is decided and on the receipt of the turn it was called in, as held.
 */
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openApiKeys } from '../../../../src/auth/api-keys.ts';
import { PRESETS, type Preset } from '../../../../src/auth/presets.ts';
import { systemClock } from '../../../../src/core/clock.ts';
import { projector } from '../../../../src/core/events/projector.ts';
import type { Actor } from '../../../../src/model/actions.ts';
import type { CoreEvent } from '../../../../src/model/events.ts';
import { readConfig } from '../../../../src/runtime/config/config.ts';
import { startGateway } from '../../../../src/runtime/gateway.ts';
import { createSqliteStore } from '../../../../src/store/sqlite/index.ts';
import { startRelay } from '../../../support/acp/process.ts';
import { picks } from '../../../support/acp/relay.ts';
import { openMcpGateway } from '../../../support/mcp/gateway.ts';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const AGENT = here('../../../support/acp/mcp-agent.mjs');
const SERVER = here('../../../../node_modules/@modelcontextprotocol/server-filesystem/dist/index.js');

const RULES = [
  { id: 'no-moves', when: { tool: 'move_file' }, then: 'block', say: 'nothing is moved here' },
  { id: 'writes', when: { tool: 'write_file' }, then: 'ask', say: 'a person decides' },
];

async function runtime() {
  const dir = await mkdtemp(join(tmpdir(), 'tb-acp-mcp-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const data = join(dir, 'data');
  const file = join(dir, 'tollbridge.yaml');
  const tools = { files: { mcp: { command: [process.execPath, SERVER, dir] } } };
  const write = async (more: object) =>
    await writeFile(file, JSON.stringify({ demo: false, tools, rules: RULES, ...more }));
  await write({});
  return { dir, data, file, write };
}

async function receipts(data: string) {
  const store = await createSqliteStore({ path: join(data, 'log.db'), clock: systemClock, projector });
  try {
    return (await store.receipts({})).map(({ receipt }) => receipt);
  } finally {
    await store.close();
  }
}

/** An editor's whole morning: a write that is approved, one that is not, and a tool that is forbidden. */
async function morning(
  { dir, data, file }: { dir: string; data: string; file: string },
  args: string[],
  agent: string[],
) {
  const command = [process.execPath, AGENT, ...agent];
  const { editor, relay, exited, stderr } = startRelay({ dir: data, args: ['--config', file, ...args], command });
  onTestFinished(() => void relay.kill('SIGKILL'));
  await editor.ask('initialize', { protocolVersion: 1 });
  await editor.ask('session/new', { cwd: dir, mcpServers: [] });
  const call = async (name: string, input: object) => {
    const prompt = [{ type: 'text', text: JSON.stringify({ name, arguments: input }) }];
    const answer = await editor.ask('session/prompt', { sessionId: 's1', prompt });
    expect(answer, stderr()).toMatchObject({ result: { stopReason: 'end_turn' } });
    const said = editor.frames.findLast(({ method }) => method === 'session/update')?.params?.update;
    return JSON.parse((said as unknown as { content: { text: string } }).content.text);
  };
  const path = (name: string) => join(dir, name);
  editor.on('session/request_permission', picks('allow_once'));
  expect(await call('write_file', { path: path('a.txt'), content: 'yes' })).toMatchObject({ isError: false });
  expect(readFileSync(path('a.txt'), 'utf8')).toBe('yes');
  editor.on('session/request_permission', picks('reject_once'));
  expect(await call('write_file', { path: path('b.txt'), content: 'no' })).toMatchObject({ isError: true });
  expect(existsSync(path('b.txt'))).toBe(false);
  const moved = await call('move_file', { source: path('a.txt'), destination: path('c.txt') });
  expect(moved).toMatchObject({ isError: true, text: expect.stringContaining('nothing is moved here') });
  expect(existsSync(path('c.txt'))).toBe(false);
  expect(editor.frames.filter(({ method }) => method === 'session/request_permission')).toHaveLength(2);
  editor.close();
  await exited;
}

const held = (tool: string, status: string) => ({ tool, status, metadata: { evidence: 'held' } });
const BY_PERSON = expect.stringMatching(/^local:/);
const EXPECTED = [
  {
    side_effects: { tool_calls: [held('write_file', 'succeeded')] },
    approvals: [{ decision: 'approved', actor: BY_PERSON }],
  },
  {
    side_effects: { tool_calls: [held('write_file', 'canceled')] },
    approvals: [{ decision: 'denied', actor: BY_PERSON }],
  },
  { side_effects: { tool_calls: [held('move_file', 'canceled')] }, approvals: [] },
];

describe('through the door of a running gateway', () => {
  test.each(['legacy', 'modern'])('a client of the %s era', { timeout: 60_000 }, async (era) => {
    const at = await runtime();
    const gateway = await startGateway(
      await readConfig({ env: {}, cwd: at.dir, file: at.file, data: at.data, port: 0 }),
    );
    onTestFinished(() => gateway.close());
    // The session it works in is its person's, who started the relay.
    const scopes = [...(PRESETS.get('mcp-client') as Preset).scopes, 'others:read'];
    const actor = { id: 'scripted', kind: 'agent' as const, scopes, doors: ['mcp'] };
    const { key } = await openApiKeys(at.data, systemClock).create({ name: 'agent', actor });
    const mcp = [{ name: 'files', url: `${gateway.url}/mcp/files`, token: 'agent-key' }];
    process.env['TOLLBRIDGE_SECRET_agent-key'] = key;
    onTestFinished(() => void delete process.env['TOLLBRIDGE_SECRET_agent-key']);
    await at.write({ relays: { acp: { mcp } } });
    await morning(at, [], ['files', era]);
    await gateway.close();
    const all = await receipts(at.data);
    expect(all).toMatchObject(EXPECTED);
    expect(JSON.stringify(all)).not.toContain(key);
  });
});

test('with no gateway at all: a server of the configuration, by its name', { timeout: 60_000 }, async () => {
  const at = await runtime();
  await morning(at, ['--mcp', 'files'], ['files', 'legacy']);
  expect(await receipts(at.data)).toMatchObject(EXPECTED);
});

describe('a caller that names a session', () => {
  const ofTenant = (tenant_id: string): Actor => ({ id: 'caller', kind: 'agent', scopes: ['*'], tenant_id });

  async function calls(in_: 'own' | 'foreign' | 'idle') {
    const { dir } = await runtime();
    const gateway = await openMcpGateway({
      upstreams: { files: { command: [process.execPath, SERVER, dir] } },
      authenticate: async () => ofTenant('one'),
    });
    onTestFinished(() => gateway.close());
    const { bridge, store } = gateway.runtime;
    const owner = ofTenant(in_ === 'foreign' ? 'two' : 'one');
    for (const actor of [ofTenant('one'), ofTenant('two')]) {
      const body = { object: 'workspace' as const, body: { name: 'w', root: 'file:///w' } };
      await bridge.submit({ kind: 'resource.create', actor, body });
    }
    const [workspace] = (await bridge.list(owner, { object: 'workspace' })).data;
    const made = await bridge.submit({ kind: 'session.create', actor: owner, body: { workspace_id: workspace!.id } });
    const work = { session_id: made.resource.id, input: {}, agent: 'none' };
    if (in_ !== 'idle') await bridge.submit({ kind: 'task.submit', actor: owner, body: work });
    const client = new Client({ name: 'agent', version: '1' });
    const headers = { 'tollbridge-session': made.resource.id };
    await client.connect(new StreamableHTTPClientTransport(new URL(gateway.at('files')), { requestInit: { headers } }));
    onTestFinished(() => client.close());
    expect(await client.callTool({ name: 'list_allowed_directories', arguments: {} })).not.toHaveProperty(
      'isError',
      true,
    );
    const events: CoreEvent[] = [];
    for await (const event of store.read({ stream: { of: 'all' }, kinds: ['tool.requested'] })) events.push(event);
    return { named: made.resource.id, called: events.map(({ session_id }) => session_id) };
  }

  test('has its calls in the work that is under way there', async () => {
    const { named, called } = await calls('own');
    expect(called).toEqual([named]);
  });
  test.each(['foreign', 'idle'] as const)(
    '%s: its calls stand by themselves, as if it had named none',
    async (which) => {
      const { named, called } = await calls(which);
      expect(called).toHaveLength(1);
      expect(called).not.toContain(named);
    },
  );
});
