/**
 * Finds out what a parsed policy looks at: which members of the context, and whether the principal or the resource matters at
 * all. An expression it cannot follow counts as looking at everything, never as nothing.
 */
import type { Expr, PolicyJson } from '@cedar-policy/cedar-wasm/nodejs';
import { PATTERN_SETS } from '../acts/match.ts';
import { CONTEXT_NAMES, mergeNames, type Names, NO_NAMES, type Patterns } from '../context.ts';
import { nearest } from '../rules/problems.ts';
import { isReservedKey } from './values.ts';

export interface Look {
  readonly names: Names;
  readonly principal: boolean;
  readonly resource: boolean;
  readonly patterns: Patterns;
  /** Things a rule may not look at, worded for its author. */
  readonly problems: readonly string[];
}

/** Beyond these the evaluator's own stack is at risk, and with it every other decision. */
const MAX_EXPRESSION_DEPTH = 80;
const MAX_PATH = 24;

interface Seen {
  names: Names;
  principal: boolean;
  resource: boolean;
  patterns: Map<string, Set<string>>;
  problems: Set<string>;
}

export function lookOf(policy: PolicyJson): Look {
  const seen: Seen = {
    names: NO_NAMES,
    principal: policy.principal.op !== 'All',
    resource: policy.resource.op !== 'All',
    patterns: new Map(),
    problems: new Set(),
  };
  for (const clause of policy.conditions) {
    if (depthOf(clause.body) > MAX_EXPRESSION_DEPTH) {
      seen.problems.add(`is nested more than ${MAX_EXPRESSION_DEPTH} levels deep; split it into several rules`);
    } else visit(clause.body, seen);
  }
  return { ...seen, problems: [...seen.problems] };
}

type Node = Readonly<Record<string, unknown>>;

function visit(expr: unknown, seen: Seen): void {
  if (typeof expr !== 'object' || expr === null) return;
  if (Array.isArray(expr)) {
    for (const item of expr) visit(item, seen);
    return;
  }
  const node = expr as Node;
  if ('Value' in node) return;
  const path = pathOf(node);
  if (path) {
    note(path, true, seen);
    return;
  }
  if ('has' in node) {
    const { left, attr } = node.has as { left: Expr; attr: string | readonly string[] };
    const base = pathOf(left as Node);
    const attrs = typeof attr === 'string' ? [attr] : attr;
    if (base) {
      note({ root: base.root, steps: [...base.steps, ...attrs] }, false, seen);
      return;
    }
  }
  if ('contains' in node && asksForPattern(node.contains as { left: Node; right: Node }, seen)) return;
  if ('getTag' in node || 'hasTag' in node) seen.problems.add('uses tags, which nothing here has');
  for (const [, inside] of Object.entries(node)) visit(inside, seen);
}

/** `context.any_path.contains("…")`: the pattern is matched against the act before Cedar is called. */
function asksForPattern({ left, right }: { left: Node; right: Node }, seen: Seen): boolean {
  const asked = patternOf(left, right);
  if (!asked) return false;
  seen.patterns.set(asked.set, (seen.patterns.get(asked.set) ?? new Set()).add(asked.name));
  seen.names = mergeNames(seen.names, chain([asked.set], true));
  return true;
}

export function patternOf(left: Node, right: Node): { readonly set: string; readonly name: string } | undefined {
  const path = pathOf(left);
  const [set = ''] = path?.steps ?? [];
  if (path?.root !== 'context' || path.steps.length !== 1 || !PATTERN_SETS.includes(set)) return undefined;
  return typeof right.Value === 'string' ? { set, name: right.Value } : undefined;
}

interface Path {
  readonly root: string;
  readonly steps: readonly string[];
}

/** `context.arguments.path` as its root and steps; undefined for anything that is not a plain chain from a variable. */
export function pathOf(node: Node): Path | undefined {
  const steps: string[] = [];
  let at: Node = node;
  while ('.' in at) {
    const { left, attr } = at['.'] as { left: Node; attr: string };
    steps.unshift(attr);
    at = left;
  }
  return 'Var' in at ? { root: at.Var as string, steps } : undefined;
}

function note({ root, steps }: Path, whole: boolean, seen: Seen): void {
  if (root !== 'context') {
    if (root === 'principal') seen.principal = true;
    if (root === 'resource') seen.resource = true;
    if (steps.length > 0) {
      seen.problems.add(`looks for ${root}.${steps.join('.')}; only the context has attributes`);
    }
    return;
  }
  const [first] = steps;
  if (first !== undefined && !CONTEXT_NAMES.includes(first)) {
    const close = nearest(first, CONTEXT_NAMES);
    seen.problems.add(
      close
        ? `names context.${first}; did you mean context.${close}?`
        : `names context.${first}; the context has ${CONTEXT_NAMES.join(', ')}`,
    );
    return;
  }
  if (first !== undefined && PATTERN_SETS.includes(first)) {
    seen.problems.add(`asks context.${first} for more than .contains("a pattern")`);
    return;
  }
  if (steps.some(isReservedKey))
    seen.problems.add(`names ${steps.join('.')}, which uses a word Cedar keeps for itself`);
  if (steps.length > MAX_PATH) seen.problems.add(`looks more than ${MAX_PATH} levels deep`);
  else seen.names = mergeNames(seen.names, chain(steps, whole));
}

function chain(steps: readonly string[], whole: boolean): Names {
  return steps.reduceRight<Names>((inner, step) => ({ whole: false, members: new Map([[step, inner]]) }), {
    whole,
    members: new Map(),
  });
}

function depthOf(root: unknown): number {
  let deepest = 0;
  const open: [unknown, number][] = [[root, 0]];
  for (let next = open.pop(); next; next = open.pop()) {
    const [value, depth] = next;
    if (typeof value !== 'object' || value === null) continue;
    deepest = Math.max(deepest, depth);
    // An operator is two levels of JSON: its name and its operands.
    for (const inside of Object.values(value)) open.push([inside, depth + 0.5]);
  }
  return deepest;
}
