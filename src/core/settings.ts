/** What core is made of: the parts it is handed, and the limits and defaults it works with. */
import type { Json } from '../model/schema.ts';
import type { AutonomyTier } from '../model/words.ts';
import type {
  ActReader,
  AgentBackend,
  AgentTerms,
  Clock,
  Ids,
  Logger,
  PendingActs,
  Permissions,
  PolicyEngine,
  QuotaRules,
  ReadFileText,
  ReceiptIssuer,
  Signer,
  Store,
  ToolBackend,
  VaultAccess,
} from '../ports/index.ts';
import { RESULT_LIMITS, type ResultLimits } from './actions/calls/result-size.ts';
import type { RecordDeps } from './commands/records.ts';
import type { CleanLarge, LogRedactor } from './events/log.ts';

export interface CoreDeps {
  readonly store: Store;
  readonly policy: PolicyEngine;
  readonly quotas: QuotaRules;
  /** Whether a rule that an approver wants remembered can be enforced; absent where answers are not remembered. */
  readonly requireSound?: Permissions['requireSound'];
  readonly issuer: ReceiptIssuer;
  readonly verify: RecordDeps['verify'];
  readonly signer: Signer;
  /** RFC 8785 text of a value. */
  readonly canonical: (value: Json) => string;
  readonly redactor: LogRedactor;
  readonly backends: readonly AgentBackend[];
  readonly tools: readonly ToolBackend[];
  /** By agent; agents without any are not in it. */
  readonly terms?: ReadonlyMap<string, AgentTerms>;
  /** Why this agent was switched off at run time; undefined while it is on. */
  readonly switchedOff?: (agent: string) => string | undefined;
  /** Reads the facts of an act, whatever names its agent uses. */
  readonly read: ActReader;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly logger: Logger;
  /** Keeps unredacted acts while their questions are open; in memory when absent. */
  readonly pendingActs?: PendingActs;
  /** Reads files, to show what a write would change. */
  readonly readFile?: ReadFileText;
  readonly cleanLarge?: CleanLarge;
  /** Which user may use which secret. Absent: work without a tenant may use any. */
  readonly vaultAccess?: VaultAccess;
  readonly settings?: Partial<Settings>;
  /** Resolves when rules or declarations that changed outside this process are in force here. Awaited before each decision. */
  readonly upToDate?: () => Promise<void> | undefined;
}

export interface Settings {
  readonly defaultAgent: string | undefined;
  /** Without a persona, rules alone decide, and an act that no rule covers is asked about. */
  readonly defaultTier: AutonomyTier;
  readonly policyTimeoutMs: number;
  readonly askExpiresMs: number;
  readonly graceMs: number;
  readonly deferTries: number;
  readonly deferCapMs: number;
  readonly inlineLimit: number;
  readonly artifactLimit: number;
  readonly resultLimits: ResultLimits;
  /** A call without effects that a rule allows may share one commit with its result; the decision is then durable before the answer only. */
  readonly readsInOneCommit: boolean;
  /**
   * Recovers work of agents that this process does not have, and ends it when its process has died. False for short-lived
   * processes: the gateway that the work belongs to recovers it.
   */
  readonly recoversOrphans: boolean;
  /** How often to look for tasks whose process has died. */
  readonly sweepMs: number;
}

/** Values of the settings that a runtime does not choose. */
export const DEFAULTS: Settings = {
  defaultAgent: undefined,
  defaultTier: 'act_auto',
  policyTimeoutMs: 2000,
  askExpiresMs: 60 * 60 * 1000,
  graceMs: 5000,
  deferTries: 5,
  deferCapMs: 60_000,
  inlineLimit: 64 * 1024,
  artifactLimit: 64 * 1024 * 1024,
  resultLimits: RESULT_LIMITS,
  readsInOneCommit: true,
  recoversOrphans: true,
  sweepMs: 10_000,
};
