import { describe, expect, test } from 'vitest';
import { anAction, aPersona, aQuota, NOW } from '../../../fixtures/policies/actions.ts';
import type { Action, Decision } from '../../../src/model/actions.ts';
import { createCedarEngine } from '../../../src/policy/cedar/engine.ts';
import { createPolicyChain } from '../../../src/policy/chain.ts';
import { createPersonaEngine } from '../../../src/policy/persona.ts';
import { createQuotaEngine } from '../../../src/policy/quota.ts';
import { loadPolicies } from '../../../src/policy/rules/load.ts';
import type { PolicyEngine } from '../../../src/ports/index.ts';

const quiet = new AbortController().signal;

/** An engine from outside: whatever it answers, it answers late by a turn. */
function says(
  name: string,
  answer: Partial<Decision> | ((action: Action) => unknown),
  asked: Action[] = [],
): PolicyEngine {
  return {
    name,
    decide: async (action) => {
      asked.push(action);
      const said =
        typeof answer === 'function' ? answer(action) : { reason: `${name} says so`, engine: name, ...answer };
      return said as Decision;
    },
  };
}
const decide = (engines: readonly PolicyEngine[], action = anAction(), timeoutMs = 5_000) =>
  createPolicyChain({ engines, timeoutMs }).decide(action, quiet);

describe('the strictest answer wins', () => {
  const words = ['block', 'escalate', 'defer', 'modify', 'allow'] as const;
  const pairs = words.flatMap((a, i) => words.map((b, j) => [a, b, words[Math.min(i, j)] as string] as const));
  test.each(pairs)('%s and %s is %s', async (a, b, expected) => {
    const extra = (verdict: string) => (verdict === 'modify' ? { arguments: { [verdict]: 1 } } : {});
    const answer = await decide([says('one', { verdict: a, ...extra(a) }), says('two', { verdict: b, ...extra(b) })]);
    expect(answer.verdict).toBe(expected);
  });

  test('the answer names the engine and the rule that decided', async () => {
    const answer = await decide([
      says('one', { verdict: 'allow' }),
      says('two', { verdict: 'escalate', rule_id: 'r7', policy_version: 'v1' }),
      says('three', { verdict: 'allow', rule_id: 'r8' }),
    ]);
    expect(answer).toEqual({
      verdict: 'escalate',
      rule_id: 'r7',
      policy_version: 'v1',
      reason: 'two says so',
      engine: 'two',
    });
  });
  test('among allows the one with a rule is reported', async () => {
    const answer = await decide([
      says('one', { verdict: 'allow' }),
      says('two', { verdict: 'allow', rule_id: 'r' }),
      says('three', { verdict: 'allow' }),
    ]);
    expect(answer).toMatchObject({ engine: 'two', rule_id: 'r' });
  });
  test('a block ends the questioning', async () => {
    const asked: Action[] = [];
    expect((await decide([says('one', { verdict: 'block' }), says('two', { verdict: 'allow' }, asked)])).verdict).toBe(
      'block',
    );
    expect(asked).toEqual([]);
  });
  test('the approvers are kept from every engine, and the shortest time counts', async () => {
    const answer = await decide([
      says('tier', { verdict: 'escalate', ask: { expires_ms: 60_000 } }),
      says('rule', { verdict: 'escalate', ask: { to: ['ann'], expires_ms: 90_000 } }),
    ]);
    expect(answer).toMatchObject({ engine: 'tier', ask: { to: ['ann'], expires_ms: 60_000 } });
  });
  test('what can be said at once is what would have been said with waiting', async () => {
    const rules = '- { id: r, when: { kind: tool }, then: allow }';
    const cedar = createCedarEngine({ policies: await loadPolicies({ rules, files: [] }) });
    const own = [createPersonaEngine(), createQuotaEngine({ clock: { now: () => NOW } }), cedar];
    const chain = createPolicyChain({ engines: own });
    for (const action of [anAction(), anAction({ tier: 'suggest' }), anAction({ tier: 'shadow' })]) {
      expect(chain.judge(action)).toEqual(await chain.decide(action, quiet));
    }
  });
  test('an engine that answers from outside is waited for', () => {
    const chain = createPolicyChain({ engines: [createPersonaEngine(), says('outside', { verdict: 'allow' })] });
    expect(chain.judge(anAction())).toBeUndefined();
  });
  test('an engine of ours that throws is a no at once, too', () => {
    const broken = {
      ...says('broken', { verdict: 'allow' }),
      judge(): Decision {
        throw new Error('secret words');
      },
    };
    const answer = createPolicyChain({ engines: [broken] }).judge(anAction());
    expect(answer).toMatchObject({ verdict: 'block', code: 'policy_error' });
    expect(JSON.stringify(answer)).not.toContain('secret words');
  });
  test('no engine at all is a no', async () => {
    expect(await decide([])).toMatchObject({ verdict: 'block', code: 'policy_error' });
  });
});

