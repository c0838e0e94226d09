/**
 * Slicing, guards and memory are there for speed only. Whatever the rules and whatever is asked, the answer has to be
 * the one a single stateless Cedar call over all rules and the whole context leads to.
 */
import * as cedar from '@cedar-policy/cedar-wasm/nodejs';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ACTION_KINDS, type Action } from '../../../../src/model/actions.ts';
import { EFFECTS, isSideEffect, VERDICTS } from '../../../../src/model/words.ts';
import type { CompiledPolicies } from '../../../../src/policy/cedar/compiled.ts';
import { createCedarEngine } from '../../../../src/policy/cedar/engine.ts';
import { toContext } from '../../../../src/policy/context.ts';
import { loadPolicies } from '../../../../src/policy/rules/load.ts';
import { readAct } from '../../../../src/runtime/read-act.ts';

const WORDS = ['read', 'a', 'ab', 'abc', 'src/a', '*', '', 'é'];
const text = fc.constantFrom(...WORDS);
const quoted = text.map((word) => JSON.stringify(word));
const pattern = fc.constantFrom('"a*"', '"*b*"', '"*c"', '"ab"', '"*"', '"\\*"', '"src/*"', '""', '"é*"', '"a*b*c"');
const field = fc.constantFrom('tool', 'server', 'target', 'effect', 'door', 'persona', 'tier', 'session', 'principal');
const member = fc.constantFrom('path', 'n', 'deep', 'list');
const location = fc.oneof(
  field.map((name) => `context.${name}`),
  member.map((name) => `context.arguments.${name}`),
  member.map((name) => `context.attributes.${name}`),
  member.map((name) => `context.arguments.deep.${name}`),
);
const literal = fc.oneof(quoted, fc.constantFrom('1', '2', 'true', 'false'));
const atom = fc.oneof(
  fc.tuple(location, quoted).map(([where, word]) => `${where} == ${word}`),
  fc.tuple(location, literal).map(([where, word]) => `${word} == ${where}`),
  fc.tuple(location, literal).map(([where, word]) => `${where} != ${word}`),
  fc.tuple(location, pattern).map(([where, like]) => `${where} like ${like}`),
  fc.tuple(location, fc.integer({ min: -2, max: 3 })).map(([where, n]) => `${where} < ${n}`),
  fc.tuple(location, literal).map(([where, word]) => `${where}.contains(${word})`),
  fc
    .tuple(fc.array(quoted, { minLength: 1, maxLength: 3 }), location)
    .map(([set, where]) => `[${set.join(', ')}].contains(${where})`),
  fc.tuple(location, location).map(([a, b]) => `${a} == ${b}`),
  field.map((name) => `context has ${name}`),
  member.map((name) => `context.arguments has ${name}`),
  member.map((name) => `context.arguments.deep has ${name}`),
  member.map((name) => `context has arguments.deep.${name}`),
  fc.constantFrom(
    'context.side_effect',
    'principal is Agent',
    'principal == Agent::"a"',
    'resource == Tool::"ab"',
    'action == Action::"tool"',
    'context.arguments == {"path": "a"}',
    '(if context.side_effect then context.arguments else context.attributes).path == "a"',
    'true',
    '!(context.effect == "read")',
  ),
);
/** Half of them look before they reach, as a careful author would. */
const careful = fc.oneof(
  atom,
  fc.tuple(field, quoted).map(([name, word]) => `context has ${name} && context.${name} == ${word}`),
  fc
    .tuple(member, pattern)
    .map(([name, like]) => `context.arguments has ${name} && context.arguments.${name} like ${like}`),
  fc
    .tuple(field, pattern, pattern)
    .map(([n, a, b]) => `context has ${n} && (context.${n} like ${a} || context.${n} like ${b})`),
);
const scope = fc.record({
  principal: fc.constantFrom(
    'principal',
    'principal',
    'principal is Agent',
    'principal == Person::"a"',
    'principal in Agent::"ab"',
  ),
  action: fc.constantFrom(
    'action',
    'action',
    'action == Action::"tool"',
    'action in [Action::"tool", Action::"fs.read"]',
  ),
  resource: fc.constantFrom(
    'resource',
    'resource',
    'resource == Tool::"ab"',
    'resource is Tool',
    'resource == Workspace::"w"',
  ),
});
const policy = fc.record({
  effect: fc.constantFrom('permit', 'forbid'),
  verdict: fc.constantFrom('', '', 'escalate', 'defer', 'block', 'modify'),
  scope,
  clauses: fc.array(
    fc.tuple(fc.constantFrom('when', 'when', 'unless'), fc.array(careful, { minLength: 1, maxLength: 3 })),
    { maxLength: 2 },
  ),
});
const policies = fc.array(policy, { minLength: 1, maxLength: 12 }).map((list) =>
  list
    .map(({ effect, verdict, scope: { principal, action, resource }, clauses }, index) => {
      const notes = [`@id("r${index}")`, ...(verdict ? [`@verdict("${verdict}")`] : [])];
      if (verdict === 'modify') notes.push('@modify("{\\"added\\":1}")');
      const body = clauses.map(([kind, atoms]) => `${kind} { ${atoms.join(' && ')} }`).join(' ');
      return `${notes.join(' ')} ${effect}(${principal}, ${action}, ${resource}) ${body};`;
    })
    .join('\n'),
);

