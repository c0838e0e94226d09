/**
 * A whole gateway in a temporary directory, with agents and tools that follow a script. Nothing in it is a stand-in: the
 * store, the keys, the rules and the core are the real ones.
 */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import type { Actor } from '../../../src/model/actions.ts';
import type { AskRecord } from '../../../src/model/asks.ts';
import type { Command, CommandBody, CommandKind } from '../../../src/model/commands.ts';
import type { CoreEvent } from '../../../src/model/events.ts';
import type { Receipt } from '../../../src/model/receipt.ts';
import type { Message, Session, Task } from '../../../src/model/resources.ts';
import type { JsonObject } from '../../../src/model/schema.ts';
import { isTerminal } from '../../../src/model/words.ts';
import type { Accepted, Row } from '../../../src/ports/index.ts';
import { type CoreRuntime, type CoreRuntimeOptions, openCoreRuntime } from '../../../src/runtime/assemble.ts';
import { eventually } from '../eventually.ts';
import { forgetTestStore, openTestStore } from '../gateway/test-store.ts';

export const ana: Actor = { id: 'ana', kind: 'person', scopes: ['*'], interactive: true };
export const bo: Actor = { id: 'bo', kind: 'person', scopes: ['*'], interactive: true };

/** Everything is allowed by rule, so that only tests about asking are about asking. */
export const ALLOW_ALL = `[{ id: everything, then: allow }]`;
/** Tools whose name begins with `ask` need a person, `no` tools are blocked, `mend` tools get `safe: true`. */
export const MIXED = `
- { id: ordinary, then: allow }
- { id: people, when: { kind: tool, tool: ask* }, then: ask, say: a person decides }
- { id: never, when: { kind: tool, tool: no* }, then: block, say: not here }
- { id: mended, when: { kind: tool, tool: mend* }, then: modify, set: { safe: true }, say: made safe }
`;

/** Undone after the test, last first, however it ended. */
export function afterwards(clear: () => Promise<unknown>): void {
  onTestFinished(async () => void (await clear()));
}

export async function freshDir(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'tollbridge-life-'));
  afterwards(async () => {
    forgetTestStore(dir);
    await rm(dir, { recursive: true, force: true });
  });
  return dir;
}

export type LifeOptions = Omit<CoreRuntimeOptions, 'dataDir'> & {
  readonly dir?: string;
  /** As YAML. */
  readonly rules?: string;
};

export interface Life {
  readonly runtime: CoreRuntime;
  readonly dir: string;
  readonly recovered: Awaited<ReturnType<CoreRuntime['start']>>;
  /** A command by ana, or by the client that is named. */
  do<K extends CommandKind>(
    kind: K,
    body: CommandBody<K>,
    more?: Partial<Omit<Command, 'kind' | 'body'>>,
  ): Promise<Accepted<K>>;
  workspace(body?: JsonObject): Promise<string>;
  /** In a workspace of its own unless one is named. */
  session(body?: Partial<CommandBody<'session.create'>>): Promise<string>;
  submit(session: string, body?: Partial<CommandBody<'task.submit'>>): Promise<Task>;
  task(id: string): Promise<Task>;
  events(taskId: string): Promise<CoreEvent[]>;
  /** Waits for an event of the task, one that is there already included. */
  seen(taskId: string, wanted: string | ((event: CoreEvent) => boolean)): Promise<CoreEvent>;
  ended(taskId: string): Promise<Task>;
  receipt(taskId: string): Promise<Receipt>;
  messages(sessionId: string): Promise<readonly (Message & Row)[]>;
  view<T extends Row = Session & Row>(object: string, id: string): Promise<T>;
  /** Waits for the task's open question. */
  ask(taskId: string): Promise<AskRecord>;
  openAsks(): Promise<readonly AskRecord[]>;
  answer(askId: string, body: Omit<CommandBody<'ask.answer'>, 'ask_id'>, by?: Actor): Promise<void>;
  close(): Promise<void>;
}

