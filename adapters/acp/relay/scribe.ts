/**
 * Writes down what an agent tells in one turn, in the order it told it. Streamed text is gathered for a moment, because a
 * chunk is a fact for a reader and not for an auditor; everything else is in the log before anyone is shown it.
 */
import { asFault, asText, type Fact, type Json, type JsonObject, type Logger, type Sink } from '../../../src/index.ts';
import type { Call } from '../calls.ts';
import { createReading, type Reading, type ReadingOptions } from '../reading.ts';
import { objectOf, textOf, within } from '../shapes.ts';
import type { Step } from '../step.ts';
import { plainThought, THOUGHT, thoughtFact, wordsOf } from '../thoughts.ts';

export interface Scribe {
  /**
   * A few more words of what is being gathered, which is most of what streams by; with `words`, of an update that is otherwise
   * this one. False when it is anything else, which is then told.
   */
  more(update: JsonObject, words?: string): boolean;
  /** Undefined when what was told need not be in the log before it goes on. */
  told(update: JsonObject): Promise<void> | undefined;
  /** A call as far as it is known, now that it is asked about. */
  asked(toolCall: JsonObject): Call;
  note(fact: Fact): Promise<void>;
  /** A file was written through us, which counts for more than being told so. */
  wrote(path: string, shown: string): void;
  /** Everything told so far is in the log, or could not be written. */
  settled(): Promise<void>;
  /** The last words of the turn; resolves with what it came to. */
  finish(result: Json): Promise<string>;
  readonly reading: Pick<Reading, 'denied' | 'servedBy' | 'meter'>;
}

export interface ScribeOptions extends ReadingOptions {
  readonly sink: Sink;
  readonly log: Logger;
}

/** How long streamed text may wait to be written down, and how much of it. */
const GATHER_MS = 60;
const GATHER_CHARS = 48 * 1024;
/** So much may be told ahead of the log before whoever tells it has to wait. */
const MOST_AHEAD = 64;

/** Streamed words, of a message or of a thought. */
interface Delta {
  readonly message_id: string;
  readonly role: string;
  /** What the agent calls the message; a thought has no other place to keep it. */
  readonly wire: string | undefined;
  text: string;
}
const THINKING = 'thinking';

export function createScribe({ sink, log, ...options }: ScribeOptions): Scribe {
  const reading = createReading(options);
  let writing: Promise<void> = Promise.resolve();
  let ahead = 0;
  let delta: Delta | undefined;
  let timer: NodeJS.Timeout | undefined;
  const effects: { fact: Fact; path: string }[] = [];
  const held = new Set<string>();

  async function put(step: Step): Promise<void> {
    if ('event' in step) return await sink.emit(step);
    const { id } = await sink.artifact(step.file);
    if (step.fact) await sink.emit(step.fact(id));
  }

  /** Data is not held back because it could not be written down; what it would permit is. */
  function write(steps: readonly Step[]): Promise<void> {
    for (const step of steps) {
      ahead += 1;
      writing = writing
        .then(() => put(step))
        .catch((cause) => log.warn({ err: asFault(cause) }, 'something an agent told could not be written down'))
        .finally(() => {
          ahead -= 1;
        });
    }
    return writing;
  }

  function flush(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    if (!delta) return writing;
    const { message_id, role, text, wire } = delta;
    delta = undefined;
    if (role === THINKING) return write([thoughtFact(message_id, plainThought(text, wire))]);
    return write([{ event: 'vendor.tollbridge.message_delta', payload: { message_id, role, text } }]);
  }

  function gather(next: Delta): void {
    if (delta && delta.message_id !== next.message_id) void flush();
    if (delta) delta.text += next.text;
    else delta = next;
    if (delta.text.length >= GATHER_CHARS) void flush();
    else timer ??= setTimeout(flush, GATHER_MS);
  }

  /** Steps that are more than streamed text, with what must wait for the end of the turn taken out. */
  function record(steps: readonly Step[]): Promise<void> | undefined {
    const now: Step[] = [];
    for (const step of steps) {
      const words = 'event' in step ? deltaOf(step) : undefined;
      if (words) {
        if (now.length > 0) void write(now.splice(0));
        gather(words);
      } else if (
        'event' in step &&
        step.event === 'vendor.tollbridge.side_effect' &&
        step.payload.type === 'fs_write'
      ) {
        effects.push({ fact: step, path: asText(step.payload.path) });
      } else {
        if (delta) void flush();
        now.push(step);
      }
    }
    if (now.length > 0) return write(now);
    return ahead > MOST_AHEAD ? writing : undefined;
  }

  return {
    reading,
    more(update, words) {
      if (!delta || ahead > MOST_AHEAD) return false;
      const taken = reading.more(update, words);
      if (taken === undefined) return false;
      delta.text += taken;
      if (delta.text.length >= GATHER_CHARS) void flush();
      return true;
    },
    told: (update) => record(reading.update(update)),
    asked(toolCall) {
      const { call, steps } = reading.asked(toolCall);
      void record(steps);
      return call;
    },
    note: (fact) => record([fact]) ?? writing,
    wrote(path, shown) {
      reading.wrote(path);
      held.add(shown);
    },
    settled: () => flush(),
    async finish(result) {
      const { steps, summary } = reading.finish(result);
      void record(steps);
      // The same write, told by the agent and seen by us, is one; the firmer word stands.
      await write(effects.splice(0).flatMap(({ fact, path }) => (held.has(path) ? [] : [fact])));
      await flush();
      return summary;
    },
  };
}

const OF_WORDS = new Set(['sessionUpdate', 'messageId', 'content', 'type', 'text']);

function deltaOf(step: Fact): Delta | undefined {
  const { event, payload } = step;
  if ((event !== 'vendor.tollbridge.message_delta' && event !== THOUGHT) || !isWords(step)) return undefined;
  const message_id = asText(payload.message_id);
  if (event !== THOUGHT) return { message_id, role: asText(payload.role), text: asText(payload.text), wire: undefined };
  const update = objectOf(within(step.ext, 'acp', 'update')) ?? {};
  return { message_id, role: THINKING, text: wordsOf(update), wire: textOf(update.messageId) };
}

/** Text and the name of its message, which the message itself keeps. Anything more is told whole. */
function isWords({ ext }: Fact): boolean {
  const update = objectOf(within(ext, 'acp', 'update'));
  if (!update) return ext === undefined;
  for (const name in update) if (!OF_WORDS.has(name)) return false;
  for (const name in objectOf(update.content)) if (!OF_WORDS.has(name)) return false;
  return true;
}
