/** The metadata that makes a task a run: written under `metadata.runs`, and read from there alone. */
import { isObject, type JsonObject, type Task } from '../../../src/index.ts';

/** The failure of a run that an approver rejected. */
export const REJECTED = 'rejected_by_signal';
/** The failure of a run whose worker was silent for too long. */
export const LOST = 'heartbeat_lost';

/** The failure of a run that took longer than its class allows. */
export const CLASS_LIMIT = 'run_class_limit_exceeded';
/** The failure of a run whose question was not answered in time. */
export const UNANSWERED = 'signal_timed_out';

export type RunMetadata = {
  /** Absent on the first attempt: then the task itself names the run. */
  readonly run_id?: string;
  /** Of the request that made this attempt. */
  readonly request_id: string;
  /** Names the idempotency key without giving it away. */
  readonly key: string;
  /** Keyed digest of the whole request, so that another body under the same key is noticed. */
  readonly request: string;
  readonly attempt: number;
  readonly run_class: string;
  readonly workspace_id: string | null;
  readonly subject_id: string | null;
  readonly metadata?: JsonObject;
  readonly routing_hint?: string;
  readonly streaming?: boolean;
  readonly retention_hint_days?: JsonObject;
};

/** `task_01J…` is `run_01J…`: one run for the first task, and for every retry of it. */
export function runIdOf(taskId: string): string {
  return `run_${taskId.replace(/^task_/, '')}`;
}

/** The first task of a run; undefined when this is no name for a run. */
export function firstTaskOf(runId: string): string | undefined {
  const rest = /^run_([A-Za-z0-9_.-]{1,190})$/.exec(runId)?.[1];
  return rest === undefined ? undefined : `task_${rest}`;
}

export function runMetadataOf({ metadata }: Pick<Task, 'metadata'>): RunMetadata | undefined {
  const { runs } = metadata as JsonObject;
  const whole = isObject(runs) && typeof runs.request_id === 'string' && typeof runs.attempt === 'number';
  return whole ? (runs as RunMetadata) : undefined;
}
