/** `tollbridge policy show`: the rules in force as Cedar, exactly as they are evaluated. */
import { loadPolicies } from '../policy/load.ts';
import { type CommonOptions, configFrom } from './context.ts';

export async function policyShow(options: CommonOptions): Promise<void> {
  const config = await configFrom(options);
  const policies = await loadPolicies(await config.policy.load());
  process.stdout.write(`// ${policies.ruleCount} rules, version ${policies.version}\n${policies.text}\n`);
}

/** Exit code 0 and one line when the rules can be loaded; otherwise every problem with its place. */
export async function policyCheck(options: CommonOptions): Promise<void> {
  const config = await configFrom(options);
  const policies = await loadPolicies(await config.policy.load());
  process.stdout.write(`ok: ${policies.ruleCount} rules, version ${policies.version}\n`);
}
