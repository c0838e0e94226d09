/**
 * Records the updates of one turn, in order. Streamed text is buffered for a moment, because an auditor needs no single chunks;
 * every other update is in the log before it is shown.
 */
import {
  asFault,
  asText,
  type Fact,
  type Json,
  type JsonObject,
  type Logger,
  type Sink,
} from '../../../../src/index.ts';
import type { AgentCall } from '../../client/acts/tool-calls.ts';
import type { RecordedFact } from '../../client/facts.ts';
import { createUpdateReader, type UpdateReader, type UpdateReaderOptions } from '../../client/read-updates.ts';
import { plainThought, THOUGHT, thoughtFact, wordsOf } from '../../server/render-thoughts.ts';
import { objectOf, textOf, within } from '../../shapes.ts';

export interface TurnRecorder {
  /**
   * Buffers text that continues the current stream, which is most of the traffic; with `words`, the text of an update that
   * otherwise equals this one. False for any other update, which then goes to `reported`.
   */
  more(update: JsonObject, words?: string): boolean;
  /** Undefined when the update need not be in the log before it is forwarded. */
  reported(update: JsonObject): Promise<void> | undefined;
  /** The known state of a call that is now asked about. */
  asked(toolCall: JsonObject): AgentCall;
  note(fact: Fact): Promise<void>;
  /** A file was written through us, which is firmer evidence than a report. */
  wrote(path: string, shown: string): void;
  /** An update after the turn. The end of a call is recorded, beside the receipt where that is sealed. */
  late(update: JsonObject): void;
  /** Resolves when all updates so far are in the log, or could not be written. */
  settled(): Promise<void>;
  /** Records the last text of the turn; resolves with its summary. */
  finish(result: Json): Promise<string>;
  readonly reader: Pick<UpdateReader, 'denied' | 'servedBy' | 'meter'>;
}

export interface TurnRecorderOptions extends UpdateReaderOptions {
  readonly sink: Sink;
  readonly log: Logger;
}

/** How long streamed text may be buffered, and how much of it. */
const GATHER_MS = 60;
const GATHER_CHARS = 48 * 1024;
/** The most updates that may wait for the log before the sender has to wait. */
const MOST_AHEAD = 64;

/** Streamed text of a message or a thought. */
interface Delta {
  readonly message_id: string;
  readonly role: string;
  /** The agent's message id; only a thought needs it here. */
  readonly wire: string | undefined;
  text: string;
}
const THINKING = 'thinking';

export function createTurnRecorder({ sink, log, ...options }: TurnRecorderOptions): TurnRecorder {
  const reader = createUpdateReader(options);
  let writing: Promise<void> = Promise.resolve();
  let ahead = 0;
  let delta: Delta | undefined;
  let timer: NodeJS.Timeout | undefined;
  const effects: { fact: Fact; path: string }[] = [];
  const held = new Set<string>();

  async function put(step: RecordedFact): Promise<void> {
    if ('event' in step) return await sink.emit(step);
    const { id } = await sink.artifact(step.file);
    if (step.fact) await sink.emit(step.fact(id));
  }

  /** A failed write does not stop data; it stops acts that depend on it. */
  function write(steps: readonly RecordedFact[]): Promise<void> {
    for (const step of steps) {
      ahead += 1;
      writing = writing
        .then(() => put(step))
        .catch((cause) => log.warn({ err: asFault(cause) }, 'an update from an agent could not be recorded'))
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

  /** Records facts other than streamed text; those for the end of the turn are set aside. */
  function record(steps: readonly RecordedFact[]): Promise<void> | undefined {
    const now: RecordedFact[] = [];
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
    reader,
    more(update, words) {
      if (!delta || ahead > MOST_AHEAD) return false;
      const taken = reader.more(update, words);
      if (taken === undefined) return false;
      delta.text += taken;
      if (delta.text.length >= GATHER_CHARS) void flush();
      return true;
    },
    reported: (update) => record(reader.update(update)),
    asked(toolCall) {
      const { call, steps } = reader.asked(toolCall);
      void record(steps);
      return call;
    },
    note: (fact) => record([fact]) ?? writing,
    wrote(path, shown) {
      reader.wrote(path);
      held.add(shown);
    },
    late(update) {
      void write(reader.late(update));
    },
    settled: () => flush(),
    async finish(result) {
      const { steps, summary } = reader.finish(result);
      void record(steps);
      // A write that the agent reported and that went through us is one write; the firmer evidence counts.
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

/** Text and its message id, which the message itself keeps. An update with more members is recorded whole. */
function isWords({ ext }: Fact): boolean {
  const update = objectOf(within(ext, 'acp', 'update'));
  if (!update) return ext === undefined;
  for (const name in update) if (!OF_WORDS.has(name)) return false;
  for (const name in objectOf(update.content)) if (!OF_WORDS.has(name)) return false;
  return true;
}
