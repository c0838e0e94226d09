/** What a client outside can do at a door, in no protocol's words. Each door of the live matrix speaks its own. */
import type { Setup } from '../backends.ts';
import type { Gateway } from '../gateway-client.ts';

export interface Answer {
  readonly approved?: boolean;
  readonly value?: string;
  readonly reason?: string;
}

/** What the client was shown in the end: the state in our words, and all that the agent said to it. */
export interface Shown {
  readonly state: string;
  readonly text: string;
}

/** Work that a client has given. */
export interface Work {
  /** The id of its task at the gateway. */
  task(): Promise<string>;
  /** Resolves when the client is shown a question. */
  asked(): Promise<void>;
  answer(answer: Answer): Promise<void>;
  cancel(reason: string): Promise<void>;
  /** The connection breaks, in the middle of the agent's words. */
  drop(): Promise<void>;
  /** The client is back and goes on where it was. */
  readOn(): Promise<void>;
  /** The content of a file that the work produced, as this client gets it. */
  file(name: string): Promise<string>;
  ended(): Promise<Shown>;
  close(): Promise<void>;
}

export interface DoorClient {
  readonly title: string;
  /** Ends what it keeps for its next work at this gateway. */
  leave?(near: Gateway): Promise<void>;
  give(setup: Setup, says: string): Promise<Work>;
}

/** Something that is found out once and waited for by several. */
export function settled<T>() {
  let resolve: (value: T) => void = () => {};
  let reject: (cause: unknown) => void = () => {};
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  promise.catch(() => {});
  return { promise, resolve, reject };
}

/** Frames in the order in which they came; a caller that waits for one like this gets it, now or later. */
export function createInbox<T>() {
  const frames: T[] = [];
  const waiting = new Set<() => void>();
  let failed: unknown;
  const look = () => {
    for (const each of [...waiting]) each();
  };
  return {
    frames,
    add(frame: T): void {
      frames.push(frame);
      look();
    },
    fail(cause: unknown): void {
      failed = cause;
      look();
    },
    /** The first one from `from` on. */
    async find(wanted: (frame: T) => boolean, what: string, from = 0): Promise<T> {
      const deadline = AbortSignal.timeout(TIMEOUT_MS);
      return await new Promise<T>((resolve, reject) => {
        const stop = (end: () => void) => {
          waiting.delete(seek);
          deadline.removeEventListener('abort', late);
          end();
        };
        const seek = () => {
          const found = frames.slice(from).find(wanted);
          if (found !== undefined) stop(() => resolve(found));
          else if (failed !== undefined) stop(() => reject(failed));
        };
        const late = () => stop(() => reject(new Error(`the client waited in vain for ${what}; ${tail(frames)}`)));
        deadline.addEventListener('abort', late);
        waiting.add(seek);
        seek();
      });
    },
  };
}

/** Longer than a gateway takes to start on a busy machine. */
const TIMEOUT_MS = 60_000;

function tail(frames: readonly unknown[]): string {
  return `it had ${frames.length} frames, the last of them ${JSON.stringify(frames.slice(-3)).slice(0, 600)}`;
}

/** The events of an event stream, as their data. */
export async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncIterable<{ id: string; data: string }> {
  let rest = '';
  for await (const chunk of body.pipeThrough(new TextDecoderStream() as never) as AsyncIterable<string>) {
    rest += chunk;
    const blocks = rest.split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const field = (name: string) =>
        block
          .split('\n')
          .filter((line) => line.startsWith(`${name}:`))
          .map((line) => line.slice(name.length + 1).trimStart())
          .join('\n');
      if (field('data')) yield { id: field('id'), data: field('data') };
    }
  }
}
