/** A configuration that changes under a running gateway: what is taken at once, what waits, and what changes nothing. */
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Actor } from '../../src/model/actions.ts';
import type { ConfigLoadedPayload } from '../../src/model/payloads.ts';
import type { Adapter, AgentBackend, Deps, Row } from '../../src/ports/index.ts';
import { type Gateway, startGateway } from '../../src/runtime/gateway.ts';
import { mountsOf } from '../../src/runtime/mounts/mounts.ts';
import { createParts } from '../../src/runtime/mounts/parts.ts';
import { latch } from '../support/gateway/agents.ts';
import { configIn } from '../support/process/config-in.ts';

const OWNER: Actor = { id: 'owner', kind: 'person', scopes: ['*'] };

async function runtime(yaml: string) {
  const dir = await mkdtemp(join(tmpdir(), 'tb-reload-'));
  const file = join(dir, 'tollbridge.yaml');
  await writeFile(file, yaml);
  const gateway = await startGateway(await configIn(dir, { data: join(dir, 'data'), port: 0 }));
  onTestFinished(async () => {
    await gateway.close();
    await rm(dir, { recursive: true, force: true });
  });
  /** In one step: a file that is emptied first and then written could be read in between, which other tests are about. */
  const write = async (text: string) => {
    await writeFile(`${file}.new`, text);
    await rename(`${file}.new`, file);
  };
  return { gateway, write };
}

/** The next change that stands in the log. */
async function nextChange({ core: runtime }: Gateway, write: () => Promise<void>): Promise<ConfigLoadedPayload> {
  const stop = new AbortController();
  const tip = await runtime.store.tip({ of: 'all' });
  await write();
  const from = { stream: { of: 'all' } as const, ...(tip && { after: tip }) };
  for await (const { event, payload } of runtime.store.follow(from, stop.signal)) {
    if (event === 'vendor.tollbridge.config_loaded') return payload as unknown as ConfigLoadedPayload;
  }
  throw new Error('the log ended');
}

const namesOf = async ({ core: runtime }: Gateway) => (await runtime.bridge.agents(OWNER)).map(({ name }) => name);
const FAR = 'agents: { far: { harn: { url: "http://127.0.0.1:9" } } }';

test('agents come and go, personas and quotas follow, and each time it is written down', async () => {
  const { gateway, write } = await runtime(FAR);
  const { bridge } = gateway.core;
  expect(await namesOf(gateway)).toEqual(['far']);

  const more = `agents: { far: { harn: { url: "http://127.0.0.1:9" } }, near: { harn: { url: "http://127.0.0.1:8" } } }
personas: { careful: { agent: near, autonomy: act_with_approval, quota: daily } }
quotas: { daily: { limits: { tasks: 2 }, per: 1d } }
retention: { events: 90d }`;
  expect(await nextChange(gateway, () => write(more))).toEqual({
    outcome: 'loaded',
    changed: ['agents.near', 'quotas.daily', 'personas.careful', 'retention'],
    waits_for_restart: [],
    error: null,
  });
  expect(await namesOf(gateway)).toEqual(['far', 'near']);
  expect(await bridge.view(OWNER, 'persona', 'persona_careful')).toMatchObject({
    entry_workflow: 'near',
    autonomy_tier: 'act_with_approval',
    quota_id: 'quota_daily',
  });
  const quota = await bridge.view<Row & { reset_at: string }>(OWNER, 'quota', 'quota_daily');
  expect(quota).toMatchObject({ limits: { tasks: 2 }, usage: { tasks: 0 }, hard_limit: true });
  expect(Date.parse(quota.reset_at) - Date.parse(quota.created_at)).toBeGreaterThan(86_000_000);

  expect(await nextChange(gateway, () => write(more.replace('tasks: 2', 'tasks: 3')))).toMatchObject({
    changed: ['quotas.daily'],
  });
  expect(await bridge.view(OWNER, 'quota', 'quota_daily')).toMatchObject({
    limits: { tasks: 3 },
    reset_at: quota.reset_at,
  });

  expect((await nextChange(gateway, () => write(FAR))).changed).toEqual([
    'agents.near',
    'personas.careful',
    'quotas.daily',
    'retention',
  ]);
  expect(await namesOf(gateway)).toEqual(['far']);
  await expect(bridge.view(OWNER, 'persona', 'persona_careful')).rejects.toThrow('persona_careful');
});

