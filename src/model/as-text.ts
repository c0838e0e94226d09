/**
 * Any value from outside as text. Unlike `String`, which calls the value's own `toString`: in `{"toString":1}` there is none to
 * call, and the error would end the process.
 */
export function asText(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value);
  return JSON.stringify(value) ?? '';
}
