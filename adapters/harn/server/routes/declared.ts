/** Declared resources (as opposed to those that events create): all are created, read and updated in the same way. */
import type { CommandBody, DeclaredKind, JsonObject, Row } from '../../../../src/index.ts';
import type { WireShape } from '../../revisions/schemas.ts';
import { withoutSecretNames } from '../../translate.ts';
import type { Call, Reply, Route, RouteContext, Routes } from '../call.ts';
import { listPage, whereOf } from '../pages.ts';

type Ids =
  | `${'list' | 'create' | 'get'}${'Persona' | 'Workspace' | 'Vault' | 'Connector' | 'Skill' | 'Quota'}`
  | `list${'Personas' | 'Workspaces' | 'Vaults' | 'Connectors' | 'Skills' | 'Quotas' | 'Memories' | 'Outcomes'}`
  | 'updatePersona'
  | 'updateWorkspace'
  | 'createMemory'
  | 'getMemory'
  | 'deleteMemory'
  | 'getOutcome'
  | 'getBranch'
  | 'getMessage';

export function declaredRoutes({ bridge }: RouteContext): Pick<Routes, Extract<keyof Routes, Ids>> {
  const list =
    (object: string, ...filters: Parameters<typeof whereOf>[1][]): Route =>
    async (call) => ({ body: await listPage(bridge, call, { object, where: whereOf(call.query, ...filters) }) });

  const view =
    (object: string): Route =>
    async ({ actor, params }) => ({ body: await bridge.view(actor, object, params[`${object}_id`]!) });

  async function create(object: DeclaredKind, call: Call, body: JsonObject): Promise<Reply> {
    const { metadata, ...rest } = body as JsonObject & { metadata?: JsonObject };
    const wanted: CommandBody<'resource.create'> = { object, body: rest, ...(metadata && { metadata }) };
    const { resource } = await bridge.submit({
      kind: 'resource.create',
      actor: call.actor,
      ...call.once,
      body: wanted,
    });
    return { status: 201, body: resource };
  }

  /** Only the members in the request change; metadata is merged, so that existing keys stay. */
  async function update(object: DeclaredKind, call: Call, body: JsonObject): Promise<Reply> {
    const { metadata, ...rest } = body as JsonObject & { metadata?: JsonObject };
    const id = call.params[`${object}_id`]!;
    const wanted: CommandBody<'resource.update'> = { object, id, body: rest, ...(metadata && { metadata }) };
    const { resource } = await bridge.submit({
      kind: 'resource.update',
      actor: call.actor,
      ...call.once,
      body: wanted,
    });
    return { body: resource };
  }

  const make =
    (object: DeclaredKind): Route =>
    (call) =>
      create(object, call, call.body as JsonObject);

  return {
    listPersonas: list('persona'),
    createPersona: make('persona'),
    getPersona: view('persona'),
    updatePersona: (call) => update('persona', call, call.body as JsonObject),

    listWorkspaces: list('workspace'),
    createWorkspace: make('workspace'),
    getWorkspace: view('workspace'),
    updateWorkspace: (call) => update('workspace', call, call.body as JsonObject),

    listMemories: async (call) => {
      const { session_id, workspace_id } = call.query;
      const where = { ...(workspace_id && { workspace_id }), ...(session_id && { owner_id: session_id }) };
      return { body: await listPage(bridge, call, { object: 'memory', where }) };
    },
    createMemory: make('memory'),
    getMemory: view('memory'),
    deleteMemory: async ({ actor, params, once }) => {
      const body = { object: 'memory' as const, id: params.memory_id! };
      await bridge.submit({ kind: 'resource.delete', actor, ...once, body });
      return { status: 204, body: undefined };
    },

    listVaults: async (call) => {
      const where = whereOf(call.query, 'workspace_id');
      return { body: await listPage(bridge, call, { object: 'vault', where }, withoutSecretNames) };
    },
    createVault: (call) =>
      create('vault', call, withoutSecretNames(call.body as WireShape<'CreateVaultRequest'>) as JsonObject),
    getVault: async ({ actor, params }) => ({
      body: withoutSecretNames(await bridge.view<Row>(actor, 'vault', params.vault_id!)),
    }),

    listConnectors: list('connector', 'workspace_id'),
    createConnector: make('connector'),
    getConnector: view('connector'),
    listSkills: list('skill'),
    createSkill: make('skill'),
    getSkill: view('skill'),
    listQuotas: list('quota'),
    createQuota: make('quota'),
    getQuota: view('quota'),

    listOutcomes: list('outcome', 'task_id'),
    getOutcome: view('outcome'),
    getBranch: view('branch'),
    getMessage: view('message'),
  };
}
