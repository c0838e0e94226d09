/**
 * The schemas of this protocol's requests and answers, by the names in its documents. The schemas that validate requests are
 * the ones `/openapi.json` shows. Unknown members are allowed everywhere, as the protocol requires.
 */

import { OUTCOMES } from '../../../mappings/harn.ts';
import {
  ARTIFACT_KINDS,
  Artifact,
  AUTONOMY_TIERS,
  BRANCH_KINDS,
  Branch,
  ClosedWord,
  CONNECTOR_STATES,
  Connector,
  Event,
  Id,
  JsonValue,
  MaybeId,
  MaybeText,
  MaybeTime,
  MEMORY_SCOPES,
  Memory,
  Message,
  MessageInput,
  NonEmpty,
  Nullable,
  OpenObject,
  Outcome,
  Persona,
  Pointer,
  QUOTA_SCOPES,
  Quota,
  RECEIPT_POLICIES,
  REPLAY_MODES,
  ReceiptResource,
  ReplayOverride,
  Session,
  Skill,
  type Static,
  Task,
  Timestamp,
  type TProperties,
  type TSchema,
  Type,
  Vault,
  VISIBILITIES,
  Workspace,
} from '../../../src/index.ts';

const Optional = Type.Optional;
export const Texts = Type.Array(Type.String());
export const Count = Type.Integer({ minimum: 0 });
export const Constant = <const Word extends string>(word: Word) => Type.Unsafe<Word>({ type: 'string', enum: [word] });
export const Body = <P extends TProperties>(properties: P) =>
  Type.Object({ ...properties, metadata: Optional(OpenObject) });

const Page = Type.Object({ has_more: Type.Boolean(), next_cursor: Optional(MaybeText) });
export const ListOf = <T extends TSchema>(item: T) =>
  Type.Object({ object: Constant('list'), data: Type.Array(item), page: Page });

const Hash = Type.Unsafe<string | null>({ type: ['string', 'null'], pattern: '^(sha256:)?[a-fA-F0-9]{64}$' });

const Capability = Type.Object({ id: NonEmpty, description: Type.String() });
const CardSignature = Type.Object({ algorithm: NonEmpty, key_id: NonEmpty, value: NonEmpty });
const HarnAgentInterface = Type.Object({
  transport: ClosedWord(['rest', 'sse', 'websocket', 'a2a', 'mcp', 'acp']),
  url: NonEmpty,
});

const PermissionRequest = Type.Object({
  id: Id,
  object: Constant('permission_request'),
  created_at: Timestamp,
  updated_at: Timestamp,
  metadata: OpenObject,
  session_id: Optional(MaybeId),
  task_id: Optional(MaybeId),
  workspace_id: Optional(MaybeId),
  status: ClosedWord(['pending', 'approved', 'denied']),
  source: ClosedWord(['acp', 'hitl']),
  action: Optional(JsonValue),
  request: JsonValue,
  response: Optional(JsonValue),
  expires_at: Optional(MaybeTime),
});

const Tool = Type.Object({
  id: NonEmpty,
  object: Constant('tool'),
  name: NonEmpty,
  description: Type.String(),
  input_schema: OpenObject,
  output_schema: OpenObject,
});

const WorkspaceFile = Type.Object({
  object: Constant('file'),
  workspace_id: Id,
  path: Type.String(),
  encoding: Constant('utf-8'),
  content: Optional(Type.String()),
  bytes: Optional(Count),
});
const WorkspaceFileListing = Type.Object({
  object: Constant('file_listing'),
  workspace_id: Id,
  path: Type.String(),
  entries: Type.Array(
    Type.Object({ name: NonEmpty, path: NonEmpty, kind: ClosedWord(['file', 'directory']), size: Count }),
  ),
});

/** In seconds; null is for good. */
const Retention = Type.Object(
  {
    events_seconds: Nullable(
      Type.Integer({
        minimum: 0,
        description:
          'Events can be read, and tasks replayed, for so long after the session had its last event. Reading from before answers 410 cursor_expired and names the first event that is left. Null: for good.',
      }),
    ),
    receipts_seconds: Nullable(
      Type.Integer({ minimum: 0, description: 'Receipts can be read and verified for so long. Null: for good.' }),
    ),
  },
  { description: 'How long this gateway keeps events and receipts, in seconds; null is for good.' },
);

