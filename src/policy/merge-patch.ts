/** RFC 7396 JSON Merge Patch, and which members a change touched. Pure; never mutates its arguments. */

import type { Json, JsonObject } from '../model/schema.ts';
import { isObject } from '../model/values/is-object.ts';

export function mergePatch(target: Json | undefined, patch: Json): Json {
  if (!isObject(patch)) return patch;
  const result: Record<string, Json | undefined> = Object.create(null);
  if (isObject(target)) for (const key of Object.keys(target)) result[key] = target[key];
  for (const key of Object.keys(patch)) {
    const change = patch[key];
    if (change === undefined) continue;
    if (change === null) delete result[key];
    else result[key] = mergePatch(result[key], change);
  }
  return plain(result);
}

/**
 * Records are built without a prototype so that a member called `__proto__` stays a member; this converts one to an ordinary
 * object.
 */
function plain(record: Record<string, Json | undefined>): JsonObject {
  return Object.fromEntries(Object.entries(record));
}

/** JSON Pointers of everything that differs, at the shallowest level where it does. */
export function changedPaths(before: Json | undefined, after: Json | undefined, at = ''): readonly string[] {
  if (Object.is(before, after)) return [];
  if (isObject(before) && isObject(after)) {
    const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
    return [...keys].flatMap((key) => changedPaths(own(before, key), own(after, key), `${at}/${escapeKey(key)}`));
  }
  if (Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    return before.some((item, index) => changedPaths(item, after[index]).length > 0) ? [at] : [];
  }
  return [at];
}

/** True when a path in one list equals, contains or is inside a path in the other. */
export function overlap(a: readonly string[], b: readonly string[]): boolean {
  return a.some((one) => b.some((two) => one === two || one.startsWith(`${two}/`) || two.startsWith(`${one}/`)));
}

function own(record: JsonObject, key: string): Json | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}

function escapeKey(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}
