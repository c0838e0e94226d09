/**
 * Translates short rules into Cedar text: there is only one evaluator, and its input can be printed. Every rule stands alone; the
 * strictest matching rule decides, in whatever order they are written.
 */
import { ACTION_KINDS } from '../../model/actions.ts';
import { durationMs } from '../../model/values/duration.ts';
import { own } from '../../model/values/own.ts';
import { EFFECTS } from '../../model/words.ts';
import { patternName } from '../acts/match.ts';
import { PRINCIPAL_TYPES } from '../cedar/rule.ts';
import { cedarPattern, cedarString, plainGlob } from '../cedar/text.ts';
import { matchesGlob } from './glob.ts';
import { isComparison } from './read.ts';
import type { MemberConditions, RuleSpec, RuleTest, Scalar, Texts, ValueComparison } from './schema.ts';

/** A restricting rule matches if any path matches, an allowing one only if all do; for exceptions it is the other way round. */
type Reach = 'any' | 'all';
type Form<Wanted> = (field: string, wanted: Wanted, reach: Reach) => readonly string[];

/** A field that every action has. */
const always: Form<Texts> = (field, wanted) => [textTest(`context.${field}`, list(wanted))];
const ifPresent: Form<Texts> = (field, wanted) => [`context has ${field}`, ...always(field, wanted, 'any')];
/** A fact of the act, which is matched before Cedar runs: the context names the patterns that matched. */
const matched: Form<Texts> = (field, wanted, reach) => [
  `context.${reach}_${field}.contains(${cedarString(patternName(list(wanted)))})`,
];
const members: Form<MemberConditions> = (field, wanted) => memberTests(`context.${field}`, wanted);

/** How each condition is tested, in this order: the cheap and selective tests come first. */
const FORMS: { readonly [Field in keyof RuleTest]-?: Form<NonNullable<RuleTest[Field]>> } = {
  kind: (_, wanted) => [actionTest(kindsOf(wanted))],
  effect: (field, wanted) =>
    always(
      field,
      EFFECTS.filter((word) => list(wanted).some((glob) => matchesGlob(glob, word))),
      'any',
    ),
  tool: ifPresent,
  server: ifPresent,
  door: ifPresent,
  tier: ifPresent,
  workspace: always,
  tenant: ifPresent,
  persona: ifPresent,
  persona_id: ifPresent,
  evidence: always,
  target: ifPresent,
  session: ifPresent,
  principal: (_, wanted) => [anyOf(list(wanted).map(principalTest))],
  command: matched,
  path: matched,
  url: matched,
  content: matched,
  arguments: members,
  attributes: members,
};

export function printCedar(rules: readonly RuleSpec[]): string {
  return rules.map(toCedarPolicy).join('\n\n');
}

export function toCedarPolicy(rule: RuleSpec): string {
  const { kind, ...when } = rule.when ?? {};
  const kinds = kind === undefined ? undefined : kindsOf(kind);
  const allows = rule.then === 'allow';
  const conditions = conjuncts(when, allows ? 'all' : 'any');
  const exceptions = rule.unless ? conjuncts(rule.unless, allows ? 'any' : 'all') : [];
  return [
    ...annotations(rule),
    `${rule.then === 'allow' ? 'permit' : 'forbid'} (principal, ${kinds ? actionTest(kinds) : 'action'}, resource)`,
    ...(conditions.length > 0 ? [`when { ${conditions.join(' && ')} }`] : []),
    ...(exceptions.length > 0 ? [`unless { ${exceptions.join(' && ')} }`] : []),
  ]
    .join('\n')
    .concat(';');
}

function annotations(rule: RuleSpec): readonly string[] {
  const notes: [string, string | undefined][] = [
    ['id', rule.id],
    ['verdict', rule.then === 'allow' || rule.then === 'block' || rule.then === 'deny' ? undefined : rule.then],
    ['reason', rule.say],
    ['ask_to', rule.to === undefined ? undefined : list(rule.to).join(',')],
    ['ask_expires', rule.expires],
    ['modify', rule.set === undefined ? undefined : JSON.stringify(rule.set)],
    ['retry_after_ms', rule.retry_after === undefined ? undefined : String(durationMs(rule.retry_after) ?? 0)],
  ];
  return notes.flatMap(([name, value]) => (value === undefined ? [] : [`@${name}(${cedarString(value)})`]));
}

