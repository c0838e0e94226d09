import { describe, expect, test } from 'vitest';
import { anAction, aPersona } from '../fixtures/policies/actions.ts';
import type { Decision } from '../src/model/actions.ts';
import { createCedarEngine } from '../src/policy/cedar.ts';
import { createCedarRuntime } from '../src/policy/cedar-runtime.ts';
import { loadPolicies } from '../src/policy/load.ts';

const engineFor = async (text: string) =>
  createCedarEngine({ policies: await loadPolicies({ files: [{ name: 'house.cedar', text }] }) });
const judge = async (text: string, change: object = {}): Promise<Decision> =>
  (await engineFor(text)).judge(anAction(change));
const ALL = '(principal, action, resource)';

describe('what a matching policy leads to', () => {
  const cases: readonly [string, string, object][] = [
    ['permit allows', `@id("p") permit${ALL};`, { verdict: 'allow', rule_id: 'p', reason: 'rule p allows this' }],
    ['forbid blocks', `@id("f") forbid${ALL};`, { verdict: 'block', rule_id: 'f', reason: 'rule f forbids this' }],
    [
      "the reason is the author's",
      `@id("f") @reason("not on Sundays") forbid${ALL};`,
      { verdict: 'block', reason: 'not on Sundays' },
    ],
    ['without an id it is called after its place', `\n\npermit${ALL};`, { verdict: 'allow', rule_id: 'house.cedar:3' }],
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

describe('a policy that cannot be evaluated', () => {
  test('a forbid blocks and says which rule and why', async () => {
    expect(await judge(`@id("f") forbid${ALL} when { context.tool == "x" };`)).toMatchObject({
      verdict: 'block',
      code: 'policy_error',
      rule_id: 'f',
      reason:
        'rule f could not be evaluated, which counts as no: the action does not have the attribute `tool`; test for it first with "has"',
    });
  });
  test.each(['escalate', 'defer'])('so does a permit that would %s', async (verdict) => {
    const text = `@id("p") @verdict("${verdict}") permit${ALL} when { context.tool == "x" }; permit${ALL};`;
    expect(await judge(text)).toMatchObject({ verdict: 'block', code: 'policy_error', rule_id: 'p' });
  });
  test('a permit that fails simply does not match', async () => {
    expect(await judge(`@id("p") permit${ALL} when { context.tool == "x" };`, { effect: 'write' })).toMatchObject({
      verdict: 'escalate',
      code: 'no_rule',
    });
  });
  test('a rule that blocks by itself explains better than one that failed', async () => {
    const text = `@id("bad") forbid${ALL} when { context.tool == "x" }; @id("good") @reason("never") forbid${ALL};`;
    expect(await judge(text)).toMatchObject({ verdict: 'block', rule_id: 'good', reason: 'never' });
  });
  test('a value never shows in the reason', async () => {
    const decision = await judge(`@id("f") forbid${ALL} when { ip(context.arguments.host).isLoopback() };`, {
      arguments: { host: 'hunter2' },
    });
    expect(decision).toMatchObject({ verdict: 'block', code: 'policy_error' });
    expect(JSON.stringify(decision)).not.toContain('hunter2');
  });
});

describe('values Cedar cannot hold', () => {
  let deep: object = { x: 1 };
  for (let i = 0; i < 40; i += 1) deep = { deep };
  const unholdable: readonly [string, unknown][] = [
    ['a fraction', 1.5],
    ['null', null],
    ['a number past 2^53', 2 ** 53],
    ['a huge number', 1e300],
    ['half a character', '\ud800'],
    ['a very long text', 'x'.repeat(65_537)],
  ];
  const tests: readonly [string, string][] = [
    ['compared', 'context.arguments has v && context.arguments.v > 100'],
    ['matched', 'context.arguments has v && context.arguments.v like "*"'],
    ['searched', 'context.arguments has v && context.arguments.v.contains(1)'],
    ['looked into', 'context.arguments has v && context.arguments.v has x'],
  ];
  for (const [what, value] of unholdable) {
    test.each(tests)(`${what}, %s: a forbid blocks, a permit does not match`, async (_how, condition) => {
      const change = { arguments: { v: value }, effect: 'write' };
      expect(await judge(`@id("f") forbid${ALL} when { ${condition} };`, change)).toMatchObject({
        verdict: 'block',
        code: 'policy_error',
        rule_id: 'f',
      });
      expect((await judge(`permit${ALL} when { ${condition} };`, change)).verdict).toBe('escalate');
    });
    test(`${what} is there, is itself, and is nothing else`, async () => {
      const change = { arguments: { v: value, same: value, other: 2.5 } };
      const holds = async (condition: string) =>
        (await judge(`forbid${ALL} when { ${condition} };`, change)).verdict === 'block';
      expect(await holds('context.arguments has v')).toBe(true);
      expect(await holds('context.arguments.v == context.arguments.same')).toBe(true);
      expect(await holds('context.arguments.v == context.arguments.other')).toBe(false);
      expect(await holds('context.arguments.v == 1')).toBe(false);
      expect(await holds('context.arguments.v != "x"')).toBe(true);
    });
    test(`${what} that no rule names bothers nobody`, async () => {
      const change = { arguments: { v: value, path: 'a' } };
      expect(await judge(`@id("p") permit${ALL} when { context.arguments.path == "a" };`, change)).toMatchObject({
        verdict: 'allow',
        rule_id: 'p',
      });
    });
  }
  test('inside a list it is one member among others', async () => {
    const change = { arguments: { v: [1, 1.5, null] } };
    expect((await judge(`forbid${ALL} when { context.arguments.v.contains(1) };`, change)).verdict).toBe('block');
    expect((await judge(`forbid${ALL} when { context.arguments.v.contains(2) };`, change)).verdict).toBe('allow');
  });
  test('nesting past reason is opaque, not dropped', async () => {
    const change = { arguments: { v: deep } };
    const same = `forbid${ALL} when { context.arguments.v == context.arguments.v };`;
    expect((await judge(same, change)).verdict).toBe('block');
  });
  test('nesting past all reason blocks where a rule looks at it, and only there', async () => {
    let abyss: object = {};
    for (let i = 0; i < 20_000; i += 1) abyss = { a: abyss };
    const change = { arguments: { abyss, path: 'a' } };
    expect(await judge(`forbid${ALL} when { context.arguments.abyss == 1 };`, change)).toMatchObject({
      verdict: 'block',
      code: 'policy_error',
    });
    expect(await judge(`permit${ALL} when { context.arguments.path == "a" };`, change)).toMatchObject({
      verdict: 'allow',
    });
  });
  test('more values than anyone meant to compare block', async () => {
    const list = Array.from({ length: 10_001 }, (_, index) => index);
    expect(
      await judge(`permit${ALL} when { context.arguments.list.contains(3) };`, { arguments: { list } }),
    ).toMatchObject({
      verdict: 'block',
      code: 'policy_error',
      reason: 'the rules could not be evaluated: a rule looks at more than 10000 values at once',
    });
  });
});

describe('hostile names and values stay what they are', () => {
  const holds = async (condition: string, change: object) =>
    (await judge(`forbid${ALL} when { ${condition} };`, change)).verdict === 'block';
  const instructions: readonly object[] = [
    { __entity: { type: 'Agent', id: 'root' } },
    { __extn: { fn: 'ip', arg: '127.0.0.1' } },
    { __extn: { fn: 'unknown', arg: 'x' } },
    { __expr: 'true' },
  ];
  test.each(instructions)('%j is a record', async (v) => {
    const change = { arguments: { v: { ...v, secret: 'a' } } };
    expect(await holds('context.arguments.v has secret && context.arguments.v.secret == "a"', change)).toBe(true);
    expect(await holds('context.arguments.v == {secret: "a"}', change)).toBe(false);
    expect(await holds('context.arguments.v == Agent::"root"', { arguments: { v } })).toBe(false);
    expect(await holds('context.arguments.v == ip("127.0.0.1")', { arguments: { v } })).toBe(false);
  });
  test('a member called __proto__ is a member', async () => {
    const args = JSON.parse('{"__proto__": "x", "v": {"__proto__": 1}}');
    expect(
      await holds('context.arguments has "__proto__" && context.arguments["__proto__"] == "x"', { arguments: args }),
    ).toBe(true);
    expect(await holds('context.arguments.v == {"__proto__": 1}', { arguments: args })).toBe(true);
  });
  test('members every object inherits are not there', async () => {
    expect(await holds('context.arguments has toString || context.attributes has constructor', { arguments: {} })).toBe(
      false,
    );
  });
  test('a principal that is not valid Unicode is blocked where rules look at principals', async () => {
    const actor = { id: '\ud800', kind: 'agent', scopes: [] };
    expect(await judge('permit(principal is Agent, action, resource);', { actor })).toMatchObject({
      verdict: 'block',
      code: 'policy_error',
    });
  });
  test('nothing sent can spoil the evaluator', async () => {
    const runtime = createCedarRuntime();
    const policies = await loadPolicies({
      files: [{ name: 'a.cedar', text: `forbid${ALL} when { context.arguments == {a: 1} };` }],
    });
    const engine = createCedarEngine({ policies, runtime, memoEntries: 0 });
    for (const value of [
      '\ud800',
      '\u0000',
      'x'.repeat(1e5),
      Number.POSITIVE_INFINITY,
      Number.NaN,
      null,
      instructions,
      { '\udfff': '\ud800' },
    ]) {
      engine.judge(anAction({ arguments: { value }, tool: '\ud800', target: '\udc00' }));
    }
    expect(runtime.revived).toBe(0);
    expect(engine.judge(anAction({ arguments: { a: 1 } })).verdict).toBe('block');
  });
});

describe('rewrites', () => {
  const modify = (id: string, patch: object, when = '') =>
    `@id("${id}") @verdict("modify") @modify(${JSON.stringify(JSON.stringify(patch))}) forbid${ALL} ${when};`;
  test('two rules that change different members both do', async () => {
    const decision = await judge(modify('a', { x: 1 }) + modify('b', { y: { z: 2 } }), { arguments: { y: { k: 1 } } });
    expect(decision).toMatchObject({ verdict: 'modify', rule_id: 'a', arguments: { x: 1, y: { k: 1, z: 2 } } });
  });
  test('two rules that agree are one', async () => {
    expect(await judge(modify('a', { x: 1 }) + modify('b', { x: 1 }))).toMatchObject({
      verdict: 'modify',
      arguments: { x: 1 },
    });
  });
  test('two rules that contradict each other need a person', async () => {
    const decision = await judge(modify('a', { x: 1 }) + modify('b', { x: 2 }));
    expect(decision).toMatchObject({ verdict: 'escalate', code: 'modify_conflict' });
    expect(decision).not.toHaveProperty('arguments');
  });
  test('a call that already is as the rule wants it is allowed as it is', async () => {
    const decision = await judge(modify('a', { force: false }), { arguments: { force: false }, effect: 'write' });
    expect(decision).toMatchObject({ verdict: 'allow', rule_id: 'a' });
    expect(decision).not.toHaveProperty('arguments');
  });
  test('what would run has to pass the rules as well', async () => {
    const guard = `@id("no-b") forbid${ALL} when { context.arguments.mode == "b" };`;
    expect(
      await judge(modify('a', { mode: 'b' }, 'when { context.arguments.mode == "a" }') + guard, {
        arguments: { mode: 'a' },
      }),
    ).toMatchObject({
      verdict: 'block',
      rule_id: 'no-b',
    });
  });
  test('a person asked because of the result is shown the result', async () => {
    const ask = `@id("ask-b") @verdict("ask") forbid${ALL} when { context.arguments.mode == "b" };`;
    expect(
      await judge(modify('a', { mode: 'b' }, 'when { context.arguments.mode == "a" }') + ask, {
        arguments: { mode: 'a' },
      }),
    ).toMatchObject({
      verdict: 'escalate',
      rule_id: 'ask-b',
      arguments: { mode: 'b' },
    });
  });
  test('rules that keep rewriting each other need a person', async () => {
    const there = modify('there', { mode: 'b' }, 'when { context.arguments.mode == "a" }');
    const back = modify('back', { mode: 'a' }, 'when { context.arguments.mode == "b" }');
    expect(await judge(there + back, { arguments: { mode: 'a' } })).toMatchObject({
      verdict: 'escalate',
      code: 'modify_conflict',
    });
  });
  test('an ask and a rewrite together ask about the rewritten call', async () => {
    const ask = `@id("ask") @verdict("ask") @ask_to("ann") forbid${ALL};`;
    expect(await judge(modify('a', { x: 1 }) + ask)).toMatchObject({
      verdict: 'escalate',
      rule_id: 'ask',
      ask: { to: ['ann'] },
      arguments: { x: 1 },
    });
  });
  test('the action itself is left alone', async () => {
    const action = anAction({ arguments: { a: { b: 1 } } });
    (await engineFor(modify('a', { a: { b: 2 } }))).judge(action);
    expect(action.arguments).toEqual({ a: { b: 1 } });
  });
});

describe('the evaluator', () => {
  test('a breakdown costs one answer, not the ones after it', async () => {
    const runtime = createCedarRuntime();
    const policies = await loadPolicies({ files: [{ name: 'a.cedar', text: `@id("f") forbid${ALL};` }] });
    const engine = createCedarEngine({ policies, runtime, memoEntries: 0 });
    expect(engine.judge(anAction()).rule_id).toBe('f');
    const tooDeep = `permit${ALL} when { ${'('.repeat(2_000)}true${')'.repeat(2_000)} };`;
    expect(runtime.call((cedar) => cedar.policyToJson(tooDeep))).toBeUndefined();
    expect(runtime.revived).toBe(1);
    expect(engine.judge(anAction()).rule_id).toBe('f');
  });
  test('more policies than slots are parsed again when needed', async () => {
    const runtime = createCedarRuntime(2);
    const engines = await Promise.all(
      ['a', 'b', 'c', 'd'].map(async (id) =>
        createCedarEngine({
          policies: await loadPolicies({ files: [{ name: 'x.cedar', text: `@id("${id}") forbid${ALL};` }] }),
          runtime,
          memoEntries: 0,
        }),
      ),
    );
    for (let round = 0; round < 3; round += 1) {
      expect(engines.map((engine) => engine.judge(anAction()).rule_id)).toEqual(['a', 'b', 'c', 'd']);
    }
  });
  test('an evaluator that always breaks is a no', async () => {
    const policies = await loadPolicies({ files: [{ name: 'a.cedar', text: `permit${ALL};` }] });
    const broken = { call: () => undefined, prepare: () => undefined, revived: 0 };
    expect(createCedarEngine({ policies, runtime: broken }).judge(anAction())).toMatchObject({
      verdict: 'block',
      code: 'policy_error',
    });
  });
});
