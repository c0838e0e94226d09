/**
 * Requests to one remote over connections that are kept alive. A text response is read whole, within bounds; a stream
 * is passed on as it arrives, and waits for its reader. Follows no redirect and retries nothing. Knows no protocol.
 * Uses undici's dispatcher directly: a request over `node:http` costs four times as much, `fetch` more than that, and
 * for a remote that answers quickly this is most of the work.
 */
import type { Dispatcher, Pool } from 'undici';
import { InFlightMap } from '../in-flight-map.ts';

/** Errors before the connection was made; after any other, the request may have been executed. */
export const NEVER_SENT: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

export interface Outgoing {
  readonly method: 'POST' | 'GET' | 'DELETE';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface SendOptions {
  /** A successful answer is read as it arrives, whatever its type. */
  readonly streamed?: boolean;
}

export interface Incoming {
  readonly status: number;
  /** The content type, without parameters, in lower case. */
  readonly type: string;
  header(name: string): string | undefined;
  /** The whole body; empty for a stream. */
  readonly text: string;
  /** Set when the body is an event stream, or was asked for as a stream. */
  readonly stream: IncomingStream | undefined;
}

/** When a reader leaves early the rest is drained, so that the connection can be used again. */
export interface IncomingStream extends AsyncIterable<Uint8Array> {
  /** Discards the stream and closes its connection. */
  cancel(): void;
}

export interface KeptConnections {
  /** For a client that talks to the remote for a while. */
  open(): Promise<KeptConnection>;
}

/** The requests of one client. Connections are shared between clients. */
export interface KeptConnection {
  /** Rejects with `TooMuch`, with the connection error, or with the signal's reason. */
  send(outgoing: Outgoing, signal: AbortSignal, options?: SendOptions): Promise<Incoming>;
  /** Aborts the client's requests in progress. Connections are closed with the last client. */
  cut(): void;
}

/** The response exceeds the limit. */
export class TooMuch extends Error {}

/** Servers commonly close a connection after five idle seconds; a request sent at that moment would be lost. */
const IDLE_MS = 3_000;
/** Upper bound for a server's own `Keep-Alive` timeout. */
const LONGEST_IDLE_MS = 60_000;

/** `limit`: bytes a text response may have. */
export function keepConnections(origin: string, limit: number): KeptConnections {
  let pool: Pool | undefined;
  let lines = 0;

  /** Loaded with the first request: most commands of this program never use HTTP. */
  async function connections(): Promise<Pool> {
    const undici = await import('undici');
    pool ??= new undici.Pool(origin, {
      // Event streams and calls that wait for a person hold a connection each: with a limit, calls would wait for them.
      connections: null,
      pipelining: 1,
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: LONGEST_IDLE_MS,
      // The caller's signal decides how long a response may take.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    return pool;
  }

  return {
    async open() {
      const used = await connections();
      const live = new InFlightMap<number, Exchange>();
      let over = false;
      let count = 0;
      lines += 1;
      return {
        send: (outgoing, signal, { streamed = false } = {}) =>
          new Promise((resolve, reject) => {
            if (signal.aborted) return reject(signal.reason);
            if (over) return reject(new Error('the line is cut'));
            used.dispatch(outgoing, new Exchange({ resolve, reject, signal, limit, live, streamed, name: ++count }));
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
  readonly signal: AbortSignal;
  readonly limit: number;
  readonly streamed: boolean;
  /** Holds the exchange while it is in progress. */
  readonly live: InFlightMap<number, Exchange>;
  readonly name: number;
}

/** One request and its response, as the dispatcher reports them. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #parties: Parties;
  readonly #aborted: () => void;
  #controller: Dispatcher.DispatchController | undefined;
  #abandoned: Error | undefined;
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
    this.#abandoned = reason instanceof Error ? reason : new Error('given up');
    this.#parties.reject(reason);
    this.#controller?.abort(this.#abandoned);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // The request was given up while it waited for a connection.
    if (this.#abandoned) controller.abort(this.#abandoned);
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: Headers): void {
    // An informational response (1xx) is not the answer.
    if (status < 200) return;
    this.#status = status;
    this.#headers = headers;
    this.#type = String(headers['content-type'] ?? '')
      .split(';', 1)[0]!
      .trim()
      .toLowerCase();
    if (this.#type !== 'text/event-stream' && !(this.#parties.streamed && status === 200)) return;
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

/** Bytes that may wait for a reader before the remote is paused. */
const ROOM = 256 * 1024;
/** How long a stream without a reader has to end by itself. */
const LEAVING_MS = 1_000;

/**
 * Chunks for one reader. The cause of the end is not reported: a stream that broke off just ends, and its reader knows
 * what is missing.
 */
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
    this.#controller.abort(new Error('the reader stopped'));
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
    this.#leaving = setTimeout(() => this.#controller.abort(new Error('the reader stopped')), LEAVING_MS).unref();
    return DONE;
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    return this;
  }
}

const DONE: IteratorReturnResult<undefined> = { done: true, value: undefined };
