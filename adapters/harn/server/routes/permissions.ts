/** Questions to people, and their answers. The first answer counts, at whichever door it is given. */
import type { AskRecord, Row } from '../../../../src/index.ts';
import { classOf } from '../../revisions/permission-words.ts';
import type { WireShape } from '../../revisions/schemas.ts';
import type { NewerWire } from '../../revisions/schemas-2026-10-11.ts';
import { toCoreAnswer, toCoreAskStates, toWirePermission } from '../../translate.ts';
import type { Call, RouteContext, Routes } from '../call.ts';
import { listPage, whereOf } from '../pages.ts';
import { type NewRule, rememberedRules } from './rules.ts';

type Ids =
  | 'listPermissionRequests'
  | 'listTaskPermissionRequests'
  | 'getPermissionRequest'
  | 'respondPermissionRequest';

export function permissionRoutes(context: RouteContext): Pick<Routes, Ids> {
  const { bridge } = context;
  const grants = rememberedRules(context);
  const show = (row: Row) => toWirePermission(row as AskRecord & Row);
  const states = ({ query }: Call) => (query.status ? { state: toCoreAskStates(query.status) } : {});

  return {
    listPermissionRequests: async (call) => {
      const where = { ...whereOf(call.query, 'workspace_id', 'session_id', 'task_id'), ...states(call) };
      return { body: await listPage(bridge, call, { object: 'ask', where }, show) };
    },
    listTaskPermissionRequests: async (call) => {
      const task_id = call.params.task_id!;
      await bridge.view(call.actor, 'task', task_id);
      return { body: await listPage(bridge, call, { object: 'ask', where: { task_id, ...states(call) } }, show) };
    },
    getPermissionRequest: async ({ actor, params }) => {
      const ask = await bridge.view<AskRecord & Row>(actor, 'ask', params.request_id!);
      // A caller that may answer sees what will run; for all other callers, and in every list, it is redacted.
      const open = ask.state === 'open' && ask.kind === 'approval';
      const act = open ? await bridge.pendingAct(actor, ask.id).catch(() => undefined) : undefined;
      return { body: toWirePermission(ask, act) };
    },
    respondPermissionRequest: async (call) => {
      const { actor, once, params, body } = call;
      const answer = toCoreAnswer(params.request_id!, body as WireShape<'PermissionResponseRequest'>);
      const rule = await remembered(call, answer.approved);
      const { resource } = await bridge.submit({ kind: 'ask.answer', actor, ...once, body: answer });
      // One answer makes one rule: repeating the answer finds both.
      if (rule) await grants.create(call, rule, undefined, `rule_${answer.ask_id}`);
      return { body: show(resource) };
    },
  };

  /** The rule this answer asks for; a rule that could not be enforced refuses the answer before it is recorded. */
  async function remembered(call: Call, approved: boolean | undefined): Promise<NewRule | undefined> {
    const said = call.body as NewerWire<'PermissionResponseRequest'>;
    if (!call.revision.remembersAnswers || !said.remember || approved === undefined) return undefined;
    const reader = { ...call.actor, scopes: [...call.actor.scopes, 'tasks:read'] };
    const ask = await bridge.view<AskRecord & Row>(reader, 'ask', call.params.request_id!);
    const { tool, target, kind, actor } = ask.action as Partial<Record<'tool' | 'target' | 'kind' | 'actor', string>>;
    const scope = said.scope ?? 'session';
    const rule: NewRule = {
      scope,
      scope_value: { session: ask.session_id, workspace: ask.workspace_id, user: actor ?? null, always: null }[scope],
      class: said.class ?? classOf(kind ?? 'tool'),
      action_pattern: said.action_pattern ?? tool ?? '*',
      // Exactly the target that was asked about, unless the approver names a wider one.
      target_pattern: said.target_pattern ?? target ?? '*',
      allow: approved,
      ...(said.reason && { reason: said.reason }),
      ...(said.expires_at && { expires_at: said.expires_at }),
    };
    await grants.requireSound(call, rule);
    return rule;
  }
}
