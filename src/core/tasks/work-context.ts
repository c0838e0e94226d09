/** The work context of an agent: its task, its session and workspace, and the lookups it may make while it works. */
import type { Artifact, Memory, Session, Task, Workspace } from '../../model/resources.ts';
import type { CallerReference, ReceiptIssuer, Row, Store, Work } from '../../ports/index.ts';
import { withMemories } from '../commands/memories.ts';
import { messagesOf } from '../commands/transcript.ts';
import { ours } from './lifecycle.ts';
import { isAwaiting, type PendingWorkDeps } from './pending-work.ts';
import { hopOf } from './submission/calling-gateway.ts';

interface Belonging {
  readonly session: Session;
  readonly workspace: Workspace | undefined;
  readonly resumed: boolean;
  readonly memories: readonly Memory[];
}

interface WorkContextDeps extends PendingWorkDeps {
  readonly store: Store;
  readonly issuer?: Pick<ReceiptIssuer, 'sealer' | 'eventHash'>;
}

export function workContext(
  deps: WorkContextDeps,
  task: Task,
  { session, workspace, resumed, memories }: Belonging,
): Work {
  const { store } = deps;
  return {
    task: memories.length > 0 ? { ...task, input: withMemories(task.input, memories) } : task,
    session,
    memories,
    resumed,
    transcript: () => messagesOf(store, task.session_id),
    ...(workspace && { workspace }),
    bytes: (artifactId) => contentOf(store, task, artifactId),
    artifact: (artifactId) => artifactOf(store, task, artifactId),
    awaiting: () => isAwaiting(deps, task.id),
    reference: (protocol) => referenceTo(deps, task, protocol),
  };
}

/**
 * References the event that started the work here: it is written before anything is forwarded, and never changes. The key is the
 * one of that moment, so that a reference repeated after a crash is the same, even if the key was changed in between.
 */
export async function referenceTo(
  { store, issuer }: Pick<WorkContextDeps, 'store' | 'issuer'>,
  task: Task,
  protocol: string,
): Promise<CallerReference> {
  const sealer = issuer?.sealer?.(task.created_at);
  const hops = [...(ours(task).caller?.hops ?? [])];
  if (sealer) hops.push(hopOf(sealer.key_id, task.assigned_agent_id ?? 'none'));
  const stream = { of: 'task', id: task.id } as const;
  for await (const event of store.read({ stream, kinds: ['task.submitted'] })) {
    const event_hash = issuer?.eventHash?.(event);
    const committed = event_hash ? { event_id: event.id, event_hash } : {};
    return { task_id: task.id, protocol, hops, ...sealer, ...committed };
  }
  return { task_id: task.id, protocol, hops, ...sealer };
}

/** Files an agent may read: those of its workspace, and none that are receipt-only. */
async function contentOf(store: Store, task: Task, artifactId: string): Promise<Uint8Array | undefined> {
  const artifact = await artifactOf(store, task, artifactId);
  return artifact?.sha256 ? await store.blob(artifact.sha256) : undefined;
}

async function artifactOf(store: Store, task: Task, artifactId: string): Promise<Artifact | undefined> {
  const artifact = await store.get<Artifact & Row>('artifact', artifactId);
  if (artifact?.workspace_id !== task.workspace_id || artifact.visibility === 'receipt_only') return undefined;
  return artifact;
}
