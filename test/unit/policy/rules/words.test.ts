/** What the short rules mean: their words, what they can look at, and the Cedar they are printed as. */
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { anAction, aPersona } from '../../../../fixtures/policies/actions.ts';
import { createCedarEngine } from '../../../../src/policy/cedar/engine.ts';
import { loadPolicies } from '../../../../src/policy/rules/load.ts';
import { printCedar } from '../../../../src/policy/rules/rules.ts';
import type { RuleSpec } from '../../../../src/policy/rules/schema.ts';
import { readAct } from '../../../../src/runtime/read-act.ts';

const judge = async (yaml: string, change: object = {}) => {
  const policies = await loadPolicies({ rules: yaml, files: [] });
  return createCedarEngine({ policies, read: readAct }).judge(anAction(change));
};

describe('what the short words mean', () => {
  const cases: readonly [string, string, object][] = [
    ['allow', 'then: allow', { verdict: 'allow', rule_id: 'r' }],
    ['ask', 'then: ask', { verdict: 'escalate', rule_id: 'r' }],
    [
      'ask, of whom and for how long',
      'then: ask, to: [ann, bob], expires: 10m',
      { ask: { to: ['ann', 'bob'], expires_ms: 600_000 } },
    ],
    ['ask one person', 'then: ask, to: ann', { ask: { to: ['ann'] } }],
    ['block', 'then: block', { verdict: 'block' }],
    ['deny', 'then: deny, say: not here', { verdict: 'block', reason: 'not here' }],
    ['defer', 'then: defer, retry_after: 5s', { verdict: 'defer', retry_after_ms: 5_000 }],
    [
      'modify',
      'then: modify, set: { a: 2, b: null, c: { d: 0.5 } }',
      { verdict: 'modify', arguments: { a: 2, c: { d: 0.5 } } },
    ],
  ];
  test.each(cases)('%s', async (_name, rest, expected) => {
    expect(await judge(`- { id: r, ${rest} }`, { arguments: { a: 1, b: 1 } })).toMatchObject(expected);
  });
});

const about = {
  tool: 'send_mail',
  server: 'mail',
  target: '/repo/src/a.ts',
  session_id: 'ses_1',
  actor: { id: 'a2a:ci-7', kind: 'agent', scopes: [], tenant_id: 'ten_1', door: 'a2a' },
  tier: 'act_auto',
  persona: aPersona(),
  effect: 'send',
  arguments: { path: 'src/a.ts', n: 3, yes: true, tags: ['x', 'y'], options: { force: true }, if: 1, 'odd name': 'v' },
  attributes: { tainted: true, label: 'web' },
};

