/**
 * Compiles sources into a policy, or throws one fault that lists everything wrong with them. All or nothing: a source that cannot
 * be read in full is not in force in part.
 */
import { createHash } from 'node:crypto';
import type { DetailedError } from '@cedar-policy/cedar-wasm/nodejs';
import { type CompiledPolicies, compiledPolicies } from '../cedar/compiled.ts';
import { type Rule, readRule } from '../cedar/rule.ts';
import { type CedarRuntime, cedarRuntime } from '../cedar/runtime.ts';
import { type PolicySource, positionOfByte, splitPolicies } from '../cedar/source.ts';
import { createTimeSlices, type YieldTurn } from '../time-slices.ts';
import { type Mention, mentionsIn } from './mentions.ts';
import { type Problem, problemsFault } from './problems.ts';
import { type Path, readRules } from './read.ts';
import { MAX_TEXT_CHARS } from './read-text.ts';
import { asRestricting, whyItLoosens } from './restricting.ts';
import { toCedarPolicy } from './rules.ts';
import type { Locate } from './yaml.ts';

/**
 * Bounds one decision in which every rule matches, and one parser call on the longest text: both stay well under 100 ms, during
 * which nothing else in the process runs. A larger set is a mistake or an attack.
 */
const MAX_RULES = 500;
const MAX_SOURCE_CHARS = MAX_TEXT_CHARS;

export interface PolicyFile {
  /** `.yaml` and `.yml` hold short rules; any other file is Cedar text. */
  readonly name: string;
  readonly text: string;
  /**
   * The file may only tighten: a rule in it that could loosen anything is an error, and its ids are kept apart from all others.
   */
  readonly restricting?: boolean;
}
export interface Sources {
  /** Short rules: YAML text, or the list from a configuration. */
  readonly rules?: string | readonly unknown[];
  /** The name of `rules` in messages. */
  readonly rulesName?: string;
  /** Finds the position of a member of `rules`, when the configuration parser knows it. */
  readonly locate?: Locate;
  readonly files: readonly PolicyFile[];
}

/** The policy, or a Fault whose `details.problems` lists everything that is wrong. */
export async function loadPolicies(sources: Sources, runtime?: CedarRuntime): Promise<CompiledPolicies> {
  const size = sizeOf(sources);
  const everywhere = [...(sources.rules ? [rulesName(sources)] : []), ...sources.files.map(({ name }) => name)].join(
    ', ',
  );
  const refuse = (message: string) => problemsFault([{ file: everywhere, message }]);
  if (size > MAX_SOURCE_CHARS) throw refuse(`the policy is ${size} characters long; the limit is ${MAX_SOURCE_CHARS}`);
  const problems: Problem[] = [];
  const yieldTurn = createTimeSlices();
  const parts = await partsOf(sources, problems, yieldTurn);
  if (parts.length > MAX_RULES) throw refuse(`there are ${parts.length} rules; the limit is ${MAX_RULES}`);
  const mentions: Mention[] = [];
  if (parts.length > 0) await (runtime ?? cedarRuntime()).warm(yieldTurn);
  const rules = await readAll(parts, { problems, mentions }, yieldTurn, runtime);
  problems.push(...duplicates(rules));
  if (problems.length > 0) throw problemsFault(problems);
  return compiledPolicies(versionOf(sources), parts.map(({ text }) => text).join('\n\n'), rules, mentions);
}

function sizeOf({ rules, files }: Sources): number {
  // A list from a configuration has been parsed already; only its number of rules is left to limit.
  return files.reduce((sum, { text }) => sum + text.length, typeof rules === 'string' ? rules.length : 0);
}

function rulesName({ rules, rulesName: name }: Sources): string {
  return name ?? (typeof rules === 'string' ? 'rules.yaml' : 'rules');
}

async function partsOf(sources: Sources, problems: Problem[], yieldTurn: YieldTurn): Promise<readonly PolicySource[]> {
  const { rules, files, locate } = sources;
  const name = rulesName(sources);
  const parts = [
    ...(typeof rules === 'string'
      ? await yamlParts(name, rules, problems, yieldTurn)
      : await ruleParts(name, rules, locate, problems, yieldTurn)),
  ];
  for (const file of files) {
    const yaml = /\.ya?ml$/i.test(file.name);
    await yieldTurn();
    const found = yaml
      ? await yamlParts(file.name, file.text, problems, yieldTurn)
      : splitPolicies(file.name, file.text);
    parts.push(...(file.restricting ? found.map((part) => ({ restricting: true, ...part })) : found));
  }
  return parts;
}

