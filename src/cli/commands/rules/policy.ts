/** `tollbridge policy show|check`: the rules in force as Cedar, exactly as they are evaluated. */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { asFault } from '../../../model/faults.ts';
import type { Persona } from '../../../model/resources.ts';
import { everyRow } from '../../../model/values/every-row.ts';
import type { CompiledPolicies } from '../../../policy/cedar/compiled.ts';
import { loadPolicies } from '../../../policy/rules/load.ts';
import { unknownNames } from '../../../policy/rules/mentions.ts';
import { problemsFault } from '../../../policy/rules/problems.ts';
import type { Row, Store } from '../../../ports/index.ts';
import type { Config } from '../../../runtime/config/config.ts';
import { readConfig } from '../../../runtime/config/config.ts';
import { type CommonOptions, configFrom, hasLog, lookInto } from '../../context.ts';
import { trouble } from '../../output/error-output.ts';
import { EXIT } from '../../output/exit-codes.ts';
import { counted, terminalText } from '../../output/terminal-text.ts';

interface PolicyOptions extends CommonOptions {
  readonly json?: boolean;
}

export async function policyShow(options: PolicyOptions): Promise<void> {
  const { ruleCount: rules, version, text } = await inForce(await configFrom(options));
  process.stdout.write(
    options.json
      ? `${JSON.stringify({ rules, version, text })}\n`
      : `// ${counted(rules, 'rule')}, version ${version}\n${text}\n`,
  );
}

/**
 * Exit code 0 and one line when the rules can be loaded and every persona, agent and door that rules and configuration
 * name exists; otherwise every problem with its position.
 */
export async function policyCheck(options: PolicyOptions): Promise<number> {
  try {
    const config = await configFrom(options);
    const policies = await inForce(config);
    await requireNames(config, policies, options);
    const { ruleCount: rules, version, rules: all } = policies;
    const files = filesThatCount(all);
    process.stdout.write(
      options.json
        ? `${JSON.stringify({ ok: true, rules, version, files, problems: [] })}\n`
        : `ok: ${counted(rules, 'rule')}, version ${version}\n${files.map(({ file, rules }) => `  ${terminalText(file)}: ${counted(rules, 'rule')}\n`).join('')}`,
    );
    return EXIT.done;
  } catch (thrown) {
    const { kind, message, details } = asFault(thrown);
    if (!options.json || kind !== 'invalid_request') throw thrown;
    const problems = details?.problems ?? [{ message }];
    process.stdout.write(`${JSON.stringify({ ok: false, rules: null, version: null, problems })}\n`);
    return EXIT.usageError;
  }
}

async function requireNames(config: Config, { mentions }: CompiledPolicies, options: PolicyOptions): Promise<void> {
  const [{ adapters }, { mountsOf }, { knownNames, unknownInDoors }] = await Promise.all([
    import('../../../../adapters/index.ts'),
    import('../../../runtime/mounts/mounts.ts'),
    import('../../../runtime/mounts/known-names.ts'),
  ]);
  mountsOf(config, adapters);
  const personas = (await hasLog(config)) ? await lookInto(options, ({ store }) => personasIn(store)) : [];
  const known = knownNames(config, { personas, doors: adapters.map(({ name }) => name) });
  const [fault] = unknownInDoors(config, known);
  const problems = unknownNames(mentions, known);
  if (problems.length > 0) throw problemsFault(problems);
  if (fault) throw fault;
}

/** Personas created through the API, besides those of the configuration. */
async function personasIn(store: Pick<Store, 'list'>): Promise<readonly (Persona & Row)[]> {
  const found: (Persona & Row)[] = [];
  const all = everyRow((paging) => store.list<Persona & Row>({ object: 'persona', ...paging }));
  for await (const persona of all) found.push(persona);
  return found;
}

/** The files of the rules in force, in the order they were read. */
function filesThatCount(
  rules: CompiledPolicies['rules'],
): readonly { readonly file: string; readonly rules: number }[] {
  const counts = new Map<string, number>();
  for (const { file } of rules) counts.set(file, (counts.get(file) ?? 0) + 1);
  return [...counts].map(([file, count]) => ({ file, rules: count }));
}

export async function inForce(config: Config): Promise<CompiledPolicies> {
  return await loadPolicies(await config.policy.load());
}

/** Rules from a file by themselves; a whole configuration is read as one, so that its `rules` and `policies` count. */
export async function rulesFrom(file: string): Promise<CompiledPolicies> {
  const name = resolve(file);
  const text = await readFile(name, 'utf8').catch((cause) => {
    throw trouble('not_found', `there are no rules to read in ${file}`, 'give a .yaml or .cedar file', cause);
  });
  if (/\.ya?ml$/i.test(name) && !(await isRuleList(text))) {
    return await inForce(await readConfig({ env: process.env, cwd: process.cwd(), file: name }));
  }
  return await loadPolicies({ files: [{ name, text }] });
}

/** A list, or `rules:` and nothing else, is a rule file. Anything else is read as a configuration. */
async function isRuleList(text: string): Promise<boolean> {
  const { parseYamlRules } = await import('../../../policy/rules/yaml.ts');
  const { value, problems } = parseYamlRules('rules', text);
  return problems.length > 0 || value === null || value === undefined || Array.isArray(value);
}
