/**
 * The time a policy has for its answer does not include loading the rule engine, which is WebAssembly and takes longer than some
 * time limits. A file of its own: the engine must never have been asked in this process.
 */
import { expect, test } from 'vitest';
import { anAction } from '../../../fixtures/policies/actions.ts';
import { createGate } from '../../../src/core/actions/gate.ts';
import type { Decision } from '../../../src/model/actions.ts';
import { createCedarEngine } from '../../../src/policy/cedar/engine.ts';
import { createPolicyChain } from '../../../src/policy/chain.ts';
import { loadPolicies } from '../../../src/policy/rules/load.ts';
import type { PolicyEngine } from '../../../src/ports/index.ts';
import { readAct } from '../../../src/runtime/read-act.ts';

const TIMEOUT_MS = 1;
const log = { info() {}, warn() {}, error() {} };
const outside = (decide: () => Promise<Decision>): PolicyEngine => ({ name: 'outside', decide });
const willing = outside(async () => ({ verdict: 'allow', reason: 'fine', engine: 'outside' }));
const silent = outside(() => new Promise(() => {}));

test('the first decision of a process is made by rules, however short the time for policy; one that hangs is denied', async () => {
  const rules =
    '- { id: no-pay, when: { tool: pay }, then: block, say: never }\n- { id: reads, when: { tool: read }, then: allow }';
  const cedar = createCedarEngine({ policies: await loadPolicies({ rules, files: [] }), read: readAct });
  const gateOf = (engine: PolicyEngine) =>
    createGate({
      policy: createPolicyChain({ engines: [cedar, engine], timeoutMs: TIMEOUT_MS }),
      timeoutMs: TIMEOUT_MS,
      log,
      digest: () => 'd',
    });
  const began = performance.now();
  const first = await gateOf(willing)(anAction({ tool: 'read' }));
  expect(first).toMatchObject({ verdict: 'allow', rule_id: 'reads' });
  // Otherwise the engine was loaded before, and this test shows nothing.
  expect(performance.now() - began).toBeGreaterThan(TIMEOUT_MS);
  expect(await gateOf(willing)(anAction({ tool: 'pay' }))).toMatchObject({ verdict: 'block', rule_id: 'no-pay' });
  expect(await gateOf(silent)(anAction({ tool: 'read' }))).toMatchObject({
    verdict: 'block',
    code: 'policy_timed_out',
  });
});
