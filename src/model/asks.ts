/** Questions put to people. They outlive the process that raised them and are answered once. */

import type { ActionKind, Claims, FileChange } from './actions.ts';
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

/** `open` is the only state an answer can land in. */
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
  /** What is asked, for people. */
  question: Type.String(),
  /** For approvals: the act as it would run, redacted. For input: what kind of value is wanted. */
  action: OpenObject,
  schema: Nullable(OpenObject),
  /** Binds an approval to actor, tool, definition, target and arguments. Keyed, so that it gives no secret away. */
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

/** In `metadata.shown` of a question whose act the log holds only in part: something in it is redacted, or too long to stand there. */
export const IN_PART = 'in_part';

/** An act exactly as it will run, for those who may answer the question about it. Never in an event, a list or a receipt. */
export interface PendingAct {
  readonly kind: ActionKind;
  /** Who proposes it, and through which door. */
  readonly actor: string;
  readonly door?: string;
  readonly tool?: string;
  readonly server?: string;
  readonly target?: string;
  readonly cwd?: string;
  readonly effect: Effect;
  readonly evidence: Evidence;
  readonly arguments: JsonObject;
  /** What the agent says of it, in its own words. */
  readonly claims?: Claims;
  /** Files it would write. */
  readonly changes?: readonly FileChange[];
}

export type Answer =
  | {
      readonly kind: 'approved';
      readonly by: string;
      readonly ask_id?: string;
      readonly reason?: string;
      /** Set when a rule rewrote the arguments; only an asker that said it can take them gets any. */
      readonly arguments?: JsonObject;
    }
  | { readonly kind: 'denied'; readonly by: string; readonly ask_id?: string; readonly reason: string }
  | { readonly kind: 'value'; readonly by: string; readonly ask_id?: string; readonly value: unknown }
  | { readonly kind: 'expired' | 'canceled'; readonly ask_id?: string; readonly reason: string };
