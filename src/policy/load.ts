/**
 * Sources in, a policy ready to be asked out, or one fault that lists everything wrong with them. All or nothing: a
 * source that cannot be read in full is not in force in part.
 */
import { createHash } from 'node:crypto';
import type { DetailedError } from '@cedar-policy/cedar-wasm/nodejs';
import { type Rule, readRule } from './cedar-rule.ts';
import { type CedarRuntime, cedarRuntime } from './cedar-runtime.ts';
import { type PolicySource, placeOfByte, splitPolicies } from './cedar-source.ts';
import { type CompiledPolicies, compiledPolicies } from './compiled.ts';
import { type Mention, mentionsIn } from './mentions.ts';
import { type Problem, problemsFault } from './problems.ts';
import { MAX_TEXT_CHARS } from './read-text.ts';
import { asRestricting, whyItLoosens } from './restricting.ts';
import { toCedarPolicy } from './rules.ts';
import { type Path, readRules } from './rules-read.ts';
import type { Locate } from './rules-yaml.ts';
import { createTimeSlices, type GiveWay } from './time-slices.ts';

/**
 * What one decision can take when every rule matches, and one call of a parser when the text is as long as it may be: both
 * stay well under 100 ms, during which nothing else in the process runs. A longer set is a mistake or an attack.
 */
const MAX_RULES = 500;
const MAX_SOURCE_CHARS = MAX_TEXT_CHARS;

export interface PolicyFile {
  /** `.yaml` and `.yml` hold short rules; anything else is Cedar, taken as it is. */
  readonly name: string;
  readonly text: string;
  /** It may only tighten: a rule in it that could loosen anything is a mistake, and its ids are kept apart from all others. */
  readonly restricting?: boolean;
}
export interface Sources {
  /** Short rules: YAML text, or the list as it came out of a configuration. */
  readonly rules?: string | readonly unknown[];
  /** What to call them in messages. */
  readonly rulesName?: string;
  /** Where a member of `rules` stands, when whoever parsed them knows. */
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
  const giveWay = createTimeSlices();
  const parts = await partsOf(sources, problems, giveWay);
  if (parts.length > MAX_RULES) throw refuse(`there are ${parts.length} rules; the limit is ${MAX_RULES}`);
  const mentions: Mention[] = [];
  const rules = await readAll(parts, { problems, mentions }, giveWay, runtime);
  problems.push(...duplicates(rules));
  if (problems.length > 0) throw problemsFault(problems);
  return compiledPolicies(versionOf(sources), parts.map(({ text }) => text).join('\n\n'), rules, mentions);
}

function sizeOf({ rules, files }: Sources): number {
  // A list from a configuration has been read already; its number of rules is what is left to limit.
  return files.reduce((sum, { text }) => sum + text.length, typeof rules === 'string' ? rules.length : 0);
}

function rulesName({ rules, rulesName: given }: Sources): string {
  return given ?? (typeof rules === 'string' ? 'rules.yaml' : 'rules');
}

async function partsOf(sources: Sources, problems: Problem[], giveWay: GiveWay): Promise<readonly PolicySource[]> {
  const { rules, files, locate } = sources;
  const name = rulesName(sources);
  const parts = [
    ...(typeof rules === 'string'
      ? await yamlParts(name, rules, problems, giveWay)
      : await ruleParts(name, rules, locate, problems, giveWay)),
  ];
  for (const file of files) {
    const yaml = /\.ya?ml$/i.test(file.name);
    await giveWay();
    const found = yaml ? await yamlParts(file.name, file.text, problems, giveWay) : splitPolicies(file.name, file.text);
    parts.push(...(file.restricting ? found.map((part) => ({ restricting: true, ...part })) : found));
  }
  return parts;
}

async function yamlParts(
  file: string,
  text: string,
  problems: Problem[],
  giveWay: GiveWay,
): Promise<readonly PolicySource[]> {
  // Imported here, because a house without YAML need not load a parser for it.
  const { countItems, parseYamlRules } = await import('./rules-yaml.ts');
  // Counted before they are parsed: a hundred thousand of them would take the parser seconds.
  const count = countItems(text);
  if (count > MAX_RULES) {
    problems.push({ file, message: `there are ${count} rules; the limit is ${MAX_RULES}` });
    return [];
  }
  const yaml = parseYamlRules(file, text);
  await giveWay();
  problems.push(...yaml.problems);
  return yaml.problems.length > 0 ? [] : await ruleParts(file, yaml.value, yaml.locate, problems, giveWay);
}

async function ruleParts(
  file: string,
  value: unknown,
  locate: Locate | undefined,
  problems: Problem[],
  giveWay: GiveWay,
): Promise<readonly PolicySource[]> {
  if (Array.isArray(value) && value.length > MAX_RULES) {
    problems.push({ file, message: `there are ${value.length} rules; the limit is ${MAX_RULES}` });
    return [];
  }
  const { rules, complaints } = readRules(value);
  for (const { path, atKey, message } of complaints) {
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
    await giveWay();
    const place = locate?.([index]) ?? { line: index + 1, column: 1 };
    parts.push({ file, text: toCedarPolicy(rule), ...place, effectAt: undefined });
  }
  return parts;
}

/** How a complaint names its rule: by its id, or by its place when that is what is missing. */
function ruleNameAt(value: unknown, [index]: Path): string | undefined {
  if (typeof index !== 'number') return undefined;
  const id = (value as readonly { id?: unknown }[])[index]?.id;
  return typeof id === 'string' ? id : `number ${index + 1}`;
}

async function readAll(
  parts: readonly PolicySource[],
  { problems, mentions }: { readonly problems: Problem[]; readonly mentions: Mention[] },
  giveWay: GiveWay,
  given: CedarRuntime | undefined,
): Promise<readonly Rule[]> {
  const rules: Rule[] = [];
  for (const [index, part] of parts.entries()) {
    await giveWay();
    const { file, line, column } = part;
    const answer = (given ?? cedarRuntime()).call((cedar) => cedar.policyToJson(part.text));
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

/** Names count too: a rule without an id is called after its file. */
export function versionOf(sources: Sources): string {
  const { rules, files } = sources;
  const parts = [[rulesName(sources), rules ?? null], ...files.map(fileParts)];
  return `sha256:${createHash('sha256').update(JSON.stringify(parts)).digest('hex')}`;
}

function fileParts({ name, text, restricting }: PolicyFile): readonly unknown[] {
  return restricting ? [name, text, 'restricting'] : [name, text];
}
