/**
 * The sixteen resources of the Agents Protocol, each a schema and a type of the same name.
 * Unknown fields are legal everywhere and survive: nothing here strips.
 */

import {
  ClosedWord,
  Id,
  type JsonObject,
  JsonValue,
  MaybeId,
  MaybeText,
  MaybeTime,
  NonEmpty,
  Nullable,
  OpenObject,
  OpenWord,
  Timestamp,
} from './schema.ts';
import { type Static, type TProperties, Type } from './type.ts';
import {
  ARTIFACT_KINDS,
  AUTONOMY_TIERS,
  BRANCH_KINDS,
  CONNECTOR_STATES,
  MEMORY_SCOPES,
  OUTCOME_STATES,
  QUOTA_SCOPES,
  RECEIPT_POLICIES,
  REPLAY_MODES,
  ROLES,
  SESSION_STATES,
  TASK_STATES,
  VISIBILITIES,
} from './words.ts';

const Optional = Type.Optional;
const Texts = Type.Array(Type.String());
const Objects = Type.Array(OpenObject);

/** Every top-level resource opens with the same five members. */
function resource<const Kind extends string, P extends TProperties>(kind: Kind, properties: P) {
  return Type.Object({
    id: Id,
    object: Type.Literal(kind),
    created_at: Timestamp,
    updated_at: Timestamp,
    metadata: OpenObject,
    ...properties,
  });
}

export const Pointer = Type.Object({ object: NonEmpty, id: Id });
export type Pointer = Static<typeof Pointer>;

export const Failure = Type.Object({ code: NonEmpty, message: Type.String(), details: Optional(OpenObject) });
export type Failure = Static<typeof Failure>;

// -- Part: content of a message. A part of an unknown type is kept whole. --

/** Closed, unlike other lists of received words: a misspelled visibility would otherwise publish the part. */
const visibility = ClosedWord(VISIBILITIES);
export const KNOWN_PARTS = {
  text: Type.Object({ type: Type.Literal('text'), text: Type.String(), visibility }),
  json: Type.Object({ type: Type.Literal('json'), value: JsonValue, visibility }),
  tool_call: Type.Object({
    type: Type.Literal('tool_call'),
    tool_call_id: NonEmpty,
    name: NonEmpty,
    input: OpenObject,
    visibility,
  }),
  tool_result: Type.Object({
    type: Type.Literal('tool_result'),
    tool_call_id: NonEmpty,
    output: JsonValue,
    status: OpenWord(['ok', 'error']),
    visibility,
  }),
  artifact_ref: Type.Object({ type: Type.Literal('artifact_ref'), artifact_id: Id, visibility }),
  file_ref: Type.Object({ type: Type.Literal('file_ref'), uri: NonEmpty, mime_type: NonEmpty, visibility }),
  image_ref: Type.Object({ type: Type.Literal('image_ref'), artifact_id: Id, mime_type: NonEmpty, visibility }),
} as const;
export type KnownPart = { [K in keyof typeof KNOWN_PARTS]: Static<(typeof KNOWN_PARTS)[K]> }[keyof typeof KNOWN_PARTS];
export type UnknownPart = { readonly type: string & {}; readonly visibility?: string };
export type Part = KnownPart | UnknownPart;
/** Known types are checked in full; an unknown type only needs its `type`, and a visibility from the list. */
export const Part = Type.Unsafe<Part>({
  type: 'object',
  required: ['type'],
  properties: { type: { type: 'string', minLength: 1 }, visibility },
  allOf: Object.entries(KNOWN_PARTS).map(([type, schema]) => ({
    if: { properties: { type: { const: type } } },
    // biome-ignore lint/suspicious/noThenProperty: JSON Schema's own keyword
    then: schema,
  })),
});

export const Message = resource('message', {
  role: OpenWord(ROLES),
  parts: Type.Array(Part),
  session_id: Optional(MaybeId),
  task_id: Optional(MaybeId),
});
export type Message = Static<typeof Message>;

export const MessageInput = Type.Object({
  role: ClosedWord(ROLES),
  parts: Type.Array(Part),
  metadata: Optional(OpenObject),
});
export type MessageInput = Static<typeof MessageInput>;

export const Persona = resource('persona', {
  name: NonEmpty,
  version: NonEmpty,
  entry_workflow: NonEmpty,
  description: Type.String(),
  autonomy_tier: OpenWord(AUTONOMY_TIERS),
  receipt_policy: OpenWord(RECEIPT_POLICIES),
  tools: Optional(Texts),
  capabilities: Optional(Texts),
  triggers: Optional(Objects),
  schedules: Optional(Objects),
  handoffs: Optional(Texts),
  context_packs: Optional(Texts),
  evals: Optional(Texts),
  owner: Optional(MaybeText),
  model_policy: Optional(OpenObject),
  rollout_policy: Optional(OpenObject),
  quota_id: Optional(MaybeId),
});
export type Persona = Static<typeof Persona>;

