/**
 * The `typebox` builders that this codebase uses, reimplemented. The library's types do the work at compile time; loading its code
 * would cost every command 100 to 200 ms for a dozen functions. A test compares the output of these builders with the library's.
 */
import type { Type as Library, TSchema } from 'typebox';

export type { Static, TProperties, TSchema } from 'typebox';

type Options = Readonly<Record<string, unknown>>;
type Builders = Pick<
  typeof Library,
  | 'Array'
  | 'Boolean'
  | 'Integer'
  | 'Literal'
  | 'Number'
  | 'Object'
  | 'Optional'
  | 'Record'
  | 'String'
  | 'Union'
  | 'Unsafe'
>;

/** Marks optional members; not enumerable, so that a serialized schema does not contain it. */
const OPTIONAL = '~optional';

function optional(schema: object): object {
  const copy = { ...schema };
  Object.defineProperty(copy, OPTIONAL, { value: true });
  return copy;
}

const builders = {
  Array: (items: TSchema, options: Options = {}) => ({ type: 'array', items, ...options }),
  Boolean: (options: Options = {}) => ({ type: 'boolean', ...options }),
  Integer: (options: Options = {}) => ({ type: 'integer', ...options }),
  Number: (options: Options = {}) => ({ type: 'number', ...options }),
  String: (options: Options = {}) => ({ type: 'string', ...options }),
  Literal: (value: unknown, options: Options = {}) => ({ type: typeof value, const: value, ...options }),
  Object(properties: Readonly<Record<string, object>>, options: Options = {}) {
    const required = Object.keys(properties).filter((name) => !(OPTIONAL in (properties[name] ?? {})));
    return { type: 'object', ...(required.length > 0 && { required }), properties, ...options };
  },
  Record: (_: TSchema, value: TSchema, options: Options = {}) => ({
    type: 'object',
    patternProperties: { '^.*$': value },
    ...options,
  }),
  Union: (anyOf: readonly TSchema[], options: Options = {}) => ({ anyOf, ...options }),
  Unsafe: (schema: object) => ({ ...schema }),
  Optional: optional,
};

// The builders make plain objects; only their types say which values a schema stands for.
export const Type = builders as unknown as Builders;
