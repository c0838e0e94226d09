/** Actions on an existing run: cancel, retry, resume. Each is a conflict in every other state. */
import { isOver, type RunStatus } from '../../../../mappings/runs.ts';
import { type Actor, isObject, type Json, type JsonObject, type Task } from '../../../../src/index.ts';
import { receiptReference } from '../../../../src/transport/outbound/receipt-reference.ts';
import { toWireRun } from '../../translate.ts';
import type { Call, Reply, RouteContext } from '../call.ts';
import { isFault, RunsRefusal, refusing } from '../refusal.ts';
import { type RunMetadata, runMetadataOf } from '../run-metadata.ts';
import type { OpenRun } from '../run-reader.ts';

type Move = (call: Call) => Promise<Reply>;

export function createMoves(context: RouteContext): Readonly<Record<'get' | 'cancel' | 'retry' | 'resume', Move>> {
  const { bridge, runReader, turns } = context;

  const shown = ({ id, first, standing }: OpenRun): Reply => ({ body: toWireRun(id, first, standing) });

  /** A run that has ended also names its receipt, under a member of our own. */
  async function get(call: Call): Promise<Reply> {
    const run = await runReader.open(call.actor, call.id);
    const { body } = shown(run);
    const { receipt_id } = run.current;
    const tollbridge = receipt_id ? await receiptReference(bridge, call.actor, receipt_id) : undefined;
    return { body: tollbridge ? { ...(body as JsonObject), tollbridge } : body };
  }

  /** One action on a run at a time; a second one finds the state that the first one left. */
  function move(may: (status: RunStatus) => boolean, how: (call: Call, run: OpenRun) => Promise<void>): Move {
    return async (call) =>
      await turns.take(`move ${call.id}`, async () => {
        const run = await runReader.open(call.actor, call.id);
        if (!may(run.standing.status)) throw conflict(run);
        await refusing({ not_found: 'RUN_NOT_FOUND' }, () => how(call, run));
        return shown(await runReader.open(call.actor, call.id));
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
        ...(context.settings.unanswered === 'fail' && { unanswered: 'fail' as const }),
        ...(current.persona_id && { persona_id: current.persona_id }),
        ...(current.assigned_agent_id && { agent: current.assigned_agent_id }),
        metadata: { ...metadata, runs: runs as Json },
      },
    });
  }

  /**
   * Detaches the silent worker and starts it again from the log. A worker that cannot resume that way gets a message instead, if it
   * takes messages; either way the run counts as running until it falls silent again.
   */
  async function resume({ actor, id }: Call, { current }: OpenRun): Promise<void> {
    try {
      await bridge.submit({ kind: 'task.resume', actor, body: { task_id: current.id } });
    } catch (thrown) {
      if (!isFault(thrown, 'not_implemented')) throw thrown;
      await nudge(actor, current);
    }
    const { standing } = await runReader.open(actor, id);
    if (standing.status === 'stalled') await mark(context, actor, current, 'run.resumed');
  }

  async function nudge(actor: Actor, { id, assigned_agent_id: name }: Task): Promise<void> {
    const agents = await bridge.agents(actor).catch(() => []);
    if (!agents.some((agent) => agent.name === name && agent.abilities.steer)) return;
    const text = { type: 'text' as const, text: 'Please go on.', visibility: 'public' };
    const body = { task_id: id, kind: 'interrupt' as const, message: { role: 'user' as const, parts: [text] } };
    await bridge.submit({ kind: 'task.message', actor, body });
  }

  return {
    get,
    cancel: move((status) => !isOver(status), cancel),
    retry: move((status) => status === 'failed', retry),
    resume: move((status) => status === 'stalled', resume),
  };
}

function conflict({ id, standing }: OpenRun): RunsRefusal {
  return new RunsRefusal('RUN_INVALID_STATE_TRANSITION', `${id} is ${standing.status}`);
}

/** The message as submitted, without the ids it got here. */
function inputOf({ input }: Task): JsonObject {
  const { role, parts } = input as JsonObject;
  return Array.isArray(parts) ? { role: role ?? 'user', parts } : (input as JsonObject);
}

/** Records a fact about a run that no canonical event expresses, in its task's own log. */
export async function mark(
  { bridge }: Pick<RouteContext, 'bridge'>,
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
