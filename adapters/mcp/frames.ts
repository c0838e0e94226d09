/** JSON-RPC as this protocol uses it: the types of frames, and errors that are forwarded unchanged. Frames are not normalized. */
import type { RequestId } from '@modelcontextprotocol/server';
import { CODES, faults } from '../../mappings/mcp.ts';
import { asFault, isObject, type Json, type JsonObject } from '../../src/index.ts';
import { parseJsonText } from '../../src/transport/http/body.ts';
import { isStrictId, RpcError, type WireError } from '../../src/transport/json-rpc/messages.ts';

export type Id = RequestId;
export type Request = {
  readonly jsonrpc: '2.0';
  readonly id: Id;
  readonly method: string;
  readonly params?: JsonObject;
};
export type Notice = {
  readonly jsonrpc: '2.0';
  readonly method: string;
  readonly params?: JsonObject;
};
/** The outcome of a request. Errors are answers too: they are returned, not thrown. */
export type FrameOutcome = { readonly result: JsonObject } | { readonly error: WireError };
export type Response = { readonly jsonrpc: '2.0'; readonly id: Id | null } & FrameOutcome;
export type Frame = Request | Notice | Response;

/** Undefined for anything that is not exactly a frame. */
export function readFrame(value: unknown): Frame | undefined {
  if (!isObject(value) || value.jsonrpc !== '2.0') return undefined;
  const { id, method, params } = value;
  if (typeof method === 'string') {
    if (params !== undefined && !isObject(params)) return undefined;
    if (id === undefined) return value as Notice;
    return isStrictId(id) ? (value as Request) : undefined;
  }
  const answered = isObject(value.result) || isError(value.error);
  return answered && (isStrictId(id) || id === null) ? (value as Response) : undefined;
}

/** Deeper than any answer we know of, and no deeper than our JSON writer can go. */
const ANSWER_BOUNDS = { depth: 256, values: 5_000_000 };

/** Reads a server's text as a frame, or as a batch of frames, which one revision has. Empty for anything else. */
export function framesIn(text: string): readonly Frame[] {
  let value: unknown;
  try {
    value = parseJsonText(text, ANSWER_BOUNDS);
  } catch {
    return [];
  }
  if (Array.isArray(value)) return value.flatMap((each) => readFrame(each) ?? []);
  const frame = readFrame(value);
  return frame ? [frame] : [];
}

function isError(value: unknown): value is WireError & JsonObject {
  return isObject(value) && typeof value.code === 'number' && typeof value.message === 'string';
}

export function isRequest(frame: Frame): frame is Request {
  return 'method' in frame && 'id' in frame;
}
export function isNotice(frame: Frame): frame is Notice {
  return 'method' in frame && !('id' in frame);
}
export function isResponse(frame: Frame): frame is Response {
  return !('method' in frame);
}

export function notice(method: string, params?: JsonObject): Notice {
  return { jsonrpc: '2.0', method, ...(params && { params }) };
}

/** Members are written out, because every answer passes here and a spread costs more than the rest of the function. */
export function answerTo(id: Id, outcome: FrameOutcome): Response {
  return 'error' in outcome
    ? { jsonrpc: '2.0', id, error: outcome.error }
    : { jsonrpc: '2.0', id, result: outcome.result };
}

export function failed(code: number, message: string, data?: Json): { readonly error: WireError } {
  return { error: { code, message, ...(data !== undefined && { data }) } };
}

/** A fault as a JSON-RPC error. Internal failures say no more than that they are internal. */
export function outcomeOf(thrown: unknown): { readonly error: WireError } {
  if (thrown instanceof RpcError) return { error: thrown.toWire() };
  const { kind, message } = asFault(thrown);
  return failed(faults[kind] ?? CODES.internal, message, { code: kind });
}

export function metaOf(params: JsonObject | undefined): JsonObject {
  return isObject(params?._meta) ? params._meta : {};
}
