/** What the configuration puts behind the doors: agents and harnesses elsewhere, each a gateway of its own here. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { Actor } from '../../src/model/actions.ts';
import type { CoreEvent } from '../../src/model/events.ts';
import type { Task } from '../../src/model/resources.ts';
import { type Gateway, startGateway } from '../../src/runtime/gateway.ts';
import { says } from '../support/gateway/test-gateway.ts';
import { configIn } from '../support/process/config-in.ts';

const OWNER: Actor = { id: 'owner', kind: 'person', scopes: ['*'] };

async function gatewayWith(yaml: string): Promise<Gateway> {
  const dir = await mkdtemp(join(tmpdir(), 'tb-mounts-'));
  await writeFile(join(dir, 'tollbridge.yaml'), yaml);
  const gateway = await startGateway(await configIn(dir, { data: join(dir, 'data'), port: 0 }));
  onTestFinished(async () => {
    await gateway.close();
    await rm(dir, { recursive: true, force: true });
  });
  return gateway;
}

async function workAt({ core: runtime }: Gateway, text: string, agent?: string) {
  const { bridge } = runtime;
  const location = { workspace_id: 'workspace_default' };
  const { resource: session } = await bridge.submit({ kind: 'session.create', actor: OWNER, body: location });
  const body = { session_id: session.id, input: says(text), ...(agent && { agent }) };
  const { resource } = await bridge.submit({ kind: 'task.submit', actor: OWNER, body });
  const events: CoreEvent[] = [];
  const stop = new AbortController();
  for await (const event of bridge.follow(OWNER, { stream: { of: 'task', id: resource.id } }, stop.signal)) {
    events.push(event);
    if (event.event === 'receipt.issued') break;
  }
  return { task: (await bridge.view<Task & { object: string }>(OWNER, 'task', resource.id)) as Task, events };
}

test('an agent behind another gateway does the work, and the built-in ones are gone', async () => {
  const far = await gatewayWith('');
  vi.stubEnv('TOLLBRIDGE_SECRET_far', far.token);
  onTestFinished(() => {
    vi.unstubAllEnvs();
  });
  const near = await gatewayWith(`agents: { elsewhere: { harn: { url: "${far.url}", secret: far } } }`);
  expect((await near.core.bridge.agents(OWNER)).map(({ name, default: first }) => [name, first])).toEqual([
    ['elsewhere', true],
  ]);
  const { task, events } = await workAt(near, 'hello');
  expect(task.status).toBe('COMPLETED');
  expect(task.assigned_agent_id).toBe('elsewhere');
  expect(JSON.stringify(events)).toContain('Hello! I am the demo agent');
  expect((await far.core.bridge.list(OWNER, { object: 'task' })).data).toHaveLength(1);
  await expect(workAt(near, 'hello', 'demo')).rejects.toThrow('no agent demo is mounted');
});

test('a harness elsewhere has its say after our own rules, and is notified of the outcome', async () => {
  const far = await gatewayWith(
    'doors: { ahp: { hop: far } }\nrules:\n  - { id: others, when: { kind: tool }, then: allow }\n  - { id: no-mail, when: { tool: send_mail }, then: block, say: nobody sends mail from there }',
  );
  vi.stubEnv('TOLLBRIDGE_SECRET_far', far.token);
  onTestFinished(() => {
    vi.unstubAllEnvs();
  });
  const near = await gatewayWith(
    `harnesses: { guard: { ahp: { url: "${far.url}/ahp", token: far } } }\nrules:\n  - { id: all, when: { kind: tool }, then: allow }`,
  );
  const { task, events } = await workAt(near, 'send hello to bob');
  expect(task.status).toBe('COMPLETED');
  const [decided] = events.filter(({ event }) => event === 'tool.denied');
  expect(JSON.stringify(decided ?? events)).toContain('nobody sends mail from there');
  // It is notified when there is time for it; there the same run then comes to its end.
  const stop = new AbortController();
  for await (const { event } of far.core.bridge.follow(OWNER, { stream: { of: 'all' } }, stop.signal)) {
    if (event === 'task.completed') break;
  }
});

test('two of one name are refused, and the way out is named', async () => {
  const yaml = 'demo: true\nagents: { demo: { harn: { url: "http://127.0.0.1:9" } } }';
  await expect(gatewayWith(yaml)).rejects.toThrow(
    'agents: two are called demo; the built-in ones can be left out with "demo: false"',
  );
});
