/**
 * Reads commands for the tasks that run here from the log. All tasks share one follower: a follower for every task would read again
 * what its process has just written.
 */
import type { CoreEvent, Cursor } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { Logger, Store } from '../../ports/index.ts';

export type EventListener = (event: CoreEvent) => void;

export interface Listening {
  /** All events of the task after `since`, until it is closed; from its beginning when `since` is undefined. */
  to(taskId: string, since: Cursor | undefined, listener: EventListener): { close(): void };
}

const AGAIN_MS = 250;
/** Events of tasks without a listener here yet: others may write between a task's first commit and its first read. */
const MOST_UNDELIVERED = 1024;
/** Later than any cursor. */
const NEVER = '\uffff';

/** `kinds`: the events that concern a task; no others are requested, delivered or kept. */
export function createListening(store: Pick<Store, 'follow'>, logger: Logger, kinds: readonly string[]): Listening {
  const listeners = new Map<string, EventListener>();
  let shared: AbortController | undefined;
  let undelivered: CoreEvent[] = [];
  /** Every event after this cursor has been delivered, is among the undelivered, or is still to come. */
  let since: Cursor = NEVER;

  function deliver(event: CoreEvent): void {
    if (!event.task_id) return;
    const listener = listeners.get(event.task_id);
    if (listener) listener(event);
    else undelivered.push(event);
    if (undelivered.length < 2 * MOST_UNDELIVERED) return;
    since = undelivered[MOST_UNDELIVERED - 1]!.id;
    undelivered = undelivered.slice(MOST_UNDELIVERED);
  }

  /** Runs from the first listening task until the last one stops. Events missed by a failure are read again. */
  async function listen(from: Cursor, over: AbortSignal): Promise<void> {
    let after: Cursor | 'now' = from;
    while (!over.aborted) {
      try {
        for await (const event of store.follow({ stream: { of: 'all' }, after, kinds }, over)) {
          after = event.id;
          deliver(event);
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

  async function alone(taskId: string, listener: EventListener, over: AbortSignal): Promise<void> {
    try {
      for await (const event of store.follow({ stream: { of: 'task', id: taskId }, kinds }, over)) listener(event);
    } catch (cause) {
      if (!over.aborted) logger.error({ err: cause, task: taskId }, 'a running task lost its inbox');
    }
  }

  return {
    to(taskId, from, listener) {
      // A listener that may have missed events follows the log by itself.
      if (from === undefined || (shared && from < since)) {
        const own = new AbortController();
        alone(taskId, listener, own.signal);
        return { close: () => own.abort() };
      }
      listeners.set(taskId, listener);
      if (!shared) {
        shared = new AbortController();
        undelivered = [];
        since = from;
        listen(from, shared.signal);
      }
      const mine = undelivered.filter(({ task_id, id }) => task_id === taskId && id > from);
      if (mine.length > 0) undelivered = undelivered.filter(({ task_id }) => task_id !== taskId);
      for (const event of mine) listener(event);
      return {
        close() {
          listeners.delete(taskId);
          if (listeners.size > 0) return;
          shared?.abort();
          shared = undefined;
        },
      };
    },
  };
}
