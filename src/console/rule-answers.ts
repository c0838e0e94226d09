/** Answers about rules, as the server sends them and the page reads them. Types only: the page runs in a browser. */

export interface RuleSource {
  readonly name: string;
  readonly text: string;
  readonly editable: boolean;
  /** Its test cases, from the file beside it; null when there is none yet. */
  readonly cases: string | null;
}

export interface RulesInForce {
  /** Of the files as they are now; `in_force` is what decides. They differ while a file has a mistake. */
  readonly version: string;
  readonly in_force: string | null;
  readonly count: number;
  readonly cedar: string;
  readonly ids: readonly string[];
  readonly sources: readonly RuleSource[];
  readonly history: readonly {
    readonly at: string;
    /** `saved` in the console, then `loaded` or `refused` by the gateway. */
    readonly outcome: string;
    readonly version: string | null;
    readonly rules: number | null;
    readonly by: string | null;
  }[];
}

/** A mistake in rules, where it is known with its place. */
export type RuleProblem = {
  readonly file?: string;
  readonly rule?: string;
  readonly line?: number;
  readonly column?: number;
  readonly message: string;
};

/** One test case under some rules. */
export interface TestedCase {
  readonly name: string;
  readonly line: number;
  readonly expect: string;
  readonly got: string;
  readonly rule: string | null;
  /** How it differs; null when it is as expected. */
  readonly wrong: string | null;
}

/** A past decision that other rules would not have made. */
export interface ChangedDecision {
  readonly object: 'difference';
  readonly kind: string;
  readonly event_id: string;
  readonly tool: string;
  readonly target: string | null;
  readonly actor: string;
  readonly before: string;
  readonly after: string;
  readonly rule: string | null;
  readonly why: string;
}

/** How far the comparison is; the last one is the summary. */
export interface ComparedSoFar {
  readonly object: 'progress' | 'summary';
  readonly done: number;
  readonly same: number;
  readonly changed: number;
  readonly unknown: number;
}

export type ComparedDecision = ChangedDecision | ComparedSoFar;
