/**
 * One policy: the text Cedar evaluates, plus the consequences its annotations name. Reading one either gives a rule or says what
 * is wrong with it; nothing is guessed.
 */

import type { PolicyJson } from '@cedar-policy/cedar-wasm/nodejs';
import { ACTION_KINDS } from '../../model/actions.ts';
import type { JsonObject } from '../../model/schema.ts';
import { durationMs } from '../../model/values/duration.ts';
import { isObject } from '../../model/values/is-object.ts';
import type { Verdict } from '../../model/words.ts';
import type { Names, Patterns } from '../context.ts';
import { nearest } from '../rules/problems.ts';
import { RULE_ID } from '../rules/schema.ts';
import { type Guards, guardsOf, uid } from './guards.ts';
import { lookOf } from './names.ts';
import type { PolicySource } from './source.ts';

export interface Rule {
  readonly id: string;
  /** Index in the whole set: the order in which equally strict rules are named and rewrites are applied. */
  readonly index: number;
  readonly file: string;
  readonly line: number;
  readonly verdict: Verdict;
  readonly reason: string;
  readonly patch: JsonObject | undefined;
  readonly retryAfterMs: number | undefined;
  readonly ask: { readonly to?: readonly string[]; readonly expires_ms?: number } | undefined;
  /** As evaluated: every rule that does more than allow is a forbid, so that no other match can hide it. */
  readonly text: string;
  readonly guards: Guards;
  readonly names: Names;
  readonly patterns: Patterns;
  readonly seesPrincipal: boolean;
  readonly seesResource: boolean;
}

export const PRINCIPAL_TYPES = { person: 'Person', service: 'Service', agent: 'Agent', system: 'System' } as const;
const RESOURCE_TYPES = ['Tool', 'Target', 'Workspace'] as const;

/** The words used in rules, and the verdicts they mean. */
const VERDICT_WORDS: Readonly<Record<string, Verdict>> = {
  allow: 'allow',
  block: 'block',
  deny: 'block',
  ask: 'escalate',
  escalate: 'escalate',
  defer: 'defer',
  modify: 'modify',
};
const ANNOTATIONS = ['id', 'verdict', 'reason', 'modify', 'retry_after_ms', 'ask_to', 'ask_expires'] as const;
const DEFAULT_RETRY_MS = 1_000;

/** Ids appear in receipts, logs and terminals, so their characters are limited. */
const ID = new RegExp(RULE_ID);

export function readRule(
  policy: PolicyJson,
  source: PolicySource,
  index: number,
): { readonly rule: Rule } | { readonly id: string; readonly problems: readonly string[] } {
  const problems: string[] = [];
  const notes = new Map(Object.entries((policy.annotations ?? {}) as Record<string, string | null>));
  for (const [name, value] of notes) {
    if (value === null) problems.push(`@${name} needs a text in brackets: @${name}("…")`);
    const meant = (ANNOTATIONS as readonly string[]).includes(name) ? undefined : nearest(name, ANNOTATIONS);
    if (meant) problems.push(`@${name} is not known; did you mean @${meant}?`);
  }
  const id = notes.get('id') ?? `${source.file}:${source.line}`;
  if (notes.get('id') != null && !ID.test(id)) {
    problems.push('@id may have letters, digits and _ . : / - and at most 128 of them');
  }
  const word = notes.get('verdict') ?? (policy.effect === 'permit' ? 'allow' : 'block');
  const verdict = Object.hasOwn(VERDICT_WORDS, word) ? VERDICT_WORDS[word] : undefined;
  if (!verdict)
    problems.push(`@verdict(${JSON.stringify(word)}) is not one of ${Object.keys(VERDICT_WORDS).join(', ')}`);
  if (verdict === 'allow' && policy.effect === 'forbid') problems.push('a forbid cannot allow; write permit');

  const only = (name: string, allowed: Verdict) => {
    if (notes.has(name) && verdict && verdict !== allowed)
      problems.push(`@${name} only goes with @verdict("${allowed}")`);
  };
  only('modify', 'modify');
  only('retry_after_ms', 'defer');
  only('ask_to', 'escalate');
  only('ask_expires', 'escalate');

  const patch = readPatch(notes.get('modify'), verdict, problems);
  const retryAfterMs = readRetry(notes.get('retry_after_ms'), verdict, problems);
  const ask = readAsk(notes.get('ask_to'), notes.get('ask_expires'), problems);
  const look = lookOf(policy);
  problems.push(...look.problems, ...scopeProblems(policy));
  if (problems.length > 0 || !verdict) return { id, problems };
  const rule: Rule = {
    id,
    index,
    file: source.file,
    line: source.line,
    verdict,
    reason: notes.get('reason') ?? defaultReason(verdict, id),
    patch,
    retryAfterMs,
    ask,
    text: verdict === 'allow' || policy.effect === 'forbid' ? source.text : asForbid(source),
    guards: guardsOf(policy),
    names: look.names,
    patterns: look.patterns,
    seesPrincipal: look.principal,
    seesResource: look.resource,
  };
  return { rule };
}

