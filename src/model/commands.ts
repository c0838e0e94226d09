/** Commands: all requests a door may make of the bridge. Each is one verb with a checked body; the schemas are the doors' contract. */

import { ACTION_KINDS, type Actor } from './actions.ts';
import type { VendorKind } from './events.ts';
import type { EventKind, RedactionMark } from './payloads.ts';
import { Failure, type Memory, MessageInput, Pointer, type Skill } from './resources.ts';
import {
  ClosedWord,
  Id,
  type Json,
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
import { LossShape } from './values/loss.ts';
import {
  ARTIFACT_KINDS,
  AUTONOMY_TIERS,
  BRANCH_KINDS,
  EFFECTS,
  EVIDENCE,
  OVERRIDE_KINDS,
  REPLAY_MODES,
  VISIBILITIES,
} from './words.ts';

const Optional = Type.Optional;
const Body = <P extends TProperties>(properties: P) => Type.Object({ ...properties, metadata: Optional(OpenObject) });

/** Resources that clients declare, rather than core deriving them from work, share these commands. */
export const DECLARED_KINDS = [
  'workspace',
  'persona',
  'memory',
  'vault',
  'connector',
  'skill',
  'quota',
  'permission_rule',
] as const;
export type DeclaredKind = (typeof DECLARED_KINDS)[number];

/** An act put to the gate: a call of an agent's tool, a write, a handoff. */
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
  caller: Optional(
    Type.Object({
      protocol: NonEmpty,
      task_id: NonEmpty,
      tool_call_id: NonEmpty,
      issuer: Optional(NonEmpty),
      key_id: Optional(NonEmpty),
    }),
  ),
  context: Optional(OpenObject),
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

/** A fact reported about work in progress. Lifecycle events cannot be reported; only commands cause them. */
export const FactShape = Type.Object({
  event: Type.Unsafe<EventKind | VendorKind>(NonEmpty),
  payload: OpenObject,
  ext: Optional(OpenObject),
  span_id: Optional(Type.String()),
  trace_id: Optional(Type.String()),
});
export type Fact = Static<typeof FactShape>;

/**
 * The log entry for a memory that was given to work: its id, the work it was for, and its state by time and hash. One event for
 * each memory, whichever door handed it out: a replay looks there for the work's dependencies.
 */
export function memoryRead(memory: Memory, hash: (value: Json) => string, query?: string): Fact {
  const payload = {
    memory_id: memory.id,
    scope: memory.scope,
    owner_id: memory.owner_id,
    as_of: memory.updated_at,
    content_hash: hash(memory.content as Json),
    ...(query && { query }),
  };
  return { event: 'agent.memory_read', payload };
}

/** The end of a run, as the agent or the reporting client states it. */
export const EndShape = Type.Object({
  state: ClosedWord(['COMPLETED', 'FAILED', 'CANCELED']),
  summary: Optional(Type.String()),
  failure: Optional(Type.Object({ code: NonEmpty, message: Type.String(), details: Optional(OpenObject) })),
  metrics: Optional(OpenObject),
  /** Facts the work is known not to have reported, in words a receipt can repeat. */
  not_reported: Optional(Type.Array(Type.String())),
  /** What could not be carried of it, by aspect. */
  loss: Optional(Type.Array(LossShape)),
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
  /** Creates a workspace, persona, memory, vault, connector, skill or quota. */
  'resource.create': Body({ object: ClosedWord(DECLARED_KINDS), id: Optional(Id), body: OpenObject }),
  'resource.update': Body({ object: ClosedWord(DECLARED_KINDS), id: Id, body: OpenObject }),
  /** Withdraws the resource: later reads do not find it, its history stays. */
  'resource.delete': Body({ object: ClosedWord(DECLARED_KINDS), id: Id }),

  'session.create': Body({
    workspace_id: Id,
    persona_id: Optional(MaybeId),
    autonomy_tier: Optional(ClosedWord(AUTONOMY_TIERS)),
    vault_ids: Optional(Type.Array(Id)),
    memory_ids: Optional(Type.Array(Id)),
    skill_ids: Optional(Type.Array(Id)),
    initial_messages: Optional(Type.Array(MessageInput)),
    /** The agent that it is with, in the process that receives this command: work that names no other agent is for this one. */
    agent: Optional(NonEmpty),
  }),
  'session.update': Body({ session_id: Id, summary: Optional(MaybeText), agent: Optional(NonEmpty) }),
  'session.close': Body({ session_id: Id }),
  'session.fork': Body({ session_id: Id, at_event_id: Optional(MaybeId), branch_id: Optional(MaybeId) }),
  'session.truncate': Body({
    session_id: Id,
    keep_first: Type.Integer({ minimum: 0 }),
    reason: Optional(Type.String()),
  }),
  /** Marks that older turns are summarised from here on; nothing is removed from the log. */
  'session.compact': Body({ session_id: Id, summary: Type.String(), through_message_id: Id }),
  'message.append': Body({ session_id: Id, message: MessageInput }),

  'branch.create': Body({
    session_id: Id,
    kind: ClosedWord(BRANCH_KINDS),
    base_ref: NonEmpty,
    parent_branch_id: Optional(MaybeId),
    task_id: Optional(MaybeId),
  }),
  'branch.update': Body({ branch_id: Id, base_ref: Optional(NonEmpty), worktree_uri: Optional(MaybeText) }),
  'branch.end': Body({ branch_id: Id, as: ClosedWord(['merged', 'abandoned']), merged_into: Optional(Type.String()) }),

  'task.submit': Body({
    session_id: Optional(Id),
    /** Instead of an existing session: one that is opened for this work, in the same commit. */
    session: Optional(Type.Object({ workspace_id: Id, persona_id: Optional(MaybeId), metadata: Optional(OpenObject) })),
    input: OpenObject,
    persona_id: Optional(MaybeId),
    branch_id: Optional(MaybeId),
    parent_task_id: Optional(MaybeId),
    /** The backend that does the work. `none`: a program outside the gateway does it and only reports to us. */
    agent: Optional(NonEmpty),
    /**
     * For work outside the gateway whose calls or reports come through this process and no other. When the process is gone the work
     * is ended, at once or after `away_ms` without a report. Absent: the program that does the work may report to any process.
     */
    served: Optional(Type.Object({ away_ms: Optional(Type.Integer({ minimum: 0 })) })),
    /** The response to work that policy forbids: a fault, or a recorded task that ended before it began. */
    refusal: Optional(ClosedWord(['fault', 'task'])),
    /** The consequence of a question of this task that is not answered in time: the act is refused, or the task fails. */
    unanswered: Optional(ClosedWord(['refuse', 'fail'])),
  }),
  /** With `failure`, the task is stopped because it has failed, not because a client canceled it. */
  'task.cancel': Body({ task_id: Id, reason: Optional(MaybeText), failure: Optional(Failure) }),
  /**
   * For an agent that has fallen silent: it is detached, and the task is started again from the log. For work outside the gateway:
   * from now on this process answers for it.
   */
  'task.resume': Body({ task_id: Id }),
  'task.message': Body({
    task_id: Id,
    kind: ClosedWord(['input', 'interrupt', 'tool_confirmation']),
    message: MessageInput,
  }),
  /** Facts, and the end, of work that this gateway did not start. */
  'task.report': Body({
    task_id: Id,
    facts: Optional(Type.Array(FactShape)),
    end: Optional(EndShape),
    /** Reported ends of calls are recorded even after the task has ended, beside its sealed receipt; other late facts are not. */
    late: Optional(Type.Boolean()),
  }),
  'task.replay': Body({
    task_id: Id,
    mode: Optional(ClosedWord(REPLAY_MODES)),
    override: Optional(Type.Record(Type.String(), ReplayOverride)),
    checkpoint_id: Optional(MaybeText),
    checkpoint_event_id: Optional(MaybeId),
    reason: Optional(MaybeText),
  }),

  /** Requests a decision on an act: decided, recorded, and answered; an escalation waits for a person up to `wait_ms`. */
  'action.propose': Body({
    task_id: Id,
    action: ProposedAction,
    wait_ms: Optional(Type.Integer({ minimum: 0 })),
    /** The time policy may take: its engines stop early enough to state which decision their timeout means. */
    decide_ms: Optional(Type.Integer({ minimum: 1 })),
    /** False for a proposer that would run the original arguments even if a rule rewrites them: then a rewrite is a refusal. */
    takes_arguments: Optional(Type.Boolean()),
    /** False for a proposer that wants the answer `defer` at once instead of waiting. */
    waits_out_deferral: Optional(Type.Boolean()),
  }),
  /** Runs a tool call: gated, then run by the named tool backend, then recorded. */
  'tool.call': Body({ task_id: Id, action: ProposedAction }),
  'ask.answer': Body({
    ask_id: Id,
    approved: Optional(Type.Boolean()),
    value: Optional(JsonValue),
    /** With an approval: the arguments to run instead of those asked about. */
    arguments: Optional(OpenObject),
    reason: Optional(MaybeText),
    /** With an approval: for how long the same tool is not asked about again, `session` or a time such as `2h`. */
    for: Optional(NonEmpty),
    /** With a denial: the whole task fails by it, not only the act asked about. */
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
  /** Records that another resource refers to an artifact, or belongs with it. */
  'artifact.link': Body({ artifact_id: Id, to: Pointer }),
  /** Withdraws the content of an artifact. Its existence and its hash stay on record. */
  'artifact.redact': Body({ artifact_id: Id, reason: Optional(MaybeText) }),
  'receipt.verify': Body({ receipt_id: Id, trust_anchor: Optional(MaybeText), at_time: Optional(Timestamp) }),
  'binding.set': Body({ protocol: NonEmpty, scope: Type.String(), wire_id: NonEmpty, to: Pointer }),
  /** A request in another protocol's words: gated as an extension and recorded, carried by the door that raised it. */
  passthrough: Body({
    protocol: NonEmpty,
    method: NonEmpty,
    params: Optional(JsonValue),
    session_id: Optional(MaybeId),
    task_id: Optional(MaybeId),
    workspace_id: Id,
    /** The mounted server that receives the request; without one the door carries it. */
    server: Optional(NonEmpty),
    /** The object it touches, when there is a single one to name. */
    target: Optional(NonEmpty),
    /** Its effect, where the door knows it. Absent: `unknown` when a server is asked, otherwise `none`. */
    effect: Optional(ClosedWord(EFFECTS)),
    /** Why the door does not carry it: the request is only recorded as refused. */
    refused: Optional(NonEmpty),
  }),
} as const;

export type CommandKind = keyof typeof COMMANDS;
export type CommandBody<K extends CommandKind> = Static<(typeof COMMANDS)[K]>;

export interface CommandEnvelope {
  readonly actor: Actor;
  /** Retries with the same key and body get the first one's result. `target` defaults to the command and its subject. */
  readonly idempotency?: { readonly key: string; readonly target?: string };
  readonly trace_id?: string;
  /** The W3C trace state received with the command, sent on with every request the work makes. */
  readonly tracestate?: string;
  readonly trace_flags?: string;
  readonly ext?: JsonObject;
  /** Bytes that belong to the command, for `artifact.register`. */
  readonly bytes?: Uint8Array;
  /** Secrets the door removed from `task.submit` before calling the bridge; the receipt repeats the marks. */
  readonly redactions?: readonly RedactionMark[];
  /**
   * For `task.submit`: the input as the agent gets it, where the door removed secrets from the logged input. In memory only: after
   * a restart the agent gets the logged input. `secrets` are the removed values; the log redacts them wherever they occur.
   */
  readonly unlogged?: { readonly input: JsonObject; readonly secrets: readonly string[] };
  /** For `action.propose`, `tool.call`, `passthrough` and a `session.create` that waits: fires when the caller has given up. */
  readonly signal?: AbortSignal;
  /** For the same commands: the request context, handed unread to the backend that runs the call. */
  readonly context?: object;
  /** For `tool.call`: fires when nobody waits for the call any more, so that an open question about it is closed. */
  readonly withdrawn?: AbortSignal;
  /**
   * For `action.propose` and `tool.call`: called with the id of the question that people are asked about the act. For
   * `session.create` too, whose caller then waits for the answer instead of being refused.
   */
  readonly asked?: (askId: string) => void;
  /** For `tool.call`: the tool, where the door has looked it up. Absent: it is looked up by its name and server. */
  readonly tool?: MountedTool | undefined;
  /**
   * For `tool.call`: the server does not list the tool. The call runs only where a rule allows it, so that the server answers it; no
   * person is asked about it.
   */
  readonly unlisted?: boolean;
  /**
   * For `tool.call`: the decision on a call without effects may be written together with its result. Called when that is so, with the
   * function that writes the decision at once: the door awaits it before it asks its client, or writes, anything about the call.
   */
  readonly unwritten?: (write: () => Promise<void>) => void;
}

/** A tool as the bridge found it: handed back with the call, so that the definition a door has read is the one that is decided on. */
export interface MountedTool {
  readonly skill: Skill;
}

export type Command = {
  [K in CommandKind]: CommandEnvelope & { readonly kind: K; readonly body: CommandBody<K> };
}[CommandKind];
export type CommandOf<K extends CommandKind> = Extract<Command, { kind: K }>;
