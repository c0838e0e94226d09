/**
 * What a mapping table is made of. A table says which wire word stands for which canonical word and does nothing else;
 * one that leaves a word without a way out, or says two things about the same word, does not load.
 */

/** One wire word and the canonical word it stands for. A one-way row has to say why. */
export type Row<Wire, Core> =
  | { readonly wire: Wire; readonly core: Core; readonly dir: '<->' }
  | {
      readonly wire: Wire;
      readonly core: Core;
      /** `->` is understood when it comes in, `<-` is only ever sent. */
      readonly dir: '->' | '<-';
      readonly why: string;
    };

/** `Wire` is what can be sent; what is understood may be more. */
export interface Table<Wire extends string, Core extends string> {
  readonly rows: readonly Row<string, Core>[];
  /** Undefined for a word the table does not have: the caller keeps it as it came and guesses nothing. */
  toCore(wire: string): Core | undefined;
  toWire(core: Core): Wire;
}

export function table<const Words extends readonly string[], const Rows extends readonly Row<string, Words[number]>[]>(
  words: Words,
  rows: Rows,
): Table<Sent<Rows[number]>, Words[number]> {
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
      // Only a caller that went round the types gets here.
      if (wire === undefined) throw new Error(`${core} is not one of ${words.join(', ')}`);
      return wire;
    },
  };
}

type Sent<R extends Row<string, string>> = Extract<R, { readonly dir: '<->' | '<-' }>['wire'];

function claim<Value>(lookup: Map<string, Value>, word: string, value: Value, otherwise: string): void {
  if (lookup.has(word)) throw new Error(otherwise);
  lookup.set(word, value);
}
