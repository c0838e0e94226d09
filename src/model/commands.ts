/** Wishes: all a door may ask of the bridge. Each is one verb with a checked body; the schemas are the doors' contract. */

import { ACTION_KINDS, type Actor } from './actions.ts';
import type { RedactionMark } from './payloads.ts';
import { Failure, MessageInput, Pointer } from './resources.ts';
import {
  ClosedWord,
  Id,
  type JsonObject,
  JsonValue,
  MaybeId,
  MaybeText,
  NonEmpty,
  Nullable,
  OpenObject,
  Timestamp,
} from './schema.ts';
import { type Static, type TProperties, Type } from './type.ts';
import {
  ARTIFACT_KINDS,
  BRANCH_KINDS,
  EFFECTS,
  EVIDENCE,
  OVERRIDE_KINDS,
  REPLAY_MODES,
  VISIBILITIES,
} from './words.ts';

const Optional = Type.Optional;
const Body = <P extends TProperties>(properties: P) => Type.Object({ ...properties, metadata: Optional(OpenObject) });

/** Resources that are written down rather than lived through share one way in. */
export const DECLARED_KINDS = ['workspace', 'persona', 'memory', 'vault', 'connector', 'skill', 'quota'] as const;
export type DeclaredKind = (typeof DECLARED_KINDS)[number];

/** A call of an agent's tool, a write, a handoff: what the gate is asked about. */
export const ProposedAction = Type.Object({
  kind: ClosedWord(ACTION_KINDS),
  tool_call_id: Optional(NonEmpty),
  tool: Optional(NonEmpty),
  server: Optional(NonEmpty),
  definition: Optional(NonEmpty),
  target: Optional(NonEmpty),
  arguments: Optional(OpenObject),
  effect: Optional(ClosedWord(EFFECTS)),
  evidence: Optional(ClosedWord(EVIDENCE)),
  claims: Optional(
    Type.Object({ agent: Optional(NonEmpty), title: Optional(Type.String()), kind: Optional(NonEmpty) }),
  ),
  cwd: Optional(NonEmpty),
  changes: Optional(
    Type.Array(Type.Object({ path: NonEmpty, after: Type.String(), before: Optional(Nullable(Type.String())) })),
  ),
  cost: Optional(Type.Record(Type.String(), Type.Number({ minimum: 0 }))),
  attributes: Optional(
    Type.Unsafe<Record<string, string | number | boolean | readonly string[]>>({
      type: 'object',
      additionalProperties: {
        anyOf: [{ type: ['string', 'integer', 'boolean'] }, { type: 'array', items: { type: 'string' } }],
      },
    }),
  ),
});
export type ProposedAction = Static<typeof ProposedAction>;

/** A fact someone reports about work in progress. Lifecycle events are never reported, only brought about. */
export const FactShape = Type.Object({
  event: NonEmpty,
  payload: OpenObject,
  ext: Optional(OpenObject),
  span_id: Optional(Type.String()),
  trace_id: Optional(Type.String()),
});
export type Fact = Static<typeof FactShape>;

/** How a run ended, as whoever did the work says it. */
export const EndShape = Type.Object({
  state: ClosedWord(['COMPLETED', 'FAILED', 'CANCELED']),
  summary: Optional(Type.String()),
  failure: Optional(Type.Object({ code: NonEmpty, message: Type.String(), details: Optional(OpenObject) })),
  metrics: Optional(OpenObject),
  /** What the work is known not to have told us, in words a receipt can repeat. */
  not_reported: Optional(Type.Array(Type.String())),
});
export type End = Static<typeof EndShape>;

export const ReplayOverride = Type.Object({
  kind: ClosedWord(OVERRIDE_KINDS),
  event_id: Optional(MaybeId),
  target: Optional(MaybeText),
  value: Optional(JsonValue),
  artifact_id: Optional(MaybeId),
  sha256: Optional(Type.Unsafe<string | null>({ type: ['string', 'null'], pattern: '^sha256:[0-9a-f]{64}$' })),
  visibility: Optional(ClosedWord(VISIBILITIES)),
  reason: Optional(MaybeText),
});
export type ReplayOverride = Static<typeof ReplayOverride>;

