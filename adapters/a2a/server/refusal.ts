/**
 * Errors of a failed call, in the words of each binding. An unplanned error is ours: the caller learns that something went
 * wrong, and the error's own message is not sent.
 */
import { LegacyA2AError } from '@a2a-js/sdk/compat/v0_3/server';
import { A2AError } from '@a2a-js/sdk/errors';
import { ERROR_DOMAIN, ERRORS, faults, type Reason } from '../../../mappings/a2a.ts';
import { asFault, Fault, type JsonObject } from '../../../src/index.ts';

/** A call refused for a reason that the protocol, or this gateway, defines. */
export class Refusal extends Error {
  readonly reason: Reason;

  constructor(reason: Reason, message: string) {
    super(message);
    this.name = 'Refusal';
    this.reason = reason;
  }
}

export interface ErrorReply {
  readonly reason: Reason;
  readonly message: string;
  readonly rpc: number;
  readonly http: number;
  readonly grpc: string;
  readonly info: JsonObject;
  /** The error for our own log. */
  readonly cause: unknown;
  readonly retryAfterMs: number | undefined;
}

export function toErrorReply(thrown: unknown): ErrorReply {
  const { reason, message, cause, retryAfterMs } = reasonOf(thrown);
  const { rpc, http, grpc, domain } = ERRORS[reason];
  const info = { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason, domain };
  return { reason, message, rpc, http, grpc, info, cause, retryAfterMs };
}

function reasonOf(thrown: unknown): Pick<ErrorReply, 'reason' | 'message' | 'cause' | 'retryAfterMs'> {
  const plain = { cause: undefined, retryAfterMs: undefined };
  if (thrown instanceof Refusal) return { ...plain, reason: thrown.reason, message: thrown.message };
  if (thrown instanceof A2AError) {
    const { reason, message } = thrown;
    if (Object.hasOwn(ERRORS, reason)) return { ...plain, reason: reason as Reason, message };
  }
  const fault = asFault(thrown);
  const wait = fault.details?.retry_after_ms;
  return {
    reason: faults[fault.kind],
    message: fault.message,
    cause: fault.kind === 'internal' ? (fault.cause ?? fault) : undefined,
    retryAfterMs: typeof wait === 'number' ? wait : undefined,
  };
}

export function toRpcError(thrown: unknown): JsonObject {
  const { rpc, message, info } = toErrorReply(thrown);
  return { code: rpc, message, data: [info] };
}

export function toRestError(thrown: unknown): JsonObject {
  const { http, grpc, message, info } = toErrorReply(thrown);
  return { error: { code: http, status: grpc, message, details: [info] } };
}

/** For the SDK's 0.3 layer, which knows its own errors and sends the code of any other. */
export function toLegacyError(thrown: unknown): Error {
  const { rpc, message, reason } = toErrorReply(thrown);
  // With data the layer keeps the code, instead of choosing one of its own.
  return new LegacyA2AError(rpc, message, { reason });
}

/** For gRPC: the SDK reads the status from the error, and recognises its own errors by name. */
export function toGrpcError(thrown: unknown, statuses: Readonly<Record<string, unknown>>): Error {
  const { grpc, message, reason } = toErrorReply(thrown);
  const error = new A2AError({ message });
  const name = ERRORS[reason].domain === ERROR_DOMAIN ? nameOf(reason) : error.name;
  return Object.assign(error, { name, transport: 'grpc', status: statuses[grpc], reason });
}

/** The SDK's error name: `TASK_NOT_FOUND` is a `TaskNotFoundError`. One reason has an irregular name. */
function nameOf(reason: Reason): string {
  if (reason === 'INVALID_PARAMS') return 'RequestMalformedError';
  return `${reason.split('_').map(capital).join('')}Error`;
}

function capital(word: string): string {
  return `${word[0] ?? ''}${word.slice(1).toLowerCase()}`;
}

/** An agent that is not here, and one that the caller may not call: both get this, in the same bytes whatever was asked. */
export const ABSENT_AGENT = new Refusal('METHOD_NOT_FOUND', 'there is no agent at this address');

/** Hidden and absent tasks get the same message. */
export function absentTask(id: string): Refusal {
  return new Refusal('TASK_NOT_FOUND', `task ${id} was not found`);
}

/** A fault for an absent or hidden object. */
export function isAbsent(thrown: unknown): boolean {
  return thrown instanceof Fault && thrown.kind === 'not_found';
}
