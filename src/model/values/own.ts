/** Reads a member by a name that came from outside: only the object's own members, never inherited ones. */
export function own<T>(record: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}
