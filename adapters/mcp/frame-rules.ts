/**
 * Whether a frame may go on, by the table in `mappings/mcp.ts`: its method, its sender and its kind. Pure. A frame that is
 * refused here never reaches the other side, and its sender is answered with the reason. Responses are not judged here: they
 * are paired with the request they answer, and one that answers nothing is dropped.
 */

import { CODES, frames, inputRow, MEMBERS } from '../../mappings/mcp.ts';
import type { JsonObject } from '../../src/index.ts';
import { asText, own } from '../../src/index.ts';
import { failed, isObject, type Notice, type Request, type WireError } from './frames.ts';
import type { Inputs } from './line.ts';

/** Printable ASCII, as all methods are written: a name goes into logs, rules and questions to people. */
const METHOD = /^[\x21-\x7e]{1,200}$/;

/** Why a client's request or notification goes no further, as it is answered; undefined when it may go on. */
export function clientFrameTrouble(frame: Request | Notice): { readonly error: WireError } | undefined {
  const request = 'id' in frame;
  const { method, params } = frame;
  if (!METHOD.test(method)) return failed(CODES.methodNotFound, 'Method not found: this is not the name of a method');
  const judged = frames.judge('client', request ? 'request' : 'notification', method);
  if (judged.handling === 'refuse') {
    const misplaced = !request || method.startsWith('notifications/');
    return failed(misplaced ? CODES.invalidRequest : CODES.methodNotFound, judged.reason);
  }
  // In a request that no row knows these names mean nothing; all of it is decided on.
  const odd = params && judged.row && oddlySpelled(params);
  return odd === undefined
    ? undefined
    : failed(CODES.invalidParams, `${JSON.stringify(odd)} differs from a member of the protocol only in case`);
}

/** Why something a server says of itself goes no further. In the era without such requests none may. */
export function serverFrameTrouble(frame: Request | Notice): string | undefined {
  const { method } = frame;
  const judged = frames.judge('server', 'id' in frame ? 'request' : 'notification', method);
  if (judged.handling === 'refuse') return judged.reason;
  // A client's user has not allowed a server anything: an unknown request is not carried, whatever a rule might say.
  return judged.handling === 'act' ? `${JSON.stringify(method.slice(0, 80))} is no request to a client` : undefined;
}

/** Why a server may not ask a client this: it is no such request, or the client never said that it can be asked. */
export function inputTrouble(method: unknown, capabilities: JsonObject): string | undefined {
  const row = typeof method === 'string' ? inputRow(method) : undefined;
  if (row?.capability === undefined) return `${asText(JSON.stringify(method)).slice(0, 80)} is no request to a client`;
  return isObject(own(capabilities, row.capability))
    ? undefined
    : `the client has not declared ${row.capability}, which ${row.method} needs`;
}

/** The same for questions that came in a result. */
export function inputsTrouble(questions: Inputs, capabilities: JsonObject): string | undefined {
  for (const question of Object.values(questions)) {
    const trouble = isObject(question) ? inputTrouble(question.method, capabilities) : 'a question is not a request';
    if (trouble) return trouble;
  }
  return undefined;
}

const EXACT: ReadonlySet<string> = new Set(MEMBERS);
const FOLDED: ReadonlySet<string> = new Set(MEMBERS.map(folded));

/** As the most forgiving readers compare names: `ſ` and the Kelvin sign are letters to them. */
function folded(name: string): string {
  return name.normalize('NFKC').toLowerCase();
}

function oddlySpelled(params: JsonObject): string | undefined {
  for (const name in params) {
    if (!EXACT.has(name) && name.length <= LONGEST_MEMBER && FOLDED.has(folded(name))) return name;
  }
  return undefined;
}
/** NFKC makes one character of at most eighteen, and folding removes none of the letters. */
const LONGEST_MEMBER = 64;
