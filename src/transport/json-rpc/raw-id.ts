/**
 * The text of a request's id. A number beyond double precision changes when it is parsed, and the client would not
 * recognise a response with the changed id.
 */
import type { Json } from '../../model/schema.ts';

export function rawIdOf(text: string, parsed: Json): string {
  if (typeof parsed !== 'number' || Number.isSafeInteger(parsed)) return JSON.stringify(parsed);
  return memberText(text, 'id') ?? JSON.stringify(parsed);
}

/** The text of a number that is a member of the outermost object. The text is known to be JSON. */
function memberText(text: string, name: string): string | undefined {
  let depth = 0;
  let found: string | undefined;
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at];
    if (char === '"') {
      const end = endOfString(text, at);
      const after = /^\s*:\s*(-?[0-9][0-9.eE+-]*)/.exec(text.slice(end + 1, end + 400));
      // The last of several counts, as it does for a JSON parser.
      if (depth === 1 && after && text.slice(at, end + 1) === `"${name}"`) found = after[1];
      at = end;
    } else if (char === '{' || char === '[') depth += 1;
    else if (char === '}' || char === ']') depth -= 1;
  }
  return found;
}

function endOfString(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1;
    else if (text[at] === '"') return at;
  }
  return text.length;
}
