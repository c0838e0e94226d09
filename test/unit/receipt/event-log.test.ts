/** What stands for events in a proof: one leaf per event whatever it holds, one root per task, the same however it was reached. */
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { storyLog } from '../../../fixtures/receipts/story.ts';
import type { CoreEvent } from '../../../src/model/events.ts';
import type { JsonObject } from '../../../src/model/schema.ts';
import { eventLeaf, eventText, logRoot } from '../../../src/receipt/merkle/event-hash.ts';
import { canonicalJson } from '../../../src/receipt/seal/canonical-json.ts';
import { quick } from '../../support/gateway/agents.ts';
import { openTestGateway } from '../../support/gateway/test-gateway.ts';

const sha = (...parts: (Buffer | string)[]) => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest();
};

/** The definition, from the specification and not from the code: leaves 00, nodes 01, split at the largest power of two below. */
function plainRoot(leaves: readonly Buffer[]): Buffer {
  if (leaves.length === 1) return leaves[0]!;
  let half = 1;
  while (half * 2 < leaves.length) half *= 2;
  return sha(Buffer.from([1]), plainRoot(leaves.slice(0, half)), plainRoot(leaves.slice(half)));
}

const withPayload = (payload: unknown): CoreEvent =>
  ({ ...storyLog()[0]!, payload: payload as JsonObject }) as CoreEvent;

describe('the leaf of an event', () => {
  test('is the hash of a zero byte and the canonical text', () => {
    const [event] = storyLog();
    expect(eventLeaf(event!)).toBe(`sha256:${sha(Buffer.from([0]), canonicalJson(event)).toString('hex')}`);
  });

  test('is the same for the event as it is committed and as it is read back, whatever a caller put into it', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), fc.string({ unit: 'binary' }), (payload, word) => {
        const event = withPayload({ payload, [word]: word, gone: undefined, list: [undefined, Number.NaN, -0] });
        const read = JSON.parse(JSON.stringify(event)) as CoreEvent;
        expect(eventLeaf(event)).toBe(eventLeaf(read));
      }),
    );
  });

  test('is there for what has no canonical form, and tells one such value from another', () => {
    const odd = ['\ud800', '\udfff', 2 ** 60, 2 ** 60 + 4096, 'x'].map((value) => eventLeaf(withPayload({ value })));
    expect(new Set(odd).size).toBe(5);
    expect(eventText(withPayload({ 10: 1, 9: '\ud800' }))).toContain('"payload":{"10":1,"9":"\\ud800"}');
  });

  test('covers every member, also one an event does not have', () => {
    const [event] = storyLog();
    const leaves = Object.keys(event!).map((key) => eventLeaf({ ...event!, [key]: 'changed' } as CoreEvent));
    leaves.push(eventLeaf(event!), eventLeaf({ ...event!, ...{ added: true } }));
    expect(new Set(leaves).size).toBe(Object.keys(event!).length + 2);
  });
});

test('the root over a task is the one of RFC 6962, for any number of events', () => {
  const log = storyLog();
  const leaves = log.map((event) => sha(Buffer.from([0]), canonicalJson(event)));
  for (let count = 1; count <= log.length; count += 1) {
    expect(logRoot(log.slice(0, count))).toBe(`sha256:${plainRoot(leaves.slice(0, count)).toString('hex')}`);
  }
});

test('a receipt commits to the events of its task, from the first to the one that ends it', async () => {
  const life = await openTestGateway({ agents: [quick()] });
  const room = await life.room();
  const task = await room.task();
  await life.until(task.id);
  const [receipt] = await life.receipts(task.id);
  const own = (await life.events(task.id)).filter(({ resource }) => resource.object === 'task');
  const leaves = own.map((event) => sha(Buffer.from([0]), canonicalJson(event)));
  expect(own.at(-1)?.event).toBe('task.completed');
  expect(receipt?.replay_input.materials[0]).toEqual({
    kind: 'event_log',
    id: `event_log_${task.id}`,
    content_type: 'application/jsonl; digest=rfc6962-sha256; canonical=rfc8785',
    uri: `/v1/tasks/${task.id}/events`,
    sha256: `sha256:${plainRoot(leaves).toString('hex')}`,
    metadata: {
      algorithm: 'rfc6962-sha256',
      task_id: task.id,
      count: own.length,
      first_event_id: own[0]?.id,
      last_event_id: own.at(-1)?.id,
      through_sequence: own.length,
    },
  });
});
