/** Every story with the work done elsewhere: people and rules of one house, the demo agent of another, runs in between. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { runsBackend } from '../adapters/runs/client.ts';
import type { Message } from '../src/model/resources.ts';
import type { Row } from '../src/ports.ts';
import { openRunsDoor, PAIR } from './stories/runs-door.ts';
import { readStory, type Step, storyNames } from './stories/story.ts';
import { openWorld, type World } from './stories/world.ts';
import { openTestHouse, says, type TestHouse } from './support/house.ts';
import { openRelay, type Relay } from './support/relay.ts';

interface Ending {
  readonly state: string;
  readonly failure?: string;
  /** What was said here; the same as was said there. */
  readonly said: readonly string[];
  /** As the receipt here has them. */
  readonly tools: readonly string[];
}

const HELLO = 'Hello! I am the demo agent: no network, no keys, always the same answer to the same words.';
const ENDINGS: Readonly<Record<string, Ending>> = {
  'approval-timeout': {
    state: 'COMPLETED',
    said: ['I was not allowed to send mail to bo: nobody answered in time'],
    tools: ['send_mail failed'],
  },
  artifact: { state: 'COMPLETED', said: ['I wrote report.md, and a patch that shows what changed.'], tools: [] },
  canceled: { state: 'CANCELED', said: [], tools: ['send_mail failed'] },
  failed: { state: 'FAILED', failure: 'out_of_paper', said: ['log is written.'], tools: ['write_note succeeded'] },
  handoff: {
    state: 'COMPLETED',
    said: ['helper says: plan says: First look, then leap.'],
    tools: ['handoff succeeded'],
  },
  hello: { state: 'COMPLETED', said: [HELLO], tools: [] },
  'input-required': { state: 'COMPLETED', said: ['You said: blue'], tools: [] },
  resumed: { state: 'COMPLETED', said: [HELLO], tools: [] },
  'tool-allowed': { state: 'COMPLETED', said: ['plan says: First look, then leap.'], tools: ['read_note succeeded'] },
  'tool-approved': { state: 'COMPLETED', said: ['Mail to bo is sent.'], tools: ['send_mail succeeded'] },
  'tool-blocked': {
    state: 'COMPLETED',
    said: ['I was not allowed to delete plan: notes are kept for good', 'plan says: First look, then leap.'],
    tools: ['delete_note failed', 'read_note succeeded'],
  },
  // Runs have no no that is smaller than the run.
  'tool-denied': { state: 'FAILED', failure: 'rejected_by_signal', said: [], tools: ['send_mail canceled'] },
  'tool-modified': { state: 'COMPLETED', said: ['Mail to team is sent.'], tools: ['send_mail succeeded'] },
  'work-refused': { state: 'FAILED', failure: 'rejected_by_signal', said: [], tools: ['demo canceled'] },
};

/** Here people are asked about mail and about whether demo works at all, and nothing else is anybody's business. */
const RULES = '[{ id: all, then: allow }, { id: asked, when: { tool: [send_mail, demo] }, then: ask, expires: 24h }]';
const quiet = { info() {}, warn() {}, error() {} };

async function take(step: Step, world: World, near: TestHouse, relay: Relay, id: string): Promise<void> {
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

describe('told by our client to our server', () => {
  test.each(storyNames())('%s', async (name) => {
    const story = readStory(name);
    const world = await openWorld(story);
    onTestFinished(() => world.close());
    const door = await openRunsDoor(world);
    onTestFinished(() => door.close());
    const relay = await openRelay(door.url);
    const config = { url: relay.url, secret: 'far', timeouts: { poll_ms: 50, silence_ms: 5000, cancel_ms: 10_000 } };
    const agent = runsBackend('far', config, { log: quiet, secret: async () => PAIR });
    const near = await openTestHouse({ agents: [agent], rules: RULES, settings: { graceMs: 10_000 } });
    const room = await near.room();
    const { id } = await room.task({ input: says(story.world.says) });
    for (const step of story.steps) await take(step, world, near, relay, id);

    const { state, failure, said, tools } = ENDINGS[name] as Ending;
    const ended = await near.until(id);
    expect([ended.status, ended.failure?.code]).toEqual([state, failure]);
    const where = { session_id: room.session };
    const messages = await near.house.store.list<Message & Row>({ object: 'message', where });
    const texts = messages.flatMap(({ role, parts }) =>
      role === 'assistant' ? [parts.map((part) => ('text' in part ? part.text : '')).join('')] : [],
    );
    expect(texts).toEqual(said);
    const [receipt] = await near.receipts(id);
    expect(receipt?.side_effects.tool_calls.map(({ tool, status }) => `${tool} ${status}`)).toEqual(tools);
    await world.house.idle();
    // Whatever was left behind there is what the story leaves, unless the no of this side was the larger one.
    const left = { outbox: [...world.tools.outbox], notes: Object.fromEntries(world.tools.notes) };
    expect(left).toEqual(story.leaves);
  });
});
