import { describe, expect, test } from 'vitest';
import { anAction, aPersona } from '../../../fixtures/policies/actions.ts';
import { createPersonaEngine } from '../../../src/policy/persona.ts';

const engine = createPersonaEngine();
const judge = (change: object) => engine.judge(anAction(change));

describe('what a persona lacks', () => {
  const refused: readonly [string, object, object, string][] = [
    [
      'a tool that is not listed',
      { tools: ['read_*'] },
      { tool: 'send_mail' },
      'persona reviewer lacks the tool send_mail',
    ],
    ['a tool call that names no tool', { tools: ['read_*'] }, {}, 'persona reviewer lacks the tool tool'],
    [
      'file work when only tools are listed',
      { tools: ['read_*'] },
      { kind: 'fs.write' },
      'persona reviewer lacks the tool fs.write',
    ],
    [
      'terminal work',
      { tools: ['read_*'] },
      { kind: 'terminal', tool: 'bash' },
      'persona reviewer lacks the tool bash',
    ],
    [
      'another server',
      { tools: ['github/*'] },
      { tool: 'merge', server: 'gitlab' },
      'persona reviewer lacks the tool merge',
    ],
    [
      'a longer name than listed',
      { tools: ['read'] },
      { tool: 'read_all' },
      'persona reviewer lacks the tool read_all',
    ],
    ['another case', { tools: ['read'] }, { tool: 'Read' }, 'persona reviewer lacks the tool Read'],
    [
      'a kind not among its capabilities',
      { capabilities: ['fs.*'] },
      { tool: 'x' },
      'persona reviewer lacks the capability tool',
    ],
    [
      'an effect not among its capabilities',
      { capabilities: ['read'] },
      { effect: 'send' },
      'persona reviewer lacks the capability send',
    ],
    [
      'an unknown effect',
      { capabilities: ['read', 'write'] },
      { effect: 'unknown' },
      'persona reviewer lacks the capability unknown',
    ],
    [
      'a handoff to someone else',
      { handoffs: ['team-*'] },
      { kind: 'handoff', target: 'outsider' },
      'persona reviewer may not hand off to outsider',
    ],
    [
      'a handoff to nobody',
      { handoffs: ['team-*'] },
      { kind: 'handoff' },
      'persona reviewer may not hand off to an unnamed agent',
    ],
  ];
  test.each(refused)('%s', (_name, persona, action, reason) => {
    expect(judge({ persona: aPersona(persona), ...action })).toEqual({
      verdict: 'block',
      code: 'persona_lacks',
      reason,
      engine: 'persona',
    });
  });

  const fine: readonly [string, object, object][] = [
    ['a listed tool', { tools: ['send_mail'] }, { tool: 'send_mail' }],
    ['a glob', { tools: ['read_*'] }, { tool: 'read_file' }],
    ['a glob of everything', { tools: ['*'] }, { tool: 'anything' }],
    ['a tool of a listed server', { tools: ['github/*'] }, { tool: 'merge', server: 'github' }],
    ['file work by its kind', { tools: ['fs.*'] }, { kind: 'fs.write' }],
    ['no list at all', {}, { tool: 'anything' }],
    ['an empty list', { tools: [], capabilities: [], handoffs: [] }, { tool: 'anything' }],
    ['a kind and an effect among its capabilities', { capabilities: ['tool', 'read'] }, { tool: 'x' }],
    ['no effect at all', { capabilities: ['read'] }, { effect: 'none' }],
    ['capabilities in words of others', { capabilities: ['code-review', 'workspace.read_text'] }, { effect: 'pay' }],
    ['a handoff to a listed peer', { handoffs: ['team-*'] }, { kind: 'handoff', target: 'team-b' }],
    ['a prompt, which is no tool', { tools: ['read'], capabilities: ['fs.read'] }, { kind: 'prompt' }],
  ];
  test.each(fine)('nothing: %s', (_name, persona, action) => {
    expect(judge({ persona: aPersona(persona), ...action })).toMatchObject({ verdict: 'allow', code: 'no_objection' });
  });
});

describe('tiers', () => {
  const acts = ['tool', 'fs.read', 'fs.write', 'terminal', 'handoff', 'memory.write'];
  test.each(acts)('shadow: %s does not act', (kind) => {
    expect(judge({ kind, tier: 'shadow' })).toEqual({
      verdict: 'block',
      code: 'tier_shadow',
      reason: 'shadow tier: nothing acts',
      engine: 'persona',
      would_be: 'allow',
    });
  });
  test.each(acts)('suggest: %s needs approval, even to read', (kind) => {
    expect(judge({ kind, effect: 'read', tier: 'suggest' })).toMatchObject({
      verdict: 'escalate',
      code: 'tier_suggest',
    });
  });
  test.each([
    ['none', 'allow'],
    ['read', 'allow'],
    ['write', 'escalate'],
    ['delete', 'escalate'],
    ['execute', 'escalate'],
    ['send', 'escalate'],
    ['publish', 'escalate'],
    ['pay', 'escalate'],
    ['unknown', 'escalate'],
    ['something new', 'escalate'],
  ])('act_with_approval: %s is %s', (effect, verdict) => {
    expect(judge({ effect, tier: 'act_with_approval' }).verdict).toBe(verdict);
  });
  test('act_auto leaves it to the rules', () => {
    expect(judge({ effect: 'pay', tier: 'act_auto' })).toMatchObject({ verdict: 'allow', code: 'no_objection' });
  });
  test('without a persona and a tier it is left to the rules', () => {
    expect(judge({ effect: 'pay' })).toMatchObject({ verdict: 'allow', code: 'no_objection' });
  });
  test.each(['', 'ACT_AUTO', 'auto', 'yolo', 'act_auto ', 'constructor'])(
    'an unknown tier %j is suggest, never auto',
    (tier) => {
      expect(judge({ effect: 'read', tier })).toMatchObject({ verdict: 'escalate', code: 'tier_unknown' });
    },
  );
  test('the tier of the persona counts when the action has none', () => {
    expect(judge({ persona: aPersona({ autonomy_tier: 'suggest' }) })).toMatchObject({ verdict: 'escalate' });
  });
  test('what is no act of an agent is not held up by a tier', () => {
    for (const kind of ['prompt', 'answer', 'plan', 'session.open']) {
      expect(judge({ kind, tier: 'shadow' }).verdict).toBe('allow');
    }
  });
  test('in shadow, what the persona lacks would have been a block', () => {
    expect(judge({ tier: 'shadow', persona: aPersona({ tools: ['a'] }), tool: 'b' })).toEqual({
      verdict: 'block',
      code: 'tier_shadow',
      reason: 'shadow tier: nothing acts, and persona reviewer lacks the tool b',
      engine: 'persona',
      would_be: 'block',
    });
  });
});
