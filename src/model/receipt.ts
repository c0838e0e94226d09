/** The receipt document `receipt-2026-04-25`: closed at the top, open only where the format says so. */

import { ClosedWord, NonEmpty, Nullable, OpenObject, Timestamp } from './schema.ts';
import { type Static, type TProperties, Type } from './type.ts';
import { AUTONOMY_TIERS, OUTCOME_STATES, RECEIPT_SCHEMA } from './words.ts';

const Optional = Type.Optional;
const Closed = <P extends TProperties>(properties: P) => Type.Object(properties, { additionalProperties: false });
const Count = Type.Integer({ minimum: 0 });
const Amount = Type.Number({ minimum: 0 });

/** `sha256:` and 64 lowercase hex digits. */
const Hash = Type.Unsafe<string>({ type: 'string', pattern: '^sha256:[0-9a-f]{64}$' });
const MaybeHash = Nullable(Hash);
const Tier = ClosedWord(AUTONOMY_TIERS);

export const RECEIPT_SUBJECTS = [
  'task',
  'outcome',
  'event',
  'artifact',
  'approval',
  'tool_call',
  'replay_segment',
] as const;

const Approval = Closed({
  approval_id: Optional(NonEmpty),
  actor: NonEmpty,
  action: NonEmpty,
  decision: ClosedWord(['approved', 'denied', 'canceled', 'timeout']),
  decided_at: Timestamp,
  quorum_proof: Optional(Nullable(OpenObject)),
  evidence_hash: Optional(Hash),
});

const Budget = Closed({
  usd: Optional(Amount),
  input_tokens: Optional(Count),
  output_tokens: Optional(Count),
  tool_calls: Optional(Count),
  wall_time_ms: Optional(Count),
});

const materialFields = {
  kind: ClosedWord(['llm_provider_response', 'mcp_tool_return', 'event_log', 'artifact', 'host_fact']),
  id: Optional(NonEmpty),
  uri: Optional(NonEmpty),
  sha256: Optional(Hash),
  content_type: Optional(NonEmpty),
  bytes_base64: Optional(NonEmpty),
  metadata: Optional(OpenObject),
};
const Material = Type.Object(materialFields, {
  additionalProperties: false,
  anyOf: [{ required: ['uri', 'sha256'] }, { required: ['bytes_base64', 'sha256'] }, { required: ['metadata'] }],
});

const ModelRef = Closed({
  provider: NonEmpty,
  model: NonEmpty,
  version: Optional(NonEmpty),
  reason: Optional(NonEmpty),
});

const ProviderCost = Closed({
  provider: NonEmpty,
  model: Optional(NonEmpty),
  amount: Amount,
  input_tokens: Optional(Count),
  output_tokens: Optional(Count),
  metadata: Optional(OpenObject),
});

const FileWrite = Closed({
  path: NonEmpty,
  operation: ClosedWord(['create', 'modify', 'delete', 'rename']),
  before_sha256: Optional(MaybeHash),
  after_sha256: Optional(MaybeHash),
});

const NetworkEgress = Closed({
  destination: NonEmpty,
  purpose: NonEmpty,
  bytes_sent: Optional(Count),
  metadata: Optional(OpenObject),
});

const ToolCall = Closed({
  tool: NonEmpty,
  call_id: NonEmpty,
  status: ClosedWord(['succeeded', 'failed', 'canceled']),
  input_hash: Optional(Hash),
  output_hash: Optional(Hash),
  metadata: Optional(OpenObject),
});

const Handoff = Closed({
  target_agent: NonEmpty,
  task_id: NonEmpty,
  status: ClosedWord(['accepted', 'rejected', 'failed', 'completed']),
  receipt_id: Optional(NonEmpty),
});

const ArtifactRef = Closed({
  artifact_id: NonEmpty,
  kind: NonEmpty,
  uri: Optional(NonEmpty),
  sha256: Optional(Hash),
});

const Redaction = Closed({ field: NonEmpty, reason: NonEmpty, proof_hash: Optional(Hash) });

const Delta = Closed({
  delta_id: Optional(NonEmpty),
  operation: ClosedWord(['add', 'replace', 'remove']),
  path: NonEmpty,
  override_key: Optional(NonEmpty),
  event_id: Optional(NonEmpty),
  before_sha256: Optional(MaybeHash),
  after_sha256: Optional(MaybeHash),
  artifact_id: Optional(NonEmpty),
  reason: Optional(NonEmpty),
});

const Signature = Closed({
  key_id: NonEmpty,
  algorithm: NonEmpty,
  signature: NonEmpty,
  signed_at: Optional(Timestamp),
});

export const Receipt = Closed({
  schema: Type.Literal(RECEIPT_SCHEMA),
  receipt_id: NonEmpty,
  subject: Closed({ object: ClosedWord(RECEIPT_SUBJECTS), id: NonEmpty }),
  issuer: Closed({
    id: NonEmpty,
    kind: ClosedWord(['harness', 'host', 'agent', 'connector']),
    name: Optional(NonEmpty),
    version: Optional(NonEmpty),
    public_key_id: Optional(NonEmpty),
  }),
  issued_at: Timestamp,
  identifiers: Closed({
    tenant_id: Optional(NonEmpty),
    persona_ref: Optional(NonEmpty),
    workspace_ref: NonEmpty,
    session_id: NonEmpty,
    task_id: NonEmpty,
    branch_id: Optional(NonEmpty),
    trace_id: Optional(NonEmpty),
  }),
  lifecycle: Closed({
    created_at: Optional(Timestamp),
    started_at: Timestamp,
    completed_at: Timestamp,
    final_state: ClosedWord(OUTCOME_STATES),
    failure: Optional(Nullable(OpenObject)),
  }),
  approvals: Optional(Type.Array(Approval)),
  trust: Closed({ start_tier: Tier, end_tier: Tier, policy_ref: Optional(NonEmpty) }),
  autonomy_budget: Closed({ limit: Optional(Budget), consumed: Budget }),
  replay_input: Closed({
    determinism: ClosedWord(['byte_deterministic', 'best_effort', 'unavailable']),
    materials: Type.Array(Material),
    unavailable_reason: Optional(NonEmpty),
  }),
  model_route: Closed({
    chosen_model: ModelRef,
    alternatives_considered: Type.Array(ModelRef),
    route_policy_reason: NonEmpty,
  }),
  cost: Closed({
    currency: Type.Unsafe<string>({ type: 'string', pattern: '^[A-Z]{3}$' }),
    total: Amount,
    provider_breakdown: Type.Array(ProviderCost),
  }),
  side_effects: Closed({
    fs_writes: Type.Array(FileWrite),
    network_egress: Type.Array(NetworkEgress),
    tool_calls: Type.Array(ToolCall),
    a2a_handoffs: Type.Array(Handoff),
  }),
  final_artifacts: Type.Array(ArtifactRef),
  deltas: Optional(Type.Array(Delta)),
  chain: Closed({ previous_receipt_hash: MaybeHash, receipt_hash: Hash, merkle_root: Optional(Hash) }),
  redactions: Optional(Type.Array(Redaction)),
  signatures: Optional(Type.Array(Signature)),
  metadata: Optional(OpenObject),
});
export type Receipt = Static<typeof Receipt>;
export type ReceiptDelta = Static<typeof Delta>;
export type ReceiptSignature = Static<typeof Signature>;
export type ReplayMaterial = Static<typeof Material>;
