/**
 * The account of each task at work, kept as events are committed, so that ending a long task costs no reading. What others
 * wrote in between is read from the log when it is missed.
 */
import type { CoreEvent, Cursor } from '../model/events.ts';
import type { Account, ReceiptIssuer, Store } from '../ports.ts';

export interface Book {
  readonly account: Account;
  cursor: Cursor | undefined;
  /** Another process wrote to the task since; the log has it. */
  behind: boolean;
  /** Whether the task has made any file. */
  files: boolean;
  /** Tells whoever wants to end the task that more has been written to it. */
  heard: (() => void) | undefined;
}

export interface Books {
  /** What was just committed. Entered later: whoever waits for a commit is answered first. */
  observe(events: readonly CoreEvent[]): void;
  /** Enters what was observed. */
  readUp(): void;
  get(taskId: string): Book | undefined;
  /** With all that the log holds by now. */
  catchUp(taskId: string): Promise<Book>;
  /** Begins one with what the log already holds: all of it is read, unless it is at hand. */
  open(taskId: string, written?: readonly CoreEvent[]): undefined | Promise<unknown>;
  close(taskId: string): void;
}

const MOST_BOOKS = 4_096;
/** So long without a word, and nobody is speaking. */
const SILENCE_MS = 20;

export function createBooks(store: Store, issuer: ReceiptIssuer): Books {
  const books = new Map<string, Book>();
  let unread: CoreEvent[] = [];

  function readUp(): void {
    const events = unread;
    unread = [];
    for (const event of events) {
      const book = books.get(event.task_id as string);
      if (book) enter(book, event);
    }
  }

  async function catchUp(taskId: string): Promise<Book> {
    readUp();
    const book = books.get(taskId) ?? blank();
    books.set(taskId, book);
    const range = { stream: { of: 'task', id: taskId } as const, ...(book.cursor && { after: book.cursor }) };
    for await (const event of store.read(range)) enter(book, event);
    book.behind = false;
    return book;
  }

  function enter(book: Book, event: CoreEvent): void {
    if (event.sequence !== book.account.sequence + 1) {
      // Another process wrote in between; catch-up reads it.
      book.behind ||= event.sequence > book.account.sequence;
      return;
    }
    book.account.add(event);
    book.cursor = event.id;
    if (event.event.startsWith('artifact.')) book.files = true;
  }

  function blank(): Book {
    return { account: issuer.account(), cursor: undefined, behind: false, files: false, heard: undefined };
  }

  return {
    readUp,
    catchUp,
    get: (taskId) => books.get(taskId),
    close: (taskId) => void books.delete(taskId),
    observe(events) {
      for (const event of events) {
        const book = event.task_id ? books.get(event.task_id) : undefined;
        if (!book) continue;
        if (unread.length === 0) setImmediate(readUp);
        unread.push(event);
        book.heard?.();
      }
    },
    open(taskId, written) {
      if (!written || books.has(taskId)) return catchUp(taskId);
      const book = blank();
      books.set(taskId, book);
      // Work outside may never end. An account that is let go is made again from the log when it is wanted.
      if (books.size > MOST_BOOKS) books.delete(books.keys().next().value as string);
      for (const event of written) if (event.task_id === taskId) enter(book, event);
      return undefined;
    },
  };
}

/**
 * Someone who speaks again as soon as the last word is written is always ahead of an end that begins anew when it has been
 * overtaken. What is written is told here before its speaker hears of it: an end that begins then is ahead.
 */
export function nextWord(book: Book): Promise<void> {
  return new Promise((resolve) => {
    const silence = setTimeout(resolve, SILENCE_MS);
    book.heard = () => {
      book.heard = undefined;
      clearTimeout(silence);
      resolve();
    };
  });
}