const Health = Type.Object({ ok: Type.Boolean(), status: NonEmpty, version: NonEmpty });

const Replay = {
  mode: Optional(ClosedWord(REPLAY_MODES)),
  override: Optional(Type.Record(Type.String(), ReplayOverride)),
  checkpoint_id: Optional(MaybeText),
  checkpoint_event_id: Optional(MaybeId),
  reason: Optional(MaybeText),
};
const Work = {
  input: OpenObject,
  workspace_id: Optional(MaybeId),
  persona_id: Optional(MaybeId),
  branch_id: Optional(MaybeId),
  parent_task_id: Optional(MaybeId),
  /** Which of the mounted agents does it. */
  agent: Optional(NonEmpty),
};

/** Where the schema of the receipt document stands, beside the document that refers to it. */
export const RECEIPT_SCHEMA = 'schemas/receipt-2026-04-25.schema.json';
/** The resource around a receipt. The document inside has a schema of its own, which is referenced and not repeated. */
const Receipt = Type.Object({
  ...ReceiptResource.properties,
  wire: Optional(
    Type.Object({
      schema_version: NonEmpty,
      subject: Pointer,
      issued_at: Timestamp,
      payload: Optional(Type.Unsafe<Record<string, unknown>>({ $ref: RECEIPT_SCHEMA })),
      signature: Optional(Nullable(OpenObject)),
    }),
  ),
});

