/** Written cases, evaluated with personas' tiers and rules together, without quotas and external engines. */
import type { Action, Decision } from '../model/actions.ts';
import type { Persona } from '../model/resources.ts';
import type { CompiledPolicies } from '../policy/cedar/compiled.ts';
import { createCedarEngine } from '../policy/cedar/engine.ts';
import { createPolicyChain } from '../policy/chain.ts';
import { createPersonaEngine } from '../policy/persona.ts';
import { type Case, WORDS } from '../policy/rules/cases.ts';
import { canonicalJson } from '../receipt/seal/canonical-json.ts';
import { readAct } from './read-act.ts';

export interface CaseResult {
  readonly one: Case;
  readonly decision: Decision;
  /** How the decision differs from the expected one; undefined when it does not. */
  readonly wrong: string | undefined;
}

export async function* runCases(cases: readonly Case[], policies: CompiledPolicies): AsyncGenerator<CaseResult> {
  const chain = createPolicyChain({ engines: [createPersonaEngine(), createCedarEngine({ policies, read: readAct })] });
  for (const [index, one] of cases.entries()) {
    const decision = await chain.decide(actionOf(one, index), new AbortController().signal);
    yield { one, decision, wrong: difference(one, decision) };
  }
}

/** Members a case leaves out default to those of an agent's tool call. */
function actionOf({ action }: Case, index: number): Action {
  const { principal, workspace, session, persona, ...rest } = action;
  const [kind, id] = principalOf(principal ?? 'agent:test');
  return {
    id: `case_${index + 1}`,
    kind: 'tool',
    workspace_id: workspace ?? 'workspace_test',
    ...(session && { session_id: session }),
    effect: 'unknown',
    evidence: 'held',
    tier: 'act_auto',
    arguments: {},
    ...rest,
    actor: {
      id,
      kind,
      scopes: [],
      ...(action.door && { door: action.door }),
      ...(action.tenant && { tenant_id: action.tenant }),
    },
    ...(persona && { persona: personaOf(persona) }),
  } as Action;
}

function principalOf(text: string): readonly [Action['actor']['kind'], string] {
  const match = /^(person|service|agent|system):(.+)$/.exec(text);
  return match ? [match[1] as Action['actor']['kind'], match[2] as string] : ['agent', text];
}

/** Only the members that rules read. */
function personaOf(name: string): Persona {
  return { id: name, name, autonomy_tier: 'act_auto' } as Persona;
}

function difference({ expect, rule, arguments: args }: Case, decision: Decision): string | undefined {
  if (decision.verdict !== expect) return `expected ${wordFor(expect)}, got ${wordFor(decision.verdict)}`;
  if (rule !== undefined && decision.rule_id !== rule) {
    return `expected rule ${rule} to decide, got ${decision.rule_id ?? decision.code ?? decision.engine}`;
  }
  if (args !== undefined && canonicalJson(args) !== canonicalJson(decision.arguments ?? {})) {
    return `expected arguments ${JSON.stringify(args)}, got ${JSON.stringify(decision.arguments ?? {})}`;
  }
  return undefined;
}

function wordFor(verdict: string): string {
  return Object.entries(WORDS).find(([word, core]) => core === verdict && word !== core)?.[0] ?? verdict;
}
