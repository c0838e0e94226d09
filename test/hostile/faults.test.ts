/** Many clients at once, odd numbers, readers that vanish or stall, tools that change, servers that misbehave: each against the built process. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { aDirectory } from '../support/process/cli.ts';
import { room } from '../support/process/native-session.ts';
import { MCP_META, mcpHeaders, PROTOCOL_VERSION, type Serving, serving } from '../support/process/served.ts';

const MIB = 1024 * 1024;
const asked = (text: string) => ({ role: 'user', parts: [{ type: 'text', text, visibility: 'public' }] });
/** The sum of a metric over all of its labels. */
const gauge = async (gateway: Serving, name: string) => {
  const { text } = await gateway.send('/metrics');
  const found = [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'gm'))];
  return found.reduce((sum, [, value]) => sum + Number(value), 0);
};
const rss = (pid: number) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

describe('faults and many clients at once', { timeout: 120_000 }, () => {
  test('H13: five hundred callers with one id on one server each get their own answer', async () => {
    const gateway = await serving();
    await gateway.call('echo', { text: 'warm' });
    const nonces = Array.from({ length: 500 }, (_, n) => `nonce-${n}-${Math.random()}`);
    const answers = await Promise.all(nonces.map((text) => gateway.call('echo', { text })));
    const mixed = answers.flatMap(({ text }, n) => (text.includes(nonces[n] as string) ? [] : [`${n}: ${text}`]));
    expect(mixed).toEqual([]);
    for (const { text } of answers) expect(text.match(/nonce-/g)).toHaveLength(1);
    expect(gateway.contacts()).toHaveLength(501);
    expect(await gateway.violations()).toEqual([]);
  });

  test('H15: numbers on the edge are carried as they were decided or not at all', async () => {
    const gateway = await serving();
    const raw = (value: string) =>
      gateway.send('/mcp/box', {
        method: 'POST',
        headers: mcpHeaders('tools/call', 'echo'),
        body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"n","n":${value}},"_meta":${JSON.stringify(MCP_META)}}}`,
      });
    for (const value of ['1e400', '-1e400', '9e999', 'NaN', 'Infinity', '0x10', '01', '1.', '.5', '+1']) {
      const { text } = await raw(value);
      expect([value, text.includes('"error"')]).toEqual([value, true]);
    }
    expect(gateway.contacts()).toEqual([]);
    const fine = [
      '9007199254740992',
      '9007199254740993',
      '-0',
      '0.1',
      '1e-400',
      '5e-324',
      '1.7976931348623157e308',
      '1E2',
    ];
    for (const value of fine) await raw(value);
    const seen = gateway.contacts().map(({ arguments: { n } }) => n);
    for (const n of seen) expect(Number.isFinite(n)).toBe(true);
    expect(await gateway.violations()).toEqual([]);
  });

  test('H17: readers that vanish in the middle of a stream leave nothing behind', async () => {
    const gateway = await serving();
    const session = await room(gateway);
    const body = { input: asked('hold on'), agent: 'recorder' };
    const made = await gateway.send(`/v1/sessions/${session}/tasks`, { method: 'POST', body });
    const { port } = new URL(gateway.url);
    const before = readdirSync(`/proc/${gateway.pid}/fd`).length;
    const lines = [
      `GET /v1/tasks/${made.json.id}/stream HTTP/1.1`,
      `Host: 127.0.0.1:${port}`,
      `Authorization: Bearer ${gateway.token}`,
      `harn-agents-protocol-version: ${PROTOCOL_VERSION}`,
      'Accept: text/event-stream',
      '',
      '',
    ];
    const sockets = await Promise.all(
      Array.from({ length: 60 }, async () => {
        const socket = connect(Number(port), '127.0.0.1');
        socket.on('error', () => {});
        socket.write(lines.join('\r\n'));
        await new Promise((resolve) => socket.once('data', resolve));
        return socket;
      }),
    );
    expect(await gauge(gateway, 'tollbridge_streams_open')).toBeGreaterThanOrEqual(60);
    for (const [n, socket] of sockets.entries()) n % 2 === 0 ? socket.resetAndDestroy() : socket.destroy();
    await expect.poll(() => gauge(gateway, 'tollbridge_streams_open'), { timeout: 20_000 }).toBe(0);
    await expect
      .poll(() => readdirSync(`/proc/${gateway.pid}/fd`).length, { timeout: 20_000 })
      .toBeLessThanOrEqual(before + 8);
    // The work itself goes on until it is asked to stop.
    expect((await gateway.send(`/v1/tasks/${made.json.id}`)).json.status).toBe('WORKING');
    await gateway.send(`/v1/tasks/${made.json.id}/cancel`, { method: 'POST', body: {} });
    await expect
      .poll(async () => (await gateway.send(`/v1/tasks/${made.json.id}`)).json.status, { timeout: 20_000 })
      .toBe('CANCELED');
  });

  test('H19: readers that do not read hold up nobody, cost bounded memory, and find everything when they go on', async () => {
    const file = join(await aDirectory(), 'collected');
    const NODE_OPTIONS = `--expose-gc --require ${fileURLToPath(new URL('../support/upstreams/collected.cjs', import.meta.url))}`;
    const gateway = await serving({ env: { NODE_OPTIONS, COLLECTED_FILE: file } });
    /** MiB in use once garbage is gone. */
    const held = async (): Promise<number> => {
      await rm(file, { force: true });
      process.kill(gateway.pid, 'SIGUSR2');
      await expect.poll(() => existsSync(file), { timeout: 20_000 }).toBe(true);
      return Number(readFileSync(file, 'utf8')) / MIB;
    };
    const session = await room(gateway);
    const { port } = new URL(gateway.url);
    const readers = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const slow = connect(Number(port), '127.0.0.1');
        slow.on('error', () => {});
        slow.write(
          [
            `GET /v1/sessions/${session}/events/stream HTTP/1.1`,
            `Host: 127.0.0.1:${port}`,
            `Authorization: Bearer ${gateway.token}`,
            `harn-agents-protocol-version: ${PROTOCOL_VERSION}`,
            'Accept: text/event-stream',
            '',
            '',
          ].join('\r\n'),
        );
        const first = await new Promise<string>((resolve) => slow.once('data', (chunk) => resolve(String(chunk))));
        slow.pause();
        return { slow, first };
      }),
    );
    const ended: string[] = [];
    const round = async () => {
      const body = { input: asked('be chatty'), agent: 'recorder' };
      const { json } = await gateway.send(`/v1/sessions/${session}/tasks`, { method: 'POST', body });
      ended.push(String(json.id));
      await expect
        .poll(async () => (await gateway.send(`/v1/tasks/${json.id}`)).json.status, { timeout: 90_000 })
        .toBe('COMPLETED');
      return await held();
    };
    const before = await held();
    const first = await round();
    // The agent said 16 MiB to eight readers who read none of it.
    expect(first - before).toBeLessThan(64);
    let last = first;
    for (let more = 0; more < 4; more += 1) last = await round();
    // Another 64 MiB were said. One text, and what is made of it, may be on its way at any time; what was said before is on disk.
    expect(last - first).toBeLessThan(44);
    for (const { slow } of readers) slow.destroy();
    // It goes on from the last event that it read, on another connection.
    const headers = {
      authorization: `Bearer ${gateway.token}`,
      'harn-agents-protocol-version': PROTOCOL_VERSION,
      'last-event-id': /^id: (\S+)/m.exec(readers[0]?.first ?? '')?.[1] ?? '',
    };
    const again = await fetch(`${gateway.url}/v1/sessions/${session}/events/stream`, { headers });
    let text = '';
    for await (const chunk of again.body as unknown as AsyncIterable<Uint8Array>) {
      text = (text + Buffer.from(chunk).toString('latin1')).slice(-200_000);
      if (text.includes('receipt.issued') && text.includes(ended.at(-1) as string)) break;
    }
    expect(text).toContain(ended.at(-1));
  });

  test.each(['description', 'schema', 'annotation', 'swap'])(
    'H37: a tool whose %s changes is refused until it is accepted, and is no longer shown',
    async (what) => {
      const gateway = await serving();
      const listed = async () => {
        const { json } = await gateway.send('/mcp/box', {
          method: 'POST',
          headers: mcpHeaders('tools/list'),
          body: { jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: MCP_META } },
        });
        return (json.result as { tools: { name: string }[] }).tools.map(({ name }) => name);
      };
      expect(await listed()).toEqual(['echo', 'read', 'pay', 'hang']);
      await gateway.call('echo', { text: `drift: ${what}` });
      const gone = what === 'swap' ? ['read', 'pay'] : ['read'];
      await expect
        .poll(listed, { timeout: 20_000 })
        .toEqual(['echo', 'read', 'pay', 'hang'].filter((name) => !gone.includes(name)));
      for (const name of gone) expect((await gateway.call(name, { text: 'x' })).text).toContain('definition_changed');
      expect(gateway.contacts().map(({ tool }) => tool)).toEqual(['echo']);
      expect((await gateway.call('echo', { text: 'others go on' })).text).toContain('others go on');
      expect(await gateway.violations()).toEqual([]);
    },
  );

  test('a frame that a server sends outside of any call is refused, and is an event', async () => {
    const gateway = await serving();
    await gateway.call('echo', { text: 'unasked' });
    const refused = () => gateway.events('vendor.tollbridge.frame_refused');
    await expect.poll(async () => (await refused()).length, { timeout: 20_000 }).toBe(2);
    expect((await refused()).map(({ payload }) => [payload.protocol, payload.method, payload.count])).toEqual([
      ['mcp', 'tools/call', 1],
      ['mcp', 'acme/launch', 1],
    ]);
    expect((await gateway.call('echo', { text: 'still here' })).text).toContain('still here');
  });
});

/** Programs that are no good servers. Each writes its process id, and those of its children, where they can be found. */
const SERVERS: Readonly<Record<string, string>> = {
  dies: 'process.exit(3)',
  mute: 'process.stdin.resume()',
  flood:
    'const b = Buffer.alloc(1 << 20, 120); const go = () => { while (process.stdout.write(b)); process.stdout.once("drain", go); }; go()',
  garbage: 'setInterval(() => process.stdout.write("not json\\n{\\n[1,2]\\n\\u0000\\n"), 20)',
  stubborn: 'process.on("SIGTERM", () => {}); process.stdin.resume(); setInterval(() => {}, 1000)',
  daemon:
    'require("child_process").spawn("sleep", ["600"], { stdio: "ignore" }); process.on("SIGTERM", () => {}); process.stdin.resume()',
};

test('H45: servers that die, are mute, flood, babble, ignore signals or fork are errors, and none outlives the gateway', {
  timeout: 120_000,
}, async () => {
  const dir = await aDirectory();
  const files = Object.keys(SERVERS).map((name) => [name, join(dir, `${name}.cjs`)] as const);
  for (const [name, file] of files)
    await writeFile(
      file,
      `require("fs").appendFileSync(${JSON.stringify(join(dir, 'pids'))}, process.pid + "\\n");\n${SERVERS[name]}\n`,
    );
  const patient = { command: [process.execPath, join(dir, 'mute.cjs')] };
  const servers = Object.fromEntries(
    files.map(([name, file]) => [
      name,
      { command: [process.execPath, file], timeout_ms: 4_000, start_timeout_ms: 4_000 },
    ]),
  );
  const gateway = await serving({ servers: { ...servers, patient } });
  const call = (name: string) => {
    const params = { name: 'echo', arguments: {}, _meta: MCP_META };
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
    return gateway.send(`/mcp/${name}`, { method: 'POST', headers: mcpHeaders('tools/call', 'echo'), body });
  };
  const before = rss(gateway.pid);
  // A mute one that is given all the time there is: nobody waits for it, the gateway's own end included.
  const unanswered = call('patient').catch(() => undefined);
  const tries = Object.keys(SERVERS).map(async (name) => [name, (await call(name)).text] as const);
  expect((await gateway.call('echo', { text: 'beside them' })).text).toContain('beside them');
  for (const [name, text] of await Promise.all(tries))
    expect([name, text]).toEqual([name, expect.stringMatching(/"error"|"isError":true/)]);
  expect(rss(gateway.pid) - before).toBeLessThan(300);
  expect((await gateway.call('echo', { text: 'after them' })).text).toContain('after them');
  const pids = readFileSync(join(dir, 'pids'), 'utf8').split('\n').filter(Boolean).map(Number);
  const family = descendants(gateway.pid);
  expect(pids.length).toBeGreaterThanOrEqual(Object.keys(servers).length + 1);
  const began = performance.now();
  await gateway.stop();
  expect(performance.now() - began).toBeLessThan(20_000);
  await unanswered;
  const left = () => [...new Set([...pids, ...family])].filter(isAlive);
  await expect.poll(left, { timeout: 15_000 }).toEqual([]);
});

/** Starts a program that outlives it, then dies of every call. */
const CRASHES = `const { appendFileSync } = require("fs");
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  const say = (said) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, ...said }) + "\\n");
  if (method === "initialize") {
    say({ result: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "c", version: "1" } } });
  } else if (method === "tools/list") say({ result: { tools: [{ name: "echo", inputSchema: { type: "object" } }] } });
  else if (method === "tools/call") {
    appendFileSync(process.argv[2], require("child_process").spawn("sleep", ["600"], { stdio: "ignore" }).pid + "\\n");
    process.exit(7);
  } else if (id !== undefined) say({ error: { code: -32601, message: "no" } });
});`;

test('H45: a server that dies of every call leaves neither children nor a place among the programs taken', {
  timeout: 120_000,
}, async () => {
  const dir = await aDirectory();
  const [file, pids] = [join(dir, 'crashes.cjs'), join(dir, 'pids')];
  await writeFile(file, CRASHES);
  const config = 'limits: { children: 5 }';
  const gateway = await serving({ config, servers: { crashes: [process.execPath, file, pids] } });
  const params = { name: 'echo', arguments: {}, _meta: MCP_META };
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
  const started = () => (existsSync(pids) ? readFileSync(pids, 'utf8').split('\n').filter(Boolean).map(Number) : []);
  // Its end takes a moment, so a call may come before there is room again; more than the limit have run in the end.
  await expect
    .poll(
      async () => {
        await gateway.send('/mcp/crashes', { method: 'POST', headers: mcpHeaders('tools/call', 'echo'), body });
        return started().length;
      },
      { timeout: 90_000, interval: 20 },
    )
    .toBe(8);
  await expect.poll(() => started().filter(isAlive), { timeout: 20_000 }).toEqual([]);
  await expect
    .poll(async () => (await gateway.call('echo', { text: 'room for others' })).text, { timeout: 20_000 })
    .toContain('room for others');
  expect(await gateway.violations()).toEqual([]);
});

test('H45: a harness that dies of every question leaves no place among the programs taken either', {
  timeout: 120_000,
}, async () => {
  const dir = await aDirectory();
  const [file, starts] = [join(dir, 'harness.cjs'), join(dir, 'starts')];
  const welcome = { protocol_version: '2.4', harness_info: { name: 'h', version: '1', capabilities: [] }, config: {} };
  await writeFile(
    file,
    `require("fs").appendFileSync(${JSON.stringify(starts)}, "x");
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  if (method !== "ahp/handshake") process.exit(7);
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result: ${JSON.stringify(welcome)} }) + "\\n");
});`,
  );
  const command = JSON.stringify([process.execPath, file]);
  const config = `limits: { children: 5 }\nharnesses: { dies: { ahp: { command: ${command} } } }`;
  const gateway = await serving({ config });
  const started = () => (existsSync(starts) ? readFileSync(starts, 'utf8').length : 0);
  await expect
    .poll(
      async () => {
        expect((await gateway.call('echo', { text: 'x' })).text).toMatch(/"error"|"isError":true/);
        return started();
      },
      { timeout: 90_000, interval: 50 },
    )
    .toBeGreaterThan(7);
  expect(gateway.contacts()).toEqual([]);
});

function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** All processes below this one. */
function descendants(of: number): number[] {
  const parents = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid): [number, number][] => {
      try {
        return [[Number(pid), Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])]];
      } catch {
        return [];
      }
    });
  const found: number[] = [];
  for (let at = [of]; at.length > 0; ) {
    at = parents.flatMap(([pid, parent]) => (at.includes(parent) ? [pid] : []));
    found.push(...at);
  }
  return found;
}
