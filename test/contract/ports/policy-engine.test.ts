/** Every policy engine there is, held to the contract of the port. */
import { anAction, aPersona, aQuota, NOW } from '../../../fixtures/policies/actions.ts';
import type { Action } from '../../../src/model/actions.ts';
import { createCedarEngine } from '../../../src/policy/cedar/engine.ts';
import { createPolicyChain } from '../../../src/policy/chain.ts';
import { createPersonaEngine } from '../../../src/policy/persona.ts';
import { createQuotaEngine } from '../../../src/policy/quota.ts';
import { loadPolicies } from '../../../src/policy/rules/load.ts';
import type { PolicyEngine } from '../../../src/ports/index.ts';
import { readAct } from '../../../src/runtime/read-act.ts';
import { harness, type Script, upstream } from '../../support/ahp/harness.ts';
import { type EngineUnderTest, policyEngineContract } from './policy-engine.ts';

const CEDAR = `
permit(principal, action, resource);
@id("no-mail")
@reason("mail stays here")
forbid(principal, action, resource) when { context has tool && context.tool == "mail" };
`;
const RULES = `
- { id: rest, then: allow }
- { id: no-mail, when: { tool: mail }, then: block, say: mail stays here }
`;
const acts = { allowed: anAction({ tool: 'look' }), refused: anAction({ tool: 'mail', effect: 'send' }) };

const engines = {
  async cedar(): Promise<PolicyEngine> {
    return createCedarEngine({
      read: readAct,
      policies: await loadPolicies({ files: [{ name: 'a.cedar', text: CEDAR }] }),
    });
  },
  async rules(): Promise<PolicyEngine> {
    return createCedarEngine({ read: readAct, policies: await loadPolicies({ rules: RULES, files: [] }) });
  },
};

policyEngineContract('Cedar policies', { make: async () => ({ engine: await engines.cedar(), ...acts }) });
policyEngineContract('short rules', { make: async () => ({ engine: await engines.rules(), ...acts }) });

policyEngineContract('persona', {
  make: async () => ({
    engine: createPersonaEngine(),
    allowed: anAction({ tool: 'look' }),
    refused: anAction({ tool: 'mail', effect: 'send', persona: aPersona({ autonomy_tier: 'suggest' }) }),
  }),
});

policyEngineContract('quota', {
  make: async () => ({
    engine: createQuotaEngine({ clock: { now: () => NOW } }),
    allowed: anAction({ quotas: [aQuota()], cost: { tool_calls: 1 } }),
    refused: anAction({ quotas: [aQuota({ usage: { tool_calls: 10 } })], cost: { tool_calls: 1 } }),
  }),
});

policyEngineContract('chain', {
  make: () => chained({ name: 'fine', decide: async () => ({ verdict: 'allow', reason: 'fine', engine: 'fine' }) }),
  silent: () => chained({ name: 'silent', decide: () => new Promise(() => {}) }),
  failing: () =>
    chained({
      name: 'failing',
      decide: async () => {
        throw new Error('no connection');
      },
    }),
});

async function chained(last: PolicyEngine): Promise<EngineUnderTest> {
  const own = [createPersonaEngine(), createQuotaEngine({ clock: { now: () => NOW } }), await engines.rules()];
  return { engine: createPolicyChain({ engines: [...own, last], timeoutMs: 100 }), ...acts };
}

const ALLOW = { decision: 'allow', reason: 'fine' };
const isMail = (message: object) => JSON.stringify(message).includes('"mail"');

policyEngineContract('outside harness (AHP)', {
  make: () =>
    asked((message, say) => {
      const decision = isMail(message) ? { decision: 'block', reason: 'mail stays here' } : ALLOW;
      say({ jsonrpc: '2.0', id: message.id, result: decision });
    }),
  silent: () => asked(() => {}),
  failing: () => asked((_message, _say, socket) => void socket.destroy()),
});

async function asked(script: Script): Promise<EngineUnderTest> {
  const { path } = await harness(script);
  const engine = upstream({ socket: path });
  const act = (more: Partial<Action>): Action => anAction({ session_id: 'session_1', ...more });
  return { engine, allowed: act({ tool: 'look' }), refused: act({ tool: 'mail', effect: 'send' }) };
}

policyEngineContract('outside harness (AHP) that answers nonsense', {
  make: () =>
    asked((message, say) => {
      const decision = isMail(message) ? { decision: 'surely', reason: 7 } : ALLOW;
      say({ jsonrpc: '2.0', id: message.id, result: decision });
    }),
});
