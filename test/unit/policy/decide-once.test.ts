/** Acts that no rule can tell apart are decided once; every other act is decided. */
import { expect, test } from 'vitest';
import { anAction, aPersona } from '../../../fixtures/policies/actions.ts';
import type { Action } from '../../../src/model/actions.ts';
import { createPolicyChain } from '../../../src/policy/chain.ts';
import { decideOnce } from '../../../src/policy/decide-once.ts';
import { pureEngine } from '../../../src/policy/engine.ts';
import { loadPolicies } from '../../../src/policy/rules/load.ts';

/** A chain that says how many acts it has decided so far. */
async function counting(rules: string) {
  let decided = 0;
  const engine = pureEngine('counting', () => ({
    verdict: 'allow',
    reason: String(++decided),
    engine: 'counting',
  }));
  const once = decideOnce(createPolicyChain({ engines: [engine] }), await loadPolicies({ rules, files: [] }));
  return (change: object) => once.judge(anAction(change) as Action)?.reason;
}
const SHORT = '- { id: reads, when: { effect: read }, then: allow }';

test.each<[string, object]>([
  ['another id', { id: 'act_2' }],
  ['in another task', { task_id: 'task_2' }],
  ['another call', { tool_call_id: 'call_2' }],
  ['another cost', { cost: { tool_calls: 7 } }],
  ['in another session', { session_id: 'session_2' }],
])('the same act with %s is not decided again', async (_, change) => {
  const decide = await counting(SHORT);
  expect([decide({}), decide(change)]).toEqual(['1', '1']);
});

test.each<[string, object]>([
  ['other arguments', { arguments: { path: 'b' } }],
  ['of another actor', { actor: { id: 'coder-2', kind: 'agent', scopes: [] } }],
  ['in another workspace', { workspace_id: 'ws_2' }],
  ['of another tool', { tool: 'push' }],
  ['of another server', { server: 'files' }],
  ['of another effect', { effect: 'write' }],
  ['on another target', { target: 'x' }],
  ['in another directory', { root: '/srv' }],
  ['claimed otherwise', { claims: { agent: 'claude' } }],
  ['with another attribute', { attributes: { tainted: true } }],
  ['of another tier', { tier: 'suggest' }],
  ['of another persona', { persona: aPersona() }],
])('an act with a difference that a rule can see is decided: %s', async (_, change) => {
  const decide = await counting(SHORT);
  expect([decide({}), decide(change), decide({})]).toEqual(['1', '2', '1']);
});

test('where a rule looks at the session, acts of two sessions are two', async () => {
  const decide = await counting('- { id: here, when: { session: session_1 }, then: block }');
  expect([decide({ session_id: 'session_1' }), decide({ session_id: 'session_2' })]).toEqual(['1', '2']);
});

test('an act of any length is decided, and a long one is not kept', async () => {
  const decide = await counting(SHORT);
  const long = { arguments: { content: 'x'.repeat(5_000) } };
  expect([decide(long), decide({}), decide(long)]).toEqual(['1', '2', '3']);
});
