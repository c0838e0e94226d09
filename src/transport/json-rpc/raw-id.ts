/**
 * The text of a request's id. A number beyond double precision changes when it is parsed, and `1.0` becomes `1`: a client that
 * compares texts would not recognise a response with the changed id.
 */

import type { Json } from '../../model/schema.ts';
import { asText } from '../../model/values/as-text.ts';

export function rawIdOf(text: string, parsed: Json): string {
  if (typeof parsed !== 'number') return JSON.stringify(parsed);
  if (Number.isSafeInteger(parsed) && !UNUSUAL.test(text)) return JSON.stringify(parsed);
  return memberText(text, 'id') ?? JSON.stringify(parsed);
}

/** An id, at any depth, that is a number with more than one spelling. */
const UNUSUAL = /"id"\s*:\s*(?:-0[\s,}]|-?[0-9]+[.eE])/;

/** Equal for ids that a parsing reader takes as the same; ids that a parser would confuse stay distinct. */
export function sameId(raw: string): string {
  if (raw.startsWith('"')) return JSON.stringify(JSON.parse(raw));
  const number = Number(raw);
  return Number.isSafeInteger(number) ? asText(number) : raw;
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
