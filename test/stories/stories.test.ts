/** Every story in every protocol that can tell it: the same frames, the same log, the same receipts; and again as a replay. */
import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { describe, expect, test } from 'vitest';
import { AskRecord } from '../../src/model/asks.ts';
import type { CoreEvent } from '../../src/model/events.ts';
import { Receipt } from '../../src/model/receipt.ts';
import { RESOURCES } from '../../src/model/resources.ts';
import { check } from '../../src/model/validate.ts';
import { logRoot } from '../../src/receipt/merkle/event-hash.ts';
import { canonicalJson } from '../../src/receipt/seal/canonical-json.ts';
import { verifyReceipt } from '../../src/receipt/verify/verify.ts';
import { leftBy, perform, sides } from './perform.ts';
import { livedThrough, repeated, replay, undeclared } from './replaying.ts';
import { protocols, readCore, readKeys, readReceipts, readStory, renderedIn, type Story, storyNames } from './story.ts';

/** A receipt commits to the events of its task in this log, to the last one, and to nothing else. */
function expectSealedOver({ identifiers, replay_input }: Receipt, log: readonly CoreEvent[]): void {
  const { task_id } = identifiers;
  const own = log.filter(({ resource }) => resource.object === 'task' && resource.id === task_id);
  const end = own.findIndex(({ event }) => ['task.completed', 'task.failed', 'task.canceled'].includes(event));
  const covered = own.slice(0, end + 1);
  const material = replay_input.materials.find(({ kind }) => kind === 'event_log');
  expect(material).toMatchObject({ sha256: logRoot(covered), metadata: { task_id, count: covered.length } });
}

const publishedSchema = compilePublished();
const stories = storyNames().map(readStory);
const renditions = stories.flatMap((story) => renderedIn(story.name).map((protocol) => ({ story, protocol })));

test('these are the stories', () => {
  expect(stories.map(({ name }) => name)).toEqual([
    'approval-timeout',
    'artifact',
    'canceled',
    'failed',
    'handoff',
    'hello',
    'input-required',
    'resumed',
    'tool-allowed',
    'tool-approved',
    'tool-blocked',
    'tool-denied',
    'tool-modified',
    'work-refused',
  ]);
});

describe('every protocol tells every story or says why not', () => {
  test.each(stories)('$name', ({ name, cannot }) => {
    const reported = renderedIn(name);
    expect(reported.filter((protocol) => !protocols().includes(protocol))).toEqual([]);
    expect(Object.keys(cannot).filter((protocol) => reported.includes(protocol))).toEqual([]);
    expect(protocols().filter((protocol) => !reported.includes(protocol) && !cannot[protocol])).toEqual([]);
  });
});

describe.each(renditions)('$story.name, as $protocol tells it', ({ story, protocol }) => {
  test('says, writes down and receipts what the story says', async () => {
    const performed = protocol === 'core' ? await lived(story) : await perform(story, protocol);
    const { came, reported } = await sides(story, performed);
    expect(came.frames).toEqual(reported.frames);
    expect(came.log).toEqual(reported.log);
    expect(came.receipts).toEqual(reported.receipts);
    expect(came.left).toEqual(reported.left);
    expect(performed.errorLog).toEqual([]);
    expect(performed.undecided).toEqual([]);
    for (const receipt of Object.values(performed.receipts)) expectSealedOver(receipt, performed.log);
    if (performed.read)
      expect(performed.read).toEqual(performed.log.filter(({ task_id }) => task_id === performed.taskId));
  });
});

describe.each(stories)('$name, replayed onto itself', (story) => {
  test('repeats the record, does nothing again, and comes to the same receipt each time', async () => {
    const performed = await lived(story);
    const { runs = [], leftAfterwards, errorLog } = performed.after ?? {};
    const source = performed.log.filter(({ task_id }) => task_id === performed.taskId);
    for (const run of runs) {
      expect(repeated(run, source)).toEqual(livedThrough(source));
      expect(run.receipt.lifecycle).toEqual(performed.receipts['receipt.json']?.lifecycle);
      expect(run.receipt.replay_input.determinism).toBe('byte_deterministic');
    }
    expect(runs).toHaveLength(2);
    const [first, second] = runs.map((run) => canonicalJson(undeclared(run)));
    expect(second).toBe(first);
    expect(leftAfterwards).toEqual(story.leaves);
    expect(errorLog).toEqual([]);
  });
});

