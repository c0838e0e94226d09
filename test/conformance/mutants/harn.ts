/** Promises of the Agents Protocol that the suite `harn` has to see broken. */
import type { Revision } from '../harn/harness/revision.ts';
import { FIRST } from '../harn/harness/revision-2026-04-25.ts';
import { SECOND } from '../harn/harness/revision-2026-10-11.ts';
import type { Mutant } from './mutant.ts';

type Rows = readonly (readonly [promise: string, find: string, replace: string])[];

const mutantsOf =
  ({ version }: Revision) =>
  (category: string, file: string, rows: Rows): Mutant[] =>
    rows.map(([promise, find, replace]) => {
      return { promise, file, find, replace, by: { suite: 'harn', category, revision: version } };
    });
/** Promises that both revisions make, and those of the newer one. */
const harn = mutantsOf(FIRST);
const newer = mutantsOf(SECOND);

export const harnMutants: readonly Mutant[] = [
  ...harn('resources,promises', 'src/policy/persona.ts', [
    ['autonomy: in the shadow tier nothing acts', "if (tier === 'shadow') return shadow(lack);", ''],
    ['autonomy: act_with_approval asks before a side effect', 'return isSideEffect(action.effect)', 'return false'],
    [
      'autonomy: suggest asks before every act',
      "return escalate('tier_suggest',",
      "return noObjection('tier_suggest',",
    ],
    [
      'autonomy: act_auto acts where a rule allows it',
      "return noObjection(NAME, 'the rules alone decide');",
      "return escalate('tier_act_auto', 'asks');",
    ],
    [
      'persona tools: a tool that is not listed is refused',
      'if (covers(persona.tools, names)) return undefined;',
      'return undefined;',
    ],
    ['persona tools: a listed tool is not refused', 'if (covers(persona.tools, names)) return undefined;', ''],
    [
      'persona handoffs: an agent that is not listed gets no work',
      'if (peer !== undefined && covers(persona.handoffs, [peer])) return undefined;',
      'return undefined;',
    ],
    [
      'capabilities: a kind of act that is not listed is refused',
      'if (kinds.length > 0 && !covers(kinds, [action.kind])) {',
      'if (kinds.length < 0) {',
    ],
    [
      'capabilities: an effect that is not listed is refused',
      "if (effects.length > 0 && action.effect !== 'none' && !covers(effects, [action.effect])) {",
      'if (effects.length < 0) {',
    ],
  ]),
  ...harn('resources,promises', 'src/policy/quota.ts', [
    ['quotas: a hard limit holds to the last unit', 'used + price > allowed', 'used + price > allowed + 1'],
    ['quotas: what is used is counted', 'usage[key] = used + price;', 'usage[key] = used;'],
    [
      'quotas: a soft limit is not enforced',
      'return quota.hard_limit !== true && (',
      'return quota.hard_limit === 1 && (',
    ],
  ]),
  ...harn('scopes', 'src/core/access.ts', [
    ['scopes: an operation needs its scope', 'if (!holds(actor, scope)) throw', 'if (scope === "") throw'],
    ['scopes: canceling needs tasks:write', "'task.cancel': 'tasks:write'", "'task.cancel': 'tasks:read'"],
    ['scopes: approving needs approvals:write', "'ask.answer': 'approvals:write'", "'ask.answer': 'tasks:write'"],
    ['scopes: reading receipts needs receipts:read', "['receipt', 'receipts:read']", "['receipt', 'tasks:read']"],
    ['scopes: reading events needs events:read', "['event', 'events:read']", "['event', 'tasks:read']"],
  ]),
  ...harn('tenants,promises', 'src/core/access.ts', [
    [
      'scopes: another tenant sees nothing',
      'return workspace !== undefined && (workspace.tenant_id ?? null) === (actor.tenant_id ?? null);',
      'return workspace !== undefined;',
    ],
    [
      'scopes: a key for some workspaces sees no other',
      'if (actor.workspaces && !actor.workspaces.includes(id)) return false;',
      '',
    ],
    [
      'scopes: work of others needs others:read',
      "return actor.kind === 'system' || holds(actor, 'others:read');",
      'return actor.id !== "";',
    ],
  ]),
  ...harn('privacy', 'src/core/access.ts', [
    [
      'visibility: content for receipts only needs their scope',
      "else if (artifact.visibility !== 'public') requireReadScope(actor, 'receipt');",
      '',
    ],
  ]),
  ...harn('asks,promises', 'src/core/approvals/may-answer.ts', [
    [
      'approvals: the key that gave the work does not approve it',
      "if (named || actor.scopes.includes('approvals:own')) return undefined;",
      'return undefined;',
    ],
  ]),
  ...harn('once', 'src/core/context.ts', [
    ['idempotency: the same key and body is the same command', 'if (!idempotency) return {};', 'if (kind) return {};'],
    ['idempotency: the same key with another body is refused', 'body: hash(body as Json) } };', "body: '' } };"],
    [
      'idempotency: a key belongs to its caller',
      'tenantOf(actor), actor.id, workspaceId',
      'tenantOf(actor), workspaceId',
    ],
  ]),
  ...harn('lifecycle-beyond', 'src/core/tasks/cancel.ts', [
    [
      'lifecycle: work that has ended cannot be canceled',
      "if (isTerminal(known.status)) throw new Fault('conflict'",
      "if (isTerminal(known.status)) return { events: [], result: { id: taskId } };\n        if (!known.id) throw new Fault('conflict'",
    ],
  ]),
  ...harn('state', 'src/core/events/visibility.ts', [
    [
      'visibility: internal content needs its scope',
      "return visibility === 'internal' ? internal :",
      "return visibility === 'internal' ? true :",
    ],
  ]),
  ...harn('memories', 'src/core/commands/memories.ts', [
    [
      'memory: what is remembered for one persona reaches no other',
      'return memory.owner_id === standing.persona_id;',
      'return memory.owner_id !== "";',
    ],
  ]),
  ...harn('vaults', 'src/auth/vault-access.ts', [
    [
      'vaults: a tenant without a grant uses no secret',
      'return tenantId === null ? tenants === undefined : (tenants?.includes(tenantId) ?? false);',
      'return tenants === undefined || tenants.length > 0;',
    ],
  ]),
  ...harn('receipts-beyond,promises', 'src/receipt/seal/keys.ts', [
    [
      'receipts: the signature is over the hash',
      'sign(null, Buffer.from(hash), held.privateKey)',
      'sign(null, Buffer.from(hash.slice(7)), held.privateKey)',
    ],
  ]),
  ...harn('receipts-beyond,promises', 'src/receipt/seal/seal.ts', [
    [
      'receipts: the hash covers the receipt before it',
      "receipt.chain = { previous_receipt_hash: head.previous } as Receipt['chain'];",
      "receipt.chain = { previous_receipt_hash: null } as Receipt['chain'];",
    ],
  ]),
  ...harn('receipts-beyond,promises', 'src/receipt/verify/verify.ts', [
    [
      'receipt verification: an earlier receipt that is not in the chain is no anchor',
      "(chain === 'mismatch' || anchor === 'not_reached')",
      "(chain === 'mismatch')",
    ],
  ]),
  ...harn('promises', 'src/receipt/merkle/event-hash.ts', [
    [
      'receipts: a receipt commits to the events of its task',
      'run.frontier.push(node);',
      'run.frontier.unshift(node);',
    ],
  ]),
  ...harn('replay-beyond', 'src/core/replay/overrides.ts', [
    [
      'overrides: an exact replay takes none',
      "if (mode === 'exact' && keys.length > 0)",
      "if (mode === 'never' && keys.length > 0)",
    ],
    [
      'overrides: a value has the hash that was stated',
      "throw bad('sha256 does not match the value', { expected: sha256 });",
      '',
    ],
    [
      'overrides: what the record does not depend on cannot be replaced',
      "throw bad('the source task has no such dependency', { known });",
      'return undefined as never;',
    ],
  ]),
  ...harn('replay-beyond', 'src/core/replay/replay.ts', [
    [
      'overrides: what follows from another answer follows',
      "return reaches && request.mode !== 'exact' && backend?.abilities.reruns ? backend : undefined;",
      'return reaches && !backend?.name ? backend : undefined;',
    ],
  ]),
  ...harn('replay-beyond', 'src/core/replay/shown.ts', [
    [
      'overrides: a value that is not public stands in no event',
      "return visibility !== 'public';",
      "return visibility === 'secret';",
    ],
  ]),
  ...harn('replay-beyond', 'src/core/replay/answers.ts', [
    [
      'missing dependencies: what was never recorded is named, not made up',
      'failed ??= { kind, id: shownId,',
      "failed ??= { kind, id: '',",
    ],
  ]),
  ...harn('promises', 'src/core/tasks/submission/quotas.ts', [
    [
      'quotas: work under way counts until it ends',
      "if (current && Object.hasOwn(current.limits, 'concurrency')) holds.push(id);",
      '',
    ],
  ]),
  ...harn('promises', 'src/core/actions/time-limits.ts', [
    [
      'quotas: work is stopped when its time is up',
      'if (left <= since) passed ??=',
      'if (left <= since - 1e12) passed ??=',
    ],
  ]),
  ...newer('live-clients', 'adapters/harn/server/live-clients.ts', [
    [
      'live clients: control changes hands only by a takeover',
      "if (mode === 'controller' && controller !== null && controller !== client_id && !takeover) {",
      "if (mode === 'never') {",
    ],
    [
      'live clients: who lost control is an observer',
      "            mode: 'observer',\n            prompt_injection: false,",
      "            mode: 'controller',\n            prompt_injection: false,",
    ],
    [
      'live clients: a client belongs to who attached it',
      'if (!kept || kept.owner !== actor.id) throw',
      'if (!kept) throw',
    ],
    [
      'live clients: a name that is taken is taken',
      'if (known && known.owner !== actor.id) return',
      'if (known && known.owner === "") return',
    ],
    ['live clients: who leaves no longer controls', 'if (room.controller === clientId) room.controller = null;', ''],
  ]),
  ...newer('live-clients', 'adapters/harn/server/routes/live.ts', [
    [
      'live clients: controlling takes what giving work takes',
      "if (attachment.mode === 'controller') requireScope(actor, 'tasks:write');",
      '',
    ],
    [
      'live clients: being asked takes what answering takes',
      "if (attachment.permission_routing) requireScope(actor, 'approvals:write');",
      '',
    ],
    [
      'live clients: attaching is decided and written down',
      "await record(call, session, 'session/attach', { client_id, mode, takeover });",
      '',
    ],
    [
      'live clients: a session that is over has nobody in it',
      "if (session.state === 'CLOSED' || session.state === 'FAILED') {",
      "if (session.state === 'FAILED') {",
    ],
  ]),
  ...newer('permissions', 'src/policy/remembered.ts', [
    [
      'permissions: a remembered no blocks',
      "if (rule && !rule.allow) return { ...said(rule, decision), verdict: 'block', code: 'remembered' };",
      'if (rule && !rule.allow) return decision;',
    ],
    ['permissions: a remembered yes answers the question', 'if (!yes) return decision;', 'if (yes) return decision;'],
    [
      'permissions: a yes does not count in its author’s own work',
      'return task !== undefined && task.created_by !== rule.created_by;',
      'return task !== undefined;',
    ],
    [
      'permissions: a rule ends when its time is up',
      'return !expires_at || Date.parse(expires_at) > Date.parse(now);',
      'return !expires_at || now !== "";',
    ],
    ['permissions: a rule counts where it was made for', '...(field && { [field]: value }),', ''],
  ]),
  ...newer('permissions', 'adapters/harn/server/routes/rules.ts', [
    [
      'permissions: remembering a yes takes what approving takes',
      "if (allow) requireScope(actor, 'approvals:write');",
      '',
    ],
    [
      'permissions: a policy that is replaced is gone',
      "await bridge.submit({ kind: 'resource.delete', actor: call.actor, body });",
      '',
    ],
    [
      'permissions: what nothing is held to is not installed',
      'const [param] = unheld.find(([, present]) => present) ?? [];',
      'const [param] = unheld.find(([name, present]) => present && !name) ?? [];',
    ],
    ['permissions: the newest decision is the first of the history', 'newest.toReversed()', 'newest'],
  ]),
  ...newer('permissions', 'adapters/harn/server/routes/permissions.ts', [
    [
      'permissions: an answer that is to be remembered is',
      'if (rule) await grants.create(call, rule, undefined,',
      'if (rule && !rule.scope) await grants.create(call, rule, undefined,',
    ],
    [
      'permissions: an answer is not remembered unless it says so',
      '!call.revision.remembersAnswers || !said.remember ||',
      '!call.revision.remembersAnswers ||',
    ],
    [
      'permissions: a remembered answer covers what was asked about and no more',
      "target_pattern: said.target_pattern ?? target ?? '*',",
      "target_pattern: said.target_pattern ?? '*',",
    ],
  ]),
  ...newer('modes', 'src/core/actions/policy-data.ts', [
    [
      'modes: a mode narrows what work may do',
      'return AUTONOMY_TIERS.indexOf(limit) < AUTONOMY_TIERS.indexOf(tier) ? limit : tier;',
      'return limit === tier ? limit : tier;',
    ],
    [
      'modes: no mode widens what work may do',
      'return AUTONOMY_TIERS.indexOf(limit) < AUTONOMY_TIERS.indexOf(tier) ? limit : tier;',
      'return limit;',
    ],
  ]),
  ...newer('modes', 'adapters/harn/server/routes/sessions.ts', [
    [
      'modes: a model that no agent would use is not dropped in silence',
      'if (model_policy && modes.length > 0) await refuseModel(call);',
      '',
    ],
  ]),
  ...newer('modes', 'mappings/harn-2026-10-11.ts', [
    [
      'modes: architect asks before every act',
      "{ wire: 'architect', core: 'suggest' },",
      "{ wire: 'architect', core: 'act_with_approval' },",
    ],
  ]),
  ...newer('once', 'mappings/harn-2026-10-11.ts', [
    [
      'idempotency: a key that nothing keeps is refused',
      "export const STRAY_KEY = 'refused';",
      "export const STRAY_KEY: 'refused' | 'ignored' = 'ignored';",
    ],
    [
      'idempotency: a retried task is told from a new one',
      'export const REPEATED_TASK = 200;',
      'export const REPEATED_TASK = 202;',
    ],
  ]),
  ...newer('lifecycle-beyond', 'mappings/harn-2026-10-11.ts', [
    [
      'lifecycle: input steers a task that waits for none',
      'export const INPUT_STEERS = true;',
      'export const INPUT_STEERS: boolean = false;',
    ],
  ]),
  ...newer('scopes', 'adapters/harn/server/routes/tasks.ts', [
    [
      'scopes: a message to a task is refused before the task is looked for',
      "  requireScope(actor, 'tasks:write');\n",
      '',
    ],
  ]),
];
