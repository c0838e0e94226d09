/** Texts in a rule match themselves and cannot break out of their quotes. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { anAction } from '../../../../fixtures/policies/actions.ts';
import { createCedarEngine } from '../../../../src/policy/cedar/engine.ts';
import { cedarPattern, cedarString } from '../../../../src/policy/cedar/text.ts';
import { loadPolicies } from '../../../../src/policy/rules/load.ts';
import type { RuleSpec } from '../../../../src/policy/rules/schema.ts';
import { readAct } from '../../../../src/runtime/read-act.ts';

describe('texts cannot break out of their quotes', () => {
  const hostile = [
    'a"b',
    'a\\',
    'a\\"',
    '") permit(principal, action, resource); //',
    'a\nb',
    'a\r\n//',
    'tab\there',
    '*/ /* ',
    '\u0000',
    '\u2028',
    'r\u202eevil',
    '\u200b',
    '"}; permit(principal,action,resource) when { true };',
    '{{x}}',
    '\u{1f600}',
    "it's",
    '\\u{41}',
  ];
  const rule = (change: object): RuleSpec => ({ id: 'r', ...parse('then: block'), ...change }) as RuleSpec;
  const judgeRule = async (spec: RuleSpec, change: object) => {
    const policies = await loadPolicies({ rules: [spec], files: [] });
    expect(policies.ruleCount).toBe(1);
    return createCedarEngine({ policies, read: readAct }).judge(anAction(change));
  };
  const literally = (text: string) => text.replaceAll('\\', '\\\\').replaceAll('*', '\\*');

  test.each(hostile)('%j', async (text) => {
    const wanted = literally(text);
    for (const when of [
      { tool: wanted },
      { tool: [wanted, 'q'] },
      { arguments: { v: wanted } },
      { arguments: { [text]: 'x' } },
    ]) {
      const matching = { tool: text, arguments: { v: text, [text]: 'x' } };
      expect(await judgeRule(rule({ when, say: text }), matching)).toMatchObject({
        verdict: 'block',
        rule_id: 'r',
        reason: text,
      });
      expect(
        (await judgeRule(rule({ when, say: text }), { tool: `${text}!`, arguments: { v: `${text}!` } })).code,
      ).toBe('no_rule');
    }
    const asking = { ...rule({ to: [text.replaceAll(',', '')] }), ...parse('then: ask') } as RuleSpec;
    if (text.trim() !== '' && text.trim() === text)
      expect((await judgeRule(asking, {})).ask?.to).toEqual([text.replaceAll(',', '')]);
    const setting = { ...rule({ set: { [text]: text } }), ...parse('then: modify') } as RuleSpec;
    expect((await judgeRule(setting, {})).arguments).toEqual({ [text]: text });
  });

  test('a star is a wildcard, an escaped one a star', async () => {
    const blocked = async (glob: string, tool: string) =>
      (await judgeRule(rule({ when: { tool: glob } }), { tool })).verdict === 'block';
    expect(await blocked('a*', 'abc')).toBe(true);
    expect(await blocked('a\\*', 'abc')).toBe(false);
    expect(await blocked('a\\*', 'a*')).toBe(true);
    expect(await blocked('a\\\\*', 'a\\bc')).toBe(true);
    expect(await blocked('C:\\Users', 'C:\\Users')).toBe(true);
    expect(await blocked('\\*\\*', '**')).toBe(true);
    expect(await blocked('*\\*', 'xx*')).toBe(true);
    expect(await blocked('*\\*', 'xx')).toBe(false);
  });

  test('what is printed holds nothing invisible', () => {
    expect(cedarString('a"\\\n\u202e\u0000')).toBe('"a\\"\\\\\\u{a}\\u{202e}\\u{0}"');
    expect(cedarPattern('a*\\*"\n')).toBe('"a*\\*\\"\\u{a}"');
  });

  test('any text at all matches itself and nothing else', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: 'binary', minLength: 1, maxLength: 12 }),
        fc.string({ unit: 'binary', minLength: 1, maxLength: 12 }),
        async (text, other) => {
          fc.pre(text !== other);
          const spec = rule({ when: { arguments: { v: literally(text) } } });
          expect((await judgeRule(spec, { arguments: { v: text } })).rule_id).toBe('r');
          expect((await judgeRule(spec, { arguments: { v: other } })).code).toBe('no_rule');
        },
      ),
      { numRuns: 100 },
    );
  });
});
