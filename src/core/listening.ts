/**
 * What others want of the tasks that run here, read from the log like everything else. All of them share one look at it:
 * a look of its own for every task would read again what its process has just written.
 */
import type { CoreEvent, Cursor } from '../model/events.ts';
import { Fault } from '../model/faults.ts';
import type { Logger, Store } from '../ports.ts';

export type Hear = (event: CoreEvent) => void;

export interface Listening {
  /** Everything said in the task after `since`, until it is closed; from its beginning when there is no such place. */
  to(taskId: string, since: Cursor | undefined, hear: Hear): { close(): void };
}

const AGAIN_MS = 250;
/** Said to tasks nobody listens to here, yet: between a task's first commit and its first look others may have spoken. */
const UNHEARD = 1024;
/** Later than any place in the log. */
const NEVER = '\uffff';

/** `kinds`: what is worth a task's attention at all; nothing else is asked for, handed over or kept. */
export function createListening(store: Pick<Store, 'follow'>, logger: Logger, kinds: readonly string[]): Listening {
  const ears = new Map<string, Hear>();
  let shared: AbortController | undefined;
  let unheard: CoreEvent[] = [];
  /** Everything said after this place has been heard, or is among the unheard, or is still to come. */
  let since: Cursor = NEVER;

  function hear(event: CoreEvent): void {
    if (!event.task_id) return;
    const ear = ears.get(event.task_id);
    if (ear) ear(event);
    else unheard.push(event);
    if (unheard.length < 2 * UNHEARD) return;
    since = unheard[UNHEARD - 1]!.id;
    unheard = unheard.slice(UNHEARD);
  }

  /** From the first task that listens until the last one stops. Whatever is missed on the way is read again. */
  async function listen(from: Cursor, over: AbortSignal): Promise<void> {
    let after: Cursor | 'now' = from;
    while (!over.aborted) {
      try {
        for await (const event of store.follow({ stream: { of: 'all' }, after, kinds }, over)) {
          after = event.id;
          hear(event);
        }
      } catch (cause) {
        logger.error({ err: cause }, 'the tasks that run here could not be listened for');
        if (cause instanceof Fault && cause.kind === 'cursor_expired') {
          after = 'now';
          since = NEVER;
        }
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS).unref());
      }
    }
  }

  async function alone(taskId: string, hear: Hear, over: AbortSignal): Promise<void> {
    try {
      for await (const event of store.follow({ stream: { of: 'task', id: taskId }, kinds }, over)) hear(event);
    } catch (cause) {
      if (!over.aborted) logger.error({ err: cause, task: taskId }, 'a running task lost its inbox');
    }
  }

  return {
    to(taskId, from, ear) {
      // Whoever is not sure to have missed nothing looks for itself.
      if (from === undefined || (shared && from < since)) {
        const own = new AbortController();
        alone(taskId, ear, own.signal);
        return { close: () => own.abort() };
      }
      ears.set(taskId, ear);
      if (!shared) {
        shared = new AbortController();
        unheard = [];
        since = from;
        listen(from, shared.signal);
      }
      const mine = unheard.filter(({ task_id, id }) => task_id === taskId && id > from);
      if (mine.length > 0) unheard = unheard.filter(({ task_id }) => task_id !== taskId);
      for (const event of mine) ear(event);
      return {
        close() {
          ears.delete(taskId);
          if (ears.size > 0) return;
          shared?.abort();
          shared = undefined;
        },
      };
    },
  };
}
