/**
 * Any value from outside as text. Unlike `String`, which calls the value's own `toString`: in `{"toString":1}` there is none to
 * call, and the error would end the process. What was made here (an address, an error) has one that can be trusted.
 */
export function asText(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value);
  const made = Object.getPrototypeOf(value) as unknown;
  if (made !== null && made !== Object.prototype && !Array.isArray(value)) return String(value);
  return JSON.stringify(value) ?? '';
}
