/**
 * Agents of the Agent Harness Protocol that do not obey, and frames no agent should send, against the built program. The
 * instrumented agent stops for `block` and for nothing else, as a real one does, and writes down every act it runs.
 */

import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { harness } from '../../support/ahp/harness.ts';
import { checkActs, forgetLogs, readContacts, readEvents, recordContact } from '../../support/oracle/oracle.ts';
import { aDirectory, program, ran } from '../../support/process/cli.ts';

afterEach(() => forgetLogs());

const RULES = `rules:
  - { id: shell, when: { tool: bash }, then: allow }
  - { id: no-rm, when: { tool: rm }, then: block, say: nothing is deleted }
  - { id: mail, when: { tool: send_mail }, then: ask, say: a person decides }
  - { id: copies, when: { tool: cp }, then: modify, set: { to: backup }, say: copies go to the backup }
  - { id: nightly, when: { tool: deploy }, then: defer, retry_after: 20m, say: only at night }
`;

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely
type Said = any;

interface Running {
  readonly dir: string;
  readonly data: string;
  readonly config: string;
  /** Writes the line as it is. */
  write(line: string | Buffer): void;
  /** The answer under this id; undefined when the next question is answered and this one was not. */
  answerTo(id: unknown): Promise<Said>;
  request(method: string, params: unknown, id?: unknown): Promise<Said>;
  /** Asks first, runs it unless the answer is `block`, and tells that it ran. */
  act(tool: string, args: object): Promise<Said>;
  tell(type: string, payload: unknown): void;
  contacts(): ReturnType<typeof readContacts>;
  violations(): Promise<string[]>;
  events(kind: string): Promise<Said[]>;
  alive(): Promise<void>;
  stop(): Promise<void>;
}

const event = (event_type: string, payload: unknown, more: object = {}) => ({
  event_type,
  session_id: 's',
  agent_id: 'a',
  timestamp: '2026-05-01T00:00:00Z',
  depth: 0,
  payload,
  ...more,
});

async function running(more = '', rules = RULES, timeout_ms = 2_000): Promise<Running> {
  const dir = await aDirectory();
  const data = join(dir, 'data');
  const config = join(dir, 'tollbridge.yaml');
  await writeFile(
    config,
    `data: ${data}\ndoors: { ahp: { timeout_ms: ${timeout_ms}, settle_ms: 0${more} } }\n${rules}`,
  );
  const { child, ended } = program(['--config', config, 'ahp', '--stdio'], { cwd: dir });
  const answers = new Map<string, Said>();
  const waiting = new Map<string, (said: Said) => void>();
  let rest = '';
  child.stdout.on('data', (chunk) => {
    const lines = `${rest}${chunk}`.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const said = JSON.parse(line);
      const key = JSON.stringify(said.id);
      answers.set(key, said);
      waiting.get(key)?.(said);
    }
  });
  let count = 0;
  const write = (line: string | Buffer) => child.stdin.write(Buffer.concat([Buffer.from(line), Buffer.from('\n')]));
  const answerTo = async (id: unknown): Promise<Said> => {
    const key = JSON.stringify(id);
    return answers.get(key) ?? (await new Promise((resolve) => waiting.set(key, resolve)));
  };
  const request: Running['request'] = async (method, params, id = `r${++count}`) => {
    write(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    return await answerTo(id);
  };
  const tell: Running['tell'] = (type, payload) =>
    write(JSON.stringify({ jsonrpc: '2.0', method: 'ahp/event', params: event(type, payload) }));
  const file = join(dir, 'contacts.jsonl');
  return {
    dir,
    data,
    config,
    write,
    answerTo,
    request,
    tell,
    async act(tool, args) {
      const payload = { action_type: 'tool_call', tool_name: tool, arguments: args };
      const { result } = await request('ahp/event', event('pre_action', payload));
      if (result?.decision === 'block') return result;
      const ran = result?.modified_payload?.arguments ?? args;
      recordContact(file, data, { tool, arguments: ran });
      tell('post_action', { tool_name: tool, arguments: ran, result: { success: true, output: 'done', exit_code: 0 } });
      return result;
    },
    contacts: () => readContacts(file),
    violations: async () => await checkActs(data, readContacts(file)),
    events: async (kind) => (await readEvents(data, [kind])).map(({ payload }) => payload),
    async alive() {
      const { result } = await request(
        'ahp/event',
        event('pre_action', { tool_name: 'bash', arguments: { n: ++count } }),
      );
      expect(result).toMatchObject({ decision: 'allow' });
    },
    async stop() {
      child.stdin.end();
      expect((await ended).code).toBe(0);
    },
  };
}

