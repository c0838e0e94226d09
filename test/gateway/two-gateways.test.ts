/**
 * Every story through two gateways in a row, on real HTTP: people and rules of the near one, rules, agent and tools of the far one,
 * a protocol between them. Both accounts say the same, but for what `fixtures/stories/between.json` says the protocol cannot carry;
 * a line there that is no longer true fails here.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { a2aBackend } from '../../adapters/a2a/client/backend.ts';
import { settingsOf as a2aSettings } from '../../adapters/a2a/config.ts';
import { a2aDoor } from '../../adapters/a2a/server/door.ts';
import { harnBackend } from '../../adapters/harn/client/backend.ts';
import { settingsOf as harnSettings } from '../../adapters/harn/config.ts';
import { harnDoor } from '../../adapters/harn/server/door.ts';
import { runsBackend } from '../../adapters/runs/client/backend.ts';
import type { AgentBackend } from '../../src/ports/index.ts';
import { checkLinks } from '../../src/receipt/verify/linked.ts';
import { verifyReceipt } from '../../src/receipt/verify/verify.ts';
import { type Aspect, aspectsOf, differences } from '../stories/aspects.ts';
import { openHttpDoor } from '../stories/doors/http.ts';
import { openRunsDoor, PAIR } from '../stories/doors/runs.ts';
import { readCore, readReceipts, readStory, STORIES, type Step, storyNames } from '../stories/story.ts';
import { openWorld, type World } from '../stories/world.ts';
import { openTestGateway, says, type TestGateway } from '../support/gateway/test-gateway.ts';
import { WORK_PROTOCOLS, type WorkProtocol } from '../support/gateway/two-gateways.ts';
import { openRelay, type Relay } from '../support/wire/relay.ts';

interface Line {
  /** What the near account cannot say of what the far one says. */
  readonly loses?: readonly Aspect[];
  /** What comes out otherwise at the far gateway because the protocol has no smaller word. */
  readonly changes?: readonly Aspect[];
  readonly why: string;
}
const BETWEEN = JSON.parse(readFileSync(`${STORIES}between.json`, 'utf8')) as Record<
  WorkProtocol,
  Record<string, Line>
>;

/** Here people are asked about mail and about whether demo works at all, and nothing else is anybody's business. */
const RULES = '[{ id: all, then: allow }, { id: asked, when: { tool: [send_mail, demo] }, then: ask, expires: 24h }]';
const TOKEN = 'a-token-for-ana';
const quiet = { info() {}, warn() {}, error() {} };
const real = { now: () => new Date().toISOString() };
/** What was seen to be lost of the aspects a protocol is said never to carry. */
const neverCarried = new Set<string>();
const timeouts = { poll_ms: 50, silence_ms: 5000, cancel_ms: 10_000 };

async function doorOf(protocol: WorkProtocol, world: World, publicUrl: string) {
  const { personaId } = world;
  if (protocol === 'runs') return await openRunsDoor(world);
  const sign = (text: string) => world.runtime.keyring.signer().sign(text);
  if (protocol === 'harn')
    return await openHttpDoor(world, TOKEN, (deps) => harnDoor(harnSettings({}), deps), { sign });
  const settings = a2aSettings({
    workspace: world.workspace.id,
    public_url: publicUrl,
    ...(personaId && { persona_id: personaId }),
  } as never);
  return await openHttpDoor(world, TOKEN, (deps) => a2aDoor(settings, deps), { sign });
}

function agentAt(protocol: WorkProtocol, url: string, { workspace, personaId }: World): AgentBackend {
  const deps = { log: quiet, clock: real, secret: async () => (protocol === 'runs' ? PAIR : TOKEN) };
  const config = { url, secret: 'far', timeouts };
  if (protocol === 'runs') return runsBackend('far', config, deps);
  if (protocol === 'a2a') return a2aBackend('far', { ...config, url: `${url}/a2a/demo` }, deps);
  const there = { workspace_id: workspace.id, ...(personaId && { persona_id: personaId }) };
  return harnBackend({ ...config, ...there, name: 'far' }, deps);
}

