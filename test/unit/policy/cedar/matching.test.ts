/** Which Cedar policies match an action, and what the strictest of them leads to. */
import { describe, expect, test } from 'vitest';
import { aPersona } from '../../../../fixtures/policies/actions.ts';
import { ALL, judge } from '../../../support/policy/cedar.ts';

describe('what a matching policy leads to', () => {
  const cases: readonly [string, string, object][] = [
    ['permit allows', `@id("p") permit${ALL};`, { verdict: 'allow', rule_id: 'p', reason: 'rule p allows this' }],
    ['forbid blocks', `@id("f") forbid${ALL};`, { verdict: 'block', rule_id: 'f', reason: 'rule f forbids this' }],
    [
      "the reason is the author's",
      `@id("f") @reason("not on Sundays") forbid${ALL};`,
      { verdict: 'block', reason: 'not on Sundays' },
    ],
    ['without an id it is called after its place', `\n\npermit${ALL};`, { verdict: 'allow', rule_id: 'own.cedar:3' }],
    ['escalate on a forbid', `@id("e") @verdict("escalate") forbid${ALL};`, { verdict: 'escalate', rule_id: 'e' }],
    ['escalate on a permit', `@id("e") @verdict("escalate") permit${ALL};`, { verdict: 'escalate', rule_id: 'e' }],
    ['ask is escalate', `@id("e") @verdict("ask") forbid${ALL};`, { verdict: 'escalate' }],
    ['deny is block', `@id("e") @verdict("deny") forbid${ALL};`, { verdict: 'block' }],
    ['a permit that blocks', `@id("e") @verdict("block") permit${ALL};`, { verdict: 'block' }],
    [
      'whom to ask and for how long',
      `@verdict("escalate") @ask_to("ann, bob") @ask_expires("10m") forbid${ALL};`,
      {
        verdict: 'escalate',
        ask: { to: ['ann', 'bob'], expires_ms: 600_000 },
      },
    ],
    [
      'defer with a time',
      `@verdict("defer") @retry_after_ms("2500") forbid${ALL};`,
      { verdict: 'defer', retry_after_ms: 2_500 },
    ],
    ['defer without a time', `@verdict("defer") forbid${ALL};`, { verdict: 'defer', retry_after_ms: 1_000 }],
    [
      'modify',
      `@id("m") @verdict("modify") @modify("{\\"a\\":2,\\"gone\\":null}") forbid${ALL};`,
      {
        verdict: 'modify',
        rule_id: 'm',
        arguments: { a: 2, kept: true },
      },
    ],
  ];
  test.each(cases)('%s', async (_name, text, expected) => {
    const decision = await judge(text, { arguments: { a: 1, gone: 1, kept: true } });
    expect(decision).toMatchObject({ ...expected, engine: 'cedar' });
    expect(decision.policy_version).toMatch(/^sha256:[0-9a-f]{64}$/);
  });

  const rules: Record<string, string> = {
    block: `@id("block") forbid${ALL};`,
    escalate: `@id("escalate") @verdict("escalate") permit${ALL};`,
    defer: `@id("defer") @verdict("defer") forbid${ALL};`,
    modify: `@id("modify") @verdict("modify") @modify("{\\"x\\":1}") forbid${ALL};`,
    allow: `@id("allow") permit${ALL};`,
  };
  const words = Object.keys(rules);
  const pairs = words.flatMap((a, i) => words.slice(i + 1).map((b) => [a, b] as const));
  test.each(pairs)('%s is stricter than %s, in either order', async (strict, mild) => {
    for (const text of [`${rules[strict]}${rules[mild]}`, `${rules[mild]}${rules[strict]}`]) {
      expect(await judge(text)).toMatchObject({ verdict: strict, rule_id: strict });
    }
  });
  test('among equals the first in the file is named', async () => {
    expect((await judge(`@id("one") forbid${ALL}; @id("two") forbid${ALL};`)).rule_id).toBe('one');
  });
});

