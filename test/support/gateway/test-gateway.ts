/**
 * A real gateway in a directory of its own: real log, real keys, real rules. Only time, names, agents and tools are the
 * test's; with `REAL_TIME`, time and names are real as well. Everything opened here is closed and removed when the test
 * is over.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { createIds, systemClock } from '../../../src/core/clock.ts';
import type { Actor } from '../../../src/model/actions.ts';
import type { AskRecord } from '../../../src/model/asks.ts';
import type { CommandBody, CommandEnvelope, CommandKind, CommandOf } from '../../../src/model/commands.ts';
import { type CoreEvent, position } from '../../../src/model/events.ts';
import { asFault, type Fault } from '../../../src/model/faults.ts';
import type { Receipt } from '../../../src/model/receipt.ts';
import type { Message, Session, Task } from '../../../src/model/resources.ts';
import type { JsonObject } from '../../../src/model/schema.ts';
import type { Accepted, AgentBackend, Bridge, Row, Store } from '../../../src/ports/index.ts';
import { type CoreRuntime, type CoreRuntimeOptions, openCoreRuntime } from '../../../src/runtime/assemble.ts';
import { ALLOW_ALL } from '../policy/rules.ts';
import { ana } from './actors.ts';
import { type FakeClock, fakeClock, sequentialIds } from './clock.ts';
import { forgetTestStore, openTestStore } from './test-store.ts';

/** What the runtime can be told besides is passed on as it is. */
export interface TestGatewayOptions
  extends Omit<CoreRuntimeOptions, 'dataDir' | 'backends' | 'policy' | 'store' | 'replace'> {
  readonly dir?: string;
  readonly agents?: readonly AgentBackend[];
  /** Short rules, as YAML. Without any, side effects are asked about. */
  readonly rules?: string;
  /** Instead of rules: the sources themselves, read anew with every reload. */
  readonly load?: Exclude<NonNullable<CoreRuntimeOptions['policy']>, string>['load'];
  readonly store?: (store: Store) => Store;
  readonly issuer?: NonNullable<CoreRuntimeOptions['replace']>['issuer'];
  readonly signer?: NonNullable<CoreRuntimeOptions['replace']>['signer'];
  /** The gateway looks and waits as long as it would when served, not as briefly as most tests want. */
  readonly ownPace?: boolean;
  /** Opened but not started: recovery and the clock of the gateway do not run. */
  readonly started?: boolean;
  /** Not closed when the test is over: a gateway that died answers nobody, and closing it would wait forever. */
  readonly dies?: boolean;
}

/** Time, names and pace as in a served gateway; everything is allowed, so that only tests about asking are about asking. */
export const REAL_TIME = { clock: systemClock, ids: createIds(), rules: ALLOW_ALL, ownPace: true } as const;

export interface TestGateway {
  readonly runtime: CoreRuntime;
  readonly bridge: Bridge;
  readonly dir: string;
  /** The fake one, unless the options brought another. */
  readonly clock: FakeClock;
  /** What starting found of earlier gateways; undefined when it was not started. */
  readonly recovered: Awaited<ReturnType<CoreRuntime['start']>> | undefined;
  /** One command by Ana, or by the client that the envelope names. */
  send<K extends CommandKind>(kind: K, body: CommandBody<K>, envelope?: Partial<CommandEnvelope>): Promise<Accepted<K>>;
  /** The fault a command comes back with; fails when it is accepted. */
  refused<K extends CommandKind>(kind: K, body: unknown, envelope?: Partial<CommandEnvelope>): Promise<Fault>;
  /** A workspace and a session in it. */
  room(more?: { workspace?: JsonObject; persona?: JsonObject; actor?: Actor }): Promise<Room>;
  workspace(body?: JsonObject, envelope?: Partial<CommandEnvelope>): Promise<string>;
  /** In a workspace of its own unless one is named. */
  session(body?: Partial<CommandBody<'session.create'>>, envelope?: Partial<CommandEnvelope>): Promise<string>;
  /** Gives an agent work in this session. */
  submit(
    session: string,
    body?: Partial<CommandBody<'task.submit'>>,
    envelope?: Partial<CommandEnvelope>,
  ): Promise<Task>;
  /** The task as it is now. */
  task(id: string): Promise<Task>;
  /** What Ana sees of a resource. */
  view<T extends Row = Session & Row>(object: string, id: string): Promise<T>;
  messages(sessionId: string): Promise<readonly (Message & Row)[]>;
  /** What is in the log of a task, in order. */
  events(taskId: string): Promise<CoreEvent[]>;
  /** Everything in the log. */
  all(): Promise<CoreEvent[]>;
  /** The open questions of a task, once there are as many as wanted. */
  asks(taskId: string, count?: number): Promise<AskRecord[]>;
  /** The first open question of a task, once there is one. */
  ask(taskId: string): Promise<AskRecord>;
  /** The open questions of every task, as many as there are now. */
  openAsks(): Promise<readonly AskRecord[]>;
  answer(askId: string, body?: Partial<CommandBody<'ask.answer'>>, actor?: Actor): Promise<AskRecord>;
  /** The task once it is in one of these states; ended, when none is named. */
  until(taskId: string, ...states: string[]): Promise<Task>;
  /** The receipts of a task, as they were sealed. */
  receipts(taskId: string): Promise<Receipt[]>;
  /** The receipt of a task that has one. */
  receipt(taskId: string): Promise<Receipt>;
  /** Until this event stands in the task's log. */
  seen(taskId: string, event: string, where?: (event: CoreEvent) => boolean): Promise<CoreEvent>;
  /** Closes this gateway and opens another on what it left behind. */
  reopen(options?: TestGatewayOptions): Promise<TestGateway>;
  /** Another gateway on the same directory, as another process would be. */
  second(options?: TestGatewayOptions): Promise<TestGateway>;
  close(): Promise<void>;
}