describe('an engine that does not answer properly has not said yes', () => {
  const nonsense: readonly [string, unknown][] = [
    ['nothing', undefined],
    ['null', null],
    ['a text', 'allow'],
    ['a list', [{ verdict: 'allow', reason: 'x' }]],
    ['an unknown word', { verdict: 'permit', reason: 'x' }],
    ['no reason', { verdict: 'allow' }],
    ['a modify without arguments', { verdict: 'modify', reason: 'x' }],
    ['arguments that are no object', { verdict: 'modify', reason: 'x', arguments: [1] }],
    ['a word every object has', { verdict: 'constructor', reason: 'x' }],
  ];
  test.each(nonsense)('%s', async (_name, answer) => {
    expect(await decide([says('odd', () => answer), says('next', { verdict: 'allow' })])).toEqual({
      verdict: 'block',
      code: 'policy_error',
      reason: 'odd answered with something that is not a decision',
      engine: 'odd',
    });
  });

  const failing: readonly [string, PolicyEngine][] = [
    ['rejects', { name: 'odd', decide: () => Promise.reject(new Error('token=hunter2')) }],
    [
      'throws',
      {
        name: 'odd',
        decide: () => {
          throw new Error('token=hunter2');
        },
      },
    ],
    [
      'throws though pure',
      Object.assign(
        { name: 'odd', decide: async () => ({}) as Decision },
        {
          judge: () => {
            throw new Error('token=hunter2');
          },
        },
      ),
    ],
  ];
  test.each(failing)('%s, and its message stays inside', async (_name, engine) => {
    expect(await decide([engine])).toEqual({
      verdict: 'block',
      code: 'policy_error',
      reason: 'odd failed while deciding, which counts as no',
      engine: 'odd',
    });
  });

  const silent: PolicyEngine = { name: 'mute', decide: () => new Promise(() => {}) };
  test('silence is a no when the time is up', async () => {
    expect(await decide([silent], anAction(), 20)).toEqual({
      verdict: 'block',
      code: 'policy_timed_out',
      reason: 'mute did not answer in time, which counts as no',
      engine: 'mute',
    });
  });
  test('a caller who gives up gets an answer at once, and the signal of the engine fires', async () => {
    const caller = new AbortController();
    let reported = false;
    const engine: PolicyEngine = {
      name: 'mute',
      decide: (_action, signal) => {
        signal.addEventListener('abort', () => {
          reported = true;
        });
        return new Promise(() => {});
      },
    };
    const answer = createPolicyChain({ engines: [engine], timeoutMs: 60_000 }).decide(anAction(), caller.signal);
    caller.abort();
    expect(await answer).toMatchObject({ verdict: 'block', code: 'policy_timed_out' });
    expect(reported).toBe(true);
  });
  test('a caller who gave up before asking gets a no', async () => {
    const chain = createPolicyChain({ engines: [says('one', { verdict: 'allow' })] });
    expect(await chain.decide(anAction(), AbortSignal.abort())).toMatchObject({
      verdict: 'block',
      code: 'policy_timed_out',
    });
  });
  test('an answer that comes too late changes nothing', async () => {
    let answer: (decision: Decision) => void = () => {};
    const slow: PolicyEngine = {
      name: 'slow',
      decide: () =>
        new Promise((resolve) => {
          answer = resolve;
        }),
    };
    const decided = await decide([slow], anAction(), 10);
    answer({ verdict: 'allow', reason: 'yes', engine: 'slow' });
    expect(decided.verdict).toBe('block');
  });
});

