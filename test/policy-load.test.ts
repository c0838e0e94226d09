import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { anAction, aPersona } from '../fixtures/policies/actions.ts';
import { Fault } from '../src/model/faults.ts';
import { createCedarEngine } from '../src/policy/cedar.ts';
import { splitPolicies } from '../src/policy/cedar-source.ts';
import { loadPolicies } from '../src/policy/load.ts';

const ALL = '(principal, action, resource)';
const load = (text: string, name = 'a.cedar') => loadPolicies({ files: [{ name, text }] });
const problems = async (text: string): Promise<readonly string[]> => {
  const refused = await load(text).then(
    () => undefined,
    (thrown: Error) => thrown,
  );
  if (refused) expect(refused).toBeInstanceOf(Fault);
  return refused?.message.split('\n') ?? [];
};

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
    const text = await readFile(new URL(`../fixtures/policies/${name}`, import.meta.url), 'utf8');
    const policies = await load(text, name);
    expect(policies.ruleCount).toBe(count);
    const engine = createCedarEngine({ policies });
    for (const [change, expected] of decisions) expect(engine.judge(anAction(change))).toMatchObject(expected);
  });
});

describe('what is refused, by file, rule and line', () => {
  const cases: readonly [string, string, readonly string[]][] = [
    [
      'a syntax error',
      `permit${ALL};\n\n@id("x")\nforbid(principal, action, resource) when { foo };`,
      [
        'a.cedar:4:44: rule x: invalid variable: foo; the valid Cedar variables are `principal`, `action`, `resource`, and `context`; did you mean to enclose `foo` in quotes to make a string?',
      ],
    ],
    [
      'an unfinished policy',
      '@id("x") permit(principal, action',
      [
        'a.cedar:1:34: rule x: unexpected end of input; expected `!=`, `)`, `,`, `:`, `<`, `<=`, `==`, `>`, `>=`, `in`, or `is`',
      ],
    ],
    [
      'a column after letters of more than one byte',
      `@id("x") @reason("é€") permit${ALL} when { foo };`,
      [
        'a.cedar:1:67: rule x: invalid variable: foo; the valid Cedar variables are `principal`, `action`, `resource`, and `context`; did you mean to enclose `foo` in quotes to make a string?',
      ],
    ],
    [
      'the same id twice',
      `@id("x") permit${ALL};\n@id("x") forbid${ALL};`,
      ['a.cedar:2: rule x: the id is already taken in a.cedar:1; every rule needs its own'],
    ],
    [
      'an unknown verdict',
      `@id("x") @verdict("maybe") permit${ALL};`,
      ['a.cedar:1:1: rule x: @verdict("maybe") is not one of allow, block, deny, ask, escalate, defer, modify'],
    ],
    [
      'a verdict every object has',
      `@id("x") @verdict("constructor") permit${ALL};`,
      ['a.cedar:1:1: rule x: @verdict("constructor") is not one of allow, block, deny, ask, escalate, defer, modify'],
    ],
    [
      'a forbid that allows',
      `@id("x") @verdict("allow") forbid${ALL};`,
      ['a.cedar:1:1: rule x: a forbid cannot allow; write permit'],
    ],
    [
      'a mistyped annotation',
      `@id("x") @verdct("ask") permit${ALL};`,
      ['a.cedar:1:1: rule x: @verdct is not known; did you mean @verdict?'],
    ],
    [
      'an annotation without a text',
      `@id("x") @verdict permit${ALL};`,
      ['a.cedar:1:1: rule x: @verdict needs a text in brackets: @verdict("…")'],
    ],
    [
      'an id with spaces',
      `@id("x y") permit${ALL};`,
      ['a.cedar:1:1: rule x y: @id may have letters, digits and _ . : / - and at most 128 of them'],
    ],
    [
      'modify that is no JSON',
      `@id("x") @verdict("modify") @modify("{a:1}") forbid${ALL};`,
      ['a.cedar:1:1: rule x: @modify is not valid JSON'],
    ],
    [
      'modify that is no object',
      `@id("x") @verdict("modify") @modify("[1]") forbid${ALL};`,
      ['a.cedar:1:1: rule x: @modify has to be a JSON object, because arguments are one'],
    ],
    [
      'modify without its patch',
      `@id("x") @verdict("modify") forbid${ALL};`,
      ['a.cedar:1:1: rule x: @verdict("modify") needs @modify("{…}"), the members of the arguments to change'],
    ],
    [
      'a patch without modify',
      `@id("x") @modify("{}") forbid${ALL};`,
      ['a.cedar:1:1: rule x: @modify only goes with @verdict("modify")'],
    ],
    [
      'people without ask',
      `@id("x") @ask_to("ann") forbid${ALL};`,
      ['a.cedar:1:1: rule x: @ask_to only goes with @verdict("escalate")'],
    ],
    [
      'nobody to ask',
      `@id("x") @verdict("ask") @ask_to("ann,") forbid${ALL};`,
      ['a.cedar:1:1: rule x: @ask_to has to list people, separated by commas'],
    ],
    [
      'no duration',
      `@id("x") @verdict("ask") @ask_expires("soon") forbid${ALL};`,
      ['a.cedar:1:1: rule x: @ask_expires("soon") is not a duration; write 30s, 10m, 2h or 1d'],
    ],
    [
      'no number',
      `@id("x") @verdict("defer") @retry_after_ms("5s") forbid${ALL};`,
      ['a.cedar:1:1: rule x: @retry_after_ms has to be a whole number of milliseconds, such as "5000"'],
    ],
    [
      'an unknown kind of action',
      '@id("x") forbid(principal, action == Action::"tol", resource);',
      ['a.cedar:1:1: rule x: there is no Action::"tol"; did you mean tool?'],
    ],
    [
      'an action that is none',
      '@id("x") forbid(principal, action == Act::"tool", resource);',
      [
        'a.cedar:1:38: rule x: expected an entity uid with type `Action` but got `Act::"tool"`; action entities must have type `Action`, optionally in a namespace',
      ],
    ],
    [
      'an unknown kind of principal',
      '@id("x") forbid(principal is Human, action, resource);',
      ['a.cedar:1:1: rule x: there is no principal of type Human; the types are Person, Service, Agent, System'],
    ],
    [
      'an unknown kind of resource',
      '@id("x") forbid(principal, action, resource == File::"a");',
      ['a.cedar:1:1: rule x: there is no resource of type File; the types are Tool, Target, Workspace'],
    ],
    [
      'an attribute nothing has',
      `@id("x") forbid${ALL} when { context has tol };`,
      ['a.cedar:1:1: rule x: names context.tol; did you mean context.tool?'],
    ],
    [
      'an attribute of the principal',
      `@id("x") forbid${ALL} when { principal.team == "a" };`,
      ['a.cedar:1:1: rule x: looks for principal.team; only the context has attributes'],
    ],
    [
      'tags',
      `@id("x") forbid${ALL} when { principal.hasTag("a") };`,
      ['a.cedar:1:1: rule x: uses tags, which nothing here has'],
    ],
    [
      'a template',
      '@id("x") permit(principal == ?principal, action, resource);',
      [
        'a.cedar:1:30: rule x: expected a static policy, got a template containing the slot ?principal; try removing the template slot(s) from this policy',
      ],
    ],
    [
      'nesting that endangers the evaluator',
      `@id("x") permit${ALL} when { ${'('.repeat(500)}true${')'.repeat(500)} };`,
      ['a.cedar:1:1: too long or too deeply nested for the evaluator; split the rule'],
    ],
    [
      'nesting that only just does not',
      `@id("x") permit${ALL} when { ${'context.tool == "a" && '.repeat(120)}true };`,
      ['a.cedar:1:1: rule x: is nested more than 80 levels deep; split it into several rules'],
    ],
  ];
  test.each(cases)('%s', async (_name, text, expected) => {
    expect(await problems(text)).toEqual(expected);
  });

  test('everything wrong is listed at once, from all files, and as data', async () => {
    const refused = await loadPolicies({
      rules: [{ id: 'y' }],
      files: [
        { name: 'a.cedar', text: `@id("x") @verdict("maybe") permit${ALL};` },
        { name: 'b.yaml', text: '- { id: z, then: alow }' },
      ],
    }).catch((thrown: Fault) => thrown);
    expect((refused as Fault).details?.problems).toMatchObject([
      { file: 'rules', rule: 'y' },
      { file: 'b.yaml', rule: 'z', line: 1, column: 18 },
      { file: 'a.cedar', rule: 'x', line: 1, column: 1 },
    ]);
  });
  test("annotations of one's own are left alone", async () => {
    expect(await problems(`@id("x") @owner("ann") @ticket("T-1") permit${ALL};`)).toEqual([]);
  });
  test('the place of a rule from a configuration can be given', async () => {
    const locate = () => ({ line: 40, column: 7 });
    const refused = await loadPolicies({ rules: [{}], rulesName: 'tollbridge.yaml', locate, files: [] }).catch(
      (thrown: Error) => thrown,
    );
    expect((refused as Error).message.split('\n')[0]).toBe(
      'tollbridge.yaml:40:7: rule number 1: has no id; add one, it is shown whenever the rule decides',
    );
  });
});

