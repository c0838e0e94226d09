/**
 * The building blocks of a mapping table. A table says which wire word stands for which canonical word and does nothing else; a
 * table that has no wire word for a canonical word, or maps one word twice, does not load.
 */

/** One wire word and the canonical word it stands for. A one-way row must say why. */
export type MappingRow<Wire, Core> =
  | { readonly wire: Wire; readonly core: Core; readonly dir: '<->' }
  | {
      readonly wire: Wire;
      readonly core: Core;
      /** `->` is only read, `<-` is only sent. */
      readonly dir: '->' | '<-';
      readonly why: string;
    };

/** `Wire` are the words that can be sent; `toCore` may read more. */
export interface MappingTable<Wire extends string, Core extends string> {
  readonly rows: readonly MappingRow<string, Core>[];
  /** Undefined for a word the table does not have: the caller keeps the word as received and does not guess. */
  toCore(wire: string): Core | undefined;
  toWire(core: Core): Wire;
}

export function table<
  const Words extends readonly string[],
  const Rows extends readonly MappingRow<string, Words[number]>[],
>(words: Words, rows: Rows): MappingTable<Sent<Rows[number]>, Words[number]> {
  const incoming = new Map<string, Words[number]>();
  const outgoing = new Map<string, Sent<Rows[number]>>();

  for (const row of rows) {
    if (!words.includes(row.core)) throw new Error(`${row.wire}: there is no canonical word ${row.core}`);
    if (row.dir !== '<->' && !row.why?.trim()) throw new Error(`${row.wire} goes one way and does not say why`);
    if (row.dir !== '<-') claim(incoming, row.wire, row.core, `two rows say what ${row.wire} stands for`);
    if (row.dir !== '->')
      claim(outgoing, row.core, row.wire as Sent<Rows[number]>, `two rows say how ${row.core} is spelled`);
  }
  for (const word of words) {
    if (!outgoing.has(word)) throw new Error(`${word} has no way out: add a row that spells it`);
  }

  return {
    rows,
    toCore: (wire) => incoming.get(wire),
    toWire(core) {
      const wire = outgoing.get(core);
      // Only a caller that bypasses the types gets here.
      if (wire === undefined) throw new Error(`${core} is not one of ${words.join(', ')}`);
      return wire;
    },
  };
}

type Sent<R extends MappingRow<string, string>> = Extract<R, { readonly dir: '<->' | '<-' }>['wire'];

function claim<Value>(lookup: Map<string, Value>, word: string, value: Value, otherwise: string): void {
  if (lookup.has(word)) throw new Error(otherwise);
  lookup.set(word, value);
}
