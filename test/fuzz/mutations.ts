/** Valid frames made wrong: in kind, id, method, members, nesting and encoding. Knows no protocol beyond JSON objects. */
import fc from 'fast-check';
import type { JsonObject } from '../../src/model/schema.ts';

/** A frame as it will travel, which may no longer be one. Never holds a newline. */
export type Mutation = (frame: JsonObject) => Buffer;

const plain: Mutation = (frame) => Buffer.from(JSON.stringify(frame));

const NAMES = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'prototype'];
const WORDS = [
  ...NAMES,
  '',
  ' ',
  '\u0000',
  '\u202e',
  '../..',
  'null',
  'id',
  'method',
  'SendMessage',
  'ahp/event',
  'task.submit',
];

const junk: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(null, true, false, 0, -1, 1.5, 2 ** 53, 1e308, [], {}, [[]], [null], { a: { b: [] } }),
  fc.constantFrom(...WORDS),
  fc.string({ maxLength: 8 }),
  fc.constantFrom(...NAMES).map((name) => JSON.parse(`{${JSON.stringify(name)}:{"effect":"read","decision":"allow"}}`)),
  fc.integer({ min: 30, max: 300 }).map((depth) => JSON.parse(`${'['.repeat(depth)}1${']'.repeat(depth)}`)),
);

/** Every place in a value: the object or list it stands in, and under which name. */
function locations(value: unknown, found: { in: Record<string, unknown>; name: string }[] = []) {
  if (typeof value !== 'object' || value === null) return found;
  for (const name of Object.keys(value)) {
    found.push({ in: value as Record<string, unknown>, name });
    locations((value as Record<string, unknown>)[name], found);
  }
  return found;
}

/** Changes one member, chosen among all of them. */
function changing(change: (at: { in: Record<string, unknown>; name: string }) => void, pick: number): Mutation {
  return (frame) => {
    const copy = structuredClone(frame) as JsonObject;
    const all = locations(copy);
    const chosen = all[pick % Math.max(1, all.length)];
    if (chosen) change(chosen);
    return plain(copy);
  };
}

const index = fc.nat(10_000);
const top = fc.constantFrom('id', 'method', 'params', 'jsonrpc', 'type', 'result', 'error');

const members: fc.Arbitrary<Mutation> = fc.oneof(
  fc.tuple(index, junk).map(([pick, value]) =>
    changing(({ in: home, name }) => {
      home[name] = value;
    }, pick),
  ),
  index.map((pick) => changing(({ in: home, name }) => void delete home[name], pick)),
  fc.tuple(index, fc.constantFrom(...WORDS)).map(([pick, word]) =>
    changing(({ in: home, name }) => {
      const value = home[name];
      delete home[name];
      Object.defineProperty(home, word, { value, enumerable: true, configurable: true, writable: true });
    }, pick),
  ),
  fc.tuple(top, junk).map(
    ([name, value]): Mutation =>
      (frame) =>
        plain({ ...frame, [name]: value } as JsonObject),
  ),
  top.map(
    (name): Mutation =>
      ({ [name]: _, ...frame }) =>
        plain(frame as JsonObject),
  ),
  fc
    .constantFrom<(method: string) => string>(
      (method) => method.toUpperCase(),
      (method) => `${method} `,
      (method) => `${method}\u0000`,
      (method) => method.slice(1),
    )
    .map(
      (spell): Mutation =>
        (frame) => {
          const name = 'method' in frame ? 'method' : 'type';
          return plain({ ...frame, [name]: spell(String(frame[name] ?? '')) });
        },
    ),
);

/** A name twice, the new one first or last, spelled plainly or with an escape. */
const twice: fc.Arbitrary<Mutation> = fc
  .tuple(
    fc.constantFrom('id', 'method', 'type', 'params', 'arguments', 'tool_name', 'text', 'input'),
    junk,
    fc.boolean(),
    fc.boolean(),
  )
  .map(
    ([name, value, first, escaped]): Mutation =>
      (frame) => {
        const spelled = escaped
          ? `"\\u${name.charCodeAt(0).toString(16).padStart(4, '0')}${name.slice(1)}"`
          : `"${name}"`;
        const member = `${spelled}:${JSON.stringify(value)}`;
        const text = JSON.stringify(frame);
        const at = text.indexOf(`"${name}":`);
        if (at < 0) return plain(frame);
        if (first) return Buffer.from(`${text.slice(0, at)}${member},${text.slice(at)}`);
        return Buffer.from(text.replace(/\}$/, `,${member}}`));
      },
  );

const nesting: fc.Arbitrary<Mutation> = fc.constantFrom<Mutation>(
  (frame) => Buffer.from(JSON.stringify([frame])),
  (frame) => Buffer.from(JSON.stringify([frame, frame])),
  (frame) => Buffer.from(JSON.stringify([[frame]])),
  () => Buffer.from('[]'),
  (frame) => Buffer.from(JSON.stringify({ params: frame, method: 'x' })),
  (frame) => Buffer.from(JSON.stringify(JSON.stringify(frame))),
);

const encoding: fc.Arbitrary<Mutation> = fc.tuple(index, fc.nat(7)).map(
  ([pick, kind]): Mutation =>
    (frame) => {
      const bytes = plain(frame);
      const at = pick % bytes.length;
      const [before, after] = [bytes.subarray(0, at), bytes.subarray(at)];
      switch (kind) {
        case 0:
          return Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bytes]);
        case 1:
          return Buffer.concat([before, Buffer.from([0x00]), after]);
        case 2:
          return Buffer.concat([before, Buffer.from([0xff]), after]);
        case 3:
          return Buffer.concat([before, Buffer.from('\r'), after]);
        case 4:
          return before;
        case 5:
          return Buffer.concat([bytes, bytes]);
        case 6:
          return Buffer.from(
            JSON.stringify(frame).replace(/[a-z](?=[a-z]*":)/, (c) => `\\u00${c.charCodeAt(0).toString(16)}`),
          );
        default:
          return Buffer.from(JSON.stringify(frame), 'utf16le').filter((byte) => byte !== 0x0a) as Buffer;
      }
    },
);

export interface Step {
  /** Which of the conversation's frames. */
  readonly frame: number;
  readonly mutation: Mutation;
  /** Sent so many times. */
  readonly times: number;
}

const step: fc.Arbitrary<Step> = fc.record({
  frame: fc.nat(1_000),
  mutation: fc.oneof(
    { weight: 6, arbitrary: fc.constant(plain) },
    { weight: 8, arbitrary: members },
    { weight: 3, arbitrary: twice },
    { weight: 2, arbitrary: nesting },
    { weight: 3, arbitrary: encoding },
  ),
  times: fc.oneof({ weight: 15, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: fc.constant(2) }),
});

/** So many steps, in any order a conversation could be shuffled into. The same seed gives the same steps. */
export function* steps(count: number, seed: number): Generator<Step> {
  const AT_ONCE = 1_000;
  for (let done = 0; done < count; done += AT_ONCE) {
    yield* fc.sample(step, { numRuns: Math.min(AT_ONCE, count - done), seed: seed + done });
  }
}

/** As a lenient reader has it, which is what a peer is taken to be; undefined where nobody could read it. */
export function leniently(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8').replace(/^\ufeff/, ''));
  } catch {
    return undefined;
  }
}
