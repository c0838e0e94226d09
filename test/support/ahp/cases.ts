/**
 * How a structure of the AHP is declared, and the cases that follow from it: a member left out, set to null, of
 * another kind, out of range, in another case, and one nobody knows.
 */

type Kind = keyof typeof GOOD | readonly string[] | { readonly open: readonly string[]; readonly key: string };

/** `!` has to be there; `?` may be absent or null and is left out; `n` likewise and written as null; `=` may only be absent. */
export type Member = readonly [how: '!' | '?' | 'n' | '=', kind: Kind | Nested, otherwise?: unknown];

interface Nested {
  readonly of: Record<string, Member>;
  readonly many?: boolean;
}

const GOOD = {
  text: ['', 'x', 'käse 🧀', '\u0000'],
  texts: [[], ['a', '']],
  bool: [true, false],
  number: [0, 1, -1.5, 7, 0.25],
  u32: [0, 1, 4294967295],
  u64: [0, 1, 9007199254740991],
  i32: [0, -2147483648, 2147483647],
  i64: [0, -9007199254740991, 9007199254740991],
  map: [{}, { a: [null, { b: 1 }] }],
  any: ['x', 1, true, [], {}, [null]],
  strategies: [[], ['none', { custom: 'x' }]],
  target: [{ location: { path: 'p', location_type: 't' } }],
} as const;

const BAD: Record<keyof typeof GOOD, readonly unknown[]> = {
  text: [1, true, [], {}, ['x']],
  texts: ['x', 1, {}, [1], [null], [['x']]],
  bool: ['true', 0, 1, []],
  number: ['1', true, [], {}],
  u32: [-1, 0.5, 4294967296, '1', true, [], -0],
  u64: [-1, 0.5, '1', [], 1e30, -0],
  i32: [0.5, 2147483648, -2147483649, '1', {}],
  i64: [0.5, '1', 1e30, []],
  map: ['x', 1, [], true],
  any: [],
  strategies: ['none', {}, ['None'], [null], ['custom']],
  target: ['location', {}, [], { location: {} }, { Location: { path: 'p', location_type: 't' } }],
};

export const many = (of: Record<string, Member>): Nested => ({ of, many: true });

export interface Case {
  readonly note: string;
  readonly input: unknown;
  /** What it is written as again; absent when it may not be read. */
  readonly output?: unknown;
}

/** Every member there. */
export function full(members: Record<string, Member>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).map(([name, [, kind]]) => [name, one(kind)]));
}

function one(kind: Kind | Nested): unknown {
  if (typeof kind === 'string') return GOOD[kind].at(-1);
  if (Array.isArray(kind)) return kind[0];
  if ('open' in kind) return kind.open[0];
  const { of, many: list } = kind as Nested;
  return list ? [full(of)] : full(of);
}

export function* casesOf(members: Record<string, Member>): Generator<Case> {
  const whole = full(members);
  const bare = Object.fromEntries(
    Object.entries(members).flatMap(([name, [how]]) => (how === '!' ? [[name, whole[name]]] : [])),
  );
  const written = Object.fromEntries(
    Object.entries(members).flatMap(([name, [how, , otherwise]]) =>
      how === 'n' ? [[name, null]] : otherwise === undefined ? [] : [[name, otherwise]],
    ),
  );
  yield { note: 'everything there', input: whole, output: whole };
  yield { note: 'only what has to be', input: bare, output: { ...written, ...bare } };
  yield { note: 'a member nobody knows', input: { ...whole, nobody_knows: 1 }, output: whole };
  for (const odd of ['x', 1, true, null, []]) yield { note: `${JSON.stringify(odd)} instead`, input: odd };
  for (const [name, [how, kind]] of Object.entries(members)) {
    const having = (value: unknown) => ({ ...whole, [name]: value });
    const { [name]: _, ...without } = whole;
    if (how === '!') yield { note: `no ${name}`, input: without };
    const nothing = how === 'n' ? { ...without, [name]: null } : without;
    if (how === '?' || how === 'n') yield { note: `${name} is null`, input: having(null), output: nothing };
    else if (kind === 'any') yield { note: `${name} is null`, input: having(null), output: having(null) };
    else yield { note: `${name} is null`, input: having(null) };
    for (const { note, input, output } of valuesOf(kind, how === '=')) {
      const left = output === LEFT_OUT ? without : having(output);
      yield { note: `${name}: ${note}`, input: having(input), ...(output !== undefined && { output: left }) };
    }
  }
}

const LEFT_OUT = Symbol('an empty list with a default is not written');

export function* valuesOf(kind: Kind | Nested, sparing: boolean): Generator<Case> {
  if (typeof kind === 'string') {
    for (const good of GOOD[kind]) {
      const empty = sparing && Array.isArray(good) && good.length === 0;
      yield { note: JSON.stringify(good), input: good, output: empty ? LEFT_OUT : good };
    }
    for (const bad of BAD[kind]) yield { note: `${JSON.stringify(bad)} (${typeof bad})`, input: bad };
  } else if (Array.isArray(kind)) {
    yield* wordsOf(kind);
  } else if ('open' in kind) {
    yield* wordsOf(kind.open);
    yield { note: 'a name of its own', input: { [kind.key]: 'n' }, output: { [kind.key]: 'n' } };
    yield { note: 'its key alone', input: kind.key };
    yield { note: 'not a name', input: { [kind.key]: 1 } };
    yield { note: 'two at once', input: { [kind.key]: 'n', other_one: 'n' } };
  } else {
    const { of, many: list } = kind as Nested;
    if (list) {
      yield { note: 'none', input: [], output: sparing ? LEFT_OUT : [] };
      yield { note: 'not a list', input: full(of) };
      yield { note: 'null in it', input: [null] };
    }
    for (const { note, input, output } of casesOf(of)) {
      if (!list && input === null) continue;
      yield {
        note: `${list ? 'one: ' : ''}${note}`,
        input: list ? [full(of), input] : input,
        ...(output !== undefined && { output: list ? [full(of), output] : output }),
      };
    }
  }
}

function* wordsOf(words: readonly string[]): Generator<Case> {
  for (const word of words) {
    yield { note: word, input: word, output: word };
    yield { note: `${word} as a key`, input: { [word]: null }, output: word };
    yield { note: word.toUpperCase(), input: word.toUpperCase() };
    const camel = word.replace(/(^|_)([a-z])/g, (_, _gap: string, letter: string) => letter.toUpperCase());
    yield { note: camel, input: camel };
    if (word.includes('_')) yield { note: word.replaceAll('_', '-'), input: word.replaceAll('_', '-') };
    yield { note: `${word} and a space`, input: `${word} ` };
  }
  for (const odd of ['', 'nope', 1, true, [], {}, [words[0]], { [words[0] as string]: 1 }, { nope: null }]) {
    yield { note: JSON.stringify(odd), input: odd };
  }
}
