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
  /** The root a receipt commits to when these are the events of its task, in log order. */
  logRoot(events: readonly CoreEvent[]): string;
  account(): Account;
  /** The issuer and the key it seals with, now or at a past moment: the identity by which other gateways know this one. */
  sealer?(at?: string): { readonly issuer: string; readonly key_id: string };
  /** `sha256:<hex>` of an event's canonical form; undefined when it has none. */
  eventHash?(event: CoreEvent): string | undefined;
}

/**
 * A gateway's reference to itself for the gateway it gives work to: its task, and an event of that task that is already in its log.
 * Its own receipt is sealed after the other's, so the other can only name this event.
 */
export type CallerReference = {
  readonly task_id: string;
  readonly issuer?: string;
  readonly key_id?: string;
  readonly protocol?: string;
  readonly event_id?: string;
  readonly event_hash?: string;
  /** The call it is about, when a single call was forwarded and not a task. */
  readonly tool_call_id?: string;
  /** The gateways the work came through, oldest first, each as `<key id>/<agent or server>`. */
  readonly hops: readonly string[];
};

/** A running account of one task: it takes events as they are committed and produces the receipt at the end. */
export interface Account {
  /** Sequence of the last event taken in. */
  readonly sequence: number;
  /** Takes the next event; an event out of sequence is ignored and left to a later catch-up. */
  add(event: CoreEvent): void;
  /** Calls that were requested and have not ended; `cleared` ones may have run. */
  open(): readonly { readonly tool_call_id: string; readonly name: string; readonly cleared: boolean }[];
  /**
   * Why this call should not have run. Undefined when it was allowed, and when no decision was made on it or on the same act under
   * another id. `reason`: the reported act, where the call is only about to be recorded.
   */
  refusal(callId: string, reported?: ReportedAct): RefusedCall | undefined;
  /** `written`: the events of the commit that ends the task, as stored; the receipt commits to them too. */
  seal(claim: ReceiptClaim, head: ChainHead, written?: readonly CoreEvent[]): SealedReceipt;
}

export interface ReportedAct {
  readonly tool: string;
  readonly input: Json;
}

export type RefusedCall = Pick<
  AlarmPayload,
  'name' | 'state' | 'refused_call_id' | 'evidence' | 'rule_id' | 'ask_id' | 'engine' | 'code'
>;

/** The facts of a receipt that the account cannot derive from events alone. */
export interface ReceiptClaim {
  readonly receipt_id: string;
  /** The members of the task that a receipt repeats. Its input and metadata stay in the log. */
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
  /** Limits that applied and that have no member in the budget. */
  readonly limits?: Readonly<Record<string, number>>;
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
  /** The root over the source task's own events, as in its receipt. */
  readonly source_hash: string;
  readonly deltas: readonly ReceiptDelta[];
  readonly materials: readonly ReplayMaterial[];
  readonly unavailable?: string;
  /** The replay used current values at a client's request, so the record alone does not reproduce it. */
  readonly refreshed?: boolean;
}

/** The position of a chain's next receipt, and the compact form of the Merkle tree over all receipts. */
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
