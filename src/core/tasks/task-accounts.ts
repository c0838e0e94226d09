/**
 * The account of each running task, updated as events are committed, so that ending a long task reads nothing. Events of other
 * processes are read from the log when they are missing.
 */

import type { CoreEvent, Cursor } from '../../model/events.ts';
import { LruMap } from '../../model/values/lru-map.ts';
import type { Account, ReceiptIssuer, Store } from '../../ports/index.ts';

export interface TaskAccount {
  readonly account: Account;
  cursor: Cursor | undefined;
  /** Another process has written to the task since; the log has its events. */
  behind: boolean;
  /** Whether the task has produced any file. */
  files: boolean;
  /** Notifies a pending end of the task that more events were written. */
  onEvent: (() => void) | undefined;
}

export interface TaskAccounts {
  /** Takes the events of a commit. They are entered later, so that the caller of the commit is answered first. */
  observe(events: readonly CoreEvent[]): void;
  /** Enters the observed events. */
  readUp(): void;
  get(taskId: string): TaskAccount | undefined;
  /** The account with every event in the log so far. */
  catchUp(taskId: string): Promise<TaskAccount>;
  /** Starts an account from the log: all of the task is read, unless its events are given. */
  open(taskId: string, written?: readonly CoreEvent[]): undefined | Promise<unknown>;
  close(taskId: string): void;
}

const MOST_ACCOUNTS = 4_096;
/** After this long without an event, no writer is active. */
const SILENCE_MS = 20;

export function createTaskAccounts(store: Store, issuer: ReceiptIssuer): TaskAccounts {
  const accounts = new LruMap<string, TaskAccount>(MOST_ACCOUNTS);
  let unread: CoreEvent[] = [];

  function readUp(): void {
    const events = unread;
    unread = [];
    for (const event of events) {
      const entry = accounts.get(event.task_id as string);
      if (entry) enter(entry, event);
    }
  }

  async function catchUp(taskId: string): Promise<TaskAccount> {
    readUp();
    const entry = accounts.get(taskId) ?? blank();
    accounts.set(taskId, entry);
    const range = { stream: { of: 'task', id: taskId } as const, ...(entry.cursor && { after: entry.cursor }) };
    for await (const event of store.read(range)) enter(entry, event);
    entry.behind = false;
    return entry;
  }

  function enter(entry: TaskAccount, event: CoreEvent): void {
    if (event.sequence !== entry.account.sequence + 1) {
      // Another process wrote in between; catch-up reads it.
      entry.behind ||= event.sequence > entry.account.sequence;
      return;
    }
    entry.account.add(event);
    entry.cursor = event.id;
    if (event.event.startsWith('artifact.')) entry.files = true;
  }

  function blank(): TaskAccount {
    return { account: issuer.account(), cursor: undefined, behind: false, files: false, onEvent: undefined };
  }

  return {
    readUp,
    catchUp,
    get: (taskId) => accounts.get(taskId),
    close: (taskId) => void accounts.delete(taskId),
    observe(events) {
      for (const event of events) {
        const entry = event.task_id ? accounts.get(event.task_id) : undefined;
        if (!entry) continue;
        if (unread.length === 0) setImmediate(readUp);
        unread.push(event);
        entry.onEvent?.();
      }
    },
    open(taskId, written) {
      if (!written || accounts.has(taskId)) return catchUp(taskId);
      const entry = blank();
      // Bounded: work outside the gateway may never end. An evicted account is rebuilt from the log when needed.
      accounts.set(taskId, entry);
      for (const event of written) if (event.task_id === taskId) enter(entry, event);
      return undefined;
    },
  };
}

/**
 * A writer that continues as soon as its last event is written would always overtake an end that retries after being overtaken. The
 * account is notified of an event before its writer is: an end that starts then comes first.
 */
export function nextEvent(entry: TaskAccount): Promise<void> {
  return new Promise((resolve) => {
    const silence = setTimeout(resolve, SILENCE_MS);
    entry.onEvent = () => {
      entry.onEvent = undefined;
      clearTimeout(silence);
      resolve();
    };
  });
}
