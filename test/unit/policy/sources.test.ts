/** Where policies come from: none, several, of both kinds, and how many they may be. */
import { describe, expect, test } from 'vitest';
import { anAction } from '../../../fixtures/policies/actions.ts';
import { createCedarEngine } from '../../../src/policy/cedar/engine.ts';
import { splitPolicies } from '../../../src/policy/cedar/source.ts';
import { loadPolicies } from '../../../src/policy/rules/load.ts';
import { readAct } from '../../../src/runtime/read-act.ts';
import { ALL, load, problems } from '../../support/policy/cedar.ts';

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
      const engine = createCedarEngine({ policies, read: readAct });
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
  test('a text is split into policies where Cedar ends them, not inside texts and comments', () => {
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
  test('five hundred rules are the limit, and said to be', async () => {
    const rule = (index: number) => `@id("r${index}") permit${ALL};`;
    const cedar = Array.from({ length: 501 }, (_, index) => rule(index)).join('\n');
    expect(await problems(cedar)).toEqual(['a.cedar: there are 501 rules; the limit is 500']);
  });
  test('a hundred thousand short rules are refused by their number', async () => {
    const rules = Array.from({ length: 100_000 }, (_, index) => ({ id: `r${index}` }));
    const refused = await loadPolicies({ rules, files: [] }).catch((thrown: Error) => thrown);
    expect((refused as Error).message).toBe('rules: there are 100000 rules; the limit is 500');
  });
  test('a hundred thousand rules in YAML are refused', async () => {
    const rules = Array.from({ length: 100_000 }, (_, index) => `- {id: r${index}, then: ask}`).join('\n');
    const refused = await loadPolicies({ rules, files: [] }).catch((thrown: Error) => thrown);
    expect((refused as Error).message).toBe('rules.yaml: the policy is 2588889 characters long; the limit is 262144');
  });
  test('more text than any policy has is refused unread', async () => {
    expect(await problems('/'.repeat(9_000_000))).toEqual([
      'a.cedar: the policy is 9000000 characters long; the limit is 262144',
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
    expect(turns).toBeGreaterThan(1);
  });
});
