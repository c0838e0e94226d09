/**
 * Shared by all engines of this folder: the wording of an answer, and which of several answers counts. These engines are pure:
 * they look at the action they are given and use no store, and no clock but the one passed in.
 */
import type { Action, Decision } from '../model/actions.ts';
import { VERDICTS, type Verdict } from '../model/words.ts';
import type { PolicyEngine } from '../ports/index.ts';
import type { NamedValue } from './context.ts';

/** A synchronous engine: the chain calls it directly and saves a promise and a timer per decision. */
export interface PureEngine extends PolicyEngine {
  judge(action: Action): Decision;
  /** The values the engine looks at in this action: a redacted value among them makes a comparison worthless. */
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

/** Smaller is stricter. An unknown verdict is stricter than all known ones. */
export function rank(verdict: string): number {
  return (VERDICTS as readonly string[]).indexOf(verdict);
}

export function stricter(a: Verdict, b: Verdict): boolean {
  return rank(a) < rank(b);
}

export function block(engine: string, code: string, reason: string): Decision {
  return { verdict: 'block', code, reason, engine };
}

/** The answer of an engine without objection: the answer of an engine that objects, or allows by a rule, takes precedence. */
export function noObjection(engine: string, reason: string): Decision {
  return { verdict: 'allow', code: 'no_objection', reason, engine };
}
