/** The slow path of redaction: a copy without the secrets, sharing every subtree that held none, and the path of each secret. */

import type { RedactionMark } from '../../model/payloads.ts';
import { isObject } from '../../model/values/is-object.ts';

/** Deeper than any real document, and far from the stack limit. */
export const DEEPEST = 100;
/** Objects and arrays visited in one payload; a larger payload is an attack. */
export const MOST_VALUES = 1_000_000;
/** Members of a JSON Schema that hold values; the others only describe them. */
const SCHEMA_VALUES = new Set(['default', 'const', 'enum', 'example', 'examples']);

/**
 * What a member's name implies for its value: nothing, that it is a secret, that it may be one (`token`), that a sibling member
 * decides (`value`). A `tainted` name contains a secret itself.
 */
export type NameVerdict = 'plain' | 'sensitive' | 'maybe' | 'pair' | 'tainted';

type Members = { readonly [name: string]: unknown };

/** The detectors that redaction uses. */
export interface Detectors {
  verdict(name: string): NameVerdict;
  isSecretName(name: string): boolean;
  /** The sensitive name that a `{ name, value }` pair gives its value. */
  pairName(members: Members): string | undefined;
  inspect(text: string): { readonly text: string; readonly reason: string | undefined };
  inNumber(value: number): boolean;
}

export function mask(reason: string): string {
  return `[redacted: ${reason}]`;
}

export function redactDeep<T>(
  value: T,
  detectors: Detectors,
): { readonly value: T; readonly marks: readonly RedactionMark[] } {
  const marks: RedactionMark[] = [];
  let left = MOST_VALUES;
  const mark = (field: string, reason: string) => marks.push({ field, reason });

  function tooMuch(depth: number): string | undefined {
    left -= 1;
    if (depth >= DEEPEST) return `nested deeper than ${DEEPEST}`;
    return left < 0 ? `more than ${MOST_VALUES} values` : undefined;
  }

  function walk(it: unknown, path: string, depth: number, parent: string): unknown {
    if (typeof it === 'string') {
      const { text, reason } = detectors.inspect(it);
      if (reason) mark(path, reason);
      return text;
    }
    if (typeof it === 'number')
      return detectors.inNumber(it) ? cover(it, path, depth, 'known secret', 'known secret') : it;
    if (typeof it !== 'object' || it === null) return it;
    const excess = tooMuch(depth);
    if (excess) {
      mark(path, excess);
      return mask(excess);
    }
    return Array.isArray(it) ? walkList(it, path, depth) : walkMembers(it as Members, path, depth, parent);
  }

  function walkList(list: readonly unknown[], path: string, depth: number): unknown {
    let flag: string | undefined;
    return mapList(list, (item, at) => {
      const named = flag;
      flag = typeof item === 'string' ? secretFlag(item) : undefined;
      return named !== undefined && flag === undefined
        ? cover(item, `${path}/${at}`, depth + 1, named, 'command flag')
        : walk(item, `${path}/${at}`, depth + 1, '');
    });
  }

  function walkMembers(members: Members, path: string, depth: number, parent: string): unknown {
    const pair = detectors.pairName(members);
    return mapMembers(members, (child, name, shown) => {
      const field = `${path}/${escapePointer(shown)}`;
      if (shown !== name) mark(field, 'secret in a key');
      const verdict = detectors.verdict(name);
      if (verdict === 'sensitive' || (verdict === 'tainted' && detectors.isSecretName(name))) {
        return parent === 'properties' && isObject(child)
          ? walkSchema(child, field, depth + 1, shown)
          : cover(child, field, depth + 1, shown, 'sensitive key');
      }
      if (verdict === 'maybe' && isOpaque(child)) return cover(child, field, depth + 1, shown, 'sensitive key');
      if (verdict === 'pair' && pair !== undefined) {
        return cover(child, field, depth + 1, detectors.inspect(pair).text, 'sensitive key');
      }
      return walk(child, field, depth + 1, name);
    });
  }

  /** A tool that takes a password says so in its schema; only the values in a schema can be secrets. */
  function walkSchema(schema: Members, path: string, depth: number, name: string): unknown {
    const covered = mapMembers(schema, (value, key, shown) =>
      SCHEMA_VALUES.has(key) ? cover(value, `${path}/${shown}`, depth + 1, name, 'sensitive key') : value,
    );
    return walk(covered, path, depth, name);
  }

  /** Every leaf is removed; the structure around them stays, so that readers find the members they expect. */
  function cover(it: unknown, path: string, depth: number, name: string, reason: string): unknown {
    const shown = mask(name);
    const hide = (leaf: unknown, level: number): unknown => {
      if (typeof leaf === 'string') return leaf === '' ? leaf : shown;
      if (typeof leaf === 'number' || typeof leaf === 'bigint') return shown;
      if (typeof leaf !== 'object' || leaf === null) return leaf;
      if (tooMuch(level)) return shown;
      return Array.isArray(leaf)
        ? mapList(leaf, (item) => hide(item, level + 1))
        : mapMembers(leaf as Members, (child) => hide(child, level + 1));
    };
    const hidden = hide(it, depth);
    if (hidden !== it) mark(path, reason);
    return hidden;
  }

  function mapMembers(members: Members, next: (child: unknown, name: string, shown: string) => unknown): Members {
    const entries: [string, unknown][] = [];
    const used = new Map<string, number>();
    let changed = false;
    for (const [name, child] of Object.entries(members)) {
      const shown = detectors.verdict(name) === 'tainted' ? freeName(detectors.inspect(name).text, name, used) : name;
      const kept = next(child, name, shown);
      changed ||= shown !== name || kept !== child;
      entries.push([shown, kept]);
    }
    // Not by assignment: a member called __proto__ is a member like any other.
    return changed ? Object.fromEntries(entries) : members;
  }

  function secretFlag(item: string): string | undefined {
    const name = /^--?([A-Za-z][\w-]{1,40})$/.exec(item)?.[1];
    return name !== undefined && (detectors.isSecretName(name) || name.toLowerCase() === 'token') ? name : undefined;
  }

  return { value: walk(value, '', 0, '') as T, marks };
}

function mapList(list: readonly unknown[], next: (item: unknown, at: number) => unknown): readonly unknown[] {
  const mapped = list.map(next);
  return mapped.every((item, at) => item === list[at]) ? list : mapped;
}

/** Two keys whose secrets were removed must not become one. */
function freeName(safe: string, name: string, used: Map<string, number>): string {
  if (safe === name) return name;
  const count = (used.get(safe) ?? 0) + 1;
  used.set(safe, count);
  return count === 1 ? safe : `${safe} ${count}`;
}

/** `token` names credentials and pieces of text alike; only the first are long, unbroken and have digits. */
function isOpaque(value: unknown): boolean {
  return typeof value === 'string' && value.length >= 16 && /\d/.test(value) && !/\s/.test(value);
}

function escapePointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}
