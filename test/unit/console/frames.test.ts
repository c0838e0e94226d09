/** An event as each protocol's door tells it: rendered by the adapters' own code, after the events before it. */
import { expect, test } from 'vitest';
import { adapters } from '../../../adapters/index.ts';
import { framesOf } from '../../../src/console/frames.ts';
import type { CoreEvent } from '../../../src/model/events.ts';
import type { FrameView } from '../../../src/ports/index.ts';
import { scriptedAgent } from '../../support/gateway/agents.ts';
import { openTestGateway } from '../../support/gateway/test-gateway.ts';

const views = () =>
  new Map(adapters.flatMap(({ name, view }): [string, FrameView][] => (view ? [[name, view()]] : [])));

async function lived(): Promise<readonly CoreEvent[]> {
  const agent = scriptedAgent(async (sink) => {
    await sink.act({ kind: 'tool', tool: 'read_note', arguments: { name: 'plan' }, effect: 'read' }, async () => ({
      status: 'ok',
      output: { text: 'First look.' },
    }));
    return undefined;
  });
  const gateway = await openTestGateway({ agents: [agent], rules: '- { id: ok, when: {}, then: allow }' });
  const room = await gateway.room();
  const task = await room.task();
  await gateway.until(task.id);
  return await gateway.events(task.id);
}

test('every protocol that tells events tells an ended call in its own words', async () => {
  const events = await lived();
  const done = events.find(({ event }) => event === 'tool.completed') as CoreEvent;
  const shown = new Map((await framesOf(done, events, views())).map((one) => [one.protocol, one]));
  expect([...shown.keys()].sort()).toEqual(['a2a', 'acp', 'ahp', 'harn', 'mcp', 'runs']);
  const text = (protocol: string) => JSON.stringify(shown.get(protocol)?.frames);
  expect(text('acp')).toContain('"sessionUpdate":"tool_call_update"');
  expect(text('mcp')).toContain('First look.');
  expect(text('ahp')).toContain('post_action');
  expect(text('harn')).toContain(done.id);
  for (const protocol of ['acp', 'mcp', 'ahp', 'harn', 'runs']) {
    expect([protocol, shown.get(protocol)?.left_out]).toEqual([protocol, null]);
  }
});

test('a protocol without a frame for an event says why', async () => {
  const events = await lived();
  const decided = events.findLast(({ event }) => event === 'vendor.tollbridge.decided') as CoreEvent;
  const shown = await framesOf(decided, events, views());
  const a2a = shown.find(({ protocol }) => protocol === 'a2a');
  expect(a2a).toMatchObject({
    frames: [],
    left_out: 'another event of the task says it: its state, the message, or the call',
  });
});

test('an event that cannot be rendered shows nothing, and the others still do', async () => {
  const events = await lived();
  const done = events.find(({ event }) => event === 'tool.completed') as CoreEvent;
  const broken: FrameView = {
    frames() {
      throw new TypeError('a member is missing');
    },
    leftOut: {},
  };
  const shown = await framesOf(done, events, new Map([...views(), ['broken', broken]]));
  expect(shown.find(({ protocol }) => protocol === 'broken')).toMatchObject({
    frames: [],
    left_out: 'it cannot be rendered',
  });
  expect(shown.find(({ protocol }) => protocol === 'harn')?.frames).toHaveLength(1);
});
