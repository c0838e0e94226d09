/** Questions to people (approvals and inputs). They outlive the process that opened them and are answered once. */

import type { Action, ActionKind, Claims, FileChange } from './actions.ts';
import type { PermissionRule, Task } from './resources.ts';
import {
  ClosedWord,
  Id,
  type JsonObject,
  JsonValue,
  MaybeText,
  MaybeTime,
  NonEmpty,
  Nullable,
  OpenObject,
  Timestamp,
} from './schema.ts';
import { type Static, Type } from './type.ts';
import type { Effect, Evidence } from './words.ts';

export const ASK_KINDS = ['approval', 'input'] as const;
export type AskKind = (typeof ASK_KINDS)[number];

/** Only an `open` question accepts an answer. */
export const ASK_STATES = ['open', 'approved', 'denied', 'answered', 'expired', 'canceled'] as const;
export type AskState = (typeof ASK_STATES)[number];

/** Kept as a projection beside the sixteen resources; the native door shows it as a permission request. */
export const AskRecord = Type.Object({
  id: Id,
  object: Type.Literal('ask'),
  created_at: Timestamp,
  updated_at: Timestamp,
  metadata: OpenObject,
  kind: ClosedWord(ASK_KINDS),
  state: ClosedWord(ASK_STATES),
  workspace_id: Id,
  session_id: Id,
  task_id: Id,
  tool_call_id: Nullable(NonEmpty),
  /** The question, for people. */
  question: Type.String(),
  /** For approvals: the act as it would run, redacted. For input: the kind of value wanted. */
  action: OpenObject,
  schema: Nullable(OpenObject),
  /** Binds an approval to actor, tool, definition, target and arguments. Keyed, so that it reveals no secret. */
  digest: NonEmpty,
  rule_id: MaybeText,
  reason: MaybeText,
  /** Actor ids or scope words that may answer; empty means anyone with the scope. */
  to: Type.Array(Type.String()),
  expires_at: Timestamp,
  answered_by: MaybeText,
  answered_at: MaybeTime,
  answer: JsonValue,
  /** Set when the approval was spent. */
  used_at: MaybeTime,
});
export type AskRecord = Static<typeof AskRecord>;

/** In `metadata.shown` of a question whose act is only partly in the log: a part is redacted, or too long for an event. */
export const IN_PART = 'in_part';

/** An act exactly as it will run, for actors who may answer the question about it. Never in an event, a list or a receipt. */
export type PendingAct = {
  readonly kind: ActionKind;
  /** The proposer's actor id, and the door it came through. */
  readonly actor: string;
  readonly door?: string;
  readonly tool?: string;
  readonly server?: string;
  readonly target?: string;
  readonly cwd?: string;
  readonly effect: Effect;
  readonly evidence: Evidence;
  readonly arguments: JsonObject;
  /** The agent's claims about the act, in its own words. */
  readonly claims?: Claims;
  /** Files it would write. */
  readonly changes?: readonly FileChange[];
  /** Needed to decide on the act again with other arguments. Never shown. */
  readonly again?: Again;
};

/** The inputs of the decision that the approver is not shown, or the reason why the act cannot run with other arguments. */
export type Again = { readonly fixed: string } | Changeable;

export interface Changeable
  extends Pick<Action, 'actor' | 'effect' | 'definition' | 'tool_call_id' | 'attributes' | 'cost'> {
  /** A mounted tool: its definition gives its effect, and its schema its arguments. */
  readonly mounted: boolean;
  readonly schema?: JsonObject;
}

/** The `answer` of a question that was approved with other arguments than it asked about. */
export type ChangedArguments = {
  /** As the log may show them, redacted. */
  readonly arguments: JsonObject;
  /** Keyed digest of the arguments that run: exactly these. */
  readonly arguments_digest: string;
  /** Hashes of the arguments asked about and of those that run, both as the log shows them. */
  readonly asked_hash: string;
  readonly arguments_hash: string;
  /** The rule that decided on them, and the approvers it names. */
  readonly rule_id?: string;
  readonly to: readonly string[];
};

export function isChanged(answer: unknown): answer is ChangedArguments {
  return typeof (answer as ChangedArguments | null)?.arguments_digest === 'string';
}

export type Answer =
  | {
      readonly kind: 'approved';
      readonly by: string;
      readonly ask_id?: string;
      readonly reason?: string;
      /** Set when a rule or the approver rewrote the arguments; only for askers that declared they accept rewritten arguments. */
      readonly arguments?: JsonObject;
      /** Approved with other arguments than the ones asked about. */
      readonly changed?: ChangedArguments;
    }
  | {
      readonly kind: 'denied';
      readonly by: string;
      readonly ask_id?: string;
      /** The rule that refused it, where no person was asked. */
      readonly rule_id?: string;
      readonly reason: string;
    }
  | { readonly kind: 'value'; readonly by: string; readonly ask_id?: string; readonly value: unknown }
  | { readonly kind: 'expired' | 'canceled'; readonly ask_id?: string; readonly reason: string };

/**
 * What an approval for longer than once covers: the tool, server and definition that were asked about, the same caller, and, for the
 * work of an agent, the same principal. Nothing in it is a pattern.
 */
type Covered = NonNullable<PermissionRule['covers']>;

export function coveredAct(
  { kind, tool, server, definition }: Pick<Action, 'kind' | 'tool' | 'server' | 'definition'>,
  actor: string,
  task: Pick<Task, 'created_by' | 'metadata'> | undefined,
): Covered {
  return {
    kind,
    tool: tool ?? null,
    server: server ?? null,
    definition: definition ?? null,
    actor,
    principal: (task && principalOf(task)) ?? actor,
  };
}

/** An agent that gave work on acts for the principal of its own work. */
function principalOf({ created_by, metadata }: Pick<Task, 'created_by' | 'metadata'>): string | undefined {
  const { on_behalf_of: principal = created_by } = (metadata.tollbridge ?? {}) as { on_behalf_of?: string };
  return principal ?? undefined;
}

/** Two acts have the same key when a grant for one of them covers the other. */
export function coverKey({ kind, tool, server, definition, actor, principal }: Covered): string {
  return JSON.stringify([kind, tool, server, definition, actor, principal]);
}
