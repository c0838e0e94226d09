/**
 * Permissions as this revision has them: remembered answers, patterns granted without a question, past decisions, and a check of
 * what would be decided. A remembered approval is given in advance, so it takes the scope of an approval; agents cannot give one.
 */
import { createHash } from 'node:crypto';
import { RULE_SCOPES } from '../../../../mappings/harn-2026-10-11.ts';
import {
  type Actor,
  canonicalJson,
  everyRow,
  Fault,
  type JsonObject,
  type PermissionRule,
  type Permissions,
  type Row,
  type Session,
} from '../../../../src/index.ts';
import { toCoreAct, toWireAudit, toWireDecision, toWireRule } from '../../revisions/permission-words.ts';
import type { NewerWire } from '../../revisions/schemas-2026-10-11.ts';
import { toWireList } from '../../translate.ts';
import type { Call, RouteContext, Routes } from '../call.ts';
import { requireScope } from '../exchange.ts';
import { limitOf, streamOf } from '../pages.ts';

type Ids =
  | 'listPermissionRules'
  | 'createPermissionRule'
  | 'revokePermissionRule'
  | 'getPermissionPolicy'
  | 'installPermissionPolicy'
  | 'getPermissionHistory'
  | 'checkPermission';

export type NewRule = NewerWire<'CreateRememberRule'>;
type RuleRow = PermissionRule & Row;
type Policy = NewerWire<'PermissionPolicy'>;

/** Classes a policy lists patterns for. */
const LISTED = ['read', 'write', 'exec', 'net'] as const;

export function ruleRoutes(context: RouteContext): Pick<Routes, Ids> {
  const { bridge, deps } = context;
  const grants = rememberedRules(context);

  function permissions(): Permissions {
    if (!deps.permissions) throw new Fault('not_implemented', 'this door cannot ask the rules');
    return deps.permissions;
  }

  async function policyOf(actor: Actor) {
    const granted = (await grants.all(actor)).filter(isOfPolicy);
    const lists = Object.fromEntries(
      LISTED.map((name) => [
        name,
        granted.filter((rule) => rule.class === name).map(({ target_pattern }) => target_pattern),
      ]),
    );
    const policy = { ...lists, llm: { providers: [] }, redact: { transcript: [], logs: [] }, escalate_to: [] };
    const text = canonicalJson({ rules: permissions().version(), policy });
    const version = `sha256:${createHash('sha256').update(text).digest('hex')}`;
    return { object: 'permission_policy', version, policy };
  }

  return {
    listPermissionRules: async (call) => {
      const rules = (await grants.all(call.actor)).filter((rule) => !isOfPolicy(rule) && inForce(rule, context));
      const order = (rule: RuleRow) => (RULE_SCOPES as readonly string[]).indexOf(rule.scope);
      const sorted = rules.toSorted((a, b) => order(a) - order(b));
      return { body: toWireList(sorted.slice(0, limitOf(call)).map(toWireRule), undefined) };
    },
    createPermissionRule: async (call) => ({
      body: toWireRule(await grants.create(call, call.body as NewRule)),
    }),
    revokePermissionRule: async ({ actor, params }) => {
      const body = { object: 'permission_rule' as const, id: params.rule_id! };
      await bridge.submit({ kind: 'resource.delete', actor, body });
      return { status: 204, body: undefined };
    },

    getPermissionPolicy: async ({ actor }) => ({ body: await policyOf(actor) }),
    installPermissionPolicy: async (call) => {
      requireScope(call.actor, 'permission_rules:write');
      const policy = call.body as Policy;
      refuseUnheld(policy);
      const wanted = LISTED.flatMap((name) => (policy[name] ?? []).map((target) => ({ class: name, target })));
      const standing = (await grants.all(call.actor)).filter(isOfPolicy);
      const same = (rule: RuleRow, one: (typeof wanted)[number]) =>
        rule.class === one.class && rule.target_pattern === one.target;
      const missing = wanted.filter((one) => !standing.some((rule) => same(rule, one)));
      const rules = missing.map(({ class: name, target }) => ({
        scope: 'always' as const,
        class: name,
        action_pattern: '*',
        target_pattern: target,
        allow: true,
      }));
      // All rules are validated before any takes effect, and grants that are no longer wanted end before others are added.
      for (const rule of rules) await grants.requireSound(call, rule);
      for (const rule of standing.filter((rule) => !wanted.some((one) => same(rule, one)))) {
        const body = { object: 'permission_rule' as const, id: rule.id };
        await bridge.submit({ kind: 'resource.delete', actor: call.actor, body });
      }
      for (const rule of rules) await grants.create(call, rule, { policy: true });
      return { body: await policyOf(call.actor) };
    },

    getPermissionHistory: async (call) => {
      const { actor, query } = call;
      const { stream, wanted } = streamOf(query);
      const limit = limitOf(call);
      const newest: unknown[] = [];
      const range = { stream, kinds: ['vendor.tollbridge.decided'] };
      for await (const event of bridge.events(actor, range)) {
        const entry = wanted(event) && !event.replayed ? toWireAudit(event) : undefined;
        if (!entry || (query.actor && entry.request.actor !== query.actor)) continue;
        if (query.outcome && entry.outcome !== query.outcome) continue;
        if (query.tenant_id && entry.request.tenant_id !== query.tenant_id) continue;
        newest.push(entry);
        if (newest.length > limit) newest.shift();
      }
      return { body: toWireList(newest.toReversed(), undefined) };
    },
    checkPermission: async ({ actor, body }) => {
      const asked = body as NewerWire<'PermissionCheckRequest'>;
      const session = await bridge.view<Session & Row>(
        { ...actor, scopes: ['sessions:read', ...actor.scopes.filter((scope) => scope.startsWith('others:'))] },
        'session',
        asked.session_id,
      );
      const decision = await permissions().check({ ...toCoreAct(asked, actor), session });
      const request_id = asked.id || deps.ids.next('permission');
      return { body: { object: 'permission_decision', request_id, decision: toWireDecision(decision) } };
    },
  };
}

