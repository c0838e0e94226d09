/**
 * Messages to a peer while it works, sent in order and one at a time. They are held back until the peer has a task, and while
 * it waits for an answer, because it would take the next message for that answer.
 */
import type { JsonObject } from '../../../src/index.ts';

export interface Inbox {
  put(message: JsonObject): void;
  /** From now on messages go to `deliver` while `ready` returns true. */
  open(ready: () => boolean, deliver: (message: JsonObject) => Promise<void>): void;
  /** Checks `ready` again. */
  look(): void;
  /** Stops delivery and returns the messages that were not delivered, once the delivery in progress has succeeded or failed. */
  close(): Promise<readonly JsonObject[]>;
}

export function createInbox(): Inbox {
  const waiting: JsonObject[] = [];
  let ready = () => false;
  let deliver: (message: JsonObject) => Promise<void> = async () => {};
  let turn: Promise<void> | undefined;

  async function work(): Promise<void> {
    for (let next = takeNext(); next; next = takeNext()) await deliver(next);
  }
  function takeNext(): JsonObject | undefined {
    return ready() ? waiting.shift() : undefined;
  }
  function look(): void {
    if (turn || waiting.length === 0 || !ready()) return;
    turn = work().finally(() => {
      turn = undefined;
    });
  }

  return {
    put(message) {
      waiting.push(message);
      look();
    },
    open(isReady, deliverOne) {
      ready = isReady;
      deliver = deliverOne;
      look();
    },
    look,
    async close() {
      ready = () => false;
      await turn?.catch(() => {});
      return waiting.splice(0);
    },
  };
}
