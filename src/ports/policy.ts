/** The port of a policy engine and of quota arithmetic: which acts may happen, and how much of them. */
import type { ActFacts } from '../model/act-facts.ts';
import type { Action, Actor, Decision, ToolResult } from '../model/actions.ts';
import type { Receipt } from '../model/receipt.ts';
import type { PermissionRule, Quota, Session } from '../model/resources.ts';
import type { Bridge } from './doors.ts';

export interface PolicyEngine {
  readonly name: string;
  /** The signal fires after `withinMs`; an engine that asks another service gives it less time than that. */
  decide(action: Action, signal: AbortSignal, withinMs?: number): Promise<Decision>;
  /** The decision that counts when the engine has not answered in time. Absent: block. */
  unanswered?(action: Action): Decision;
  /** The same decision synchronously, where the engine need not wait for anything; undefined where it must. */
  judge?(action: Action): Decision | undefined;
  /** The engine's timeout, when it needs longer than rules do. */
  readonly extraTimeMs?: number;
  /**
   * Looks at the result of a call before it is recorded or passed on: the same result, or what replaces it (redacted, withheld,
   * with a taint). The call has run either way. An engine that throws withholds the result.
   */
  inspect?(action: Action, result: ToolResult): ToolResult | Promise<ToolResult>;
  /** For an engine that follows the outcome of acts: called once, when the gateway is open. */
  listen?(bridge: Bridge, actor: Actor): void;
  close?(): Promise<void>;
}

/** The arithmetic of quotas, asked once before the work and once more inside the commit that charges it. */
export interface QuotaRules {
  /** A refusal when this cost does not fit; undefined when it does. */
  refuse(quota: Quota, cost: Readonly<Record<string, number>>, now: string): Decision | undefined;
  charge(
    quota: Quota,
    cost: Readonly<Record<string, number>>,
    now: string,
  ): { readonly usage: Quota['usage']; readonly reset_at: string | null; readonly minute_ends_at?: string };
  /** Why work under this quota has to stop: its reported usage, or its time, is past a hard limit. */
  passed(quota: Quota, now: string): LimitPassed | undefined;
  /** Soft limits that a charge up to these figures exceeds. */
  softPassed(quota: Quota, after: Quota['usage'], now: string): readonly string[];
  /** Milliseconds that work under this quota may still take; undefined when it has no time limit. */
  timeLeft(quota: Quota, now: string): number | undefined;
  /** The budget of these quotas as a receipt states it; undefined when none of them sets one. */
  budget(quotas: readonly Quota[]): Receipt['autonomy_budget']['limit'];
  /** The limits that applied and that have no member in a receipt's budget. */
  otherLimits(quotas: readonly Quota[]): Readonly<Record<string, number>>;
}

export interface LimitPassed {
  readonly quota_id: string;
  readonly limit: string;
  readonly allowed: number;
  readonly used: number | undefined;
}

/**
 * Reads the commands, paths, URLs and contents of an act into one vocabulary for every agent. Lazy: an argument is read only when a
 * rule needs it. `of` names the act's own arguments where the facts are read from others.
 */
export type ActReader = (
  act: Pick<Action, 'kind'> &
    Partial<
      Pick<Action, 'tool' | 'target' | 'arguments' | 'effect' | 'evidence' | 'definition' | 'claims' | 'cwd' | 'root'>
    >,
  of?: Action['arguments'],
) => ActFacts;

/** Questions a door may put to policy without proposing an act. */
export interface Permissions {
  /** Version of the rules in force. */
  version(): string;
  /** The decision that such an act would get in this session. Nothing is run and nothing is recorded. */
  check(act: HypotheticalAct): Promise<Decision>;
  /** Throws a fault when the engine could not enforce this rule. */
  requireSound(rule: RuleDraft): Promise<void>;
}

/** A rule before it is recorded. */
export type RuleDraft = Omit<PermissionRule, 'id' | 'object' | 'created_at' | 'updated_at' | 'metadata'>;

export interface HypotheticalAct extends Pick<Action, 'kind' | 'actor' | 'arguments' | 'effect'> {
  readonly session: Session;
  readonly tool?: string;
  readonly target?: string;
}
