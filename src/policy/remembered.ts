/**
 * Answers that approvers asked to be remembered, applied to the decision of the policy chain. A remembered yes answers a
 * question that would be put to an approver, and nothing else: an act that a rule blocks stays blocked. A remembered no blocks.
 * Both are matched like short rules, so that a yes has to cover everything an act touches and a no any part of it. Where they
 * contradict each other, the no counts, whichever has the narrower scope.
 */
import type { Action, Decision } from '../model/actions.ts';
import { coveredAct, coverKey } from '../model/asks.ts';
import { Fault } from '../model/faults.ts';
import type { PermissionRule, Session, Task } from '../model/resources.ts';
import type { JsonObject } from '../model/schema.ts';
import { everyRow } from '../model/values/every-row.ts';
import type { ActReader, Clock, Row, RuleDraft, Store } from '../ports/index.ts';
import { loadPolicies } from './rules/load.ts';
import { createReloadablePolicy, type ReloadablePolicy } from './rules/reload.ts';
import type { RuleSpec, RuleTest } from './rules/schema.ts';

const NAME = 'remembered';
/** Fewer than a policy may have, so that the limit is reported when a rule is made and not when all of them are loaded. */
const MOST_RULES = 400;
/** Grants of people, which are looked up and not compiled. Those of sessions that have ended do not count. */
const MOST_GRANTS = 2_000;
/** How long a rule written by another process may go unnoticed here. */
const LOOK_MS = 700;

export interface RememberedDeps {
  readonly store: Pick<Store, 'list' | 'get'>;
  readonly read: ActReader;
  readonly clock: Clock;
}

export interface RememberedAnswers {
  /** How many are in force. */
  size(): number;
  amended(action: Action, decision: Decision): Promise<Decision>;
  /** Reads the rules again. Resolves when they are in force. */
  refresh(): Promise<void>;
  /** Throws a fault when this rule cannot be loaded, or when there are too many. */
  requireSound(rule: RuleDraft): Promise<void>;
  close(): Promise<void>;
}

export function createRememberedAnswers({ store, read, clock }: RememberedDeps): RememberedAnswers {
  let rules: ReadonlyMap<string, PermissionRule> = new Map();
  let grants: ReadonlyMap<string, readonly PermissionRule[]> = new Map();
  let looking: NodeJS.Timeout | undefined;
  const compiled: ReloadablePolicy = createReloadablePolicy({
    read,
    load: async () => ({ rules: [...rules.values()].map(toRule), rulesName: 'remembered rules', files: [] }),
    onChange: () => {},
  });
  let turn: Promise<void> = Promise.resolve();

  async function look(): Promise<void> {
    const now = clock.now();
    const next = new Map<string, PermissionRule>();
    const exact = new Map<string, PermissionRule[]>();
    const all = everyRow((paging) => store.list<PermissionRule & Row>({ object: 'permission_rule', ...paging }));
    for await (const rule of all) {
      if (!isInForce(rule, now)) continue;
      if (rule.covers) {
        const key = coverKey(rule.covers);
        exact.set(key, [...(exact.get(key) ?? []), rule]);
      } else next.set(rule.id, rule);
    }
    grants = exact;
    if (next.size === rules.size && [...next.keys()].every((id) => rules.has(id))) return;
    rules = next;
    const { outcome } = await compiled.reload();
    if (outcome === 'refused') throw new Fault('internal', 'the remembered rules cannot be read');
  }

  function refresh(): Promise<void> {
    turn = turn.catch(() => {}).then(look);
    return turn;
  }

  async function amended(action: Action, decision: Decision): Promise<Decision> {
    if (decision.verdict === 'block') return decision;
    const rule = matching(action, decision);
    if (rule && !rule.allow) return { ...said(rule, decision), verdict: 'block', code: 'remembered' };
    if (decision.verdict !== 'escalate') return decision;
    const yes = rule && (await mayAnswer(rule, action, decision)) ? rule : await granted(action, decision);
    if (!yes) return decision;
    return {
      ...said(yes, decision),
      verdict: decision.arguments ? 'modify' : 'allow',
      ...(decision.arguments && { arguments: decision.arguments }),
    };
  }

  /** The rule by its patterns. It is held against the act that would run, which another rule may have rewritten. */
  function matching(action: Action, decision: Decision): PermissionRule | undefined {
    if (rules.size === 0) return undefined;
    const { facts: _, ...rest } = action;
    const meant = decision.arguments ? { ...rest, arguments: decision.arguments } : action;
    const { rule_id } = compiled.inForce().judge(meant as Action);
    const rule = rule_id === undefined ? undefined : rules.get(rule_id);
    return rule && isInForce(rule, clock.now()) ? rule : undefined;
  }

  /** The grant that covers exactly this act. */
  async function granted(action: Action, decision: Decision): Promise<PermissionRule | undefined> {
    if (grants.size === 0) return undefined;
    const task = action.task_id === undefined ? undefined : await store.get<Task & Row>('task', action.task_id);
    const now = clock.now();
    for (const grant of grants.get(coverKey(coveredAct(action, action.actor.id, task))) ?? []) {
      const here = grant.scope !== 'session' || grant.scope_value === action.session_id;
      const theirs = (grant.tenant_id ?? null) === (action.actor.tenant_id ?? null);
      if (here && theirs && isInForce(grant, now) && (await mayAnswer(grant, action, decision))) return grant;
    }
    return undefined;
  }

  function said({ id, created_by, allow, reason }: PermissionRule, { policy_version }: Decision) {
    const words = `remembered: ${created_by} said ${allow ? 'yes' : 'no'} to this${reason ? ` (${reason})` : ''}`;
    return { engine: NAME, rule_id: id, reason: words, ...(policy_version && { policy_version }) };
  }

  /** Grants that can still be used: those for a session last as long as it. */
  async function usableGrants(): Promise<number> {
    let count = 0;
    for (const { scope, scope_value } of [...grants.values()].flat()) {
      const session = scope === 'session' ? await store.get<Session & Row>('session', scope_value ?? '') : undefined;
      if (session?.state !== 'CLOSED' && session?.state !== 'FAILED') count += 1;
    }
    return count;
  }

  /** Whether the author of the rule would be permitted to answer this very question. */
  async function mayAnswer(rule: PermissionRule, action: Action, decision: Decision): Promise<boolean> {
    const { ask } = decision;
    // A tainted session has read untrusted content, so its request may come from that content.
    if (action.attributes?.tainted && !rule.tainted && !(await isOwnContent(rule, action, decision))) return false;
    if (ask?.to?.length && !ask.to.includes(rule.created_by)) return false;
    if (action.actor.id === rule.created_by && !rule.interactive) return false;
    if (rule.own || !action.task_id) return true;
    const task = await store.get<Task & Row>('task', action.task_id);
    return task !== undefined && task.created_by !== rule.created_by;
  }

  /**
   * Whether the session was tainted by calls that this grant covers, and by nothing else: what the approved tool returns was to be expected then. A rule
   * that asks is not answered so, because it may be about tainted sessions.
   */
  async function isOwnContent(
    { covers, created_at: approvedAt }: PermissionRule,
    { session_id, server, tool, attributes }: Action,
    { rule_id }: Decision,
  ): Promise<boolean> {
    if (!covers || rule_id !== undefined || !session_id) return false;
    const taint = await store.get<Row & { readonly from: JsonObject; readonly several?: true }>('taint', session_id);
    if (
      !taint ||
      taint.several ||
      taint.from.target !== undefined ||
      Date.parse(taint.created_at) < Date.parse(approvedAt)
    )
      return false;
    return taint.from.server === server && taint.from.what === (attributes?.own_name ?? tool);
  }

  return {
    size: () => rules.size + grants.size,
    amended,
    async refresh() {
      await refresh();
      looking ??= setInterval(() => refresh().catch(() => {}), LOOK_MS).unref();
    },
    async requireSound(rule) {
      if (rule.covers) {
        const fits = [...grants.values()].flat().length < MOST_GRANTS || (await usableGrants()) < MOST_GRANTS;
        if (!fits) throw new Fault('conflict', `at most ${MOST_GRANTS} approvals are given for longer than once`);
        return;
      }
      if (rules.size >= MOST_RULES) throw new Fault('conflict', `at most ${MOST_RULES} rules are remembered`);
      if (/[?[\]{}\\]/.test(`${rule.action_pattern}${rule.target_pattern}`)) {
        throw new Fault('invalid_request', 'of the signs of a pattern only * is understood here', {
          param: 'target_pattern',
        });
      }
      if (!TESTS.has(rule.class)) {
        throw new Fault('invalid_request', `this gateway cannot hold anyone to a rule about ${rule.class}`, {
          param: 'class',
        });
      }
      await loadPolicies({ rules: [toRule({ ...rule, id: 'rule_candidate' } as PermissionRule)], files: [] });
    },
    async close() {
      clearInterval(looking);
      await compiled.close();
    },
  };
}

