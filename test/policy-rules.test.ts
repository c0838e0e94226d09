import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { anAction, aPersona } from '../fixtures/policies/actions.ts';
import { createCedarEngine } from '../src/policy/cedar.ts';
import { cedarPattern, cedarString } from '../src/policy/cedar-text.ts';
import { loadPolicies } from '../src/policy/load.ts';
import { printCedar } from '../src/policy/rules.ts';
import { RULES_SCHEMA, type RuleSpec } from '../src/policy/rules-schema.ts';

const judge = async (yaml: string, change: object = {}) => {
  const policies = await loadPolicies({ rules: yaml, files: [] });
  return createCedarEngine({ policies }).judge(anAction(change));
};
const problems = async (yaml: string): Promise<readonly string[]> => {
  const refused = await loadPolicies({ rules: yaml, files: [] }).then(
    () => undefined,
    (thrown: Error) => thrown,
  );
  return refused?.message.split('\n') ?? [];
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
    return createCedarEngine({ policies }).judge(anAction(change));
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
        'rules.yaml:1:20: rule r: "colour" is not known; the words here are kind, effect, tool, server, target, principal, door, tier, workspace, session, tenant, persona, persona_id, evidence, arguments, attributes',
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
        'rules.yaml:1:33: rule r: when.kind.1: "fs.red" is not one of prompt, tool, fs.read, fs.write, terminal, handoff, elicit, session.open, session.configure, memory.read, memory.write, plan, reason, enrich, query, background, answer, extension; did you mean fs.read?',
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
    ['the same member twice', '- { id: r, then: ask, then: allow }', ['rules.yaml:1:23: Map keys must be unique']],
    [
      'broken YAML',
      '- { id: r\n- x',
      ['rules.yaml:2:1: Flow map in block collection must be sufficiently indented and end with a }'],
    ],
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

describe('printing', () => {
  test('rules are printed as the Cedar that is evaluated', async () => {
    const yaml = `
- id: outside
  when: { kind: [tool, terminal], effect: send, tool: "*mail", arguments: { to: "*@example.org" } }
  unless: { principal: "person:*" }
  then: ask
  to: [ann]
  say: mail leaves the house
`;
    const printed = `@id("outside")
@verdict("ask")
@reason("mail leaves the house")
@ask_to("ann")
forbid (principal, action in [Action::"tool", Action::"terminal"], resource)
when { context.effect == "send" && context has tool && context.tool like "*mail" && context.arguments has to && context.arguments.to like "*@example.org" }
unless { principal is Person };`;
    expect(printCedar(parse(yaml) as RuleSpec[])).toBe(printed);
    expect((await loadPolicies({ rules: yaml, files: [] })).text).toBe(printed);
  });
});
