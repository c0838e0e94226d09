/** Our builders of schemas write what the library writes whose types they carry. */
import { Type as Library } from 'typebox';
import { expect, test } from 'vitest';
import { Type } from '../../../src/model/type.ts';

type Builder = typeof Type;

const shapes: Readonly<Record<string, (type: Builder) => unknown>> = {
  text: (type) => type.String({ minLength: 1 }),
  number: (type) => type.Number({ minimum: 0 }),
  integer: (type) => type.Integer({ maximum: 5 }),
  truth: (type) => type.Boolean({ description: 'so' }),
  'a word': (type) => type.Literal('word'),
  'a figure': (type) => type.Literal(7),
  list: (type) => type.Array(type.String(), { minItems: 1 }),
  either: (type) => type.Union([type.String(), type.Integer()]),
  'a record': (type) => type.Record(type.String(), type.Number()),
  'anything said by hand': (type) => type.Unsafe<string>({ type: 'string', enum: ['a'] }),
  'members, some of them optional': (type) =>
    type.Object({ a: type.String(), b: type.Optional(type.Integer()), c: type.Optional(type.Array(type.Boolean())) }),
  'only optional members, and no others': (type) =>
    type.Object({ a: type.Optional(type.String()) }, { additionalProperties: false }),
  'members of members': (type) =>
    type.Object({ in: type.Object({ deep: type.Optional(type.Object({ er: type.Literal('x') })) }) }),
  'members spread into others': (type) =>
    type.Object({ ...type.Object({ a: type.Optional(type.String()), b: type.String() }).properties, c: type.String() }),
  nothing: (type) => type.Object({}),
};

test.each(Object.entries(shapes))('%s', (_, shape) => {
  expect(JSON.stringify(shape(Type))).toBe(JSON.stringify(shape(Library as unknown as Builder)));
});
