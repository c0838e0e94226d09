/**
 * Recognizes streamed lines that differ from the previous one only in their text: the same bytes up to the text, plain
 * characters, the same bytes after it. Such a line has the same meaning as the previous one, so it is not parsed again; any
 * other line is.
 */
import type { JsonObject } from '../../../../src/index.ts';
import { memberAt } from './members.ts';

export interface RunOn {
  /** Registers a line that continues a stream in this session; similar lines may follow. */
  learn(line: Buffer, wireId: string, update: JsonObject): void;
  /** The offset of the first line, from `from` on, that differs; `from` itself when the text was not accepted. */
  through(chunk: Buffer, from: number): number;
}

/** Text of one or several updates that otherwise equal `like`. False: parse the lines. */
export type TakeWords = (wireId: string, like: JsonObject, words: string) => boolean;

/** Characters that JSON has only one spelling for, one byte each. */
const PLAIN = /^[ !#-[\]-~]+$/;

export function createRunOn(take: TakeWords): RunOn {
  let known: { head: string; tail: string; wireId: string; like: JsonObject } | undefined;
  let read: { chunk: Buffer; text: string } | undefined;

  return {
    learn(line, wireId, like) {
      const words = memberAt(line, ['params', 'update', 'content', 'text']);
      if (!words || line.at(-1) !== NEWLINE) return;
      const [head, tail] = [line.toString('latin1', 0, words.start + 1), line.toString('latin1', words.end - 1)];
      if (known?.head !== head || known.tail !== tail) known = { head, tail, wireId, like };
    },
    through(chunk, from) {
      if (!known) return from;
      const { head, tail, wireId, like } = known;
      if (read?.chunk !== chunk) read = { chunk, text: chunk.toString('latin1') };
      const { text } = read;
      let at = from;
      const words: string[] = [];
      while (text.startsWith(head, at)) {
        const start = at + head.length;
        const end = text.indexOf('"', start);
        if (end < 0 || !text.startsWith(tail, end)) break;
        const some = text.slice(start, end);
        if (!PLAIN.test(some)) break;
        words.push(some);
        at = end + tail.length;
      }
      // One text or several in sequence have the same meaning. Joining copies it, so that the lines are not retained.
      return at > from && take(wireId, like, words.join('')) ? at : from;
    },
  };
}

const NEWLINE = 0x0a;
