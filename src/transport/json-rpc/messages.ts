/**
 * The envelope of a JSON-RPC message: which kind it is, its id, its error. Messages are classified and never rebuilt, so members
 * that nobody knows stay where they are. Knows no protocol's methods.
 */

import type { Json, JsonObject } from '../../model/schema.ts';
import { isObject } from '../../model/values/is-object.ts';

export type RequestId = string | number | null;

export type WireError = {
  readonly code: number;
  readonly message: string;
  readonly data?: Json;
};

/** An error of a peer as received, or one that is sent as it is. */
export class RpcError extends Error {
  readonly code: number;
  readonly data: Json | undefined;

  constructor({ code, message, data }: WireError) {
    super(message);
    this.name = 'RpcError';
    this.code = code;
    this.data = data;
  }

  toWire(): WireError {
    const { code, message, data } = this;
    return { code, message, ...(data !== undefined && { data }) };
  }
}

export const NOT_JSON = -32700;
export const NOT_A_MESSAGE = -32600;

export type Envelope =
  | { readonly kind: 'request'; readonly method: string; readonly id: RequestId }
  | { readonly kind: 'notification'; readonly method: string }
  | { readonly kind: 'response'; readonly id: RequestId }
  | { readonly kind: 'invalid'; readonly reason: string };

const NO_METHOD: Envelope = { kind: 'invalid', reason: 'method must be a text' };
const BOTH: Envelope = { kind: 'invalid', reason: 'a call has no result and no error' };
const NEITHER: Envelope = { kind: 'invalid', reason: 'neither a request nor an answer' };
const NO_ID: Envelope = { kind: 'invalid', reason: 'an id is a string, a number or null' };

/** Which kind of message it is. A message that could be two of them is none. */
export function envelopeOf(message: JsonObject): Envelope {
  const { method, id } = message;
  const answers = 'result' in message || 'error' in message;
  if (method === undefined) {
    if (!answers || id === undefined) return NEITHER;
    return isId(id) ? { kind: 'response', id } : NO_ID;
  }
  if (typeof method !== 'string') return NO_METHOD;
  if (answers) return BOTH;
  if (id === undefined) return { kind: 'notification', method };
  return isId(id) ? { kind: 'request', method, id } : NO_ID;
}

export function isId(value: unknown): value is RequestId {
  return value === null || typeof value === 'string' || typeof value === 'number';
}

/** The ids of protocols that refuse null and fractions. */
export function isStrictId(value: unknown): value is string | number {
  return typeof value === 'string' || Number.isInteger(value);
}

/** An error of a peer with the members it must have; wrong ones are replaced. */
export function soundError(error: unknown): WireError {
  const { code, message, data } = isObject(error) ? error : {};
  return {
    code: typeof code === 'number' ? code : -32603,
    message: typeof message === 'string' ? message : 'an error without words',
    ...(data !== undefined && { data }),
  };
}

/** The text of a response. `rawId` is JSON text, as the request spelled it. */
export function resultText(rawId: string, result: unknown): string {
  return `{"jsonrpc":"2.0","id":${rawId},"result":${JSON.stringify(result ?? null)}}`;
}

export function errorText(rawId: string, error: object): string {
  return `{"jsonrpc":"2.0","id":${rawId},"error":${JSON.stringify(error)}}`;
}
