/** The machinery every protocol's rendition rests on, tried with a wire that carries the bridge's own commands. */
import { describe, expect, test } from 'vitest';
import type { Command } from '../../src/model/commands.ts';
import type { Json, JsonObject } from '../../src/model/schema.ts';
import { isTerminal } from '../../src/model/words.ts';
import { essentialLog, essentialReceipt, spine } from './essence.ts';
import { asRendered, contains, fill, type Line, type Names, named } from './frames.ts';
import { type OpenWire, play } from './playing.ts';
import { readCore, readReceipts, readStory } from './story.ts';
import { openWorld, type World } from './world.ts';

describe('placeholders', () => {
  test('take what they first see and stand for it ever after', () => {
    const names: Names = new Map();
    const reported = { id: '<task_1>', at: '<time>', note: '<any>', path: '/tasks/<task_1>/events/<evt_1>' };
    const came = { id: 'task_01J', at: '2026-05-04T09:00:00Z', note: [1], path: '/tasks/task_01J/events/e7' };
    expect(asRendered(reported, came, names)).toEqual(reported);
    expect(Object.fromEntries(names)).toEqual({ task_1: 'task_01J', evt_1: 'e7' });
    expect(asRendered('<task_1>', 'task_01J', names)).toBe('<task_1>');
    expect(asRendered('<task_1>', 'task_02K', names)).toBe('task_02K');
    expect(asRendered('/tasks/<task_1>', '/tasks/task_02K', names)).toBe('/tasks/task_02K');
  });

  test('take values that are no texts, and know them again', () => {
    const names: Names = new Map();
    expect(asRendered('<number_1>', 7, names)).toBe('<number_1>');
    expect(asRendered('<number_1>', 7, names)).toBe('<number_1>');
    expect(asRendered('<number_1>', '7', names)).toBe('7');
    expect(fill({ id: '<number_1>', text: 'no. <number_1>' }, names)).toEqual({ id: 7, text: 'no. 7' });
  });

  test('hide nothing: what is missing, more or different shows as it came', () => {
    const names: Names = new Map();
    expect(asRendered({ a: 1, b: '<any>' }, { a: 1 }, names)).toEqual({ a: 1 });
    expect(asRendered({ a: 1 }, { a: 1, b: 2 }, names)).toEqual({ a: 1, b: 2 });
    expect(asRendered(['<any>'], ['x', 'y'], names)).toEqual(['<any>', 'y']);
    expect(asRendered({ a: '<time>' }, { a: 'noon' }, names)).toEqual({ a: 'noon' });
    expect(asRendered('a.b', 'a-b', names)).toBe('a-b');
  });

  test('only words with a number are names, so that markup stays markup', () => {
    const names: Names = new Map();
    expect(asRendered('<b>', 'bold', names)).toBe('bold');
    expect(fill('<b>bold</b>', names)).toBe('<b>bold</b>');
    expect(() => fill('<task_1>', names)).toThrow('<task_1> is played before anything showed what it stands for');
  });

  test('a recording names what nobody can foretell, and what it has seen before', () => {
    const names: Names = new Map([['session_1', 's-9']]);
    const id = '0f8fad5b-d9cb-469f-a165-70867728950e';
    expect(named({ id, session: 's-9', again: id }, names)).toEqual({
      id: '<uuid_1>',
      session: '<session_1>',
      again: '<uuid_1>',
    });
  });

  test('an event is known by some of its members', () => {
    const event = { event: 'tool.denied', payload: { name: 'send_mail', by: 'ana' } };
    expect(contains(event, { event: 'tool.denied' })).toBe(true);
    expect(contains(event, { event: 'tool.denied', payload: { by: 'ana' } })).toBe(true);
    expect(contains(event, { event: 'tool.denied', payload: { by: 'bo' } })).toBe(false);
    expect(contains(event, { payload: { by: { id: 'ana' } } })).toBe(false);
  });
});

/** Commands as frames. Like any door it says who it is, keeps what its wire said, and binds the wire's ids to ours. */
const commands: OpenWire = async ({ runtime, ana, workspace }: World, hear) => {
  const { bridge } = runtime;
  const actor = { ...ana, door: 'commands' };
  const hungUp = new AbortController();
  const reading: Promise<void>[] = [];

  async function read(id: string): Promise<void> {
    for await (const { event, payload } of bridge.follow(actor, { stream: { of: 'task', id } }, hungUp.signal)) {
      if (event === 'agent.message') hear({ said: textOf(payload) }, { on: 'events' });
      if (event.startsWith('task.')) hear({ state: String(payload.to) }, { on: 'events' });
      if (isTerminal(String(payload.to))) return;
    }
  }

  return {
    async say(frame) {
      const { id, kind, body } = frame as { id: string; kind: string; body: JsonObject };
      const input = kind === 'session.create' ? { workspace_id: workspace.id, ...body } : body;
      const command = { kind, actor, body: input, ext: { commands: { id } } } as unknown as Command;
      const { resource } = await bridge.submit(command as Extract<Command, { kind: 'task.submit' }>);
      hear({ id, [resource.object]: resource.id });
      if (resource.object !== 'task') return;
      const binding = { protocol: 'commands', scope: '', wire_id: id, to: { object: 'task', id: resource.id } };
      await bridge.submit({ kind: 'binding.set', actor, body: binding });
      reading.push(read(resource.id));
    },
    async close() {
      await Promise.all(reading);
      hungUp.abort();
    },
  };
};