export interface Room {
  readonly workspace: string;
  readonly session: string;
  readonly persona: string | undefined;
  /** Gives the agent work and comes back with the task. */
  task(more?: Partial<CommandBody<'task.submit'>>, envelope?: Partial<CommandEnvelope>): Promise<Task>;
}

const ENDED = ['COMPLETED', 'FAILED', 'CANCELED'];
/** How many gateways a file has opened: ids begin with the same letters whichever files ran in this process before. */
let opened = { by: '', count: 0 };

/** A directory that is removed when the test is over. */
export async function freshDir(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'tollbridge-'));
  onTestFinished(async () => {
    forgetTestStore(dir);
    await rm(dir, { recursive: true, force: true });
  });
  return dir;
}

export async function openTestGateway(options: TestGatewayOptions = {}): Promise<TestGateway> {
  const {
    dir = await freshDir(),
    agents = [],
    rules = '',
    load,
    store: wrap,
    issuer,
    signer,
    ownPace,
    started,
    dies,
    ...rest
  } = options;
  const { testPath: by = '' } = expect.getState();
  if (opened.by !== by) opened = { by, count: 0 };
  const letter = letterFor(opened.count++);
  const clock = (options.clock as FakeClock | undefined) ?? fakeClock();
  const runtime = await openCoreRuntime({
    ...rest,
    dataDir: dir,
    backends: agents,
    policy: { load: load ?? (async () => ({ rules, files: [] })) },
    settings: { ...(!ownPace && { sweepMs: 20, graceMs: 200 }), ...options.settings },
    clock,
    ids: options.ids ?? sequentialIds(letter),
    replace: {
      openStore: openTestStore,
      ...(wrap && { store: wrap }),
      ...(issuer && { issuer }),
      ...(signer && { signer }),
    },
  });
  let closed = false;
  const close = async () => {
    if (closed) return;
    closed = true;
    await runtime.close();
  };
  if (!dies) onTestFinished(close);
  const recovered = started === false ? undefined : await runtime.start();
  const { bridge, store } = runtime;

  async function send<K extends CommandKind>(kind: K, body: CommandBody<K>, envelope: Partial<CommandEnvelope> = {}) {
    return await bridge.submit({ actor: ana, ...envelope, kind, body } as unknown as CommandOf<K>);
  }

  async function seen(taskId: string, event: string, where: (event: CoreEvent) => boolean = () => true) {
    const stop = new AbortController();
    for await (const each of store.follow({ stream: { of: 'task', id: taskId } }, stop.signal)) {
      if (each.event === event && where(each)) return each;
    }
    throw new Error(`the log of ${taskId} ended without ${event}`);
  }

  async function until(taskId: string, ...states: string[]): Promise<Task> {
    const wanted = states.length > 0 ? states : ENDED;
    const stop = new AbortController();
    for await (const { event, payload } of store.follow({ stream: { of: 'task', id: taskId } }, stop.signal)) {
      const { to } = payload as { to?: string };
      if (event.startsWith('task.') && to && wanted.includes(to)) break;
    }
    return await task(taskId);
  }

  async function task(id: string): Promise<Task> {
    return (await store.get<Task & Row>('task', id)) as Task;
  }

  async function openAsksOf(taskId: string): Promise<AskRecord[]> {
    const where = { task_id: taskId, state: 'open' };
    return [...(await store.list<AskRecord & Row>({ object: 'ask', where, limit: 200 }))];
  }

  async function asks(taskId: string, count = 1): Promise<AskRecord[]> {
    const stop = new AbortController();
    let found = await openAsksOf(taskId);
    if (found.length >= count) return found;
    for await (const { event } of store.follow({ stream: { of: 'task', id: taskId } }, stop.signal)) {
      if (event !== 'vendor.tollbridge.ask_opened') continue;
      found = await openAsksOf(taskId);
      if (found.length >= count) break;
    }
    return found;
  }

  async function workspace(body: JsonObject = {}, envelope: Partial<CommandEnvelope> = {}): Promise<string> {
    const described = { name: 'w', root: 'file:///w', ...body };
    return (await send('resource.create', { object: 'workspace', body: described }, envelope)).resource.id;
  }

  const session: TestGateway['session'] = async (body = {}, envelope) => {
    const workspace_id = body.workspace_id ?? (await workspace({}, envelope));
    return (await send('session.create', { ...body, workspace_id }, envelope)).resource.id;
  };

  const submit: TestGateway['submit'] = async (session_id, body = {}, envelope) => {
    const { resource } = await send('task.submit', { session_id, input: says('please'), ...body }, envelope);
    return resource as unknown as Task;
  };

  const self: TestGateway = {
    runtime,
    bridge,
    dir,
    clock,
    recovered,
    send,
    async refused(kind, body, envelope) {
      try {
        await send(kind, body as CommandBody<typeof kind>, envelope);
      } catch (thrown) {
        return asFault(thrown);
      }
      throw new Error(`${kind} was accepted`);
    },
    async room({ workspace: described, persona, actor = ana } = {}) {
      const by = { actor };
      const made =
        persona && (await send('resource.create', { object: 'persona', body: { ...PERSONA, ...persona } }, by));
      const home = await workspace(described, by);
      const id = await session({ workspace_id: home, ...(made && { persona_id: made.resource.id }) }, by);
      return {
        workspace: home,
        session: id,
        persona: made?.resource.id,
        task: (more, envelope) => submit(id, { input: says('go'), ...more }, { actor, ...envelope }),
      };
    },
    workspace,
    session,
    submit,
    task,
    view: (object, id) => bridge.view(ana, object, id),
    messages: (session_id) =>
      pages((after) => store.list<Message & Row>({ object: 'message', where: { session_id }, limit: 200, ...after })),
    events: (taskId) => all(store.read({ stream: { of: 'task', id: taskId } })),
    all: () => all(store.read({ stream: { of: 'all' } })),
    asks,
    ask: async (taskId) => (await asks(taskId))[0]!,
    openAsks: () => store.list<AskRecord & Row>({ object: 'ask', where: { state: 'open' } }),
    async answer(askId, body = { approved: true }, actor = ana) {
      const { resource } = await send('ask.answer', { ask_id: askId, ...body }, { actor });
      return resource as unknown as AskRecord;
    },
    async receipts(taskId) {
      return (await store.receipts({ task: taskId })).map(({ receipt }) => receipt);
    },
    async receipt(taskId) {
      const [found] = await store.receipts({ task: taskId });
      expect(found, `a receipt of ${taskId}`).toBeDefined();
      return found!.receipt;
    },
    until,
    seen,
    async reopen(more = {}) {
      await close();
      return await openTestGateway({ ...options, ...more, dir, clock });
    },
    second: (more = {}) => openTestGateway({ ...options, ...more, dir, clock }),
    close,
  };
  return self;
}

