/** The server under examination and the few verbs every check begins with. Whatever a check makes is its own. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { equal, Skip } from '../harn/harness/expect.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers of others are looked into freely
export type Body = any;

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body;
}

/** What has to be said so that the agent does this. */
export const WORDS = ['hello', 'call', 'blocked', 'approve', 'input', 'fail', 'long', 'silent'] as const;
export type Word = (typeof WORDS)[number];

/** Keys beyond the one everything is done with. */
export const KEYS = ['other', 'revoked', 'weak', 'denied'] as const;
export type KeyName = (typeof KEYS)[number];

export interface TargetOptions {
  readonly base: string;
  readonly key: string;
  readonly keys: Partial<Readonly<Record<KeyName, string>>>;
  readonly words: Partial<Readonly<Record<Word, string>>>;
  readonly timeoutMs: number;
  /** Makes writing fail for as long as this takes; only where the server is ours. */
  readonly broken?: <T>(during: () => Promise<T>) => Promise<T>;
}

export interface Asking {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whose key; `null` sends none. */
  readonly as?: string | null;
}

export interface Target {
  call(method: string, path: string, asking?: Asking): Promise<Answer>;
  /** A key nobody was given for this. */
  key(name: KeyName): string;
  word(name: Word): string;
  /** The answer to a new run. */
  create(input: object, more?: object, asking?: Asking): Promise<Answer>;
  /** A new run that does this, by its id. */
  run(word: Word): Promise<string>;
  reaches(id: string, ...statuses: string[]): Promise<Body>;
  events(id: string): Promise<Body[]>;
  /** Events up to the first of this type. */
  seen(id: string, type: string): Promise<Body[]>;
  stream(id: string, query?: string, headers?: Record<string, string>): Promise<{ answer: Response; frames: string[] }>;
  broken: NonNullable<TargetOptions['broken']>;
}

const POLL_MS = 30;

export function createTarget(options: TargetOptions): Target {
  const base = options.base.replace(/\/$/, '');

  function headersOf({ headers = {}, as, body }: Asking): Record<string, string> {
    const key = as === undefined ? options.key : as;
    return {
      ...(key !== null && { authorization: `Bearer ${key}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    };
  }

  async function call(method: string, path: string, asking: Asking = {}): Promise<Answer> {
    const { body } = asking;
    const answer = await fetch(`${base}${path}`, {
      method,
      headers: headersOf(asking),
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      signal: AbortSignal.timeout(options.timeoutMs),
    });
    const text = await answer.text();
    const json = answer.headers.get('content-type')?.startsWith('application/json');
    return { status: answer.status, headers: answer.headers, body: json ? JSON.parse(text) : text };
  }

  async function until<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
    const deadline = Date.now() + options.timeoutMs;
    for (;;) {
      const found = await look();
      if (found !== undefined) return found;
      if (Date.now() > deadline) throw new Error(`waited in vain for ${what}`);
      await sleep(POLL_MS);
    }
  }

  async function events(id: string): Promise<Body[]> {
    const all: Body[] = [];
    for (let cursor = 0; ; ) {
      const { status, body } = await call('GET', `/v1/runs/${id}/events?cursor=${cursor}&limit=200`);
      equal(status, 200, 'status of the events');
      if (body.events.length === 0) return all;
      all.push(...body.events);
      cursor = body.next_cursor;
    }
  }

  const create: Target['create'] = (input, more = {}, asking = {}) =>
    call('POST', '/v1/runs', {
      body: { input, metadata: {}, ...more },
      ...asking,
      headers: { 'idempotency-key': randomUUID(), ...asking.headers },
    });

  const target: Target = {
    call,
    create,
    events,
    key(name) {
      const key = options.keys[name];
      if (!key) throw new Skip(`needs --${name}-key`);
      return key;
    },
    word(name) {
      const word = options.words[name];
      if (!word) throw new Skip(`needs --word ${name}=TEXT`);
      return word;
    },
    async run(name) {
      const { status, body } = await create({ user_query: target.word(name) });
      equal(status, 201, 'status of a new run');
      return body.id;
    },
    reaches: (id, ...statuses) =>
      until(`${id} to be ${statuses.join(' or ')}`, async () => {
        const { body } = await call('GET', `/v1/runs/${id}`);
        return statuses.includes(body.status) ? body : undefined;
      }),
    seen: (id, type) =>
      until(`${type} of ${id}`, async () => {
        const all = await events(id);
        const at = all.findIndex((event) => event.type === type);
        return at < 0 ? undefined : all.slice(0, at + 1);
      }),
    async stream(id, query = '', headers = {}) {
      const answer = await fetch(`${base}/v1/runs/${id}/events/stream${query}`, {
        headers: headersOf({ headers: { accept: 'text/event-stream', ...headers } }),
        signal: AbortSignal.timeout(options.timeoutMs),
      });
      const frames: string[] = [];
      let rest = '';
      // Read to the end of the run rather than of the stream, which may be held open in case of a retry.
      for await (const chunk of answer.body!.pipeThrough(new TextDecoderStream())) {
        rest += chunk;
        const whole = rest.split('\n\n');
        rest = whole.pop() ?? '';
        frames.push(...whole.filter((frame) => !frame.startsWith(':')));
        if (/"type":"run\.(worker\.(succeeded|failed)|cancelled)"/.test(frames.at(-1) ?? '')) break;
      }
      return { answer, frames };
    },
    broken(during) {
      if (!options.broken) throw new Skip('needs a server of our own');
      return options.broken(during);
    },
  };
  return target;
}

export interface RunsCheck {
  readonly name: string;
  run(at: Target): Promise<void>;
}

type Run = (at: Target) => Promise<void>;

export function checksOf(about: string, checks: Readonly<Record<string, Run>>): readonly RunsCheck[] {
  return Object.entries(checks).map(([name, run]) => ({ name: `${about}: ${name}`, run }));
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function isUuid(value: unknown): boolean {
  return typeof value === 'string' && UUID.test(value);
}

/** The whole envelope, and nothing beside it. */
export function refused(answer: Answer, status: number, error: string, code: string): void {
  equal([answer.status, answer.body?.error, answer.body?.reason_code], [status, error, code], 'the refusal');
  equal(Object.keys(answer.body).toSorted(), ['error', 'reason_code', 'request_id'], 'members of the refusal');
  if (!isUuid(answer.body.request_id)) throw new Error(`request_id is no uuid: ${answer.body.request_id}`);
}
