/**
 * The agent behind a relay, as a backend: its only work is the turns that its own editor began. A turn registers with the
 * promise of its task id before the task is submitted, because core may start the work before the submission resolves.
 */
import { type AgentBackend, type End, Fault, type Sink } from '../../../../src/index.ts';

export interface StartedWork {
  readonly taskId: string;
  readonly sink: Sink;
  readonly signal: AbortSignal;
  /** Whether the peers it waits for still exist. */
  readonly awaiting: () => Promise<boolean>;
}

export interface TurnWork {
  begin(work: StartedWork): Promise<End>;
  stop(): void;
}

export interface WrappedAgent {
  readonly backend: AgentBackend;
  /** Does this work for the task, whose id is known once the task is accepted. */
  expect(task: Promise<string>, work: TurnWork): void;
  forget(taskId: string): void;
}

export function createWrappedAgent(name: string): WrappedAgent {
  const expected = new Map<string, TurnWork>();
  const submitting = new Set<Promise<void>>();

  /** A task that no turn of this process submitted was given to the agent by another client. */
  async function workOf(taskId: string): Promise<TurnWork> {
    while (!expected.has(taskId) && submitting.size > 0) await Promise.race(submitting);
    const work = expected.get(taskId);
    if (!work) throw new Fault('upstream_unavailable', 'only the editor of this agent can give it work');
    return work;
  }

  return {
    backend: {
      name,
      abilities: { resume: false, evidence: 'asked' },
      async start({ task, awaiting = async () => false }, sink, signal) {
        const work = await workOf(task.id);
        return { done: work.begin({ taskId: task.id, sink, signal, awaiting }), stop: async () => work.stop() };
      },
    },
    expect(task, work) {
      const known: Promise<void> = task
        .then(
          (id) => void expected.set(id, work),
          () => {},
        )
        .finally(() => submitting.delete(known));
      submitting.add(known);
    },
    forget: (taskId) => void expected.delete(taskId),
  };
}
