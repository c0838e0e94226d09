/**
 * The harness on a stream of texts: lines on stdio and Unix sockets, frames on a WebSocket. Many questions may be open at once;
 * answers are sent in the order they are ready. A repeated request gets the same answer.
 */
import type { Readable, Writable } from 'node:stream';
import type { Actor, JsonObject, Logger } from '../../../src/index.ts';
import { type JsonBounds, parseJsonText } from '../../../src/transport/http/body.ts';
import { rawIdOf } from '../../../src/transport/json-rpc/raw-id.ts';
import { lineWriter, readLines } from '../../../src/transport/ndjson/ndjson.ts';
import { manyMayListen, wait } from '../timeout.ts';
import type { Harness, HarnessCaller } from './harness.ts';
import { refuseDamaged, refuseUnread } from './unreadable.ts';

export interface Conversation {
  /** Resolves once the text is handled. */
  receive(text: string): Promise<void>;
  /** Refuses a text that is too long to be read whole. */
  passOver(head: string, why: string): Promise<void>;
}

export interface ConversationOptions {
  readonly actor: Actor;
  readonly gone: AbortSignal;
  readonly send: (text: string) => Promise<void> | void;
  readonly log: Logger;
  readonly now?: () => number;
}

/** As deep as the protocol's own reader goes; wider than any real message. */
export const JSON_BOUNDS: JsonBounds = { depth: 127, values: 100_000 };

/** A request repeated within this time gets its earlier answer, if that is recent and small enough to be kept. */
const REPEAT_MS = 10 * 60 * 1000;
const MOST_REPEATS = 1000;
const MOST_KEPT = 4 * 1024 * 1024;

interface Said {
  readonly text: string;
  readonly at: number;
  readonly answer: Promise<JsonObject | undefined>;
}

export function converse(harness: Harness, options: ConversationOptions): Conversation {
  const { actor, gone, send, log, now = Date.now } = options;
  const caller: HarnessCaller = { actor, gone };
  const said = new Map<string | number, Said>();
  let kept = 0;

  async function answer(message: unknown): Promise<JsonObject | undefined> {
    const outcome = await harness.receive(message, caller);
    if (outcome.kind === 'rejected') log.warn({ why: outcome.message }, 'a message was dropped');
    return outcome.kind === 'reply' ? outcome.response : undefined;
  }

  function forget(id: string | number): void {
    kept -= said.get(id)?.text.length ?? 0;
    said.delete(id);
  }

  function remember(id: string | number, text: string, message: unknown): Promise<JsonObject | undefined> {
    const known = said.get(id);
    if (known?.text === text && now() - known.at < REPEAT_MS) return known.answer;
    forget(id);
    const mine: Said = { text, at: now(), answer: answerOnce(message, () => said.get(id) === mine && forget(id)) };
    said.set(id, mine);
    kept += text.length;
    while (said.size > MOST_REPEATS || (kept > MOST_KEPT && said.size > 1)) forget(said.keys().next().value ?? id);
    return mine.answer;
  }

  /** A decision to come back later is not repeated: the next one may differ. */
  async function answerOnce(message: unknown, notAgain: () => void): Promise<JsonObject | undefined> {
    const response = await answer(message);
    if (!isFinal(response)) notAgain();
    return response;
  }

  async function passOver(head: string, why: string): Promise<void> {
    log.warn({ why }, 'a message was not read');
    const refusal = refuseUnread(head, why);
    await reply(head, refusal);
  }

  async function reply(text: string, response: JsonObject | undefined): Promise<void> {
    if (response && !gone.aborted) await send(spelled(response, text));
  }

  return {
    passOver,
    async receive(text) {
      let message: unknown;
      try {
        message = parseJsonText(text, JSON_BOUNDS);
      } catch (cause) {
        const why = cause instanceof Error ? cause.message : 'unreadable';
        log.warn({ why }, 'a message was dropped');
        return await reply(text, refuseDamaged(text, why));
      }
      const { id } = (message ?? {}) as { id?: unknown };
      const named = typeof id === 'string' || typeof id === 'number';
      const response = await (named ? remember(id, text, message) : answer(message));
      await reply(text, response);
    },
  };
}

/** A response with the id as sent: a number is copied from the request text, because parsing may change its spelling. */
export function spelled(response: JsonObject, asked: string | Buffer): string {
  const { id, ...said } = response;
  if (typeof id !== 'number') return JSON.stringify(response);
  return `{"id":${rawIdOf(asked.toString(), id)},${JSON.stringify(said).slice(1)}`;
}

function isFinal(response: JsonObject | undefined): boolean {
  const { decision, metadata } = (response?.result ?? {}) as JsonObject;
  const { question, retry_after_ms } = (metadata ?? {}) as JsonObject;
  if (question !== undefined || retry_after_ms !== undefined) return false;
  return response !== undefined && !('error' in response) && decision !== 'escalate' && decision !== 'defer';
}

const LAST_ANSWERS_MS = 1_000;

/** Reading pauses while this many texts are being handled. */
const MOST_AT_ONCE = 256;

export interface StreamOptions {
  readonly actor: Actor;
  readonly log: Logger;
  readonly limit: number;
}

/** Runs until the input ends and every received text is handled. */
export async function serveLines(
  harness: Harness,
  { input, output }: { readonly input: Readable; readonly output: Writable },
  { actor, log, limit }: StreamOptions,
): Promise<void> {
  const gone = manyMayListen(new AbortController());
  const write = lineWriter(output);
  const conversation = converse(harness, { actor, gone: gone.signal, send: write, log });
  const busy = new Set<Promise<void>>();
  output.once('close', () => gone.abort());
  const skipped = (why: string, head: string) => void conversation.passOver(head, why).catch(() => {});
  for await (const line of readLines(input, { limit, skipped })) {
    const work = conversation
      .receive(line)
      .catch((cause) => log.error({ err: cause }, 'a message failed'))
      .finally(() => busy.delete(work));
    busy.add(work);
    if (busy.size >= MOST_AT_ONCE) await Promise.race(busy);
  }
  // A client that sends no more may still wait for its answers, but not for long.
  const over = wait(LAST_ANSWERS_MS, gone.signal);
  over.signal.addEventListener('abort', () => gone.abort(), { once: true });
  await Promise.allSettled(busy);
  over.release();
  gone.abort();
}
