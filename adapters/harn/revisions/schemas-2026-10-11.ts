/**
 * The schemas that `agents-protocol-2026-10-11` adds to the previous revision, or has under the same name in another form.
 * The schemas that validate requests are the ones its `/openapi.json` shows.
 */
import { OUTCOMES } from '../../../mappings/harn.ts';
import { ACTION_CLASSES, MODES, REASONING_EFFORTS, RULE_SCOPES } from '../../../mappings/harn-2026-10-11.ts';
import {
  ClosedWord,
  Id,
  JsonValue,
  MaybeId,
  MaybeText,
  MaybeTime,
  MessageInput,
  NonEmpty,
  Nullable,
  OpenObject,
  Session,
  type Static,
  Timestamp,
  type TProperties,
  Type,
} from '../../../src/index.ts';
import { Body, Constant, Count, ListOf, Texts } from './schemas.ts';

const Optional = Type.Optional;
const Scope = ClosedWord(RULE_SCOPES);
const Class = ClosedWord(ACTION_CLASSES.map(({ wire }) => wire));
const Risk = ClosedWord(['low', 'medium', 'high', 'critical']);
const MaybeClass = Nullable(Class);
/** A name that a client chooses for itself: short, and without characters that a terminal or a log would interpret. */
const Closed = <P extends TProperties>(properties: P) => Type.Object(properties, { additionalProperties: false });
const ClientId = Type.Unsafe<string>({ type: 'string', pattern: '^[A-Za-z0-9][A-Za-z0-9_.:@-]{0,127}$' });
const Glob = Type.Unsafe<string>({ type: 'string', minLength: 1, maxLength: 1000 });
const Globs = Type.Array(Glob, { maxItems: 1000 });

const InputSpec = Closed({
  name: NonEmpty,
  kind: Optional(ClosedWord(['secret', 'variable'])),
  lifetime: Optional(
    Type.Union([
      Closed({ kind: ClosedWord(['session', 'saved']) }),
      Closed({ kind: Constant('until'), unix_ms: Type.Unsafe<number>({ type: 'integer', minimum: 0 }) }),
    ]),
  ),
  usage: Optional(
    Type.Union([
      Closed({ kind: Constant('session_tools') }),
      Closed({ kind: Constant('websites'), origins: Type.Array(Type.String()) }),
    ]),
  ),
});
const InputGrant = Closed({ spec: InputSpec, value: Type.String() });
const InputCommandBody = Type.Union([
  Closed({ kind: Constant('list') }),
  Closed({ kind: Constant('put'), spec: InputSpec, value: Type.String(), replace: Optional(Type.Boolean()) }),
  Closed({ kind: Constant('remove'), name: NonEmpty }),
  Closed({
    kind: Constant('sync'),
    snapshot: Closed({
      sourceId: NonEmpty,
      revision: Type.Unsafe<number>({ type: 'integer', minimum: 0 }),
      inputs: Type.Array(InputGrant, { maxItems: 256 }),
      redactions: Type.Array(Type.String(), { maxItems: 4096 }),
    }),
  }),
]);

const LiveSessionClient = Type.Object({
  client_id: NonEmpty,
  mode: ClosedWord(['observer', 'controller']),
  attached_at: NonEmpty,
  last_seen_at: NonEmpty,
  prompt_injection: Type.Boolean(),
  permission_routing: Type.Boolean(),
  metadata: OpenObject,
});

const ModeId = ClosedWord(MODES.map(({ wire }) => wire));
const NewerSession = Type.Object({
  ...Session.properties,
  mode_id: Optional(ModeId),
  live_clients: Optional(Type.Array(LiveSessionClient)),
  live_controller_id: Optional(MaybeText),
});

/** Parsed, so that the refusal can give the reason: no agent here takes a model from outside. */
const ModelPolicy = Type.Object(
  { provider: NonEmpty, model: NonEmpty, reasoning_effort: Optional(ClosedWord(REASONING_EFFORTS)) },
  {
    additionalProperties: false,
    description: 'Only null is accepted: the agents behind this gateway choose their models themselves.',
  },
);

const PermissionPolicy = Type.Object({
  read: Optional(Globs),
  write: Optional(Globs),
  exec: Optional(Globs),
  net: Optional(Globs),
  llm: Optional(
    Type.Object({
      providers: Optional(Texts),
      cost_ceiling_usd_cents: Optional(Nullable(Count)),
    }),
  ),
  redact: Optional(Type.Object({ transcript: Optional(Texts), logs: Optional(Texts) })),
  escalate_to: Optional(Texts),
});

const Remembered = {
  scope: Scope,
  scope_value: Optional(MaybeText),
  class: Class,
  action_pattern: Glob,
  target_pattern: Glob,
  allow: Type.Boolean(),
  reason: Optional(MaybeText),
  expires_at: Optional(MaybeTime),
};
const RememberRule = Type.Object({
  id: Id,
  tenant_id: Optional(MaybeText),
  ...Remembered,
  created_at: Timestamp,
  created_by: NonEmpty,
  revoked_at: Optional(MaybeTime),
});