function textOf(payload: JsonObject): string {
  const { parts } = payload.message as unknown as { parts: { text?: string }[] };
  return parts.map(({ text = '' }) => text).join('');
}

const client = (frame: Json): Line => ({ from: 'client', frame });
const bridge = (frame: Json): Line => ({ from: 'bridge', frame });
const event = (frame: Json): Line => ({ from: 'bridge', on: 'events', frame });
const submit = (text: string) => ({
  id: 'b',
  kind: 'task.submit',
  body: {
    session_id: '<session_1>',
    input: { role: 'user', parts: [{ type: 'text', text, visibility: 'public' }] },
    metadata: { from: 'a wire' },
  },
});

const RENDITION: readonly Line[] = [
  client({ id: 'a', kind: 'session.create', body: {} }),
  bridge({ id: 'a', session: '<session_1>' }),
  client(submit('read plan')),
  bridge({ id: 'b', task: '<task_1>' }),
  event({ state: 'SUBMITTED' }),
  event({ state: 'WORKING' }),
  event({ said: 'plan says: First look, then leap.' }),
  event({ state: 'COMPLETED' }),
];

describe('a rendition', () => {
  const story = { ...readStory('tool-allowed'), name: 'commands' };

  async function reported(lines: readonly Line[], record = false) {
    const world = await openWorld(story);
    try {
      const { frames } = await play(world, lines, commands, record);
      const receipts = (await world.runtime.store.receipts({})).map(({ receipt }) => receipt);
      return { frames, log: await world.log({ of: 'all' }), receipts, errorLog: [...world.errorLog] };
    } finally {
      await world.close();
    }
  }

  test("comes back as it was reported, with a log and a receipt that are the story's", async () => {
    const { frames, log, receipts, errorLog } = await reported(RENDITION);
    expect(frames).toEqual(RENDITION);
    expect(errorLog).toEqual([]);
    expect(log.some(({ event }) => event === 'vendor.tollbridge.bound')).toBe(true);
    expect(log.some(({ ext }) => ext !== undefined)).toBe(true);

    const core = { log: readCore('tool-allowed'), receipts: Object.values(readReceipts('tool-allowed')) };
    expect(essentialLog(log)).toEqual(essentialLog(core.log));
    expect(receipts.map(essentialReceipt)).toEqual(core.receipts.map(essentialReceipt));
    expect(spine(log, receipts)).toEqual([
      'SUBMITTED',
      'WORKING',
      'read_note: allow',
      'read_note: ok',
      'COMPLETED',
      'receipt: SUCCEEDED',
      'receipt: read_note succeeded',
    ]);
    expect(spine(core.log, core.receipts)).toEqual(spine(log, receipts));
  });

  test('of something else shows what was different, in frames and in the log', async () => {
    const other = RENDITION.map((line) => (line.frame === RENDITION[2]?.frame ? client(submit('read todo')) : line));
    const { frames, log } = await reported(other);
    expect(frames[6]).toEqual(event({ said: 'todo says: Water the plants. Call Ana.' }));
    expect(frames.filter((line, index) => JSON.stringify(line) !== JSON.stringify(other[index]))).toHaveLength(1);
    expect(essentialLog(log)).not.toEqual(essentialLog(readCore('tool-allowed')));
  });

  test('that leaves out what was said finds it at the end', async () => {
    const { frames } = await reported(RENDITION.slice(0, -2));
    expect(frames.slice(-2)).toEqual([
      event({ said: 'plan says: First look, then leap.' }),
      event({ state: 'COMPLETED' }),
    ]);
  });

  test('can be recorded from what the client says alone', async () => {
    const { frames } = await reported(
      RENDITION.flatMap((line, index) => (line.from === 'bridge' && index !== 1 ? [] : [line])),
      true,
    );
    expect(frames).toEqual(
      RENDITION.map((line) => (line === RENDITION[3] ? bridge({ id: 'b', task: 'task_1' }) : line)),
    );
  });
});
