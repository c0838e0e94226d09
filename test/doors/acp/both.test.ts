/**
 * Our client against our server: a gateway whose agent is another gateway, with nothing between them but the protocol's lines.
 * The gateway behind lives through the story as it is written; the one in front sees the same turn of events.
 */
import { PassThrough } from 'node:stream';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { AgentProcessOptions } from '../../../adapters/acp/client/agent-process.ts';
import { acpBackend } from '../../../adapters/acp/client/backend.ts';
import { settingsOf } from '../../../adapters/acp/config.ts';
import { serveStreams } from '../../../adapters/acp/server/stdio.ts';
import { essentialLog, spine } from '../../stories/essence.ts';
import { leftBy } from '../../stories/perform.ts';
import { readCore, readStory, storyNames } from '../../stories/story.ts';
import { openWorld, type World } from '../../stories/world.ts';
import { openTestGateway, says, type TestGateway } from '../../support/gateway/test-gateway.ts';

/** Stands where a subprocess would: the lines are the same. */
function behind({ runtime, ana, personaId, logger }: World): NonNullable<AgentProcessOptions['start']> {
  return async () => {
    const [stdin, stdout] = [new PassThrough(), new PassThrough()];
    const config = personaId ? { persona: personaId } : {};
    const served = serveStreams(settingsOf(config), { log: logger }, runtime.bridge, {
      actor: ana,
      input: stdin,
      output: stdout,
    });
    const exited = served.then(() => {
      stdout.end();
      return { code: 0, signal: null };
    });
    return {
      pid: 0,
      stdin,
      stdout,
      exited,
      async close() {
        stdin.end();
        await exited;
      },
    };
  };
}

/** What the other gateway asks about its own work is asked here, too; everything else as it is without rules. */
const RULES = '- { id: work, when: { tool: demo }, then: ask }';

async function openBoth(name: string): Promise<{ world: World; front: TestGateway }> {
  const world = await openWorld(readStory(name));
  onTestFinished(() => world.close());
  const log = { info() {}, warn() {}, error() {} };
  const secret = async () => '';
  const clock = { now: () => '2026-01-01T00:00:00.000Z' };
  let count = 0;
  const ids = { next: (prefix: string) => `${prefix}_f${++count}` };
  const agent = acpBackend('other', { command: ['other'], cwd: '/notes' }, { log, secret, clock, ids }, behind(world));
  onTestFinished(() => agent.close?.());
  return { world, front: await openTestGateway({ agents: [agent], rules: RULES, settings: { graceMs: 5_000 } }) };
}

const {
  'approval-timeout': timeout,
  resumed,
  ...ends
} = {
  'approval-timeout': 'COMPLETED',
  artifact: 'COMPLETED',
  canceled: 'CANCELED',
  failed: 'FAILED',
  handoff: 'COMPLETED',
  hello: 'COMPLETED',
  'input-required': 'COMPLETED',
  resumed: 'COMPLETED',
  'tool-allowed': 'COMPLETED',
  'tool-approved': 'COMPLETED',
  'tool-blocked': 'COMPLETED',
  'tool-denied': 'COMPLETED',
  'tool-modified': 'COMPLETED',
  'work-refused': 'FAILED',
};

test('every story but the one about a reader is lived through', () => {
  expect([...Object.keys(ends), 'approval-timeout', 'resumed'].sort()).toEqual(storyNames());
  expect([timeout, resumed]).toEqual(['COMPLETED', 'COMPLETED']);
});

describe('the gateway behind lives through the story, the one in front sees it', () => {
  test.each(Object.entries(ends))('%s', async (name, end) => {
    const { world, front } = await openBoth(name);
    const { story } = world;
    const room = await front.room();
    const task = await room.task({ input: says(story.world.says) });
    for (const step of story.steps) {
      if ('until' in step && step.until === 'held') await world.until(step.until);
      if ('until' in step && step.until !== 'held' && step.until.event === 'vendor.tollbridge.ask_opened') {
        await world.until(step.until);
      }
      if ('pass_ms' in step) world.pass(step.pass_ms);
      if ('answer' in step) {
        const [ask] = await front.asks(task.id);
        await front.answer(ask!.id, step.answer);
      }
      if ('cancel' in step) await front.send('task.cancel', { task_id: task.id, ...step.cancel });
    }
    const ended = await front.until(task.id);
    await world.runtime.idle();
    expect(ended.status).toBe(end);
    const log = await world.log({ of: 'all' });
    const core = readCore(name);
    // A cancel carries no reason over this wire, so there the bones have to do.
    if (name === 'canceled') expect(spine(log, [])).toEqual(spine(core, []));
    else expect(essentialLog(log)).toEqual(essentialLog(core));
    expect(leftBy(world)).toEqual(story.leaves);
    expect(world.errorLog).toEqual([]);
    const said = (events: Awaited<ReturnType<TestGateway['events']>>, taskId: string) =>
      events
        .filter((event) => event.event === 'agent.message' && event.task_id === taskId)
        .flatMap(({ payload }) => (payload.message as { parts?: { text?: string }[] }).parts ?? [])
        .flatMap(({ text }) => (text === undefined ? [] : [text]))
        .join('');
    expect(said(await front.events(task.id), task.id)).toContain(said(core, 'task_1'));
    const [receipt] = await front.receipts(task.id);
    expect(receipt?.lifecycle.final_state).toBe(end === 'COMPLETED' ? 'SUCCEEDED' : end);
  });

  test('approval-timeout: the question runs out behind, and is withdrawn in front', async () => {
    const { world, front } = await openBoth('approval-timeout');
    const task = await (await front.room()).task({ input: says(world.story.world.says) });
    const [ask] = await front.asks(task.id);
    world.pass(600_000);
    const ended = await front.until(task.id);
    expect(ended.status).toBe('COMPLETED');
    expect(essentialLog(await world.log({ of: 'all' }))).toEqual(essentialLog(readCore('approval-timeout')));
    const closed = (await front.events(task.id)).find(({ event }) => event === 'vendor.tollbridge.ask_closed');
    expect(closed?.payload).toMatchObject({ ask_id: ask!.id, state: 'canceled' });
  });
});
