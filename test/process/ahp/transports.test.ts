import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Asking, createAsking } from '../../../adapters/ahp/client/harness-client.ts';
import { createUpstream } from '../../../adapters/ahp/client/policy-engine.ts';
import { type Credential, type HarnessLocation, openLink } from '../../../adapters/ahp/client/transports.ts';
import { type AhpConfig, settingsOf, type UpstreamConfig } from '../../../adapters/ahp/config.ts';
import { ahpDoor } from '../../../adapters/ahp/server/door.ts';
import type { AhpEvent } from '../../../adapters/ahp/translate.ts';
import { createIds, systemClock } from '../../../src/core/clock.ts';
import { Fault } from '../../../src/model/faults.ts';
import type { Deps } from '../../../src/ports/index.ts';
import { createHttpHost } from '../../../src/transport/http/server.ts';
import { AGENT, event, openAgent, QUIET } from '../../support/ahp/gateway.ts';
import { harness } from '../../support/ahp/harness.ts';
import { openTestGateway, type TestGateway } from '../../support/gateway/test-gateway.ts';
import { PROGRAM } from '../../support/process/cli.ts';

const RULES =
  '- { id: shell, when: { tool: bash }, then: allow }\n- { id: no-rm, when: { tool: rm }, then: block, say: never }';
const SECRET = 'k e&y/1+=';
/** Bearer tokens know no spaces. */
const TOKEN = 'to.k~en/1+=';

async function openDoor(config: AhpConfig = {}) {
  const t = await openTestGateway({ rules: RULES });
  await t.send('resource.create', { object: 'workspace', body: { name: 'w', root: 'file:///w' } });
  const logged: unknown[] = [];
  const note = (fields: object, message: string) => void logged.push([fields, message]);
  let count = 0;
  const http = createHttpHost({
    requestId: () => `req_${++count}`,
    log: { info: note, warn: note, error: note },
    graceMs: 100,
  });
  const deps: Deps = {
    log: { info: note, warn: note, error: note },
    clock: t.clock,
    ids: { next: (prefix) => `${prefix}_d${++count}` },
    http,
    authenticate: async (bearer) => {
      if (bearer !== SECRET && bearer !== TOKEN) throw new Fault('unauthenticated', 'the token is not valid');
      return AGENT;
    },
    jwks: () => ({}),
    secret: async () => SECRET,
  };
  const door = await ahpDoor(settingsOf(config), deps).open(t.bridge);
  const { url } = await http.listen();
  onTestFinished(async () => {
    await door.close();
    await http.close();
  });
  return { t, url, logged };
}

async function connect(where: HarnessLocation, credential?: Credential): Promise<Asking> {
  let count = 0;
  // A program has to be started first, on a machine that may have other things to do.
  const asking = createAsking(await openLink(where, credential, QUIET), () => `id-${++count}`, 60_000);
  onTestFinished(() => asking.close());
  return asking;
}

