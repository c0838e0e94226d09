/**
 * Two gateways on one log: what an operator or a client changes at one holds at the other within a second. In PostgreSQL each of them has
 * a data directory of its own, as on another machine; in a file they share one, as workers do.
 */
import { mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { consoleToken } from '../../src/auth/console-sessions.ts';
import { listAgents, switchAgent } from '../../src/cli/commands/agents/agents.ts';
import { consoleLink, signOut } from '../../src/cli/commands/console/console.ts';
import { createKey, revokeKey } from '../../src/cli/commands/keys/keys.ts';
import { rotateKey } from '../../src/cli/commands/keys/rotate.ts';
import { doctor } from '../../src/cli/commands/maintenance/doctor.ts';
import { accept } from '../../src/cli/commands/mcp/accept.ts';
import { verify } from '../../src/cli/commands/proof/verify.ts';
import type { Actor } from '../../src/model/actions.ts';
import type { Task } from '../../src/model/resources.ts';
import type { Row } from '../../src/ports/index.ts';
import { type Gateway, startGateway } from '../../src/runtime/gateway.ts';
import { eventually } from '../support/eventually.ts';
import { echo, openUpstream, type Upstream } from '../support/mcp/upstream.ts';
import { createDatabase, PASSWORD, type TestDatabase } from '../support/postgres/server.ts';
import { typed } from '../support/process/cli.ts';
import { configIn } from '../support/process/config-in.ts';

const ANA: Actor = { id: 'ana', kind: 'person', scopes: ['*'], interactive: true };
const WITHIN = { timeoutMs: 1_000 };
const RULES = '[{ id: reads, when: { effect: read }, then: allow }, { id: asked, when: { effect: send }, then: ask }]';

let database: TestDatabase;
let upstream: Upstream;
beforeAll(async () => {
  database = await createDatabase();
  upstream = await openUpstream({ tools: { echo } });
}, 120_000);
afterAll(async () => {
  await upstream.close();
  await database.drop();
});

interface Side {
  readonly gateway: Gateway;
  /** What a person at this machine types with. */
  readonly at: { readonly config: string; readonly data: string };
}

describe.each(['PostgreSQL, a data directory each', 'a file, one data directory'])('%s', (kind) => {
  const apart = kind.startsWith('PostgreSQL');
  let dir: string;
  let a: Side;
  let b: Side;
  let workspace: string;
  let written = '';

  const variables = { TOLLBRIDGE_SECRET_password: PASSWORD, TOLLBRIDGE_SECRET_keys: 'k'.repeat(40) };

  async function write(more: string): Promise<void> {
    const store = apart
      ? `store: { url: "${database.url}", secret: password, keys: keys, schema: shared }\n`
      : `store: { path: ${join(dir, 'data-a', 'log.db')} }\n`;
    written = `${store}demo: true\nlisten: { port: 0 }\ntools: { u: { mcp: { url: "${upstream.url}" } } }\n${more}`;
    const file = join(dir, 'tollbridge.yaml');
    await writeFile(`${file}.new`, written);
    await rename(`${file}.new`, file);
  }
  async function start(name: string): Promise<Side> {
    const data = join(dir, apart ? `data-${name}` : 'data-a');
    const config = await configIn(dir, { data, port: 0, env: process.env });
    return { gateway: await startGateway(config), at: { config: join(dir, 'tollbridge.yaml'), data } };
  }

  beforeAll(async () => {
    Object.assign(process.env, variables);
    dir = await mkdtemp(join(tmpdir(), 'tb-shared-'));
    await write(`rules: ${RULES}`);
    [a, b] = [await start('a'), await start('b')];
    const [found] = await a.gateway.core.store.list<Row>({ object: 'workspace' });
    workspace = found!.id;
  }, 120_000);
  afterAll(async () => {
    for (const side of [a, b]) await side?.gateway.close();
    for (const name of Object.keys(variables)) delete process.env[name];
    await rm(dir, { recursive: true, force: true });
  });
  beforeEach(() => write(`rules: ${RULES}`));

  const bridge = (side: Side) => side.gateway.core.bridge;
  const session = async (side: Side, more: object = {}) =>
    (await bridge(side).submit({ kind: 'session.create', actor: ANA, body: { workspace_id: workspace, ...more } }))
      .resource.id;
  const task = (side: Side, sessionId: string, text: string, more: object = {}) =>
    bridge(side).submit({
      kind: 'task.submit',
      actor: ANA,
      body: { session_id: sessionId, input: { text }, ...more },
    });
  const stateAt = async (side: Side, id: string) => (await bridge(side).view<Task & Row>(ANA, 'task', id)).status;
  const over = (side: Side, id: string) =>
    eventually(async () => /COMPLETED|FAILED|CANCELED/.exec(await stateAt(side, id))?.[0], `the end of ${id}`);
  const openAsk = (side: Side, id: string) =>
    eventually(async () => {
      const [ask] = await side.gateway.core.store.list<Row>({ object: 'ask', where: { task_id: id, state: 'open' } });
      return ask?.id;
    }, 'a question');
  const status = async (side: Side, token: string) => {
    const headers = { authorization: `Bearer ${token}`, 'harn-agents-protocol-version': 'agents-protocol-2026-04-25' };
    return (await fetch(`${side.gateway.url}/v1/tasks`, { headers })).status;
  };

  test('an API key made on this side opens the other, until it is revoked on this side', async () => {
    const made = await typed(() => createKey('ci', { ...a.at, scope: ['tasks:read'], json: true }));
    const { key, id } = JSON.parse(made.out) as { key: string; id: string };
    for (const side of [a, b])
      await eventually(async () => (await status(side, key)) === 200, 'the key to open', WITHIN);
    expect(await typed(() => revokeKey(id, a.at))).toMatchObject({ code: 0 });
    for (const side of [a, b])
      await eventually(async () => (await status(side, key)) === 401, 'the key to be refused', WITHIN);
    if (apart) expect(await readdir(join(dir, 'data-a'))).not.toContain('auth');
  });

  test('a sign-in to the console: a link made here opens one session there, which ends from here', async () => {
    const { out } = await typed(() => consoleLink({ ...a.at, json: true }));
    const code = /#(\S+)"/.exec(out)![1];
    const { url } = b.gateway;
    const signIn = () =>
      fetch(`${url}/console/session`, {
        method: 'POST',
        headers: { origin: url, 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' },
        body: JSON.stringify({ code }),
      });
    const opened = await signIn();
    expect(opened.status).toBe(201);
    expect((await signIn()).status).toBe(401);
    const { id, proof } = (await opened.json()) as { id: string; proof: string };
    const cookie = /=([0-9a-f]{16}\.[\w-]{43})/.exec(opened.headers.get('set-cookie')!)![1]!;
    const token = consoleToken(cookie, proof);
    for (const side of [a, b]) await eventually(async () => (await status(side, token)) === 200, 'the session', WITHIN);
    expect(await typed(() => signOut(id, a.at))).toMatchObject({ code: 0 });
    for (const side of [a, b])
      await eventually(async () => (await status(side, token)) === 401, 'the end of the session', WITHIN);
  });

  test('an agent that is switched off on this side takes no work on the other', async () => {
    const at = await session(b);
    expect(await typed(() => switchAgent('demo', 'off', { ...a.at, reason: 'too dear' }))).toMatchObject({ code: 0 });
    expect((await typed(() => listAgents(b.at))).out).toContain('demo  built-in  off: too dear');
    await eventually(
      () =>
        task(b, at, 'hello').then(
          () => false,
          (fault: Error) => fault.message.includes('too dear'),
        ),
      'a refusal',
      WITHIN,
    );
    await typed(() => switchAgent('demo', 'on', b.at));
    const { resource } = await eventually(() => task(a, at, 'hello').catch(() => undefined), 'work', WITHIN);
    expect(await over(b, resource.id)).toBe('COMPLETED');
  });

  test('rules that change hold for the next act on both sides', async () => {
    const tried = async (side: Side) => {
      const { resource } = await task(side, await session(side), 'send the plan to ana');
      return await eventually(async () => {
        const state = await stateAt(side, resource.id);
        const [ask] = await side.gateway.core.store.list({ object: 'ask', where: { task_id: resource.id } });
        return ask ? 'asked' : /COMPLETED|FAILED/.exec(state)?.[0];
      }, 'a decision');
    };
    expect([await tried(a), await tried(b)]).toEqual(['asked', 'asked']);
    await write('rules: [{ id: all, then: allow }]');
    expect([await tried(a), await tried(b)]).toEqual(['COMPLETED', 'COMPLETED']);
  });

  test('a persona with a quota: what is spent on this side is missing on the other', async () => {
    await write(
      `rules: ${RULES}\npersonas: { few: { quota: few } }\nquotas: { few: { limits: { tasks: 2 }, per: 1d } }`,
    );
    const few = { persona_id: 'persona_few' };
    for (const side of [a, b])
      await eventually(
        () =>
          bridge(side)
            .view(ANA, 'persona', 'persona_few')
            .catch(() => undefined),
        'the persona',
        WITHIN,
      );
    const spent = async (side: Side) => {
      try {
        const { resource } = await task(side, await session(side, few), 'hello', few);
        return await over(side, resource.id);
      } catch (thrown) {
        return (thrown as { kind: string }).kind;
      }
    };
    expect([await spent(a), await spent(b)]).toEqual(['COMPLETED', 'COMPLETED']);
    expect([await spent(a), await spent(b)]).toEqual(['policy_violation', 'policy_violation']);
    expect(await bridge(b).view(ANA, 'quota', 'quota_few')).toMatchObject({ usage: { tasks: 2 } });
  });

  test('work that is begun on both sides at once spends what is left of a quota once', async () => {
    await write(
      `rules: ${RULES}\npersonas: { some: { quota: some } }\nquotas: { some: { limits: { tasks: 5 }, per: 1d } }`,
    );
    const some = { persona_id: 'persona_some' };
    const sessions = await Promise.all(
      [a, b].map((side) => eventually(() => session(side, some).catch(() => undefined), 'the persona', WITHIN)),
    );
    const begun = await Promise.all(
      Array.from({ length: 14 }, (_, n) =>
        task([a, b][n % 2]!, sessions[n % 2]!, 'hello', some).then(
          ({ resource }) => over(a, resource.id),
          ({ kind }: { kind: string }) => kind,
        ),
      ),
    );
    expect(begun.toSorted()).toEqual([
      ...Array.from({ length: 5 }, () => 'COMPLETED'),
      ...Array.from({ length: 9 }, () => 'policy_violation'),
    ]);
    expect(await bridge(b).view(ANA, 'quota', 'quota_some')).toMatchObject({ usage: { tasks: 5 } });
  });

  test('a definition that is accepted on this side runs on the other', async () => {
    const ask = async (side: Side, method: string, more: object) => {
      const headers = {
        authorization: `Bearer ${side.gateway.token}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': method,
        ...('name' in more && { 'mcp-name': String(more.name) }),
      };
      const _meta = {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientCapabilities': {},
      };
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...more, _meta } });
      return await (await fetch(`${side.gateway.url}/mcp/u`, { method: 'POST', headers, body })).text();
    };
    const call = async (side: Side) => {
      await ask(side, 'tools/list', {});
      const text = await ask(side, 'tools/call', { name: 'echo', arguments: { text: 'hi' } });
      return /definition_changed/.test(text) ? 'changed' : /"isError":true|"error":/.test(text) ? text : 'ran';
    };
    await write('rules: [{ id: all, then: allow }]');
    for (const side of [a, b]) expect(await call(side)).toBe('ran');
    upstream.tools.echo = { ...echo, definition: { description: `echo for ${kind}` } };
    for (const side of [a, b]) await eventually(async () => (await call(side)) === 'changed', 'drift');
    expect(await typed(() => accept('u', ['echo'], { ...a.at, yes: true }))).toMatchObject({ code: 0 });
    for (const side of [a, b]) await eventually(async () => (await call(side)) === 'ran', 'the accepted tool', WITHIN);
  });

  test('a question that is asked on this side is answered on the other, for the whole session on both', async () => {
    const at = await session(a);
    const { resource } = await task(a, at, 'send the plan to ana');
    const ask = await openAsk(b, resource.id);
    // The act as it will run is sealed, and every side can open it.
    expect(await bridge(b).pendingAct(ANA, ask)).toMatchObject({ arguments: { to: 'ana' } });
    const answer = { ask_id: ask, approved: true, for: 'session' as const };
    await bridge(b).submit({ kind: 'ask.answer', actor: ANA, body: answer });
    expect(await over(b, resource.id)).toBe('COMPLETED');
    const asksNoMore = async (side: Side) => {
      const { resource: next } = await task(side, at, 'send the plan to ana');
      const asked = await eventually(async () => {
        const [open] = await side.gateway.core.store.list<Row>({ object: 'ask', where: { task_id: next.id } });
        return open?.id ?? /COMPLETED/.exec(await stateAt(side, next.id))?.[0];
      }, 'a decision');
      if (asked === 'COMPLETED') return true;
      await bridge(side).submit({ kind: 'ask.answer', actor: ANA, body: { ask_id: asked, approved: false } });
      await over(side, next.id);
      return false;
    };
    for (const side of [a, b]) await eventually(() => asksNoMore(side), 'the answer to be remembered', WITHIN);
  });

  test('a signing key that is rotated on this side signs on the other; every receipt can be verified', async () => {
    const before = b.gateway.core.keyring.signer().keyId;
    expect((await typed(() => rotateKey(a.at))).out).toContain(`${before} is retired`);
    const keyAt = (side: Side) => side.gateway.core.keyring.signer().keyId;
    await eventually(() => keyAt(a) !== before && keyAt(b) !== before, 'the new key on both sides', WITHIN);
    const after = keyAt(b);
    for (const side of [a, b]) {
      const { resource } = await task(side, await session(side), 'hello');
      await over(side, resource.id);
      const [stored] = await a.gateway.core.store.receipts({ task: resource.id });
      expect(stored!.receipt.signatures!.map(({ key_id }) => key_id)).toEqual([after]);
    }
    const verified = await typed(() => verify('all', { ...b.at }));
    expect(verified.out).toMatch(/^ok +\d+ receipts, nothing missing, nothing changed/);
  });

  if (apart)
    test('a gateway that does not know the secret of the keys, or another one, does not start', async () => {
      const asked = async (name: string, keys: string) => {
        const text = `store: { url: "${database.url}", secret: password, schema: shared${keys} }\nlisten: { port: 0 }\n`;
        await writeFile(join(dir, `${name}.yaml`), text);
        const at = { config: join(dir, `${name}.yaml`), data: join(dir, `data-${name}`) };
        const config = await configIn(dir, { file: at.config, data: at.data, port: 0, env: process.env });
        const started = await startGateway(config).then(
          (gateway) => gateway.close().then(() => 'started'),
          (thrown: Error) => thrown.message,
        );
        const { out } = await typed(() => doctor([], { ...at, port: '0', json: true }));
        return { started, out };
      };
      const before = (await a.gateway.core.store.tip({ of: 'all' }))!;
      const without = await asked('without', '');
      expect(without.started).toMatch(
        /keys of the gateways lie in .*, sealed under a secret: name it with store.keys$/,
      );
      expect(without.out).toMatch(/"check":"keys","state":"bad","says":"keys of the gateways lie in /);
      vi.stubEnv('TOLLBRIDGE_SECRET_wrong', 'w'.repeat(40));
      const wrong = await asked('wrong', ', keys: wrong');
      vi.unstubAllEnvs();
      expect(wrong.started).toMatch(/the secret that store.keys names does not open .* need the same one$/);
      expect(await a.gateway.core.store.tip({ of: 'all' })).toBe(before);
    });

  test('the doctor says where the keys are', async () => {
    const { out } = await typed(() => doctor([], { ...b.at, port: '0', json: true }));
    const keys = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
      .filter(({ check }) => check === 'keys');
    expect(keys.every(({ state }) => state === 'ok')).toBe(true);
    expect(JSON.stringify(keys).includes('shared by all gateways, sealed')).toBe(apart);
  });
});
