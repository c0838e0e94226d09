/**
 * Conditions that must hold before a policy can match, read from its scope and its first tests. A policy whose guard fails is
 * certain to be false without an error, so leaving it out changes no answer. Stops at the first test it does not know: skipping
 * it could hide an error.
 */

import type { PolicyJson, PrincipalConstraint, ResourceConstraint } from '@cedar-policy/cedar-wasm/nodejs';
import type { Action } from '../../model/actions.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import { isObject } from '../../model/values/is-object.ts';
import { matcherOf } from '../acts/match.ts';
import { fieldOf } from '../context.ts';
import { ANY, matches, type Pattern } from '../rules/glob.ts';
import { pathOf, patternOf } from './names.ts';
import { isPlainText } from './values.ts';

/** One opening test: on a member of the context, or on the type of the principal. */
export type Guard =
  | { readonly path: readonly string[]; readonly present: true }
  | { readonly path: readonly string[]; readonly any: readonly Test[] }
  | { readonly set: string; readonly pattern: string }
  | { readonly principal: string };
type Test = { readonly equals: string | number | boolean } | { readonly like: Pattern };

export interface Scope {
  readonly type?: string;
  readonly id?: string;
}
export interface Guards {
  /** Undefined: every kind. */
  readonly kinds: readonly string[] | undefined;
  readonly principal: Scope;
  readonly resource: Scope;
  /** In Cedar's order of evaluation. */
  readonly tests: readonly Guard[];
}

type Node = Readonly<Record<string, unknown>>;

export function guardsOf(policy: PolicyJson): Guards {
  return {
    kinds: kindsOf(policy),
    principal: scopeOf(policy.principal),
    resource: scopeOf(policy.resource),
    tests: testsOf(policy),
  };
}

function kindsOf({ action }: PolicyJson): readonly string[] | undefined {
  if (action.op === 'All') return undefined;
  const entities = 'entities' in action ? action.entities : 'entity' in action ? [action.entity] : undefined;
  return entities?.map((entity) => uid(entity).id);
}

/** Entities here have no parents, so `in` means the same as `==`. */
function scopeOf(constraint: PrincipalConstraint | ResourceConstraint): Scope {
  if (constraint.op === 'All') return {};
  const entity =
    'entity' in constraint
      ? constraint.entity
      : 'in' in constraint && constraint.in && 'entity' in constraint.in
        ? constraint.in.entity
        : undefined;
  return {
    ...(entity && uid(entity)),
    ...('entity_type' in constraint && { type: constraint.entity_type }),
  };
}

export function uid(entity: unknown): { readonly type: string; readonly id: string } {
  const inner = (entity as { __entity?: unknown }).__entity ?? entity;
  return inner as { type: string; id: string };
}

function testsOf(policy: PolicyJson): readonly Guard[] {
  const guards: Guard[] = [];
  for (const clause of policy.conditions) {
    if (clause.kind !== 'when') break;
    for (const conjunct of conjuncts(clause.body as Node)) {
      const guard = guardOf(conjunct);
      if (!guard) return guards;
      guards.push(guard);
    }
  }
  return guards;
}

function conjuncts(node: Node): readonly Node[] {
  if (!('&&' in node)) return [node];
  const { left, right } = node['&&'] as { left: Node; right: Node };
  return [...conjuncts(left), ...conjuncts(right)];
}

function guardOf(node: Node): Guard | undefined {
  if ('has' in node) return presence(node.has as { left: Node; attr: string | readonly string[] });
  if ('||' in node) {
    const { left, right } = node['||'] as { left: Node; right: Node };
    const [a, b] = [guardOf(left), guardOf(right)];
    if (!a || !b || !('any' in a) || !('any' in b) || a.path.join('\0') !== b.path.join('\0')) return undefined;
    return { path: a.path, any: [...a.any, ...b.any] };
  }
  if ('==' in node) {
    const { left, right } = node['=='] as { left: Node; right: Node };
    return equality(left, right) ?? equality(right, left);
  }
  if ('contains' in node) {
    const { left, right } = node.contains as { left: Node; right: Node };
    const asked = patternOf(left, right);
    if (asked) return { set: asked.set, pattern: asked.name };
    const path = contextPath(right);
    const values = ((left.Set ?? []) as readonly Node[]).map((item) => item.Value);
    if (!path || !('Set' in left) || !values.every(isScalar)) return undefined;
    return { path, any: values.map((equals) => ({ equals })) };
  }
  if ('like' in node) {
    const { left, pattern } = node.like as { left: Node; pattern: readonly ('Wildcard' | { Literal: string })[] };
    const path = contextPath(left);
    return path && { path, any: [{ like: toPattern(pattern) }] };
  }
  if ('is' in node) {
    const { left, entity_type, in: within } = node.is as { left: Node; entity_type: string; in?: Node };
    return left.Var === 'principal' && within === undefined ? { principal: entity_type } : undefined;
  }
  return undefined;
}

