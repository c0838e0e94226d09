/** A compiled policy set, and the parts of it that are evaluated together. Data only. */
import { createHash } from 'node:crypto';
import { ACTION_KINDS } from '../../model/actions.ts';
import { mergeNames, mergePatterns, type Names, NO_NAMES, namesFacts, type Patterns } from '../context.ts';
import type { Mention } from '../rules/mentions.ts';
import type { Rule } from './rule.ts';

export interface CompiledPolicies {
  /** `sha256:<hex>` of the sources: equal sources have the same version on every machine. */
  readonly version: string;
  readonly ruleCount: number;
  /** All rules as Cedar text, YAML rules included. */
  readonly text: string;
  readonly rules: readonly Rule[];
  /** Rules that can match a kind of action, in order. */
  readonly byAction: ReadonlyMap<string, readonly Rule[]>;
  /** Names of personas, doors and the like that the rules mention. */
  readonly mentions: readonly Mention[];
  /** Some rule looks at what an act touches, so acts have to be read. */
  readonly seesFacts: boolean;
}

/** Rules that are evaluated together, and what they look at. */
export interface Slice {
  /** Identifies this text among all that were ever parsed. */
  readonly key: string;
  readonly rules: readonly Rule[];
  readonly names: Names;
  readonly patterns: Patterns;
  readonly seesFacts: boolean;
  readonly seesPrincipal: boolean;
  readonly seesResource: boolean;
  text(): string;
}

export function compiledPolicies(
  version: string,
  text: string,
  rules: readonly Rule[],
  mentions: readonly Mention[] = [],
): CompiledPolicies {
  const byAction = new Map(
    ACTION_KINDS.map((kind) => [kind, rules.filter(({ guards }) => guards.kinds?.includes(kind) ?? true)] as const),
  );
  const seesFacts = rules.some(({ names }) => namesFacts(names));
  return { version, ruleCount: rules.length, text, rules, byAction, mentions, seesFacts };
}

export function sliceOf(version: string, kind: string, rules: readonly Rule[]): Slice {
  const names = rules.reduce((merged, rule) => mergeNames(merged, rule.names), NO_NAMES);
  return {
    key: `${version} ${kind} ${digest(rules.map(({ index }) => index).join(','))}`,
    rules,
    names,
    patterns: mergePatterns(rules.map(({ patterns }) => patterns)),
    seesFacts: namesFacts(names),
    seesPrincipal: rules.some(({ seesPrincipal }) => seesPrincipal),
    seesResource: rules.some(({ seesResource }) => seesResource),
    text: () => rules.map(({ text }) => text).join('\n'),
  };
}

/** An unknown kind is still subject to the rules for every kind. */
export function rulesFor(policies: CompiledPolicies, kind: string): readonly Rule[] {
  return policies.byAction.get(kind) ?? policies.rules.filter((rule) => !rule.guards.kinds);
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