describe('no policy matching', () => {
  test.each([
    ['none', 'allow'],
    ['read', 'allow'],
    ['write', 'escalate'],
    ['pay', 'escalate'],
    ['unknown', 'escalate'],
  ])('%s is %s', async (effect, verdict) => {
    for (const text of ['', `@id("x") permit${ALL} when { context.effect == "never" };`]) {
      const decision = await judge(text, { effect });
      expect(decision).toMatchObject({ verdict, code: 'no_rule' });
      expect(decision.reason).toContain('no rule covers this');
    }
  });
});

describe('who, what, on what', () => {
  const cases: readonly [string, object, boolean][] = [
    ['principal is Agent', {}, true],
    ['principal is Person', {}, false],
    ['principal == Agent::"coder-1"', {}, true],
    ['principal == Agent::"coder-2"', {}, false],
    ['principal == Person::"o\\"hara"', { actor: { id: 'o"hara', kind: 'person', scopes: [] } }, true],
    ['principal is Service', { actor: { id: 's', kind: 'service', scopes: [] } }, true],
    ['principal is System', { actor: { id: 's', kind: 'system', scopes: [] } }, true],
  ];
  test.each(cases)('%s of %j: %s', async (scope, change, matches) => {
    const decision = await judge(`@id("r") forbid(${scope}, action, resource);`, change);
    expect(decision.verdict).toBe(matches ? 'block' : 'allow');
  });
  const resources: readonly [string, object, boolean][] = [
    ['resource == Tool::"send"', { tool: 'send', target: 't' }, true],
    ['resource == Target::"/etc/x"', { kind: 'fs.read', target: '/etc/x' }, true],
    ['resource == Target::"t"', { tool: 'send', target: 't' }, false],
    ['resource == Workspace::"ws_1"', { kind: 'prompt' }, true],
    ['resource is Tool', { kind: 'prompt' }, false],
  ];
  test.each(resources)('%s of %j: %s', async (scope, change, matches) => {
    expect((await judge(`forbid(principal, action, ${scope});`, change)).verdict).toBe(matches ? 'block' : 'allow');
  });
  const kinds: readonly [string, string, boolean][] = [
    ['action == Action::"tool"', 'tool', true],
    ['action == Action::"tool"', 'fs.read', false],
    ['action in [Action::"tool", Action::"fs.read"]', 'fs.read', true],
    ['action in Action::"tool"', 'tool', true],
    ['action', 'prompt', true],
    ['action', 'a kind of tomorrow', true],
    ['action == Action::"tool"', 'a kind of tomorrow', false],
  ];
  test.each(kinds)('%s, asked about %s: %s', async (scope, kind, matches) => {
    expect((await judge(`forbid(principal, ${scope}, resource);`, { kind })).verdict).toBe(matches ? 'block' : 'allow');
  });

  const everything = {
    tool: 'send',
    server: 'mail',
    target: 'ann@example.org',
    session_id: 'ses_1',
    actor: { id: 'coder-1', kind: 'agent', scopes: [], tenant_id: 'ten_1', door: 'mcp' },
    tier: 'act_auto',
    persona: aPersona(),
    arguments: { path: 'src/a.ts', n: 3, list: ['a', 'b'], options: { force: true } },
    attributes: { tainted: true, tags: ['x'] },
  };
  test.each([
    'context.effect == "read"',
    'context.side_effect == false',
    'context.tool == "send"',
    'context.server == "mail"',
    'context.target like "*@example.org"',
    'context.evidence == "held"',
    'context.tier == "act_auto"',
    'context.persona == "reviewer"',
    'context.persona_id == "persona_1"',
    'context.workspace == "ws_1"',
    'context.session == "ses_1"',
    'context.tenant == "ten_1"',
    'context.door == "mcp"',
    'context.principal like "coder-*"',
    'context.arguments.path like "src/*"',
    'context.arguments.n > 2',
    'context.arguments.list.containsAll(["b", "a"])',
    'context.arguments.options.force',
    'context.arguments has options.force',
    'context.arguments.options == {force: true}',
    'context.attributes.tainted',
    'context.attributes.tags.contains("x")',
  ])('rules can see %s', async (condition) => {
    expect(await judge(`@id("seen") forbid${ALL} when { ${condition} };`, everything)).toMatchObject({
      verdict: 'block',
      rule_id: 'seen',
    });
    expect((await judge(`@id("seen") forbid${ALL} unless { ${condition} };`, everything)).verdict).toBe('allow');
  });
});
