/**
 * Many peers at once at a gateway as it is built, with a thread of its own that writes the log: every task runs to its end,
 * no peer is refused its own work, and the proof of all of it holds.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type * as A2aConfig from '../../../adapters/a2a/config.ts';
import type * as A2aServer from '../../../adapters/a2a/server/door.ts';
import type * as Authenticate from '../../../src/auth/authenticate.ts';
import { verify } from '../../../src/cli/commands/proof/verify.ts';
import { createIds, systemClock } from '../../../src/core/clock.ts';
import type * as DemoAgent from '../../../src/demo/agent.ts';
import type { Actor } from '../../../src/model/actions.ts';
import type { Deps, Logger } from '../../../src/ports/index.ts';
import type * as Compose from '../../../src/runtime/assemble.ts';
import { FIRST_RULES } from '../../../src/runtime/config/config.ts';
import type { SqliteStore } from '../../../src/store/sqlite/index.ts';
import type * as Http from '../../../src/transport/http/server.ts';
import { typed } from '../../support/process/cli.ts';

/** As it runs for real: a thread of its own for writing runs what was compiled. */
const built = <T>(file: string) => import(new URL(`../../../dist/${file}.js`, import.meta.url).href) as Promise<T>;
const ANA: Actor = { id: 'ana', kind: 'person', scopes: ['*'] };
const TOKEN = 'token-of-many-peers';
const CALLERS = 128;
const SENDS = 2_560;

test('each of many peers is served, and what was done is proven', { timeout: 180_000 }, async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'tb-peers-'));
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  const gateway = await openGateway(dataDir);
  const reported: Reported[] = [];
  try {
    let left = SENDS;
    const agent = new Agent({ keepAlive: true, maxSockets: CALLERS });
    const caller = async () => {
      while (left-- > 0) reported.push(await send(gateway.url, agent));
    };
    await Promise.all(Array.from({ length: CALLERS }, caller));
    agent.destroy();
    expect(gateway.store.commitsElsewhere()).toBeGreaterThan(0);
  } finally {
    await gateway.close();
  }
  const states = new Map<string, number>();
  for (const { state } of reported) states.set(state, (states.get(state) ?? 0) + 1);
  expect(Object.fromEntries(states)).toEqual({ TASK_STATE_COMPLETED: SENDS });
  expect(new Set(reported.map(({ id }) => id)).size).toBe(SENDS);
  expect(new Set(reported.map(({ text }) => text)).size).toBe(1);
  const { code, out } = await typed(() => verify('all', { data: dataDir, json: true }));
  expect({ code, ...JSON.parse(out) }).toMatchObject({ code: 0, valid: true, records: SENDS, end: 'complete' });
});

async function openGateway(dataDir: string) {
  const { openCoreRuntime } = await built<typeof Compose>('src/runtime/assemble');
  const { createDemoAgent } = await built<typeof DemoAgent>('src/demo/agent');
  const { createHttpHost } = await built<typeof Http>('src/transport/http/server');
  const { createAuthenticator } = await built<typeof Authenticate>('src/auth/authenticate');
  const { a2aDoor } = await built<typeof A2aServer>('adapters/a2a/server/door');
  const { settingsOf } = await built<typeof A2aConfig>('adapters/a2a/config');
  const log: Logger = {
    info() {},
    warn() {},
    error: (fields, message) => expect.fail(`${message}: ${String(fields)}`),
  };
  const ids = createIds();
  let store: SqliteStore | undefined;
  const runtime = await openCoreRuntime({
    dataDir,
    serving: true,
    backends: [createDemoAgent({ pause: async () => {} })],
    ids,
    logger: log,
    policy: { load: async () => ({ rules: FIRST_RULES, files: [] }) },
    replace: {
      store(opened) {
        store = opened as SqliteStore;
        return opened;
      },
    },
  });
  await runtime.start();
  const home = { object: 'workspace' as const, body: { name: 'one', root: 'tollbridge://one' } };
  await runtime.bridge.submit({ kind: 'resource.create', actor: ANA, body: home });
  const http = createHttpHost({ requestId: () => ids.next('req'), log, graceMs: 100 });
  const deps: Deps = {
    log,
    clock: systemClock,
    ids,
    http,
    authenticate: createAuthenticator({ clock: systemClock, localToken: TOKEN, localActor: ANA, files: dataDir }),
    jwks: () => runtime.keyring.jwks(),
    sign: (text) => runtime.keyring.signer().sign(text),
    mac: (text) => runtime.keyring.signer().mac(text),
    secret: () => Promise.reject(new Error('there are no secrets here')),
  };
  const door = await a2aDoor(settingsOf({}), deps).open(runtime.bridge);
  const { url } = await http.listen();
  return {
    url: `${url}/a2a/demo`,
    store: store!,
    async close() {
      await door.close();
      await http.close();
      await runtime.idle();
      await runtime.close();
    },
  };
}

interface Reported {
  readonly id: string;
  readonly state: string;
  readonly text: string;
}

const BODY = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'SendMessage',
  params: { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hello' }] } },
});

function send(url: string, agent: Agent): Promise<Reported> {
  const headers = {
    'content-type': 'application/json',
    'a2a-version': '1.0',
    authorization: `Bearer ${TOKEN}`,
    'content-length': Buffer.byteLength(BODY),
  };
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: 'POST', agent, headers }, async (answer) => {
      const chunks: Buffer[] = [];
      for await (const chunk of answer) chunks.push(chunk as Buffer);
      const { task } = JSON.parse(Buffer.concat(chunks).toString('utf8')).result;
      resolve({ id: task.id, state: task.status.state, text: JSON.stringify(task.artifacts?.[0]?.parts) });
    });
    sent.on('error', reject);
    sent.end(BODY);
  });
}
