/**
 * What must hold before a policy can matter, read from its scope and the tests it opens with. A policy
 * whose guard fails is certain to be false without an error, so leaving it out changes no answer.
 * It refuses to look past the first test it does not know: an error further left would be lost.
 */
import type { PolicyJson, PrincipalConstraint, ResourceConstraint } from '@cedar-policy/cedar-wasm/nodejs';
import { pathOf } from './cedar-names.ts';
import { isTextField, type TextField } from './context.ts';
import { ANY, matches, type Pattern } from './glob.ts';

export type Guard =
  | { readonly field: TextField; readonly present: true }
  | { readonly field: TextField; readonly any: readonly Test[] };
type Test = { readonly equals: string } | { readonly like: Pattern };

export interface Scope {
  readonly type?: string;
  readonly id?: string;
}
export interface Guards {
  /** Undefined: every kind. */
  readonly kinds: readonly string[] | undefined;
  readonly principal: Scope;
  readonly resource: Scope;
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

/** Nothing here has parents, so `in` means the same as `==`. */
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
  if ('has' in node) {
    const { left, attr } = node.has as { left: Node; attr: string | readonly string[] };
    const name = typeof attr === 'string' ? attr : attr.length === 1 ? attr[0] : undefined;
    const path = pathOf(left);
    if (path?.root !== 'context' || path.steps.length > 0 || name === undefined || !isTextField(name)) return undefined;
    return { field: name, present: true };
  }
  if ('||' in node) {
    const { left, right } = node['||'] as { left: Node; right: Node };
    const [a, b] = [guardOf(left), guardOf(right)];
    return a && b && 'any' in a && 'any' in b && a.field === b.field
      ? { field: a.field, any: [...a.any, ...b.any] }
      : undefined;
  }
  if ('==' in node) {
    const { left, right } = node['=='] as { left: Node; right: Node };
    return equality(left, right) ?? equality(right, left);
  }
  if ('contains' in node) {
    const { left, right } = node.contains as { left: Node; right: Node };
    const field = fieldOf(right);
    const words = ((left.Set ?? []) as readonly Node[]).map((item) => item.Value);
    if (!field || !('Set' in left) || words.some((word) => typeof word !== 'string')) return undefined;
    return { field, any: (words as string[]).map((equals) => ({ equals })) };
  }
  if ('like' in node) {
    const { left, pattern } = node.like as { left: Node; pattern: readonly ('Wildcard' | { Literal: string })[] };
    const field = fieldOf(left);
    return field && { field, any: [{ like: toPattern(pattern) }] };
  }
  return undefined;
}

function equality(side: Node, other: Node): Guard | undefined {
  const field = fieldOf(side);
  const word = other.Value;
  return field && typeof word === 'string' ? { field, any: [{ equals: word }] } : undefined;
}

function fieldOf(node: Node): TextField | undefined {
  const path = pathOf(node);
  const [name] = path?.steps ?? [];
  return path?.root === 'context' && path.steps.length === 1 && name !== undefined && isTextField(name)
    ? name
    : undefined;
}

/** Cedar writes a pattern letter by letter; neighbours are joined so that they can be searched for. */
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

/**
 * May this policy match, or fail? `read` gives a field as text, undefined when absent, null when it is something no
 * test can be made on.
 */
export function couldMatter(tests: readonly Guard[], read: (field: TextField) => string | null | undefined): boolean {
  for (const guard of tests) {
    const value = read(guard.field);
    if ('present' in guard) {
      if (value === undefined) return false;
      continue;
    }
    // Absent or unreadable: the policy will fail over it, and a failure has to be seen.
    if (value === undefined || value === null) return true;
    if (!guard.any.some((test) => ('equals' in test ? test.equals === value : matches(test.like, value)))) return false;
  }
  return true;
}
