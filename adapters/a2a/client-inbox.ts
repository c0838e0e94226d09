/**
 * What is said to a peer while it works, in order and one at a time. Kept back until the peer has a task, and while it waits for an
 * answer: there the next message would be taken for one.
 */
import type { JsonObject } from '../../src/index.ts';

export interface Inbox {
  put(message: JsonObject): void;
  /** From now on messages are given to `deliver` while `ready` says so. */
  open(ready: () => boolean, deliver: (message: JsonObject) => Promise<void>): void;
  /** It may be ready now. */
  look(): void;
  /** Nothing more is delivered; what was not. Resolves when what was under way has arrived, or has not. */
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
