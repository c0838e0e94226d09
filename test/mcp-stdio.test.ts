/**
 * `tollbridge mcp -- <server command>`: a client that starts its servers itself has the gate in front of them, in either era, and
 * nothing of the server is left when it is gone. The same serving half is spoken to directly where no process is needed.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { settingsOf } from '../adapters/mcp/config.ts';
import { createDesk } from '../adapters/mcp/desk.ts';
import { serveStdio } from '../adapters/mcp/north-stdio.ts';
import { createStints } from '../adapters/mcp/stints.ts';
import { systemClock } from '../src/core/clock.ts';
import type { Actor } from '../src/model/actions.ts';
import type { Logger } from '../src/ports.ts';
import { type Child, startChild } from '../src/wire/child.ts';
import { readLines } from '../src/wire/ndjson.ts';
import { openMcpGateway, VISITOR } from './support/mcp-gateway.ts';
import { type Loose, openUpstream, type UpstreamOptions } from './support/mcp-upstream.ts';

const QUIET: Logger = { info() {}, warn() {}, error() {} };
const AGENT: Actor = { id: 'agent:local', kind: 'agent', scopes: ['*'], door: 'mcp' };
const ENVELOPE = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};

interface Talk {
  say(frame: Loose): void;
  /** The next frame that is like this. */
  hear(wanted: (frame: Loose) => boolean): Promise<Loose>;
}

