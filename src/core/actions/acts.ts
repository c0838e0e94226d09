/** What core does with acts, and what it needs for that. */
import type { Action, Actor, Decision, ToolResult } from '../../model/actions.ts';
import type { ProposedAction } from '../../model/commands.ts';
import type { Task } from '../../model/resources.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import type {
  ActResult,
  HeldEffect,
  Ids,
  LimitPassed,
  Logger,
  PolicyEngine,
  ReceiptIssuer,
  Store,
} from '../../ports/index.ts';
import type { EffectOfTool } from '../tools/accepted.ts';
import type { CallCounts } from '../tools/call-counts.ts';
import type { CallQuotaOf } from '../tools/call-limits.ts';
import type { EndedCall } from './action-events.ts';
import type { Authorization, RuleOptions } from './authorization.ts';
import type { AuthorizerDeps } from './authorize.ts';
import type { ResultLimits } from './calls/result-size.ts';
import type { Metering } from './charging.ts';
import type { ReadPolicyData } from './policy-data.ts';
import type { Taints } from './taints.ts';
import type { LimitReached } from './time-limits.ts';

export interface ActsDeps extends AuthorizerDeps {
  /** Absent in a replay, whose decisions are on record. */
  readonly readsInOneCommit?: boolean;
  readonly store: Store;
  readonly ids: Ids;
  readonly hash: (value: Json) => string;
  readonly logger: Logger;
  /** Identifies this gateway to one that is given a call. Absent in a replay, which forwards none. */
  readonly issuer?: Pick<ReceiptIssuer, 'sealer' | 'eventHash'>;
  /** Absent in a replay: the recorded results were within the limits. */
  readonly resultLimits?: ResultLimits;
  /** Stores a memory that an agent writes. Absent in a replay, which creates nothing. */
  readonly remember?: (task: Task, actor: Actor, wanted: JsonObject, callId: string) => Promise<string>;
  /** Stops work whose usage is past a hard limit. Absent in a replay, which uses nothing. */
  readonly limitPassed?: LimitReached;
  /** Absent in a replay, which calls nothing. */
  readonly counts?: Pick<CallCounts, 'note'>;
  /** Policy's look at a result. Absent in a replay: the recorded results were looked at. */
  readonly inspect?: NonNullable<PolicyEngine['inspect']>;
  /** The effect of a mounted tool, with what a person has accepted. Absent in a replay, whose acts are on record. */
  readonly effectOf?: EffectOfTool;
  /** The limit of calls of one tool by one caller. Absent in a replay, whose decisions are on record. */
  readonly callQuota?: CallQuotaOf;
  /** Which sessions are tainted by untrusted content. Absent in a replay, as above. */
  readonly taints?: Taints;
}

export interface Acts {
  rule(task: Task, proposed: ProposedAction, options: RuleOptions): Promise<Authorization>;
  perform(task: Task, proposed: ProposedAction, options: RuleOptions, effect?: HeldEffect): Promise<ActResult>;
  /** The refusal of an agent's question to people. Undefined: it may be asked. */
  mayNotAsk(task: Task, question: { key: string; question: string }, actor: Actor): Promise<Decision | undefined>;
  /** False when this call id is already used by another call in the log. */
  sameCall(task: Task, proposed: ProposedAction): Promise<boolean>;
  /** Records the end of a call. */
  ended(task: Task, call: EndedCall, result: ToolResult): Promise<void>;
  /** Policy looks at a result before it is recorded or passed on. A result that could not be looked at is withheld. */
  inspected(action: Action, result: ToolResult): Promise<ToolResult>;
  /** Records the refusal that an agent was given. */
  recordRefusal(task: Task, callId: string, name: string, reason: string): Promise<void>;
  readonly policyData: ReadPolicyData;
  /** Charges reported usage to the task's quotas, in the commit that records the report. */
  metering(task: Task, reports: readonly JsonObject[]): Promise<Metering>;
  /** Stops work that is past a hard limit. */
  limitPassed(task: Task, passed: LimitPassed): void;
}
