/** Work that does one of everything, played and replayed, and what a faithful replay of it looks like. */
import { expect } from 'vitest';
import type { AskRecord } from '../../../src/model/asks.ts';
import type { CommandBody } from '../../../src/model/commands.ts';
import { vendorEvent } from '../../../src/model/events.ts';
import type { Task } from '../../../src/model/resources.ts';
import type { Json, JsonObject } from '../../../src/model/schema.ts';
import type { Abilities } from '../../../src/ports/index.ts';
import { eventually } from '../eventually.ts';
import {
  kinds,
  openTestGateway,
  REAL_TIME,
  type TestGateway,
  type TestGatewayOptions,
} from '../gateway/test-gateway.ts';
import { type Script, scripted, text, toolbox } from './script.ts';

export const RULES = `
- { id: ordinary, then: allow }
- { id: careful, when: { kind: prompt, tool: careful }, then: ask, say: think first }
- { id: people, when: { kind: tool, tool: ask* }, then: ask, say: a person decides }
- { id: hasty, when: { kind: tool, tool: quick }, then: ask, expires: 30ms, say: a person decides quickly }
- { id: never, when: { kind: [tool, memory.write], tool: no* }, then: block, say: not here }
- { id: mended, when: { kind: tool, tool: mend* }, then: modify, set: { safe: true }, say: made safe }
- { id: later, when: { kind: tool, tool: later* }, then: defer, retry_after: 1ms, say: not now }
`;

export const LONG = 'a long story '.repeat(40);

/** Everything an agent can do, some of it at once. */
export const everything: Script = async ({ sink, work: { recorded } }) => {
  await sink.emit(text('let me see'));
  const response = (await recorded?.model('main:1')) ?? { text: 'use the tools' };
  await sink.emit({
    event: 'span.completed',
    payload: {
      span: { id: 's1', kind: 'llm', call_id: 'main:1' },
      model: { provider: 'acme', model: 'large' },
      response,
      secret_names: ['ACME_LOGIN'],
    },
  });
  await sink.emit({
    event: 'vendor.tollbridge.usage',
    payload: { provider: 'acme', model: 'large', usd_micros: 1500, input_tokens: 10, output_tokens: 20 },
  });
  await sink.emit({
    event: 'vendor.tollbridge.message_delta',
    payload: { message_id: 'm', role: 'assistant', text: 'h' },
  });
  await sink.emit({ event: vendorEvent('com.example.mood'), payload: { mood: 'good' } });
  await sink.artifact({ kind: 'file', name: 'a.txt', mime_type: 'text/plain', bytes: Buffer.from('a file') });
  const call = (tool_call_id: string, tool: string, more: JsonObject = {}) =>
    sink.act({ kind: 'tool', tool, tool_call_id, arguments: { n: tool_call_id, ...more } });
  await call('w1', 'write');
  await call('f1', 'fail');
  await call('t1', 'throw');
  await call('b1', 'no');
  await call('m1', 'mend');
  await call('l1', 'later');
  await call('big', 'write', { LONG });
  await call('long', 'long');
  // Held by us though no tool of ours: the caller brings what it does.
  await sink.act({ kind: 'fs.write', tool: 'edit', tool_call_id: 'h1', target: '/tmp/x' }, async () => ({
    status: 'ok',
    output: 'written',
    effects: [{ type: 'fs_write', path: '/tmp/x', operation: 'create', after_sha256: null }],
    usage: { provider: 'acme', usd_micros: 3 },
    artifacts: [{ kind: 'patch', mime_type: 'text/x-diff', bytes: Buffer.from('+x') }],
  }));
  const value = (await recorded?.checkpoint('half')) ?? { at: 1 };
  await sink.emit({ event: 'vendor.tollbridge.checkpoint', payload: { checkpoint_id: 'half', value } });
  await Promise.all([
    call('p1', 'slow'),
    call('p2', 'write'),
    call('p3', 'ask'),
    call('p4', 'ask'),
    call('p5', 'fail'),
  ]);
  await call('q1', 'quick');
  const asked = (tool_call_id: string, tool: string) =>
    sink.ask({
      kind: 'approval',
      action: { kind: 'tool', tool, tool_call_id, arguments: { n: tool_call_id } },
      takesArguments: true,
    });
  await asked('a1', 'shell');
  await sink.emit({
    event: 'tool.completed',
    payload: { tool_call_id: 'a1', name: 'shell', status: 'ok', output: 'fine' },
  });
  await asked('a2', 'ask');
  await asked('a3', 'no');
  await asked('a4', 'mend');
  await sink.ask({ kind: 'approval', action: { kind: 'memory.write', tool: 'no' } }); // about no call in particular
  const colour = await sink.ask({
    kind: 'input',
    key: 'colour',
    question: 'Which colour?',
    schema: { type: 'string' },
  });
  await sink.emit({ event: 'tool.requested', payload: { tool_call_id: 'o1', name: 'grep', kind: 'tool', input: {} } });
  await sink.emit({
    event: 'tool.failed',
    payload: { tool_call_id: 'o1', name: 'grep', status: 'error', error: 'none' },
  });
  await sink.emit({
    event: 'agent.handoff',
    payload: { target_agent: 'peer', task_id: 'their-task', status: 'completed' },
  });
  await sink.emit(text(`${LONG} ${colour.kind}`));
  return { state: 'COMPLETED', summary: 'did everything' };
};

