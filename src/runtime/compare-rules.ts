/** Rules as they are put to recorded acts: `policy diff` and the console ask the same ones in the same way. */
import { readOnSnapshot } from '../policy/acts/match.ts';
import type { CompiledPolicies } from '../policy/cedar/compiled.ts';
import { createCedarEngine } from '../policy/cedar/engine.ts';
import { createPolicyChain, type PolicyChain } from '../policy/chain.ts';
import { decideOnce } from '../policy/decide-once.ts';
import { createPersonaEngine } from '../policy/persona.ts';
import { readAct } from './read-act.ts';

export function rulesToCompare(policies: CompiledPolicies): PolicyChain {
  const cedar = createCedarEngine({ policies, read: readOnSnapshot(readAct) });
  return decideOnce(createPolicyChain({ engines: [createPersonaEngine(), cedar] }), policies);
}
