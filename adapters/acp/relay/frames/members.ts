/**
 * The members of a JSON object as byte ranges. A changed value is cut out and replaced; every other byte stays, number
 * spellings and key order included. The bytes must be valid JSON.
 */
export interface Member {
  readonly name: string;
  /** The byte range of its value. */
  readonly start: number;
  readonly end: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const [OPEN_OBJECT, OPEN_LIST, CLOSE_OBJECT, CLOSE_LIST, COMMA] = [0x7b, 0x5b, 0x7d, 0x5d, 0x2c];

/** The members of the object that begins at or after `from`. Of repeated keys parsers keep the last. */
export function membersOf(bytes: Buffer, from = 0): readonly Member[] {
  const members: Member[] = [];
  let at = skipSpace(bytes, from);
  if (bytes[at] !== OPEN_OBJECT) return members;
  at = skipSpace(bytes, at + 1);
  while (bytes[at] === QUOTE) {
    const nameEnd = endOfString(bytes, at);
    const name = JSON.parse(bytes.toString('utf8', at, nameEnd)) as string;
    at = skipSpace(bytes, nameEnd);
    if (bytes[at] !== COLON) return members;
    const start = skipSpace(bytes, at + 1);
    const end = endOfValue(bytes, start);
    members.push({ name, start, end });
    at = skipSpace(bytes, end);
    if (bytes[at] !== COMMA) return members;
    at = skipSpace(bytes, at + 1);
  }
  return members;
}

/** The member at a path of keys. */
export function memberAt(bytes: Buffer, path: readonly string[]): Member | undefined {
  let found: Member | undefined;
  for (const name of path) {
    found = membersOf(bytes, found?.start ?? 0).findLast((member) => member.name === name);
    if (!found) return undefined;
  }
  return found;
}

/** The same bytes with another value at this path. An absent member is added to its object. */
export function withMember(bytes: Buffer, path: readonly string[], value: unknown): Buffer {
  const text = JSON.stringify(value);
  const found = memberAt(bytes, path);
  if (found) return spliced(bytes, found.start, found.end, text);
  const home = path.length > 1 ? memberAt(bytes, path.slice(0, -1))?.start : skipSpace(bytes, 0);
  if (home === undefined || bytes[home] !== OPEN_OBJECT) return bytes;
  const comma = bytes[skipSpace(bytes, home + 1)] === CLOSE_OBJECT ? '' : ',';
  return spliced(bytes, home + 1, home + 1, `${JSON.stringify(path.at(-1))}:${text}${comma}`);
}

/** The same bytes with a value put first in a list; existing items keep their bytes. */
export function withFirst(bytes: Buffer, path: readonly string[], value: unknown): Buffer {
  const found = memberAt(bytes, path);
  if (!found || bytes[found.start] !== OPEN_LIST) return bytes;
  const comma = bytes[skipSpace(bytes, found.start + 1)] === CLOSE_LIST ? '' : ',';
  return spliced(bytes, found.start + 1, found.start + 1, `${JSON.stringify(value)}${comma}`);
}

/** The same bytes with values appended to a list; existing items keep their bytes. */
export function withMore(bytes: Buffer, path: readonly string[], values: readonly unknown[]): Buffer {
  const found = memberAt(bytes, path);
  if (!found || bytes[found.start] !== OPEN_LIST) return withMember(bytes, path, values);
  const comma = bytes[skipSpace(bytes, found.start + 1)] === CLOSE_LIST ? '' : ',';
  return spliced(bytes, found.end - 1, found.end - 1, `${comma}${JSON.stringify(values).slice(1, -1)}`);
}

/** The raw text of a member of the outermost object. */
export function rawMember(bytes: Buffer, name: string): string | undefined {
  const member = memberAt(bytes, [name]);
  return member && bytes.toString('utf8', member.start, member.end);
}

/** The depth of the value, and the number of members of all its objects, repeated keys counted each time. */
export function surveyOf(bytes: Buffer): { readonly depth: number; readonly members: number } {
  let [deep, depth, members] = [0, 0, 0];
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === QUOTE) at = endOfString(bytes, at) - 1;
    else if (byte === COLON) members += 1;
    else if (byte === OPEN_OBJECT || byte === OPEN_LIST) {
      deep += 1;
      if (deep > depth) depth = deep;
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) deep -= 1;
  }
  return { depth, members };
}

function spliced(bytes: Buffer, start: number, end: number, text: string): Buffer {
  return Buffer.concat([bytes.subarray(0, start), Buffer.from(text), bytes.subarray(end)]);
}

function skipSpace(bytes: Buffer, from: number): number {
  let at = from;
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at += 1;
  return at;
}

/** The index after the closing quote. */
function endOfString(bytes: Buffer, from: number): number {
  let at = from + 1;
  for (;;) {
    const quote = bytes.indexOf(QUOTE, at);
    if (quote < 0) return bytes.length;
    let slashes = 0;
    while (bytes[quote - 1 - slashes] === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return quote + 1;
    at = quote + 1;
  }
}

function endOfValue(bytes: Buffer, from: number): number {
  if (bytes[from] === QUOTE) return endOfString(bytes, from);
  let depth = 0;
  for (let at = from; at < bytes.length; ) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      at = endOfString(bytes, at);
      continue;
    }
    if (byte === OPEN_OBJECT || byte === OPEN_LIST) depth += 1;
    else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) {
      if (depth === 0) return trimmed(bytes, from, at);
      depth -= 1;
      if (depth === 0) return at + 1;
    } else if (depth === 0 && byte === COMMA) return trimmed(bytes, from, at);
    at += 1;
  }
  return bytes.length;
}

/** The end of a number or literal, without trailing whitespace. */
function trimmed(bytes: Buffer, from: number, end: number): number {
  let at = end;
  while (at > from && (bytes[at - 1] ?? 0) <= 0x20) at -= 1;
  return at;
}