const PERSONA = {
  name: 'helper',
  version: '1',
  entry_workflow: 'default',
  description: 'helps',
  autonomy_tier: 'act_auto',
  receipt_policy: 'required',
};

/** a … z, ba, bb …: sorts well enough, never repeats in a file of tests. */
function letterFor(count: number): string {
  const rest = Math.floor(count / 26);
  const last = String.fromCharCode(97 + (count % 26));
  return rest === 0 ? last : `${letterFor(rest)}${last}`;
}

/** What a person says, as a message. */
export function says(text: string, role: 'user' | 'assistant' = 'user') {
  return { role, parts: [{ type: 'text', text, visibility: 'public' }] };
}

export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

/** Everything a paged list holds. */
export async function pages<T extends Row>(
  page: (after: { after?: string }) => Promise<readonly T[]>,
): Promise<readonly T[]> {
  const found: T[] = [];
  for (;;) {
    const last = found.at(-1);
    const next = await page(last ? { after: last.id } : {});
    if (next.length === 0) return found;
    found.push(...next);
  }
}

export function kinds(events: readonly CoreEvent[]): string[] {
  return events.map(({ event }) => event);
}

export function of(events: readonly CoreEvent[], kind: string): CoreEvent[] {
  return events.filter(({ event }) => event === kind);
}

/** The states a task went through, from its own events. */
export function states(events: readonly CoreEvent[]): string[] {
  return events
    .filter(({ event }) => event.startsWith('task.'))
    .flatMap(({ payload }) => (typeof payload.to === 'string' ? [payload.to] : []));
}

/** Where in the log an event stands. */
export function locationOf(event: CoreEvent): number {
  return position(event.id) ?? -1;
}
