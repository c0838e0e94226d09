/**
 * Rules and configuration that change under running relays: the next act is decided by what stands in the files now, in every
 * process, however the files were changed; what cannot be read leaves the rules in force and is reported.
 */
import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { JsonObject } from '../../src/model/schema.ts';
import { event } from '../support/ahp/gateway.ts';
import { checkActs, forgetLogs, readContacts, readEvents } from '../support/oracle/oracle.ts';
import { aDirectory, program, ran } from '../support/process/cli.ts';
import { PROJECT } from '../support/process/project.ts';
import { type Spoken, startSpeaking } from '../support/process/stdio-process.ts';
import type { Wire } from '../support/wire/line-end.ts';

const ALLOW = '- { id: open, when: { kind: tool }, then: allow }\n';
const BLOCK = '- { id: shut, when: { kind: tool }, then: block, say: shut now }\n';
const BROKEN = '- { id: bad, then: maybe }\n';
const SERVER = join(PROJECT, 'test/support/upstreams/counting-server.mjs');

interface Location {
  readonly dir: string;
  readonly data: string;
  readonly config: string;
  readonly rules: string;
  readonly contacts: string;
}

/** A configuration that names one file of rules. */
async function aLocation({ rules = ALLOW, more = '', policies = 'rules.yaml' } = {}): Promise<Location> {
  const dir = await aDirectory();
  onTestFinished(forgetLogs);
  const config = join(dir, 'tollbridge.yaml');
  await writeFile(config, `policies: [${policies}]\n${more}`);
  if (policies === 'rules.yaml') await writeFile(join(dir, 'rules.yaml'), rules);
  return { dir, data: join(dir, 'data'), config, rules: join(dir, 'rules.yaml'), contacts: join(dir, 'contacts') };
}

interface Relay extends Spoken {
  /** One call of the tool, as its client sees it: `done`, or why not. */
  act(): Promise<string>;
}

/** `tollbridge mcp` before a server that writes down every call. */
async function mcpRelay({ data, config, contacts }: Location, env: Record<string, string> = {}): Promise<Relay> {
  const words = ['--data', data, '--config', config, 'mcp', '--name', 'counting', '--'];
  const relay = startSpeaking([...words, process.execPath, SERVER, contacts, data], { env });
  endAfterwards(relay);
  const clientInfo = { name: 'c', version: '1' };
  await relay.end.ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
  relay.end.notify('notifications/initialized', {});
  let count = 0;
  return {
    ...relay,
    async act() {
      count += 1;
      const said = await relay.end.ask('tools/call', { name: 'act', arguments: { count } });
      return textOf(said);
    },
  };
}

function endAfterwards({ child, exited }: Spoken): void {
  onTestFinished(async () => {
    child.stdin.end();
    const late = setTimeout(() => child.kill('SIGKILL'), 10_000);
    await exited;
    clearTimeout(late);
  });
}

function textOf({ result, error }: Wire): string {
  const [first] = (result?.content ?? []) as unknown as readonly { text?: string }[];
  return first?.text ?? String(error?.message);
}

/** Every contact was allowed before, and there are as many as there should be. */
async function expectContacts({ contacts, data }: Location, count: number): Promise<void> {
  const found = readContacts(contacts);
  expect(found).toHaveLength(count);
  expect(await checkActs(data, found)).toEqual([]);
}

const policyChanges = async ({ data }: Location): Promise<JsonObject[]> =>
  (await readEvents(data, ['vendor.tollbridge.policy_loaded'])).map(({ payload }) => payload);

const WAYS: Readonly<Record<string, (location: Location, text: string) => Promise<void>>> = {
  'written in place': ({ rules }, text) => writeFile(rules, text),
  'replaced by another file': async ({ rules }, text) => {
    await writeFile(`${rules}.new`, text);
    await rename(`${rules}.new`, rules);
  },
  'removed and written again': async ({ rules }, text) => {
    await rm(rules);
    await writeFile(rules, text);
  },
  'emptied and then written': async ({ rules }, text) => {
    await writeFile(rules, '');
    await writeFile(rules, text);
  },
  'replaced by a link': async ({ rules, dir }, text) => {
    await writeFile(join(dir, 'other.yaml'), text);
    await symlink('other.yaml', `${rules}.new`);
    await rename(`${rules}.new`, rules);
  },
};