/** Frames one after the other, kept until somebody wants them. */
function talkOver(input: NodeJS.WritableStream, output: NodeJS.ReadableStream): Talk {
  const heard: Loose[] = [];
  let wake = () => {};
  void (async () => {
    for await (const line of readLines(output as PassThrough, { limit: 1e7 })) {
      heard.push(JSON.parse(line));
      wake();
    }
  })();
  return {
    say: (frame) => {
      const said = Array.isArray(frame) ? frame : { jsonrpc: '2.0', ...frame };
      input.write(`${JSON.stringify(said)}\n`);
    },
    async hear(wanted) {
      for (;;) {
        const at = heard.findIndex(wanted);
        if (at >= 0) return heard.splice(at, 1)[0];
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}

const answerTo = (id: string | number) => (frame: Loose) => frame.id === id && !frame.method;

async function openServed(options: UpstreamOptions & { rules?: string; person?: Actor } = {}) {
  const upstream = await openUpstream(options);
  const gateway = await openMcpGateway({
    upstreams: { u: { url: upstream.url } },
    ...(options.rules && { rules: options.rules }),
  });
  const { bridge } = gateway.house;
  const deps = { log: QUIET, clock: systemClock, ids: { next: (prefix: string) => `${prefix}_s` } };
  const settings = settingsOf({});
  const stints = createStints(bridge, settings, deps);
  const desk = createDesk('u', { bridge, stints, settings, deps });
  const input = new PassThrough();
  const output = new PassThrough();
  const { person } = options;
  const serving = serveStdio(
    { input, output },
    { actor: AGENT, ...(person && { person }), desk, log: QUIET, lineLimit: 1e6 },
  );
  onTestFinished(async () => {
    input.end();
    await serving;
    desk.close();
    await stints.close();
    await gateway.close();
    await upstream.close();
  });
  return { ...talkOver(input, output), upstream, gateway, input, serving };
}

async function initialized(talk: Talk, capabilities: Loose = {}, protocolVersion = '2025-11-25'): Promise<Loose> {
  const params = { protocolVersion, capabilities, clientInfo: { name: 'c', version: '1' } };
  talk.say({ id: 'init', method: 'initialize', params });
  const opened = await talk.hear(answerTo('init'));
  talk.say({ method: 'notifications/initialized' });
  return opened;
}

test('both eras on one line', async () => {
  const talk = await openServed();
  expect((await initialized(talk)).result.serverInfo).toEqual({ name: 'test-upstream', version: '1.2.3' });
  talk.say({ id: 1, method: 'tools/call', params: { name: 'echo', arguments: { text: 'old' } } });
  expect((await talk.hear(answerTo(1))).result.content).toEqual([{ type: 'text', text: 'old' }]);
  talk.say({ id: 2, method: 'tools/call', params: { name: 'echo', arguments: { text: 'new' }, _meta: ENVELOPE } });
  expect((await talk.hear(answerTo(2))).result).toMatchObject({ resultType: 'complete', content: [{ text: 'new' }] });
  const wrong = { ...ENVELOPE, 'io.modelcontextprotocol/protocolVersion': '2031-01-01' };
  talk.say({ id: 3, method: 'tools/list', params: { _meta: wrong } });
  expect((await talk.hear(answerTo(3))).error).toMatchObject({ code: -32022, data: { requested: '2031-01-01' } });
});

test('what is no frame is said to be none, and the line goes on', async () => {
  const talk = await openServed();
  talk.input.write('hello\n{"jsonrpc":"2.0"}\n');
  expect(await talk.hear(({ error }) => error !== undefined)).toMatchObject({ id: null, error: { code: -32700 } });
  expect(await talk.hear(({ error }) => error !== undefined)).toMatchObject({ id: null, error: { code: -32700 } });
  expect((await initialized(talk)).result.protocolVersion).toBe('2025-11-25');
});

test('several messages on one line are answered on one, in the revision that has that, and refused in others', async () => {
  const batch = [1, 2].map((id) => ({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name: 'echo', arguments: { text: `${id}` } },
  }));
  const older = await openServed();
  await initialized(older, {}, '2025-03-26');
  older.say(batch);
  expect(await older.hear(Array.isArray)).toMatchObject([
    { id: 1, result: { content: [{ text: '1' }] } },
    { id: 2, result: { content: [{ text: '2' }] } },
  ]);
  const newer = await openServed();
  newer.say(batch);
  const refusal = ({ error }: Loose) => error?.code === -32600;
  expect((await newer.hear(refusal)).error.message).toContain('no session is open: send each message by itself');
  await initialized(newer);
  newer.say(batch);
  expect((await newer.hear(refusal)).error.message).toContain('this session speaks 2025-11-25');
  expect(newer.upstream.count('tools/call')).toBe(0);
});

test('an approval is put to the person at the client, who is not the agent that called', async () => {
  const rules = '- { id: ask, when: { kind: tool }, then: ask, say: a person decides }';
  const talk = await openServed({ rules, person: VISITOR });
  await initialized(talk, { elicitation: {} });
  talk.say({ id: 1, method: 'tools/call', params: { name: 'echo', arguments: { text: 'hi' } } });
  const question = await talk.hear(({ method }) => method === 'elicitation/create');
  expect(question.params.message).toContain('May agent:local use echo?');
  talk.say({ id: question.id, result: { action: 'accept', content: { decision: 'approve' } } });
  expect((await talk.hear(answerTo(1))).result.content).toEqual([{ type: 'text', text: 'hi' }]);
  const said: Loose[] = [];
  for await (const event of talk.gateway.house.store.read({ stream: { of: 'all' } })) {
    if (event.event === 'user.tool_confirmation') said.push(event.actor);
  }
  expect(said).toEqual(['visitor']);
});

test('a call that is taken back is taken back from the server, and gets no answer', async () => {
  let stopped: () => void = () => {};
  const gone = new Promise<void>((resolve) => {
    stopped = resolve;
  });
  const talk = await openServed({
    tools: {
      slow: {
        call: ({ ctx }) =>
          new Promise((_, reject) => {
            ctx.mcpReq.signal.addEventListener('abort', () => {
              stopped();
              reject(new Error('stopped'));
            });
          }),
      },
    },
  });
  await initialized(talk);
  talk.say({ id: 1, method: 'tools/call', params: { name: 'slow' } });
  while (talk.upstream.count('tools/call') === 0) await new Promise((resolve) => setImmediate(resolve));
  talk.say({ method: 'notifications/cancelled', params: { requestId: 1, reason: 'enough' } });
  await gone;
  talk.say({ id: 2, method: 'ping' });
  // What comes next is the answer to what was asked next.
  expect(await talk.hear(({ method }) => method === undefined)).toEqual({ jsonrpc: '2.0', id: 2, result: {} });
});

test('the command: a server behind the gate, shared log, and nothing left afterwards', {
  timeout: 60_000,
}, async () => {
  const dir = await mkdtemp(join(tmpdir(), 'tb-mcp-cli-'));
  const config = join(dir, 'tollbridge.yaml');
  await writeFile(
    config,
    `data: ${dir}/data\nrules:\n  - { id: echo, when: { tool: echo, server: everything }, then: allow, say: fine }\n`,
  );
  const at = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url));
  const command = [
    ...[
      process.execPath,
      '--import',
      'tsx',
      at('src/main.ts'),
      '--config',
      config,
      'mcp',
      '--name',
      'everything',
      '--',
    ],
    ...[process.execPath, at('node_modules/@modelcontextprotocol/server-everything/dist/index.js'), 'stdio'],
  ];
  const child: Child = await startChild({ command, cwd: at('.') });
  onTestFinished(async () => {
    await child.close();
    await rm(dir, { recursive: true, force: true });
  });
  const talk = talkOver(child.stdin, child.stdout);
  expect((await initialized(talk)).result.serverInfo.name).toBe('mcp-servers/everything');
  talk.say({ id: 1, method: 'tools/call', params: { name: 'echo', arguments: { message: 'hi' } } });
  expect((await talk.hear(answerTo(1))).result.content).toEqual([{ type: 'text', text: 'Echo: hi' }]);
  child.stdin.end();
  expect(await child.exited).toEqual({ code: 0, signal: null });
});
