/**
 * What the environment adds to the configuration. `${NAME}` becomes what it says, `${NAME:-this}` has something to fall back on,
 * `$${NAME}` stays. Done after the text was parsed, so that a value can never become structure; rules are left alone, because they
 * are kept as they were written.
 */

import { isScalar, visit, type Document as YamlDocument } from 'yaml';
import { own } from './model/own.ts';

const REFERENCE = /\$(\$?)\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;

/** The nodes that say something else now. `missing` is called for a name that is not there, with where it was wanted. */
export function fillIn(
  document: YamlDocument,
  env: NodeJS.ProcessEnv,
  missing: (name: string, offset: number) => Error,
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
        return value;
      });
    },
  });
  return filled;
}

/** The environment knows texts only; one that spells a number, or yes or no, is that where one is wanted. */
export function asWord(text: unknown): number | boolean | undefined {
  if (text === 'true' || text === 'false') return text === 'true';
  return typeof text === 'string' && /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : undefined;
}
