/** Later changes to an artifact: another resource refers to it, or its content is withdrawn. Neither changes its name or its hash. */
import type { Actor } from '../../model/actions.ts';
import type { CommandKind } from '../../model/commands.ts';
import type { EventDraft } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { Artifact, Message, Pointer, Task } from '../../model/resources.ts';
import { isTerminal } from '../../model/words.ts';
import type { At, Row } from '../../ports/index.ts';
import { requireReadScope } from '../access.ts';
import { accepted, type Context, type Handlers, once } from '../context.ts';
import { inTask } from '../tasks/lifecycle.ts';

type Kinds = Extract<CommandKind, 'artifact.link' | 'artifact.redact'>;

/** Resources an artifact can be linked to. */
const LINKED: ReadonlySet<string> = new Set(['session', 'task', 'message', 'outcome', 'memory', 'branch', 'artifact']);
/** The number of links stored in one artifact; the log has all of them. */
const MOST_LINKS = 100;

export function artifactHandlers(context: Context): Pick<Handlers, Kinds> {
  const { log, access } = context;

  return {
    'artifact.link': async (command) => {
      const { actor, body } = command;
      const before = await access.see<Artifact & Row>(actor, 'artifact', body.artifact_id);
      if (!LINKED.has(body.to.object)) {
        throw new Fault('invalid_request', `to.object must be one of ${[...LINKED].join(', ')}`, {
          param: '/to/object',
        });
      }
      requireReadScope(actor, body.to.object);
      const to = await access.see<Row & { workspace_id?: string | null }>(actor, body.to.object, body.to.id);
      if ((to.workspace_id ?? before.workspace_id ?? null) !== (before.workspace_id ?? null)) {
        throw new Fault('invalid_request', 'an artifact is linked to what is in its own workspace', { param: '/to' });
      }
      const taskId = body.to.object === 'task' ? body.to.id : before.task_id;
      const { repeated } = await log.commit({
        ...once(context, command, before.workspace_id ?? null, before.id),
        reads: readsOf(before.id, taskId),
        decide(at) {
          const artifact = present(at, before.id);
          const links = Array.isArray(artifact.metadata.links) ? artifact.metadata.links : [];
          if (links.some(({ object, id }) => object === body.to.object && id === body.to.id)) {
            return { events: [], result: { id: artifact.id } };
          }
          const next = {
            ...artifact,
            metadata: { ...artifact.metadata, links: [...links, body.to].slice(-MOST_LINKS) },
          };
          const payload = { artifact: next, to: body.to };
          return {
            events: [{ event: 'artifact.linked', ...about(at, next, taskId, actor), payload }],
            result: { id: artifact.id },
          };
        },
      });
      return accepted('artifact.link', await access.see<Row>(actor, 'artifact', before.id), repeated);
    },

    'artifact.redact': async (command) => {
      const { actor, body } = command;
      const before = await access.see<Artifact & Row>(actor, 'artifact', body.artifact_id);
      const { repeated } = await log.commit({
        ...once(context, command, before.workspace_id ?? null, before.id),
        reads: readsOf(before.id, before.task_id),
        decide(at) {
          const artifact = present(at, before.id);
          if (artifact.metadata.redacted === true) return { events: [], result: { id: artifact.id } };
          const metadata = {
            redacted: true,
            redacted_by: actor.id,
            ...(body.reason && { redaction_reason: body.reason }),
          };
          const next = { ...artifact, uri: null, metadata };
          const payload = { artifact: next, reason: body.reason ?? null };
          const where = about(at, next, before.task_id, actor);
          return { events: [{ event: 'artifact.redacted', ...where, payload }], result: { id: artifact.id } };
        },
      });
      return accepted('artifact.redact', await access.see<Row>(actor, 'artifact', before.id), repeated);
    },
  };
}

function readsOf(artifactId: string, taskId: string | null | undefined): Pointer[] {
  return [{ object: 'artifact', id: artifactId }, ...(taskId ? [{ object: 'task', id: taskId }] : [])];
}

function present(at: At, id: string): Artifact {
  const artifact = at.get<Artifact & Row>('artifact', id);
  if (!artifact) throw new Fault('not_found', `no artifact ${id}`);
  return artifact;
}

/** In a running task the change is part of the task's account; after its end the receipt is sealed without it. */
function about(
  at: At,
  artifact: Artifact,
  taskId: string | null | undefined,
  actor: Actor,
): Omit<EventDraft, 'event' | 'payload'> {
  const task = taskId ? at.get<Task & Row>('task', taskId) : undefined;
  const open = task && !isTerminal(task.status) ? inTask(task) : undefined;
  const { workspace_id = null, session_id = null } = artifact;
  return { resource: { object: 'artifact', id: artifact.id }, workspace_id, session_id, ...open, actor: actor.id };
}

/**
 * A message that refers to files links to each of them. Its author must be able to see them: a reference could be used to have an
 * agent read a file, or to learn that it exists.
 */
export async function linkedBy(
  { access }: Pick<Context, 'access'>,
  actor: Actor,
  parts: Message['parts'],
): Promise<readonly string[]> {
  const named = new Set<string>();
  for (const part of parts) {
    const { type, artifact_id: id } = part as { type: string; artifact_id?: unknown };
    if ((type === 'artifact_ref' || type === 'image_ref') && typeof id === 'string') named.add(id);
  }
  for (const id of named) await access.see(actor, 'artifact', id);
  return [...named];
}

export function linkEvents(
  artifactIds: readonly string[],
  to: Pointer,
  where: Omit<EventDraft, 'event' | 'payload'>,
): EventDraft[] {
  return artifactIds.map((artifact_id) => ({
    event: 'artifact.linked',
    payload: { artifact_id, to: to },
    ...where,
  }));
}
