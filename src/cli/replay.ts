/**
 * `tollbridge replay <task>`: the record lived through again. Shows what was replaced (the receipt's deltas) and what
 * came out otherwise. Nothing runs and nobody is asked.
 */
import type { House } from '../compose.ts';
import { createIds } from '../core/clock.ts';
import { dependenciesOf } from '../core/replay-plan.ts';
import type { ReplayOverride } from '../model/commands.ts';
import type { CoreEvent } from '../model/events.ts';
import type { Receipt } from '../model/receipt.ts';
import type { Task } from '../model/resources.ts';
import type { Json } from '../model/schema.ts';
import { isTerminal } from '../model/words.ts';
import type { Ids, Row, Store } from '../ports.ts';
import { trouble } from './complaint.ts';
import { type CommonOptions, localActor, lookInto, visit } from './context.ts';
import { EXIT } from './exit-codes.ts';
import { findTask } from './find.ts';
import { brief, eventNumber, plain } from './plain.ts';
import { type Change, differences } from './replay-differences.ts';

export interface ReplayOptions extends CommonOptions {
  readonly override?: readonly string[];
  readonly keys?: boolean;
  readonly reason?: string;
  readonly json?: boolean;
}

export async function replayTask(id: string, options: ReplayOptions): Promise<number> {
  // Looked up first: a wrong id must not open a house.
  const { task: source, before } = await lookInto(options, async ({ store }) => {
    const task = await findTask(store, id);
    return { task, before: await eventsOf(store, task.id) };
  });
  if (options.keys) {
    for (const { key, event_id } of dependenciesOf(before).values()) {
      if (key.startsWith('event:')) continue;
      const line = `${key}${event_id ? `  #${eventNumber(event_id)}` : ''}`;
      process.stdout.write(
        options.json ? `${JSON.stringify({ key, event_id: event_id ?? null })}\n` : plain(`${line}\n`),
      );
    }
    return EXIT.done;
  }
  const override = Object.fromEntries((options.override ?? []).map((text) => overrideOf(text, before)));
  return await living(options, async (house) => {
    const task = await replay(house, source, override, options.reason);
    const after = await eventsOf(house.store, task.id);
    const receipt = await receiptOf(house.store, task.id);
    const changes = differences(before, after);
    const asRecorded = task.status === source.status && !failedAsReplay(task);
    const report = { source_task_id: source.id, task_id: task.id, status: task.status, source_status: source.status };
    const deltas = receipt?.deltas ?? [];
    if (options.json) {
      const { failure = null } = task;
      const receipt_id = receipt?.receipt_id ?? null;
      process.stdout.write(`${JSON.stringify({ ...report, failure, deltas, changes, receipt_id })}\n`);
    } else process.stdout.write(plain(said(source, task, deltas, changes, receipt)));
    return failedAsReplay(task) || (deltas.length === 0 && !asRecorded) ? EXIT.no : EXIT.done;
  });
}

/** A house of its own for as long as it takes. It holds its name, so that no other process takes the replay for an orphan. */
async function living<T>(options: ReplayOptions, use: (house: House) => Promise<T>): Promise<T> {
  const own = createIds();
  let instance = '';
  const ids: Ids = {
    next(prefix) {
      const name = own.next(prefix);
      if (prefix === 'instance') instance = name;
      return name;
    },
  };
  return await visit(
    options,
    async (house) => {
      const lease = await house.store.lease(`instance:${instance}`);
      try {
        return await use(house);
      } finally {
        await lease?.close();
      }
    },
    { ids },
  );
}

async function replay(
  house: House,
  source: Task,
  override: Readonly<Record<string, ReplayOverride>>,
  reason: string | undefined,
): Promise<Task> {
  const actor = localActor();
  const { resource } = await house.bridge.submit({
    kind: 'task.replay',
    actor,
    body: {
      task_id: source.id,
      ...(Object.keys(override).length > 0 && { mode: 'with_overrides', override }),
      ...(reason && { reason }),
    },
  });
  await house.idle();
  const task = await house.store.get<Task & Row>('task', resource.id);
  if (!task || !isTerminal(task.status))
    throw trouble('internal', `the replay ${resource.id} did not end`, 'try again');
  return task;
}

/** `mcp:files:call_1={"status":"ok"}`: what comes after the first `=` is JSON, or a text when it is not. */
function overrideOf(text: string, events: readonly CoreEvent[]): readonly [string, ReplayOverride] {
  const at = text.indexOf('=');
  const key = at < 0 ? text : text.slice(0, at);
  const known = dependenciesOf(events);
  const dependency = known.get(key);
  if (at < 0 || !dependency) {
    throw trouble(
      'invalid_request',
      at < 0 ? `${text} is not an override` : `the record has no answer called ${key}`,
      'write KEY=JSON; "tollbridge replay TASK --keys" lists the keys',
    );
  }
  const kind = dependency.kinds[0] as ReplayOverride['kind'];
  return [key, { kind, value: givenValue(text.slice(at + 1)) }];
}

function givenValue(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}

function said(
  source: Task,
  task: Task,
  deltas: NonNullable<Receipt['deltas']>,
  changes: readonly Change[],
  receipt: Receipt | undefined,
): string {
  const failure = task.failure ? `  ${brief(task.failure.code)}: ${brief(task.failure.message, 200)}` : '';
  return [
    `replayed ${source.id} as ${task.id}: ${task.status}${failure}`,
    deltas.length === 0 ? 'nothing was replaced' : `${deltas.length} replaced:`,
    ...deltas.map(({ operation, override_key, path, before_sha256, after_sha256 }) =>
      [`  ${operation} ${override_key ?? path}`, `${short(before_sha256)} → ${short(after_sha256)}`].join('  '),
    ),
    changes.length === 0 ? 'everything came out as it did then' : 'came out otherwise:',
    ...changes.flatMap(({ original_event_id, before, after }) => [
      ...(before === null ? [] : [`  - #${eventNumber(original_event_id ?? '')}  ${before}`]),
      ...(after === null ? [] : [`  + ${original_event_id ? `#${eventNumber(original_event_id)}` : 'new'}  ${after}`]),
    ]),
    `receipt ${receipt?.receipt_id ?? 'none'}`,
    '',
  ].join('\n');
}

function short(hash: string | null | undefined): string {
  return hash ? hash.slice(0, 19) : 'nothing';
}

function failedAsReplay({ failure }: Task): boolean {
  return failure?.code === 'replay_diverged' || failure?.code === 'replay_dependency_unavailable';
}

async function receiptOf(store: Store, task: string): Promise<Receipt | undefined> {
  return (await store.receipts({ task, limit: 1 }))[0]?.receipt;
}

async function eventsOf(store: Store, id: string): Promise<readonly CoreEvent[]> {
  const events: CoreEvent[] = [];
  for await (const event of store.read({ stream: { of: 'task', id } })) events.push(event);
  return events;
}
