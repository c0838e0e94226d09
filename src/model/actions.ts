/** An act, the decision about it, and its result; and the actor who proposes it. */

import type { ActFacts } from './act-facts.ts';
import type { RemoteDecidedPayload } from './payloads.ts';
import type { Persona, Quota } from './resources.ts';
import { ClosedWord, type Json, type JsonObject, MaybeText, type Open, OpenObject, Texts } from './schema.ts';
import { type Static, Type } from './type.ts';
import type { Loss } from './values/loss.ts';
import { type AutonomyTier, type Effect, type Evidence, VERDICTS } from './words.ts';

const { Number: Amount, Object: Shape, Optional, String: Text } = Type;

/**
 * The access token that a caller sent with its request, to be exchanged at an authorization server. The member's name is a symbol, so
 * that the token is in no JSON: no event, receipt, stored act or log line can hold it. It is sent to no tool server.
 */
export const INCOMING_TOKEN: unique symbol = Symbol('incoming access token');

/** The authenticated caller. Doors prove its identity; the gate decides what it may do. */
export interface Actor {
  readonly id: string;
  /**
   * `person`: one human holds the credential. `service`: a program holds it, so none of its answers is a person's. `agent`: acts
   * for others and never answers for them. `system`: this process itself; no credential authenticates as it.
   */
  readonly kind: 'person' | 'service' | 'agent' | 'system';
  /** Absent in an installation with one tenant. */
  readonly tenant_id?: string;
  /** Workspaces it may see; absent means all of its tenant's. */
  readonly workspaces?: readonly string[];
  /** `<resource>:<read|write>` words; `*` is all of these. Without `others:read` the actor sees only its own work. */
  readonly scopes: readonly string[];
  /** The only agents it may give work to; absent means every agent. Others do not exist for it. */
  readonly agents?: readonly string[];
  /** The door the request came through, for the record only: core decides nothing by it. */
  readonly door?: string;
  /** The only doors its credential is valid at; absent means every door. Checked where the credential is read. */
  readonly doors?: readonly string[];
  /**
   * Set by a door, never by a credential, on an answer that a person gave in a dialog of this surface: an editor's dialog, a
   * client's form, a terminal, a page in a browser. Counts for `person` only.
   */
  readonly interactive?: true;
  /**
   * Set by a door, never by a credential: the door shows more than the public view to readers who may see more. Counts only with
   * the scope `internal:read`.
   */
  readonly sees?: 'internal';
  /** For an agent that starts work: the principal whose work it is part of. That principal owns what the agent starts. */
  readonly on_behalf_of?: string;
  /** Only where a server of the configuration exchanges it. */
  readonly [INCOMING_TOKEN]?: () => string;
}

export const ACTION_KINDS = [
  'prompt',
  'tool',
  'fs.read',
  'fs.write',
  'terminal',
  'handoff',
  'elicit',
  'session.open',
  'session.configure',
  'memory.read',
  'memory.write',
  'secret.use',
  'plan',
  'reason',
  'enrich',
  'query',
  'background',
  'answer',
  'extension',
] as const;
export type ActionKind = (typeof ACTION_KINDS)[number];

/** Kinds of act that an agent performs: the autonomy tiers apply to these. */
export const AGENT_ACTS: readonly ActionKind[] = ['tool', 'fs.read', 'fs.write', 'terminal', 'handoff', 'memory.write'];

export interface Action {
  readonly id: string;
  readonly kind: ActionKind;
  readonly actor: Actor;
  readonly workspace_id: string;
  readonly session_id?: string;
  readonly task_id?: string;
  /** Pairs the request with its result and its question. Unique within the task. */
  readonly tool_call_id?: string;
  /** The tool, file operation or peer, by name. */
  readonly tool?: string;
  /** The server of the tool. */
  readonly server?: string;
  /** SHA-256 of the tool's definition as it stood when the action was proposed. */
  readonly definition?: string;
  /** The path, address or peer it touches, when there is one. */
  readonly target?: string;
  readonly arguments: JsonObject;
  readonly effect: Effect;
  readonly evidence: Evidence;
  /** The agent's claims about its own act. Shown as the agent's words; they may raise the effect and never lower it. */
  readonly claims?: Claims;
  /** What the asker said beside the act, under the name of its protocol, for policy engines that speak it. Not recorded with the act. */
  readonly context?: JsonObject;
  /** The directory that relative paths of this act are relative to. */
  readonly cwd?: string;
  /** The workspace's directory: the start of relative paths when the act does not name one. Set by core. */
  readonly root?: string;
  /** The facts read from all of the above. They count only for the arguments they were read from. */
  readonly facts?: ActFacts;
  /** Files it would write, for the approver. Never logged: the arguments name the content by its hash. */
  readonly changes?: readonly FileChange[];
  /** Its expected usage, checked against quotas before it runs. */
  readonly cost?: Readonly<Record<string, number>>;
  /** Facts that rules may match: annotations, taint, claimed modes. Flat and small. */
  readonly attributes?: Readonly<Record<string, string | number | boolean | readonly string[]>>;
  /** Policy data as of the decision, set by core so that engines stay pure. */
  readonly persona?: Persona;
  readonly tier?: AutonomyTier;
  readonly quotas?: readonly Quota[];
  /** The other gateway's call that led to this call, as that gateway claims. */
  readonly caller?: CallerOfCall;
  /** The trace its task belongs to, for requests made because of the act. Not part of the act, and not recorded with it. */
  readonly trace?: { readonly trace_id?: string; readonly tracestate?: string; readonly trace_flags?: string };
}

