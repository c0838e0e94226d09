/** Directories of editors as workspaces, and sessions as editors list them. */

import { isAbsolute } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import {
  type Actor,
  type AgentFace,
  asText,
  type Bridge,
  everyRow,
  Fault,
  type JsonObject,
  type Persona,
  type Row,
  type Session,
  type Workspace,
} from '../../../src/index.ts';
import type { AcpSettings } from '../config.ts';
import { compact, lastPath, objectOf, textOf } from '../shapes.ts';

const SHOWN = 50;

export interface Workspaces {
  /** The workspace with this root, created if there is none. */
  workspaceAt(cwd: string): Promise<string>;
  list(params: JsonObject): Promise<JsonObject>;
  /** The choices of a client: its persona, and the agent that does the work. */
  choices(
    session: Pick<Session, 'persona_id'>,
    chosen: { persona?: string | undefined; agent?: string | undefined },
  ): Promise<JsonObject>;
}

export const DEFAULT_MODE = 'default';

export function createWorkspaces(bridge: Bridge, actor: Actor, settings: AcpSettings): Workspaces {
  const roots = new Map<string, string>();

  async function find(root: string): Promise<string | undefined> {
    const all = everyRow((paging) => bridge.list<Workspace & Row>(actor, { object: 'workspace', ...paging }));
    for await (const workspace of all)
      if (workspace.root === root || workspace.root === `${root}/`) return workspace.id;
    return undefined;
  }

  async function directoryOf(workspaceId: string): Promise<string> {
    const known = roots.get(workspaceId);
    if (known) return known;
    const { root } = await bridge.view<Workspace & Row>(actor, 'workspace', workspaceId);
    const path = root.startsWith('file:') ? pathOf(root) : '/';
    roots.set(workspaceId, path);
    return path;
  }

  return {
    async workspaceAt(cwd) {
      if (settings.workspace) return settings.workspace;
      const root = pathToFileURL(cwd).href;
      const found = await find(root);
      if (found) return found;
      // Two editors may open the same directory at once; the idempotency key makes them one workspace.
      const { resource } = await bridge.submit({
        kind: 'resource.create',
        actor,
        idempotency: { key: `acp:${root}` },
        body: { object: 'workspace', body: { name: lastPath(cwd) || cwd, root } },
      });
      return resource.id;
    },

    async list({ cwd, cursor }) {
      const where = textOf(cwd) ? await find(pathToFileURL(asText(cwd)).href) : undefined;
      if (textOf(cwd) && !where) return { sessions: [] };
      const { data, next } = await bridge.list<Session & Row>(actor, {
        object: 'session',
        newestFirst: true,
        limit: SHOWN,
        ...(where && { where: { workspace_id: where } }),
        ...(textOf(cursor) && { after: asText(cursor) }),
      });
      const sessions: JsonObject[] = [];
      for (const session of data) {
        const { acp } = session.metadata as { acp?: unknown };
        if (objectOf(acp)?.deleted === true) continue;
        sessions.push(
          compact({
            sessionId: session.id,
            cwd: await directoryOf(session.workspace_id),
            title: session.summary ?? undefined,
            updatedAt: session.updated_at,
          }),
        );
      }
      return { sessions, ...(next && { nextCursor: next }) };
    },

    async choices({ persona_id }, { persona, agent }) {
      const personas = await visible<Persona & Row>('persona');
      const agents = await agentsOf();
      const modes = personas.length > 0 && {
        currentModeId: persona ?? persona_id ?? settings.persona ?? DEFAULT_MODE,
        availableModes: [
          { id: DEFAULT_MODE, name: 'Default', description: 'As the session was opened.' },
          ...personas.map(({ id, name, description, autonomy_tier }) => ({
            id,
            name,
            description: `${description} (${autonomy_tier})`.trim(),
          })),
        ],
      };
      return {
        ...(modes && { modes }),
        ...(agents.length > 1 && { configOptions: agentOption(agents, agent ?? settings.agent) }),
      };
    },
  };

  /** Only objects the caller may see are offered. */
  async function visible<T extends Row>(object: string): Promise<readonly T[]> {
    try {
      return (await bridge.list<T>(actor, { object, limit: SHOWN })).data;
    } catch (cause) {
      if (cause instanceof Fault && cause.kind === 'permission_denied') return [];
      throw cause;
    }
  }

  async function agentsOf(): Promise<readonly AgentFace[]> {
    try {
      return await bridge.agents(actor);
    } catch (cause) {
      if (cause instanceof Fault && cause.kind === 'permission_denied') return [];
      throw cause;
    }
  }
}

export const AGENT_OPTION = 'agent';

function agentOption(agents: readonly AgentFace[], chosen: string | undefined): JsonObject[] {
  const current = agents.find(({ name }) => name === chosen) ?? agents.find((each) => each.default) ?? agents[0];
  return [
    {
      id: AGENT_OPTION,
      name: 'Agent',
      description: 'Who does the work.',
      // Categories without an underscore belong to the protocol.
      category: '_agent',
      type: 'select',
      currentValue: current?.name ?? '',
      options: agents.map(({ name, about }) => compact({ value: name, name, description: about.description })),
    },
  ];
}

export function requireDirectory(params: JsonObject): string {
  const cwd = textOf(params.cwd);
  if (!cwd || !isAbsolute(cwd) || cwd.includes('\0')) {
    throw new Fault('invalid_request', 'cwd must be an absolute path', { param: '/cwd' });
  }
  return cwd.length > 1 ? cwd.replace(/\/+$/, '') : cwd;
}

function pathOf(root: string): string {
  try {
    return fileURLToPath(root);
  } catch {
    return '/';
  }
}
