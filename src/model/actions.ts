/** What someone wants to do, what was decided about it, and what became of it. */

import type { ActFacts } from './act-facts.ts';
import type { Persona, Quota } from './resources.ts';
import type { Json, JsonObject, Open } from './schema.ts';
import type { AutonomyTier, Effect, Evidence, Verdict } from './words.ts';

/** Who is speaking. Doors prove it; the gate decides what it may do. */
export interface Actor {
  readonly id: string;
  /**
   * `person`: one human holds the credential. `service`: a program does, so nothing it says is a person's word. `agent`: acts for
   * others and answers for nobody. `system`: this process itself; no credential speaks for it.
   */
  readonly kind: 'person' | 'service' | 'agent' | 'system';
  /** Absent in a house with one tenant. */
  readonly tenant_id?: string;
  /** Workspaces it may see; absent means all of its tenant's. */
  readonly workspaces?: readonly string[];
  /** `<resource>:<read|write>` words; `*` is all of these. Without `others:read` only its own work is there for it. */
  readonly scopes: readonly string[];
  /** The door it came through, for the record only: nothing is decided by it in core. */
  readonly door?: string;
  /** The only doors its credential opens; absent means every door. Checked where the credential is read. */
  readonly doors?: readonly string[];
  /**
   * Set by a door, never by a credential, on an answer that a person gave in a dialog which this surface showed: an editor's
   * dialog, a form of a client, a terminal, a page in a browser. Counts for `person` only.
   */
  readonly interactive?: true;
  /** For an agent that starts work of its own: the principal whose work that is part of. Owns what the agent starts. */
  readonly on_behalf_of?: string;
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
  'plan',
  'reason',
  'enrich',
  'query',
  'background',
  'answer',
  'extension',
] as const;
export type ActionKind = (typeof ACTION_KINDS)[number];

/** Kinds an agent does to the world: these are what the autonomy tiers speak about. */
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
  /** Who serves the tool. */
  readonly server?: string;
  /** SHA-256 of the tool's definition as it stood when the action was proposed. */
  readonly definition?: string;
  /** The path, address or peer it touches, when there is one. */
  readonly target?: string;
  readonly arguments: JsonObject;
  readonly effect: Effect;
  readonly evidence: Evidence;
  /** What the agent says of its own act. Shown as the agent's words; it may raise the effect and never lowers it. */
  readonly claims?: Claims;
  /** The directory relative paths of this act are meant from. */
  readonly cwd?: string;
  /** The workspace's directory: where relative paths start when the act does not say. Put here by core. */
  readonly root?: string;
  /** What it touches, read from all of the above. Counts only for the arguments it was read from. */
  readonly facts?: ActFacts;
  /** Files it would write, for the person who is asked. Never logged: the arguments name the content by its hash. */
  readonly changes?: readonly FileChange[];
  /** What it is expected to use up, checked against quotas before it runs. */
  readonly cost?: Readonly<Record<string, number>>;
  /** Facts rules may name: annotations, taint, claimed modes. Flat and small. */
  readonly attributes?: Readonly<Record<string, string | number | boolean | readonly string[]>>;
  /** Policy data as of the decision, put here by core so that engines stay pure. */
  readonly persona?: Persona;
  readonly tier?: AutonomyTier;
  readonly quotas?: readonly Quota[];
}

/** An agent's own words about an act, kept apart from what its method and arguments show. */
export interface Claims {
  /** The program, as it names itself: selects the profile that reads its arguments. */
  readonly agent?: string;
  readonly title?: string;
  readonly kind?: string;
}

export interface FileChange {
  readonly path: string;
  readonly after: string;
  /** Null when there is no such file yet; absent when nobody could tell. */
  readonly before?: string | null;
}

export interface Decision {
  readonly verdict: Verdict;
  /** For people: what was decided and why. Never a secret. */
  readonly reason: string;
  /** Machine word for the reason when the bridge itself decided (`policy_timed_out`, `quota_exhausted`, …). */
  readonly code?: string;
  readonly rule_id?: string;
  readonly engine: string;
  readonly policy_version?: string;
  /** For `modify`: the arguments that will run instead. */
  readonly arguments?: JsonObject;
  /** For `defer`: when to ask again. */
  readonly retry_after_ms?: number;
  /** For `escalate`: who should be asked, and for how long. */
  readonly ask?: { readonly to?: readonly string[]; readonly expires_ms?: number };
  /** Keyed digest of the arguments this decision covers: exactly these may run. Stamped by the gate unless the answer is no. */
  readonly arguments_digest?: string;
  /** In the shadow tier: what would have been decided had anything been allowed to act. */
  readonly would_be?: Verdict;
}

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
  /** It may hold what others wrote: the session that gets it is marked in the commit that records it. */
  readonly taint?: Taint;
  readonly ext?: JsonObject;
}

/** Where words of others came from. */
export interface Taint {
  readonly server: string;
  /** The tool, or the request. */
  readonly what: string;
  readonly target?: string;
}

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

export type SideEffect =
  | {
      readonly type: 'fs_write';
      readonly path: string;
      readonly operation: 'create' | 'modify' | 'delete' | 'rename';
      readonly before_sha256?: string | null;
      readonly after_sha256?: string | null;
    }
  | {
      readonly type: 'network';
      readonly destination: string;
      readonly purpose: string;
      readonly bytes_sent?: number;
      /** What a receipt should repeat about it: hashes of what was sent, how it was sent. */
      readonly metadata?: Readonly<Record<string, string>>;
    };

/** What was used up. Money in millionths of a dollar, so that sums are exact. Absent means not reported, never zero. */
export interface Usage {
  readonly provider?: string;
  readonly model?: string;
  readonly usd_micros?: number;
  readonly input_tokens?: number;
  readonly output_tokens?: number;
}
