/**
 * A real gateway in a directory of its own: real log, real keys, real rules. Only time, names and the agent or is
 * called are the test's. Everything opened here is closed and removed when the test is over.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import type { Settings } from '../../../src/core/settings.ts';
import type { Actor } from '../../../src/model/actions.ts';
import type { AskRecord } from '../../../src/model/asks.ts';
import type { CommandBody, CommandEnvelope, CommandKind, CommandOf } from '../../../src/model/commands.ts';
import { type CoreEvent, position } from '../../../src/model/events.ts';
import { asFault, type Fault } from '../../../src/model/faults.ts';
import type { Receipt } from '../../../src/model/receipt.ts';
import type { Task } from '../../../src/model/resources.ts';
import type { JsonObject } from '../../../src/model/schema.ts';
import type {
  Accepted,
  AgentBackend,
  Bridge,
  PolicyEngine,
  Row,
  Store,
  ToolBackend,
} from '../../../src/ports/index.ts';
import { type CoreRuntime, type CoreRuntimeOptions, openCoreRuntime } from '../../../src/runtime/assemble.ts';
import { ana } from './actors.ts';
import { type FakeClock, fakeClock, sequentialIds } from './clock.ts';
import { forgetTestStore, openTestStore } from './test-store.ts';

export interface TestGatewayOptions {
  readonly dir?: string;
  readonly agents?: readonly AgentBackend[];
  readonly tools?: readonly ToolBackend[];
  /** Short rules, as YAML. Without any, side effects are asked about. */
  readonly rules?: string;
  /** Instead of rules: the sources themselves, read anew with every reload. */
  readonly load?: Exclude<NonNullable<CoreRuntimeOptions['policy']>, string>['load'];
  readonly engines?: readonly PolicyEngine[];
  readonly terms?: CoreRuntimeOptions['terms'];
  readonly settings?: Partial<Settings>;
  readonly clock?: CoreRuntimeOptions['clock'];
  readonly ids?: CoreRuntimeOptions['ids'];
  readonly store?: (store: Store) => Store;
  readonly issuer?: NonNullable<CoreRuntimeOptions['replace']>['issuer'];
  readonly redactor?: CoreRuntimeOptions['redactor'];
  readonly logger?: CoreRuntimeOptions['logger'];
  /** Opened but not started: recovery and the clock of the gateway do not run. */
  readonly started?: boolean;
}

