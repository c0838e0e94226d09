/** Cedar policies that rewrite arguments: together, against each other, and judged again as they would run. */
import { describe, expect, test } from 'vitest';
import { anAction } from '../../../../fixtures/policies/actions.ts';
import { ALL, engineFor, judge } from '../../../support/policy/cedar.ts';

describe('rewrites', () => {
  const modify = (id: string, patch: object, when = '') =>
    `@id("${id}") @verdict("modify") @modify(${JSON.stringify(JSON.stringify(patch))}) forbid${ALL} ${when};`;
  test('two rules that change different members both do', async () => {
    const decision = await judge(modify('a', { x: 1 }) + modify('b', { y: { z: 2 } }), { arguments: { y: { k: 1 } } });
    expect(decision).toMatchObject({ verdict: 'modify', rule_id: 'a', arguments: { x: 1, y: { k: 1, z: 2 } } });
  });
  test('two rules that agree are one', async () => {
    expect(await judge(modify('a', { x: 1 }) + modify('b', { x: 1 }))).toMatchObject({
      verdict: 'modify',
      arguments: { x: 1 },
    });
  });
  test('two rules that contradict each other need a person', async () => {
    const decision = await judge(modify('a', { x: 1 }) + modify('b', { x: 2 }));
    expect(decision).toMatchObject({ verdict: 'escalate', code: 'modify_conflict' });
    expect(decision).not.toHaveProperty('arguments');
  });
  test('a call that already is as the rule wants it is allowed as it is', async () => {
    const decision = await judge(modify('a', { force: false }), { arguments: { force: false }, effect: 'write' });
    expect(decision).toMatchObject({ verdict: 'allow', rule_id: 'a' });
    expect(decision).not.toHaveProperty('arguments');
  });
  test('what would run has to pass the rules as well', async () => {
    const guard = `@id("no-b") forbid${ALL} when { context.arguments.mode == "b" };`;
    expect(
      await judge(modify('a', { mode: 'b' }, 'when { context.arguments.mode == "a" }') + guard, {
        arguments: { mode: 'a' },
      }),
    ).toMatchObject({
      verdict: 'block',
      rule_id: 'no-b',
    });
  });
  test('a person asked because of the result is shown the result', async () => {
    const ask = `@id("ask-b") @verdict("ask") forbid${ALL} when { context.arguments.mode == "b" };`;
    expect(
      await judge(modify('a', { mode: 'b' }, 'when { context.arguments.mode == "a" }') + ask, {
        arguments: { mode: 'a' },
      }),
    ).toMatchObject({
      verdict: 'escalate',
      rule_id: 'ask-b',
      arguments: { mode: 'b' },
    });
  });
  test('rules that keep rewriting each other need a person', async () => {
    const there = modify('there', { mode: 'b' }, 'when { context.arguments.mode == "a" }');
    const back = modify('back', { mode: 'a' }, 'when { context.arguments.mode == "b" }');
    expect(await judge(there + back, { arguments: { mode: 'a' } })).toMatchObject({
      verdict: 'escalate',
      code: 'modify_conflict',
    });
  });
  test('an ask and a rewrite together ask about the rewritten call', async () => {
    const ask = `@id("ask") @verdict("ask") @ask_to("ann") forbid${ALL};`;
    expect(await judge(modify('a', { x: 1 }) + ask)).toMatchObject({
      verdict: 'escalate',
      rule_id: 'ask',
      ask: { to: ['ann'] },
      arguments: { x: 1 },
    });
  });
  test('the action itself is left alone', async () => {
    const action = anAction({ arguments: { a: { b: 1 } } });
    (await engineFor(modify('a', { a: { b: 2 } }))).judge(action);
    expect(action.arguments).toEqual({ a: { b: 1 } });
  });
});