describe.each(stories)('$name, as it is written down', ({ name }) => {
  const log = readCore(name);
  const receipts = readReceipts(name);

  test('every event and every resource in it has the shape it should', () => {
    expect(log.length).toBeGreaterThan(0);
    for (const event of log) {
      check(RESOURCES.event, event, `${name} ${event.id}`);
      for (const resource of resourcesIn(event.payload)) checkResource(resource, `${name} ${event.id}`);
    }
  });

  test('sequences have no gaps and ids no repetitions', () => {
    const ids = log.map(({ id }) => id);
    expect(ids).toEqual([...new Set(ids)].sort());
    const last = new Map<string, number>();
    for (const { id, resource, sequence } of log) {
      const of = `${resource.object} ${resource.id}`;
      expect([id, sequence]).toEqual([id, (last.get(of) ?? 0) + 1]);
      last.set(of, sequence);
    }
  });

  test('its receipts are sound, and are the ones the log speaks of', () => {
    const issued = log.filter(({ event }) => event === 'receipt.issued').map(({ payload }) => payload.receipt_id);
    const inOrder = Object.values(receipts).sort((a, b) => chainIndex(a) - chainIndex(b));
    expect(inOrder.map(({ receipt_id }) => receipt_id)).toEqual(issued);
    let previous: Receipt | null = null;
    for (const receipt of inOrder) {
      expectSealedOver(receipt, log);
      check(Receipt, receipt, name);
      expect(published(receipt)).toEqual([]);
      expect(verifyReceipt(receipt, { keys: readKeys(), previous })).toMatchObject({ valid: true });
      previous = receipt;
    }
  });
});

test('both receipts of a handoff name the other task, and the giver names the receipt of the work it gave', () => {
  const { 'receipt.json': giver, 'receipt.task_2.json': taker } = readReceipts('handoff');
  expect(giver?.side_effects.a2a_handoffs).toEqual([
    { target_agent: 'helper', task_id: 'task_2', status: 'completed', receipt_id: 'receipt_1' },
  ]);
  expect(taker?.side_effects.a2a_handoffs).toEqual([
    { target_agent: 'helper', task_id: 'task_1', status: 'completed' },
  ]);
  expect([giver?.identifiers.task_id, taker?.identifiers.task_id]).toEqual(['task_1', 'task_2']);
  expect(taker?.receipt_id).toBe('receipt_1');
});

test('the keys beside the stories are the ones they are signed with', async () => {
  const { after } = await perform(readStory('hello'), 'core', {
    afterwards: async ({ runtime }) => runtime.keyring.jwks(),
  });
  expect(after).toEqual(readKeys());
});

const performances = new Map<string, ReturnType<typeof live>>();

/** Each story is lived through once here, and then replayed twice. */
function lived(story: Story) {
  const known = performances.get(story.name) ?? live(story);
  performances.set(story.name, known);
  return known;
}

function live(story: Story) {
  return perform(story, 'core', {
    afterwards: async (world, { taskId }) => {
      const runs = [await replay(world, taskId), await replay(world, taskId)];
      return { runs, leftAfterwards: leftBy(world), errorLog: [...world.errorLog] };
    },
  });
}

function resourcesIn(value: unknown): { object: string }[] {
  if (typeof value !== 'object' || value === null) return [];
  const within = Object.values(value).flatMap(resourcesIn);
  const { object, created_at } = value as { object?: unknown; created_at?: unknown };
  return typeof object === 'string' && created_at !== undefined ? [value as { object: string }, ...within] : within;
}

function checkResource(resource: { object: string }, what: string): void {
  if (resource.object === 'ask') check(AskRecord, resource, what);
  else check(RESOURCES[resource.object as keyof typeof RESOURCES], resource, what);
}

function chainIndex({ metadata }: Receipt): number {
  return (metadata as { chain: { index: number } }).chain.index;
}

/** What the published schema has against it. */
function published(receipt: Receipt): unknown[] {
  return publishedSchema(receipt) ? [] : (publishedSchema.errors ?? []);
}

function compilePublished() {
  const path = '../../fixtures/harn/agents-protocol-receipts/schemas/receipt-2026-04-25.schema.json';
  const file = new URL(path, import.meta.url);
  const ajv = new Ajv2020({ strict: false });
  formats.default(ajv);
  return ajv.compile(JSON.parse(readFileSync(file, 'utf8')));
}
