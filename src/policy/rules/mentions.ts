/**
 * Names of things outside the rules that rules mention: personas, servers, doors, agents, approvers. A rule that names a persona
 * that does not exist never matches, and its author would notice only when an act was let through. Reads parsed policies, so
 * short rules and Cedar are treated alike; a pattern that could match several names is compared with all of them.
 */
import type { PolicyJson } from '@cedar-policy/cedar-wasm/nodejs';
import { pathOf } from '../cedar/names.ts';
import { matchesGlob } from './glob.ts';
import { nearest, type Problem } from './problems.ts';

/** The kind of thing a name refers to. `agent`: the tool of an act that gives an agent work. */
export type MentionKind = 'persona' | 'persona_id' | 'server' | 'door' | 'agent' | 'approver';

export interface Mention {
  readonly kind: MentionKind;
  /** As a glob. */
  readonly name: string;
  readonly rule: string;
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

export interface KnownNames {
  /** Complete lists: a name that is not in its list is an error. */
  readonly all: Readonly<Partial<Record<MentionKind, readonly string[]>>>;
  /** Incomplete lists: a name that is not in its list is an error only when it is close to one that is. */
  readonly some: Readonly<Partial<Record<MentionKind, readonly string[]>>>;
}

type Node = Readonly<Record<string, unknown>>;
const FIELDS: ReadonlyMap<string, MentionKind> = new Map([
  ['persona', 'persona'],
  ['persona_id', 'persona_id'],
  ['server', 'server'],
  ['door', 'door'],
]);

export function mentionsIn(
  policy: PolicyJson,
  { rule, approvers }: { readonly rule: string; readonly approvers: readonly string[] },
  location: Pick<Mention, 'file' | 'line' | 'column'>,
): readonly Mention[] {
  const found: { kind: MentionKind; name: string }[] = approvers.map((name) => ({ kind: 'approver', name }));
  const prompts = givesWork(policy);
  const note = (node: unknown, names: readonly string[]) => {
    const path = typeof node === 'object' && node !== null ? pathOf(node as Node) : undefined;
    if (path?.root !== 'context' || path.steps.length !== 1) return;
    const [field = ''] = path.steps;
    const kind = prompts && field === 'tool' ? 'agent' : FIELDS.get(field);
    if (kind) found.push(...names.map((name) => ({ kind, name })));
  };
  for (const clause of policy.conditions) visit(clause.body, note);
  return found.map((each) => ({ ...each, rule, ...location }));
}

/** Mentions of names that do not exist, each with the nearest name that does. */
export function unknownNames(mentions: readonly Mention[], known: KnownNames): readonly Problem[] {
  const seen = new Set<string>();
  return mentions.flatMap(({ kind, name, rule, file, line, column }) => {
    const all = known.all[kind];
    const names = [...(all ?? []), ...(known.some[kind] ?? [])];
    // `*` matches any name, and is right even where there is none yet.
    if (/^\*+$/.test(name) || names.some((one) => matchesGlob(name, one))) return [];
    const close = nearest(name, names);
    if (!all && !close) return [];
    const key = `${file} ${rule} ${kind} ${name}`;
    if (seen.has(key)) return [];
    seen.add(key);
    return [{ file, rule, line, column, message: noSuch(WORDS[kind], name, names, close) }];
  });
}
const WORDS: Readonly<Record<MentionKind, string>> = {
  persona: 'persona',
  persona_id: 'persona with the id',
  server: 'server',
  door: 'door',
  agent: 'agent',
  approver: 'approver',
};

/** `there is no persona carefull; did you mean careful?` */
export function noSuch(what: string, name: string, known: readonly string[], near?: string): string {
  const close = near ?? nearest(name, known);
  const instead = close ? `did you mean ${close}?` : `there are: ${known.join(', ') || 'none'}`;
  return `there is no ${what} ${name}; ${instead}`;
}

function givesWork({ action }: PolicyJson): boolean {
  if (action.op === 'All') return false;
  const entities: readonly unknown[] =
    'entities' in action ? action.entities : 'entity' in action ? [action.entity] : [];
  return entities.length > 0 && entities.every((entity) => idOf(entity) === 'prompt');
}

function idOf(entity: unknown): string {
  const inner = (entity as { __entity?: unknown }).__entity ?? entity;
  return (inner as { id: string }).id;
}

function visit(expr: unknown, note: (node: unknown, names: readonly string[]) => void): void {
  if (typeof expr !== 'object' || expr === null) return;
  if (Array.isArray(expr)) {
    for (const item of expr) visit(item, note);
    return;
  }
  const node = expr as Node;
  if ('==' in node) {
    const { left, right } = node['=='] as { left: Node; right: Node };
    note(left, textOf(right));
    note(right, textOf(left));
  } else if ('contains' in node) {
    const { left, right } = node.contains as { left: Node; right: Node };
    note(right, ((left.Set ?? []) as readonly Node[]).flatMap(textOf));
  } else if ('like' in node) {
    const { left, pattern } = node.like as { left: Node; pattern: readonly ('Wildcard' | { Literal: string })[] };
    note(left, [globOf(pattern)]);
  }
  for (const inside of Object.values(node)) visit(inside, note);
}

function textOf(node: Node): readonly string[] {
  return typeof node.Value === 'string' ? [node.Value] : [];
}

function globOf(pattern: readonly ('Wildcard' | { Literal: string })[]): string {
  return pattern.map((part) => (part === 'Wildcard' ? '*' : part.Literal)).join('');
}
