/**
 * Decides by the table in `mappings/mcp.ts` whether a frame may be forwarded: by its method, its sender and its kind. Pure. A
 * refused frame never reaches the other side, and its sender is answered with the reason. Responses are not judged here: they
 * are paired with the request they answer, and one that answers no request is dropped.
 */

import type { NotificationMethod, RequestMethod } from '@modelcontextprotocol/server';
import { CODES, frames, inputRow, type McpMethod, MEMBERS } from '../../mappings/mcp.ts';
import type { JsonObject } from '../../src/index.ts';
import { asText, isObject, own } from '../../src/index.ts';
import type { WireError } from '../../src/transport/json-rpc/messages.ts';
import { failed, type Notice, type Request } from './frames.ts';
import type { Inputs } from './request-context.ts';

/** A method of the SDK without a row in the table does not compile: it would be an act of unknown effect. */
type Unplaced = Exclude<RequestMethod | NotificationMethod, McpMethod>;
true satisfies [Unplaced] extends [never] ? true : Unplaced;

/** Printable ASCII, as all methods are written: a name goes into logs, rules and questions to people. */
const METHOD = /^[\x21-\x7e]{1,200}$/;

/** Why a client's request or notification is refused, as the error it is answered with; undefined when it may be forwarded. */
export function clientFrameTrouble(frame: Request | Notice): { readonly error: WireError } | undefined {
  const request = 'id' in frame;
  const { method, params } = frame;
  if (!METHOD.test(method)) return failed(CODES.methodNotFound, 'Method not found: this is not the name of a method');
  const judged = frames.judge('client', request ? 'request' : 'notification', method);
  if (judged.handling === 'refuse') {
    const misplaced = !request || method.startsWith('notifications/');
    return failed(misplaced ? CODES.invalidRequest : CODES.methodNotFound, judged.reason);
  }
  // In a request that is in no row these names have no meaning; policy decides on all of its members.
  const odd = params && judged.row && oddlySpelled(params);
  return odd === undefined
    ? undefined
    : failed(CODES.invalidParams, `${JSON.stringify(odd)} differs from a member of the protocol only in case`);
}

/** Why a request or notification that a server sends is refused. In the modern era servers send no requests. */
export function serverFrameTrouble(frame: Request | Notice): string | undefined {
  const { method } = frame;
  const judged = frames.judge('server', 'id' in frame ? 'request' : 'notification', method);
  if (judged.handling === 'refuse') return judged.reason;
  // The user of a client has not allowed a server anything: an unknown request is not forwarded, even if a rule would allow it.
  return judged.handling === 'act' ? `${JSON.stringify(method.slice(0, 80))} is no request to a client` : undefined;
}

/** Why a server may not put this request to a client: the method is no such request, or the client did not declare the capability. */
export function inputTrouble(method: unknown, capabilities: JsonObject): string | undefined {
  const row = typeof method === 'string' ? inputRow(method) : undefined;
  if (row?.capability === undefined) return `${asText(JSON.stringify(method)).slice(0, 80)} is no request to a client`;
  return isObject(own(capabilities, row.capability))
    ? undefined
    : `the client has not declared ${row.capability}, which ${row.method} needs`;
}

/** The same for questions that arrive in a result. */
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
/** NFKC makes at most eighteen characters of one, and folding removes none of the letters. */
const LONGEST_MEMBER = 64;