function isInForce({ expires_at }: Pick<PermissionRule, 'expires_at'>, now: string): boolean {
  return !expires_at || Date.parse(expires_at) > Date.parse(now);
}

/** The facts that a class of acts is tested on, beside the name of the tool. A no also covers acts whose effect is unknown. */
const TESTS: ReadonlyMap<string, (target: string, allow: boolean) => RuleTest> = new Map(
  Object.entries({
    read: (path: string, allow: boolean): RuleTest => ({
      path,
      effect: allow ? ['none', 'read'] : ['none', 'read', 'unknown'],
    }),
    write: (path: string, allow: boolean): RuleTest => ({
      path,
      effect: allow ? ['none', 'read', 'write'] : ['write', 'delete', 'unknown'],
    }),
    exec: (command: string): RuleTest => ({ command }),
    net: (url: string): RuleTest => ({ url }),
    custom: (target: string): RuleTest => (target === '*' ? {} : { target }),
  }),
);

/** Converts it to a short rule, limited to its tenant: a rule without a tenant does not apply to work that has one. */
function toRule(rule: PermissionRule): RuleSpec {
  const { id, allow, action_pattern: tool, target_pattern: target, tenant_id } = rule;
  const [field, value] = scopeTest(rule);
  return {
    id,
    when: {
      ...(tool !== '*' && { tool }),
      ...(rule.server && { server: rule.server }),
      ...TESTS.get(rule.class)?.(target, allow),
      ...(field && { [field]: value }),
      ...(tenant_id && { tenant: tenant_id }),
    },
    ...(!tenant_id && { unless: { tenant: '*' } }),
    // biome-ignore lint/suspicious/noThenProperty: this is how a rule is written
    then: allow ? 'allow' : 'block',
  };
}

function scopeTest({ scope, scope_value }: PermissionRule): ['session' | 'workspace' | 'principal', string] | [] {
  if (scope === 'always') return [];
  // A rule whose scope has no value applies to nothing.
  const value = scope_value || 'nothing';
  return scope === 'session' || scope === 'workspace' ? [scope, value] : ['principal', value];
}
