/** What can be done to a run that exists: stop it, try it again, go on with it. Everything else is a conflict. */
import { isOver, type RunStatus } from '../../mappings/runs.ts';
import type { Actor, Json, JsonObject, Task } from '../../src/index.ts';
import type { OpenRun } from './book.ts';
import type { Call, Desk, Reply } from './call.ts';
import { isFault, RunsRefusal, refusing } from './refusal.ts';
import { type RunMetadata, runMetadataOf } from './run-metadata.ts';
import { isObject } from './sensitive.ts';
import { toWireRun } from './translate.ts';

type Move = (call: Call) => Promise<Reply>;

export function createMoves(desk: Desk): Readonly<Record<'get' | 'cancel' | 'retry' | 'resume', Move>> {
  const { bridge, book, turns } = desk;

  const shown = ({ id, first, standing }: OpenRun): Reply => ({ body: toWireRun(id, first, standing) });

  /** One move of a run at a time; whoever comes second finds it where the first one left it. */
  function move(may: (status: RunStatus) => boolean, how: (call: Call, run: OpenRun) => Promise<void>): Move {
    return async (call) =>
      await turns.take(`move ${call.id}`, async () => {
        const run = await book.open(call.actor, call.id);
        if (!may(run.standing.status)) throw conflict(run);
        await refusing({ not_found: 'RUN_NOT_FOUND' }, () => how(call, run));
        return shown(await book.open(call.actor, call.id));
      });
  }

  async function cancel(call: Call, { current }: OpenRun): Promise<void> {
    const body = await call.body().catch(() => undefined);
    const { reason } = isObject(body as Json) ? (body as JsonObject) : {};
    await bridge.submit({
      kind: 'task.cancel',
      actor: call.actor,
      body: { task_id: current.id, reason: typeof reason === 'string' ? reason : 'cancelled by the caller' },
    });
  }

  /** A task that has ended stays ended: another attempt is its child, under the same run. */
  async function retry({ actor, requestId }: Call, { id, current }: OpenRun): Promise<void> {
    const before = runMetadataOf(current) as RunMetadata;
    const runs: RunMetadata = { ...before, run_id: id, request_id: requestId, attempt: before.attempt + 1 };
    const { tollbridge: _, ...metadata } = current.metadata as JsonObject;
    await bridge.submit({
      kind: 'task.submit',
      actor,
      body: {
        session_id: current.session_id,
        parent_task_id: current.id,
        input: inputOf(current),
        ...(current.persona_id && { persona_id: current.persona_id }),
        ...(current.assigned_agent_id && { agent: current.assigned_agent_id }),
        metadata: { ...metadata, runs: runs as unknown as Json },
      },
    });
  }

  /**
   * Lets go of the silent worker and starts it again from the log. One that cannot go on that way is spoken to instead,
   * if it listens; either way the run is taken to be running until it falls silent again.
   */
  async function resume({ actor, id }: Call, { current }: OpenRun): Promise<void> {
    try {
      await bridge.submit({ kind: 'task.resume', actor, body: { task_id: current.id } });
    } catch (thrown) {
      if (!isFault(thrown, 'not_implemented')) throw thrown;
      await nudge(actor, current);
    }
    const { standing } = await book.open(actor, id);
    if (standing.status === 'stalled') await mark(desk, actor, current, 'run.resumed');
  }

  async function nudge(actor: Actor, { id, assigned_agent_id: name }: Task): Promise<void> {
    const agents = await bridge.agents(actor).catch(() => []);
    if (!agents.some((agent) => agent.name === name && agent.abilities.steer)) return;
    const text = { type: 'text' as const, text: 'Please go on.', visibility: 'public' };
    const body = { task_id: id, kind: 'interrupt' as const, message: { role: 'user' as const, parts: [text] } };
    await bridge.submit({ kind: 'task.message', actor, body });
  }

  return {
    get: async (call) => shown(await book.open(call.actor, call.id)),
    cancel: move((status) => !isOver(status), cancel),
    retry: move((status) => status === 'failed', retry),
    resume: move((status) => status === 'stalled', resume),
  };
}

function conflict({ id, standing }: OpenRun): RunsRefusal {
  return new RunsRefusal('RUN_INVALID_STATE_TRANSITION', `${id} is ${standing.status}`);
}

/** The message as it was given, without the names it got here. */
function inputOf({ input }: Task): JsonObject {
  const { role, parts } = input as JsonObject;
  return Array.isArray(parts) ? { role: role ?? 'user', parts } : (input as JsonObject);
}

/** Something about a run that no canonical word says, written into its task's own log. */
export async function mark(
  { bridge }: Pick<Desk, 'bridge'>,
  actor: Actor,
  task: Task,
  method: 'run.worker.stalled' | 'run.resumed',
): Promise<void> {
  const { decision } = await bridge.submit({
    kind: 'passthrough',
    actor,
    body: {
      protocol: 'runs',
      method,
      workspace_id: task.workspace_id,
      session_id: task.session_id,
      task_id: task.id,
    },
  });
  if (decision?.verdict !== 'allow') throw new RunsRefusal('POLICY_DENIED', decision?.reason);
}