function presence({ left, attr }: { left: Node; attr: string | readonly string[] }): Guard | undefined {
  const base = pathOf(left);
  const names = typeof attr === 'string' ? [attr] : attr;
  const [name] = names;
  if (base?.root !== 'context' || names.length !== 1 || name === undefined) return undefined;
  return { path: [...base.steps, name], present: true };
}

function equality(side: Node, other: Node): Guard | undefined {
  const path = contextPath(side);
  return path && isScalar(other.Value) ? { path, any: [{ equals: other.Value }] } : undefined;
}

function contextPath(node: Node): readonly string[] | undefined {
  const path = pathOf(node);
  return path?.root === 'context' && path.steps.length > 0 ? path.steps : undefined;
}

function isScalar(value: unknown): value is string | number | boolean {
  return typeof value === 'string' || typeof value === 'boolean' || Number.isSafeInteger(value);
}

/** Cedar gives a pattern letter by letter; adjacent literals are joined so that they can be searched for. */
function toPattern(elements: readonly ('Wildcard' | { Literal: string })[]): Pattern {
  const parts: (string | typeof ANY)[] = [];
  for (const element of elements) {
    const last = parts.at(-1);
    if (element === 'Wildcard') parts.push(ANY);
    else if (typeof last === 'string') parts[parts.length - 1] = last + element.Literal;
    else parts.push(element.Literal);
  }
  return parts;
}

const ABSENT = Symbol('absent');
/** Present, but of a type no guard tests. */
const OTHER = Symbol('other');
/** Cedar would raise an error on the way to this value. */
const BROKEN = Symbol('broken');

function valueAt(action: Action, path: readonly string[], doubt: Doubt): string | number | boolean | symbol {
  let value: Json | undefined = fieldOf(action, path[0] as string);
  for (let step = 1; step < path.length; step += 1) {
    if (!isObject(value)) return BROKEN;
    const record = value as JsonObject;
    const key = path[step] as string;
    value = Object.hasOwn(record, key) ? record[key] : undefined;
    if (value === undefined && step < path.length - 1) return BROKEN;
  }
  if (value === undefined) return ABSENT;
  if (typeof value === 'string') return isPlainText(value) && !doubt(value) ? value : OTHER;
  return isScalar(value) ? value : OTHER;
}

/** Tells which texts may differ from those at the time of the action. */
export type Doubt = (text: string) => boolean;
export const CERTAIN: Doubt = () => false;
/** `open`: Cedar might raise an error on this test, and the error must be seen. */
export type GuardResult = 'yes' | 'no' | 'open';

export function passes(guard: Guard, action: Action, principalType: string, doubt: Doubt): GuardResult {
  if ('principal' in guard) return guard.principal === principalType ? 'yes' : 'no';
  if ('set' in guard) {
    // A pattern that may be met counts as met here; the evaluation in Cedar tells which it is.
    if (!action.facts || doubt !== CERTAIN) return 'open';
    return matcherOf(action.facts).meeting(guard.set, guard.pattern) === 'no' ? 'no' : 'yes';
  }
  const value = valueAt(action, guard.path, doubt);
  if (value === BROKEN) return 'open';
  if ('present' in guard) return value === ABSENT ? 'no' : 'yes';
  if (value === ABSENT || value === OTHER) return 'open';
  let found = false;
  for (const test of guard.any) {
    if ('equals' in test) found ||= test.equals === value;
    else if (typeof value !== 'string') return 'open';
    else found ||= matches(test.like, value);
  }
  return found ? 'yes' : 'no';
}

/** Whether this policy may match, or raise an error. It is left out only when neither is possible. */
export function couldMatter(tests: readonly Guard[], action: Action, principalType: string, doubt: Doubt): boolean {
  for (const test of tests) {
    const answer = passes(test, action, principalType, doubt);
    if (answer !== 'yes') return answer === 'open';
  }
  return true;
}