export const tools = () =>
  toolbox('box', {
    write: undefined,
    no: undefined,
    mend: undefined,
    ask: undefined,
    quick: undefined,
    later: undefined,
    fail: () => ({ status: 'error', output: { tried: true }, error: 'it did not work' }),
    throw: () => {
      throw new Error('it blew up');
    },
    long: () => ({ status: 'ok', output: LONG }),
    slow: async () => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      return { status: 'ok', output: 'at last' };
    },
  });

interface Played {
  readonly gateway: TestGateway;
  readonly task: Task;
  readonly session: string;
  readonly box: ReturnType<typeof tools>;
  readonly agent: ReturnType<typeof scripted>;
}

/** Plays a script to its end. People say yes, except to `p4` and to whatever runs out. */
export async function play(
  script: Script,
  { abilities, ...options }: TestGatewayOptions & { readonly abilities?: Partial<Abilities> } = {},
  body: Partial<CommandBody<'task.submit'>> = {},
): Promise<Played> {
  const box = tools();
  const agent = scripted(body.agent ?? 'one', script, abilities);
  const gateway = await openTestGateway({
    ...REAL_TIME,
    rules: RULES,
    tools: [box],
    settings: { inlineLimit: 300, deferTries: 2, graceMs: 30 },
    ...options,
    agents: [agent],
  });
  const session = await gateway.session();
  const { id } = await gateway.submit(session, body);
  await eventually(async () => {
    for (const ask of await gateway.openAsks()) await sayYes(gateway, ask);
    return ['COMPLETED', 'FAILED', 'CANCELED'].includes((await gateway.task(id)).status);
  });
  return { gateway, task: await gateway.task(id), session, box, agent };
}

export async function sayYes(gateway: TestGateway, { id, kind, tool_call_id, action }: AskRecord): Promise<void> {
  if (action.tool === 'quick') return;
  const body = kind === 'input' ? { value: 'red' } : { approved: tool_call_id !== 'p4', reason: 'because' };
  await gateway.answer(id, body).catch(() => {});
}

export async function replay(
  gateway: TestGateway,
  taskId: string,
  body: Partial<CommandBody<'task.replay'>> = {},
): Promise<Task> {
  const { resource } = await gateway.send('task.replay', { task_id: taskId, ...body });
  await gateway.runtime.idle();
  return await gateway.task(resource.id);
}

/** Brought about anew by the replay's own life, or following from what is reported again; everything else is reported again. */
const OWN_LIFE =
  /^(task\.(submitted|started|completed|failed|canceled)|receipt\.issued|session\.message_appended|vendor\.tollbridge\.(quota_used|recovered))$/;

/** Each recorded event is reported again once, in the order of the record, marked, and saying the same. */
export async function expectFaithful(gateway: TestGateway, source: Task, again: Task, from = 0): Promise<void> {
  const before = (await gateway.events(source.id)).slice(from);
  const after = await gateway.events(again.id);
  const own = new Set(['task.submitted', 'task.started', 'replay.started', 'replay.completed']);
  const reported = after.filter(
    ({ event }, at) => !own.has(event) && at < after.findLastIndex((e) => e.event === 'replay.completed'),
  );
  for (const event of reported) {
    expect(event, event.event).toMatchObject({
      replayed: true,
      replay: { source_task_id: source.id, replay_task_id: again.id, mode: again.metadata.replay_mode },
    });
  }
  const originals = reported.map(({ replay: mark }) => mark?.original_event_id).filter((id) => id);
  const wanted = before.filter(({ event }) => !OWN_LIFE.test(event));
  const settled = /^task\.(auth_required|input_required|status_changed)$/;
  expect(originals.filter((id) => wanted.some((event) => event.id === id)).toSorted()).toEqual(
    wanted.map(({ id }) => id).toSorted(),
  );
  const unnamed = reported.filter(({ replay: mark }) => !mark?.original_event_id);
  expect(kinds(unnamed)).toEqual([]);
  // In order, but for how a task waits: that follows from the rest.
  const inOrder = reported
    .filter(({ event }) => !settled.test(event))
    .map(({ replay: mark }) => String(mark?.original_event_id));
  expect(inOrder).toEqual(inOrder.toSorted());
  const byId = new Map(before.map((event) => [event.id, event]));
  for (const event of reported) {
    const original = byId.get(String(event.replay?.original_event_id));
    if (!original || event.event === 'replay.event_replayed' || settled.test(event.event)) continue;
    expect(event.event).toBe(original.event);
    expect(event.actor ?? null).toBe(original.actor ?? null);
    expect(plain(event.payload)).toEqual(plain(original.payload));
  }
}

/** A payload without names that are new in every run. */
function plain(payload: JsonObject): Json {
  const { ask_id: _ask, at: _at, ask, action, message, ...rest } = payload as Record<string, JsonObject>;
  const { kind, tool, tool_call_id, arguments: args } = (action ?? {}) as JsonObject;
  const { question, kind: asked, tool_call_id: about, action: shown, schema } = (ask ?? {}) as JsonObject;
  return JSON.parse(
    JSON.stringify({
      ...rest,
      ...(action && { action: { kind, tool, tool_call_id, args } }),
      ...(ask && { ask: { question, asked, about, shown: (shown as JsonObject)?.tool, schema } }),
      ...(message && { message: { role: message.role, parts: message.parts } }),
      expires_at: null,
      ...(rest.decision && { decision: { ...(rest.decision as JsonObject), ask: null } }),
    }),
  ) as Json;
}