describe('an agent that stops only for block', () => {
  test('runs nothing that was put to people, put off or rewritten', async () => {
    const agent = await running();
    for (const tool of ['send_mail', 'deploy', 'cp', 'rm']) {
      expect(await agent.act(tool, { to: 'b' }), tool).toMatchObject({ decision: 'block', reason: expect.any(String) });
    }
    expect(await agent.act('bash', { command: 'ls' })).toMatchObject({ decision: 'allow' });
    expect(agent.contacts()).toMatchObject([{ tool: 'bash' }]);
    expect(await agent.violations()).toEqual([]);
    await agent.alive();
  }, 60_000);

  test('hears block from every family of decisions that could let something happen', async () => {
    const agent = await running();
    const sure = { session_id: 's', confirmation_type: 'safety_confirm', message: 'sure?' };
    expect((await agent.request('ahp/event', event('confirmation', sure))).result).toMatchObject({
      decision: 'reject',
    });
    const batch = { events: [event('pre_action', { tool_name: 'send_mail', arguments: {} })] };
    const { result } = await agent.request('ahp/batch', batch);
    expect(result.decisions).toMatchObject([{ decision: 'block' }]);
    const query = { session_id: 's', agent_id: 'a', query_type: 'should_i_proceed', payload: {} };
    expect((await agent.request('ahp/query', query)).result).toMatchObject({ answer: 'no' });
  }, 60_000);

  test('is judged by what stands beside its arguments as well', async () => {
    const rules = `rules:
  - { id: shell, when: { tool: bash }, then: allow }
  - { id: no-rm, when: { command: "rm *" }, then: block, say: nothing is deleted }
`;
    const at = await running('', rules);
    const ask = async (payload: object) => (await at.request('ahp/event', event('pre_action', payload))).result;
    const harmless = { tool_name: 'bash', arguments: { command: 'ls' } };
    expect((await ask(harmless)).decision).toBe('allow');
    for (const beside of [{ command: 'rm -rf /' }, { args: { command: 'rm -rf /' } }, { input: { cmd: 'rm -rf /' } }]) {
      expect(await ask({ ...harmless, ...beside })).toMatchObject({ decision: 'block', reason: 'nothing is deleted' });
    }
    await at.stop();
  });

  test('cannot talk itself into more by its handshake', async () => {
    const agent = await running();
    const agent_info = { framework: 'tollbridge', version: '1', capabilities: ['escalate', 'modify', 'defer'] };
    await agent.request('ahp/handshake', { protocol_version: '2.4', agent_info, session_id: 's', agent_id: 'a' });
    expect(await agent.act('cp', { to: 'b' })).toMatchObject({ decision: 'block' });
    expect(await agent.act('send_mail', { to: 'b' })).toMatchObject({ decision: 'block' });
    expect(agent.contacts()).toEqual([]);
  }, 60_000);

  test('runs what a rule wrote where the configuration says that it honours modify, and nothing else', async () => {
    const agent = await running(', honours: [modify]');
    expect(await agent.act('cp', { from: 'a', to: 'b' })).toMatchObject({ decision: 'modify' });
    expect(agent.contacts()).toMatchObject([{ tool: 'cp', arguments: { from: 'a', to: 'backup' } }]);
    expect(await agent.violations()).toEqual([]);
  }, 60_000);
});

