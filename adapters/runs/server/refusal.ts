/** A refusal in this API's form: one reason code, and the status and error name that belong to it. */
import { FAULTS, type ReasonCode, reasonRow } from '../../../mappings/runs.ts';
import { asFault, Fault, type FaultKind } from '../../../src/index.ts';

export class RunsRefusal extends Error {
  readonly code: ReasonCode;

  constructor(code: ReasonCode, message: string = code, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'RunsRefusal';
    this.code = code;
  }
}

/** More specific reason codes for faults of one operation. */
export type Closer = Partial<Readonly<Record<FaultKind, ReasonCode>>>;

export function refusalOf(thrown: unknown, closer: Closer = {}): RunsRefusal {
  if (thrown instanceof RunsRefusal) return thrown;
  const fault = asFault(thrown);
  return new RunsRefusal(closer[fault.kind] ?? FAULTS[fault.kind], fault.message, thrown);
}

/** Runs it; faults are rethrown as refusals with the more specific code. */
export async function refusing<T>(closer: Closer, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    throw refusalOf(thrown, closer);
  }
}

export function isFault(thrown: unknown, kind: FaultKind): boolean {
  return thrown instanceof Fault && thrown.kind === kind;
}

export interface WireRefusal {
  readonly status: number;
  readonly body: { readonly error: string; readonly reason_code: ReasonCode; readonly request_id: string };
}

/** Without the message: the envelope has no member for it, and clients branch on the code. */
export function toWireRefusal({ code }: RunsRefusal, requestId: string): WireRefusal {
  const { status, error } = reasonRow(code);
  return { status, body: { error, reason_code: code, request_id: requestId } };
}
