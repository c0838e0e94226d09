/**
 * One call id, one act: a second request for the same call waits for its result; another call under the same id is refused.
 */
import type { Decision } from '../../../model/actions.ts';
import type { ProposedAction } from '../../../model/commands.ts';
import { Fault } from '../../../model/faults.ts';
import type { Task } from '../../../model/resources.ts';
import { anySignal } from '../../../model/values/signals.ts';
import type { ActResult, Unit } from '../../../ports/index.ts';
import { type Context, earlier } from '../../context.ts';

export function createCallIds(deps: Pick<Context, 'store' | 'log' | 'hash'>) {
  function claim(task: Task, { tool_call_id, changes: _, ...call }: ProposedAction): Pick<Unit, 'idempotency'> {
    const scope = deps.hash(['call', task.id, tool_call_id as string]);
    return { idempotency: { scope, body: deps.hash(call) } };
  }

  return {
    claim,
    /** False when this call id is already used by another call in the log. */
    async isSame(task: Task, proposed: ProposedAction): Promise<boolean> {
      try {
        await earlier(deps, claim(task, proposed));
        return true;
      } catch (cause) {
        if (isReuse(cause)) return false;
        throw cause;
      }
    },
    /** The result of a call that another request makes, or made. */
    async recorded(task: Task, callId: string, signal: AbortSignal): Promise<ActResult> {
      const over = anySignal([signal, AbortSignal.timeout(RETRY_WAIT_MS)]);
      for await (const { event, payload } of deps.store.follow({ stream: { of: 'task', id: task.id } }, over)) {
        if (payload.tool_call_id !== callId) continue;
        if (event === 'tool.completed' || event === 'tool.failed') {
          const { status = 'error', output = null, error, code } = payload;
          return { kind: 'done', result: { status, output, ...(error && { error }), ...(code && { code }) } };
        }
        if (event === 'tool.denied') {
          const { reason = 'denied', by, code, rule_id } = payload;
          const decision = { verdict: 'block', reason, engine: by, ...(code && { code }), ...(rule_id && { rule_id }) };
          return { kind: 'refused', reason, decision: decision as Decision };
        }
      }
      throw new Fault('deadline_exceeded', `call ${callId} has no result yet`);
    },
  };
}

/** How long a repeated request waits for the first one's call. */
const RETRY_WAIT_MS = 60_000;

/** The store reports a reused idempotency key; the caller gets the error that the call id is taken. */
export function isReuse(cause: unknown): boolean {
  return cause instanceof Fault && cause.kind === 'idempotency_key_reused';
}

export function reused(callId: string): Fault {
  return new Fault('conflict', `call id ${callId} was already used for a different call`);
}
