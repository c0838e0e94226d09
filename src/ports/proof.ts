/** Receipts and the hashes that hold them together. */
import type { CoreEvent, EventDraft } from '../model/events.ts';
import type { AlarmPayload } from '../model/payloads.ts';
import type { Receipt, ReceiptDelta, ReplayMaterial } from '../model/receipt.ts';
import type { Task } from '../model/resources.ts';
import type { Json } from '../model/schema.ts';

/** fold → build → canonicalise → hash → chain → sign. The last three happen inside the commit. */
export interface ReceiptIssuer {
  /** `sha256:<hex>` of the canonical form of a value. */
  hash(value: Json): string;
  account(): Account;
}

/** A running account of one task: events go in as they are committed, a receipt comes out at the end. */
export interface Account {
  /** Sequence of the last event taken in. */
  readonly sequence: number;
  /** Takes the next event; one that is not next is ignored and left to a later catch-up. */
  add(event: CoreEvent): void;
  /** Calls that were requested and have no end yet; `cleared` ones may have happened. */
  open(): readonly { readonly tool_call_id: string; readonly name: string; readonly cleared: boolean }[];
  /**
   * Why this call should not have run. Undefined when it was let through, and when no decision was ever made on it or on
   * the same act under another id. `told`: what it did, where the call itself is only about to be written down.
   */
  refusal(callId: string, told?: ReportedAct): Refusal | undefined;
  seal(claim: ReceiptClaim, head: ChainHead): SealedReceipt;
}

export interface ReportedAct {
  readonly tool: string;
  readonly input: Json;
}

export type Refusal = Pick<
  AlarmPayload,
  'name' | 'state' | 'refused_call_id' | 'evidence' | 'rule_id' | 'ask_id' | 'engine' | 'code'
>;

/** What the account cannot know from the events alone. */
export interface ReceiptClaim {
  readonly receipt_id: string;
  /** As much of the task as a receipt repeats. What it was given and what it is marked with stays in the log. */
  readonly task: Pick<
    Task,
    | 'id'
    | 'session_id'
    | 'workspace_id'
    | 'created_at'
    | 'started_at'
    | 'branch_id'
    | 'persona_id'
    | 'parent_task_id'
    | 'failure'
  >;
  readonly final_state: 'SUCCEEDED' | 'FAILED' | 'CANCELED';
  readonly times: {
    readonly created_at: string;
    readonly started_at: string;
    readonly completed_at: string;
    readonly issued_at: string;
  };
  readonly tenant_id?: string;
  readonly tiers: { readonly start: string; readonly end: string };
  readonly budget_limit?: NonNullable<Receipt['autonomy_budget']['limit']>;
  readonly not_reported?: readonly string[];
  readonly still_running?: boolean;
  readonly interrupted?: boolean;
  /** Events of the same commit, which have no sequence yet. */
  readonly last: readonly EventDraft[];
  readonly replay?: ReplayClaim;
}

export interface ReplayClaim {
  readonly source_task_id: string;
  readonly mode: string;
  /** Hash of the canonical source log. */
  readonly source_hash: string;
  readonly deltas: readonly ReceiptDelta[];
  readonly materials: readonly ReplayMaterial[];
  readonly unavailable?: string;
  /** Someone asked for things as they are now; what was recorded then is no longer all there is to it. */
  readonly refreshed?: boolean;
}

/** Where the next receipt of a chain goes, and the compact form of the Merkle tree over all receipts. */
export interface ChainHead {
  readonly previous: string | null;
  readonly index: number;
  readonly tree: { readonly size: number; readonly frontier: readonly string[] };
}

export interface SealedReceipt {
  readonly id: string;
  readonly hash: string;
  readonly task_id: string;
  readonly receipt: Receipt;
  /** The tree after this receipt, and the nodes it completed. */
  readonly tree: ChainHead['tree'];
  readonly nodes: readonly TreeNode[];
}

export interface TreeNode {
  readonly level: number;
  readonly index: number;
  readonly hash: string;
}
