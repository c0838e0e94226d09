/** What a check says when something is not so, and how it says that it could not look. */
import { isDeepStrictEqual } from 'node:util';

/** The check could not be made here. Never counted as passed. */
export class Skip extends Error {}

export function equal(actual: unknown, expected: unknown, what: string): void {
  if (!isDeepStrictEqual(actual, expected)) throw new Error(`${what}: expected ${show(expected)}, got ${show(actual)}`);
}

export function truth(holds: unknown, what: string): asserts holds {
  if (!holds) throw new Error(what);
}

export function among(actual: unknown, allowed: readonly unknown[], what: string): void {
  if (!allowed.includes(actual)) throw new Error(`${what}: expected one of ${show(allowed)}, got ${show(actual)}`);
}

export function text(value: unknown, what: string): string {
  if (typeof value !== 'string' || value === '') throw new Error(`${what}: expected a text, got ${show(value)}`);
  return value;
}

export function list<T = unknown>(value: unknown, what: string): readonly T[] {
  if (!Array.isArray(value)) throw new Error(`${what}: expected a list, got ${show(value)}`);
  return value as readonly T[];
}

/** Each is larger than the one before. */
export function rising(values: readonly (string | number)[], what: string): void {
  const at = values.findIndex((value, index) => index > 0 && value <= values[index - 1]!);
  if (at > 0) throw new Error(`${what}: ${show(values[at])} comes after ${show(values[at - 1])}`);
}

export function absent(haystack: string, needle: string, what: string): void {
  if (haystack.includes(needle)) throw new Error(what);
}

function show(value: unknown): string {
  const shown = JSON.stringify(value) ?? String(value);
  return shown.length > 300 ? `${shown.slice(0, 300)}…` : shown;
}
