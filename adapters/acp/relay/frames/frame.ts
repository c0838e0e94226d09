/**
 * Classifies a line: a request, a notification, a response, or a frame that must not cross. The line is parsed once for
 * inspection; its bytes are forwarded. Bytes are forwarded only where every reader reads them the same way: valid UTF-8, one
 * JSON value, no repeated key in an object, no line break of any kind inside. Ids are kept as raw text, because parsing a
 * number may change it.
 */

import { isUtf8 } from 'node:buffer';
import type { JsonObject } from '../../../../src/index.ts';
import {
  envelopeOf,
  errorText,
  isId,
  NOT_A_MESSAGE,
  NOT_JSON,
  resultText,
} from '../../../../src/transport/json-rpc/messages.ts';
import { objectOf } from '../../shapes.ts';
import { membersOf, rawMember, surveyOf } from './members.ts';

export type Frame =
  | { readonly kind: 'request'; readonly line: Buffer; readonly message: JsonObject; readonly method: string }
  | { readonly kind: 'notification'; readonly line: Buffer; readonly message: JsonObject; readonly method: string }
  | { readonly kind: 'response'; readonly line: Buffer; readonly message: JsonObject }
  | { readonly kind: 'batch'; readonly line: Buffer }
  /** An empty line. */
  | { readonly kind: 'blank'; readonly line: Buffer }
  /** Text that does not begin like a frame: stray output of an agent. */
  | { readonly kind: 'noise'; readonly line: Buffer }
  | Unreadable;
export type Request = Extract<Frame, { kind: 'request' }>;
export type Notification = Extract<Frame, { kind: 'notification' }>;
export type Response = Extract<Frame, { kind: 'response' }>;

/** A frame with two readings, or none. It never crosses. */
export interface Unreadable {
  readonly kind: 'unreadable';
  readonly line: Buffer;
  readonly code: typeof NOT_JSON | typeof NOT_A_MESSAGE;
  readonly reason: string;
  /** The raw id, where there is exactly one; otherwise `null`. */
  readonly id: string;
  /** It would have been a response: the requester will get none. */
  readonly answers: boolean;
}

const NEWLINE = 0x0a;
const RETURN = 0x0d;
const DEEPEST = 100;
const ENVELOPE = new Set(['jsonrpc', 'id', 'method', 'params', 'result', 'error']);
/** Characters inside strings at which some programs end a line. As escapes they mean the same to every reader. */
const LINE_BREAK = /[\u0085\u2028\u2029]/;

export function frameOf(bytes: Buffer): Frame {
  // The last line of a stream may lack its newline; our next line must not be joined to it.
  const line = bytes.at(-1) === NEWLINE ? bytes : Buffer.concat([bytes, Buffer.from([NEWLINE])]);
  if (isBlank(line)) return { kind: 'blank', line };
  if (!isUtf8(line)) return unreadable(line, NOT_JSON, 'the line is not UTF-8');
  const returns = line.indexOf(RETURN);
  if (returns >= 0 && returns < line.length - 2) return unreadable(line, NOT_JSON, 'a carriage return inside the line');
  const text = line.toString('utf8');
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch {
    if (!/^[^\p{L}\p{N}]*[{[]/u.test(text)) return { kind: 'noise', line };
    return unreadable(line, NOT_JSON, 'the line is not one JSON value');
  }
  if (Array.isArray(message)) return { kind: 'batch', line };
  if (typeof message !== 'object' || message === null) return unreadable(line, NOT_A_MESSAGE, 'not a JSON-RPC object');
  const { depth, members } = surveyOf(line);
  if (depth > DEEPEST) return unreadable(line, NOT_A_MESSAGE, `nested more than ${DEEPEST} deep`);
  if (members !== countMembers(message)) return unreadable(line, NOT_A_MESSAGE, 'a name stands twice in one object');
  return placed(LINE_BREAK.test(text) ? escaped(text) : line, message as JsonObject);
}

function escaped(text: string): Buffer {
  const code = (each: string) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return Buffer.from(text.replace(new RegExp(LINE_BREAK, 'g'), code));
}

/** Determines which of the three it is. A frame that could be two of them is none. */
function placed(line: Buffer, message: JsonObject): Frame {
  for (const name in message) {
    if (!ENVELOPE.has(name) && ENVELOPE.has(folded(name))) {
      return unreadable(line, NOT_A_MESSAGE, `${JSON.stringify(name)} could be read as ${folded(name)}`);
    }
  }
  const envelope = envelopeOf(message);
  switch (envelope.kind) {
    case 'invalid':
      return unreadable(line, NOT_A_MESSAGE, envelope.reason);
    case 'response':
      if ((message.result ?? null) === null || (message.error ?? null) === null)
        return { kind: 'response', line, message };
      return unreadable(line, NOT_A_MESSAGE, 'an answer has a result or an error, not both');
    default:
      if (envelope.method === '') return unreadable(line, NOT_A_MESSAGE, 'method must be a text');
      return { kind: envelope.kind, line, message, method: envelope.method };
  }
}

/** The name as parsers fold it that ignore case. */
export function folded(name: string): string {
  return name.toUpperCase().toLowerCase();
}

function isBlank(line: Buffer): boolean {
  if (line.length > 64) return false;
  for (const byte of line) if (byte !== NEWLINE && byte !== RETURN && byte !== 0x20 && byte !== 0x09) return false;
  return true;
}

function countMembers(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  let count = 0;
  if (Array.isArray(value)) for (const each of value) count += countMembers(each);
  else {
    for (const name of Object.keys(value)) count += 1 + countMembers((value as Record<string, unknown>)[name]);
  }
  return count;
}

/** The id and the shape are read as far as possible, so that the sender, and the requester that waits, can be answered. */
export function unreadable(line: Buffer, code: Unreadable['code'], reason: string): Unreadable {
  let message: JsonObject | undefined;
  try {
    message = objectOf(JSON.parse(line.toString('utf8').replace(/^\ufeff/, '')));
  } catch {}
  const from = line.indexOf(0x7b);
  const ids = message ? membersOf(line, from).filter(({ name }) => name === 'id') : [];
  const only = ids.length === 1 ? ids[0] : undefined;
  const id = only && message?.id !== null && isId(message?.id) ? line.toString('utf8', only.start, only.end) : 'null';
  const answers = message !== undefined && message.method === undefined && ('result' in message || 'error' in message);
  return { kind: 'unreadable', line, code, reason, id, answers };
}

/** The id as raw text: `7`, `"7"`, `7.0` and `9007199254740993` are four ids. */
export function idOf({ line, message }: Request | Response): string {
  return rawMember(line, 'id') ?? JSON.stringify(message.id ?? null);
}

export function encode(message: JsonObject): Buffer {
  return Buffer.from(`${JSON.stringify(message)}\n`);
}

/** A response with the raw id. */
export function encodeResult(id: string, result: unknown): Buffer {
  return Buffer.from(`${resultText(id, result)}\n`);
}

export function encodeError(id: string, error: object): Buffer {
  return Buffer.from(`${errorText(id, error)}\n`);
}

export function paramsOf({ message }: Request | Notification): JsonObject {
  return objectOf(message.params) ?? {};
}
