/** One compiled validator per shape. Invalid input becomes a fault that names the member and its error. */

import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { Fault } from './faults.ts';
import type { Static, TSchema } from './type.ts';

/** The schemas here are our own: validating each against the meta-schema would cost every process a tenth of a second. */
const ajv = new Ajv2020({
  allErrors: false,
  strict: false,
  validateSchema: false,
  removeAdditional: false,
  verbose: true, // errors carry the schema, so that the message can list the allowed members
  useDefaults: false,
  // Optimizing the generated code took longer than generating it, in every process; V8 runs it as fast without.
  code: { optimize: false },
});
formats.default(ajv);

/** A cache: a schema is compiled once in a process, for all its callers. */
const compiled = new WeakMap<object, ValidateFunction>();

/** Compiled on first use and kept: loading the model costs nothing, checking a value costs one call. */
export function validator<T extends TSchema>(schema: T): (value: unknown) => value is Static<T> {
  return (value): value is Static<T> => compile(schema)(value) as boolean;
}

function compile(schema: object): ValidateFunction {
  const known = compiled.get(schema);
  if (known) return known;
  const fresh = ajv.compile(schema);
  compiled.set(schema, fresh);
  return fresh;
}

/** Returns the value as its type, or throws `invalid_request` with the first error. */
export function check<T extends TSchema>(schema: T, value: unknown, what: string): Static<T> {
  const validate = compile(schema);
  if (validate(value)) return value as Static<T>;
  const error = deepest(validate.errors ?? []);
  const param = error ? pointer(error) : undefined;
  throw new Fault('invalid_request', `${what}: ${error ? sentence(error) : 'does not have the expected shape'}`, {
    ...(param && { param }),
  });
}

/** The first error as the validator reports it, for callers with a better message than `check` has. */
export function mistakeIn(schema: TSchema, value: unknown): ErrorObject | undefined {
  const validate = compile(schema);
  return validate(value) ? undefined : deepest(validate.errors ?? []);
}
export type Mistake = ErrorObject;

/** In an anyOf the most specific error is the one deepest in the value. */
function deepest(errors: readonly ErrorObject[]): ErrorObject | undefined {
  return errors.toSorted((a, b) => b.instancePath.length - a.instancePath.length)[0];
}

function pointer(error: ErrorObject): string {
  const { missingProperty, additionalProperty } = error.params as Partial<Record<string, string>>;
  const member = missingProperty ?? additionalProperty;
  return member ? `${error.instancePath}/${member}` : error.instancePath || '/';
}

function sentence(error: ErrorObject): string {
  const where = error.instancePath ? `${error.instancePath} ` : '';
  if (error.keyword === 'enum') {
    return `${where}must be one of ${(error.params as { allowedValues: unknown[] }).allowedValues.join(', ')}`;
  }
  if (error.keyword === 'additionalProperties') {
    const { additionalProperty } = error.params as { additionalProperty: string };
    const known = Object.keys((error.parentSchema as { properties?: object } | undefined)?.properties ?? {});
    return `${where}has no member ${JSON.stringify(additionalProperty)}; there are: ${known.join(', ') || 'none'}`;
  }
  return `${where}${error.message ?? 'is not valid'}`;
}