export const COMMANDS = {
  /** Write a workspace, persona, memory, vault, connector, skill or quota. */
  'resource.create': Body({ object: ClosedWord(DECLARED_KINDS), id: Optional(Id), body: OpenObject }),
  'resource.update': Body({ object: ClosedWord(DECLARED_KINDS), id: Id, body: OpenObject }),
  /** Withdraw it: later reads find nothing, the history stays. */
  'resource.delete': Body({ object: ClosedWord(DECLARED_KINDS), id: Id }),

  'session.create': Body({
    workspace_id: Id,
    persona_id: Optional(MaybeId),
    vault_ids: Optional(Type.Array(Id)),
    memory_ids: Optional(Type.Array(Id)),
    skill_ids: Optional(Type.Array(Id)),
    initial_messages: Optional(Type.Array(MessageInput)),
  }),
  'session.update': Body({ session_id: Id, summary: Optional(MaybeText) }),
  'session.close': Body({ session_id: Id }),
  'session.fork': Body({ session_id: Id, at_event_id: Optional(MaybeId), branch_id: Optional(MaybeId) }),
  'session.truncate': Body({
    session_id: Id,
    keep_first: Type.Integer({ minimum: 0 }),
    reason: Optional(Type.String()),
  }),
  /** Mark that older turns are summarised from here on; nothing is removed from the log. */
  'session.compact': Body({ session_id: Id, summary: Type.String(), through_message_id: Id }),
  'message.append': Body({ session_id: Id, message: MessageInput }),

  'branch.create': Body({
    session_id: Id,
    kind: ClosedWord(BRANCH_KINDS),
    base_ref: NonEmpty,
    parent_branch_id: Optional(MaybeId),
    task_id: Optional(MaybeId),
  }),
  'branch.end': Body({ branch_id: Id, as: ClosedWord(['merged', 'abandoned']), merged_into: Optional(Type.String()) }),

  'task.submit': Body({
    session_id: Optional(Id),
    /** In place of a session that is there: one that is opened for this work, in the same commit. */
    session: Optional(Type.Object({ workspace_id: Id, persona_id: Optional(MaybeId), metadata: Optional(OpenObject) })),
    input: OpenObject,
    persona_id: Optional(MaybeId),
    branch_id: Optional(MaybeId),
    parent_task_id: Optional(MaybeId),
    /** Which backend does the work. `none`: someone outside does it and only reports to us. */
    agent: Optional(NonEmpty),
    /** What work that policy forbids is answered with: a fault, or a task on record that ended before it began. */
    refusal: Optional(ClosedWord(['fault', 'task'])),
  }),
  /** With a failure the work is stopped because it has failed, not because someone changed their mind. */
  'task.cancel': Body({ task_id: Id, reason: Optional(MaybeText), failure: Optional(Failure) }),
  /** Whoever does the work has fallen silent: it is let go, and taken up again from what the log holds. */
  'task.resume': Body({ task_id: Id }),
  'task.message': Body({
    task_id: Id,
    kind: ClosedWord(['input', 'interrupt', 'tool_confirmation']),
    message: MessageInput,
  }),
  /** For work we did not start: what happened, and how it ended. */
  'task.report': Body({ task_id: Id, facts: Optional(Type.Array(FactShape)), end: Optional(EndShape) }),
  'task.replay': Body({
    task_id: Id,
    mode: Optional(ClosedWord(REPLAY_MODES)),
    override: Optional(Type.Record(Type.String(), ReplayOverride)),
    checkpoint_id: Optional(MaybeText),
    checkpoint_event_id: Optional(MaybeId),
    reason: Optional(MaybeText),
  }),

  /** May this be done? Decided, written down, and answered; an escalation waits for a person up to `wait_ms`. */
  'action.propose': Body({
    task_id: Id,
    action: ProposedAction,
    wait_ms: Optional(Type.Integer({ minimum: 0 })),
    /** How long policy may take: its engines give up early enough to say what their silence means. */
    decide_ms: Optional(Type.Integer({ minimum: 1 })),
    /** False for a proposer that would run what it proposed, whatever a rule makes of it: then a rewrite is a refusal. */
    takes_arguments: Optional(Type.Boolean()),
    /** False for a proposer that wants to hear at once that an act is put off. */
    waits_out_deferral: Optional(Type.Boolean()),
  }),
  /** Do this for me: gated, then run by the named tool backend, then recorded. */
  'tool.call': Body({ task_id: Id, action: ProposedAction }),
  'ask.answer': Body({
    ask_id: Id,
    approved: Optional(Type.Boolean()),
    value: Optional(JsonValue),
    reason: Optional(MaybeText),
    /** With a no: the whole task has failed by it, not only what was asked about. */
    failure: Optional(Failure),
  }),

  'artifact.register': Body({
    kind: ClosedWord(ARTIFACT_KINDS),
    mime_type: NonEmpty,
    visibility: ClosedWord(VISIBILITIES),
    uri: Optional(MaybeText),
    sha256: Optional(Type.Unsafe<string | null>({ type: ['string', 'null'], pattern: '^(sha256:)?[a-fA-F0-9]{64}$' })),
    workspace_id: Optional(MaybeId),
    session_id: Optional(MaybeId),
    task_id: Optional(MaybeId),
  }),
  'receipt.verify': Body({ receipt_id: Id, trust_anchor: Optional(MaybeText), at_time: Optional(Timestamp) }),
  'binding.set': Body({ protocol: NonEmpty, scope: Type.String(), wire_id: NonEmpty, to: Pointer }),
  /** A call in another protocol's words: gated as an extension and written down, carried by the door that raised it. */
  passthrough: Body({
    protocol: NonEmpty,
    method: NonEmpty,
    params: Optional(JsonValue),
    session_id: Optional(MaybeId),
    task_id: Optional(MaybeId),
    workspace_id: Id,
    /** The mounted server that is asked; without one the door carries it. */
    server: Optional(NonEmpty),
    /** What it touches, when there is one thing to name. */
    target: Optional(NonEmpty),
    /** What it does to the world, where the door knows. Absent: `unknown` when a server is asked, otherwise `none`. */
    effect: Optional(ClosedWord(EFFECTS)),
    /** Why the door does not carry it: it is only written down as refused. */
    refused: Optional(NonEmpty),
  }),
} as const;

export type CommandKind = keyof typeof COMMANDS;
export type CommandBody<K extends CommandKind> = Static<(typeof COMMANDS)[K]>;

export interface CommandEnvelope {
  readonly actor: Actor;
  /** Retries with the same key and body find what the first one made. `target` defaults to the command and its subject. */
  readonly idempotency?: { readonly key: string; readonly target?: string };
  readonly trace_id?: string;
  readonly ext?: JsonObject;
  /** Bytes that belong to the command, for `artifact.register`. */
  readonly bytes?: Uint8Array;
  /** What the door took out of `task.submit` before it came here; the receipt repeats it. */
  readonly redactions?: readonly RedactionMark[];
  /** For `action.propose`, `tool.call` and `passthrough`: fires when the caller has given up. */
  readonly signal?: AbortSignal;
  /** For the same: handed to whoever runs it, unread. */
  readonly line?: object;
  /** For `action.propose` and `tool.call`: told which question people are asked about it. */
  readonly asked?: (askId: string) => void;
}
export type Command = {
  [K in CommandKind]: CommandEnvelope & { readonly kind: K; readonly body: CommandBody<K> };
}[CommandKind];
export type CommandOf<K extends CommandKind> = Extract<Command, { kind: K }>;
