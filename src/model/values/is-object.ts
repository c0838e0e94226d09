/** Whether a value of unknown origin is a JSON object: not null, not an array. Its members are still unknown. */
import type { JsonObject } from '../schema.ts';

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