describe('the sources', () => {
  test('nothing at all is a policy that asks', async () => {
    for (const sources of [
      { files: [] },
      { rules: '', files: [] },
      { rules: '# nothing yet', files: [] },
      { rules: [], files: [{ name: 'a.cedar', text: '// nothing' }] },
    ]) {
      const policies = await loadPolicies(sources);
      expect(policies.ruleCount).toBe(0);
      const engine = createCedarEngine({ policies });
      expect(engine.judge(anAction({ effect: 'write' })).verdict).toBe('escalate');
      expect(engine.judge(anAction({ effect: 'read' })).verdict).toBe('allow');
    }
  });
  test('the version is that of the sources', async () => {
    const one = await load(`permit${ALL};`);
    expect((await load(`permit${ALL};`)).version).toBe(one.version);
    expect((await load(`permit${ALL}; `)).version).not.toBe(one.version);
    expect((await load(`permit${ALL};`, 'b.cedar')).version).not.toBe(one.version);
    expect((await loadPolicies({ rules: '- { id: a, then: allow }', files: [] })).version).not.toBe(
      (await loadPolicies({ files: [] })).version,
    );
  });
  test('rules, YAML files and Cedar files are one set', async () => {
    const policies = await loadPolicies({
      rules: '- { id: a, when: { tool: x }, then: ask }',
      files: [
        { name: 'b.yml', text: 'rules:\n  - { id: b, when: { tool: y }, then: block }' },
        { name: 'c.cedar', text: `@id("c") permit${ALL};` },
      ],
    });
    expect(policies.rules.map(({ id, file, line }) => [id, file, line])).toEqual([
      ['a', 'rules.yaml', 1],
      ['b', 'b.yml', 2],
      ['c', 'c.cedar', 1],
    ]);
    expect([...policies.byAction.keys()]).toContain('tool');
    expect(policies.byAction.get('tool')).toHaveLength(3);
  });
  test('byAction holds what can matter for a kind', async () => {
    const policies = await load(
      '@id("a") permit(principal, action == Action::"tool", resource); @id("b") permit(principal, action, resource);',
    );
    expect(policies.byAction.get('tool')?.map(({ id }) => id)).toEqual(['a', 'b']);
    expect(policies.byAction.get('prompt')?.map(({ id }) => id)).toEqual(['b']);
  });
  test('policies are told apart by what Cedar tells them apart by', () => {
    const text =
      '\uFEFF// a; b\n@reason("x; \\"y\\" // z") permit(principal, action, resource) when { context has "a;b" }; // c\n\n  @permit("x") forbid\n(principal, action, resource);\n';
    expect(splitPolicies('f', text).map(({ line, column, effectAt }) => [line, column, effectAt])).toEqual([
      [2, 1, 25],
      [4, 3, 13],
    ]);
  });
  test('a permit that does more than allow is evaluated as a forbid, whatever stands before it', async () => {
    const policies = await load('@permit("permit") @verdict("ask") /* */ permit(principal, action, resource);').catch(
      () => undefined,
    );
    expect(policies).toBeUndefined();
    const text = '@permit("permit")\n// permit\n@verdict("ask") permit(principal, action, resource);';
    expect((await load(text)).rules[0]?.text).toBe(text.replace(') permit(', ') forbid('));
  });
});

