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

export function createListening(store: Pick<Store, 'follow'>, logger: Logger): Listening {
  const ears = new Map<string, Hear>();
  let shared: AbortController | undefined;

  /** From the first task that listens until the last one stops. Whatever is missed on the way is read again. */
  async function listen(from: Cursor, over: AbortSignal): Promise<void> {
    let after: Cursor | 'now' = from;
    while (!over.aborted) {
      try {
        for await (const event of store.follow({ stream: { of: 'all' }, after }, over)) {
          after = event.id;
          if (event.task_id) ears.get(event.task_id)?.(event);
        }
      } catch (cause) {
        logger.error({ err: cause }, 'the tasks that run here could not be listened for');
        if (cause instanceof Fault && cause.kind === 'cursor_expired') after = 'now';
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS).unref());
      }
    }
  }

  async function alone(taskId: string, hear: Hear, over: AbortSignal): Promise<void> {
    try {
      for await (const event of store.follow({ stream: { of: 'task', id: taskId } }, over)) hear(event);
    } catch (cause) {
      if (!over.aborted) logger.error({ err: cause, task: taskId }, 'a running task lost its inbox');
    }
  }

  return {
    to(taskId, since, hear) {
      if (since === undefined) {
        const own = new AbortController();
        alone(taskId, hear, own.signal);
        return { close: () => own.abort() };
      }
      ears.set(taskId, hear);
      if (!shared) {
        shared = new AbortController();
        listen(since, shared.signal);
      }
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
