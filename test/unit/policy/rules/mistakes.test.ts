/** Mistakes in rules are pointed at, with what to write instead, and the schema for editors finds the same ones. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { loadPolicies } from '../../../../src/policy/rules/load.ts';
import { RULES_SCHEMA } from '../../../../src/policy/rules/schema.ts';

const problems = async (yaml: string): Promise<readonly string[]> => {
  const refused = await loadPolicies({ rules: yaml, files: [] }).then(
    () => undefined,
    (thrown: Error) => thrown,
  );
  return refused?.message.split('\n') ?? [];
};

describe('mistakes are pointed at, with what to write instead', () => {
  const cases: readonly [string, string, readonly string[]][] = [
    [
      'an unknown member',
      '- { id: r, wen: { tool: x }, then: ask }',
      ['rules.yaml:1:12: rule r: "wen" is not known; did you mean when?'],
    ],
    [
      'an unknown member of when',
      '- id: r\n  when:\n    tol: x\n  then: ask',
      ['rules.yaml:3:5: rule r: "tol" is not known; did you mean tool?'],
    ],
    [
      'something far from any word',
      '- { id: r, when: { colour: x }, then: ask }',
      [
        'rules.yaml:1:20: rule r: "colour" is not known; the words here are kind, effect, tool, server, target, command, path, url, content, principal, door, tier, workspace, session, tenant, persona, persona_id, evidence, arguments, attributes',
      ],
    ],
    [
      'an unknown answer',
      '- { id: r, then: alow }',
      [
        'rules.yaml:1:18: rule r: then: "alow" is not one of allow, ask, block, deny, defer, modify; did you mean allow?',
      ],
    ],
    [
      'the long word for ask',
      '- { id: r, then: escalate }',
      [
        'rules.yaml:1:18: rule r: then: "escalate" is not one of allow, ask, block, deny, defer, modify; did you mean ask?',
      ],
    ],
    [
      'no answer',
      '- { id: r }',
      [
        'rules.yaml:1:3: rule r: has no then; write then: allow, then: ask, then: block, then: deny, then: defer, then: modify',
      ],
    ],
    [
      'no id',
      '- { then: ask }',
      ['rules.yaml:1:3: rule number 1: has no id; add one, it is shown whenever the rule decides'],
    ],
    [
      'an id with spaces',
      '- { id: "a b", then: ask }',
      ['rules.yaml:1:9: rule a b: id: may have letters, digits and _ . : / - and at most 128 of them'],
    ],
    [
      'the same id twice',
      '- { id: r, then: ask }\n- { id: r, then: allow }',
      ['rules.yaml:2: rule r: the id is already taken in rules.yaml:1; every rule needs its own'],
    ],
    [
      'an unknown effect',
      '- { id: r, when: { effect: wirte }, then: ask }',
      [
        'rules.yaml:1:28: rule r: when.effect: "wirte" is not one of none, read, write, delete, execute, send, publish, pay, unknown; did you mean write?',
      ],
    ],
    [
      'an unknown kind in a list',
      '- { id: r, when: { kind: [tool, fs.red] }, then: ask }',
      [
        'rules.yaml:1:33: rule r: when.kind.1: "fs.red" is not one of prompt, tool, fs.read, fs.write, terminal, handoff, elicit, session.open, session.configure, memory.read, memory.write, secret.use, plan, reason, enrich, query, background, answer, extension; did you mean fs.read?',
      ],
    ],
    [
      'a number where a text belongs',
      '- { id: r, when: { tool: 7 }, then: ask }',
      ['rules.yaml:1:26: rule r: when.tool: 7 is not a text; put it in quotes'],
    ],
    [
      'an empty list',
      '- { id: r, when: { tool: [] }, then: ask }',
      ['rules.yaml:1:26: rule r: when.tool: is an empty list, which nothing matches; leave it out or fill it'],
    ],
    [
      'nothing to look at',
      '- { id: r, when: x, then: ask }',
      ['rules.yaml:1:18: rule r: when: has to name what it looks at: { tool: …, effect: … }'],
    ],
    [
      'an empty unless',
      '- { id: r, unless: {}, then: ask }',
      [
        'rules.yaml:1:20: rule r: unless: is empty, which would switch the rule off; name what is excepted or leave it out',
      ],
    ],
    [
      'a fraction',
      '- { id: r, when: { arguments: { n: 1.5 } }, then: ask }',
      ['rules.yaml:1:36: rule r: when.arguments.n: 1.5 cannot be compared; rules compare whole numbers only'],
    ],
    [
      'a fraction as a bound',
      '- { id: r, when: { arguments: { n: { above: 1.5 } } }, then: ask }',
      ['rules.yaml:1:45: rule r: when.arguments.n.above: 1.5 is not a whole number'],
    ],
    [
      'null',
      '- { id: r, when: { arguments: { n: null } }, then: ask }',
      [
        'rules.yaml:1:36: rule r: when.arguments.n: null cannot be compared; write a text, a whole number, true or false',
      ],
    ],
    [
      'set without modify',
      '- { id: r, then: ask, set: { a: 1 } }',
      ['rules.yaml:1:28: rule r: set: only goes with then: modify'],
    ],
    [
      'modify without set',
      '- { id: r, then: modify }',
      ['rules.yaml:1:3: rule r: has no set; name the arguments to change'],
    ],
    ['to without ask', '- { id: r, then: block, to: ann }', ['rules.yaml:1:29: rule r: to: only goes with then: ask']],
    [
      'a duration without a unit',
      '- { id: r, then: ask, expires: 10 }',
      ['rules.yaml:1:32: rule r: expires: 10 is not a duration; write 10m'],
    ],
    [
      'a rule that is a text',
      '- just do it',
      ['rules.yaml:1:3: rule number 1: a rule is a set of members: { id: …, when: { … }, then: … }'],
    ],
    [
      'a set of rules that is no list',
      'allow: everything',
      ['rules.yaml:1:1: has to be a list of rules, each beginning with "- id: …"'],
    ],
    [
      'a word Cedar keeps for itself',
      '- { id: r, when: { arguments: { __entity: x } }, then: ask }',
      ['rules.yaml:1:3: rule r: names arguments.__entity, which uses a word Cedar keeps for itself'],
    ],
    [
      'the same member twice',
      '- { id: r, then: ask, then: allow }',
      ['rules.yaml:1:23: this name stands here for the second time; leave one of them out'],
    ],
    ['broken YAML', '- { id: r\n- x', ['rules.yaml:2:1: a { that was opened before is not closed; write }']],
  ];
  test.each(cases)('%s', async (_name, yaml, expected) => {
    expect(await problems(yaml)).toEqual(expected);
  });

  test('every mistake is listed, not only the first', async () => {
    expect(await problems('- { id: a, then: alow }\n- { id: b, wen: 1, then: ask }')).toHaveLength(2);
  });
  test('too many to read are counted', async () => {
    const many = Array.from({ length: 30 }, (_, index) => `- { id: r${index} }`).join('\n');
    const lines = await problems(many);
    expect(lines).toHaveLength(21);
    expect(lines.at(-1)).toBe('and 10 more');
  });
  test('a file full of references does not blow up', async () => {
    const bomb = [
      'a: &a [x,x,x,x,x,x,x,x,x]',
      ...'bcdefgh'.split('').map((name, index) => {
        const before = 'abcdefg'[index];
        return `${name}: &${name} [${Array(9).fill(`*${before}`).join(',')}]`;
      }),
    ].join('\n');
    expect((await problems(bomb))[0]).toContain('Excessive alias count');
  });
});

describe('the schema', () => {
  const valid = new Ajv2020({ strict: false }).compile(RULES_SCHEMA);
  const good = [
    '- { id: r, then: allow }',
    '- { id: r, when: { kind: fs.*, effect: [send, pay], tool: "*x", arguments: { a: 1, b: { above: 3 } } }, then: ask, to: [me], expires: 10m }',
    '- { id: r, unless: { tier: act_auto }, then: modify, set: { a: null } }',
    '- { id: r, then: defer, retry_after: 5s, say: later }',
  ];
  test.each(good)('takes what the loader takes: %s', async (yaml) => {
    expect(valid(parse(yaml))).toBe(true);
    expect(await problems(yaml)).toEqual([]);
  });
  const bad = [
    '- { then: allow }',
    '- { id: r }',
    '- { id: "a b", then: ask }',
    '- { id: r, then: alow }',
    '- { id: r, wen: {}, then: ask }',
    '- { id: r, when: { tol: x }, then: ask }',
    '- { id: r, when: { effect: wirte }, then: ask }',
    '- { id: r, when: { tool: 7 }, then: ask }',
    '- { id: r, when: { tool: [] }, then: ask }',
    '- { id: r, when: { arguments: {} }, then: ask }',
    'x: 1',
  ];
  test.each(bad)('refuses what the loader refuses: %s', async (yaml) => {
    expect(valid(parse(yaml))).toBe(false);
    expect(await problems(yaml)).not.toEqual([]);
  });
});
