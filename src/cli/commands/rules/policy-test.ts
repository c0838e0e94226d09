/**
 * `tollbridge policy test <file>`: written cases, evaluated with personas' tiers and rules together, without quotas and
 * external engines. A mistake in the file is reported with its position and is no failed case.
 */

import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { Action, Decision } from '../../../model/actions.ts';
import type { Persona } from '../../../model/resources.ts';
import { createCedarEngine } from '../../../policy/cedar/engine.ts';
import { createPolicyChain } from '../../../policy/chain.ts';
import { createPersonaEngine } from '../../../policy/persona.ts';
import { canonicalJson } from '../../../receipt/seal/canonical-json.ts';
import { readAct } from '../../../runtime/read-act.ts';
import { type CommonOptions, configFrom } from '../../context.ts';
import { trouble } from '../../output/error-output.ts';
import { because } from '../../output/event-lines.ts';
import { EXIT } from '../../output/exit-codes.ts';
import { brief, counted } from '../../output/terminal-text.ts';
import { inForce, rulesFrom } from './policy.ts';
import { type Case, readCases, WORDS } from './policy-cases.ts';

export interface PolicyTestOptions extends CommonOptions {
  readonly rules?: string;
  readonly json?: boolean;
}

export async function policyTest(file: string, options: PolicyTestOptions): Promise<number> {
  const text = await readFile(file, 'utf8').catch((cause) => {
    throw trouble(
      'not_found',
      `there are no cases to read in ${file}`,
      '"tollbridge policy test --help" shows some',
      cause,
    );
  });
  const { cases, rules } = await readCases(file, text);
  const ruleFile = options.rules ?? (rules && resolve(dirname(file), rules));
  const policies = ruleFile ? await rulesFrom(ruleFile) : await inForce(await configFrom(options));
  const chain = createPolicyChain({ engines: [createPersonaEngine(), createCedarEngine({ policies, read: readAct })] });
  let failed = 0;
  for (const [index, one] of cases.entries()) {
    const decision = await chain.decide(actionOf(one, index), new AbortController().signal);
    const wrong = difference(one, decision);
    if (wrong) failed += 1;
    process.stdout.write(options.json ? asJson(one, decision, wrong) : asLine(one, decision, wrong));
  }
  if (!options.json) {
    process.stdout.write(
      `${counted(cases.length, 'case')}, ${failed === 0 ? 'all as expected' : `${failed} otherwise`}; rules ${policies.version.slice(0, 19)}\n`,
    );
  }
  return failed === 0 ? EXIT.done : EXIT.no;
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

function asLine({ name, file, line }: Case, decision: Decision, wrong: string | undefined): string {
  if (!wrong) return `ok   ${brief(name)}\n`;
  return `BAD  ${brief(name)}  (${file}:${line})\n     ${brief(wrong, 300)}${because(decision)}\n`;
}

function asJson({ name, expect, line }: Case, decision: Decision, wrong: string | undefined): string {
  return `${JSON.stringify({ name, line, ok: wrong === undefined, expect, got: decision.verdict, ...(wrong && { wrong }), decision })}\n`;
}
