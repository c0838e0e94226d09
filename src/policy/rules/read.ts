/**
 * Checks rules from YAML or a configuration object, and says what to write instead of what is wrong. Nothing is ignored: an
 * unknown word is an error, not a comment.
 */

import { ACTION_KINDS } from '../../model/actions.ts';
import { durationMs } from '../../model/values/duration.ts';
import { isObject } from '../../model/values/is-object.ts';
import { own } from '../../model/values/own.ts';
import { AUTONOMY_TIERS, EFFECTS, EVIDENCE } from '../../model/words.ts';
import { isPlainText } from '../cedar/values.ts';
import { matchesGlob } from './glob.ts';
import { nearest } from './problems.ts';
import { RULE_ID, RULE_PROPERTIES, type RuleSpec, TEST_PROPERTIES, THEN_WORDS } from './schema.ts';

export type PathStep = string | number;
export type Path = readonly PathStep[];
export interface RuleMistake {
  readonly path: Path;
  /** The member's name is wrong, rather than its value. */
  readonly atKey?: boolean;
  readonly message: string;
}

const RULE_KEYS = Object.keys(RULE_PROPERTIES);
const TEST_KEYS = Object.keys(TEST_PROPERTIES);
const COMPARISONS = ['above', 'below', 'contains'] as const;
const CLOSED: Readonly<Record<string, readonly string[]>> = {
  kind: ACTION_KINDS,
  effect: EFFECTS,
  tier: AUTONOMY_TIERS,
  evidence: EVIDENCE,
};
const WORD_FOR: Readonly<Record<string, string>> = {
  escalate: 'ask',
  forbid: 'block',
  permit: 'allow',
  refuse: 'block',
};
const ID = new RegExp(RULE_ID);
/** Deeper members can be tested in a Cedar file. */
const MAX_NESTING = 8;

export function readRules(value: unknown): {
  readonly rules: readonly RuleSpec[];
  readonly mistakes: readonly RuleMistake[];
} {
  if (value === undefined || value === null) return { rules: [], mistakes: [] };
  if (!Array.isArray(value)) {
    return {
      rules: [],
      mistakes: [{ path: [], message: 'has to be a list of rules, each beginning with "- id: …"' }],
    };
  }
  const mistakes = value.flatMap((rule, index) => ruleMistakes(rule, [index]));
  return { rules: mistakes.length === 0 ? (value as readonly RuleSpec[]) : [], mistakes };
}

function ruleMistakes(rule: unknown, path: Path): readonly RuleMistake[] {
  if (!isObject(rule)) return [{ path, message: 'a rule is a set of members: { id: …, when: { … }, then: … }' }];
  const found: RuleMistake[] = [...unknownKeys(rule, RULE_KEYS, path)];
  const say = (key: string, message: string) => found.push({ path: [...path, key], message });
  if (rule.id === undefined) found.push({ path, message: 'has no id; add one, it is shown whenever the rule decides' });
  else if (typeof rule.id !== 'string' || !ID.test(rule.id)) {
    say('id', 'may have letters, digits and _ . : / - and at most 128 of them');
  }
  const then = rule.then;
  if (then === undefined) found.push({ path, message: `has no then; write then: ${THEN_WORDS.join(', then: ')}` });
  else if (typeof then !== 'string' || !(THEN_WORDS as readonly string[]).includes(then)) {
    const meant = own(WORD_FOR, String(then)) ?? nearest(String(then), THEN_WORDS);
    say('then', `${show(then)} is not one of ${THEN_WORDS.join(', ')}${meant ? `; did you mean ${meant}?` : ''}`);
  }
  const belongs = (key: string, word: string) => {
    if (rule[key] !== undefined && typeof then === 'string' && then !== word) say(key, `only goes with then: ${word}`);
  };
  belongs('to', 'ask');
  belongs('expires', 'ask');
  belongs('set', 'modify');
  belongs('retry_after', 'defer');
  if (rule.say !== undefined && !isText(rule.say)) say('say', 'has to be a text');
  for (const [key, example] of [
    ['expires', '10m'],
    ['retry_after', '30s'],
  ] as const) {
    const value = rule[key];
    if (value !== undefined && (typeof value !== 'string' || durationMs(value) === undefined)) {
      say(key, `${show(value)} is not a duration; write ${example}`);
    }
  }
  if (then === 'modify' && rule.set === undefined)
    found.push({ path, message: 'has no set; name the arguments to change' });
  if (rule.set !== undefined && !(isObject(rule.set) && isJson(rule.set, 0)))
    say('set', 'has to be arguments and their new values');
  if (rule.to !== undefined) found.push(...texts(rule.to, [...path, 'to'], noComma));
  if (rule.when !== undefined) found.push(...testMistakes(rule.when, [...path, 'when']));
  if (rule.unless !== undefined) {
    if (isObject(rule.unless) && Object.keys(rule.unless).length === 0) {
      say('unless', 'is empty, which would switch the rule off; name what is excepted or leave it out');
    }
    found.push(...testMistakes(rule.unless, [...path, 'unless']));
  }
  return found;
}

