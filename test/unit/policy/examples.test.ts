/** The example policies do what they say. */
import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { anAction, aPersona } from '../../../fixtures/policies/actions.ts';
import { createCedarEngine } from '../../../src/policy/cedar/engine.ts';
import { readAct } from '../../../src/runtime/read-act.ts';
import { load } from '../../support/policy/cedar.ts';

describe('the example files', () => {
  const agent = { id: 'coder', kind: 'agent', scopes: [] };
  const service = { id: 'billing', kind: 'service', scopes: [] };
  const files: readonly [string, number, readonly (readonly [object, object])[]][] = [
    [
      'starter.yaml',
      5,
      [
        [{ effect: 'read' }, { verdict: 'allow', rule_id: 'reads-are-fine' }],
        [
          { kind: 'fs.write', effect: 'write', target: '/repo/a' },
          { verdict: 'allow', rule_id: 'work-in-the-workspace' },
        ],
        [
          { kind: 'fs.write', effect: 'write', target: '/etc/a' },
          { verdict: 'escalate', code: 'no_rule' },
        ],
        [
          { effect: 'pay' },
          { verdict: 'escalate', rule_id: 'outside-needs-a-human', ask: { to: ['owner'], expires_ms: 1_800_000 } },
        ],
        [
          { effect: 'delete', actor: { ...agent, id: 'a2a:x' } },
          { verdict: 'block', reason: 'peers may not delete' },
        ],
        [
          { effect: 'read', arguments: { path: '/home/me/.env' } },
          { verdict: 'block', rule_id: 'no-keys' },
        ],
      ],
    ],
    [
      'coding-agent.yaml',
      6,
      [
        [
          { kind: 'fs.read', effect: 'read' },
          { verdict: 'allow', rule_id: 'look-around' },
        ],
        [
          { kind: 'fs.write', effect: 'write', target: '/repo/src/a.ts' },
          { verdict: 'allow', rule_id: 'edit-source' },
        ],
        [
          { kind: 'fs.write', effect: 'write', target: '/repo/src/generated/a.ts' },
          { verdict: 'escalate', code: 'no_rule' },
        ],
        [
          { tool: 'git_push', effect: 'write', arguments: { force: true, branch: 'x' } },
          { verdict: 'modify', arguments: { force: false, branch: 'x' } },
        ],
        [
          { kind: 'terminal', effect: 'execute', arguments: { command: 'npm' }, attributes: { installing: true } },
          { verdict: 'defer', retry_after_ms: 15_000 },
        ],
        [
          { kind: 'terminal', effect: 'execute', arguments: { command: 'git' } },
          { verdict: 'allow', rule_id: 'usual-commands' },
        ],
        [
          { effect: 'send', attributes: { tainted: true } },
          { verdict: 'escalate', rule_id: 'after-reading-the-web' },
        ],
      ],
    ],
    [
      'payments.cedar',
      4,
      [
        [
          { tool: 'pay', effect: 'pay', actor: agent, arguments: { amount_cents: 10, currency: 'EUR' } },
          { verdict: 'block', rule_id: 'no-payment-by-agents' },
        ],
        [
          { tool: 'pay', effect: 'pay', actor: service, arguments: { amount_cents: 10, currency: 'EUR' } },
          { verdict: 'modify', rule_id: 'payments-carry-a-reference' },
        ],
        [
          { tool: 'pay', effect: 'pay', actor: service, arguments: { amount_cents: 10, currency: 'EUR', audit: true } },
          { verdict: 'allow' },
        ],
        [
          { tool: 'pay', effect: 'pay', actor: service, arguments: { amount_cents: 5001 } },
          {
            verdict: 'escalate',
            rule_id: 'larger-payments',
            ask: { to: ['finance', 'owner'], expires_ms: 7_200_000 },
            arguments: { amount_cents: 5001, audit: true },
          },
        ],
        [
          { tool: 'pay', effect: 'pay', actor: service, arguments: { amount_cents: 50.01 } },
          { verdict: 'block', code: 'policy_error', rule_id: 'larger-payments' },
        ],
      ],
    ],
    [
      'read-only.cedar',
      2,
      [
        [{ effect: 'read' }, { verdict: 'allow', rule_id: 'guests-look' }],
        [{ effect: 'write' }, { verdict: 'block', reason: 'guests may look, not touch' }],
        [
          { effect: 'write', persona: aPersona({ name: 'host' }) },
          { verdict: 'escalate', code: 'no_rule' },
        ],
      ],
    ],
  ];
  test.each(files)('%s', async (name, count, decisions) => {
    const text = await readFile(new URL(`../../../fixtures/policies/${name}`, import.meta.url), 'utf8');
    const policies = await load(text, name);
    expect(policies.ruleCount).toBe(count);
    const engine = createCedarEngine({ policies, read: readAct });
    for (const [change, expected] of decisions) expect(engine.judge(anAction(change))).toMatchObject(expected);
  });
});