async function yamlParts(
  file: string,
  text: string,
  problems: Problem[],
  yieldTurn: YieldTurn,
): Promise<readonly PolicySource[]> {
  // Imported on demand: an installation without YAML rules need not load the parser.
  const { countItems, parseYamlRules } = await import('./yaml.ts');
  // Counted before parsing: a hundred thousand rules would take the parser seconds.
  const count = countItems(text);
  if (count > MAX_RULES) {
    problems.push({ file, message: `there are ${count} rules; the limit is ${MAX_RULES}` });
    return [];
  }
  const yaml = parseYamlRules(file, text);
  await yieldTurn();
  problems.push(...yaml.problems);
  return yaml.problems.length > 0 ? [] : await ruleParts(file, yaml.value, yaml.locate, problems, yieldTurn);
}

async function ruleParts(
  file: string,
  value: unknown,
  locate: Locate | undefined,
  problems: Problem[],
  yieldTurn: YieldTurn,
): Promise<readonly PolicySource[]> {
  if (Array.isArray(value) && value.length > MAX_RULES) {
    problems.push({ file, message: `there are ${value.length} rules; the limit is ${MAX_RULES}` });
    return [];
  }
  const { rules, mistakes } = readRules(value);
  for (const { path, atKey, message } of mistakes) {
    const rule = ruleNameAt(value, path);
    const inside = path.slice(1).join('.');
    problems.push({
      file,
      ...(rule !== undefined && { rule }),
      ...locate?.(path, atKey),
      message: inside && !atKey ? `${inside}: ${message}` : message,
    });
  }
  const parts: PolicySource[] = [];
  for (const [index, rule] of rules.entries()) {
    await yieldTurn();
    const position = locate?.([index]) ?? { line: index + 1, column: 1 };
    parts.push({ file, text: toCedarPolicy(rule), ...position, effectAt: undefined });
  }
  return parts;
}

/** How a message names its rule: by its id, or by its index when the id is missing. */
function ruleNameAt(value: unknown, [index]: Path): string | undefined {
  if (typeof index !== 'number') return undefined;
  const id = (value as readonly { id?: unknown }[])[index]?.id;
  return typeof id === 'string' ? id : `number ${index + 1}`;
}

async function readAll(
  parts: readonly PolicySource[],
  { problems, mentions }: { readonly problems: Problem[]; readonly mentions: Mention[] },
  yieldTurn: YieldTurn,
  runtime: CedarRuntime | undefined,
): Promise<readonly Rule[]> {
  const rules: Rule[] = [];
  for (const [index, part] of parts.entries()) {
    await yieldTurn();
    const { file, line, column } = part;
    const answer = (runtime ?? cedarRuntime()).call((cedar) => cedar.policyToJson(part.text));
    if (!answer) {
      problems.push({ file, line, column, message: 'too long or too deeply nested for the evaluator; split the rule' });
    } else if (answer.type === 'failure') {
      problems.push(...answer.errors.map((error) => syntaxProblem(part, error)));
    } else {
      const read = readRule(answer.json, part, index);
      const loosens = part.restricting && 'rule' in read ? whyItLoosens(read.rule, answer.json.effect) : undefined;
      if (loosens && 'rule' in read) problems.push({ file, rule: read.rule.id, line, column, message: loosens });
      else if ('rule' in read) {
        const { id: rule, ask } = read.rule;
        rules.push(part.restricting ? asRestricting(read.rule) : read.rule);
        mentions.push(...mentionsIn(answer.json, { rule, approvers: ask?.to ?? [] }, { file, line, column }));
      } else problems.push(...read.problems.map((message) => ({ file, rule: read.id, line, column, message })));
    }
  }
  return rules;
}

function syntaxProblem(part: PolicySource, error: DetailedError): Problem {
  const [label] = error.sourceLocations ?? [];
  const position = label ? positionOfByte(part, label.start) : { line: part.line, column: part.column };
  const message = error.message.replace(/^failed to parse policy from string: /, '');
  const hints = [label?.label, error.help].filter((hint) => hint);
  const rule = /@id\("([^"\\]*)"\)/.exec(part.text)?.[1];
  return {
    file: part.file,
    ...(rule !== undefined && { rule }),
    ...position,
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

/** Includes file names: a rule without an id is named after its file. */
export function versionOf(sources: Sources): string {
  const { rules, files } = sources;
  const parts = [[rulesName(sources), rules ?? null], ...files.map(fileParts)];
  return `sha256:${createHash('sha256').update(JSON.stringify(parts)).digest('hex')}`;
}

function fileParts({ name, text, restricting }: PolicyFile): readonly unknown[] {
  return restricting ? [name, text, 'restricting'] : [name, text];
}
