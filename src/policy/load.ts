/**
 * Sources in, a policy ready to be asked out, or one fault that lists everything wrong with them. All or nothing: a
 * source that cannot be read in full is not in force in part.
 */
import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type { DetailedError } from '@cedar-policy/cedar-wasm/nodejs';
import { type Rule, readRule } from './cedar-rule.ts';
import { type CedarRuntime, cedarRuntime } from './cedar-runtime.ts';
import { type PolicySource, placeOfByte, splitPolicies } from './cedar-source.ts';
import { type CompiledPolicies, compiledPolicies } from './compiled.ts';
import { type Problem, problemsFault } from './problems.ts';

/** Evaluating costs a few microseconds per rule and decision; past these limits a set is a mistake or an attack. */
export const MAX_RULES = 10_000;
export const MAX_SOURCE_CHARS = 8 * 1_024 * 1_024;
/** Parsing yields to everyone else this often. */
const BATCH = 50;

export interface PolicyFile {
  readonly name: string;
  readonly text: string;
}
export interface Sources {
  readonly files: readonly PolicyFile[];
}

export async function loadPolicies(sources: Sources, runtime?: CedarRuntime): Promise<CompiledPolicies> {
  const { files } = sources;
  const version = versionOf(files);
  const total = files.reduce((sum, { text }) => sum + text.length, 0);
  if (total > MAX_SOURCE_CHARS)
    refuse(files, `the policy is ${total} characters long; the limit is ${MAX_SOURCE_CHARS}`);
  const parts = files.flatMap(({ name, text }) => splitPolicies(name, text));
  if (parts.length > MAX_RULES) refuse(files, `there are ${parts.length} rules; the limit is ${MAX_RULES}`);
  const { rules, problems } = await readAll(parts, runtime);
  problems.push(...duplicates(rules));
  if (problems.length > 0) throw problemsFault(problems);
  return compiledPolicies(version, files.map(({ text }) => text).join('\n'), rules);
}

async function readAll(parts: readonly PolicySource[], given: CedarRuntime | undefined) {
  const rules: Rule[] = [];
  const problems: Problem[] = [];
  for (const [index, part] of parts.entries()) {
    if (index % BATCH === BATCH - 1) await setImmediate();
    const { file, line, column } = part;
    const answer = (given ?? cedarRuntime()).call((cedar) => cedar.policyToJson(part.text));
    if (!answer) {
      problems.push({ file, line, column, message: 'too long or too deeply nested for the evaluator; split the rule' });
    } else if (answer.type === 'failure') {
      problems.push(...answer.errors.map((error) => syntaxProblem(part, error)));
    } else {
      const read = readRule(answer.json, part, index);
      if ('rule' in read) rules.push(read.rule);
      else problems.push(...read.problems.map((message) => ({ file, rule: read.id, line, column, message })));
    }
  }
  return { rules, problems };
}

function syntaxProblem(part: PolicySource, error: DetailedError): Problem {
  const [label] = error.sourceLocations ?? [];
  const place = label ? placeOfByte(part, label.start) : { line: part.line, column: part.column };
  const message = error.message.replace(/^failed to parse policy from string: /, '');
  const hints = [label?.label, error.help].filter((hint) => hint);
  const rule = /@id\("([^"\\]*)"\)/.exec(part.text)?.[1];
  return {
    file: part.file,
    ...(rule !== undefined && { rule }),
    ...place,
    message: [message, ...hints].join('; '),
  };
}

function duplicates(rules: readonly Rule[]): readonly Problem[] {
  const first = new Map<string, Rule>();
  return rules.flatMap((rule) => {
    const known = first.get(rule.id);
    if (!known) {
      first.set(rule.id, rule);
      return [];
    }
    const message = `the id is already taken in ${known.file}:${known.line}; every rule needs its own`;
    return [{ file: rule.file, rule: rule.id, line: rule.line, message }];
  });
}

function refuse(files: readonly PolicyFile[], message: string): never {
  throw problemsFault([{ file: files.map(({ name }) => name).join(', '), message }]);
}

/** Names count too: a rule without an id is called after its file. */
function versionOf(files: readonly PolicyFile[]): string {
  const hash = createHash('sha256');
  for (const { name, text } of files) hash.update(JSON.stringify([name, text]));
  return `sha256:${hash.digest('hex')}`;
}