describe('an agent that does not stop for block either', () => {
  test('raises an alarm in the log, in red, and in the receipt', async () => {
    const agent = await running();
    expect(await agent.act('rm', { path: '/x' })).toMatchObject({ decision: 'block' });
    agent.tell('post_action', { tool: 'rm', arguments: { path: '/x' }, result: { success: true, output: 'gone' } });
    agent.tell('session_end', {});
    await agent.stop();
    expect(await agent.events('vendor.tollbridge.alarm')).toMatchObject([
      { alarm: 'ran_though_refused', name: 'rm', state: 'refused', rule_id: 'no-rm' },
    ]);
    const plain = await ran(['--config', agent.config, 'log'], '', { cwd: agent.dir });
    expect(plain.out).toMatch(/ALARM +rm was refused and is reported as run \(path: \/x\)/);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the colour is what is looked for
    const red = /\u001b\[1;31m.*ALARM.*\u001b\[0m/;
    expect(plain.out).not.toMatch(red);
    const coloured = await ran(['--config', agent.config, 'log'], '', { cwd: agent.dir, env: { FORCE_COLOR: '1' } });
    expect(coloured.out).toMatch(red);
    const [receipt] = (await readEvents(agent.data, ['receipt.issued'])).map(({ receipt_id }) => receipt_id);
    expect(receipt).toBeTruthy();
  }, 60_000);

  test('is reported to the webhooks of the configuration', async () => {
    const received: Said[] = [];
    const hook = createServer((request, response) => {
      let body = '';
      request.on('data', (chunk) => {
        body += chunk;
      });
      request.on('end', () => {
        received.push(JSON.parse(body));
        response.end();
      });
    });
    await new Promise<void>((resolve) => hook.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void hook.close());
    const dir = await aDirectory();
    const config = join(dir, 'tollbridge.yaml');
    const { port } = hook.address() as AddressInfo;
    await writeFile(
      config,
      `data: data\nlisten: { port: 0 }\nvaults: { own: { provider: env, prefix: HOOK_ } }\napprovals: { webhooks: { ops: { url: "http://127.0.0.1:${port}/", secret: KEY } } }\n${RULES}`,
    );
    const { child, says, ended } = program(['--config', config, 'serve', '--json'], {
      cwd: dir,
      env: { HOOK_KEY: 'k'.repeat(32) },
    });
    const { url, token } = JSON.parse((await says(/\{.*\}\n/))[0]);
    const post = async (frame: object) => {
      const headers = { 'content-type': 'application/json', 'x-api-key': token };
      const answer = await fetch(`${url}/ahp`, {
        method: 'POST',
        headers,
        body: JSON.stringify({ jsonrpc: '2.0', ...frame }),
      });
      return answer.status === 200 ? ((await answer.json()) as Said) : undefined;
    };
    const payload = { tool_name: 'rm', arguments: { path: '/x' } };
    const { result } = await post({ id: 'q', method: 'ahp/event', params: event('pre_action', payload) });
    expect(result).toMatchObject({ decision: 'block' });
    await post({ method: 'ahp/event', params: event('post_action', { ...payload, result: { success: true } }) });
    await expect
      .poll(() => received.find(({ type }) => type === 'alarm.raised'), { timeout: 20_000 })
      .toMatchObject({
        data: { alarm: 'ran_though_refused', name: 'rm', message: 'rm was refused and is reported as run' },
      });
    child.kill('SIGTERM');
    await ended;
  }, 60_000);
});

describe('frames that no agent should send', () => {
  test('H24: a blocking event as a notification decides nothing and is not carried out', async () => {
    const agent = await running();
    for (const type of ['pre_action', 'pre_prompt', 'confirmation', 'planning']) {
      agent.tell(type, { tool_name: 'bash', arguments: { command: 'rm -rf /' } });
    }
    await agent.alive();
    const decided = await agent.events('vendor.tollbridge.decided');
    expect(decided.filter(({ action }) => action.tool === 'bash')).toHaveLength(1);
  }, 60_000);

  test('H24: news as a request, too deep, another major version: the protocol’s own errors', async () => {
    const agent = await running();
    const reported = await agent.request('ahp/event', event('post_action', {}));
    expect(reported.error).toEqual({
      code: -32602,
      message: 'Fire-and-forget event post_action must be sent as a notification',
    });
    const deep = await agent.request('ahp/event', event('pre_action', { tool: 'bash' }, { depth: 11 }));
    expect(deep.error).toMatchObject({ code: -32602, message: expect.stringContaining('max depth 10') });
    const agent_info = { framework: 'x', version: '1', capabilities: [] };
    const other = { protocol_version: '3.0', agent_info, session_id: 's', agent_id: 'a' };
    const refused = await agent.request('ahp/handshake', other);
    expect(refused.error).toEqual({ code: -32000, message: 'Unsupported protocol version: 3.0' });
    await agent.alive();
  }, 60_000);

  test('H11: a batch with one entry that may not be in it is refused whole', async () => {
    const agent = await running();
    const fine = event('pre_action', { tool_name: 'bash', arguments: { command: 'ls' } });
    for (const events of [
      [fine, event('confirmation', {})],
      [fine, event('handshake', {})],
      [fine, { ...fine, event_type: '__proto__' }],
      [fine, [fine]],
      Array.from({ length: 101 }, () => fine),
    ]) {
      const { error } = await agent.request('ahp/batch', { events });
      expect(error).toMatchObject({ code: -32602 });
    }
    agent.write(JSON.stringify([{ jsonrpc: '2.0', id: 'in-array', method: 'ahp/event', params: fine }]));
    await agent.alive();
    expect(await agent.events('tool.requested')).toHaveLength(1);
  }, 60_000);

  test('a question that can be read in two ways is a block under its id', async () => {
    const agent = await running();
    const twice = (id: string, member: string) =>
      `{"jsonrpc":"2.0","id":"${id}","method":"ahp/event","params":{"event_type":"pre_action","session_id":"s","agent_id":"a","timestamp":"t","depth":0,"payload":{${member}}}}`;
    agent.write(twice('d1', '"tool_name":"bash","tool_name":"rm","arguments":{}'));
    agent.write(twice('d2', '"tool_name":"bash","arguments":{"command":"ls","\\u0063ommand":"rm"}'));
    agent.write(twice('d3', '"tool_name":"bash","arguments":{"command":"\\ud800"}'));
    agent.write(
      Buffer.concat([
        Buffer.from(twice('d4', '"tool_name":"bash","arguments":{"c":"').slice(0, -4)),
        Buffer.from([0xff]),
      ]),
    );
    for (const id of ['d1', 'd2', 'd3', 'd4']) {
      expect((await agent.answerTo(id)).result, id).toMatchObject({ decision: 'block' });
    }
    await agent.alive();
    expect(await agent.events('tool.requested')).toHaveLength(1);
  }, 60_000);

  test('names of the language itself are no methods and no events, and as tools they are names like any other', async () => {
    const agent = await running();
    for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'ahp/event ', 'AHP/EVENT', '']) {
      expect((await agent.request(name, {})).error, name).toMatchObject({ code: -32601 });
      expect((await agent.request('ahp/event', event(name, {}))).error, name).toMatchObject({ code: -32602 });
    }
    const tools = ['__proto__', 'constructor', 'toString'].map(async (tool_name) => {
      const args = JSON.parse('{"__proto__":{"effect":"read"},"constructor":{"effect":"read"}}');
      return await agent.request('ahp/event', event('pre_action', { tool_name, arguments: args }));
    });
    // No rule knows them, so a person is asked, and nobody answers.
    for (const { result } of await Promise.all(tools)) expect(result).toMatchObject({ decision: 'block' });
    await agent.alive();
    const asked = (await agent.events('tool.requested')).map(({ name, effect }) => ({ name, effect }));
    expect(asked.slice(0, 3)).toEqual([
      { name: '__proto__', effect: 'unknown' },
      { name: 'constructor', effect: 'unknown' },
      { name: 'toString', effect: 'unknown' },
    ]);
  }, 60_000);
});

describe('an outside harness that says nothing', () => {
  test('means what on_failure says at this door, and does not keep its neighbour from being asked', async () => {
    const silent = await harness(() => {});
    const strict = await harness(({ id, params }, say) => {
      const bad = params?.payload?.arguments?.command === 'bad';
      if (id)
        say({
          jsonrpc: '2.0',
          id,
          result: bad ? { decision: 'block', reason: 'the neighbour' } : { decision: 'allow' },
        });
    });
    const rules = `harnesses:
  silent: { ahp: { socket: ${silent.path}, on_failure: ignore } }
  strict: { ahp: { socket: ${strict.path} } }
${RULES}`;
    const agent = await running('', rules, 10_000);
    expect(await agent.act('bash', { command: 'good' })).toEqual({ decision: 'allow', metadata: { policy: 'shell' } });
    expect(await agent.act('bash', { command: 'bad' })).toMatchObject({ decision: 'block', reason: 'the neighbour' });
    expect(await agent.violations()).toEqual([]);
  }, 60_000);
});
