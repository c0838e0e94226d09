/**
 * Selects the rules that can match an action. Cedar's cost is linear in the rules it is given, so it gets only those; the
 * selection follows from the rules' own first tests, and leaving a rule out never changes an answer.
 */

import type { Action } from '../../model/actions.ts';
import { Memo } from '../../model/values/memo.ts';
import { isTextField, TEXT_FIELDS, type TextField } from '../context.ts';
import { type CompiledPolicies, rulesFor } from './compiled.ts';
import { CERTAIN, couldMatter, type Doubt, type Guard, type GuardResult, passes, type Scope } from './guards.ts';
import { PRINCIPAL_TYPES, type Rule } from './rule.ts';

export interface Entity {
  readonly type: string;
  readonly id: string;
}

export function principalOf({ actor }: Action): Entity {
  return { type: PRINCIPAL_TYPES[actor.kind] ?? 'Unknown', id: actor.id };
}

/** The object of the action: the tool if one is named, else the target, else the workspace. */
export function resourceOf(action: Action): Entity {
  if (action.tool !== undefined) return { type: 'Tool', id: action.tool };
  if (action.target !== undefined) return { type: 'Target', id: action.target };
  return { type: 'Workspace', id: action.workspace_id };
}

/** Fields with few different values: the rules they exclude are computed once and cached. */
const FEW: readonly string[] = [
  'effect',
  'evidence',
  'workspace',
  'tool',
  'server',
  'tier',
  'persona',
  'persona_id',
  'tenant',
  'door',
];
const REMEMBERED = 4_096;
const MAX_KEY_CHARS = 1_024;

/** Rules of one kind of action, and which of the few-valued fields they test first. */
interface KindRules {
  readonly rules: readonly Rule[];
  readonly fields: readonly TextField[];
  readonly remembered: Memo<string, readonly Shortlisted[]>;
}
/** A rule that passed its first tests, and the tests still to be made. */
interface Shortlisted {
  readonly rule: Rule;
  readonly rest: readonly Guard[];
}

export interface Selector {
  select(action: Action): readonly Rule[];
  /** Without the cache, and keeping every rule that an uncertain text could have matched. */
  selectInDoubt(action: Action, doubt: Doubt): readonly Rule[];
}

export function createSelector(policies: CompiledPolicies): Selector {
  const byKind = new Map<string, KindRules>();
  const kindRulesOf = (kind: string): KindRules => {
    let kindRules = byKind.get(kind);
    if (!kindRules) {
      kindRules = toKindRules(rulesFor(policies, kind));
      // Kinds come from a closed list; an unknown one is served without being cached.
      if (policies.byAction.has(kind)) byKind.set(kind, kindRules);
    }
    return kindRules;
  };
  return {
    select(action) {
      const kindRules = kindRulesOf(action.kind);
      const principal = principalOf(action);
      const resource = resourceOf(action);
      const picked: Rule[] = [];
      for (const { rule, rest } of shortlist(kindRules, action, principal.type)) {
        const { guards } = rule;
        if (
          inScope(guards.principal, principal, CERTAIN) &&
          inScope(guards.resource, resource, CERTAIN) &&
          (rest.length === 0 || couldMatter(rest, action, principal.type, CERTAIN))
        ) {
          picked.push(rule);
        }
      }
      return picked;
    },
    selectInDoubt(action, doubt) {
      const principal = principalOf(action);
      const resource = resourceOf(action);
      return rulesFor(policies, action.kind).filter(
        ({ guards }) =>
          inScope(guards.principal, principal, doubt) &&
          inScope(guards.resource, resource, doubt) &&
          couldMatter(guards.tests, action, principal.type, doubt),
      );
    },
  };
}

function inScope(scope: Scope, { type, id }: Entity, doubt: Doubt): boolean {
  return (scope.type === undefined || scope.type === type) && (scope.id === undefined || scope.id === id || doubt(id));
}

function toKindRules(rules: readonly Rule[]): KindRules {
  const fields = new Set(
    rules.flatMap(({ guards }) => opening(guards.tests).flatMap((test) => ('path' in test ? test.path : []))),
  );
  return { rules, fields: [...fields].filter(isTextField), remembered: new Memo(REMEMBERED) };
}

/** The leading tests of a rule that look only at few-valued fields. */
function opening(tests: readonly Guard[]): readonly Guard[] {
  const other = tests.findIndex(
    (test) =>
      !('principal' in test) && !('path' in test && test.path.length === 1 && FEW.includes(test.path[0] as string)),
  );
  return other < 0 ? tests : tests.slice(0, other);
}

function shortlist(kindRules: KindRules, action: Action, principalType: string): readonly Shortlisted[] {
  // As JSON, so that different fields never give the same key.
  const key = JSON.stringify([principalType, ...kindRules.fields.map((field) => TEXT_FIELDS[field](action) ?? null)]);
  const known = kindRules.remembered.get(key);
  if (known) return known;
  const list = kindRules.rules.flatMap((rule) => {
    const first = opening(rule.guards.tests);
    const answer = firstDoubt(first, action, principalType);
    if (answer === 'no') return [];
    return [{ rule, rest: answer === 'open' ? [] : rule.guards.tests.slice(first.length) }];
  });
  if (key.length <= MAX_KEY_CHARS) kindRules.remembered.set(key, list);
  return list;
}

function firstDoubt(tests: readonly Guard[], action: Action, principalType: string): GuardResult {
  for (const test of tests) {
    const answer = passes(test, action, principalType, CERTAIN);
    if (answer !== 'yes') return answer;
  }
  return 'yes';
}