function testMistakes(test: unknown, path: Path): readonly RuleMistake[] {
  if (!isObject(test)) return [{ path, message: 'has to name what it looks at: { tool: …, effect: … }' }];
  return [
    ...unknownKeys(test, TEST_KEYS, path),
    ...Object.entries(test).flatMap(([key, value]) => {
      const at = [...path, key];
      if (key === 'arguments' || key === 'attributes') return memberMistakes(value, at, 0);
      return TEST_KEYS.includes(key) ? texts(value, at, wordCheck(key)) : [];
    }),
  ];
}

function wordCheck(key: string): (word: string) => string | undefined {
  const words = own(CLOSED, key);
  if (!words) return () => undefined;
  return (word) => {
    if (words.some((known) => matchesGlob(word, known))) return undefined;
    const meant = nearest(word, words);
    return `${show(word)} is not one of ${words.join(', ')}${meant ? `; did you mean ${meant}?` : ''}`;
  };
}

function noComma(name: string): string | undefined {
  return name.includes(',') || name.trim() === '' ? 'has to be a name, or a list of names' : undefined;
}

function texts(value: unknown, path: Path, check: (text: string) => string | undefined): readonly RuleMistake[] {
  const list = Array.isArray(value) ? value : [value];
  if (list.length === 0) return [{ path, message: 'is an empty list, which nothing matches; leave it out or fill it' }];
  return list.flatMap((item, index) => {
    const at = Array.isArray(value) ? [...path, index] : path;
    if (!isText(item) || item === '') return [{ path: at, message: `${show(item)} is not a text; put it in quotes` }];
    const wrong = check(item);
    return wrong ? [{ path: at, message: wrong }] : [];
  });
}

function memberMistakes(value: unknown, path: Path, depth: number): readonly RuleMistake[] {
  if (!isObject(value) || Object.keys(value).length === 0) {
    return [{ path, message: 'has to name members and what they should be: { path: "src/*" }' }];
  }
  if (depth >= MAX_NESTING) return [{ path, message: `is nested more than ${MAX_NESTING} deep; use a Cedar file` }];
  if (isComparison(value)) return comparisonMistakes(value, path);
  return Object.entries(value).flatMap(([key, wanted]) => {
    const at = [...path, key];
    if (!isPlainText(key)) return [{ path: at, atKey: true, message: 'is not a usable name' }];
    if (isObject(wanted)) return memberMistakes(wanted, at, depth + 1);
    return scalarMistakes(wanted, at);
  });
}

/** An object whose members are all comparison operators is a comparison; any other object names members of a nested object. */
export function isComparison(value: object): boolean {
  const keys = Object.keys(value);
  return keys.length > 0 && keys.every((key) => (COMPARISONS as readonly string[]).includes(key));
}

function comparisonMistakes(value: Record<string, unknown>, path: Path): readonly RuleMistake[] {
  return Object.entries(value).flatMap(([key, bound]) => {
    const at = [...path, key];
    if (key === 'contains') return scalarMistakes(bound, at);
    return Number.isSafeInteger(bound) ? [] : [{ path: at, message: `${show(bound)} is not a whole number` }];
  });
}

function scalarMistakes(value: unknown, path: Path): readonly RuleMistake[] {
  const list = Array.isArray(value) ? value : [value];
  if (list.length === 0) return [{ path, message: 'is an empty list, which nothing matches; leave it out or fill it' }];
  return list.flatMap((item, index) => {
    const at = Array.isArray(value) ? [...path, index] : path;
    if (isText(item) || typeof item === 'boolean' || Number.isSafeInteger(item)) return [];
    const hint =
      typeof item === 'number' ? 'rules compare whole numbers only' : 'write a text, a whole number, true or false';
    return [{ path: at, message: `${show(item)} cannot be compared; ${hint}` }];
  });
}

function unknownKeys(value: object, known: readonly string[], path: Path): readonly RuleMistake[] {
  return Object.keys(value)
    .filter((key) => !known.includes(key))
    .map((key) => {
      const meant = nearest(key, known);
      const instead = meant ? `did you mean ${meant}?` : `the words here are ${known.join(', ')}`;
      return { path: [...path, key], atKey: true, message: `${show(key)} is not known; ${instead}` };
    });
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && isPlainText(value);
}

function isJson(value: unknown, depth: number): boolean {
  if (depth > 32) return false;
  if (value === null || typeof value === 'boolean') return true;
  if (typeof value === 'number') return Number.isFinite(value);
  if (typeof value === 'string') return isPlainText(value);
  if (Array.isArray(value)) return value.every((item) => isJson(item, depth + 1));
  return isObject(value) && Object.entries(value).every(([key, item]) => isPlainText(key) && isJson(item, depth + 1));
}

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}
