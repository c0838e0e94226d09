/**
 * Test cases for rules, read from YAML. Closed: an unknown member is a mistake with a position, and is never guessed
 * at.
 */

import { ACTION_KINDS } from '../../model/actions.ts';
import { Fault } from '../../model/faults.ts';
import { ClosedWord, NonEmpty, OpenObject } from '../../model/schema.ts';
import { type Static, type TProperties, Type } from '../../model/type.ts';
import { check } from '../../model/validate.ts';
import { AUTONOMY_TIERS, EFFECTS, EVIDENCE, type Verdict } from '../../model/words.ts';
import { nearest, type Problem, problemsFault } from './problems.ts';
import { parseYamlRules } from './yaml.ts';

const Optional = Type.Optional;
const Closed = <P extends TProperties>(properties: P) => Type.Object(properties, { additionalProperties: false });

/** The words of rules, and the verdicts they stand for. */
export const WORDS = {
  allow: 'allow',
  block: 'block',
  deny: 'block',
  ask: 'escalate',
  escalate: 'escalate',
  modify: 'modify',
  defer: 'defer',
} as const satisfies Readonly<Record<string, Verdict>>;

const ActionShape = Closed({
  kind: Optional(ClosedWord(ACTION_KINDS)),
  tool: Optional(NonEmpty),
  server: Optional(NonEmpty),
  target: Optional(NonEmpty),
  effect: Optional(ClosedWord(EFFECTS)),
  evidence: Optional(ClosedWord(EVIDENCE)),
  arguments: Optional(OpenObject),
  claims: Optional(Closed({ agent: Optional(NonEmpty), title: Optional(NonEmpty), kind: Optional(NonEmpty) })),
  cwd: Optional(NonEmpty),
  attributes: Optional(OpenObject),
  principal: Optional(NonEmpty),
  persona: Optional(NonEmpty),
  tier: Optional(ClosedWord(AUTONOMY_TIERS)),
  door: Optional(NonEmpty),
  workspace: Optional(NonEmpty),
  session: Optional(NonEmpty),
  tenant: Optional(NonEmpty),
});
const CaseShape = Closed({
  name: Optional(NonEmpty),
  action: ActionShape,
  expect: ClosedWord(Object.keys(WORDS) as (keyof typeof WORDS)[]),
  rule: Optional(NonEmpty),
  arguments: Optional(OpenObject),
});
type CaseShape = Static<typeof CaseShape>;

export interface Case extends Omit<CaseShape, 'name' | 'expect'> {
  readonly name: string;
  readonly expect: Verdict;
  readonly file: string;
  readonly line: number;
}

export interface Cases {
  readonly cases: readonly Case[];
  /** Path of the rules the cases are for. */
  readonly rules?: string;
}

/** A list of cases, or `cases:` and the list, with `rules:` naming the rules they are for. */
export async function readCases(file: string, text: string): Promise<Cases> {
  const { value, problems, locate } = parseYamlRules(file, text);
  if (problems.length > 0) throw problemsFault(problems);
  const { list, base, rules } = listIn(value);
  if (!list || list.length === 0) {
    throw problemsFault([
      { file, line: 1, message: 'has to be a list of cases: { name: …, action: { … }, expect: … }' },
    ]);
  }
  const found: Problem[] = [];
  const cases = list.flatMap((each, index): Case[] => {
    const path = [...base, index];
    const odd = unknownWord(each);
    if (odd) {
      found.push({ file, ...locate([...path, ...odd.path], true), message: odd.message });
      return [];
    }
    try {
      const { name, expect, ...rest } = check(CaseShape, each, 'case');
      const line = locate(path)?.line ?? 1;
      return [{ ...rest, name: name ?? `case ${index + 1}`, expect: WORDS[expect], file, line }];
    } catch (thrown) {
      if (!(thrown instanceof Fault)) throw thrown;
      const inside = (thrown.param ?? '').split('/').filter(Boolean);
      found.push({ file, ...locate([...path, ...inside]), message: thrown.message });
      return [];
    }
  });
  if (found.length > 0) throw problemsFault(found);
  return { cases, ...(rules && { rules }) };
}

/** An unknown member, and the one that was probably meant. */
function unknownWord(each: unknown): { readonly path: readonly string[]; readonly message: string } | undefined {
  const { action } = (each ?? {}) as { action?: unknown };
  for (const [value, shape, path] of [
    [each, CaseShape, []],
    [action, ActionShape, ['action']],
  ] as const) {
    if (typeof value !== 'object' || value === null) continue;
    const known = Object.keys(shape.properties);
    const odd = Object.keys(value).find((key) => !known.includes(key));
    if (odd === undefined) continue;
    const meant = nearest(odd, known);
    const instead = meant ? `did you mean ${meant}?` : `there are: ${known.join(', ')}`;
    return { path: [...path, odd], message: `nothing here is called ${odd}; ${instead}` };
  }
  return undefined;
}

function listIn(value: unknown): { list?: readonly unknown[]; base: readonly string[]; rules?: string } {
  if (Array.isArray(value)) return { list: value, base: [] };
  const { cases, rules, ...others } = (value ?? {}) as { cases?: unknown; rules?: unknown };
  if (!Array.isArray(cases) || Object.keys(others).length > 0) return { base: [] };
  return { list: cases, base: ['cases'], ...(typeof rules === 'string' && { rules }) };
}