function conjuncts(test: RuleTest, reach: Reach): readonly string[] {
  return Object.entries(FORMS).flatMap(([field, form]) => {
    const wanted = own({ ...test }, field);
    // Each form takes what its own field holds.
    return wanted === undefined ? [] : (form as Form<typeof wanted>)(field, wanted, reach);
  });
}

function kindsOf(kind: string | readonly string[]): readonly string[] {
  return ACTION_KINDS.filter((known) => list(kind).some((glob) => matchesGlob(glob, known)));
}

function actionTest(kinds: readonly string[]): string {
  const [only] = kinds;
  const entity = (kind: string) => `Action::${cedarString(kind)}`;
  return kinds.length === 1 && only !== undefined
    ? `action == ${entity(only)}`
    : `action in [${kinds.map(entity).join(', ')}]`;
}

function textTest(name: string, globs: readonly string[]): string {
  const words = globs.map(plainGlob);
  return words.every((word) => word !== undefined)
    ? oneOf(name, words)
    : anyOf(globs.map((glob) => `${name} like ${cedarPattern(glob)}`));
}

function oneOf(name: string, words: readonly string[]): string {
  const [only] = words;
  return words.length === 1 && only !== undefined
    ? `${name} == ${cedarString(only)}`
    : `[${words.map(cedarString).join(', ')}].contains(${name})`;
}

/** `agent:ci-*` matches an agent whose id begins with `ci-`; without a kind in front it is an id. */
function principalTest(wanted: string): string {
  const [, kind, rest] = /^(person|service|agent|system):(.*)$/s.exec(wanted) ?? [];
  if (kind === undefined || rest === undefined) return idTest(wanted);
  const type = `principal is ${PRINCIPAL_TYPES[kind as keyof typeof PRINCIPAL_TYPES]}`;
  return rest === '*' ? type : `(${type} && ${idTest(rest)})`;
}

function idTest(glob: string): string {
  const word = plainGlob(glob);
  return word === undefined
    ? `context.principal like ${cedarPattern(glob)}`
    : `context.principal == ${cedarString(word)}`;
}

/** An absent member does not match. A member of another type than the rule expects is an error, not a miss. */
function memberTests(base: string, wanted: MemberConditions): readonly string[] {
  return Object.entries(wanted).flatMap(([key, value]) => {
    const plain = /^[A-Za-z_][A-Za-z0-9_]*$/.test(key) && !RESERVED.includes(key);
    const name = plain ? `${base}.${key}` : `${base}[${cedarString(key)}]`;
    const has = `${base} has ${plain ? key : cedarString(key)}`;
    if (typeof value !== 'object') return [has, scalarTest(name, value)];
    if (Array.isArray(value)) return [has, anyOf(value.map((one: Scalar) => scalarTest(name, one)))];
    if (isComparison(value)) return [has, ...comparisonTests(name, value as ValueComparison)];
    return [has, ...memberTests(name, value as MemberConditions)];
  });
}
/** Cedar's keywords cannot be used as bare member names. */
const RESERVED = ['true', 'false', 'if', 'then', 'else', 'in', 'is', 'like', 'has', '__cedar'];

/** `like` even without a wildcard: it fails on a value that is not text, where `==` would just be false. */
function scalarTest(name: string, wanted: Scalar): string {
  return typeof wanted === 'string' ? `${name} like ${cedarPattern(wanted)}` : `${name} == ${literal(wanted)}`;
}

function comparisonTests(name: string, { above, below, contains }: ValueComparison): readonly string[] {
  return [
    ...(above === undefined ? [] : [`${name} > ${literal(above)}`]),
    ...(below === undefined ? [] : [`${name} < ${literal(below)}`]),
    ...(contains === undefined ? [] : [containsTest(name, list(contains))]),
  ];
}

function containsTest(name: string, wanted: readonly Scalar[]): string {
  const [only] = wanted;
  return wanted.length === 1 && only !== undefined
    ? `${name}.contains(${literal(only)})`
    : `${name}.containsAny([${wanted.map(literal).join(', ')}])`;
}

function literal(value: Scalar): string {
  return typeof value === 'string' ? cedarString(value) : String(value);
}

/** Nested by halves, so that a list of hundreds stays shallow enough for the evaluator. */
function anyOf(tests: readonly string[]): string {
  const [only] = tests;
  if (tests.length === 1 && only !== undefined) return only;
  const middle = Math.ceil(tests.length / 2);
  return `(${anyOf(tests.slice(0, middle))} || ${anyOf(tests.slice(middle))})`;
}

function list<T>(value: T | readonly T[]): readonly T[] {
  return Array.isArray(value) ? (value as readonly T[]) : [value as T];
}
