/**
 * Parses JSON that may have been crafted: a repeated key lets two readers see two documents, so it is refused. Accepts any
 * formatting; a caller that needs our exact bytes compares them with the canonical text.
 */
import { Fault } from '../../model/faults.ts';

/** Returns the value; throws a fault when the text is not JSON or an object in it repeats a key. */
export function parseStrict(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new Fault('invalid_request', 'this is not JSON', { cause });
  }
  refuseRepeatedKeys(text);
  return value;
}

/** The text is known to be valid JSON here, so recognising strings, brackets and colons is enough. */
function refuseRepeatedKeys(text: string): void {
  const open: (Set<string> | undefined)[] = [];
  for (let at = 0; at < text.length; at += 1) {
    switch (text.charCodeAt(at)) {
      case OBJECT:
        open.push(new Set());
        break;
      case LIST:
        open.push(undefined);
        break;
      case END_OBJECT:
      case END_LIST:
        open.pop();
        break;
      case QUOTE: {
        const end = endOfString(text, at);
        const keys = open.at(-1);
        if (keys && isKey(text, end + 1)) {
          const key = keyOf(text.slice(at, end + 1));
          if (keys.has(key))
            throw new Fault('invalid_request', `the key ${JSON.stringify(key)} appears twice in one object`);
          keys.add(key);
        }
        at = end;
        break;
      }
    }
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const OBJECT = 0x7b;
const END_OBJECT = 0x7d;
const LIST = 0x5b;
const END_LIST = 0x5d;

function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end;
}

/** An odd number of backslashes before it. */
function isEscaped(text: string, at: number): boolean {
  let before = at - 1;
  while (text.charCodeAt(before) === BACKSLASH) before -= 1;
  return (at - before) % 2 === 0;
}

/** One key may be written in several ways; the decoded key counts. */
function keyOf(quoted: string): string {
  return quoted.includes('\\') ? (JSON.parse(quoted) as string) : quoted.slice(1, -1);
}

function isKey(text: string, after: number): boolean {
  let at = after;
  while (text.charCodeAt(at) <= 0x20) at += 1;
  return text.charCodeAt(at) === COLON;
}
