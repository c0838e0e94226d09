/** Reads a task from the log, its past and its live events, as a peer sees it. Holds no state between calls. */
import type { Task } from '@a2a-js/sdk';
import { EXTENSIONS } from '../../../mappings/a2a.ts';
import {
  type Actor,
  type AskRecord,
  type Bridge,
  type CoreEvent,
  mayAnswer,
  type Task as OurTask,
  type Row,
  visibleText,
} from '../../../src/index.ts';
import { receiptReference } from '../../../src/transport/outbound/receipt-reference.ts';
import type { A2aSettings } from '../config.ts';
import type { ArtifactContent } from '../translate.ts';
import { absentTask, isAbsent } from './refusal.ts';
import { createProjection, type ProjectionOptions, type TaskProjection, type Update } from './render-events.ts';

export interface Owned {
  readonly task: OurTask & Row;
  readonly contextId: string;
}

/** What a caller reads of a task: see `ProjectionOptions`. */
export interface Reading extends Pick<ProjectionOptions, 'activity' | 'quiet' | 'pieces' | 'queued'> {
  /** The caller wants to answer approvals with a text. */
  readonly texts?: boolean;
  /** The caller that is told of it, where another one reads. */
  readonly as?: Actor;
}

export interface TaskReader {
  /** The task, if it belongs to this caller and this agent. Any other is absent. */
  own(actor: Actor, taskId: string): Promise<Owned>;
  isMine(actor: Actor, task: OurTask): boolean;
  /** The questions that tasks of this caller and this agent ask. */
  ofMine(actor: Actor, asks: readonly AskRecord[]): Promise<readonly AskRecord[]>;
  contextOf(task: OurTask): string;
  begin(actor: Actor, contextId: string, how?: Reading): TaskProjection;
  /** Why a task of this session that has not begun waits: the questions open in it, and what they are about. */
  openIn(actor: Actor, sessionId: string): Promise<readonly AskRecord[]>;
  /** Applies all events up to now, or up to an event. */
  catchUp(actor: Actor, owned: Owned, how?: Reading & { upTo?: string }): Promise<TaskProjection>;
  snapshot(actor: Actor, owned: Owned, historyLength?: number, artifacts?: boolean): Promise<Task>;
  /** The owner's task, with the hash of its receipt once there is one. */
  withReceipt(actor: Actor, task: Task): Promise<Task>;
  /**
   * Reads until the task has ended or asks, or the caller is gone; only the final state matters. `written` are events already
   * in memory that come next.
   */
  settle(
    actor: Actor,
    taskId: string,
    projection: TaskProjection,
    signal: AbortSignal,
    written?: readonly CoreEvent[],
  ): Promise<void>;
  /** Continues from the projection's cursor. Ends with the task, or when the caller is gone. */
  follow(
    actor: Actor,
    taskId: string,
    projection: TaskProjection,
    signal: AbortSignal,
  ): AsyncGenerator<readonly Update[]>;
}

export interface ReaderDeps {
  readonly bridge: Bridge;
  readonly agent: string;
  readonly settings: Pick<A2aSettings, 'approvals' | 'textApprovals'>;
  /** The agent's base URL. */
  base(): string;
}

