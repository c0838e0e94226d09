/**
 * A policy set ready to be asked. Per question it picks the rules that can matter and hands only those to
 * Cedar; the pick depends on what rules say about the action, never on how often anyone asked.
 */
import type { Action } from '../model/actions.ts';
import { ACTION_KINDS } from '../model/actions.ts';
import { couldMatter } from './cedar-guards.ts';
import type { Rule } from './cedar-rule.ts';
import { PRINCIPAL_TYPES } from './cedar-rule.ts';
import { isPlainText } from './cedar-values.ts';
import { mergeNames, type Names, NO_NAMES, TEXT_FIELDS, type TextField } from './context.ts';

export interface CompiledPolicies {
  /** `sha256:<hex>` of the sources: the same sources are the same policy, anywhere. */
  readonly version: string;
  readonly ruleCount: number;
  /** Everything as Cedar, YAML rules included. */
  readonly text: string;
  readonly rules: readonly Rule[];
  /** Rules that can matter for a kind of action, in order. */
  readonly byAction: ReadonlyMap<string, readonly Rule[]>;
}

/** Rules that are evaluated together, and what they look at. */
export interface Slice {
  readonly key: string;
  readonly rules: readonly Rule[];
  readonly names: Names;
  readonly seesPrincipal: boolean;
  readonly seesResource: boolean;
  text(): string;
}

export function compiledPolicies(version: string, text: string, rules: readonly Rule[]): CompiledPolicies {
  const byAction = new Map(
    ACTION_KINDS.map((kind) => [kind, rules.filter(({ guards }) => guards.kinds?.includes(kind) ?? true)] as const),
  );
  return { version, ruleCount: rules.length, text, rules, byAction };
}

export interface Resource {
  readonly type: string;
  readonly id: string;
}

export function principalOf({ actor }: Action): Resource {
  return { type: PRINCIPAL_TYPES[actor.kind] ?? 'Unknown', id: actor.id };
}

/** What it is done to: the tool if one is named, else the target, else the workspace it happens in. */
export function resourceOf(action: Action): Resource {
  if (action.tool !== undefined) return { type: 'Tool', id: action.tool };
  if (action.target !== undefined) return { type: 'Target', id: action.target };
  return { type: 'Workspace', id: action.workspace_id };
}

/** Rules that may match this action, or fail over it. `unsure` fields pass every test. */
export function candidates(
  policies: CompiledPolicies,
  action: Action,
  unsure: (text: string) => boolean = () => false,
): readonly Rule[] {
  const principal = principalOf(action);
  const resource = resourceOf(action);
  const read = (field: TextField) => {
    const value = TEXT_FIELDS[field](action);
    return value === undefined ? undefined : isPlainText(value) && !unsure(value) ? value : null;
  };
  const inScope = (scope: { type?: string; id?: string }, { type, id }: Resource) =>
    (scope.type === undefined || scope.type === type) && (scope.id === undefined || scope.id === id || unsure(id));
  // A kind we have not met is still ruled by what is said about every kind.
  const rules = policies.byAction.get(action.kind) ?? policies.rules.filter((rule) => !rule.guards.kinds);
  return rules.filter(
    ({ guards }) =>
      inScope(guards.principal, principal) && inScope(guards.resource, resource) && couldMatter(guards.tests, read),
  );
}

export function sliceOf(version: string, kind: string, rules: readonly Rule[]): Slice {
  return {
    key: `${version} ${kind} ${rules.map(({ index }) => index).join(',')}`,
    rules,
    names: rules.reduce((names, rule) => mergeNames(names, rule.names), NO_NAMES),
    seesPrincipal: rules.some(({ seesPrincipal }) => seesPrincipal),
    seesResource: rules.some(({ seesResource }) => seesResource),
    text: () => rules.map(({ text }) => text).join('\n'),
  };
}
