/**
 * A client that reads a protocol on standard output fails on anything else there. So there is nothing else: not while starting, not when
 * there is something to warn of, not when asked to say more, not when something is refused, and not at the end.
 */
import { expect, test } from 'vitest';
import { startRelay } from '../support/acp/process.ts';
import { event } from '../support/ahp/gateway.ts';
import { aGateway, type Spoken, startSpeaking } from '../support/process/stdio-process.ts';
import type { End } from '../support/wire/line-end.ts';

/** A harness that should decide too and is not there: that is worth a warning each time. */
const ABSENT = 'harnesses: { guard: { ahp: { socket: /nowhere/guard.sock, on_failure: ignore } } }\n';
const RULES = `rules:
  - { id: no, when: { tool: pay }, then: block, say: not from here }
  - { id: ask, when: { tool: send }, then: ask, say: a person decides }
  - { id: rest, when: { kind: [tool, prompt] }, then: allow }
`;

/** A server of tools that talks where it should not, as many do. */
const NOISY_SERVER = `
const send = (frame) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...frame }) + '\\n');
process.stdout.write('server listening\\n');
process.stderr.write('server ready\\n');
require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  process.stdout.write('> ' + method + '\\n');
  if (method === 'initialize') send({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'noisy', version: '1' } } });
  else if (method === 'tools/list') send({ id, result: { tools: ['echo', 'pay', 'send'].map((name) => ({ name, inputSchema: { type: 'object' } })) } });
  else if (method === 'tools/call') send({ id, result: { content: [{ type: 'text', text: params.name }] } });
  else if (id !== undefined) send({ id, error: { code: -32601, message: 'no' } });
});
process.stdin.on('end', () => process.exit(0));
`;

interface Mode {
  readonly name: string;
  /** Options and all; a server or an agent follows where there is one. */
  readonly words: readonly string[];
  greet(end: End): Promise<unknown>;
  /** Something a rule refuses; resolves with the answer to it. */
  refused(end: End): Promise<object>;
  /** Something that waits for a person. */
  left(end: End): void;
}

const MODES: readonly Mode[] = [
  {
    name: 'mcp',
    words: ['mcp', '--name', 'noisy', '--', process.execPath, '-e', NOISY_SERVER],
    async greet(end) {
      const clientInfo = { name: 'c', version: '1' };
      await end.ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
      end.notify('notifications/initialized', {});
      await end.ask('tools/call', { name: 'echo', arguments: {} });
    },
    refused: (end) => end.ask('tools/call', { name: 'pay', arguments: {} }),
    left: (end) => end.say({ id: 'left', method: 'tools/call', params: { name: 'send', arguments: {} } }),
  },
  {
    name: 'ahp',
    words: ['ahp', '--stdio'],
    async greet(end) {
      await end.ask('ahp/handshake', { protocol_version: '2.0', agent_info: { framework: 'f', version: '1' } });
      await end.ask('ahp/event', event('pre_action', { action_type: 'tool_call', tool: 'echo', arguments: {} }));
    },
    refused: (end) => end.ask('ahp/event', event('pre_action', { tool: 'pay', arguments: {} })),
    left: (end) =>
      end.say({ id: 'left', method: 'ahp/event', params: event('pre_action', { tool: 'send', arguments: {} }) }),
  },
];

/** Every line is a frame, and there is at least one. */
function expectFrames({ lines }: End): void {
  expect(lines.length).toBeGreaterThan(0);
  for (const line of lines) {
    const frame = JSON.parse(line);
    expect(frame).toMatchObject({ jsonrpc: '2.0' });
    expect('method' in frame || 'result' in frame || 'error' in frame).toBe(true);
  }
}

async function started({ words }: Mode, yaml: string): Promise<Spoken> {
  const { data, config } = await aGateway(yaml);
  return startSpeaking(['--data', data, '--config', config, ...words], { env: { TOLLBRIDGE_LOG: 'debug' } });
}

for (const mode of MODES) {
  test(`${mode.name}: warnings, refusals and nonsense, told in full, until the input ends`, async () => {
    const { end, silent, stderr } = await started(mode, RULES + ABSENT);
    await mode.greet(end);
    end.raw('this is no frame\n{"jsonrpc":"2.0","id":\n');
    expect(JSON.stringify(await mode.refused(end))).toContain('not from here');
    end.close();
    expect(await silent).toEqual({ code: 0, signal: null });
    expectFrames(end);
    expect(stderr()).toContain('an outside harness gave no decision');
  }, 60_000);

  test.each(['SIGINT', 'SIGTERM'] as const)(
    `${mode.name}: %s while a person is asked`,
    async (signal) => {
      const { end, child, silent } = await started(mode, RULES);
      await mode.greet(end);
      mode.left(end);
      await mode.refused(end);
      child.kill(signal);
      expect(await silent).toEqual({ code: 0, signal: null });
      expectFrames(end);
    },
    60_000,
  );

  test(`${mode.name}: a configuration that cannot be read, and a log that cannot be kept`, async () => {
    const wrong = await started(mode, 'rulez: []\n');
    expect((await wrong.silent).code).toBe(2);
    expect(wrong.end.lines).toEqual([]);
    expect(wrong.stderr()).toMatch(/^tollbridge: \S+tollbridge\.yaml:1:1: /);
    const nowhere = startSpeaking(['--data', '/dev/null/nowhere', ...mode.words]);
    expect((await nowhere.silent).code).toBe(6);
    expect(nowhere.end.lines).toEqual([]);
    expect(nowhere.stderr()).toContain('the data directory /dev/null/nowhere cannot be used');
  }, 60_000);
}

test('acp: an agent that talks beside it and a refusal, reported in full, until Ctrl-C', async () => {
  const { data, config } = await aGateway(
    `rules:\n  - { id: no, when: { kind: prompt }, then: block, say: not from here }\n`,
  );
  const { editor, relay, exited, work, stderr } = startRelay({
    dir: data,
    before: ['--config', config],
    env: { TOLLBRIDGE_LOG: 'debug' },
  });
  const { done } = await work('say it');
  expect((await done).result).toEqual({ stopReason: 'refusal' });
  relay.kill('SIGINT');
  expect((await exited).code).toBe(0);
  expectFrames(editor);
  expect(stderr()).toMatch(/^agent \d+$/m);
}, 60_000);
