/**
 * Requests to one remote over connections that are kept for the next one. An answer that is a text is read whole, within
 * bounds; one that is a stream is handed over as it comes, and waits for its reader. Follows nobody elsewhere and tries
 * nothing twice. Knows no protocol.
 *
 * Speaks to undici's dispatcher itself: a request over `node:http` costs four times as much, `fetch` more than that, and
 * between a caller and a remote that answers in a moment this is most of what there is to do.
 */
import type { Dispatcher, Pool } from 'undici';
import type { StopSignal } from './stop.ts';
import { UnderWay } from './under-way.ts';

export interface Outgoing {
  readonly method: 'POST' | 'GET' | 'DELETE';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface Incoming {
  readonly status: number;
  /** What the body is, without parameters, in lower case. */
  readonly type: string;
  header(name: string): string | undefined;
  /** The whole body; empty for a stream. */
  readonly text: string;
  /** Where the body is an event stream. */
  readonly stream: IncomingStream | undefined;
}

/** A reader that leaves early leaves the rest to be passed over, so that its connection can be used again. */
export interface IncomingStream extends AsyncIterable<Uint8Array> {
  /** Nobody wants any of it; its connection is let go. */
  cancel(): void;
}

export interface KeptConnections {
  /** For one who speaks with the remote for a while. */
  open(): Promise<Line>;
}

/** The requests of one. Connections are everybody's. */
export interface Line {
  /** Rejects with `TooMuch`, with what kept the remote from being reached, or with the reason it was given up for. */
  send(outgoing: Outgoing, signal: StopSignal): Promise<Incoming>;
  /** Gives up whatever is under way. Connections go with the last who cuts. */
  cut(): void;
}

/** More than may be read. */
export class TooMuch extends Error {}

/** Servers commonly let go of a connection after five idle seconds; a request that crosses with that would be lost. */
const IDLE_MS = 3_000;
/** What a server that says how long it keeps them is believed at most. */
const LONGEST_IDLE_MS = 60_000;

/** `limit` is what a text may have, in bytes. */
export function keepConnections(origin: string, limit: number): KeptConnections {
  let pool: Pool | undefined;
  let lines = 0;

  /** Loaded when there is somewhere to go: most commands of this program never speak to anyone over HTTP. */
  async function connections(): Promise<Pool> {
    const undici = await import('undici');
    pool ??= new undici.Pool(origin, {
      // Streams that listen and calls that wait for a person hold a connection each: a limit would have calls wait for them.
      connections: null,
      pipelining: 1,
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: LONGEST_IDLE_MS,
      // How long an answer may take is the caller's to say, by its signal.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    return pool;
  }

  return {
    async open() {
      const used = await connections();
      const live = new UnderWay<number, Exchange>();
      let over = false;
      let count = 0;
      lines += 1;
      return {
        send: (outgoing, signal) =>
          new Promise((resolve, reject) => {
            if (signal.aborted) return reject(signal.reason);
            if (over) return reject(new Error('the line is cut'));
            used.dispatch(outgoing, new Exchange({ resolve, reject, signal, limit, live, name: ++count }));
          }),
        cut() {
          if (over) return;
          over = true;
          for (const exchange of live.all()) exchange.giveUp(new Error('the line is cut'));
          lines -= 1;
          if (lines > 0) return;
          pool = undefined;
          used.destroy().catch(() => {});
        },
      };
    },
  };
}

type Headers = Readonly<Record<string, string | string[] | undefined>>;

interface Parties {
  readonly resolve: (incoming: Incoming) => void;
  readonly reject: (cause: unknown) => void;
  readonly signal: StopSignal;
  readonly limit: number;
  /** Where it is to be found while it is under way. */
  readonly live: UnderWay<number, Exchange>;
  readonly name: number;
}

/** One request and its answer, as the dispatcher tells of them. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #parties: Parties;
  readonly #aborted: () => void;
  #controller: Dispatcher.DispatchController | undefined;
  #givenUp: Error | undefined;
  #status = 0;
  #headers: Headers = {};
  #type = '';
  #stream: Stream | undefined;
  #chunks: Buffer[] = [];
  #size = 0;

  constructor(parties: Parties) {
    const { signal, live, name } = parties;
    this.#parties = parties;
    this.#aborted = () => this.giveUp(signal.reason);
    signal.addEventListener('abort', this.#aborted, { once: true });
    live.begin(name, this);
  }

  giveUp(reason: unknown): void {
    this.#settle();
    this.#givenUp = reason instanceof Error ? reason : new Error('given up');
    this.#parties.reject(reason);
    this.#controller?.abort(this.#givenUp);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // It waited for a connection until nobody waited for it.
    if (this.#givenUp) controller.abort(this.#givenUp);
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: Headers): void {
    // A word that more is to come is not an answer.
    if (status < 200) return;
    this.#status = status;
    this.#headers = headers;
    this.#type = String(headers['content-type'] ?? '')
      .split(';', 1)[0]!
      .trim()
      .toLowerCase();
    if (this.#type !== 'text/event-stream') return;
    this.#stream = new Stream(controller);
    this.#parties.resolve(this.#incoming('', this.#stream));
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#stream) {
      this.#stream.push(chunk);
      return;
    }
    this.#size += chunk.length;
    if (this.#size <= this.#parties.limit) this.#chunks.push(chunk);
    else controller.abort(new TooMuch());
  }

  onResponseEnd(): void {
    this.#settle();
    if (this.#stream) {
      this.#stream.end();
      return;
    }
    const [first, second] = this.#chunks;
    const bytes = second ? Buffer.concat(this.#chunks, this.#size) : first;
    this.#parties.resolve(this.#incoming(bytes ? bytes.toString('utf8') : '', undefined));
  }

  onResponseError(_: unknown, cause: Error): void {
    this.#settle();
    this.#stream?.end();
    this.#parties.reject(cause);
  }

  #settle(): void {
    this.#parties.signal.removeEventListener('abort', this.#aborted);
    this.#parties.live.over(this.#parties.name);
  }

  #incoming(text: string, stream: IncomingStream | undefined): Incoming {
    const headers = this.#headers;
    const header = (name: string) => {
      const value = headers[name];
      return Array.isArray(value) ? value[0] : value;
    };
    return { status: this.#status, type: this.#type, header, text, stream };
  }
}

/** Bytes that may wait for a reader before the remote is kept waiting. */
const ROOM = 256 * 1024;
/** How long a stream that nobody reads any more has to end by itself. */
const LEAVING_MS = 1_000;

/** Chunks for one reader. How it ended is not told: a stream that broke off just ends, and its reader knows what is missing. */
class Stream implements IncomingStream, AsyncIterator<Uint8Array> {
  readonly #controller: Dispatcher.DispatchController;
  readonly #waiting: Uint8Array[] = [];
  #size = 0;
  #over = false;
  #leaving: NodeJS.Timeout | undefined;
  #wake: ((next: IteratorResult<Uint8Array>) => void) | undefined;

  constructor(controller: Dispatcher.DispatchController) {
    this.#controller = controller;
  }

  push(chunk: Uint8Array): void {
    if (this.#over) return;
    if (this.#wake) {
      this.#wake({ done: false, value: chunk });
      this.#wake = undefined;
      return;
    }
    this.#waiting.push(chunk);
    this.#size += chunk.length;
    if (this.#size > ROOM) this.#controller.pause();
  }

  end(): void {
    this.#over = true;
    clearTimeout(this.#leaving);
    this.#wake?.(DONE);
    this.#wake = undefined;
  }

  cancel(): void {
    this.end();
    this.#waiting.length = 0;
    this.#controller.abort(new Error('nobody reads on'));
  }

  next(): Promise<IteratorResult<Uint8Array>> {
    const value = this.#waiting.shift();
    if (value) {
      this.#size -= value.length;
      if (this.#size <= ROOM) this.#controller.resume();
      return Promise.resolve({ done: false, value });
    }
    if (this.#over) return Promise.resolve(DONE);
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  async return(): Promise<IteratorResult<Uint8Array>> {
    if (this.#over) return DONE;
    this.end();
    this.#waiting.length = 0;
    this.#controller.resume();
    this.#leaving = setTimeout(() => this.#controller.abort(new Error('nobody reads on')), LEAVING_MS).unref();
    return DONE;
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    return this;
  }
}

const DONE: IteratorReturnResult<undefined> = { done: true, value: undefined };
