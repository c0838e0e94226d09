/**
 * Random lives of tasks against the real stack: agents act and ask, people answer, refuse, let time run out, cancel and
 * race each other, gateways close, crash and open again. Whatever happens, the same few things hold afterwards.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { AskRecord } from '../../../../src/model/asks.ts';
import type { CoreEvent } from '../../../../src/model/events.ts';
import { asFault } from '../../../../src/model/faults.ts';
import type { Session, Task } from '../../../../src/model/resources.ts';
import type { JsonObject } from '../../../../src/model/schema.ts';
import { isTerminal, TASK_TRANSITIONS } from '../../../../src/model/words.ts';
import type { Row } from '../../../../src/ports/index.ts';
import { verifyChain } from '../../../../src/receipt/verify/chain.ts';
import { ana, bo } from '../../../support/gateway/actors.ts';
import { type Disk, pulledDisk } from '../../../support/gateway/failing-store.ts';
import { type Puppet, puppet, type Step } from '../../../support/gateway/stepped-agent.ts';
import {
  locationOf,
  of,
  openTestGateway,
  type Room,
  states,
  type TestGateway,
} from '../../../support/gateway/test-gateway.ts';
import { type CountingTools, countingTools } from '../../../support/gateway/tools.ts';

/** `look` is allowed, `wipe` is blocked, `send` needs a person, `tidy` runs rewritten. */
const RULES = `
- { id: may-look, when: { kind: tool, tool: look }, then: allow }
- { id: may-tidy, when: { kind: tool, tool: tidy }, then: modify, set: { gently: true } }
- { id: no-wipe, when: { kind: tool, tool: wipe }, then: block }
- { id: ask-send, when: { kind: tool, tool: send }, then: ask }`;
const TOOLS = ['look', 'send', 'wipe', 'tidy'] as const;
const PACE = [0, 3, 15, 0, 40];
const HOUR = 60 * 60 * 1000;

type Op =
  | { readonly op: 'submit'; readonly session: number }
  | {
      readonly op: 'tell';
      readonly task: number;
      readonly step: (name: string) => Step;
      readonly toString: () => string;
    }
  | { readonly op: 'answer'; readonly pick: number; readonly yes: boolean; readonly elsewhere: boolean }
  | { readonly op: 'cancel'; readonly task: number }
  | { readonly op: 'expire' }
  | { readonly op: 'breathe'; readonly ms: number }
  | { readonly op: 'reopen'; readonly crash: boolean };

class World {
  t!: TestGateway;
  disk!: Disk;
  readonly rooms: Room[] = [];
  readonly tasks: string[] = [];
  readonly agent: Puppet;
  readonly tools: CountingTools;
  /** What tools saw in the log when they were called. */
  readonly unexcused: string[] = [];
  private names = 0;

  constructor(resume: boolean) {
    this.agent = puppet({ resume });
    const run = async (_: JsonObject, action: { task_id?: string; tool_call_id?: string }) => {
      const log = await this.t.events(String(action.task_id));
      if (!cleared(log, String(action.tool_call_id))) this.unexcused.push(String(action.tool_call_id));
      // Some take their time, so that something can happen meanwhile.
      await new Promise((resolve) => setTimeout(resolve, PACE[this.tools.calls.length % PACE.length]));
      return { status: 'ok', output: { ok: true } };
    };
    this.tools = countingTools(Object.fromEntries(TOOLS.map((tool) => [tool, { effect: 'write', run } as const])));
  }

  async open(): Promise<void> {
    this.disk = pulledDisk();
    this.t = await openTestGateway({ ...this.options(), store: this.disk.wrap });
    for (let i = 0; i < 2; i += 1) this.rooms.push(await this.t.room());
  }

  private options() {
    return {
      rules: RULES,
      agents: [this.agent],
      tools: [this.tools],
      settings: { askExpiresMs: HOUR, graceMs: 50, sweepMs: 5 },
    };
  }

  async perform(op: Op): Promise<void> {
    switch (op.op) {
      case 'submit': {
        const room = this.rooms[op.session % this.rooms.length]!;
        const work = { session_id: room.session, input: { n: this.tasks.length } };
        await ignoring(this.t.send('task.submit', work).then(({ resource }) => this.tasks.push(resource.id)));
        return;
      }
      case 'tell': {
        const task = this.pick(op.task);
        if (task) this.agent.tell(task, op.step(`n${this.names++}`));
        return;
      }
      case 'answer':
        return await this.answer(op);
      case 'cancel': {
        const task = this.pick(op.task);
        if (task) await ignoring(this.t.send('task.cancel', { task_id: task }));
        return;
      }
      case 'expire':
        this.t.clock.advance(HOUR);
        return;
      case 'breathe':
        await new Promise((resolve) => setTimeout(resolve, op.ms));
        return;
      case 'reopen':
        // A crash is a process that can no longer write, and then is gone.
        if (op.crash) this.disk.down = true;
        await this.t.close();
        this.disk = pulledDisk();
        this.t = await this.t.reopen({ ...this.options(), store: this.disk.wrap });
    }
  }