export const Workspace = resource('workspace', {
  name: NonEmpty,
  root: NonEmpty,
  default_branch_id: MaybeId,
  host: Optional(MaybeText),
  repository: Optional(MaybeText),
  tenant_id: Optional(MaybeText),
  capabilities: Optional(Texts),
  connectors: Optional(Texts),
  quota_id: Optional(MaybeId),
});
export type Workspace = Static<typeof Workspace>;

export const Session = resource('session', {
  workspace_id: Id,
  state: OpenWord(SESSION_STATES),
  transcript: Type.Unsafe<JsonObject | string>({ anyOf: [OpenObject, { type: 'string' }] }),
  persona_id: Optional(MaybeId),
  /** The highest autonomy tier of its work, whatever its persona allows. */
  autonomy_tier: Optional(OpenWord(AUTONOMY_TIERS)),
  root_session_id: Optional(MaybeId),
  parent_session_id: Optional(MaybeId),
  branch_id: Optional(MaybeId),
  last_event_id: Optional(MaybeId),
  summary: Optional(MaybeText),
  expires_at: Optional(MaybeTime),
});
export type Session = Static<typeof Session>;

/** A message or any other object: a message has a role and parts. */
export const TaskInput = OpenObject;

export const Task = resource('task', {
  session_id: Id,
  workspace_id: Id,
  status: OpenWord(TASK_STATES),
  input: TaskInput,
  created_by: NonEmpty,
  persona_id: Optional(MaybeId),
  branch_id: Optional(MaybeId),
  parent_task_id: Optional(MaybeId),
  assigned_agent_id: Optional(MaybeText),
  receipt_id: Optional(MaybeId),
  outcome_id: Optional(MaybeId),
  quota_id: Optional(MaybeId),
  started_at: Optional(MaybeTime),
  completed_at: Optional(MaybeTime),
  canceled_at: Optional(MaybeTime),
  failure: Optional(Nullable(Failure)),
});
export type Task = Static<typeof Task>;

/** Whether a task is a replay, by the mark that only core writes. Callers choose the rest of the metadata. */
export function isReplay({ metadata }: Pick<Task, 'metadata'>): boolean {
  const { replay } = (metadata.tollbridge ?? {}) as { readonly replay?: unknown };
  return replay !== undefined;
}

export const Branch = resource('branch', {
  workspace_id: Id,
  kind: OpenWord(BRANCH_KINDS),
  base_ref: NonEmpty,
  parent_branch_id: Optional(MaybeId),
  session_id: Optional(MaybeId),
  task_id: Optional(MaybeId),
  worktree_uri: Optional(MaybeText),
  created_by: Optional(MaybeText),
  merged_into: Optional(MaybeText),
});
export type Branch = Static<typeof Branch>;

export const Artifact = resource('artifact', {
  kind: OpenWord(ARTIFACT_KINDS),
  mime_type: NonEmpty,
  uri: MaybeText,
  visibility,
  /** Bare lowercase hex here; receipts and overrides write the same hash with a `sha256:` prefix. */
  sha256: Nullable(Type.Unsafe<string>({ type: 'string', pattern: '^[a-fA-F0-9]{64}$' })),
  workspace_id: Optional(MaybeId),
  session_id: Optional(MaybeId),
  task_id: Optional(MaybeId),
  receipt_id: Optional(MaybeId),
});
export type Artifact = Static<typeof Artifact>;

export const ReplayMark = Type.Object({
  source_task_id: Id,
  replay_task_id: Id,
  original_event_id: Optional(MaybeId),
  replay_cursor: Optional(MaybeId),
  mode: Optional(OpenWord(REPLAY_MODES)),
  override_key: Optional(MaybeText),
  receipt_delta_id: Optional(MaybeText),
});
export type ReplayMark = Static<typeof ReplayMark>;

export const Event = resource('event', {
  event: NonEmpty,
  resource: Pointer,
  sequence: Type.Integer({ minimum: 0 }),
  payload: OpenObject,
  trace_id: Optional(MaybeText),
  span_id: Optional(MaybeText),
  session_id: Optional(MaybeId),
  task_id: Optional(MaybeId),
  workspace_id: Optional(MaybeId),
  actor: Optional(MaybeText),
  idempotency_key: Optional(MaybeText),
  previous_event_id: Optional(MaybeId),
  receipt_id: Optional(MaybeId),
  replayed: Optional(Type.Boolean()),
  replay: Optional(Nullable(ReplayMark)),
});
export type Event = Static<typeof Event>;

export const ReceiptResource = resource('receipt', {
  subject: Pointer,
  format: NonEmpty,
  summary: Type.String(),
  issued_at: Timestamp,
  issuer: NonEmpty,
  wire: Optional(OpenObject),
  verification: Optional(Nullable(OpenObject)),
});
export type ReceiptResource = Static<typeof ReceiptResource>;