test.each(Object.keys(WAYS))(
  'a rule file that is %s decides the next act of a relay',
  async (how) => {
    const location = await aLocation();
    const relay = await mcpRelay(location);
    expect(await relay.act()).toBe('done');
    await WAYS[how]?.(location, BLOCK);
    expect(await relay.act()).toContain('shut now');
    await expectContacts(location, 1);
    await WAYS[how === 'replaced by a link' ? 'replaced by another file' : how]?.(location, ALLOW);
    expect(await relay.act()).toBe('done');
    await expectContacts(location, 2);
    expect((await policyChanges(location)).map(({ outcome }) => outcome)).toEqual(['loaded', 'loaded', 'loaded']);
  },
  60_000,
);

test('a link further up the path that points elsewhere decides the next act', async () => {
  const location = await aLocation({ policies: 'current/rules.yaml' });
  for (const [version, text] of [
    ['v1', ALLOW],
    ['v2', BLOCK],
  ] as const) {
    await mkdir(join(location.dir, version));
    await writeFile(join(location.dir, version, 'rules.yaml'), text);
  }
  await symlink('v1', join(location.dir, 'current'));
  const relay = await mcpRelay(location);
  expect(await relay.act()).toBe('done');
  await symlink('v2', join(location.dir, 'next'));
  await rename(join(location.dir, 'next'), join(location.dir, 'current'));
  expect(await relay.act()).toContain('shut now');
  await expectContacts(location, 1);
}, 60_000);

test('another list of rule files in the configuration decides the next act', async () => {
  const location = await aLocation();
  const relay = await mcpRelay(location);
  expect(await relay.act()).toBe('done');
  await writeFile(join(location.dir, 'strict.yaml'), BLOCK);
  await writeFile(location.config, 'policies: [rules.yaml, strict.yaml]\n');
  expect(await relay.act()).toContain('shut now');
  // The file that was added is watched from now on.
  await writeFile(join(location.dir, 'strict.yaml'), BLOCK.replace('shut now', 'shut again'));
  expect(await relay.act()).toContain('shut again');
  await expectContacts(location, 1);
}, 60_000);

test('a broken file keeps the rules in force and is reported once; the next good one holds', async () => {
  const location = await aLocation({ rules: BLOCK });
  const relay = await mcpRelay(location);
  await writeFile(location.rules, BROKEN);
  expect(await relay.act()).toContain('shut now');
  expect(await relay.act()).toContain('shut now');
  expect(relay.stderr()).toContain('the new policy was refused; the old one stays in force');
  const refused = (await policyChanges(location)).filter(({ outcome }) => outcome === 'refused');
  expect(refused).toMatchObject([{ errors: [{ rule: 'bad', line: 1, message: expect.stringContaining('maybe') }] }]);
  await writeFile(location.rules, ALLOW);
  expect(await relay.act()).toBe('done');
  await expectContacts(location, 1);
}, 60_000);

test('a rule file that disappears keeps the rules in force and is reported', async () => {
  const location = await aLocation({ rules: BLOCK });
  const relay = await mcpRelay(location);
  await rm(location.rules);
  expect(await relay.act()).toContain('shut now');
  await expect.poll(async () => (await policyChanges(location)).at(-1)?.outcome, { timeout: 20_000 }).toBe('refused');
  expect(await relay.act()).toContain('shut now');
  await expectContacts(location, 0);
}, 60_000);