describe('answers from outside', () => {
  test('cannot pass for the shadow tier, nor for another engine', async () => {
    const answer = await decide([
      says('rules', { verdict: 'escalate' }),
      says('liar', { verdict: 'allow', code: 'tier_shadow', engine: 'persona', would_be: 'allow' }),
    ]);
    expect(answer).toEqual({ verdict: 'escalate', reason: 'rules says so', engine: 'rules' });
    expect(await decide([says('liar', { verdict: 'block', code: 'tier_shadow', engine: 'persona' })])).toEqual({
      verdict: 'block',
      code: 'tier_shadow',
      reason: 'liar says so',
      engine: 'liar',
    });
  });
  test('keep only what a decision has', async () => {
    const odd = {
      verdict: 'escalate',
      reason: 'x'.repeat(5_000),
      rule_id: 7,
      ask: { to: ['ann', 3, ''], expires_ms: -1 },
      junk: 1,
    };
    expect(await decide([says('odd', () => odd)])).toEqual({
      verdict: 'escalate',
      reason: 'x'.repeat(2_000),
      engine: 'odd',
      ask: { to: ['ann'] },
    });
  });
  test.each([['ann'], [{}], [[3, '']]])('say whom to ask so that nobody can tell (%j) and are refused', async (to) => {
    const odd = { verdict: 'escalate', reason: 'ask someone', ask: { to } };
    expect(await decide([says('odd', () => odd as never)])).toMatchObject({ verdict: 'block', code: 'policy_error' });
  });
});

describe('rewrites', () => {
  test('the next engine judges what would run', async () => {
    const asked: Action[] = [];
    const answer = await decide(
      [says('one', { verdict: 'modify', arguments: { a: 2 } }), says('two', { verdict: 'allow' }, asked)],
      anAction({ arguments: { a: 1 } }),
    );
    expect(asked[0]?.arguments).toEqual({ a: 2 });
    expect(answer).toMatchObject({ verdict: 'modify', engine: 'one', arguments: { a: 2 } });
  });
  test('two rewrites of different members both happen', async () => {
    const answer = await decide(
      [
        says('one', { verdict: 'modify', arguments: { a: 2, b: 1 } }),
        says('two', (action) => ({ verdict: 'modify', reason: 'r', arguments: { ...action.arguments, b: 2 } })),
      ],
      anAction({ arguments: { a: 1, b: 1 } }),
    );
    expect(answer).toMatchObject({ verdict: 'modify', arguments: { a: 2, b: 2 } });
  });
  test('two rewrites of the same member need a person', async () => {
    const answer = await decide(
      [
        says('one', { verdict: 'modify', arguments: { a: 2 } }),
        says('two', { verdict: 'modify', arguments: { a: 3 } }),
      ],
      anAction({ arguments: { a: 1 } }),
    );
    expect(answer).toMatchObject({ verdict: 'escalate', code: 'modify_conflict', engine: 'chain' });
  });
  test('a person asked about a rewritten call is asked about the rewritten one', async () => {
    const answer = await decide(
      [says('one', { verdict: 'escalate' }), says('two', { verdict: 'modify', arguments: { a: 2 } })],
      anAction({ arguments: { a: 1 } }),
    );
    expect(answer).toMatchObject({ verdict: 'escalate', engine: 'one', arguments: { a: 2 } });
  });
  test('an allow cannot smuggle arguments in', async () => {
    const asked: Action[] = [];
    const answer = await decide(
      [says('one', { verdict: 'allow', arguments: { a: 2 } }), says('two', { verdict: 'allow' }, asked)],
      anAction({ arguments: { a: 1 } }),
    );
    expect(asked[0]?.arguments).toEqual({ a: 1 });
    expect(answer).not.toHaveProperty('arguments');
  });
});