async function take(step: Step, world: World, near: TestGateway, relay: Relay, id: string): Promise<void> {
  if ('until' in step) await world.until(step.until);
  else if ('pass_ms' in step) world.pass(step.pass_ms);
  else if ('release' in step) world.release();
  else if ('drop_reader_after' in step) relay.cut();
  else if ('cancel' in step) {
    // What is under way there has to be known here before it can be said to have been stopped.
    await near.seen(id, 'tool.requested');
    await near.send('task.cancel', { task_id: id, ...step.cancel });
  } else if ('answer' in step) {
    const [ask] = await near.asks(id);
    await near.answer(ask!.id, step.answer);
  }
}

describe.each(WORK_PROTOCOLS)('over %s', (protocol) => {
  test.each(storyNames())('%s', async (name) => {
    const story = readStory(name);
    const world = await openWorld(story);
    onTestFinished(() => world.close());
    const relay = await openRelay('http://127.0.0.1:9');
    const door = await doorOf(protocol, world, relay.url);
    onTestFinished(() => door.close());
    relay.to(door.url);
    const near = await openTestGateway({
      agents: [agentAt(protocol, relay.url, world)],
      rules: RULES,
      settings: { graceMs: 10_000 },
    });
    const { id } = await (await near.room()).task({ input: says(story.world.says) });
    for (const step of story.steps) await take(step, world, near, relay, id);
    await near.until(id);
    await world.runtime.idle();

    const log = await world.log({ of: 'all' });
    const first = log.find(
      ({ event, payload }) =>
        event === 'task.submitted' && !(payload.task as { parent_task_id?: string }).parent_task_id,
    );
    const farId = first?.task_id as string;
    const [a] = await near.receipts(id);
    const [stored] = await world.runtime.store.receipts({ task: farId });
    const b = stored!.receipt;

    // Both are valid, and each names the other.
    expect(verifyReceipt(a, { keys: near.runtime.keyring.jwks() }).valid).toBe(true);
    expect(verifyReceipt(b, { keys: world.runtime.keyring.jwks() }).valid).toBe(true);
    expect(checkLinks([a!], { receipts: [{ receipt: b }] })).toMatchObject([{ state: 'linked' }]);
    expect(checkLinks([b], { receipts: [{ receipt: a! }] })).toMatchObject([{ state: 'linked' }]);

    // Both say the same of what happened, and it is what the story says.
    const here = aspectsOf(a!, await near.events(id));
    const there = aspectsOf(
      b,
      log.filter(({ task_id }) => task_id === farId),
    );
    const reported = readCore(name).filter(({ task_id }) => task_id === readReceipts(name)['receipt.json']?.subject.id);
    const asRendered = aspectsOf(readReceipts(name)['receipt.json']!, reported);
    const { loses = [], changes = [] } = BETWEEN[protocol][name] ?? {};
    const always = BETWEEN[protocol]['*']?.loses ?? [];
    const lost = differences(here, there);
    for (const aspect of lost) if (always.includes(aspect)) neverCarried.add(`${protocol} ${aspect}`);
    const seen = { loses: lost.filter((aspect) => !always.includes(aspect)), changes: differences(there, asRendered) };
    if (process.env.SEEN) process.stdout.write(`SEEN ${protocol} ${name} ${JSON.stringify({ lost, ...seen })}\n`);
    const detail = JSON.stringify({ here, there, asRendered }, undefined, 1);
    expect(seen, detail).toEqual({ loses, changes });
    expect(a?.metadata?.alarms).toBeUndefined();
    if (changes.length === 0)
      expect({ outbox: [...world.tools.outbox], notes: Object.fromEntries(world.tools.notes) }).toEqual(story.leaves);
  });
});

test('each line of what cannot be carried says why, and is about a story that there is', () => {
  for (const [protocol, lines] of Object.entries(BETWEEN)) {
    expect(WORK_PROTOCOLS).toContain(protocol);
    for (const [name, { why, loses = [], changes = [] }] of Object.entries(lines)) {
      if (name === '*') {
        expect(loses.filter((aspect) => !neverCarried.has(`${protocol} ${aspect}`))).toEqual([]);
        continue;
      }
      expect(storyNames()).toContain(name);
      expect(why.length).toBeGreaterThan(20);
      expect(loses.length + changes.length).toBeGreaterThan(0);
    }
  }
});
