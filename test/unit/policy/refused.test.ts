/** What is wrong with a policy is refused by file, rule and line. */
import { describe, expect, test } from 'vitest';
import type { Fault } from '../../../src/model/faults.ts';
import { loadPolicies } from '../../../src/policy/rules/load.ts';
import { ALL, problems } from '../../support/policy/cedar.ts';

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