export function createReader({ bridge, agent, settings, base }: ReaderDeps): TaskReader {
  const link = (artifactId: string) => `${base()}/artifacts/${artifactId}`;
  const begin: TaskReader['begin'] = (actor, contextId, { texts, as = actor, ...how } = {}) =>
    createProjection({
      contextId,
      ...how,
      answering: {
        may: (ask, task) => mayAnswer(as, ask, task),
        texts: texts ?? settings.textApprovals,
        byReader: settings.approvals === 'input_required',
      },
      link,
    });

  async function openIn(actor: Actor, sessionId: string): Promise<readonly AskRecord[]> {
    const where = { session_id: sessionId, state: 'open' };
    return (await bridge.list<AskRecord & Row>(actor, { object: 'ask', where, limit: 50 })).data;
  }

  async function contentOf(actor: Actor, id: string): Promise<ArtifactContent> {
    // Not stored here, or hidden from this caller: a link is sent instead.
    const bytes = await bridge.bytes(actor, id).catch(() => undefined);
    return bytes ? { bytes } : { url: link(id) };
  }

  function isMine(actor: Actor, task: OurTask): boolean {
    return task.created_by === actor.id && task.assigned_agent_id === agent;
  }

  async function mine(actor: Actor, taskId: string): Promise<(OurTask & Row) | undefined> {
    try {
      const task = await bridge.view<OurTask & Row>(actor, 'task', taskId);
      return isMine(actor, task) ? task : undefined;
    } catch (thrown) {
      if (isAbsent(thrown)) return undefined;
      throw thrown;
    }
  }

  function contextOf({ metadata, session_id }: OurTask): string {
    const { a2a } = metadata as { a2a?: { context_id?: string } };
    return a2a?.context_id ?? session_id;
  }

  /** Synchronous, unless the event is about a file. */
  function contentFor(
    actor: Actor,
    projection: TaskProjection,
    event: CoreEvent,
  ): Promise<ArtifactContent> | undefined {
    const wanted = projection.wants(event);
    return wanted ? contentOf(actor, wanted) : undefined;
  }

  async function catchUp(...[actor, { task, contextId }, { upTo, ...how } = {}]: Parameters<TaskReader['catchUp']>) {
    const queued = task.status === 'SUBMITTED' ? whyQueued(task, await openIn(actor, task.session_id)) : undefined;
    const projection = begin(actor, contextId, { ...how, queued });
    const range = { stream: { of: 'task', id: task.id } as const, ...(upTo && { upTo }) };
    for await (const event of bridge.events(actor, range)) {
      const content = contentFor(actor, projection, event);
      projection.take(event, content && (await content));
    }
    return projection;
  }

  return {
    isMine,
    contextOf,
    begin,
    openIn,
    catchUp,
    async own(actor, taskId) {
      const task = await mine(actor, taskId);
      if (!task) throw absentTask(taskId);
      return { task, contextId: contextOf(task) };
    },
    async ofMine(actor, asks) {
      const tasks = await Promise.all(asks.map(({ task_id }) => mine(actor, task_id)));
      return asks.filter((_, each) => tasks[each]);
    },
    async snapshot(actor, owned, historyLength, artifacts = true) {
      return (await catchUp(actor, owned, { quiet: true })).snapshot({ historyLength, artifacts });
    },
    async withReceipt(actor, task) {
      const record = task.metadata?.[EXTENSIONS.record] as { receiptId?: string } | undefined;
      const known = record?.receiptId && (await receiptReference(bridge, actor, record.receiptId));
      if (!known) return task;
      const { receipt_hash: receiptHash, issuer, key_id: keyId, holds } = known;
      const metadata = { ...task.metadata, [EXTENSIONS.record]: { ...record, receiptHash, issuer, keyId, holds } };
      return { ...task, metadata };
    },
    async settle(actor, taskId, projection, signal, written = []) {
      for (const event of written) {
        if (event.task_id !== taskId) continue;
        const content = contentFor(actor, projection, event);
        projection.take(event, content && (await content));
      }
      for await (const event of bridge.follow(actor, from(taskId, projection), signal)) {
        const content = contentFor(actor, projection, event);
        projection.take(event, content && (await content));
        if (projection.ended || projection.waiting) return;
      }
    },
    async *follow(actor, taskId, projection, signal) {
      if (projection.ended) return;
      for await (const event of bridge.follow(actor, from(taskId, projection), signal)) {
        const content = contentFor(actor, projection, event);
        yield projection.take(event, content && (await content));
        if (projection.ended) return;
      }
    },
  };
}

/** Why a task has not begun, in words; undefined when nothing that waits for an answer is before it. */
export function whyQueued({ id }: Pick<OurTask, 'id'>, open: readonly AskRecord[]): string | undefined {
  const [before] = open;
  if (!before || before.task_id === id) return undefined;
  const what = before.kind === 'approval' ? 'an approval' : 'an answer';
  return `This task begins when task ${before.task_id} of the same context has ended, and that one waits for ${what}: ${visibleText(before.question)}`;
}

/** The position from which a task's stream continues. */
function from(taskId: string, { cursor }: TaskProjection) {
  return { stream: { of: 'task', id: taskId } as const, ...(cursor && { after: cursor }) };
}
