/**
 * Which strings and lists of names become words. A string becomes one when it has been written out several times, a list of names with
 * its second use: what occurs once, like the name of a key that a caller made up, is not worth a row. Bounded in every direction, because
 * callers choose what is written.
 */
import { NAMES_WORD, reference, STRING_WORD } from './format.ts';
import type { PackingWords } from './pack.ts';

export interface Vocabulary extends PackingWords {
  /** Makes a word of an id that many events will carry. */
  expect(id: string): void;
  /** A word that is stored already. */
  learn(number: number, text: string): void;
  clear(): void;
}
export interface VocabularyDeps {
  /** Numbers a new word. Undefined: there are enough. `forget` is called when it turns out not to have been stored. */
  add(text: string, forget: () => void): number | undefined;
}

/** A shorter string is not longer than a reference to it. */
const SHORTEST = 3;
/** With the eighth use the row has paid: no id of a single call is used so often. */
const STRING_USES = 8;
const NAMES_USES = 2;
const MOST_NAMES = 64;
const LONGEST_NAMES = 2_000;
/** Strings that are no words yet and may be counted at once; a power of two. */
const CANDIDATES = 4_096;
/** Names that are kept, of words or not. */
const NODES = 20_000;

/** One more name of a list, in the order of the members. */
interface Node {
  readonly next: Map<string, Node>;
  /** The name that came next the last time, and its node: mostly it does again, and comparing is quicker than looking up. */
  lastName: string | undefined;
  last: Node | undefined;
  word: string | undefined;
  uses: number;
}
const newNode = (): Node => ({ next: new Map(), lastName: undefined, last: undefined, word: undefined, uses: 0 });

export function createVocabulary({ add }: VocabularyDeps): Vocabulary {
  const strings = new Map<string, string>();
  /** Each string has one slot that it may use; another one that needs it takes it. */
  const candidates: string[] = Array(CANDIDATES).fill('');
  const uses = new Uint8Array(CANDIDATES);
  let root = newNode();
  let nodes = 0;

  function addString(text: string): string | undefined {
    const number = add(JSON.stringify(text), () => strings.delete(text));
    const word = number === undefined ? undefined : reference(STRING_WORD, number);
    if (word !== undefined) strings.set(text, word);
    return word;
  }

  function nextOf(node: Node, name: string): Node {
    let next = node.next.get(name);
    if (!next) {
      next = newNode();
      node.next.set(name, next);
      nodes += 1;
    }
    node.lastName = name;
    node.last = next;
    return next;
  }

  function nodeOf(names: readonly string[]): Node {
    let node = root;
    for (let at = 0; at < names.length; at++) {
      const name = names[at]!;
      node = name === node.lastName ? node.last! : nextOf(node, name);
    }
    return node;
  }

  function addNames(node: Node, names: readonly string[]): string | undefined {
    const text = JSON.stringify(names);
    if (text.length > LONGEST_NAMES) return undefined;
    const number = add(text, () => {
      node.word = undefined;
    });
    node.word = number === undefined ? undefined : reference(NAMES_WORD, number);
    return node.word;
  }

  function clearNames(): void {
    root = newNode();
    nodes = 0;
  }

  return {
    string(text) {
      const word = strings.get(text);
      if (word !== undefined || text.length < SHORTEST) return word;
      const slot = slotOf(text);
      if (candidates[slot] !== text) {
        candidates[slot] = text;
        uses[slot] = 0;
      }
      uses[slot]! += 1;
      if (uses[slot]! < STRING_USES) return undefined;
      candidates[slot] = '';
      return addString(text);
    },
    names(names) {
      if (names.length > MOST_NAMES) return undefined;
      const node = nodeOf(names);
      if (node.word !== undefined) return node.word;
      node.uses += 1;
      if (node.uses >= NAMES_USES) return addNames(node, names);
      // Names that callers make up; those in use come back as words of their own.
      if (nodes > NODES) clearNames();
      return undefined;
    },
    expect(id) {
      if (!strings.has(id)) addString(id);
    },
    learn(number, text) {
      if (text.startsWith('[')) nodeOf(JSON.parse(text) as string[]).word = reference(NAMES_WORD, number);
      else strings.set(JSON.parse(text) as string, reference(STRING_WORD, number));
    },
    clear() {
      strings.clear();
      candidates.fill('');
      clearNames();
    },
  };
}

/** From a few characters: ids differ in their last ones. */
function slotOf(text: string): number {
  const { length } = text;
  const last = text.charCodeAt(length - 1) + 31 * text.charCodeAt(length - 2) + 961 * text.charCodeAt(length - 3);
  return (last + 7 * length + 127 * text.charCodeAt(0) + 257 * text.charCodeAt(length >> 1)) & (CANDIDATES - 1);
}
