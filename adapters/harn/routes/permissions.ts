/** Questions put to people, and their answers. The first answer wins, at whichever door it is given. */
import type { AskRecord, Row } from '../../../src/index.ts';
import type { Call, Desk, Routes } from '../call.ts';
import { listPage, whereOf } from '../pages.ts';
import type { Wire } from '../schemas.ts';
import { toCoreAnswer, toCoreAskStates, toWirePermission } from '../translate.ts';

type Ids =
  | 'listPermissionRequests'
  | 'listTaskPermissionRequests'
  | 'getPermissionRequest'
  | 'respondPermissionRequest';

export function permissionRoutes({ bridge }: Desk): Pick<Routes, Ids> {
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
      // A caller that may answer sees what will run; everyone else, and every list, has it redacted.
      const open = ask.state === 'open' && ask.kind === 'approval';
      const act = open ? await bridge.pendingAct(actor, ask.id).catch(() => undefined) : undefined;
      return { body: toWirePermission(ask, act) };
    },
    respondPermissionRequest: async ({ actor, once, params, body }) => {
      const answer = toCoreAnswer(params.request_id!, body as Wire<'PermissionResponseRequest'>);
      const { resource } = await bridge.submit({ kind: 'ask.answer', actor, ...once, body: answer });
      return { body: show(resource) };
    },
  };
}
