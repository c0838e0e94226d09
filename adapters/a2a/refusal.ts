/**
 * What is said when a call comes to nothing, in the words of each binding. Anything unplanned is ours: the caller hears
 * that something went wrong, and its own message stays behind.
 */
import { LegacyA2AError } from '@a2a-js/sdk/compat/v0_3/server';
import { A2AError } from '@a2a-js/sdk/errors';
import { ERROR_DOMAIN, ERRORS, faults, type Reason } from '../../mappings/a2a.ts';
import { asFault, Fault, type JsonObject } from '../../src/index.ts';

/** A call refused for a reason the protocol, or this house, has a word for. */
export class Refusal extends Error {
  readonly reason: Reason;

  constructor(reason: Reason, message: string) {
    super(message);
    this.name = 'Refusal';
    this.reason = reason;
  }
}

export interface Said {
  readonly reason: Reason;
  readonly message: string;
  readonly rpc: number;
  readonly http: number;
  readonly grpc: string;
  readonly info: JsonObject;
  /** What our own log should hear of it. */
  readonly cause: unknown;
  readonly retryAfterMs: number | undefined;
}

export function said(thrown: unknown): Said {
  const { reason, message, cause, retryAfterMs } = reasonOf(thrown);
  const { rpc, http, grpc, domain } = ERRORS[reason];
  const info = { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason, domain };
  return { reason, message, rpc, http, grpc, info, cause, retryAfterMs };
}

function reasonOf(thrown: unknown): Pick<Said, 'reason' | 'message' | 'cause' | 'retryAfterMs'> {
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
  const { rpc, message, info } = said(thrown);
  return { code: rpc, message, data: [info] };
}

export function toRestError(thrown: unknown): JsonObject {
  const { http, grpc, message, info } = said(thrown);
  return { error: { code: http, status: grpc, message, details: [info] } };
}

/** For the SDK's 0.3 layer, which knows its own errors and says the code of any other. */
export function toLegacyError(thrown: unknown): Error {
  const { rpc, message, reason } = said(thrown);
  // With data the layer keeps the code as it is, instead of looking for one of its own.
  return new LegacyA2AError(rpc, message, { reason });
}

/** For gRPC: the SDK reads the status from the error, and knows its own errors by name. */
export function toGrpcError(thrown: unknown, statuses: Readonly<Record<string, unknown>>): Error {
  const { grpc, message, reason } = said(thrown);
  const error = new A2AError({ message });
  const name = ERRORS[reason].domain === ERROR_DOMAIN ? nameOf(reason) : error.name;
  return Object.assign(error, { name, transport: 'grpc', status: statuses[grpc], reason });
}

/** As the SDK calls its errors: `TASK_NOT_FOUND` is a `TaskNotFoundError`. One has a name of its own. */
function nameOf(reason: Reason): string {
  if (reason === 'INVALID_PARAMS') return 'RequestMalformedError';
  return `${reason.split('_').map(capital).join('')}Error`;
}

function capital(word: string): string {
  return `${word[0] ?? ''}${word.slice(1).toLowerCase()}`;
}

/** What is hidden is absent, whatever it is: one sentence for both. */
export function absentTask(id: string): Refusal {
  return new Refusal('TASK_NOT_FOUND', `task ${id} was not found`);
}

/** A fault that says the thing is not there, or is not yours to see. */
export function isAbsent(thrown: unknown): boolean {
  return thrown instanceof Fault && thrown.kind === 'not_found';
}