export async function openLife(options: LifeOptions = {}): Promise<Life> {
  const { dir: input, rules = ALLOW_ALL, ...rest } = options;
  const dir = input ?? (await freshDir());
  const runtime = await openCoreRuntime({
    policy: { load: async () => ({ rules, files: [] }) },
    ...rest,
    replace: { openStore: openTestStore, ...rest.replace },
    dataDir: dir,
  });
  let open = true;
  const close = async () => {
    if (!open) return;
    open = false;
    await runtime.close();
  };
  afterwards(close);
  expect((await runtime.policy.reload()).errors).toEqual([]);
  const recovered = await runtime.start();
  return { ...lifeOf(runtime, dir), recovered, close };
}

export function lifeOf(runtime: CoreRuntime, dir: string): Omit<Life, 'recovered' | 'close'> {
  const { bridge, store } = runtime;
  const perform: Life['do'] = (kind, body, more = {}) => bridge.submit({ actor: ana, ...more, kind, body } as never);

  async function seen(taskId: string, wanted: string | ((event: CoreEvent) => boolean)): Promise<CoreEvent> {
    const matches = typeof wanted === 'string' ? (event: CoreEvent) => event.event === wanted : wanted;
    const stop = new AbortController();
    const met: string[] = [];
    const timer = setTimeout(() => stop.abort(), 15_000);
    try {
      for await (const event of store.follow({ stream: { of: 'task', id: taskId } }, stop.signal)) {
        if (matches(event)) return event;
        met.push(event.event);
      }
    } finally {
      clearTimeout(timer);
    }
    throw new Error(`${String(wanted)} never came; the task said ${met.join(', ')}`);
  }

  return {
    runtime,
    dir,
    do: perform,
    async workspace(body = {}) {
      const made = await perform('resource.create', {
        object: 'workspace',
        body: { name: 'w', root: 'file:///w', ...body },
      });
      return made.resource.id;
    },
    async session(body = {}) {
      const workspace_id = body.workspace_id ?? (await this.workspace());
      return (await perform('session.create', { ...body, workspace_id })).resource.id;
    },
    async submit(session, body = {}) {
      const made = await perform('task.submit', { session_id: session, input: said('please'), ...body });
      return made.resource as Task & Row;
    },
    async task(id) {
      return (await store.get<Task & Row>('task', id)) as Task;
    },
    events: (taskId) => all(store.read({ stream: { of: 'task', id: taskId } })),
    seen,
    async ended(taskId) {
      await seen(taskId, ({ event, payload }) => event.startsWith('task.') && isTerminal(String(payload.to)));
      return await this.task(taskId);
    },
    async receipt(taskId) {
      const [found] = await store.receipts({ task: taskId });
      expect(found, `a receipt of ${taskId}`).toBeDefined();
      return found!.receipt;
    },
    async messages(sessionId) {
      return await pages((after) =>
        store.list<Message & Row>({ object: 'message', where: { session_id: sessionId }, limit: 200, ...after }),
      );
    },
    view: (object, id) => bridge.view(ana, object, id),
    async ask(taskId) {
      const { payload } = await seen(taskId, 'vendor.tollbridge.ask_opened');
      return payload.ask as unknown as AskRecord;
    },
    openAsks: () => store.list<AskRecord & Row>({ object: 'ask', where: { state: 'open' } }),
    async answer(ask_id, body, by = ana) {
      await perform('ask.answer', { ask_id, ...body }, { actor: by });
    },
  };
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

export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

/** What a person says, as a message. */
export function said(text: string, role: 'user' | 'assistant' = 'user') {
  return { role, parts: [{ type: 'text', text, visibility: 'public' }] };
}

export const kinds = (events: readonly CoreEvent[]): string[] => events.map(({ event }) => event);

/** `SUBMITTED → WORKING → …`, as the events tell it. */
export function path(events: readonly CoreEvent[]): string[] {
  return events.filter(({ event }) => event.startsWith('task.')).map(({ payload }) => String(payload.to));
}

export async function faultOf(work: Promise<unknown>): Promise<{ kind: string; param: string | undefined }> {
  try {
    await work;
  } catch (thrown) {
    const { kind, param } = thrown as { kind: string; param: string | undefined };
    return { kind, param };
  }
  throw new Error('it went through');
}

export async function until(what: () => boolean | Promise<boolean>): Promise<void> {
  await eventually(what);
}