function asForbid({ text, effectAt = 0 }: PolicySource): string {
  return `${text.slice(0, effectAt)}forbid${text.slice(effectAt + 'permit'.length)}`;
}

function defaultReason(verdict: Verdict, id: string): string {
  const says = {
    allow: 'allows this',
    block: 'forbids this',
    escalate: 'wants a person to decide this',
    defer: 'asks to wait',
    modify: 'rewrites the arguments',
  } as const;
  return `rule ${id} ${says[verdict]}`;
}

function readPatch(text: string | null | undefined, verdict: Verdict | undefined, problems: string[]) {
  if (text == null) {
    if (verdict === 'modify')
      problems.push('@verdict("modify") needs @modify("{…}"), the members of the arguments to change');
    return undefined;
  }
  try {
    const patch: unknown = JSON.parse(text);
    if (isObject(patch)) return patch as JsonObject;
    problems.push('@modify has to be a JSON object, because arguments are one');
  } catch {
    problems.push('@modify is not valid JSON');
  }
  return undefined;
}

function readRetry(text: string | null | undefined, verdict: Verdict | undefined, problems: string[]) {
  if (verdict !== 'defer') return undefined;
  if (text == null) return DEFAULT_RETRY_MS;
  if (/^\d{1,12}$/.test(text)) return Number(text);
  problems.push('@retry_after_ms has to be a whole number of milliseconds, such as "5000"');
  return undefined;
}

function readAsk(to: string | null | undefined, expires: string | null | undefined, problems: string[]): Rule['ask'] {
  const people = to == null ? undefined : to.split(',').map((one) => one.trim());
  if (people?.some((one) => one === '')) problems.push('@ask_to has to list people, separated by commas');
  const expiresMs = expires == null ? undefined : durationMs(expires);
  if (expires != null && expiresMs === undefined) {
    problems.push(`@ask_expires(${JSON.stringify(expires)}) is not a duration; write 30s, 10m, 2h or 1d`);
  }
  if (!people && expiresMs === undefined) return undefined;
  return { ...(people && { to: people }), ...(expiresMs !== undefined && { expires_ms: expiresMs }) };
}

/** A rule whose scope is always empty never matches; its author should know. */
function scopeProblems(policy: PolicyJson): readonly string[] {
  const { kinds, principal, resource } = guardsOf(policy);
  const problems: string[] = [];
  const entities = policy.action.op === 'All' ? [] : actionEntities(policy.action);
  if (entities.some((entity) => uid(entity).type !== 'Action')) problems.push('actions are written Action::"<kind>"');
  for (const kind of kinds ?? []) {
    if ((ACTION_KINDS as readonly string[]).includes(kind)) continue;
    const close = nearest(kind, ACTION_KINDS);
    problems.push(
      `there is no Action::${JSON.stringify(kind)}; ${close ? `did you mean ${close}?` : `the kinds are ${ACTION_KINDS.join(', ')}`}`,
    );
  }
  const types: readonly string[] = Object.values(PRINCIPAL_TYPES);
  if (principal.type !== undefined && !types.includes(principal.type)) {
    problems.push(`there is no principal of type ${principal.type}; the types are ${types.join(', ')}`);
  }
  if (resource.type !== undefined && !(RESOURCE_TYPES as readonly string[]).includes(resource.type)) {
    problems.push(`there is no resource of type ${resource.type}; the types are ${RESOURCE_TYPES.join(', ')}`);
  }
  return problems;
}

function actionEntities(action: Exclude<PolicyJson['action'], { op: 'All' }>): readonly unknown[] {
  if ('entities' in action) return action.entities;
  return 'entity' in action ? [action.entity] : [];
}
