/**
 * Runs as the log has them: which tasks a run is made of, and everything told of it so far. What was read once is kept for
 * the next reader, because a log only grows; who may read is asked anew each time.
 */
import { runState } from '../../mappings/runs.ts';
import { type Actor, type Bridge, Fault, type Row, TASK_STATES, type Task } from '../../src/index.ts';
import type { RunEvent } from './frames.ts';
import { isFault, RunsRefusal, refusing } from './refusal.ts';
import { firstTaskOf, runMetadataOf } from './run-metadata.ts';
import { createTelling, type Standing, type Telling } from './telling.ts';
import { createTurns } from './turns.ts';

export interface OpenRun {
  readonly id: string;
  readonly first: Task;
  /** The task that is, or was last, at work. */
  readonly current: Task;
  readonly standing: Standing;
  /** Everything told so far; `seq` is the place plus one. */
  readonly events: readonly RunEvent[];
  /** The last event of the log that went into it. */
  readonly upTo: string | undefined;
  /** The log no longer has its beginning: how it stands is known, what was told is not. */
  readonly expired: boolean;
}

export interface Book {
  /** The run as it stands now, or the refusal that hides what is absent and what is not this caller's alike. */
  open(actor: Actor, runId: string): Promise<OpenRun>;
}

interface Page {
  readonly telling: Telling;
  readonly events: RunEvent[];
  current: string;
  attempt: number;
  cursor: string | undefined;
}

/** Runs whose telling is kept. */
const MOST_PAGES = 256;

export function createBook(bridge: Pick<Bridge, 'view' | 'list' | 'events'>): Book {
  const pages = new Map<string, Page>();
  const turns = createTurns();

  function pageOf(runId: string, firstTask: string): Page {
    const known = pages.get(runId);
    const page = known ?? { telling: createTelling(), events: [], current: firstTask, attempt: 1, cursor: undefined };
    pages.delete(runId);
    pages.set(runId, page);
    const oldest = pages.size > MOST_PAGES ? pages.keys().next().value : undefined;
    if (oldest !== undefined) pages.delete(oldest);
    return page;
  }

  async function read(actor: Actor, page: Page): Promise<void> {
    const stream = { of: 'task', id: page.current } as const;
    for await (const event of bridge.events(actor, { stream, ...(page.cursor && { after: page.cursor }) })) {
      page.events.push(...page.telling.tell(event));
      page.cursor = event.id;
    }
  }

  async function childOf(actor: Actor, runId: string, parent: string, attempt: number): Promise<Task | undefined> {
    const where = { parent_task_id: parent };
    const { data } = await bridge.list<Task & Row>(actor, { object: 'task', where, limit: 200 });
    return data.find((task) => {
      const given = runMetadataOf(task);
      return given?.run_id === runId && given.attempt === attempt + 1;
    });
  }

  /** The next attempt, once the last one has failed and someone has asked for another. */
  async function next(actor: Actor, runId: string, page: Page): Promise<boolean> {
    if (page.telling.standing().status !== 'failed') return false;
    const child = await childOf(actor, runId, page.current, page.attempt);
    if (!child) return false;
    page.current = child.id;
    page.attempt += 1;
    page.cursor = undefined;
    return true;
  }

  async function catchUp(actor: Actor, runId: string, first: Task): Promise<OpenRun> {
    const page = pageOf(runId, first.id);
    try {
      do await read(actor, page);
      while (await next(actor, runId, page));
    } catch (thrown) {
      // What broke off in the middle is read again from the beginning.
      pages.delete(runId);
      if (isFault(thrown, 'cursor_expired')) return await fromTasks(actor, runId, first);
      throw thrown;
    }
    if (page.events.length === 0) {
      pages.delete(runId);
      return await fromTasks(actor, runId, first);
    }
    const current = page.current === first.id ? first : await bridge.view<Task & Row>(actor, 'task', page.current);
    return {
      id: runId,
      first,
      current,
      standing: page.telling.standing(),
      events: page.events,
      upTo: page.cursor,
      expired: false,
    };
  }

  /** How a run stands when its events are no longer kept: as its last attempt does. */
  async function fromTasks(actor: Actor, runId: string, first: Task): Promise<OpenRun> {
    let current = first;
    for (let attempt = 1; current.status === 'FAILED'; attempt += 1) {
      const child = await childOf(actor, runId, current.id, attempt);
      if (!child) break;
      current = child;
    }
    const known = TASK_STATES.find((state) => state === current.status) ?? 'WORKING';
    const { updated_at } = current;
    const status = runState.toWire(known);
    const standing = { status, seq: 0, questions: [], updated_at, heard_at: updated_at };
    return { id: runId, first, current, standing, events: [], upTo: undefined, expired: true };
  }

  return {
    open: (actor, runId) =>
      refusing({ not_found: 'RUN_NOT_FOUND' }, async () => {
        const firstTask = firstTaskOf(runId);
        if (!firstTask) throw new RunsRefusal('RUN_NOT_FOUND');
        const first = await bridge.view<Task & Row>(actor, 'task', firstTask);
        // A replay repeats what is noted on its task; it is no run for that.
        const begins = runMetadataOf(first)?.attempt === 1 && !first.parent_task_id;
        if (!begins) throw new Fault('not_found', `no run ${runId}`);
        return await turns.take(runId, () => catchUp(actor, runId, first));
      }),
  };
}