test('a configuration that disappears keeps everything in force and is reported', async () => {
  const location = await aLocation();
  await writeFile(location.config, `rules:\n  ${BLOCK}`);
  const relay = await mcpRelay(location);
  expect(await relay.act()).toContain('shut now');
  await rm(location.config);
  expect(await relay.act()).toContain('shut now');
  const refused = async () =>
    (await readEvents(location.data, ['vendor.tollbridge.config_loaded'])).map(({ payload }) => payload.outcome);
  await expect.poll(refused, { timeout: 20_000 }).toEqual(['refused']);
  expect(await relay.act()).toContain('shut now');
  await expectContacts(location, 0);
}, 60_000);

test('a file that is written again and again while it is read ends in what was written last', async () => {
  const location = await aLocation();
  const relay = await mcpRelay(location);
  expect(await relay.act()).toBe('done');
  for (let turn = 0; turn < 60; turn += 1) {
    await writeFile(location.rules, turn % 2 ? ALLOW : BROKEN);
    if (turn % 10 === 0) void relay.act();
  }
  await writeFile(location.rules, BLOCK);
  expect(await relay.act()).toContain('shut now');
  await relay.act();
  expect(await checkActs(location.data, readContacts(location.contacts))).toEqual([]);
}, 60_000);

test('every process on one data directory decides its next act by the new rules', async () => {
  const location = await aLocation();
  const [one, other] = await Promise.all([mcpRelay(location), mcpRelay(location)]);
  const serving = program(['--data', location.data, '--config', location.config, 'serve', '--port', '0']);
  await serving.says(/listens on/);
  expect([await one.act(), await other.act()]).toEqual(['done', 'done']);
  await writeFile(location.rules, BLOCK);
  const said = await Promise.all([one.act(), other.act()]);
  expect(said.filter((text) => text.includes('shut now'))).toHaveLength(2);
  await expectContacts(location, 2);
  serving.child.kill('SIGTERM');
  expect((await serving.ended).code).toBe(0);
}, 90_000);

/** One agent under `tollbridge ahp --stdio`. */
async function ahpAgent({ data, config }: Location) {
  const relay = startSpeaking(['--data', data, '--config', config, 'ahp', '--stdio']);
  endAfterwards(relay);
  await relay.end.ask('ahp/handshake', { protocol_version: '2.4', agent_info: { framework: 'f', version: '1' } });
  return {
    ...relay,
    async wants(tool: string): Promise<JsonObject> {
      const { result, error } = await relay.end.ask('ahp/event', event('pre_action', { tool, arguments: {} }));
      return result ?? { error: error ?? null };
    },
  };
}

test('an agent under ahp: rules, a persona that is narrowed or removed, and a quota hold at the next act', async () => {
  const persona = (tier: string) => `personas: { worker: { autonomy: ${tier}, quota: daily } }\n`;
  const quota = (limit: number) => `quotas: { daily: { limits: { tool_calls: ${limit} }, per: 1d } }\n`;
  const door = 'doors: { ahp: { persona: persona_worker, timeout_ms: 2500 } }\n';
  const written = (tier: string, limit: number) => `policies: [rules.yaml]\n${persona(tier)}${quota(limit)}${door}`;
  const location = await aLocation();
  await writeFile(location.config, written('act_auto', 100));
  const agent = await ahpAgent(location);
  expect(await agent.wants('one')).toMatchObject({ decision: 'allow' });
  await writeFile(location.config, written('act_auto', 1));
  expect(await agent.wants('two')).toMatchObject({ decision: 'block', reason: expect.stringContaining('tool_calls') });
  await writeFile(location.config, written('shadow', 100));
  expect(await agent.wants('three')).toMatchObject({ decision: 'block' });
  await writeFile(location.config, written('act_auto', 100));
  expect(await agent.wants('four')).toMatchObject({ decision: 'allow' });
  await writeFile(location.rules, BLOCK);
  expect(await agent.wants('five')).toMatchObject({ decision: 'block', reason: expect.stringContaining('shut now') });
  await writeFile(location.rules, ALLOW);
  expect(await agent.wants('six')).toMatchObject({ decision: 'allow' });
  await writeFile(location.config, `policies: [rules.yaml]\n${door}`);
  expect(await agent.wants('seven')).not.toMatchObject({ decision: 'allow' });
}, 90_000);