/** Names a call on the other side of a link between two gateways. */
export const CallerOfCall = Shape({
  protocol: Text(),
  task_id: Text(),
  tool_call_id: Text(),
  issuer: Optional(Text()),
  key_id: Optional(Text()),
  /** The event of that gateway's log that announced the call. */
  event_id: Optional(Text()),
  event_hash: Optional(Text()),
});
export type CallerOfCall = Static<typeof CallerOfCall>;

/** An agent's own words about an act, kept apart from what its method and arguments show. */
export type Claims = {
  /** The program's name for itself: selects the profile that reads its arguments. */
  readonly agent?: string;
  readonly title?: string;
  readonly kind?: string;
};

export type FileChange = {
  readonly path: string;
  readonly after: string;
  /** Null when there is no such file yet; absent when it could not be read. */
  readonly before?: string | null;
};

export const Decision = Shape({
  verdict: ClosedWord(VERDICTS),
  /** The decision and its reason, for people. Never contains a secret. */
  reason: Text(),
  /** Machine word for the reason when the bridge itself decided (`policy_timed_out`, `quota_exhausted`, …). */
  code: Optional(Text()),
  rule_id: Optional(Text()),
  engine: Text(),
  policy_version: Optional(Text()),
  /** For `modify`: the arguments that will run instead. */
  arguments: Optional(OpenObject),
  /** For `defer`: when to ask again. */
  retry_after_ms: Optional(Amount()),
  /** For `escalate`: the approvers to ask, and for how long. */
  ask: Optional(Shape({ to: Optional(Texts), expires_ms: Optional(Amount()) })),
  /** Keyed digest of the arguments this decision covers: exactly these may run. Set by the gate unless the verdict is a refusal. */
  arguments_digest: Optional(Text()),
  /** In the shadow tier: the verdict without the tier, which lets nothing run. */
  would_be: Optional(ClosedWord(VERDICTS)),
});
export type Decision = Readonly<Static<typeof Decision>>;

export interface ToolResult {
  readonly status: Open<'ok' | 'error'>;
  readonly output: Json;
  /** Why it failed, for people. */
  readonly error?: string;
  /** Machine word for a failure that is not the tool's own: `canceled`, `outcome_unknown`. */
  readonly code?: string;
  readonly artifacts?: readonly NewArtifact[];
  readonly effects?: readonly SideEffect[];
  readonly usage?: Usage;
  /** What the tool's protocol could not carry of the call. */
  readonly loss?: readonly Loss[];
  /** The result may hold untrusted content: the session that receives it is tainted in the commit that records it. */
  readonly taint?: Taint;
  /** The decision of another gateway behind the tool; recorded as that gateway's claim. */
  readonly remote?: Omit<RemoteDecidedPayload, 'tool_call_id' | 'name'>;
  readonly ext?: JsonObject;
}

/** The source of untrusted content. */
export type Taint = {
  readonly server: string;
  /** The tool, or the request. */
  readonly what: string;
  readonly target?: string;
};

/** A file or patch on its way into the store: bytes here, their hash everywhere else. */
export interface NewArtifact {
  readonly kind: string;
  readonly name?: string;
  readonly mime_type: string;
  readonly visibility?: 'public' | 'internal' | 'receipt_only';
  readonly bytes?: Uint8Array;
  readonly uri?: string;
  readonly sha256?: string;
  readonly metadata?: JsonObject;
}

const FileWrite = {
  type: Type.Literal('fs_write'),
  path: Text(),
  operation: ClosedWord(['create', 'modify', 'delete', 'rename']),
  before_sha256: Optional(MaybeText),
  after_sha256: Optional(MaybeText),
};
const Network = {
  type: Type.Literal('network'),
  destination: Text(),
  purpose: Text(),
  bytes_sent: Optional(Amount()),
  /** Facts for the receipt: hashes of the content sent, and how it was sent. */
  metadata: Optional(Type.Record(Type.String(), Type.String())),
};
export type SideEffect =
  | Static<ReturnType<typeof Shape<typeof FileWrite>>>
  | Static<ReturnType<typeof Shape<typeof Network>>>;
const OnRecord = { tool_call_id: Optional(Text()), evidence: Text() };
/** A side effect as an event records it. */
export const EffectShape = Type.Union([Shape({ ...FileWrite, ...OnRecord }), Shape({ ...Network, ...OnRecord })]);

const Counted = {
  provider: Optional(Text()),
  model: Optional(Text()),
  usd_micros: Optional(Amount()),
  input_tokens: Optional(Amount()),
  output_tokens: Optional(Amount()),
};
/** Reported usage as an event records it. */
export const UsageShape = Shape({ ...Counted, call_id: Optional(Text()) });
/** Money in millionths of a dollar, so that sums are exact. Absent means not reported, never zero. */
export type Usage = Omit<Static<typeof UsageShape>, 'call_id'>;