describe('what a rule can look at', () => {
  const hits = [
    'kind: tool',
    'kind: [prompt, tool]',
    'kind: "t*"',
    'effect: send',
    'effect: [read, send]',
    'effect: "*"',
    'tool: send_mail',
    'tool: "send_*"',
    'tool: [x, "*mail"]',
    'server: mail',
    'target: "/repo/*"',
    'principal: "a2a:*"',
    'principal: "a2a:ci-7"',
    'principal: "agent:*"',
    'principal: "agent:a2a:ci-*"',
    'principal: ["person:*", "a2a:ci-7"]',
    'door: a2a',
    'tier: act_auto',
    'workspace: ws_1',
    'session: ses_1',
    'tenant: ten_1',
    'persona: reviewer',
    'persona_id: persona_1',
    'evidence: held',
    'arguments: { path: "src/*" }',
    'arguments: { path: src/a.ts }',
    'arguments: { path: ["lib/*", "src/*"] }',
    'arguments: { n: 3 }',
    'arguments: { n: [1, 3] }',
    'arguments: { n: { above: 2 } }',
    'arguments: { n: { above: 2, below: 4 } }',
    'arguments: { yes: true }',
    'arguments: { tags: { contains: x } }',
    'arguments: { tags: { contains: [q, y] } }',
    'arguments: { options: { force: true } }',
    'arguments: { if: 1 }',
    'arguments: { odd name: "v*" }',
    'attributes: { tainted: true, label: web }',
    'tool: send_mail, effect: send, arguments: { n: 3, yes: true }',
  ];
  test.each(hits)('when: { %s } matches', async (when) => {
    expect((await judge(`- { id: r, when: { ${when} }, then: block }`, about)).rule_id).toBe('r');
    expect((await judge(`- { id: r, unless: { ${when} }, then: block }`, about)).code).toBe('no_rule');
  });
  const misses = [
    'kind: prompt',
    'effect: read',
    'tool: send',
    'tool: "Send*"',
    'server: other',
    'principal: "person:*"',
    'principal: "agent:other"',
    'principal: ci-7',
    'arguments: { path: "lib/*" }',
    'arguments: { absent: "*" }',
    'arguments: { n: { above: 3 } }',
    'arguments: { n: { below: 3 } }',
    'arguments: { tags: { contains: z } }',
    'arguments: { options: { force: false } }',
    'arguments: { options: { absent: 1 } }',
    'attributes: { absent: true }',
    'tool: send_mail, effect: read',
  ];
  test.each(misses)('when: { %s } does not', async (when) => {
    expect((await judge(`- { id: r, when: { ${when} }, then: block }`, about)).code).toBe('no_rule');
    expect((await judge(`- { id: r, unless: { ${when} }, then: block }`, about)).rule_id).toBe('r');
  });
  test('a rule about something the action does not have does not match', async () => {
    for (const when of [
      'tool: "*"',
      'server: "*"',
      'target: "*"',
      'door: "*"',
      'tier: act_auto',
      'persona: "*"',
      'session: "*"',
      'tenant: "*"',
    ]) {
      expect((await judge(`- { id: r, when: { ${when} }, then: block }`, { kind: 'prompt' })).code).toBe('no_rule');
    }
  });
  test('a value of another kind than the rule expects is an error, not a way round it', async () => {
    for (const value of [['/etc/passwd'], 5, { p: '/etc/passwd' }, null]) {
      for (const wanted of ['"/etc/*"', '/etc/passwd']) {
        expect(
          await judge(`- { id: r, when: { arguments: { path: ${wanted} } }, then: block }`, {
            arguments: { path: value },
          }),
        ).toMatchObject({
          verdict: 'block',
          code: 'policy_error',
          rule_id: 'r',
        });
      }
    }
  });
});

describe('order does not matter', () => {
  const allow = '- { id: all, then: allow }';
  const ask = '- { id: some, when: { tool: send_mail }, then: ask }';
  const block = '- { id: few, when: { arguments: { to: "*@example.org" } }, then: block }';
  const mail = { tool: 'send_mail', effect: 'send', arguments: { to: 'ann@example.org' } };
  test.each([
    [[allow, ask, block], 'few'],
    [[block, ask, allow], 'few'],
    [[ask, allow, block], 'few'],
    [[allow, ask], 'some'],
    [[ask, allow], 'some'],
  ])('%j: %s decides', async (rules, decides) => {
    expect((await judge(rules.join('\n'), mail)).rule_id).toBe(decides);
  });
});

describe('printing', () => {
  test('rules are printed as the Cedar that is evaluated', async () => {
    const yaml = `
- id: outside
  when: { kind: [tool, terminal], effect: send, tool: "*mail", arguments: { to: "*@example.org" } }
  unless: { principal: "person:*" }
  then: ask
  to: [ann]
  say: mail leaves this host
`;
    const printed = `@id("outside")
@verdict("ask")
@reason("mail leaves this host")
@ask_to("ann")
forbid (principal, action in [Action::"tool", Action::"terminal"], resource)
when { context.effect == "send" && context has tool && context.tool like "*mail" && context.arguments has to && context.arguments.to like "*@example.org" }
unless { principal is Person };`;
    expect(printCedar(parse(yaml) as RuleSpec[])).toBe(printed);
    expect((await loadPolicies({ rules: yaml, files: [] })).text).toBe(printed);
  });
});
