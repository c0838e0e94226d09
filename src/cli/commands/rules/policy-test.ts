/**
 * `tollbridge policy test <file>`: written cases, evaluated with personas' tiers and rules together, without quotas and
 * external engines. A mistake in the file is reported with its position and is no failed case.
 */

import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { Decision } from '../../../model/actions.ts';
import { type Case, readCases } from '../../../policy/rules/cases.ts';
import { runCases } from '../../../runtime/rule-cases.ts';
import { type CommonOptions, configFrom } from '../../context.ts';
import { trouble } from '../../output/error-output.ts';
import { because } from '../../output/event-lines.ts';
import { EXIT } from '../../output/exit-codes.ts';
import { brief, counted } from '../../output/terminal-text.ts';
import { inForce, rulesFrom } from './policy.ts';

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
  let failed = 0;
  for await (const { one, decision, wrong } of runCases(cases, policies)) {
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

function asLine({ name, file, line }: Case, decision: Decision, wrong: string | undefined): string {
  if (!wrong) return `ok   ${brief(name)}\n`;
  return `BAD  ${brief(name)}  (${file}:${line})\n     ${brief(wrong, 300)}${because(decision)}\n`;
}

function asJson({ name, expect, line }: Case, decision: Decision, wrong: string | undefined): string {
  return `${JSON.stringify({ name, line, ok: wrong === undefined, expect, got: decision.verdict, ...(wrong && { wrong }), decision })}\n`;
}