/** Members that the gateway cannot enforce are refused, not stored. */
function refuseUnheld({ llm, redact, escalate_to }: Policy): void {
  const unheld: [string, boolean][] = [
    ['llm', (llm?.providers?.length ?? 0) > 0 || (llm?.cost_ceiling_usd_cents ?? null) !== null],
    ['redact', (redact?.transcript?.length ?? 0) + (redact?.logs?.length ?? 0) > 0],
    ['escalate_to', (escalate_to?.length ?? 0) > 0],
  ];
  const [param] = unheld.find(([, present]) => present) ?? [];
  if (!param) return;
  throw new Fault('invalid_request', `${param} is said in the configuration of this gateway, and cannot be installed`, {
    param,
  });
}

function isOfPolicy({ metadata }: RuleRow): boolean {
  return metadata.policy === true;
}

function inForce({ expires_at }: RuleRow, { deps }: RouteContext): boolean {
  return !expires_at || Date.parse(expires_at) > Date.parse(deps.clock.now());
}

export interface RememberedRules {
  all(actor: Actor): Promise<readonly RuleRow[]>;
  requireSound(call: Call, rule: NewRule): Promise<void>;
  create(call: Call, rule: NewRule, metadata?: JsonObject, id?: string): Promise<RuleRow>;
}

/** The remembered answers of one tenant: reading, validating, writing. */
export function rememberedRules({ bridge, deps }: RouteContext): RememberedRules {
  async function whole({ actor }: Call, rule: NewRule) {
    const { scope, scope_value = null, class: name, action_pattern, target_pattern, allow, reason, expires_at } = rule;
    // Checked first, and before an answer that is to be remembered is given.
    requireScope(actor, 'permission_rules:write');
    if (actor.kind === 'agent') throw new Fault('permission_denied', 'an agent does not answer for a person');
    if (allow) requireScope(actor, 'approvals:write');
    if (expires_at && Date.parse(expires_at) <= Date.parse(deps.clock.now())) {
      throw new Fault('invalid_request', 'the rule has expired already', { param: 'expires_at' });
    }
    if (scope === 'always' ? scope_value !== null : !scope_value) {
      throw new Fault('invalid_request', `scope_value says what ${scope} the rule is about`, { param: 'scope_value' });
    }
    return {
      scope,
      scope_value,
      class: name,
      action_pattern,
      target_pattern,
      allow,
      reason: reason ?? null,
      expires_at: expires_at ?? null,
      created_by: actor.id,
      own: actor.scopes.includes('approvals:own'),
      tenant_id: actor.tenant_id ?? null,
      workspace_id: await homeOf(actor, rule),
    };
  }

  /** The workspace of the rule's session or workspace, which has to be visible to its author. */
  async function homeOf(actor: Actor, { scope, scope_value }: NewRule): Promise<string | null> {
    const reader: Actor = { ...actor, scopes: [...actor.scopes, 'sessions:read', 'workspaces:read'] };
    if (scope === 'session') return (await bridge.view<Session & Row>(reader, 'session', scope_value!)).workspace_id;
    if (scope === 'workspace') return (await bridge.view<Row>(reader, 'workspace', scope_value!)).id;
    return null;
  }

  const requireSound: RememberedRules['requireSound'] = async (call, rule) => {
    if (!deps.permissions) throw new Fault('not_implemented', 'this door cannot ask the rules');
    await deps.permissions.requireSound(await whole(call, rule));
  };

  return {
    requireSound,
    async all(actor) {
      const found: RuleRow[] = [];
      const all = everyRow((paging) => bridge.list<RuleRow>(actor, { object: 'permission_rule', ...paging }));
      // Resources declared without a tenant are shown to all tenants; rules are shown only to their own.
      for await (const rule of all) if ((rule.tenant_id ?? null) === (actor.tenant_id ?? null)) found.push(rule);
      return found;
    },
    async create(call, rule, metadata, id) {
      await requireSound(call, rule);
      const body = { ...(await whole(call, rule)) };
      const { resource } = await bridge.submit({
        kind: 'resource.create',
        actor: call.actor,
        body: { object: 'permission_rule', body, ...(metadata && { metadata }), ...(id && { id }) },
      });
      return resource as RuleRow;
    },
  };
}
