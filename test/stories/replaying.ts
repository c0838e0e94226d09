/** Replays a story's task on the gateway it happened in, and lays the repetition beside the record. */
import type { CoreEvent } from '../../src/model/events.ts';
import type { Receipt } from '../../src/model/receipt.ts';
import type { Json, JsonObject } from '../../src/model/schema.ts';
import { walk } from './frames.ts';
import type { World } from './world.ts';

export interface Replayed {
  readonly taskId: string;
  readonly log: readonly CoreEvent[];
  readonly receipt: Receipt;
}

export async function replay({ runtime, ana: actor, log }: World, taskId: string): Promise<Replayed> {
  const { resource } = await runtime.bridge.submit({ kind: 'task.replay', actor, body: { task_id: taskId } });
  await runtime.idle();
  const [stored] = await runtime.store.receipts({ task: resource.id });
  if (!stored) throw new Error(`the replay ${resource.id} has no receipt`);
  return { taskId: resource.id, log: await log({ of: 'task', id: resource.id }), receipt: stored.receipt };
}

/**
 * What is lived through: everything between the start of a task and its end. How work is given and how it ends is the
 * replay's own; what only people did is noted, not done again.
 */
export function livedThrough(log: readonly CoreEvent[]): Json[] {
  const start = log.findIndex(({ event }) => event === 'task.started');
  const end = log.findIndex(({ event }) => event === 'receipt.issued');
  return log.slice(start + 1, end).map((event) => rendition(event, event.id, NOTED.has(event.event)));
}
const NOTED = new Set(['user.cancel_requested']);

/** The same from a replay: what it marked as repeated, under the names of the task it repeats. */
export function repeated({ log, taskId }: Replayed, source: readonly CoreEvent[]): Json[] {
  const names = new Map([[taskId, source.find(({ task_id }) => task_id)?.task_id ?? '']]);
  for (const { event, payload, replay: mark } of log) {
    if (event !== 'vendor.tollbridge.ask_opened') continue;
    const original = source.find(({ id }) => id === mark?.original_event_id);
    names.set(askId(payload), original ? askId(original.payload) : '');
  }
  const renamed = (text: string) =>
    text.replace(/\b(?:task|ask)_(?:replay_[0-9a-f]+(?:_\d+)?(?:\.q\d+)?|\d+)\b/g, (id) => names.get(id) ?? id);
  const before = source.findIndex(({ event }) => event === 'task.started');
  const past = new Set(source.slice(0, before + 1).map(({ id }) => id));
  return log
    .filter(({ replayed, replay: mark }) => replayed && !past.has(mark?.original_event_id ?? ''))
    .map((event) => {
      const noted = event.event === 'replay.event_replayed';
      const of = noted ? (event.payload.original as JsonObject) : undefined;
      const reported = rendition(event, event.replay?.original_event_id ?? null, noted);
      return { ...(walk(reported, renamed) as JsonObject), ...(of && { event: of.event as string }) };
    });
}

/** An event by what it says. Times, ids of decisions, and who may answer a question again and why are a run's own. */
function rendition({ event, actor, payload }: CoreEvent, original: string | null, noted: boolean): JsonObject {
  if (noted) return { event, original };
  const { action, decision, ask, task, at: _at, expires_at: _expires, ...rest } = payload;
  return {
    event,
    original,
    actor: actor ?? null,
    payload: timeless({
      ...rest,
      ...(action !== undefined && { action: without(action, ['id']) }),
      ...(decision !== undefined && { decision: without(decision, ['ask']) }),
      ...(ask !== undefined && { ask: without(ask, ['to', 'reason']) }),
      ...(task !== undefined && { task: without(task, ['parent_task_id', 'metadata']) }),
    }),
  };
}

function timeless(value: JsonObject): Json {
  return walk(value, (text) => (/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(text) ? 'then' : text));
}

function askId(payload: JsonObject): string {
  return String((payload.ask as JsonObject | undefined)?.id);
}

function without(value: Json, members: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(value as JsonObject).filter(([name]) => !members.includes(name)));
}

/** The receipt of a replay but for the ids it was given and the seal over them. */
export function undeclared({ receipt }: Replayed): JsonObject {
  const { receipt_id: _id, chain: _chain, signatures: _signatures, subject, identifiers, ...rest } = receipt;
  const { id: _subject, ...about } = subject;
  const { task_id: _task, ...ids } = identifiers;
  return { ...rest, subject: about, identifiers: ids } as unknown as JsonObject;
}
