/**
 * Environment variables in the configuration. `${NAME}` becomes the variable's value, `${NAME:-this}` has a default,
 * `$${NAME}` stays. References are replaced after the text was parsed, so that a value can never become structure;
 * rules are left alone, because they are kept as they were written.
 */

import { isScalar, visit, type Document as YamlDocument } from 'yaml';
import { asFault, Fault } from '../../model/faults.ts';
import { own } from '../../model/values/own.ts';

const REFERENCE = /\$(\$?)\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;

/** Variables a configuration has used, by name. Their values may be secrets. */
export type Environment = ReadonlyMap<string, string>;

/**
 * Returns the nodes whose value was replaced. `missing` makes the error for a variable that is not set, with the offset
 * of its reference; `used` gets every variable that was filled in.
 */
export function fillIn(
  document: YamlDocument,
  env: NodeJS.ProcessEnv,
  missing: (name: string, offset: number) => Error,
  used?: Map<string, string>,
): ReadonlySet<unknown> {
  const filled = new Set<unknown>();
  visit(document, {
    Pair: (_, { key }, ancestors) =>
      ancestors.length === 2 && isScalar(key) && key.value === 'rules' ? visit.SKIP : undefined,
    Scalar(at, node) {
      if (at === 'key' || typeof node.value !== 'string') return;
      node.value = node.value.replace(REFERENCE, (all: string, kept: string, name: string, otherwise?: string) => {
        if (kept) return all.slice(1);
        const value = own(env, name) ?? otherwise;
        if (value === undefined) throw missing(name, node.range?.[0] ?? 0);
        filled.add(node);
        if (own(env, name) !== undefined) used?.set(name, value);
        return value;
      });
    },
  });
  return filled;
}

/**
 * Environment variables are texts only; a text that spells a number or a boolean is converted where the schema wants
 * one.
 */
export function asWord(text: unknown): number | boolean | undefined {
  if (text === 'true' || text === 'false') return text === 'true';
  return typeof text === 'string' && /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : undefined;
}

/** The same error, with a message that shows no value of a variable. */
export function hidingEnvironment(thrown: unknown, environment: Environment): unknown {
  const fault = asFault(thrown);
  const message = withoutEnvironment(fault.message, environment);
  return message === fault.message ? thrown : new Fault(fault.kind, message, fault.param ? { param: fault.param } : {});
}

/** An error message without the values of variables, however the message spells them. */
export function withoutEnvironment(text: string, environment: Environment): string {
  const spellings = [...environment].flatMap(([name, value]) =>
    // A shorter value is a word or a number; removing those would make the message unreadable and hide nothing.
    value.length < SHORTEST_HIDDEN
      ? []
      : [value, JSON.stringify(value).slice(1, -1), encodeURIComponent(value)].map((said) => ({ name, said })),
  );
  return spellings
    .toSorted((a, b) => b.said.length - a.said.length)
    .reduce((left, { name, said }) => left.replaceAll(said, `[value of ${name}]`), text);
}
const SHORTEST_HIDDEN = 4;
