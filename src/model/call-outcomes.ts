/**
 * The outcome of a call, in the five words that events, receipts and the command line share. A word never claims more than is
 * known: a call that was allowed and has no recorded end is `unknown`, neither failed nor canceled.
 */
import { own } from './values/own.ts';

/**
 * `succeeded`, `failed`: observed or reported to end so. `refused`: not allowed, it never ran. `canceled`: stopped, or withdrawn
 * before it began. `unknown`: allowed, and its end was not observed; it may have run.
 */
export const CALL_OUTCOMES = ['succeeded', 'failed', 'refused', 'canceled', 'unknown'] as const;
export type CallOutcome = (typeof CALL_OUTCOMES)[number];

/** The call was allowed, and its end was not observed. */
export const OUTCOME_UNKNOWN = 'outcome_unknown';

/** Machine words in `code` that decide the outcome regardless of the other members. Every other code is a kind of failure. */
const BY_CODE: Readonly<Record<string, CallOutcome>> = {
  canceled: 'canceled',
  client_closed: 'canceled',
  approval_withdrawn: 'canceled',
  [OUTCOME_UNKNOWN]: 'unknown',
  deadline_exceeded: 'unknown',
  called_off: 'refused',
  not_decided: 'refused',
  permission_denied: 'refused',
  lasting_grant_only: 'refused',
};

/** The end of a call as an event records it. */
export interface ReportedEnd {
  readonly status?: unknown;
  readonly code?: unknown;
}

/** Of `tool.completed`, `tool.failed` or `tool.denied`. Only a completed call whose status is no error has succeeded. */
export function outcomeOfEnd(event: string, { status, code }: ReportedEnd): CallOutcome {
  const decided = typeof code === 'string' ? own(BY_CODE, code) : undefined;
  if (event === 'tool.denied') return decided === 'canceled' ? 'canceled' : 'refused';
  if (decided) return decided;
  return event === 'tool.completed' && status !== 'error' ? 'succeeded' : 'failed';
}
