/** Exit codes, for scripts. `docs/commands.md` has the same table; a test compares the two. */
import type { FaultKind } from '../../model/faults.ts';

export const EXIT = {
  /** The command succeeded. */
  done: 0,
  /** The command worked and its answer is no: a broken receipt, a failed case, trouble found. */
  no: 1,
  /** Options, configuration, rules or cases that cannot be understood. */
  usageError: 2,
  /** No such task, question, key, file or log. */
  absent: 3,
  /** Too late, too early, or locked by another process. */
  conflict: 4,
  /** Not permitted, or not authenticated. */
  forbidden: 5,
  /** A directory, a file or a port that cannot be used. */
  unusable: 6,
  /** Another program could not be started or reached. */
  unreachable: 7,
  /** An internal error. */
  broken: 70,
  /** Stopped with Ctrl-C before it was done. */
  interrupted: 130,
} as const;

const BY_FAULT: Readonly<Record<FaultKind, number>> = {
  invalid_request: EXIT.usageError,
  unsupported_version: EXIT.usageError,
  payload_too_large: EXIT.usageError,
  not_implemented: EXIT.usageError,
  not_found: EXIT.absent,
  cursor_expired: EXIT.absent,
  conflict: EXIT.conflict,
  invalid_state_transition: EXIT.conflict,
  idempotency_key_reused: EXIT.conflict,
  locked: EXIT.conflict,
  unauthenticated: EXIT.forbidden,
  permission_denied: EXIT.forbidden,
  policy_violation: EXIT.forbidden,
  rate_limited: EXIT.forbidden,
  unavailable: EXIT.unusable,
  upstream_unavailable: EXIT.unreachable,
  deadline_exceeded: EXIT.unreachable,
  client_closed: EXIT.interrupted,
  internal: EXIT.broken,
};

export function exitCodeOf(kind: FaultKind): number {
  return BY_FAULT[kind];
}
