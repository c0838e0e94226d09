/** Arguments against the schema of their tool: refused before any rule sees them, and never at the price of a hanging process. */
import { describe, expect, test } from 'vitest';
import { argumentsTrouble, onlyLacks } from '../../../../src/core/tools/arguments.ts';
import type { Skill } from '../../../../src/model/resources.ts';
import type { JsonObject } from '../../../../src/model/schema.ts';

const skill = (input_schema: object | null): Skill =>
  ({ id: 's', object: 'skill', name: 't', metadata: {}, input_schema }) as unknown as Skill;
const trouble = (schema: object | null, args: object) => argumentsTrouble(skill(schema), args as JsonObject);

const FORCED = {
  type: 'object',
  properties: { force: { type: 'boolean' }, path: { type: 'string' } },
  required: ['path'],
};

test.each([
  ['a text', 'true'],
  ['a number', 1],
  ['a list', [true]],
  ['an object', { valueOf: true }],
])('%s is not true', (_, force) => {
  expect(trouble(FORCED, { path: '/a', force })).toBe('/force must be boolean');
});

test('null is an argument that is absent', () => {
  expect(trouble(FORCED, { path: '/a', force: null })).toBeUndefined();
  expect(trouble(FORCED, { path: null })).toBe("arguments must have required property 'path'");
});

test('what fits passes, with members that the schema says nothing about', () => {
  expect(trouble(FORCED, { path: '/a', force: true, more: 1 })).toBeUndefined();
  expect(trouble(FORCED, { force: true })).toBe("arguments must have required property 'path'");
  expect(trouble(null, { anything: 1 })).toBeUndefined();
  expect(trouble({ ...FORCED, additionalProperties: false }, { path: '/a', more: 1 })).toBe(
    'arguments must NOT have additional properties: "more"',
  );
});

test('required arguments that are absent are told from what is wrong', () => {
  const lacks = (args: object, schema: object = FORCED) => onlyLacks(skill(schema), args as JsonObject);
  expect([lacks({}), lacks({ force: true }), lacks({ path: null })]).toEqual([true, true, true]);
  expect([lacks({ force: 1 }), lacks({ Path: '/a' }), lacks(JSON.parse('{"__proto__":1}'))]).toEqual([
    false,
    false,
    false,
  ]);
  // What is within a value that is there could be read in two ways.
  const within = { type: 'object', properties: { at: FORCED }, required: ['at'] };
  expect([lacks({}, within), lacks({ at: {} }, within)]).toEqual([true, false]);
});

test('a member that others take for the prototype is refused wherever it is', () => {
  expect(trouble(null, JSON.parse('{"a":[{"__proto__":{"force":true}}]}'))).toBe('no member may be called __proto__');
});

test('a name that differs only in case is refused, beside the declared one and instead of it', () => {
  expect(trouble(FORCED, { path: '/a', Path: '/b' })).toBe('"Path" differs from "path" only in case');
  expect(trouble({ type: 'object', properties: { path: {} } }, { PATH: '/b' })).toBe(
    '"PATH" differs from "path" only in case',
  );
  expect(trouble({ type: 'object' }, { key: 1, '\u212aey': 2 })).toBe('"\u212aey" differs from "key" only in case');
  expect(trouble({ type: 'object', properties: { a: {}, A: {} } }, { a: 1, A: 2 })).toBeUndefined();
});

test('members called like those of every object are members like others', () => {
  const schema = {
    type: 'object',
    properties: JSON.parse('{"__proto__":{"type":"string"},"constructor":{"type":"string"}}'),
  };
  expect(trouble(schema, {})).toBeUndefined();
  expect(trouble(schema, { constructor: 1 })).toBe('/constructor must be string');
  expect(trouble(schema, JSON.parse('{"__proto__":1}'))).toBe('no member may be called __proto__');
});

describe('both dialects', () => {
  test('2020-12: prefixItems', () => {
    const schema = { type: 'object', properties: { at: { prefixItems: [{ type: 'integer' }] } } };
    expect(trouble(schema, { at: ['1'] })).toBe('/at/0 must be integer');
  });
  test('draft-07: items as a list, by its name and without', () => {
    const at = { type: 'array', items: [{ type: 'integer' }] };
    const named = { $schema: 'http://json-schema.org/draft-07/schema#', type: 'object', properties: { at } };
    expect(trouble(named, { at: ['1'] })).toBe('/at/0 must be integer');
    expect(trouble({ type: 'object', properties: { at } }, { at: ['1'] })).toBe('/at/0 must be integer');
  });
  test('references inside the schema', () => {
    const schema = { type: 'object', properties: { n: { $ref: '#/$defs/n' } }, $defs: { n: { type: 'integer' } } };
    expect(trouble(schema, { n: 'x' })).toBe('/n must be integer');
    const tree = { type: 'object', properties: { child: { $ref: '#' }, n: { type: 'integer' } } };
    expect(trouble(tree, { child: { child: { n: 'x' } } })).toBe('/child/child/n must be integer');
  });
});

describe('hostile schemas hold nothing up', () => {
  const within = <T>(ms: number, run: () => T): T => {
    const began = performance.now();
    const came = run();
    expect(performance.now() - began).toBeLessThan(ms);
    return came;
  };
  test('an expression that never ends is a refusal', () => {
    const schema = { type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } };
    expect(within(1_000, () => trouble(schema, { a: `${'a'.repeat(64)}b` }))).toBe(
      'arguments could not be checked against the schema within 80 ms',
    );
    expect(trouble(schema, { a: 'aa' })).toBeUndefined();
  });
  test('alternatives that multiply with depth are a refusal', () => {
    const child = { properties: { a: { $ref: '#' } } };
    const schema = { type: 'object', oneOf: [child, child, { type: 'null' }] };
    let args: JsonObject = {};
    for (let depth = 0; depth < 90; depth += 1) args = { a: args };
    expect(within(1_000, () => trouble(schema, args))).toBeDefined();
  });
  test('one that refers elsewhere, to nothing, or is too large is used for the types of direct members', () => {
    const direct = { force: { type: 'boolean' } };
    const schemas = [
      { type: 'object', properties: { ...direct, x: { $ref: 'http://127.0.0.1:9/x.json' } } },
      { type: 'object', properties: { ...direct, x: { $ref: '#/nowhere' } } },
      { type: 'object', properties: { ...direct, x: { $ref: '#/%zz' } } },
      { type: 'object', properties: { ...direct, x: { pattern: '(' } } },
      { type: 'object', properties: { ...direct, x: { enum: Array.from({ length: 100_000 }, (_, at) => `v${at}`) } } },
      { type: 7, properties: direct },
      { type: 'object', properties: direct, allOf: [{ $ref: '#' }] },
    ];
    for (const schema of schemas) {
      expect(within(1_000, () => trouble(schema, { force: 'true', x: 'y' }))).toMatch(
        /force must be boolean|could not be/,
      );
    }
  });
  test('one nested beyond all measure', () => {
    let schema: JsonObject = { type: 'object' };
    for (let depth = 0; depth < 5_000; depth += 1) schema = { type: 'object', properties: { a: schema } };
    expect(within(1_000, () => trouble(schema, { a: 'x' }))).toBe('/a must be object');
  });
});