  async answer({ pick, yes, elsewhere }: { pick: number; yes: boolean; elsewhere: boolean }): Promise<void> {
    const asks = await this.openAsks();
    const ask = asks[pick % Math.max(1, asks.length)];
    if (!ask) return;
    const body = ask.kind === 'approval' || !yes ? { approved: yes } : { value: 'v' };
    const at = elsewhere ? await this.t.second({ agents: [], store: (store) => store }) : this.t;
    await ignoring(at.answer(ask.id, body, elsewhere ? bo : ana));
    if (elsewhere) await at.close();
  }

  async openAsks(): Promise<readonly AskRecord[]> {
    return await this.t.runtime.store.list<AskRecord & Row>({ object: 'ask', where: { state: 'open' }, limit: 200 });
  }

  pick(index: number): string | undefined {
    return this.tasks[index % Math.max(1, this.tasks.length)];
  }

  async open_tasks(): Promise<readonly Task[]> {
    const all = await Promise.all(this.tasks.map((id) => this.t.runtime.store.get<Task & Row>('task', id)));
    return all.filter((task) => task !== undefined && !isTerminal(task.status)) as Task[];
  }

  /** Everyone is asked to finish and every question is answered, until nothing is left. */
  async wind_down(): Promise<void> {
    const reported = new Set<string>();
    const timeout = Date.now() + 10_000;
    for (;;) {
      const open = await this.open_tasks();
      if (open.length === 0) break;
      for (const { id } of open) {
        if (!reported.has(id)) this.agent.tell(id, { do: 'finish', patient: true });
        reported.add(id);
      }
      for (const ask of await this.openAsks()) {
        const body = ask.kind === 'approval' ? { approved: true } : { value: 'v' };
        await ignoring(this.t.answer(ask.id, body));
      }
      if (Date.now() > timeout)
        throw new Error(`still open: ${open.map(({ id, status }) => `${id} ${status}`).join(', ')}`);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    await this.t.runtime.idle();
  }
}

/** Someone else was quicker, or the gateway was just closing: both are answers. */
async function ignoring(work: Promise<unknown>): Promise<void> {
  await work.catch((cause) => {
    if (!['conflict', 'unavailable'].includes(asFault(cause).kind)) throw cause;
  });
}

/** The log lets this call run: it was allowed, or approved and the approval spent on it. */
function cleared(log: readonly CoreEvent[], callId: string): boolean {
  const asks = new Map<string, { approved: boolean; used: boolean }>();
  for (const { event, payload } of log) {
    const { action, decision } = payload as { action?: JsonObject; decision?: JsonObject };
    if (event === 'vendor.tollbridge.decided' && action?.tool_call_id === callId) {
      if (decision?.verdict === 'allow' || decision?.verdict === 'modify') return true;
    }
    const ask = payload.ask as unknown as AskRecord | undefined;
    if (event === 'vendor.tollbridge.ask_opened' && ask?.tool_call_id === callId)
      asks.set(ask.id, { approved: false, used: false });
    const known = asks.get(String(payload.ask_id));
    if (!known) continue;
    if (event === 'vendor.tollbridge.ask_closed') known.approved = payload.state === 'approved';
    if (event === 'vendor.tollbridge.ask_used') known.used = true;
  }
  return [...asks.values()].some(({ approved, used }) => approved && used);
}

// ---- What holds, whatever happened ----

const TERMINAL = ['task.completed', 'task.failed', 'task.canceled'];

async function checkTask({ t, tools }: World, taskId: string): Promise<void> {
  const log = await t.events(taskId);
  const path = states(log);
  for (const [from, to] of path.slice(1).map((to, index) => [path[index]!, to] as const)) {
    expect(TASK_TRANSITIONS[from as keyof typeof TASK_TRANSITIONS], `${taskId}: ${path.join(' ')}`).toContain(to);
  }
  const ends = log.filter(({ event }) => TERMINAL.includes(event));
  expect(ends, taskId).toHaveLength(1);
  const after = log.filter((event) => locationOf(event) > locationOf(ends[0]!));
  expect(
    after.filter(({ payload }) => payload.after_end !== true),
    taskId,
  ).toEqual([]);
  expect(path.at(-1)).toBe(ends[0]?.payload.to);
  checkWaiting(log);

  const receipts = await t.receipts(taskId);
  expect(receipts, taskId).toHaveLength(1);
  expect(receipts[0]?.lifecycle.final_state).toBe(
    { COMPLETED: 'SUCCEEDED', FAILED: 'FAILED', CANCELED: 'CANCELED' }[path.at(-1)!],
  );

  const sequence = log.filter(({ resource }) => resource.object === 'task').map((event) => event.sequence);
  expect(sequence, taskId).toEqual(sequence.map((_, index) => index + 1));

  for (const { payload } of of(log, 'vendor.tollbridge.ask_opened')) {
    const { id } = payload.ask as unknown as AskRecord;
    const about = (kind: string) => of(log, kind).filter(({ payload }) => payload.ask_id === id);
    expect(about('vendor.tollbridge.ask_closed'), `${taskId} ${id}`).toHaveLength(1);
    expect(about('vendor.tollbridge.ask_used').length, `${taskId} ${id}`).toBeLessThanOrEqual(1);
  }
  for (const { payload } of of(log, 'tool.requested')) {
    const id = String(payload.tool_call_id);
    const ran = tools.calls.filter((call) => call.id === id);
    expect(ran.length, `${taskId} ${id} ran ${ran.length} times`).toBeLessThanOrEqual(1);
    if (ran.length > 0) expect(cleared(log, id), `${taskId} ${id}`).toBe(true);
    if (payload.name === 'wipe') expect(ran, id).toEqual([]);
    const settled = log.filter(
      ({ event, payload }) => /^tool\.(completed|failed)$/.test(event) && payload.tool_call_id === id,
    );
    expect(settled.filter(({ payload }) => payload.after_end !== true).length, `${taskId} ${id}`).toBeLessThanOrEqual(
      1,
    );
    // What completed did run, and what ran and was recorded did not fail for being refused.
    if (settled.some(({ event }) => event === 'tool.completed')) expect(ran, id).toHaveLength(1);
  }
}

/** A task waits for a kind of answer exactly when such a question is open. */
function checkWaiting(log: readonly CoreEvent[]): void {
  const open = new Map<string, string>();
  let status = '';
  for (const { id, event, payload } of log) {
    // Taken up after a crash it works until it asks again; from there on the two need not agree.
    if (event === 'vendor.tollbridge.recovered' || TERMINAL.includes(event)) return;
    // Asked to stop, its questions are withdrawn and it ends; what it says on its way out it says in whatever state it was.
    if (event === 'user.cancel_requested') return;
    // The first event of a commit of its own: everything before it is settled.
    if (event === 'tool.requested' || event === 'agent.message' || event === 'vendor.tollbridge.usage') {
      const waitsFor = { AUTH_REQUIRED: 'approval', INPUT_REQUIRED: 'input', WORKING: undefined }[status];
      if (open.size === 0) expect(status, id).toBe('WORKING');
      else expect([...open.values()], `${id} ${status}`).toContain(waitsFor);
    }
    if (event.startsWith('task.') && typeof payload.to === 'string') status = payload.to;
    const ask = payload.ask as unknown as AskRecord | undefined;
    if (event === 'vendor.tollbridge.ask_opened' && ask) open.set(ask.id, ask.kind);
    if (event === 'vendor.tollbridge.ask_closed') open.delete(String(payload.ask_id));
  }
}

async function checkWorld(world: World): Promise<void> {
  const { t, tools, tasks, agent } = world;
  for (const id of tasks) await checkTask(world, id);
  expect(world.unexcused).toEqual([]);
  const ids = tools.calls.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  for (const call of tools.calls) {
    if (call.tool === 'tidy') expect(call.arguments).toEqual({ id: call.id, gently: true });
  }
  for (const { id, result } of agent.received) {
    const ran = tools.calls.some((call) => call.id === id);
    if (result.kind === 'refused') expect(ran, `${id} was refused: ${result.reason}`).toBe(false);
    else if (result.result.status === 'ok') expect(ran, id).toBe(true);
  }
  for (const room of world.rooms) {
    const session = await t.bridge.view<Session & Row>(ana, 'session', room.session);
    expect(session.state).toBe('IDLE');
    const stored = await t.runtime.store.receipts({ chain: room.workspace, limit: 200 });
    const lines = stored.map(({ receipt }) => JSON.stringify(receipt));
    const report = await verifyChain(lines, { keys: t.runtime.keyring.jwks() });
    expect(report).toMatchObject({ valid: true, records: stored.length });
    const here = await t.runtime.store.list({ object: 'task', where: { workspace_id: room.workspace }, limit: 200 });
    expect(stored).toHaveLength(here.length);
  }
  expect(await t.runtime.store.list({ object: 'run' })).toEqual([]);
  for (const tally of await t.runtime.store.list({ object: 'tally', limit: 200 }))
    expect(tally).toMatchObject({ lane: null });
}

/** While things go on: a session says it is busy exactly when it has work that has not ended. */
async function checkSessions({ t, rooms }: World): Promise<void> {
  for (const { session: id } of rooms) {
    const session = await t.bridge.view<Session & Row>(ana, 'session', id);
    const busy = (tasks: readonly Task[]) => tasks.some(({ status }) => !isTerminal(status));
    const tasks = await t.runtime.store.list<Task & Row>({ object: 'task', where: { session_id: id }, limit: 200 });
    const again = await t.bridge.view<Session & Row>(ana, 'session', id);
    if (session.state === again.state) expect(session.state).toBe(busy(tasks) ? 'ACTIVE' : 'IDLE');
  }
}

// ---- Lives ----

const small = fc.nat({ max: 7 });
function reported(step: fc.Arbitrary<(name: string) => Step>): fc.Arbitrary<Op> {
  return fc.tuple(small, step).map(([task, make]) => ({
    op: 'tell' as const,
    task,
    step: make,
    toString: () => `tell ${task}: ${JSON.stringify(make('…'))}`,
  }));
}
const step: fc.Arbitrary<(name: string) => Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .constantFrom(...TOOLS, 'send', 'send')
      .map((tool) => (id: string) => ({ do: 'act' as const, id, tool })),
  },
  { weight: 2, arbitrary: fc.constant((key: string) => ({ do: 'ask' as const, key })) },
  { weight: 1, arbitrary: fc.constant((text: string) => ({ do: 'say' as const, text })) },
  { weight: 1, arbitrary: fc.constant(() => ({ do: 'report' as const, usd_micros: 5 })) },
  { weight: 1, arbitrary: fc.boolean().map((patient) => () => ({ do: 'finish' as const, patient })) },
  { weight: 1, arbitrary: fc.constant(() => ({ do: 'fail' as const })) },
);
const alone: fc.Arbitrary<Op> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ op: fc.constant('submit' as const), session: small }) },
  { weight: 9, arbitrary: reported(step) },
  {
    weight: 6,
    arbitrary: fc.record({
      op: fc.constant('answer' as const),
      pick: small,
      yes: fc.boolean(),
      elsewhere: fc.constant(false),
    }),
  },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('cancel' as const), task: small }) },
  { weight: 1, arbitrary: fc.constant({ op: 'expire' as const }) },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('breathe' as const), ms: fc.nat({ max: 8 }) }) },
);
const batcher: fc.Arbitrary<readonly Op[]> = fc.array(alone, { minLength: 2, maxLength: 5 });
const reopen: fc.Arbitrary<Op> = fc.record({ op: fc.constant('reopen' as const), crash: fc.boolean() });
const rarely: fc.Arbitrary<Op> = fc.oneof(
  reopen,
  fc.record({ op: fc.constant('answer' as const), pick: small, yes: fc.boolean(), elsewhere: fc.constant(true) }),
);
const life = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: alone.map((op): readonly Op[] => [op]) },
    { weight: 3, arbitrary: batcher },
    { weight: 1, arbitrary: rarely.map((op): readonly Op[] => [op]) },
    { weight: 1, arbitrary: fc.tuple(fc.array(reported(step), { minLength: 1, maxLength: 3 }), reopen).map(storm) },
  ),
  { minLength: 6, maxLength: 40, size: 'max' },
);

/** The agent is told something and given a moment to begin, and then the gateway goes. */
function storm([orders, end]: [Op[], Op]): readonly Op[] {
  return [...orders, { op: 'breathe', ms: 4 }, end];
}

async function live(resume: boolean, steps: readonly (readonly Op[])[]): Promise<void> {
  const world = new World(resume);
  await world.open();
  await world.perform({ op: 'submit', session: 0 });
  for (const ops of steps) {
    if (ops.some(({ op }) => op === 'reopen')) for (const op of ops) await world.perform(op);
    else await Promise.all(ops.map((op) => world.perform(op)));
    await checkSessions(world);
  }
  await world.wind_down();
  await checkWorld(world);
  await world.t.close();
}

/** A few seconds of the same lives each time; other seeds and more time find more. */
const EFFORT = { seed: 7, numRuns: 60, ms: 10_000 };

test('whatever agents and people do, in whatever order', async () => {
  const over = Date.now() + EFFORT.ms;
  const lived = fc.asyncProperty(fc.boolean(), life, async (resume, steps) => {
    if (Date.now() < over) await live(resume, steps);
  });
  await fc.assert(lived, EFFORT);
});
