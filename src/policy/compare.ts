/**
 * Finds out what other rules would have decided: asks an engine about recorded actions and compares its answers with the recorded
 * ones. Where a rule needs a value the record no longer holds, the answer is "unknown", not a guess.
 */
import type { Action, Decision } from '../model/actions.ts';
import type { PolicyEngine } from '../ports/index.ts';
import type { NamedValue } from './context.ts';
import type { PureEngine } from './engine.ts';
import { changedPaths } from './merge-patch.ts';
import { holdsRedacted, mayHoldRedacted } from './redacted.ts';

interface Recorded {
  readonly action: Action;
  readonly decision: Decision;
}
export interface Comparison {
  readonly action: Action;
  readonly before: Decision;
  readonly after: Decision;
  readonly kind: 'same' | 'changed' | 'unknown';
  readonly why?: string;
}

export async function* compareDecisions(
  recorded: AsyncIterable<Recorded> | Iterable<Recorded>,
  engine: PolicyEngine & Pick<PureEngine, 'inputs'> & { judge?(action: Action): Decision | undefined },
  signal: AbortSignal = new AbortController().signal,
): AsyncGenerator<Comparison, void, undefined> {
  for await (const { action, decision: before } of recorded) {
    if (signal.aborted) return;
    const after = engine.judge?.(action) ?? (await engine.decide(action, signal));
    const hidden = mayHoldRedacted(action) ? hiddenInputs(engine.inputs?.(action) ?? []) : [];
    if (hidden.length > 0) {
      yield {
        action,
        before,
        after,
        kind: 'unknown',
        why: `the rules look at ${hidden.join(', ')}, redacted in the record`,
      };
      continue;
    }
    const why = difference(before, after);
    yield why === undefined ? { action, before, after, kind: 'same' } : { action, before, after, kind: 'changed', why };
  }
}

function hiddenInputs(inputs: readonly NamedValue[]): readonly string[] {
  return [...new Set(inputs.filter(({ value }) => holdsRedacted(value)).map(({ path }) => path))];
}

/** Another reason for the same verdict is no difference; other arguments are. */
function difference(before: Decision, after: Decision): string | undefined {
  if (before.verdict !== after.verdict) return `${before.verdict} → ${after.verdict} (${by(after)})`;
  if (before.would_be !== after.would_be) {
    return `in shadow: ${before.would_be ?? 'not known'} → ${after.would_be ?? 'not known'} (${by(after)})`;
  }
  const changed = changedPaths(before.arguments, after.arguments);
  return changed.length === 0
    ? undefined
    : `other arguments: ${changed.map((path) => path || '/').join(', ')} (${by(after)})`;
}

function by({ rule_id, code, engine }: Decision): string {
  return rule_id ?? code ?? engine;
}