async function tempDir(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'tollbridge-ahp-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

const pre = (tool: string): AhpEvent => event('pre_action', { tool, arguments: {} }) as unknown as AhpEvent;

/** The same conversation, whatever carries it. */
async function converse(asking: Asking): Promise<void> {
  await expect(asking.event(pre('bash'))).rejects.toThrow('hands have to be shaken');
  expect(await asking.handshake({ session_id: 's', agent_id: 'a' })).toMatchObject({
    version: '2.4',
    maxDepth: 10,
    timeoutMs: 10_000,
  });
  const [yes, no] = await Promise.all([asking.event(pre('bash')), asking.event(pre('rm'))]);
  expect(yes).toMatchObject({ decision: 'allow' });
  expect(no).toMatchObject({ decision: 'block', reason: 'never' });
  await asking.notify(
    event('post_action', { tool: 'bash', arguments: {}, result: { success: true } }) as unknown as AhpEvent,
  );
  expect(await asking.batch([pre('rm'), pre('bash')])).toMatchObject([{ decision: 'block' }, { decision: 'allow' }]);
  expect(await asking.query({ session_id: 's', agent_id: 'a', query_type: 'q', payload: {} })).toMatchObject({
    answer: 'no',
  });
  const recall = { session_id: 's', query: 'q', memory_type: 'm', max_results: 1, working_directory: '/' };
  expect(await asking.event(event('memory_recall', recall) as unknown as AhpEvent)).toEqual({
    decision: 'allow',
    injected_facts: [],
  });
  await expect(asking.batch([event('idle', {}) as unknown as AhpEvent])).rejects.toThrow('idle cannot be batched');
}

describe('our client and our harness', () => {
  test('over HTTP, with an API key and with a bearer token', async () => {
    const { url } = await openDoor();
    await converse(await connect({ url: `${url}/ahp` }, { kind: 'api_key', value: SECRET }));
    await converse(await connect({ url: `${url}/ahp` }, { kind: 'token', value: TOKEN }));
    const wrong = await connect({ url: `${url}/ahp` }, { kind: 'token', value: 'guess' });
    await expect(wrong.handshake({ session_id: 's', agent_id: 'a' })).rejects.toThrow('HTTP 401');
  });

  test('over WebSocket, and what proves who is there is in no log', async () => {
    const { url, logged, t } = await openDoor();
    const ws = url.replace('http', 'ws');
    await converse(await connect({ url: `${ws}/ahp?existing=1` }, { kind: 'api_key', value: SECRET }));
    await converse(await connect({ url: `${ws}/ahp` }, { kind: 'token', value: SECRET }));
    await expect(connect({ url: `${ws}/ahp` })).rejects.toThrow('cannot be reached');
    const kept = JSON.stringify([logged, await t.all()]);
    expect([kept.includes('k e&y'), kept.includes('api_key'), kept.includes('k+e%26y')]).toEqual([false, false, false]);
  });

  test('over WebSocket a frame that is too long is refused, and the connection stays', async () => {
    const { url } = await openDoor({ line_limit: 1024 });
    const asking = await connect({ url: `${url.replace('http', 'ws')}/ahp` }, { kind: 'api_key', value: SECRET });
    await asking.handshake({ session_id: 's', agent_id: 'a' });
    const long = event('pre_action', { tool: 'bash', arguments: { text: 'y'.repeat(1200) } });
    expect(await asking.event(long as unknown as AhpEvent)).toEqual({
      decision: 'block',
      reason: 'a frame is longer than 1024 bytes',
    });
    expect(await asking.event(pre('bash'))).toMatchObject({ decision: 'allow' });
  });

  test('over a Unix socket that only its owner may open', async () => {
    const path = join(await tempDir(), 'ahp.sock');
    await openDoor({ socket: path });
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    await converse(await connect({ socket: path }));
  });

  test('over the input and output of `tollbridge ahp --stdio`', async () => {
    await converse(await connect({ command: await program() }));
  }, 90_000);
});

describe('our harness as the policy of another gateway', () => {
  /** That gateway asks about what an agent of its own wants to do, and tells how it went. */
  async function supervised(config: UpstreamConfig) {
    const { log, clock } = { log: QUIET, clock: systemClock };
    const secret = async (name: string) => (name === 'its-token' ? TOKEN : SECRET);
    const engine = createUpstream(
      { name: 'up', hop: 'down', timeout_ms: 60_000, ...config },
      { log, clock, ids: createIds(), secret },
    );
    onTestFinished(() => engine.close());
    const down = await openAgent({ rules: '- { id: all, when: { kind: tool }, then: allow }', engines: [engine] });
    engine.listen(down.t.bridge, { id: 'system:test', kind: 'system', scopes: ['*'] });
    expect(await down.ask('pre_action', { tool: 'bash', arguments: {} })).toMatchObject({ decision: 'allow' });
    expect(await down.ask('pre_action', { tool: 'rm', arguments: {} })).toMatchObject({
      decision: 'block',
      reason: 'never',
    });
    await down.tell('post_action', { tool: 'bash', arguments: {}, result: { success: true } });
    await down.tell('session_end', {});
    return engine;
  }

  async function receivedThere(t: TestGateway): Promise<void> {
    const kinds = async () =>
      (await t.all()).map(({ event: kind }) => kind).filter((kind) => WORTH_REPORTING.has(kind));
    await expect
      .poll(kinds, { timeout: 10_000 })
      .toEqual(['tool.requested', 'tool.requested', 'tool.completed', 'session.closed']);
  }
  const WORTH_REPORTING = new Set(['tool.requested', 'tool.completed', 'session.closed']);

  test('over HTTP', async () => {
    const { url, t } = await openDoor();
    await supervised({ url: `${url}/ahp`, token: 'its-token' });
    await receivedThere(t);
  });

  test('over WebSocket', async () => {
    const { url, t } = await openDoor();
    await supervised({ url: `${url.replace('http', 'ws')}/ahp`, api_key: 'its-name' });
    await receivedThere(t);
  });

  test('over a Unix socket', async () => {
    const socket = join(await tempDir(), 'ahp.sock');
    const { t } = await openDoor({ socket });
    await supervised({ socket });
    await receivedThere(t);
  });

  test('over the input and output of a program', async () => {
    const engine = await supervised({ command: await program() });
    await engine.flushed();
  }, 90_000);
});

test('`tollbridge ahp` asks the harnesses its configuration names, and keeps to what is said of its door', async () => {
  const { path, received } = await harness(({ id, params }, say) => {
    const decision =
      params.payload.tool === 'curl' ? { decision: 'block', reason: 'not outside' } : { decision: 'allow' };
    if (id !== undefined) say({ jsonrpc: '2.0', id, result: decision });
  });
  const more = `harnesses: { guard: { ahp: { socket: ${path} } } }\ndoors: { ahp: { max_depth: 3 }, harn: false }\n`;
  const rules = '- { id: all, when: { kind: tool }, then: allow }';
  const asking = await connect({ command: await program(rules, more) });
  expect(await asking.handshake({ session_id: 's', agent_id: 'a' })).toMatchObject({ maxDepth: 3 });
  expect(await asking.event(pre('bash'))).toMatchObject({ decision: 'allow' });
  expect(await asking.event(pre('curl'))).toMatchObject({ decision: 'block', reason: 'not outside' });
  await asking.close();
  const last = () =>
    received.filter(({ params }) => params.event_type === 'run_lifecycle').at(-1)?.params.payload.status;
  await expect.poll(last, { timeout: 20_000 }).toBe('failed');
}, 90_000);

/** `tollbridge ahp --stdio` in a gateway of its own. */
async function program(rules = RULES, more = ''): Promise<string[]> {
  const dir = await tempDir();
  const config = join(dir, 'tollbridge.yaml');
  const indented = rules.split('\n').map((line) => `  ${line}\n`);
  await writeFile(config, `rules:\n${indented.join('')}${more}`);
  const where = ['--data', join(dir, 'data'), '--config', config];
  return [process.execPath, PROGRAM, 'ahp', '--stdio', ...where];
}

test('a socket that is in use, and a file that is no socket, are left alone', async () => {
  const dir = await tempDir();
  const path = join(dir, 'ahp.sock');
  await openDoor({ socket: path });
  await expect(openDoor({ socket: path })).rejects.toThrow('another process listens');
  const file = join(dir, 'file');
  await writeFile(file, 'mine');
  await expect(openDoor({ socket: file })).rejects.toThrow('is not a socket');
});
