/**
 * A line, and what it is: asked, told, answered, or none of these. Parsed once, for looking; the bytes are what travels.
 * Ids are kept as they were written, because a number that was parsed may be another number.
 */
import type { JsonObject } from '../../../src/index.ts';
import { objectOf } from '../shapes.ts';
import { rawMember } from './members.ts';

export type Frame =
  | { readonly kind: 'request'; readonly line: Buffer; readonly message: JsonObject; readonly method: string }
  | { readonly kind: 'notification'; readonly line: Buffer; readonly message: JsonObject; readonly method: string }
  | { readonly kind: 'response'; readonly line: Buffer; readonly message: JsonObject }
  | { readonly kind: 'batch'; readonly line: Buffer; readonly messages: readonly unknown[] }
  /** Blank, not JSON, or not of the protocol: whoever it is for may make something of it. */
  | { readonly kind: 'noise'; readonly line: Buffer };
export type Request = Extract<Frame, { kind: 'request' }>;
export type Notification = Extract<Frame, { kind: 'notification' }>;
export type Response = Extract<Frame, { kind: 'response' }>;

export function frameOf(line: Buffer): Frame {
  let message: unknown;
  try {
    message = JSON.parse(line.toString('utf8'));
  } catch {
    return { kind: 'noise', line };
  }
  if (Array.isArray(message)) return { kind: 'batch', line, messages: message };
  if (typeof message !== 'object' || message === null) return { kind: 'noise', line };
  const { method, id } = message as { method?: unknown; id?: unknown };
  const known = message as JsonObject;
  if (typeof method === 'string') {
    return { kind: id === undefined ? 'notification' : 'request', line, message: known, method };
  }
  return id !== undefined && ('result' in message || 'error' in message)
    ? { kind: 'response', line, message: known }
    : { kind: 'noise', line };
}

/** The id as it stands in the line: `7`, `"7"`, `7.0` and `9007199254740993` are four of them. */
export function idOf({ line, message }: Request | Response): string {
  return rawMember(line, 'id') ?? JSON.stringify(message.id ?? null);
}

/** Ids that are one and the same to whoever parses them; those a parser would confuse stay apart. */
export function sameId(raw: string): string {
  if (raw.startsWith('"')) return JSON.stringify(JSON.parse(raw));
  const number = Number(raw);
  return Number.isSafeInteger(number) ? String(number) : raw;
}

export function encode(message: JsonObject): Buffer {
  return Buffer.from(`${JSON.stringify(message)}\n`);
}

/** An answer under an id exactly as it was written. */
export function encodeResult(id: string, result: unknown): Buffer {
  return Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":${JSON.stringify(result)}}\n`);
}

export function encodeError(id: string, error: object): Buffer {
  return Buffer.from(`{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify(error)}}\n`);
}

export function paramsOf({ message }: Request | Notification): JsonObject {
  return objectOf(message.params) ?? {};
}
