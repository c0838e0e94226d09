/** Performs a story in a protocol, in a world of its own, and lays what happened beside what the story says happens. */
import type { CoreEvent } from '../../src/model/events.ts';
import type { Receipt } from '../../src/model/receipt.ts';
import type { Task } from '../../src/model/resources.ts';
import { essentialLog, essentialReceipt, spine } from './essence.ts';
import type { Line } from './frames.ts';
import { readCore, readReceipts, readRendition, receiptFile, type Story } from './story.ts';
import { tellerOf } from './teller.ts';
import { openWorld, type World } from './world.ts';

export interface Performance {
  readonly protocol: string;
  readonly taskId: string;
  readonly frames: readonly Line[];
  /** The log of the story's workspace as the core rendition has it; elsewhere the whole log of the gateway. */
  readonly log: readonly CoreEvent[];
  /** By the name of the file they are kept in. */
  readonly receipts: Readonly<Record<string, Receipt>>;
  readonly read: readonly CoreEvent[] | undefined;
  readonly left: Story['leaves'];
  readonly errorLog: readonly string[];
  /** Calls that reached a tool without an allow of exactly their arguments in the log. */
  readonly undecided: readonly string[];
}

export interface PerformOptions<T> {
  /** Takes down what is said instead of expecting it. */
  readonly record?: boolean;
  /** While the gateway is still open. */
  readonly afterwards?: (world: World, performance: Performance) => Promise<T>;
}

export async function perform<T = undefined>(
  story: Story,
  protocol: string,
  { record = false, afterwards }: PerformOptions<T> = {},
): Promise<Performance & { readonly after: T | undefined }> {
  const teller = await tellerOf(protocol);
  const world = await openWorld(story);
  try {
    const { frames, read } = await teller.tell(world, readRendition(story.name, protocol), record);
    await world.runtime.idle();
    const log = await world.log(protocol === 'core' ? undefined : { of: 'all' });
    const tasks = tasksIn(log);
    const first = tasks.find(({ parent_task_id }) => !parent_task_id);
    if (!first) throw new Error(`${story.name}: nobody gave any work`);
    const receipts: Record<string, Receipt> = {};
    for (const { id } of tasks) {
      for (const { receipt } of await world.runtime.store.receipts({ task: id }))
        receipts[receiptFile(id, first.id)] = receipt;
    }
    const errorLog = [...world.errorLog];
    const undecided = world.undecided(log);
    const left = leftBy(world);
    const performance = { protocol, taskId: first.id, frames, log, receipts, read, left, errorLog, undecided };
    return { ...performance, after: await afterwards?.(world, performance) };
  } finally {
    await world.close();
  }
}

/** What the demo tools hold: the only proof that something was really done, or was not. */
export function leftBy({ tools }: World): Story['leaves'] {
  return { outbox: [...tools.outbox], notes: Object.fromEntries(tools.notes) };
}

function tasksIn(log: readonly CoreEvent[]): Task[] {
  return log.flatMap(({ event, payload }) => (event === 'task.submitted' ? [payload.task as unknown as Task] : []));
}

/** What has to be equal, in the form in which it has to be. The core rendition is held to every byte. */
export interface Sides {
  readonly frames: unknown;
  readonly log: unknown;
  readonly receipts: unknown;
  readonly left: unknown;
}

export async function sides(story: Story, performed: Performance): Promise<{ came: Sides; reported: Sides }> {
  const { protocol } = performed;
  const core = { log: readCore(story.name), receipts: readReceipts(story.name) };
  const { leaves } = story;
  if (protocol === 'core') {
    const { log, receipts, left } = performed;
    return { came: { frames: [], log, receipts, left }, reported: { frames: [], ...core, left: leaves } };
  }
  const { shares, effects } = await tellerOf(protocol);
  const essence = ({ log, receipts }: Pick<Performance, 'log' | 'receipts'>) =>
    shares === 'log'
      ? { log: essentialLog(log), receipts: ordered(receipts).map(essentialReceipt) }
      : { log: spine(log, ordered(receipts)), receipts: undefined };
  return {
    came: { frames: performed.frames, ...essence(performed), left: performed.left },
    reported: {
      frames: readRendition(story.name, protocol),
      ...essence(core),
      left: effects === 'here' ? leaves : performed.left,
    },
  };
}

function ordered(receipts: Performance['receipts']): Receipt[] {
  return Object.keys(receipts)
    .sort()
    .map((file) => receipts[file] as Receipt);
}