/** An agent that asks for leave for one edit and repeats the answer it received. */
const ASKING_AGENT = `
const send = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\\n');
let prompt;
require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params, result } = JSON.parse(line);
  if (method === 'initialize') send({ id, result: { protocolVersion: 1 } });
  if (method === 'session/new') send({ id, result: { sessionId: 's1' } });
  if (method === 'session/prompt') {
    prompt = id;
    const toolCall = { toolCallId: 't' + id, title: 'Edit', kind: 'edit', locations: [{ path: '/w/a' }], rawInput: { path: '/w/a' } };
    const options = [{ optionId: 'y', name: 'Y', kind: 'allow_once' }, { optionId: 'n', name: 'N', kind: 'reject_once' }];
    send({ id: 900 + id, method: 'session/request_permission', params: { sessionId: 's1', toolCall, options } });
  }
  if (result && id >= 900) {
    const text = 'was told ' + JSON.stringify(result.outcome);
    send({ method: 'session/update', params: { sessionId: 's1', update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } } } });
    send({ id: prompt, result: { stopReason: 'end_turn' } });
  }
});
process.stdin.on('end', () => process.exit(0));
`;

async function editor({ dir, data, config }: Location) {
  const words = [
    '--data',
    data,
    '--config',
    config,
    'acp',
    '--name',
    'asking',
    '--',
    process.execPath,
    '-e',
    ASKING_AGENT,
  ];
  const relay = startSpeaking(words);
  endAfterwards(relay);
  const { end } = relay;
  await end.ask('initialize', { protocolVersion: 1 });
  await end.ask('session/new', { cwd: dir, mcpServers: [] });
  const said = () =>
    end.frames.flatMap(({ method, params }) => {
      const { content } = (params?.update ?? {}) as { content?: { text?: string } };
      return method === 'session/update' && content?.text ? [content.text] : [];
    });
  const prompt = () => end.ask('session/prompt', { sessionId: 's1', prompt: [{ type: 'text', text: 'go' }] });
  return { ...relay, prompt, said };
}

test('an editor and its agent: the next question is decided by the new rules', async () => {
  const location = await aLocation();
  const { prompt, said } = await editor(location);
  await prompt();
  expect(said().at(-1)).toContain('"optionId":"y"');
  await writeFile(location.rules, BLOCK);
  await prompt();
  expect(said().at(-1)).toContain('"optionId":"n"');
}, 60_000);

test('what was asked before the rules changed to block is not allowed by an approval after it', async () => {
  const location = await aLocation({ rules: '- { id: asks, when: { kind: tool }, then: ask }\n' });
  const { end, prompt, said } = await editor(location);
  const done = prompt();
  const question = await end.received(({ method }) => method === 'session/request_permission');
  await writeFile(location.rules, BLOCK);
  const options = question.params?.options as unknown as readonly { optionId: string; kind: string }[];
  const yes = options.find(({ kind }) => kind === 'allow_once');
  end.say({ id: question.id, result: { outcome: { outcome: 'selected', optionId: yes?.optionId ?? 'y' } } });
  await done;
  expect(said().at(-1)).toContain('"optionId":"n"');
  const decided = (await readEvents(location.data, ['vendor.tollbridge.decided'])).map(
    ({ payload }) => payload.decision as JsonObject,
  );
  expect(decided.at(-1)).toMatchObject({ verdict: 'block', rule_id: 'shut' });
}, 60_000);

test('a hundred thousand rules are refused while the relay goes on answering', async () => {
  const location = await aLocation({ rules: BLOCK });
  const relay = await mcpRelay(location);
  expect(await relay.act()).toContain('shut now');
  const many = Array.from({ length: 100_000 }, (_, at) => `- { id: r${at}, then: allow }`).join('\n');
  await writeFile(location.rules, many);
  expect(await relay.act()).toContain('shut now');
  await writeFile(location.config, `rules:\n${many.replace(/^/gm, '  ')}\n`);
  expect(await relay.act()).toContain('shut now');
  const last = async () => (await policyChanges(location)).at(-1);
  await expect.poll(last, { timeout: 20_000 }).toMatchObject({ outcome: 'refused', rules: 1 });
  await expectContacts(location, 0);
}, 60_000);