export const Memory = resource('memory', {
  scope: OpenWord(MEMORY_SCOPES),
  owner_id: NonEmpty,
  content: JsonValue,
  provenance: OpenObject,
  expires_at: Optional(MaybeTime),
  embedding_ref: Optional(MaybeText),
  visibility: Optional(visibility),
  redaction_policy: Optional(OpenObject),
  confidence: Optional(Nullable(Type.Number({ minimum: 0, maximum: 1 }))),
  workspace_id: Optional(MaybeId),
});
export type Memory = Static<typeof Memory>;

export const Vault = resource('vault', { workspace_id: MaybeId, provider: NonEmpty, capabilities: Texts });
export type Vault = Static<typeof Vault>;

export const Connector = resource('connector', {
  provider: NonEmpty,
  workspace_id: Id,
  status: OpenWord(CONNECTOR_STATES),
  event_kinds: Texts,
  dedupe_policy: Optional(OpenObject),
  auth: Optional(OpenObject),
  webhook: Optional(OpenObject),
  polling: Optional(OpenObject),
  target_persona_id: Optional(MaybeId),
  target_session_id: Optional(MaybeId),
});
export type Connector = Static<typeof Connector>;

export const Skill = resource('skill', {
  name: NonEmpty,
  description: Type.String(),
  input_schema: Nullable(OpenObject),
  output_schema: Nullable(OpenObject),
  source: Optional(MaybeText),
  version: Optional(MaybeText),
  capabilities: Optional(Texts),
  requires_approval: Optional(Type.Boolean()),
  deprecated: Optional(Type.Boolean()),
});
export type Skill = Static<typeof Skill>;

export const Outcome = resource('outcome', {
  task_id: Id,
  status: OpenWord(OUTCOME_STATES),
  summary: Type.String(),
  messages: Optional(Type.Array(Message)),
  artifacts: Optional(Type.Array(Artifact)),
  handoffs: Optional(Objects),
  receipt_id: Optional(MaybeId),
  failure: Optional(Nullable(Failure)),
  cost: Optional(OpenObject),
  metrics: Optional(OpenObject),
});
export type Outcome = Static<typeof Outcome>;

const Amounts = Type.Record(Type.String(), Type.Number());
export const Quota = resource('quota', {
  scope: OpenWord(QUOTA_SCOPES),
  limits: Amounts,
  usage: Amounts,
  reset_at: Optional(MaybeTime),
  hard_limit: Optional(Type.Boolean()),
  soft_limit: Optional(Type.Boolean()),
  exhaustion_reason: Optional(MaybeText),
  last_receipt_id: Optional(MaybeId),
});
export type Quota = Static<typeof Quota>;

/** An answer that an approver wants remembered: for a class of acts, by name and target, within the scope. */
export const PermissionRule = resource('permission_rule', {
  scope: ClosedWord(['session', 'workspace', 'user', 'always']),
  scope_value: Optional(MaybeText),
  class: NonEmpty,
  action_pattern: NonEmpty,
  target_pattern: NonEmpty,
  allow: Type.Boolean(),
  reason: Optional(MaybeText),
  created_by: NonEmpty,
  expires_at: Optional(MaybeTime),
  /** Only tools of this server. */
  server: Optional(MaybeText),
  /** It also holds in sessions that have read untrusted content: it was given in one. */
  tainted: Optional(Type.Boolean()),
  /** The author may approve acts of its own work. */
  own: Optional(Type.Boolean()),
  /** It covers this act alone, with any arguments; the patterns are for people to read. Absent: the patterns decide. */
  covers: Optional(
    Type.Object({
      kind: NonEmpty,
      tool: MaybeText,
      server: MaybeText,
      definition: MaybeText,
      actor: NonEmpty,
      principal: NonEmpty,
    }),
  ),
  /** Its author gave it as the person at a client, who may approve there what she proposed there. */
  interactive: Optional(Type.Boolean()),
  tenant_id: Optional(MaybeText),
  workspace_id: Optional(MaybeId),
});
export type PermissionRule = Static<typeof PermissionRule>;

/** The sixteen, by their discriminator. `part` is the one without an envelope of its own. */
export const RESOURCES = {
  persona: Persona,
  workspace: Workspace,
  session: Session,
  task: Task,
  branch: Branch,
  message: Message,
  part: Part,
  artifact: Artifact,
  event: Event,
  receipt: ReceiptResource,
  memory: Memory,
  vault: Vault,
  connector: Connector,
  skill: Skill,
  outcome: Outcome,
  quota: Quota,
} as const;
export type ResourceKind = keyof typeof RESOURCES;

/** Resources that can be declared besides the sixteen. */
export const OWN_RESOURCES = { permission_rule: PermissionRule } as const;