const PermissionCheckRequest = Type.Object({
  id: Optional(MaybeText),
  tenant_id: Optional(MaybeText),
  session_id: NonEmpty,
  workspace_id: Optional(MaybeId),
  actor: NonEmpty,
  class: Class,
  action: NonEmpty,
  target: Type.String(),
  risk: Optional(Nullable(Risk)),
  context: Optional(OpenObject),
  reason: Optional(MaybeText),
  requested_at: Optional(Timestamp),
});
const Granted = Type.Object({
  outcome: Constant('granted'),
  scope: Scope,
  policy_version: Type.String(),
  reason: Optional(MaybeText),
  expires_at: Optional(MaybeTime),
  rule_id: Optional(MaybeText),
});
const Denied = Type.Object({
  outcome: Constant('denied'),
  scope: Scope,
  policy_version: Type.String(),
  reason: Optional(MaybeText),
  rule_id: Optional(MaybeText),
});
const Suspend = Type.Object({
  outcome: Constant('suspend'),
  policy_version: Type.String(),
  escalate_to: Texts,
  reason: Optional(MaybeText),
});
const AuditEntry = Type.Object({
  request: PermissionCheckRequest,
  outcome: ClosedWord(['granted', 'denied', 'escalated']),
  scope: Optional(Nullable(Scope)),
  policy_version: Type.String(),
  risk: Risk,
  rule_id: Optional(MaybeText),
  reason: Optional(MaybeText),
  expires_at: Optional(MaybeTime),
  decided_at: Timestamp,
  decided_by: Optional(MaybeText),
});

const Entries = Type.Array(OpenObject);

export const NEWER_SCHEMAS = {
  Session: NewerSession,
  SessionList: ListOf(NewerSession),
  CreateSessionRequest: Body({
    workspace_id: Id,
    persona_id: Optional(MaybeId),
    vault_ids: Optional(Type.Array(Id)),
    memory_ids: Optional(Type.Array(Id)),
    skill_ids: Optional(Type.Array(Id)),
    initial_messages: Optional(Type.Array(MessageInput)),
    mode_id: Optional(Nullable(ModeId)),
    model_policy: Optional(Nullable(ModelPolicy)),
  }),
  UpdateSessionRequest: Body({ summary: Optional(MaybeText), model_policy: Optional(Nullable(ModelPolicy)) }),
  TruncateSessionResponse: Type.Object({
    object: Constant('session.truncate_result'),
    session_id: Id,
    kept_turn_count: Count,
    removed_turn_count: Count,
    new_tip_turn_id: MaybeId,
    session: NewerSession,
  }),
  /** Steering and confirming have operations of their own in this revision. */
  AppendTaskMessageRequest: Type.Object({ kind: ClosedWord(['input']), message: MessageInput }),

  LiveSessionClient,
  LiveSessionClientList: Type.Object({ object: Constant('list'), data: Type.Array(LiveSessionClient) }),
  LiveSessionClientChange: Type.Object({
    client: Nullable(LiveSessionClient),
    previous_controller_id: MaybeText,
    active_controller_id: MaybeText,
    clients: Type.Array(LiveSessionClient),
  }),
  AttachSessionClientRequest: Body({
    client_id: ClientId,
    mode: Optional(ClosedWord(['observer', 'controller'])),
    takeover: Optional(Type.Boolean()),
    prompt_injection: Optional(Nullable(Type.Boolean())),
    permission_routing: Optional(Nullable(Type.Boolean())),
  }),
  SessionClientRequest: Body({ client_id: ClientId, reason: Optional(MaybeText) }),
  SessionInputsCommand: InputCommandBody,
  SessionInputs: OpenObject,

  ProviderCatalog: Type.Object(
    {
      schema_version: Type.Unsafe<6>({ type: 'integer', enum: [6] }),
      schema: NonEmpty,
      generated_by: Type.String(),
      providers: Entries,
      models: Entries,
      aliases: Entries,
      variants: Entries,
      families: Entries,
      qc_defaults: Type.Record(Type.String(), Type.String()),
    },
    { additionalProperties: false },
  ),

  PermissionResponseRequest: Body({
    approved: Optional(Type.Boolean()),
    outcome: Optional(ClosedWord(OUTCOMES)),
    answer: Optional(JsonValue),
    reviewer: Optional(MaybeText),
    reason: Optional(MaybeText),
    remember: Optional(Nullable(Type.Boolean())),
    scope: Optional(Nullable(Scope)),
    expires_at: Optional(MaybeTime),
    action_pattern: Optional(MaybeText),
    target_pattern: Optional(MaybeText),
    class: Optional(MaybeClass),
  }),
  PermissionPolicy,
  PermissionPolicyResponse: Type.Object({
    object: Constant('permission_policy'),
    version: NonEmpty,
    policy: PermissionPolicy,
  }),
  RememberRule,
  RememberRuleList: ListOf(RememberRule),
  /** A rule without the members that the gateway sets: its id, its author and its time. */
  CreateRememberRule: Type.Object(Remembered),
  PermissionCheckRequest,
  PermissionDecisionGranted: Granted,
  PermissionDecisionDenied: Denied,
  PermissionDecisionSuspend: Suspend,
  PermissionCheckResponse: Type.Object({
    object: Constant('permission_decision'),
    request_id: NonEmpty,
    decision: Type.Union([Granted, Denied, Suspend]),
  }),
  AuditEntry,
  AuditEntryList: ListOf(AuditEntry),
} as const;

export type NewerWire<Name extends keyof typeof NEWER_SCHEMAS> = Static<(typeof NEWER_SCHEMAS)[Name]>;
