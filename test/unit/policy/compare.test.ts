import { expect, test } from 'vitest';
import { anAction } from '../../../fixtures/policies/actions.ts';
import type { Decision } from '../../../src/model/actions.ts';
import { createCedarEngine } from '../../../src/policy/cedar/engine.ts';
import { createPolicyChain } from '../../../src/policy/chain.ts';
import { compareDecisions } from '../../../src/policy/compare.ts';
import { createPersonaEngine } from '../../../src/policy/persona.ts';
import { loadPolicies } from '../../../src/policy/rules/load.ts';
import { readAct } from '../../../src/runtime/read-act.ts';

const rules = `
- { id: reads, when: { effect: read }, then: allow }
- { id: mail, when: { tool: send_mail }, then: ask }
- { id: keys, when: { kind: tool, arguments: { path: "*.pem" } }, then: block }
- { id: deep, when: { tool: deploy, arguments: { options: { token: "x*" } } }, then: block }
- { id: careful, when: { tool: push }, then: modify, set: { force: false } }
- { id: ann, when: { principal: "person:ann" }, then: block }
`;
const engine = async () => createCedarEngine({ read: readAct, policies: await loadPolicies({ rules, files: [] }) });
const said = (verdict: Decision['verdict'], more: object = {}): Decision => ({
  verdict,
  reason: 'then',
  engine: 'cedar',
  ...more,
});

async function compared(action: object, decision: Decision) {
  const found = [];
  for await (const one of compareDecisions([{ action: anAction(action), decision }], await engine())) found.push(one);
  const [one] = found;
  return { kind: one?.kind, why: one?.why };
}

const cases: readonly [string, object, Decision, object][] = [
  ['the same answer', { effect: 'read' }, said('allow'), { kind: 'same', why: undefined }],
  [
    'the same answer for another reason',
    { effect: 'read' },
    said('allow', { rule_id: 'other', reason: 'other' }),
    { kind: 'same' },
  ],
  [
    'another answer',
    { tool: 'send_mail', effect: 'send' },
    said('allow'),
    { kind: 'changed', why: 'allow → escalate (mail)' },
  ],
  ['no rule any more', { effect: 'pay' }, said('block'), { kind: 'changed', why: 'block → escalate (no_rule)' }],
  [
    'the same rewrite',
    { tool: 'push', arguments: { force: true } },
    said('modify', { arguments: { force: false } }),
    { kind: 'same' },
  ],
  [
    'another rewrite',
    { tool: 'push', arguments: { force: true } },
    said('modify', { arguments: { force: true, dry: true } }),
    {
      kind: 'changed',
      why: 'other arguments: /force, /dry (careful)',
    },
  ],
  [
    'a redacted value a rule names',
    { effect: 'read', arguments: { path: '[redacted]' } },
    said('allow'),
    {
      kind: 'unknown',
      why: 'the rules look at arguments.path, redacted in the record',
    },
  ],
  [
    'a redacted value in other words',
    { effect: 'read', arguments: { path: '[redacted: secret 7]' } },
    said('block'),
    { kind: 'unknown' },
  ],
  [
    'a redacted value inside one a rule names',
    { effect: 'read', arguments: { path: { a: ['[redacted]'] } } },
    said('allow'),
    { kind: 'unknown' },
  ],
  [
    'a redacted value deeper down',
    { tool: 'deploy', effect: 'write', arguments: { options: { token: '[redacted]' } } },
    said('block'),
    {
      kind: 'unknown',
      why: 'the rules look at arguments.options.token, redacted in the record',
    },
  ],
  [
    "a redacted value only another tool's rule names",
    { tool: 'other', effect: 'read', arguments: { options: { token: '[redacted]' } } },
    said('allow'),
    { kind: 'same' },
  ],
  [
    'a redacted value no rule names',
    { effect: 'read', arguments: { content: '[redacted]' } },
    said('allow'),
    { kind: 'same' },
  ],
  [
    'a redacted value only another kind of action is judged by',
    { kind: 'fs.read', arguments: { path: '[redacted]' } },
    said('allow'),
    { kind: 'same' },
  ],
  [
    'a redacted name of a tool',
    { tool: '[redacted]', effect: 'read' },
    said('allow'),
    { kind: 'unknown', why: 'the rules look at tool, redacted in the record' },
  ],
  [
    'redacted is only what begins so',
    { effect: 'read', arguments: { path: 'not [redacted]' } },
    said('allow'),
    { kind: 'same' },
  ],
];
test.each(cases)('%s', async (_name, action, decision, expected) => {
  expect(await compared(action, decision)).toMatchObject(expected);
});

test('a redacted principal is unknown where a rule names principals', async () => {
  const action = { effect: 'read', actor: { id: '[redacted]', kind: 'person', scopes: [] } };
  expect((await compared(action, said('allow'))).kind).toBe('unknown');
});

test('a whole chain can be compared, and both answers come along, one by one', async () => {
  const chain = createPolicyChain({ engines: [createPersonaEngine(), await engine()] });
  const actions = [anAction(), anAction({ tier: 'shadow' }), anAction({ arguments: { path: '[redacted]' } })];
  let read = 0;
  async function* recorded() {
    for (const action of actions) {
      read += 1;
      yield { action, decision: said(action.tier ? 'block' : 'allow', action.tier ? { would_be: 'block' } : {}) };
    }
  }
  const kinds: unknown[] = [];
  for await (const { kind, why, before, after } of compareDecisions(recorded(), chain)) {
    kinds.push([kind, why, before.verdict, after.verdict]);
    expect(read).toBe(kinds.length);
  }
  expect(kinds).toEqual([
    ['same', undefined, 'allow', 'allow'],
    ['changed', 'in shadow: block → allow (tier_shadow)', 'block', 'block'],
    ['unknown', 'the rules look at arguments.path, redacted in the record', 'allow', 'allow'],
  ]);
});

test('stops when asked to', async () => {
  const stop = new AbortController();
  const recorded = Array.from({ length: 5 }, () => ({ action: anAction(), decision: said('allow') }));
  let seen = 0;
  for await (const _one of compareDecisions(recorded, await engine(), stop.signal)) {
    seen += 1;
    if (seen === 2) stop.abort();
  }
  expect(seen).toBe(2);
});
