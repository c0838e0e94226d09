/**
 * The supported revisions of the protocol, each as one value: its version, its operations, its schemas and the few rules in which
 * it differs. A request names one of them; routes read the revision's rules and never compare its version.
 */
import * as first from '../../../mappings/harn.ts';
import * as second from '../../../mappings/harn-2026-10-11.ts';
import { createRouter, type Router } from '../server/router.ts';
import { SCHEMAS } from './schemas.ts';
import { NEWER_SCHEMAS } from './schemas-2026-10-11.ts';

export type OperationId = first.OperationId | (typeof second.OPERATIONS)[number]['id'];
export type KnownOperation = first.Operation & { readonly id: OperationId };

type Mode = (typeof second.MODES)[number];

export interface Revision extends Router {
  readonly version: string;
  readonly operations: readonly KnownOperation[];
  readonly schemas: ReadonlyMap<string, object>;
  /** How an idempotency key is treated on an operation that takes none. */
  readonly strayKey: 'ignored' | 'refused';
  /** The status of a submission that found the task of an earlier one. */
  readonly repeatedTask: number;
  /** Whether `input` to a task that is not waiting for input steers it. */
  readonly inputSteers: boolean;
  /** The `kind` of a message that steers a running task. */
  readonly steering: 'interrupt' | 'input';
  /** Whether an answer to a question may ask to be remembered. */
  readonly remembersAnswers: boolean;
  /** Modes a session may be opened in, as tiers of ours; a revision without modes has no model policies either. */
  readonly modes: readonly Mode[];
  /** Members of a session that are shown beyond the model's. */
  readonly sessionMembers: readonly string[];
}

function revision(parts: Omit<Revision, keyof Router>): Revision {
  return { ...parts, ...createRouter(parts.operations) };
}

const FIRST = revision({
  version: first.PROTOCOL,
  operations: first.OPERATIONS,
  schemas: new Map(Object.entries(SCHEMAS)),
  strayKey: first.STRAY_KEY,
  repeatedTask: first.REPEATED_TASK,
  inputSteers: first.INPUT_STEERS,
  steering: first.STEERING,
  remembersAnswers: first.REMEMBERS_ANSWERS,
  modes: first.MODES,
  sessionMembers: first.SESSION_MEMBERS,
});

const KEYED: readonly string[] = second.KEYED;
const SECOND = revision({
  version: second.PROTOCOL,
  operations: [
    ...(first.OPERATIONS as readonly KnownOperation[]).map((operation) => ({
      ...operation,
      ...second.BODIES.find(({ id }) => id === operation.id),
      ...(KEYED.includes(operation.id) ? { key: true, repeated: second.REPEATED_TASK } : { key: false }),
    })),
    ...second.OPERATIONS,
  ],
  schemas: new Map(Object.entries({ ...SCHEMAS, ...NEWER_SCHEMAS })),
  strayKey: second.STRAY_KEY,
  repeatedTask: second.REPEATED_TASK,
  inputSteers: second.INPUT_STEERS,
  steering: second.STEERING,
  remembersAnswers: second.REMEMBERS_ANSWERS,
  modes: second.MODES,
  sessionMembers: second.SESSION_MEMBERS,
});

/** Oldest first. */
export const REVISIONS: readonly Revision[] = [FIRST, SECOND];

/** Newest first, as they are published. */
export const VERSIONS: readonly string[] = REVISIONS.map(({ version }) => version).toReversed();

/**
 * For the public operations, which need no version: a client that names none was written when there was only this one. All other
 * operations are refused without a version.
 */
export const DEFAULT: Revision = FIRST;

/** Matched exactly: a version is a name, not a range. */
export function revisionNamed(version: string | undefined): Revision | undefined {
  return REVISIONS.find((each) => each.version === version);
}

/** The newest version both sides support. */
export function newestCommon(versions: readonly unknown[]): string | undefined {
  return VERSIONS.find((version) => versions.includes(version));
}