const hostile = fc.constantFrom<unknown>(
  null,
  1.5,
  1e30,
  2 ** 53,
  '\ud800',
  [],
  ['a', 'ab'],
  [1, null],
  { __entity: { type: 'Agent', id: 'a' } },
  { __extn: { fn: 'ip', arg: '1.2.3.4' } },
  { __extn: { fn: 'unknown', arg: 'a' } },
  { path: 'a', n: 1 },
  { path: 1.5 },
  { '\ud800': 1 },
  'x'.repeat(70_000),
);
const value = fc.oneof(text, text, fc.integer({ min: -2, max: 3 }), fc.boolean(), hostile);
const record = fc.dictionary(fc.constantFrom('path', 'n', 'deep', 'list', '__proto__', '__entity'), value, {
  maxKeys: 4,
});
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
const action = fc
  .record({
    kind: fc.constantFrom(...ACTION_KINDS.slice(0, 5)),
    actor: fc.record({
      id: fc.constantFrom('a', 'ab', 'x'),
      kind: fc.constantFrom('person', 'agent', 'service'),
      scopes: fc.constant([]),
      door: maybe(text),
    }),
    tool: maybe(fc.constantFrom('a', 'ab', 'abc', '', 'x\u0000y')),
    server: maybe(text),
    target: maybe(text),
    session_id: maybe(text),
    arguments: record,
    attributes: maybe(record),
    effect: fc.constantFrom(...EFFECTS.slice(0, 4)),
    tier: maybe(fc.constantFrom('act_auto', 'suggest')),
  })
  .map((drawn) => ({ id: 'act', workspace_id: 'w', evidence: 'held', ...drawn }) as unknown as Action);

/** One stateless call over everything, and the plain reading of what follows from it. */
function plainly(set: CompiledPolicies, asked: Action) {
  const answer = cedar.isAuthorized({
    principal: {
      type: { person: 'Person', agent: 'Agent', service: 'Service', system: 'System' }[asked.actor.kind],
      id: asked.actor.id,
    },
    action: { type: 'Action', id: asked.kind },
    resource:
      asked.tool !== undefined
        ? { type: 'Tool', id: asked.tool }
        : asked.target !== undefined
          ? { type: 'Target', id: asked.target }
          : { type: 'Workspace', id: asked.workspace_id },
    context: toContext(asked, { whole: true, members: new Map() }) as Record<string, never>,
    policies: { staticPolicies: Object.fromEntries(set.rules.map((rule) => [rule.id, rule.text])) },
    entities: [],
  });
  if (answer.type === 'failure') throw new Error(JSON.stringify(answer.errors));
  const { reason, errors } = answer.response.diagnostics;
  const byId = new Map(set.rules.map((rule) => [rule.id, rule]));
  const order = (id: string) => byId.get(id)?.index ?? -1;
  const verdictOf = (id: string) => byId.get(id)?.verdict ?? 'block';
  const matched = [...reason].sort((a, b) => order(a) - order(b));
  const failed = errors
    .map(({ policyId }) => policyId)
    .filter((id) => verdictOf(id) !== 'allow')
    .sort((a, b) => order(a) - order(b));
  for (const verdict of VERDICTS) {
    if (verdict === 'escalate' && failed[0]) return { verdict: 'block', rule_id: failed[0], code: 'policy_error' };
    const rule = matched.find((id) => verdictOf(id) === verdict);
    if (!rule) continue;
    const settled = verdict === 'modify' && asked.arguments.added === 1 ? 'allow' : verdict;
    return { verdict: settled, rule_id: rule, code: undefined };
  }
  return { verdict: isSideEffect(asked.effect) ? 'escalate' : 'allow', rule_id: undefined, code: 'no_rule' };
}

/** The only rewrite adds a member that a rule can see solely through the whole record, so those sets are distinguished. */
function seesAdded(set: CompiledPolicies): boolean {
  return set.rules.some(({ names }) => names.whole || names.members.get('arguments')?.whole === true);
}

// Stateless calls parse every rule anew, so this takes its time on a busy machine.
test('slices and memory never change a decision', { timeout: 180_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(policies, fc.array(action, { minLength: 1, maxLength: 12 }), async (source, asked) => {
      const set = await loadPolicies({ files: [{ name: 'r.cedar', text: source }] });
      fc.pre(!seesAdded(set) || !set.rules.some(({ verdict }) => verdict === 'modify'));
      const remembering = createCedarEngine({ read: readAct, policies: set });
      const forgetting = createCedarEngine({ read: readAct, policies: set, memoEntries: 0 });
      for (const one of [...asked, ...asked]) {
        const expected = plainly(set, one);
        const { verdict, rule_id, code } = remembering.judge(one);
        expect({ verdict, rule_id, code }).toEqual(expected);
        expect(remembering.judge(one)).toEqual(forgetting.judge(one));
      }
    }),
    { numRuns: 120 },
  );
});