test('what cannot be read changes nothing and says where it is wrong; what needs a restart is named', async () => {
  const { gateway, write } = await runtime(FAR);
  const refused = await nextChange(gateway, () => write('agents:\n  far: { gopher: {} }'));
  expect(refused).toMatchObject({ outcome: 'refused', changed: [] });
  expect(refused.error).toMatch(/tollbridge\.yaml:2:18: agents\.far needs one section/);
  expect(await namesOf(gateway)).toEqual(['far']);
  expect(await nextChange(gateway, () => write(`${FAR}\nlisten: { port: 1 }\nautonomy: suggest`))).toEqual({
    outcome: 'loaded',
    changed: ['autonomy'],
    waits_for_restart: ['listen'],
    error: null,
  });
});

test('one mistake is written down once, and the rules that were in force stay', async () => {
  const { gateway, write } = await runtime('rules:\n  - { id: one, when: {}, then: allow }');
  expect(
    (await nextChange(gateway, () => write('rules:\n  - { id: two, when: {}, then: allow }\nrulez: []'))).error,
  ).toMatch(/tollbridge\.yaml:3:1: rulez is not known here/);
  // The watcher has read the file with the mistake by the time it has loaded the next one.
  await write('rules:\n  - { id: three, when: {}, then: allow }');
  const outcomes = async () => {
    const found: unknown[] = [];
    for await (const { event, payload } of gateway.core.store.read({ stream: { of: 'all' } })) {
      if (/\.(config|policy)_loaded$/.test(event)) found.push([event.split('.').at(-1), payload.outcome]);
    }
    return found;
  };
  await expect.poll(outcomes, { timeout: 10_000 }).toEqual([
    ['policy_loaded', 'loaded'],
    ['config_loaded', 'refused'],
    ['policy_loaded', 'loaded'],
  ]);
});

test('a persona that names no quota of the file is a mistake with a place', async () => {
  await expect(runtime('personas:\n  careful:\n    quota: weekly')).rejects.toThrow(
    /tollbridge\.yaml:3:12: there is no quota weekly; quotas has: none$/,
  );
  await expect(runtime('quotas:\n  q: { limits: { tasks: 1 }, per: week }')).rejects.toThrow(
    'quotas.q.per: week is not a duration; write 30s, 10m, 12h or 30d',
  );
});

test('an agent that is replaced is closed when what it began is done, and not before', async () => {
  const reported: string[] = [];
  const work = latch();
  const adapter = {
    name: 'fake',
    revision: '1',
    parts: {
      backend: {
        configSchema: { type: 'object' },
        open: ({ mark }: { mark: string }, { name }): AgentBackend => ({
          name,
          abilities: { resume: false, evidence: 'held' },
          start: async () => ({ done: work.promise.then(() => ({ state: 'COMPLETED' as const })) }),
          close: async () => void reported.push(`closed ${mark}`),
        }),
      },
    },
  } satisfies Adapter;
  const configOf = async (yaml: string) => {
    const dir = await mkdtemp(join(tmpdir(), 'tb-parts-'));
    onTestFinished(() => rm(dir, { recursive: true, force: true }));
    await writeFile(join(dir, 'tollbridge.yaml'), yaml);
    return mountsOf(await configIn(dir), [adapter]);
  };
  const parts = createParts({ log: { info() {}, warn() {}, error() {} } } as unknown as Deps);
  const none = { backends: [], tools: [] };
  const first = parts.take(await configOf('agents: { a: { fake: { mark: one } }, b: { fake: { mark: b } } }'), none);
  const run = await first.backends[0]?.start({} as never, {} as never, new AbortController().signal);
  const second = parts.take(await configOf('agents: { a: { fake: { mark: two } }, b: { fake: { mark: b } } }'), none);
  second.settle();
  expect(second.changed).toEqual(['agents.a']);
  expect(second.backends[1]).toBe(first.backends[1]);
  expect(reported).toEqual([]);
  work.open();
  await run?.done;
  await new Promise((resolve) => setImmediate(resolve));
  expect(reported).toEqual(['closed one']);
  await parts.close();
  expect(reported).toEqual(['closed one', 'closed two', 'closed b']);
});