describe('with the real engines', () => {
  const rules = `
- { id: reads, when: { effect: read }, then: allow }
- { id: mail, when: { tool: send_mail }, then: ask, to: owner }
- { id: never, when: { tool: drop_all }, then: block }
`;
  const chainWith = async (...more: PolicyEngine[]) => {
    const policies = await loadPolicies({ rules, files: [] });
    const engines = [
      createPersonaEngine(),
      createQuotaEngine({ clock: { now: () => NOW } }),
      createCedarEngine({ policies }),
      ...more,
    ];
    return { chain: createPolicyChain({ engines }), version: policies.version };
  };

  test.each([
    [{ tool: 'read' }, 'allow'],
    [{ tool: 'send_mail', effect: 'send' }, 'escalate'],
    [{ tool: 'drop_all', effect: 'delete' }, 'block'],
    [{ tool: 'unheard_of', effect: 'pay' }, 'escalate'],
  ])('in shadow nothing acts; %j would have been %s', async (action, would_be) => {
    const { chain } = await chainWith();
    const answer = await chain.decide(anAction({ ...action, tier: 'shadow' }), quiet);
    expect(answer).toMatchObject({ verdict: 'block', code: 'tier_shadow', would_be, engine: 'persona' });
  });
  test('in shadow, engines outside are asked as well, and their failure would have been a block', async () => {
    const { chain } = await chainWith({ name: 'odd', decide: () => Promise.reject(new Error('no')) });
    expect(await chain.decide(anAction({ tier: 'shadow' }), quiet)).toMatchObject({
      verdict: 'block',
      would_be: 'block',
    });
  });
  test('in shadow alone, without anyone who could have allowed it, it would have been a block', async () => {
    const alone = createPolicyChain({ engines: [createPersonaEngine()] });
    expect(await alone.decide(anAction({ tier: 'shadow' }), quiet)).toMatchObject({
      verdict: 'block',
      would_be: 'block',
    });
  });
  test('persona, quota and rules each get their say, and the version is always reported', async () => {
    const { chain, version } = await chainWith();
    const lacking = await chain.decide(anAction({ persona: aPersona({ tools: ['x'] }), tool: 'read' }), quiet);
    expect(lacking).toMatchObject({ verdict: 'block', engine: 'persona', policy_version: version });
    const spent = await chain.decide(
      anAction({ quotas: [aQuota({ usage: { tool_calls: 10 } })], cost: { tool_calls: 1 } }),
      quiet,
    );
    expect(spent).toMatchObject({ verdict: 'block', engine: 'quota', policy_version: version });
    const read = await chain.decide(anAction(), quiet);
    expect(read).toMatchObject({ verdict: 'allow', engine: 'cedar', rule_id: 'reads', policy_version: version });
  });
  test('an approval the tier wants goes to the people the rule names', async () => {
    const { chain } = await chainWith();
    const answer = await chain.decide(
      anAction({ tier: 'act_with_approval', tool: 'send_mail', effect: 'send' }),
      quiet,
    );
    expect(answer).toMatchObject({ verdict: 'escalate', engine: 'persona', ask: { to: ['owner'] } });
  });
  test('a soft limit is mentioned in the answer of the engine that decides', async () => {
    const { chain } = await chainWith();
    const quotas = [aQuota({ soft_limit: true, usage: { tool_calls: 10 } })];
    expect(await chain.decide(anAction({ quotas, cost: { tool_calls: 1 } }), quiet)).toMatchObject({
      verdict: 'allow',
      rule_id: 'reads',
      reason: 'rule reads allows this; soft limit tool_calls (10) of quota quota_1: 10 used, this needs 1',
    });
  });
});
