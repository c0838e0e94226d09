/**
 * `tollbridge replay <task>`: runs a task again from its record. Shows the replaced answers (the receipt's deltas), the
 * differences, and where a replay had to stop. No tool runs and no person is asked.
 */
import { readFile } from 'node:fs/promises';
import { createIds } from '../../../core/clock.ts';
import { dependenciesOf } from '../../../core/replay/overrides.ts';
import type { ReplayOverride } from '../../../model/commands.ts';
import type { CoreEvent } from '../../../model/events.ts';
import type { Receipt } from '../../../model/receipt.ts';
import type { Task } from '../../../model/resources.ts';
import type { Json } from '../../../model/schema.ts';
import { isTerminal, VISIBILITIES } from '../../../model/words.ts';
import type { AgentBackend, Ids, Row, Store } from '../../../ports/index.ts';
import type { CoreRuntime } from '../../../runtime/assemble.ts';
import { type CommonOptions, localActor, lookInto, quietConfigFrom, withCoreRuntime } from '../../context.ts';
import { findTask } from '../../find.ts';
import { trouble } from '../../output/error-output.ts';
import { EXIT } from '../../output/exit-codes.ts';
import { brief, eventNumber, terminalText } from '../../output/terminal-text.ts';
import { differences, type ReplayDifference } from './replay-differences.ts';

export interface ReplayOptions extends CommonOptions {
  readonly override?: readonly string[];
  /** Visibility of the override values in events and in this command's output. */
  readonly visibility?: string;
  /** An event of the task, or the id of a checkpoint. */
  readonly from?: string;
  readonly keys?: boolean;
  readonly reason?: string;
  readonly json?: boolean;
}

export async function replayTask(id: string, options: ReplayOptions): Promise<number> {
  // Looked up first: a wrong id must not open a runtime.
  const { task: source, before } = await lookInto(options, async ({ store }) => {
    const task = await findTask(store, id);
    return { task, before: await eventsOf(store, task.id) };
  });
  if (options.keys) {
    for (const { key, event_id } of dependenciesOf(before).values()) {
      if (key.startsWith('event:')) continue;
      const line = `${key}${event_id ? `  #${eventNumber(event_id)}` : ''}`;
      process.stdout.write(
        options.json ? `${JSON.stringify({ key, event_id: event_id ?? null })}\n` : terminalText(`${line}\n`),
      );
    }
    return EXIT.done;
  }
  const visibility = visibilityFrom(options.visibility);
  const overrides = await Promise.all((options.override ?? []).map((text) => overrideOf(text, before, visibility)));
  const override = Object.fromEntries(overrides);
  return await withReplayRuntime(options, async (core) => {
    const task = await replay(core, source, override, options);
    const after = await eventsOf(core.store, task.id);
    const receipt = await receiptOf(core.store, task.id);
    const changes = differences(before, after);
    const asRecorded = task.status === source.status && !failedAsReplay(task);
    const report = { source_task_id: source.id, task_id: task.id, status: task.status, source_status: source.status };
    const deltas = receipt?.deltas ?? [];
    if (options.json) {
      const { failure = null } = task;
      const receipt_id = receipt?.receipt_id ?? null;
      process.stdout.write(`${JSON.stringify({ ...report, failure, deltas, changes, receipt_id })}\n`);
    } else process.stdout.write(terminalText(said(source, task, deltas, changes, receipt)));
    const exact = Object.keys(override).length === 0;
    return failedAsReplay(task) || (exact && !asRecorded) ? EXIT.no : EXIT.done;
  });
}

/**
 * A runtime for the duration of the replay. It holds a lease on its instance name, so that no other process takes the
 * replay for orphaned work.
 */
async function withReplayRuntime<T>(options: ReplayOptions, use: (core: CoreRuntime) => Promise<T>): Promise<T> {
  const own = createIds();
  let instance = '';
  const ids: Ids = {
    next(prefix) {
      const name = own.next(prefix);
      if (prefix === 'instance') instance = name;
      return name;
    },
  };
  return await withCoreRuntime(
    options,
    async (core) => {
      const lease = await core.store.lease(`instance:${instance}`);
      try {
        return await use(core);
      } finally {
        await lease?.close();
      }
    },
    { ids, backends: await rerunnable(options) },
  );
}

/** The agents of this installation that can be run again from the record. No other agent is started by a replay. */
async function rerunnable(options: ReplayOptions): Promise<readonly AgentBackend[]> {
  const { demo } = await quietConfigFrom(options);
  if (!demo) return [];
  const { createDemoAgent } = await import('../../../demo/agent.ts');
  const pause = async () => {};
  return [createDemoAgent({ pause }), createDemoAgent({ pause, name: 'second' })];
}

async function replay(
  core: CoreRuntime,
  source: Task,
  override: Readonly<Record<string, ReplayOverride>>,
  { reason, from }: ReplayOptions,
): Promise<Task> {
  const actor = localActor();
  const replaces = Object.keys(override).length > 0;
  const mode = from ? 'from_checkpoint' : replaces ? 'with_overrides' : 'exact';
  const { resource } = await core.bridge.submit({
    kind: 'task.replay',
    actor,
    body: {
      task_id: source.id,
      mode,
      ...(replaces && { override }),
      ...(from && (/^evt_\d+$/.test(from) ? { checkpoint_event_id: from } : { checkpoint_id: from })),
      ...(reason && { reason }),
    },
  });
  await core.idle();
  const task = await core.store.get<Task & Row>('task', resource.id);
  if (!task || !isTerminal(task.status))
    throw trouble('internal', `the replay ${resource.id} did not end`, 'try again');
  return task;
}

/** `mcp:files:call_1={"status":"ok"}` or `…=@answer.json`: JSON, or a text where it is not valid JSON. */
async function overrideOf(
  text: string,
  events: readonly CoreEvent[],
  visibility: ReplayOverride['visibility'],
): Promise<readonly [string, ReplayOverride]> {
  const known = dependenciesOf(events);
  // A key may contain "=" itself: the longest known key counts.
  const key = [...known.keys()].filter((one) => text.startsWith(`${one}=`)).sort((a, b) => b.length - a.length)[0];
  const dependency = key === undefined ? undefined : known.get(key);
  if (key === undefined || !dependency) {
    const at = text.indexOf('=');
    throw trouble(
      'invalid_request',
      at < 0 ? `${text} is not an override` : `the record has no answer called ${text.slice(0, at)}`,
      'write KEY=JSON or KEY=@FILE; "tollbridge replay TASK --keys" lists the keys',
    );
  }
  const kind = dependency.kinds[0] as ReplayOverride['kind'];
  const source = text.slice(key.length + 1);
  const value = valueIn(source.startsWith('@') ? await contentOf(source.slice(1)) : source);
  return [key, { kind, value, ...(visibility && { visibility }) }];
}

async function contentOf(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (cause) {
    throw trouble('not_found', `${file} cannot be read`, 'name a file that can, after the @', cause);
  }
}

function visibilityFrom(word: string | undefined): ReplayOverride['visibility'] {
  if (word === undefined) return undefined;
  const known = VISIBILITIES.find((one) => one === word);
  if (!known) throw trouble('invalid_request', `${word} is no visibility`, `it is one of ${VISIBILITIES.join(', ')}`);
  return known;
}

function valueIn(text: string): Json {
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
  changes: readonly ReplayDifference[],
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
