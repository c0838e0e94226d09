/**
 * Most of what an agent streams is the line before with other words in it. A line like that is known by its bytes: the same
 * up to the words, plain words, the same after them. It reads as the one before did, so it is not parsed again; any other
 * line is.
 */
import type { JsonObject } from '../../../src/index.ts';
import { memberAt } from './members.ts';

export interface RunOn {
  /** Lines like this one, which was read as more of what is being said in this session, may follow. */
  learn(line: Buffer, wireId: string, update: JsonObject): void;
  /** Where the first line begins, of those from `from` on, that is another; `from` itself when their words are not taken. */
  through(chunk: Buffer, from: number): number;
}

/** More words, of one update or several, that are otherwise `like` this one. False: look at the lines themselves. */
export type TakeWords = (wireId: string, like: JsonObject, words: string) => boolean;

/** Nothing that JSON would spell in another way, and a letter for every byte. */
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
      // Said one after the other or at once, it is the same text. Joined, it keeps nothing of the lines it came in.
      return at > from && take(wireId, like, words.join('')) ? at : from;
    },
  };
}

const NEWLINE = 0x0a;