export interface TestGateway {
  readonly runtime: CoreRuntime;
  readonly bridge: Bridge;
  readonly dir: string;
  readonly clock: FakeClock;
  /** One command by Ana, or by the client that the envelope names. */
  send<K extends CommandKind>(kind: K, body: CommandBody<K>, envelope?: Partial<CommandEnvelope>): Promise<Accepted<K>>;
  /** The fault a command comes back with; fails when it is accepted. */
  refused<K extends CommandKind>(kind: K, body: unknown, envelope?: Partial<CommandEnvelope>): Promise<Fault>;
  /** A workspace and a session in it. */
  room(more?: { workspace?: JsonObject; persona?: JsonObject; actor?: Actor }): Promise<Room>;
  /** What is in the log of a task, in order. */
  events(taskId: string): Promise<CoreEvent[]>;
  /** Everything in the log. */
  all(): Promise<CoreEvent[]>;
  /** The open questions of a task, once there are as many as wanted. */
  asks(taskId: string, count?: number): Promise<AskRecord[]>;
  answer(askId: string, body?: Partial<CommandBody<'ask.answer'>>, actor?: Actor): Promise<AskRecord>;
  /** The task once it is in one of these states; ended, when none is named. */
  until(taskId: string, ...states: string[]): Promise<Task>;
  /** The receipts of a task, as they were sealed. */
  receipts(taskId: string): Promise<Receipt[]>;
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

export async function openTestGateway(options: TestGatewayOptions = {}): Promise<TestGateway> {
  const dir = options.dir ?? (await mkdtemp(join(tmpdir(), 'tollbridge-')));
  const { testPath: by = '' } = expect.getState();
  if (opened.by !== by) opened = { by, count: 0 };
  const letter = letterFor(opened.count++);
  const clock = (options.clock as FakeClock | undefined) ?? fakeClock();
  const runtime = await openCoreRuntime({
    dataDir: dir,
    backends: options.agents ?? [],
    tools: options.tools ?? [],
    engines: options.engines ?? [],
    ...(options.terms && { terms: options.terms }),
    policy: { load: options.load ?? (async () => ({ rules: options.rules ?? '', files: [] })) },
    settings: { sweepMs: 20, graceMs: 200, ...options.settings },
    clock,
    ids: options.ids ?? sequentialIds(letter),
    ...(options.redactor && { redactor: options.redactor }),
    ...(options.logger && { logger: options.logger }),
    replace: {
      openStore: openTestStore,
      ...(options.store && { store: options.store }),
      ...(options.issuer && { issuer: options.issuer }),
    },
  });
  let closed = false;
  const close = async () => {
    if (closed) return;
    closed = true;
    await runtime.close();
  };
  onTestFinished(async () => {
    await close();
    if (!options.dir) {
      forgetTestStore(dir);
      await rm(dir, { recursive: true, force: true });
    }
  });
  if (options.started !== false) await runtime.start();
  const { bridge } = runtime;

  async function send<K extends CommandKind>(kind: K, body: CommandBody<K>, envelope: Partial<CommandEnvelope> = {}) {
    return await bridge.submit({ actor: ana, ...envelope, kind, body } as unknown as CommandOf<K>);
  }

  async function read(stream: Parameters<Bridge['events']>[1]['stream']): Promise<CoreEvent[]> {
    const events: CoreEvent[] = [];
    for await (const event of runtime.store.read({ stream })) events.push(event);
    return events;
  }

  async function seen(taskId: string, event: string, where: (event: CoreEvent) => boolean = () => true) {
    const stop = new AbortController();
    for await (const each of runtime.store.follow({ stream: { of: 'task', id: taskId } }, stop.signal)) {
      if (each.event === event && where(each)) return each;
    }
    throw new Error(`the log of ${taskId} ended without ${event}`);
  }

  async function until(taskId: string, ...states: string[]): Promise<Task> {
    const wanted = states.length > 0 ? states : ENDED;
    const stop = new AbortController();
    for await (const { event, payload } of runtime.store.follow({ stream: { of: 'task', id: taskId } }, stop.signal)) {
      const { to } = payload as { to?: string };
      if (event.startsWith('task.') && to && wanted.includes(to)) break;
    }
    return (await runtime.store.get<Task & Row>('task', taskId)) as Task;
  }

  async function openAsks(taskId: string): Promise<AskRecord[]> {
    const where = { task_id: taskId, state: 'open' };
    return [...(await runtime.store.list<AskRecord & Row>({ object: 'ask', where, limit: 200 }))];
  }

  const self: TestGateway = {
    runtime,
    bridge,
    dir,
    clock,
    send,
    async refused(kind, body, envelope) {
      try {
        await send(kind, body as CommandBody<typeof kind>, envelope);
      } catch (thrown) {
        return asFault(thrown);
      }
      throw new Error(`${kind} was accepted`);
    },
    async room({ workspace = {}, persona, actor = ana } = {}) {
      const by = { actor };
      const made =
        persona && (await send('resource.create', { object: 'persona', body: { ...PERSONA, ...persona } }, by));
      const body = { name: 'w', root: 'file:///w', ...workspace };
      const { resource: home } = await send('resource.create', { object: 'workspace', body }, by);
      const { resource: session } = await send(
        'session.create',
        { workspace_id: home.id, ...(made && { persona_id: made.resource.id }) },
        by,
      );
      return {
        workspace: home.id,
        session: session.id,
        persona: made?.resource.id,
        async task(more = {}, envelope = {}) {
          const submitted = await send(
            'task.submit',
            { session_id: session.id, input: says('go'), ...more },
            { actor, ...envelope },
          );
          return submitted.resource as unknown as Task;
        },
      };
    },
    events: (taskId) => read({ of: 'task', id: taskId }),
    all: () => read({ of: 'all' }),
    async asks(taskId, count = 1) {
      const stop = new AbortController();
      let asks = await openAsks(taskId);
      if (asks.length >= count) return asks;
      for await (const event of runtime.store.follow({ stream: { of: 'task', id: taskId } }, stop.signal)) {
        if (event.event !== 'vendor.tollbridge.ask_opened') continue;
        asks = await openAsks(taskId);
        if (asks.length >= count) break;
      }
      return asks;
    },
    async answer(askId, body = { approved: true }, actor = ana) {
      const { resource } = await send('ask.answer', { ask_id: askId, ...body }, { actor });
      return resource as unknown as AskRecord;
    },
    async receipts(taskId) {
      return (await runtime.store.receipts({ task: taskId })).map(({ receipt }) => receipt);
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

export function says(text: string): JsonObject {
  return { role: 'user', parts: [{ type: 'text', text, visibility: 'public' }] };
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
