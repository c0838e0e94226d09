/**
 * Answers that approvers asked to be remembered, applied to the decision of the policy chain. A remembered yes answers a
 * question that would be put to an approver, and nothing else: an act that a rule blocks stays blocked. A remembered no blocks.
 * Both are matched like short rules, so that a yes has to cover everything an act touches and a no any part of it. Where they
 * contradict each other, the no counts, whichever has the narrower scope.
 */
import type { Action, Decision } from '../model/actions.ts';
import { Fault } from '../model/faults.ts';
import type { PermissionRule, Task } from '../model/resources.ts';
import { everyRow } from '../model/values/every-row.ts';
import type { ActReader, Clock, Row, RuleDraft, Store } from '../ports/index.ts';
import { loadPolicies } from './rules/load.ts';
import { createReloadablePolicy, type ReloadablePolicy } from './rules/reload.ts';
import type { RuleSpec, RuleTest } from './rules/schema.ts';

const NAME = 'remembered';
/** Fewer than a policy may have, so that the limit is reported when a rule is made and not when all of them are loaded. */
const MOST_RULES = 400;
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
    const all = everyRow((paging) => store.list<PermissionRule & Row>({ object: 'permission_rule', ...paging }));
    for await (const rule of all) if (isInForce(rule, now)) next.set(rule.id, rule);
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
    // Matches against the act that would run: a rule may have rewritten it.
    const { facts: _, ...rest } = action;
    const meant = decision.arguments ? { ...rest, arguments: decision.arguments } : action;
    const { rule_id } = compiled.inForce().judge(meant as Action);
    const rule = rule_id === undefined ? undefined : rules.get(rule_id);
    if (!rule || !isInForce(rule, clock.now())) return decision;
    const reason = `remembered: ${rule.created_by} said ${rule.allow ? 'yes' : 'no'} to this${rule.reason ? ` (${rule.reason})` : ''}`;
    const { policy_version } = decision;
    const by = { engine: NAME, rule_id: rule.id, reason, ...(policy_version && { policy_version }) };
    if (!rule.allow) return { ...by, verdict: 'block', code: 'remembered' };
    if (decision.verdict !== 'escalate' || !(await mayAnswer(rule, action, decision))) return decision;
    return {
      ...by,
      verdict: decision.arguments ? 'modify' : 'allow',
      ...(decision.arguments && { arguments: decision.arguments }),
    };
  }

  /** Whether the author of the rule would be permitted to answer this very question. */
  async function mayAnswer(rule: PermissionRule, action: Action, { ask }: Decision): Promise<boolean> {
    // A tainted session has read untrusted content, so its request may come from that content.
    if (action.attributes?.tainted && !rule.tainted) return false;
    if (ask?.to?.length && !ask.to.includes(rule.created_by)) return false;
    if (action.actor.id === rule.created_by && !rule.interactive) return false;
    if (rule.own || !action.task_id) return true;
    const task = await store.get<Task & Row>('task', action.task_id);
    return task !== undefined && task.created_by !== rule.created_by;
  }

  return {
    size: () => rules.size,
    amended,
    async refresh() {
      await refresh();
      looking ??= setInterval(() => refresh().catch(() => {}), LOOK_MS).unref();
    },
    async requireSound(rule) {
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
