/** Reads members of wire values: a member of the wrong type counts as absent. */
import { isObject, type Json, type JsonObject } from '../../src/index.ts';

export function objectOf(value: unknown): JsonObject | undefined {
  return isObject(value) ? value : undefined;
}

export function listOf(value: unknown): readonly Json[] {
  return Array.isArray(value) ? (value as Json[]) : [];
}

/** A non-empty string. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

export function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

/** Without members that are absent or undefined. */
export function compact(members: Readonly<Record<string, unknown>>): JsonObject {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as JsonObject;
}

/** A member below members: `within(update, '_meta', 'harn')`. */
export function within(value: unknown, ...path: readonly string[]): Json | undefined {
  let at: unknown = value;
  for (const name of path) at = objectOf(at)?.[name];
  return at as Json | undefined;
}

/** The last segment of a path. */
export function lastPath(path: string): string {
  return path.replace(/\/+$/, '').split('/').at(-1) ?? '';
}

/** An own member by an outside name; inherited members do not count. */
export function lookup<T>(record: Readonly<Record<string, T>>, name: unknown): T | undefined {
  return typeof name === 'string' && Object.hasOwn(record, name) ? record[name] : undefined;
}
