/** What Cedar cannot hold or evaluate never becomes a yes, and hostile names stay names. */
import { describe, expect, test } from 'vitest';
import { anAction } from '../../../../fixtures/policies/actions.ts';
import { createCedarEngine } from '../../../../src/policy/cedar/engine.ts';
import { createCedarRuntime } from '../../../../src/policy/cedar/runtime.ts';
import { loadPolicies } from '../../../../src/policy/rules/load.ts';
import { ALL, judge } from '../../../support/policy/cedar.ts';

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
    const broken = { call: () => undefined, prepare: () => undefined, warm: async () => {}, revived: 0 };
    expect(createCedarEngine({ policies, runtime: broken }).judge(anAction())).toMatchObject({
      verdict: 'block',
      code: 'policy_error',
    });
  });
});
