/** Whoever says what may happen, and how much of it. */
import type { ActFacts } from '../model/act-facts.ts';
import type { Action, Actor, Decision } from '../model/actions.ts';
import type { Receipt } from '../model/receipt.ts';
import type { Quota } from '../model/resources.ts';
import type { Bridge } from './doors.ts';

export interface PolicyEngine {
  readonly name: string;
  /** `withinMs`: the signal fires after that; an engine that asks others gives them less. */
  decide(action: Action, signal: AbortSignal, withinMs?: number): Promise<Decision>;
  /** What it means that the engine has not answered in time. Absent: a no. */
  unanswered?(action: Action): Decision;
  /** The same answer at once, where nobody has to be waited for; undefined where somebody has. */
  judge?(action: Action): Decision | undefined;
  /** How long it may take over an answer, when that is longer than rules take. */
  readonly patienceMs?: number;
  /** For an engine that wants to know how things went: called once, when the house is open. */
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
  ): { readonly usage: Quota['usage']; readonly reset_at: string | null };
  /** How far work under these quotas may go, as a receipt tells it; undefined when none of them says. */
  budget(quotas: readonly Quota[]): Receipt['autonomy_budget']['limit'];
}

/**
 * Reads what an act touches in one vocabulary, whatever its agent calls it. Lazy: nothing is looked at before it is asked for. `of`: the
 * arguments the act goes by, where it is read from others than those.
 */
export type ActReader = (
  said: Pick<Action, 'kind'> &
    Partial<
      Pick<Action, 'tool' | 'target' | 'arguments' | 'effect' | 'evidence' | 'definition' | 'claims' | 'cwd' | 'root'>
    >,
  of?: Action['arguments'],
) => ActFacts;
