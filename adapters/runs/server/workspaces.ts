/** The workspace of a run: the one its label names, or the default; and its session, usually a new one. */
import {
  type Actor,
  type Bridge,
  Fault,
  type JsonObject,
  type Row,
  type Session,
  type Workspace,
} from '../../../src/index.ts';
import type { RunsSettings } from '../config.ts';
import { isFault } from './refusal.ts';

export interface RunLocation {
  readonly id: string;
  /** The label, when it named no workspace. */
  readonly label: string | undefined;
}

const ID = /^[A-Za-z0-9_.-]{1,200}$/;

/** A label is never an authorization: one that names a hidden workspace is treated like any other label. */
export async function workspaceFor(
  bridge: Bridge,
  actor: Actor,
  settings: RunsSettings,
  label: string | null,
): Promise<RunLocation> {
  const named = label === null ? undefined : await findWorkspace(bridge, actor, label);
  if (named) return { id: named, label: undefined };
  const rest = label ?? undefined;
  return { id: settings.workspace ?? (await bridge.home(actor)), label: rest };
}

/** Finds a workspace by its id, its name, or its `external_id`. */
async function findWorkspace(bridge: Bridge, actor: Actor, label: string): Promise<string | undefined> {
  if (ID.test(label)) {
    try {
      return (await bridge.view<Row>(actor, 'workspace', label)).id;
    } catch (thrown) {
      if (!isFault(thrown, 'not_found') && !isFault(thrown, 'permission_denied')) throw thrown;
    }
  }
  let after: string | undefined;
  for (;;) {
    const page = await listWorkspaces(bridge, actor, after);
    const found = page.data.find(({ name, metadata }) => name === label || metadata.external_id === label);
    if (found || !page.next) return found?.id;
    after = page.next;
  }
}

async function listWorkspaces(bridge: Bridge, actor: Actor, after: string | undefined) {
  try {
    return await bridge.list<Workspace & Row>(actor, { object: 'workspace', limit: 200, ...(after && { after }) });
  } catch (thrown) {
    if (isFault(thrown, 'permission_denied')) return { data: [], next: undefined };
    throw thrown;
  }
}

/** The session the caller names, if it belongs to the caller and is open. */
export async function openSession(bridge: Bridge, actor: Actor, named: JsonObject): Promise<Session | undefined> {
  const { session_id: id } = named;
  if (typeof id !== 'string' || !ID.test(id)) return undefined;
  try {
    const session = await bridge.view<Session & Row>(actor, 'session', id);
    return session.state === 'CLOSED' || session.state === 'FAILED' ? undefined : session;
  } catch (thrown) {
    if (thrown instanceof Fault && thrown.kind === 'not_found') return undefined;
    throw thrown;
  }
}
