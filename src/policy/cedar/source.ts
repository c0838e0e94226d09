/**
 * Splits a `.cedar` file into its policies and records the position of each, so that an error message can name a line. Only finds
 * boundaries: strings, comments and brackets. Cedar itself does the parsing.
 */

export interface PolicySource {
  readonly file: string;
  readonly text: string;
  /** Where it begins in its file, from 1. */
  readonly line: number;
  readonly column: number;
  /** Offset in `text` of the word `permit` or `forbid`; undefined when there is none. */
  readonly effectAt: number | undefined;
  /** From a file whose rules may only tighten. */
  readonly restricting?: boolean;
}

export function splitPolicies(file: string, source: string): readonly PolicySource[] {
  const found: PolicySource[] = [];
  const position = createLocator(source);
  let at = 0;
  let start = -1;
  let depth = 0;
  let effectAt: number | undefined;
  const finish = (end: number) => {
    if (start >= 0) found.push({ file, text: source.slice(start, end), ...position(start), effectAt });
    start = -1;
    depth = 0;
    effectAt = undefined;
  };
  while (at < source.length) {
    const char = source[at] as string;
    if (source.startsWith('//', at)) {
      const end = source.indexOf('\n', at);
      at = end < 0 ? source.length : end;
      continue;
    }
    if (start < 0 && (/\s/.test(char) || char === '\uFEFF')) {
      at += 1;
      continue;
    }
    if (start < 0) start = at;
    if (char === '"') at = endOfString(source, at);
    else if (/[A-Za-z_]/.test(char)) {
      const word = /[A-Za-z0-9_]+/y;
      word.lastIndex = at;
      const name = word.exec(source)?.[0] ?? char;
      if (depth === 0 && effectAt === undefined && /^(permit|forbid)$/.test(name) && source[at - 1] !== '@') {
        effectAt = at - start;
      }
      at += name.length;
    } else {
      if ('([{'.includes(char)) depth += 1;
      else if (')]}'.includes(char)) depth = Math.max(0, depth - 1);
      at += 1;
      if (char === ';' && depth === 0) finish(at);
    }
  }
  finish(source.length);
  return found;
}

function endOfString(source: string, from: number): number {
  for (let at = from + 1; at < source.length; at += 1) {
    if (source[at] === '\\') at += 1;
    else if (source[at] === '"') return at + 1;
  }
  return source.length;
}

/** Line and column of an offset; offsets are requested in ascending order, so one pass is enough. */
function createLocator(source: string): (offset: number) => { line: number; column: number } {
  let line = 1;
  let lineStart = 0;
  let seen = 0;
  return (offset) => {
    for (; seen < offset; seen += 1) {
      if (source[seen] === '\n') {
        line += 1;
        lineStart = seen + 1;
      }
    }
    return { line, column: offset - lineStart + 1 };
  };
}

/** Converts Cedar's byte offset within the policy to a line and column in the file. */
export function positionOfByte(source: PolicySource, byte: number): { line: number; column: number } {
  const before = Buffer.from(source.text).subarray(0, byte).toString();
  const lines = before.split('\n');
  const last = lines.at(-1) ?? '';
  return {
    line: source.line + lines.length - 1,
    column: lines.length === 1 ? source.column + last.length : last.length + 1,
  };
}
