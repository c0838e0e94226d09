/**
 * What every engine of this room shares: how an answer is worded, and which of several answers counts.
 * Engines here are pure: they look at the action they are given and touch no store, no clock but the one handed in.
 */
import type { Action, Decision } from '../model/actions.ts';
import { VERDICTS, type Verdict } from '../model/words.ts';
import type { PolicyEngine } from '../ports.ts';
import type { NamedValue } from './context.ts';

/** An engine that needs no waiting: the chain asks it directly and spares a promise and a timer per decision. */
export interface PureEngine extends PolicyEngine {
  judge(action: Action): Decision;
  /** What the engine looks at in this action: values in here that were redacted make a comparison worthless. */
  inputs?(action: Action): readonly NamedValue[];
  /** Version of the rules it decides by, when it has any. */
  readonly version?: string | undefined;
}

export function pureEngine(name: string, judge: (action: Action) => Decision): PureEngine {
  return { name, judge, decide: async (action) => judge(action) };
}

export function isPure(engine: PolicyEngine): engine is PureEngine {
  return typeof (engine as Partial<PureEngine>).judge === 'function';
}

/** Smaller is stricter. A word that is on no list is stricter than all of them. */
export function rank(verdict: string): number {
  return (VERDICTS as readonly string[]).indexOf(verdict);
}

export function stricter(a: Verdict, b: Verdict): boolean {
  return rank(a) < rank(b);
}

export function block(engine: string, code: string, reason: string): Decision {
  return { verdict: 'block', code, reason, engine };
}

/** Said by an engine that has no objection: the answer of whoever does object, or allows by name, goes before it. */
export function noObjection(engine: string, reason: string): Decision {
  return { verdict: 'allow', code: 'no_objection', reason, engine };
}