describe('size', () => {
  test('ten thousand rules are the limit, and said to be', async () => {
    const rule = (index: number) => `@id("r${index}") permit${ALL};`;
    const cedar = Array.from({ length: 10_001 }, (_, index) => rule(index)).join('\n');
    expect(await problems(cedar)).toEqual(['a.cedar: there are 10001 rules; the limit is 10000']);
  });
  test('a hundred thousand short rules are refused by their number', async () => {
    const rules = Array.from({ length: 100_000 }, (_, index) => ({ id: `r${index}` }));
    const refused = await loadPolicies({ rules, files: [] }).catch((thrown: Error) => thrown);
    expect((refused as Error).message).toBe('rules: there are 100000 rules; the limit is 10000');
  });
  test('a hundred thousand rules in YAML are refused', async () => {
    const rules = Array.from({ length: 100_000 }, (_, index) => `- {id: r${index}, then: ask}`).join('\n');
    const refused = await loadPolicies({ rules, files: [] }).catch((thrown: Error) => thrown);
    expect((refused as Error).message).toBe('rules.yaml: there are 100000 rules; the limit is 10000');
  });
  test('more text than any policy has is refused unread', async () => {
    expect(await problems('/'.repeat(9_000_000))).toEqual([
      'a.cedar: the policy is 9000000 characters long; the limit is 8388608',
    ]);
  });
  test('loading many rules lets others work meanwhile', async () => {
    const text = Array.from({ length: 300 }, (_, index) => `@id("r${index}") permit${ALL};`).join('\n');
    let turns = 0;
    let loading = true;
    const count = () => {
      turns += 1;
      if (loading) setImmediate(count);
    };
    setImmediate(count);
    expect((await load(text)).ruleCount).toBe(300);
    loading = false;
    expect(turns).toBeGreaterThan(3);
  });
});
