/**
 * Reads runs from the log: the tasks a run consists of, and all its events so far. Rendered events are cached for the next reader,
 * because a log only grows; the caller's access is checked on every read.
 */
import { runState } from '../../../mappings/runs.ts';
import { type Actor, type Bridge, Fault, LruMap, type Row, TASK_STATES, type Task } from '../../../src/index.ts';
import type { RunEvent } from './frames.ts';
import { createKeyQueue } from './key-queue.ts';
import { isFault, RunsRefusal, refusing } from './refusal.ts';
import { createRunRenderer, type RunProgress, type RunRenderer } from './render/events.ts';
import { firstTaskOf, runMetadataOf } from './run-metadata.ts';

export interface OpenRun {
  readonly id: string;
  readonly first: Task;
  /** The task that is, or was last, at work. */
  readonly current: Task;
  readonly standing: RunProgress;
  /** All rendered events; `seq` is the index plus one. */
  readonly events: readonly RunEvent[];
  /** The last log event that was rendered. */
  readonly upTo: string | undefined;
  /** The log no longer has the run's first events: its state is known, its events are not. */
  readonly expired: boolean;
}

export interface RunReader {
  /** The run in its present state; a run that is absent and one of another caller get the same refusal. */
  open(actor: Actor, runId: string): Promise<OpenRun>;
}

interface Page {
  readonly renderer: RunRenderer;
  readonly events: RunEvent[];
  current: string;
  attempt: number;
  cursor: string | undefined;
}

/** The number of runs whose rendered events are cached. */
const MOST_PAGES = 256;

export function createRunReader(bridge: Pick<Bridge, 'view' | 'list' | 'events'>): RunReader {
  const pages = new LruMap<string, Page>(MOST_PAGES);
  const turns = createKeyQueue();

  function pageOf(runId: string, firstTask: string): Page {
    const known = pages.get(runId);
    const page = known ?? {
      renderer: createRunRenderer(),
      events: [],
      current: firstTask,
      attempt: 1,
      cursor: undefined,
    };
    pages.set(runId, page);
    return page;
  }

  async function read(actor: Actor, page: Page): Promise<void> {
    const stream = { of: 'task', id: page.current } as const;
    for await (const event of bridge.events(actor, { stream, ...(page.cursor && { after: page.cursor }) })) {
      page.events.push(...page.renderer.render(event));
      page.cursor = event.id;
    }
  }

  async function childOf(actor: Actor, runId: string, parent: string, attempt: number): Promise<Task | undefined> {
    const where = { parent_task_id: parent };
    const { data } = await bridge.list<Task & Row>(actor, { object: 'task', where, limit: 200 });
    return data.find((task) => {
      const metadata = runMetadataOf(task);
      return metadata?.run_id === runId && metadata.attempt === attempt + 1;
    });
  }

  /** Moves to the next attempt, once the last one has failed and a retry was requested. */
  async function next(actor: Actor, runId: string, page: Page): Promise<boolean> {
    if (page.renderer.standing().status !== 'failed') return false;
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
      // A read that failed half-way is repeated from the beginning.
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
      standing: page.renderer.standing(),
      events: page.events,
      upTo: page.cursor,
      expired: false,
    };
  }

  /** The state of a run whose events are no longer kept: that of its last attempt. */
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
    const standing = { status, seq: 0, questions: [], updated_at, received_at: updated_at };
    return { id: runId, first, current, standing, events: [], upTo: undefined, expired: true };
  }

  return {
    open: (actor, runId) =>
      refusing({ not_found: 'RUN_NOT_FOUND' }, async () => {
        const firstTask = firstTaskOf(runId);
        if (!firstTask) throw new RunsRefusal('RUN_NOT_FOUND');
        const first = await bridge.view<Task & Row>(actor, 'task', firstTask);
        // A replay copies the metadata of its task; that does not make it a run.
        const begins = runMetadataOf(first)?.attempt === 1 && !first.parent_task_id;
        if (!begins) throw new Fault('not_found', `no run ${runId}`);
        return await turns.take(runId, () => catchUp(actor, runId, first));
      }),
  };
}