export const SCHEMAS = {
  Error: Type.Object({
    error: Type.Object({
      code: NonEmpty,
      message: Type.String(),
      type: ClosedWord([
        'request_error',
        'auth_error',
        'permission_error',
        'not_found_error',
        'conflict_error',
        'rate_limit_error',
        'runtime_error',
        'upstream_error',
        'server_error',
      ]),
      param: Optional(MaybeText),
      request_id: Optional(MaybeText),
      details: Optional(OpenObject),
    }),
  }),
  Discovery: Type.Object({
    object: Constant('protocol_discovery'),
    protocol_family: Constant('harn_agents_protocol'),
    current_version: NonEmpty,
    supported_versions: Texts,
    capabilities: Type.Object({
      rest: Optional(Type.Boolean()),
      sse: Optional(Type.Boolean()),
      websocket: Optional(Type.Boolean()),
      receipts: Optional(Type.Boolean()),
      replay: Optional(Type.Boolean()),
    }),
    retention: Optional(Retention),
  }),
  HarnAgentCard: Type.Object({
    id: Id,
    object: ClosedWord(['harn_agent_card', 'agent_card']),
    created_at: Timestamp,
    updated_at: Timestamp,
    metadata: OpenObject,
    name: NonEmpty,
    description: Type.String(),
    protocol_version: NonEmpty,
    a2a_card: OpenObject,
    skills: Type.Array(Skill),
    harn_interfaces: Optional(Type.Array(HarnAgentInterface)),
    persona_ids: Optional(Texts),
    capabilities: Optional(Texts),
    auth_schemes: Optional(Texts),
    receipt_policy: Optional(MaybeText),
    quotas: Optional(Type.Array(Quota)),
    provider: Optional(OpenObject),
    public_url: Optional(MaybeText),
    retention: Optional(Retention),
    signature: Optional(Nullable(CardSignature)),
  }),

  Persona,
  PersonaList: ListOf(Persona),
  CreatePersonaRequest: Body({
    name: NonEmpty,
    version: NonEmpty,
    entry_workflow: NonEmpty,
    description: Type.String(),
    autonomy_tier: ClosedWord(AUTONOMY_TIERS),
    receipt_policy: ClosedWord(RECEIPT_POLICIES),
    module_ref: Optional(Type.String()),
  }),
  UpdatePersonaRequest: Body({
    description: Optional(Type.String()),
    receipt_policy: Optional(ClosedWord(RECEIPT_POLICIES)),
    quota_id: Optional(MaybeId),
  }),

  Workspace,
  WorkspaceList: ListOf(Workspace),
  CreateWorkspaceRequest: Body({
    name: NonEmpty,
    root: NonEmpty,
    image: Optional(MaybeText),
    packages: Optional(Texts),
    network_policy: Optional(OpenObject),
    sandbox_backend: Optional(MaybeText),
  }),
  UpdateWorkspaceRequest: Body({
    name: Optional(NonEmpty),
    capabilities: Optional(Texts),
    quota_id: Optional(MaybeId),
  }),
  WorkspaceFile,
  WorkspaceFileListing,
  WorkspaceFileOrListing: Type.Union([WorkspaceFile, WorkspaceFileListing]),
  WriteWorkspaceFileRequest: Body({ path: Optional(Type.String()), content: Type.String() }),

  Session,
  SessionList: ListOf(Session),
  CreateSessionRequest: Body({
    workspace_id: Id,
    persona_id: Optional(MaybeId),
    vault_ids: Optional(Type.Array(Id)),
    memory_ids: Optional(Type.Array(Id)),
    skill_ids: Optional(Type.Array(Id)),
    initial_messages: Optional(Type.Array(MessageInput)),
  }),
  UpdateSessionRequest: Body({ summary: Optional(MaybeText) }),
  ForkSessionRequest: Body({ at_event_id: Optional(MaybeId), branch_id: Optional(MaybeId) }),
  TruncateSessionRequest: Type.Object({ keep_first: Count, reason: Optional(Type.String()) }),
  TruncateSessionResponse: Type.Object({
    object: Constant('session.truncate_result'),
    session_id: Id,
    kept_turn_count: Count,
    removed_turn_count: Count,
    new_tip_turn_id: MaybeId,
    session: Session,
  }),
  ReplaySessionRequest: Body(Replay),

  Message,
  MessageInput,
  MessageList: ListOf(Message),
  AppendMessageRequest: Type.Object({ message: MessageInput }),
  Branch,
  BranchList: ListOf(Branch),
  CreateBranchRequest: Body({
    kind: ClosedWord(BRANCH_KINDS),
    base_ref: NonEmpty,
    parent_branch_id: Optional(MaybeId),
    task_id: Optional(MaybeId),
  }),
  UpdateBranchRequest: Body({ base_ref: Optional(NonEmpty), worktree_uri: Optional(MaybeText) }),
  MergeBranchRequest: Body({ merged_into: Optional(Type.String()) }),
  AbandonBranchRequest: Body({}),

  Task,
  TaskList: ListOf(Task),
  SubmitTaskRequest: Body({ session_id: Id, ...Work }),
  SubmitSessionTaskRequest: Body(Work),
  CancelTaskRequest: Type.Object({ reason: Optional(MaybeText) }),
  ReplayTaskRequest: Body(Replay),
  AppendTaskMessageRequest: Type.Object({
    kind: ClosedWord(['input', 'interrupt', 'tool_confirmation']),
    message: MessageInput,
  }),

  PermissionRequest,
  PermissionRequestList: ListOf(PermissionRequest),
  PermissionResponseRequest: Body({
    approved: Optional(Type.Boolean()),
    outcome: Optional(ClosedWord(OUTCOMES)),
    answer: Optional(JsonValue),
    /** Ours: with an approval, the arguments to run instead. The protocol's own member for them is `answer.arguments`. */
    arguments: Optional(OpenObject),
    reviewer: Optional(MaybeText),
    reason: Optional(MaybeText),
  }),

  Artifact,
  ArtifactList: ListOf(Artifact),
  RegisterArtifactRequest: Body({
    kind: ClosedWord(ARTIFACT_KINDS),
    mime_type: NonEmpty,
    visibility: ClosedWord(VISIBILITIES),
    uri: Optional(MaybeText),
    sha256: Optional(Hash),
    workspace_id: Optional(MaybeId),
    session_id: Optional(MaybeId),
    task_id: Optional(MaybeId),
  }),
  LinkArtifactRequest: Body({ to: Pointer }),
  RedactArtifactRequest: Body({ reason: Optional(MaybeText) }),

  Event,
  EventList: ListOf(Event),

  Receipt,
  ReceiptList: ListOf(Receipt),
  JsonSchema: OpenObject,
  VerifyReceiptRequest: Type.Object({ trust_anchor: Optional(MaybeText), at_time: Optional(MaybeTime) }),
  ReceiptVerification: Type.Object({
    valid: Type.Boolean(),
    checked_at: Timestamp,
    reason: Optional(MaybeText),
    // The events of the task, compared with the root in the receipt; further members depend on what could be checked.
    details: Optional(Type.Object({ events: Optional(ClosedWord(['ok', 'mismatch', 'pruned', 'absent'])) })),
  }),
  ReceiptBatch: Type.Object({
    object: Constant('receipt_batch'),
    id: Id,
    algorithm: NonEmpty,
    leaves: Texts,
    root: NonEmpty,
    size: Count,
    complete: Type.Boolean(),
    sealed_at: MaybeTime,
  }),
  Jwks: Type.Object({ keys: Type.Array(OpenObject) }),

  Memory,
  MemoryList: ListOf(Memory),
  CreateMemoryRequest: Body({
    scope: ClosedWord(MEMORY_SCOPES),
    owner_id: NonEmpty,
    content: JsonValue,
    provenance: OpenObject,
    visibility: Optional(ClosedWord(VISIBILITIES)),
    expires_at: Optional(MaybeTime),
  }),
  Vault,
  VaultList: ListOf(Vault),
  CreateVaultRequest: Body({ provider: NonEmpty, capabilities: Texts, workspace_id: Optional(MaybeId) }),
  Connector,
  ConnectorList: ListOf(Connector),
  CreateConnectorRequest: Body({
    provider: NonEmpty,
    workspace_id: Id,
    event_kinds: Texts,
    status: Optional(ClosedWord(CONNECTOR_STATES)),
    dedupe_policy: Optional(OpenObject),
    auth: Optional(OpenObject),
    webhook: Optional(OpenObject),
    polling: Optional(OpenObject),
    target_persona_id: Optional(MaybeId),
    target_session_id: Optional(MaybeId),
  }),
  Skill,
  SkillList: ListOf(Skill),
  CreateSkillRequest: Body({
    name: NonEmpty,
    description: Type.String(),
    input_schema: Optional(Nullable(OpenObject)),
    output_schema: Optional(Nullable(OpenObject)),
    source: Optional(MaybeText),
    version: Optional(MaybeText),
    capabilities: Optional(Texts),
    requires_approval: Optional(Type.Boolean()),
    deprecated: Optional(Type.Boolean()),
  }),
  Tool,
  ToolList: ListOf(Tool),
  Outcome,
  OutcomeList: ListOf(Outcome),
  Quota,
  QuotaList: ListOf(Quota),
  CreateQuotaRequest: Body({
    scope: ClosedWord(QUOTA_SCOPES),
    limits: Type.Record(Type.String(), Type.Number()),
    reset_at: Optional(MaybeTime),
    hard_limit: Optional(Type.Boolean()),
    soft_limit: Optional(Type.Boolean()),
  }),

  Capability,
  Retention,
  CapabilitySummary: Type.Object({
    object: Constant('capability_summary'),
    capabilities: Type.Array(Capability),
    retention: Optional(Retention),
  }),
  RuntimeMetadata: Type.Object({
    object: Constant('runtime'),
    version: NonEmpty,
    protocol_version: NonEmpty,
    adapter: NonEmpty,
    capabilities: Type.Array(Capability),
    retention: Optional(Retention),
  }),
  RuntimeVersion: Type.Object({ object: Constant('version'), version: NonEmpty, protocol_version: NonEmpty }),
  Health,
  HealthDetails: Type.Object({
    ok: Type.Boolean(),
    status: NonEmpty,
    version: NonEmpty,
    dependencies: Type.Array(Type.Object({ name: NonEmpty, ok: Type.Boolean(), detail: Optional(MaybeText) })),
  }),
  OpenApi: OpenObject,
  ResourcePointer: Pointer,
} as const;

export type SchemaName = keyof typeof SCHEMAS;
export type WireShape<Name extends SchemaName> = Static<(typeof SCHEMAS)[Name]>;
