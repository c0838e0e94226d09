/**
 * Every structure of the protocol is read and written as its own types declare it, also in the cases nobody recorded.
 */
import { describe, expect, test } from 'vitest';
import { shapeOf } from '../../conformance/ahp/compare.ts';
import { type Case, casesOf, full, type Member, valuesOf } from '../../support/ahp/cases.ts';
import { DECISIONS, STRUCTURES, TARGETS } from '../../support/ahp/structures.ts';
import { STRATEGY } from '../../support/ahp/words.ts';

function targetOf(kind: string): unknown {
  return { [kind]: full(TARGETS[kind] as Record<string, Member>) };
}

function agree(type: string, cases: Iterable<Case>): void {
  const read = shapeOf(type);
  const wrong: string[] = [];
  let count = 0;
  for (const { note, input, output } of cases) {
    count += 1;
    let came: unknown;
    try {
      came = read(input);
    } catch {
      came = undefined;
    }
    if (JSON.stringify(sorted(came)) !== JSON.stringify(sorted(output))) {
      wrong.push(`${note}: ${JSON.stringify(input)} is read as ${JSON.stringify(came)}`);
    }
  }
  expect(wrong).toEqual([]);
  expect(count).toBeGreaterThan(5);
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, member]) => [name, sorted(member)]),
  );
}

describe('what follows from how the protocol declares its types', () => {
  test.each(Object.entries(STRUCTURES))('%s', (type, members) => agree(type, casesOf(members)));

  test.each(Object.entries(DECISIONS))('%s', (type, kinds) => {
    agree(
      type,
      Object.entries(kinds).flatMap(([decision, members]) =>
        [...casesOf(members)].map(({ note, input, output }) => {
          const tag = (value: unknown) =>
            typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value, decision } : value;
          return {
            note: `${decision}: ${note}`,
            input: tag(input),
            ...(output !== undefined && { output: tag(output) }),
          };
        }),
      ),
    );
    const words = Object.values(DECISIONS).flatMap((each) => Object.keys(each));
    const strange = words.filter((word) => !Object.hasOwn(kinds, word));
    const everything = { reason: 'r', retry_after_ms: 1, modified_payload: {}, scope_hints: [], injected_facts: [] };
    for (const decision of [...strange, 'Allow', 'BLOCK', '', 1, null, ['allow'], { allow: null }, undefined]) {
      expect(() => shapeOf(type)({ ...everything, decision })).toThrow();
    }
  });

  test('PerceptionTarget', () => {
    agree(
      'PerceptionTarget',
      Object.entries(TARGETS).flatMap(([kind, members]) =>
        [...casesOf(members)].map(({ note, input, output }) => ({
          note: `${kind}: ${note}`,
          input: { [kind]: input },
          ...(output !== undefined && { output: { [kind]: output } }),
        })),
      ),
    );
    const two = { ...(targetOf('rule') as object), ...(targetOf('state') as object) };
    for (const odd of [{}, 'entity', ['entity'], { Entity: {} }, { type: 'location', path: '.' }, two, null]) {
      expect(() => shapeOf('PerceptionTarget')(odd)).toThrow();
    }
  });

  test('PlanningEvent offers strategies by name, its own ones wrapped', () => {
    const strategies = (value: unknown) => ({ session_id: 's', task_description: 't', available_strategies: value });
    for (const { input, output } of valuesOf(STRATEGY, false)) {
      const read = () => shapeOf('PlanningEvent')(strategies(['none', input]));
      if (output === undefined) expect(read).toThrow();
      else expect(read()).toEqual(strategies(['none', output]));
    }
  });
});
