/** How a relay behaves, as the configuration says it and as the command line says it instead. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { gatewayToolServers, relaySettings } from '../../../../adapters/acp/relay/settings.ts';
import { adapters } from '../../../../adapters/index.ts';
import type { AcpOptions } from '../../../../src/cli/commands/acp/acp.ts';
import { sectionFrom } from '../../../../src/cli/commands/acp/acp-settings.ts';
import { openAt } from '../../../../src/runtime/config/document.ts';
import { mountsOf } from '../../../../src/runtime/mounts/mounts.ts';
import { configIn } from '../../../support/process/config-in.ts';

async function written(yaml: string) {
  const dir = await mkdtemp(join(tmpdir(), 'tb-relay-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  await writeFile(join(dir, 'tollbridge.yaml'), yaml);
  return await configIn(dir, { data: join(dir, 'data') });
}

async function settings(yaml: string, options: AcpOptions = {}) {
  const section = sectionFrom(await written(yaml), options);
  const { cwd: _, ...rest } = relaySettings(section);
  const mcpServers = await gatewayToolServers(section, async (name) => `<${name}>`);
  return { ...rest, mcpServers: mcpServers.map((server) => server.toWire('session_1')) };
}

const ALL = `
tools:
  files: { mcp: { command: [my-server] } }
relays:
  acp:
    lasting_grants: hide
    blocked_terminal: error
    additions: off
    thoughts: summary
    mcp:
      - { name: gateway, url: "http://127.0.0.1:4319/mcp", token: agent-key }
      - { name: own, command: [my-server, --here] }
    timeouts: { stall_ms: 60000, cancel_ms: 2000 }
`;

const GATEWAY = {
  type: 'http',
  name: 'gateway',
  url: 'http://127.0.0.1:4319/mcp',
  headers: [
    { name: 'Authorization', value: 'Bearer <agent-key>' },
    { name: 'tollbridge-session', value: 'session_1' },
  ],
};
const session = [{ name: 'TOLLBRIDGE_SESSION', value: 'session_1' }];

test('with nothing said', async () => {
  expect(await settings('')).toEqual({
    standingGrants: 'honour',
    blockedTerminal: 'exit126',
    additions: true,
    thoughts: 'show',
    mcpServers: [],
    stallMs: 1_800_000,
    cancelMs: 10_000,
  });
});

test('as the configuration says', async () => {
  expect(await settings(ALL)).toEqual({
    standingGrants: 'hide',
    blockedTerminal: 'error',
    additions: false,
    thoughts: 'summary',
    mcpServers: [GATEWAY, { name: 'own', command: 'my-server', args: ['--here'], env: session }],
    stallMs: 60_000,
    cancelMs: 2_000,
  });
});

test('what the command line says wins', async () => {
  const flags = { hideAlways: false, additions: true, blockedTerminal: 'exit126', thoughts: 'drop', stall: '10m' };
  expect(await settings(ALL, { ...flags, mcp: ['http://127.0.0.1:1/mcp', 'other-server --x', 'files'] })).toMatchObject(
    {
      standingGrants: 'honour',
      blockedTerminal: 'exit126',
      additions: true,
      thoughts: 'drop',
      stallMs: 600_000,
      mcpServers: [
        { url: 'http://127.0.0.1:1/mcp' },
        { command: 'other-server', args: ['--x'], env: session },
        { name: 'files', command: process.execPath, args: expect.arrayContaining(['mcp', '--server', 'files']) },
      ],
    },
  );
  expect(await settings(ALL, { stall: 'off' })).toMatchObject({ stallMs: undefined, standingGrants: 'hide' });
  expect(await settings('relays: { acp: { timeouts: { stall_ms: 0 } } }')).toMatchObject({ stallMs: undefined });
});

test.each([
  ['relays:\n  acp:\n    lasting_grants: sometimes\n', 'tollbridge.yaml:3:21', /lasting_grants/],
  ['relays:\n  acp: { timeouts: { stall: 5 } }\n', 'tollbridge.yaml:2:', /stall/],
  ['relays:\n  acp:\n    mcp:\n      - { name: x }\n', 'tollbridge.yaml:4:9', /a server has a url or a command/],
  ['relays:\n  gopher: {}\n', 'tollbridge.yaml:2:', /there is no relay gopher; there are: acp/],
])('a mistake is reported with its place: %j', async (yaml, location, why) => {
  const config = await written(yaml);
  const reported = await Promise.resolve()
    .then(() => sectionFrom(config, {}))
    .then((section) => openAt(() => relaySettings(section), config.where, ['relays', 'acp']))
    .then(() => mountsOf(config, adapters))
    .then(
      () => 'nothing',
      (fault: Error) => fault.message,
    );
  expect(reported).toContain(location);
  expect(reported).toMatch(why);
});

test('a mistake is reported by whichever command starts first, also by a gateway, which has no relay', async () => {
  const config = await written('relays:\n  acp: { thoughts: aloud }\n');
  expect(() => mountsOf(config, adapters)).toThrow(/tollbridge\.yaml:2:20: .*thoughts/);
});

test.each([
  [{ blockedTerminal: 'no' }, '--blocked-terminal is one of: exit126, error'],
  [{ thoughts: 'aloud' }, '--thoughts is one of: show, summary, drop'],
  [{ stall: 'soon' }, '--stall soon: write 30s, 10m, 2h, or off'],
])('a flag that means nothing: %j', async (options, why) => {
  await expect(settings('', options)).rejects.toThrow(why);
});