const SECRET = 'hunter2-and-then-some-more';

test('a configuration error does not repeat a value of the environment, at the start or later', async () => {
  const location = await aLocation();
  const mistakes = [
    `approvals: { expire_after: "\${NOT_FOR_THE_LOG}" }\n`,
    `default_agent: "\${NOT_FOR_THE_LOG}"\n`,
    `listen: { port: "\${NOT_FOR_THE_LOG}" }\n`,
    `agents: { a: { "harn": { url: "ftp://u:\${NOT_FOR_THE_LOG}@h" } } }\n`,
    `policies: ["\${NOT_FOR_THE_LOG}.yaml"]\n`,
    `personas: { p: { agent: "\${NOT_FOR_THE_LOG}" } }\n`,
  ];
  const env = { NOT_FOR_THE_LOG: SECRET };
  const serving = program(['--data', location.data, '--config', location.config, 'serve', '--port', '0'], { env });
  await serving.says(/listens on/);
  const refusals = async () => (await readEvents(location.data, ['vendor.tollbridge.config_loaded'])).length;
  for (const text of mistakes) {
    const before = await refusals();
    await writeFile(location.config, text);
    const other = join(location.dir, 'other');
    const [started] = await Promise.all([
      ran(['--data', other, '--config', location.config, 'serve', '--port', '0'], '', { env }),
      // The gateway may also read the file between its truncation and its new text.
      expect.poll(refusals, { timeout: 20_000 }).toBeGreaterThan(before),
    ]);
    expect(started.code).not.toBe(0);
    expect(started.out + started.err).not.toContain(SECRET);
  }
  serving.child.kill('SIGTERM');
  const { out, err } = await serving.ended;
  expect(out + err).not.toContain(SECRET);
  expect(JSON.stringify(await readEvents(location.data))).not.toContain(SECRET);
}, 120_000);

test('a door whose persona does not exist is not opened, and the message names the nearest one', async () => {
  const location = await aLocation({ more: 'personas: { worker: {} }\ndoors: { ahp: { persona: persona_workr } }\n' });
  for (const command of [
    ['ahp', '--stdio'],
    ['serve', '--port', '0'],
  ]) {
    const { code, err } = await ran(['--data', location.data, '--config', location.config, ...command]);
    expect(code).not.toBe(0);
    expect(err).toContain('there is no persona with the id persona_workr; did you mean persona_worker?');
  }
}, 60_000);

test('a rule that names a persona that does not exist is reported by a running process', async () => {
  const location = await aLocation({ more: 'personas: { worker: {} }\n' });
  const relay = await mcpRelay(location);
  await writeFile(location.rules, `${ALLOW}- { id: typo, when: { persona: workr }, then: block }\n`);
  expect(await relay.act()).toBe('done');
  await expect
    .poll(() => relay.stderr(), { timeout: 20_000 })
    .toContain('rules.yaml:2:3: rule typo: there is no persona workr; did you mean worker?');
}, 60_000);

test('an editor and its agent work under a persona, and what is changed of it holds at the next question', async () => {
  const written = (tools: string) =>
    `policies: [rules.yaml]\npersonas: { worker: { autonomy: ${tools} } }\nrelays: { acp: { persona: persona_worker } }\n`;
  const location = await aLocation();
  await writeFile(location.config, written('act_auto'));
  const { prompt, said } = await editor(location);
  await prompt();
  expect(said().at(-1)).toContain('"optionId":"y"');
  await writeFile(location.config, written('shadow'));
  await prompt();
  expect(said().at(-1)).toContain('"optionId":"n"');
}, 60_000);
