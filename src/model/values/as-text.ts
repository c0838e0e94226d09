/**
 * Converts any value from outside to text. Unlike `String`, it does not call the value's own `toString`: in `{"toString":1}` that
 * is not a function, and the error would end the process. Instances of classes (a URL, an error) are made by our own code, and
 * their `toString` can be trusted.
 */
export function asText(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value);
  const made = Object.getPrototypeOf(value) as unknown;
  if (made !== null && made !== Object.prototype && !Array.isArray(value)) return String(value);
  return JSON.stringify(value) ?? '';
}

/**
 * The beginning of a text, copied into memory of its own: a slice keeps the whole string alive, and a row with 500 characters of an
 * answer would hold all 16 megabytes of it. Never ends in half a surrogate pair.
 */
export function beginning(text: string, most: number): string {
  if (text.length <= most) return text;
  const end = /[\ud800-\udbff]/.test(text[most - 1] as string) ? most - 1 : most;
  return Buffer.from(text.slice(0, end), 'utf16le').toString('utf16le');
}
