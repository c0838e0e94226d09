/** Records the end of a call: its result, or the refusal that its agent was given. */
import type { ToolResult } from '../../../model/actions.ts';
import { Fault } from '../../../model/faults.ts';
import type { Task } from '../../../model/resources.ts';
import { isTerminal } from '../../../model/words.ts';
import type { Row, Unit } from '../../../ports/index.ts';
import { newArtifact } from '../../commands/artifacts.ts';
import { artifactEvents } from '../../events/log.ts';
import type { RunRow } from '../../events/rows.ts';
import { inTask, readsOf, requireRunBy, taskLocation } from '../../tasks/lifecycle.ts';
import { afterEnd, type EndedCall, endEvents, toolResult } from '../action-events.ts';
import type { Acts, ActsDeps } from '../acts.ts';
import { createMetering, UNMETERED } from '../charging.ts';

export interface EndRecorder {
  /** `decision`: the decision on the call, where it is still to be written. Both are on record, or neither. */
  readonly record: (task: Task, call: EndedCall, result: ToolResult, decision?: Unit) => Promise<void>;
  readonly recordRefusal: Acts['recordRefusal'];
}

export function createEndRecorder(deps: ActsDeps): EndRecorder {
  const { store, log, clock, ids } = deps;
  const metering = createMetering(deps);

  /** The agent gets the refusal as the result of its call. A task that has ended meanwhile gets none. */
  async function recordRefusal(task: Task, callId: string, name: string, reason: string): Promise<void> {
    await log.commit({
      reads: [{ object: 'task', id: task.id }],
      decide(at) {
        const now = at.get<Task & Row>('task', task.id);
        if (!now || isTerminal(now.status)) return { events: [] };
        return { events: [toolResult(now, { id: callId, tool: name }, 'error', reason)] };
      },
    });
  }

  /** The act has run: a store that is down for a while must not cost its record. */
  async function record(...[task, call, result, decision]: Parameters<EndRecorder['record']>): Promise<void> {
    for (let wait = 50; ; wait *= 2) {
      try {
        await writeEnd(task, call, result, decision);
        return;
      } catch (cause) {
        // A call without effects is not answered when it cannot be recorded: its caller may repeat it.
        if (decision || !(cause instanceof Fault && cause.kind === 'unavailable') || wait > LONGEST_WAIT_MS)
          throw cause;
        await new Promise((resolve) => setTimeout(resolve, wait).unref());
      }
    }
  }

  async function writeEnd(...[task, call, result, decision]: Parameters<EndRecorder['record']>): Promise<void> {
    const location = { now: clock.now(), ...taskLocation(task) };
    const output = await log.fit(result.output ?? null, location);
    const files = result.artifacts
      ? await Promise.all(result.artifacts.map((file) => newArtifact(file, location, store, ids)))
      : [];
    const used = result.usage ? await metering(task, [result.usage]) : UNMETERED;
    const at = inTask(task);
    const tainted = result.taint && deps.taints?.marking(task.session_id, result.taint, at, call.id);
    const artifacts = artifactEvents([...output.artifacts, ...files], at);
    const end = endEvents(task, call, result, output.value, log.clean);
    const received = call.paired ? [toolResult(task, call, result.status, result.error)] : [];
    await log.commit({
      reads: [...(decision?.reads ?? readsOf(task.id)), ...used.reads, ...(tainted?.reads ?? [])],
      decide(now) {
        const current = now.get<Task & Row>('task', task.id);
        if (current && !isTerminal(current.status)) requireRunBy(now.get<RunRow>('run', task.id), call.runBy);
        // Fails when the task has ended: a result without its decision is not recorded, and not answered.
        const decided = decision?.decide(now).events ?? [];
        const all = [...artifacts, ...end, ...(tainted?.events(now) ?? []), ...used.events(now)];
        // The call ended after its task: the receipt is sealed, so this event is beside it, not part of it.
        const late = !current || isTerminal(current.status);
        return { events: late ? all.map(afterEnd) : [...decided, ...all, ...received] };
      },
    });
    tainted?.written();
    const passed = used.passed?.();
    if (passed) deps.limitPassed?.(task, passed);
  }

  return { record, recordRefusal };
}

/** The last wait between attempts; a store that is down longer is not expected back while a caller waits. */
const LONGEST_WAIT_MS = 15_000;
