/** The command itself: started, used, dropped and killed as editors do it. Nothing is left, and the log says how it ended. */
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../../src/core/clock.ts';
import { drops } from '../../../process/acp/drops.ts';
import { openEditor } from '../../../support/acp/client.ts';
import { eventuallyNone, startRelay } from '../../../support/acp/process.ts';
import { openTestGateway } from '../../../support/gateway/test-gateway.ts';

async function location(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'tollbridge-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

test('a whole turn, nothing but the protocol on standard output, and an orderly end', async () => {
  const dir = await location();
  const { editor, exited, work, stderr } = startRelay({ dir });
  const { done } = await work('say it');
  expect((await done).result).toEqual({ stopReason: 'end_turn' });
  editor.close();
  expect(await exited).toEqual({ code: 0, signal: null });
  expect(editor.lines.every((line) => JSON.parse(line).jsonrpc === '2.0')).toBe(true);
  expect(stderr()).toMatch(/^agent \d+\n$/);
  const { runtime } = await openTestGateway({ dir, clock: systemClock });
  const [task] = await runtime.store.list<never>({ object: 'task', limit: 10 });
  expect(task).toMatchObject({ status: 'COMPLETED', assigned_agent_id: 'scripted' });
  expect(await runtime.store.receipts({})).toHaveLength(1);
});

test('an agent is called what it calls itself, unless an agent of the configuration has that name', async () => {
  const called = async (before: readonly string[]) => {
    const dir = await location();
    const { editor, exited, work } = startRelay({ dir, name: null, before });
    await (await work('say it')).done;
    editor.close();
    await exited;
    const { runtime } = await openTestGateway({ dir, clock: systemClock });
    const [task] = await runtime.store.list<never>({ object: 'task', limit: 10 });
    return (task as { assigned_agent_id?: string } | undefined)?.assigned_agent_id;
  };
  expect(await called([])).toBe('a');
  const config = join(await location(), 'tollbridge.yaml');
  await writeFile(config, 'agents: { a: { acp: { command: [a] } } }\n');
  expect(await called(['--config', config])).not.toBe('a');
});

test('the persona of the configuration, its quota and the trace of a prompt hold in the relay', async () => {
  const dir = await location();
  const config = join(dir, 'tollbridge.yaml');
  await writeFile(
    config,
    `agents: { other: { acp: { command: [other] } } }
personas: { careful: { agent: other, autonomy: suggest, quota: few } }
quotas: { few: { limits: { tasks: 2 } } }
relays: { acp: { persona: persona_careful } }
`,
  );
  const { editor, exited, work } = startRelay({ dir, before: ['--config', config] });
  expect((await (await work('say it')).done).result).toEqual({ stopReason: 'end_turn' });
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
  const prompt = [{ type: 'text', text: 'say it' }];
  await editor.ask('session/prompt', { sessionId: 's1', prompt, _meta: { traceparent } });
  const { result, error } = await editor.ask('session/prompt', { sessionId: 's1', prompt });
  expect([result, error]).toEqual([{ stopReason: 'refusal' }, undefined]);
  const texts = editor.frames.map(({ params }) => (params?.update as { content?: { text?: string } })?.content?.text);
  expect(texts.filter(Boolean)).toEqual(['hm', 'hm', expect.stringContaining('quota_few')]);
  editor.close();
  await exited;
  const { runtime } = await openTestGateway({ dir, clock: systemClock });
  const tasks = await runtime.store.list<never>({ object: 'task', limit: 10 });
  expect(tasks).toMatchObject(
    [{}, { trace_id: '4bf92f3577b34da6a3ce929d0e0e4736' }].map((tollbridge) => ({
      status: 'COMPLETED',
      persona_id: 'persona_careful',
      metadata: { tollbridge: { tier: 'suggest', ...tollbridge } },
    })),
  );
  expect(await runtime.store.get('quota', 'quota_few')).toMatchObject({ usage: { tasks: 2 } });
  for (const { receipt } of await runtime.store.receipts({})) {
    expect(receipt.trust).toMatchObject({ start_tier: 'suggest', end_tier: 'suggest' });
  }
});

test('a client at another process prompts the agent behind the relay, and its editor sees it', async () => {
  const dir = await location();
  const { editor, exited, work } = startRelay({ dir });
  await (await work('say it')).done;
  const home = await openTestGateway({ dir, clock: systemClock });
  const second = await openEditor(home);
  const [{ sessionId }] = (await second.call('session/list', {})).sessions;
  await second.call('session/load', { sessionId, cwd: dir, mcpServers: [] });
  expect((await second.prompt(sessionId, 'say it')).stopReason).toBe('end_turn');
  const texts = editor.frames.map(({ params }) => (params?.update as { content?: { text?: string } })?.content?.text);
  expect(texts.filter(Boolean)).toEqual(['hm', 'say it', 'hm']);
  editor.close();
  await exited;
  // The agent has gone with its editor: that is said, and no other agent answers in its place.
  await expect(second.prompt(sessionId, 'say it')).rejects.toThrow('no agent scripted is mounted');
});

test.each(['opened', 'loaded again'])(
  'a session that was just %s is prompted by a client at another process first',
  async (how) => {
    const dir = await location();
    const open = async ({ editor }: ReturnType<typeof startRelay>, method: string, more: object = {}) => {
      await editor.ask('initialize', { protocolVersion: 1 });
      return await editor.ask(method, { cwd: dir, mcpServers: [], ...more });
    };
    let relay = startRelay({ dir });
    const { result } = await open(relay, 'session/new');
    if (how === 'loaded again') {
      relay.editor.close();
      await relay.exited;
      relay = startRelay({ dir });
      await open(relay, 'session/load', { sessionId: result?.sessionId });
    }
    const home = await openTestGateway({ dir, clock: systemClock });
    const second = await openEditor(home);
    const [{ sessionId }] = (await second.call('session/list', {})).sessions;
    await second.call('session/load', { sessionId, cwd: dir, mcpServers: [] });
    expect((await second.prompt(sessionId, 'say it')).stopReason).toBe('end_turn');
    const texts = relay.editor.frames.map(
      ({ params }) => (params?.update as { content?: { text?: string } })?.content?.text,
    );
    expect(texts.filter(Boolean)).toEqual(['say it', 'hm']);
    relay.editor.close();
    await relay.exited;
  },
);

test('two editors with one session each see what the other did, and work of a third client is done once', async () => {
  const dir = await location();
  const open = async (relay: ReturnType<typeof startRelay>, method: string, more: object = {}) => {
    await relay.editor.ask('initialize', { protocolVersion: 1 });
    return await relay.editor.ask(method, { cwd: dir, mcpServers: [], ...more });
  };
  const textsOf = ({ editor }: ReturnType<typeof startRelay>) =>
    editor.frames.flatMap(({ params }) => (params?.update as { content?: { text?: string } })?.content?.text ?? []);
  const one = startRelay({ dir });
  const sessionId = (await open(one, 'session/new')).result?.sessionId;
  const prompt = [{ type: 'text', text: 'say it' }];
  await one.editor.ask('session/prompt', { sessionId, prompt });
  const two = startRelay({ dir });
  await open(two, 'session/load', { sessionId });
  expect(textsOf(two)).toEqual(['say it', 'hm']);
  const both = await Promise.all([one, two].map(({ editor }) => editor.ask('session/prompt', { sessionId, prompt })));
  expect(both.map(({ result }) => result)).toEqual([{ stopReason: 'end_turn' }, { stopReason: 'end_turn' }]);

  const home = await openTestGateway({ dir, clock: systemClock });
  const third = await openEditor(home);
  const [{ sessionId: ours }] = (await third.call('session/list', {})).sessions;
  await third.call('session/load', { sessionId: ours, cwd: dir, mcpServers: [] });
  const before = [textsOf(one).length, textsOf(two).length];
  expect((await third.prompt(ours, 'say it')).stopReason).toBe('end_turn');
  const seen = [one, two].map((relay, n) => textsOf(relay).slice(before[n]));
  expect(seen.flat()).toEqual(['say it', 'hm']);

  // One of them leaves; the other one's agent goes on with the session.
  one.editor.close();
  await one.exited;
  expect((await third.prompt(ours, 'say it')).stopReason).toBe('end_turn');
  expect((await two.editor.ask('session/prompt', { sessionId, prompt })).result).toEqual({ stopReason: 'end_turn' });
  two.editor.close();
  await two.exited;
  const tasks = await home.runtime.store.list<never>({ object: 'task', limit: 20 });
  expect(tasks.map(({ status }: { status: string }) => status)).toEqual(Array(6).fill('COMPLETED'));
});

test('without a log the agent is greeted and then nothing passes', async () => {
  const dir = await location();
  const { editor, exited, stderr } = startRelay({ dir: '/dev/null/nowhere', mark: dir });
  const received = editor.received(({ id, result }) => id === 0 && result !== undefined);
  editor.say({ id: 0, method: 'initialize', params: { protocolVersion: 1 } });
  editor.say({ id: 1, method: 'session/new', params: { cwd: '/', mcpServers: [] } });
  await received;
  expect((await exited).code).toBe(6);
  expect(stderr()).toContain('the data directory /dev/null/nowhere cannot be used');
  expect(editor.frames.filter(({ id }) => id === 1)).toEqual([]);
  expect(await eventuallyNone(dir)).toEqual([]);
});

test('an agent that is not there is reported by name', async () => {
  const { exited, stderr } = startRelay({ dir: await location(), command: ['no-such-agent'] });
  expect((await exited).code).toBe(7);
  expect(stderr()).toContain('could not start no-such-agent: there is no such command');
});

test('an agent killed in the middle fails its turn, and the editor hears of it', async () => {
  const dir = await location();
  const { exited, work } = startRelay({ dir, manner: 'leaves', mark: dir });
  const { agentPid, done } = await work();
  process.kill(agentPid, 'SIGKILL');
  expect((await done).error).toMatchObject({ code: -32603, message: 'the agent was killed by SIGKILL' });
  expect((await exited).code).toBe(1);
  expect(await eventuallyNone(dir)).toEqual([]);
});

test('an agent that says one line without end is cut off and ended', async () => {
  const dir = await location();
  const flood = `const more = () => process.stdout.write('x'.repeat(1 << 20), more); more();`;
  const { exited, stderr } = startRelay({ dir, mark: dir, command: [process.execPath, '-e', flood] });
  expect((await exited).code).toBe(1);
  expect(stderr()).toContain('the agent was cut off: a line is longer than 67108864 bytes');
  expect(await eventuallyNone(dir)).toEqual([]);
});

test('an editor that stops reading holds the agent back, and the relay still ends when it is asked to', async () => {
  const dir = await location();
  const said = JSON.stringify({ jsonrpc: '2.0', method: '_vendor/told', params: { text: 'x'.repeat(1000) } });
  const flood = `const more = () => process.stdout.write(${JSON.stringify(`${said}\n`)}.repeat(500), more); more();`;
  const { relay, exited } = startRelay({ dir, mark: dir, command: [process.execPath, '-e', flood] });
  await once(relay.stdout as NodeJS.ReadableStream, 'data');
  relay.stdout?.pause();
  relay.kill('SIGTERM');
  expect((await exited).code).toBe(0);
  expect(await eventuallyNone(dir)).toEqual([]);
});

test('sessions dropped in every way leave nobody behind, every task ended and a chain that verifies', async () => {
  const dir = await location();
  const report = await drops({ dir, count: 8, atOnce: 4, tell: () => {} });
  expect(report).toEqual({ sessions: 8, left: [], tasks: 8, open: [], chain: { valid: true, records: 8 } });
}, 90_000);

test('a log that is gone for good does not keep the relay', { timeout: 90_000 }, async () => {
  const dir = await location();
  const data = join(dir, 'data');
  const { exited, work, drop } = startRelay({ dir: data, mark: dir });
  await work();
  await rm(data, { recursive: true, force: true });
  drop();
  expect((await exited).code).toBe(1);
  expect(await eventuallyNone(dir)).toEqual([]);
});
