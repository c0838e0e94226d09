/**
 * A tool's own JSON Schema for its arguments, as a check. The schema is the server's and may be hostile: no reference in it is
 * fetched, and a schema that is too large or does not compile is used for the types of its direct members only. Running a check
 * that is not `plain` may take as long as the schema's author likes; the code that runs it sets a limit.
 */

import { Ajv } from 'ajv';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import type { Json, JsonObject } from './schema.ts';
import { isObject } from './values/is-object.ts';
import { own } from './values/own.ts';

/** Returns the first error in the arguments; undefined when there is none. */
export type ArgumentsCheck = (args: JsonObject) => string | undefined;

export interface SchemaSize {
  /** Why the schema is not compiled, if it is not. */
  readonly trouble?: string;
  /** Small, not recursive, and without slow keywords: a check takes time linear in the arguments. */
  readonly plain: boolean;
}

const MOST_VALUES = 5_000;
const MOST_DEPTH = 64;
const PLAIN_OBJECTS = 200;
/** Regular expressions can take exponential time; comparing every item with every other takes quadratic time. */
const SLOW: ReadonlySet<string> = new Set(['pattern', 'patternProperties', 'uniqueItems']);

/** Visits every value once. A property named like a keyword is taken for one, which costs only a time limit. */
export function sizeOf(schema: JsonObject): SchemaSize {
  let values = 0;
  let plain = true;
  let trouble: string | undefined;
  const visit = (value: Json | undefined, depth: number): void => {
    values += 1;
    if (values > MOST_VALUES || depth > MOST_DEPTH) trouble = 'it is too large';
    if (trouble || typeof value !== 'object' || value === null) return;
    for (const name in value) {
      const member = (value as JsonObject)[name];
      const refers = name === '$ref' || name === '$dynamicRef';
      if (SLOW.has(name) || name === '$dynamicRef') plain = false;
      if (refers && typeof member === 'string' && !member.startsWith('#'))
        trouble = 'it refers to something outside of itself';
      visit(member, depth + 1);
      if (trouble) return;
    }
  };
  visit(schema, 0);
  return { plain: plain && !trouble && isSmall(schema), ...(trouble && { trouble }) };
}

/** Counts the schema with every reference expanded. */
function isSmall(schema: JsonObject): boolean {
  let left = PLAIN_OBJECTS;
  const visit = (value: Json | undefined, under: readonly unknown[]): boolean => {
    if (typeof value !== 'object' || value === null) return true;
    left -= 1;
    if (left < 0 || under.includes(value)) return false;
    const within = [...under, value];
    return Object.entries(value).every(([name, member]) =>
      name === '$ref' && typeof member === 'string'
        ? visit(pointedAt(schema, member), within)
        : name === '$defs' || name === 'definitions' || visit(member, within),
    );
  };
  return visit(schema, []);
}

function pointedAt(root: JsonObject, ref: string): Json | undefined {
  let at: Json | undefined = root;
  for (const step of ref.split('/').slice(1)) {
    const name = decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return undefined;
    at = (at as JsonObject)[name];
  }
  return at;
}

const OPTIONS = {
  allErrors: false,
  strict: false,
  validateSchema: false,
  // In these dialects a format is an annotation; checking it would run a server's expression on a caller's text.
  validateFormats: false,
  // A member called `constructor` is present when the arguments have it, not because every object inherits one.
  ownProperties: true,
  logger: false,
} as const;

const OLDER = /draft-0[467]/;

/** Throws for an invalid schema. */
export function compileArguments({ $schema, ...schema }: JsonObject): ArgumentsCheck {
  const older = typeof $schema === 'string' && OLDER.test($schema);
  const makers = older ? [older7, newest] : [newest, older7];
  let cause: unknown;
  for (const make of makers) {
    try {
      return checkOf(make().compile(schema));
    } catch (thrown) {
      cause = thrown;
    }
  }
  throw cause;
}

/** A new instance each time, so that everything a schema registers in it is discarded with it. */
const newest = () => new Ajv2020({ ...OPTIONS, meta: false });
const older7 = () => new Ajv({ ...OPTIONS, meta: false });

function checkOf(validate: ValidateFunction): ArgumentsCheck {
  return (args) => {
    if (validate(args)) return undefined;
    const [error] = validate.errors ?? [];
    const { additionalProperty, allowedValues } = (error?.params ?? {}) as Partial<Record<string, unknown>>;
    const which =
      additionalProperty !== undefined
        ? `: ${JSON.stringify(additionalProperty)}`
        : Array.isArray(allowedValues)
          ? `: ${JSON.stringify(allowedValues)}`
          : '';
    return brief(`${error?.instancePath || 'arguments'} ${error?.message ?? 'are not valid'}${which}`);
  };
}

const TYPES: ReadonlyMap<unknown, (value: Json) => boolean> = new Map<unknown, (value: Json) => boolean>([
  ['string', (value) => typeof value === 'string'],
  ['number', (value) => typeof value === 'number'],
  ['integer', (value) => Number.isInteger(value)],
  ['boolean', (value) => typeof value === 'boolean'],
  ['null', (value) => value === null],
  ['array', (value) => Array.isArray(value)],
  ['object', (value) => isObject(value)],
]);

/** Checks the types of direct members and the required ones, which can be read from any schema in one pass. */
export function checkDirectMembers({ properties, required }: JsonObject): ArgumentsCheck {
  const declared = Object.entries(isObject(properties) ? properties : {});
  const needed = (Array.isArray(required) ? required : []).filter((name) => typeof name === 'string');
  return (args) => {
    for (const name of needed) {
      if (!Object.hasOwn(args, name)) return brief(`arguments must have required property ${JSON.stringify(name)}`);
    }
    for (const [name, schema] of declared) {
      if (!Object.hasOwn(args, name) || !isObject(schema)) continue;
      const types = Array.isArray(schema.type) ? schema.type : [schema.type];
      const known = types.map((type) => TYPES.get(type));
      if (known.every((is) => is && !is(own(args, name) as Json))) {
        return brief(`/${name} must be ${types.map(String).join(' or ')}`);
      }
    }
    return undefined;
  };
}

const LONGEST = 300;

function brief(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}
