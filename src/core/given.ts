/** What an agent is given to work with: its task, where that belongs, and what it may look up while it works. */
import type { Artifact, Message, Session, Task, Workspace } from '../model/resources.ts';
import type { Row, Store, Work } from '../ports.ts';
import { type AwaitedDeps, isAwaiting } from './awaited.ts';

interface Belonging {
  readonly session: Session;
  readonly workspace: Workspace | undefined;
  readonly resumed: boolean;
}

interface GivenDeps extends AwaitedDeps {
  readonly store: Store;
}

export function givenWork(deps: GivenDeps, task: Task, { session, workspace, resumed }: Belonging): Work {
  const { store } = deps;
  return {
    task,
    session,
    resumed,
    transcript: () => transcript(store, task.session_id),
    ...(workspace && { workspace }),
    bytes: (artifactId) => contentOf(store, task, artifactId),
    artifact: (artifactId) => artifactOf(store, task, artifactId),
    awaiting: () => isAwaiting(deps, task.id),
  };
}

/** What an agent may be handed to read: files of the workspace it works in, and none that are for receipts only. */
async function contentOf(store: Store, task: Task, artifactId: string): Promise<Uint8Array | undefined> {
  const artifact = await artifactOf(store, task, artifactId);
  return artifact?.sha256 ? await store.blob(artifact.sha256) : undefined;
}

async function artifactOf(store: Store, task: Task, artifactId: string): Promise<Artifact | undefined> {
  const artifact = await store.get<Artifact & Row>('artifact', artifactId);
  if (artifact?.workspace_id !== task.workspace_id || artifact.visibility === 'receipt_only') return undefined;
  return artifact;
}

async function* transcript(store: Store, sessionId: string): AsyncIterable<Message> {
  let after: string | undefined;
  for (;;) {
    const page = await store.list<Message & Row>({
      object: 'message',
      where: { session_id: sessionId },
      limit: 200,
      ...(after && { after }),
    });
    yield* page;
    if (page.length < 200) return;
    after = page.at(-1)?.id;
  }
}
