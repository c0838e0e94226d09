/**
 * The agent behind a relay, as a backend: its only work is the turns that its own editor began. A turn registers with the
 * promise of its task id before the task is submitted, because core may start the work before the submission resolves.
 */
import { type AgentBackend, type End, Fault, type JsonObject, type Sink, type Work } from '../../../../src/index.ts';

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
  /** A message for the work in progress, from another client. */
  steer?(message: JsonObject): void;
}

export interface WrappedAgent {
  readonly backend: AgentBackend;
  /** Does this work for the task, whose id is known once the task is accepted. */
  expect(task: Promise<string>, work: TurnWork): void;
  forget(taskId: string): void;
  /** How work is done that another client gave to the agent; undefined when its session is not open here. */
  foreign(begin: (work: Work) => TurnWork | undefined): void;
}

export function createWrappedAgent(name: string): WrappedAgent {
  const expected = new Map<string, TurnWork>();
  const submitting = new Set<Promise<void>>();

  let others: (work: Work) => TurnWork | undefined = () => undefined;

  /** A task that no turn of this process submitted was given to the agent by another client. */
  async function workOf(work: Work): Promise<TurnWork> {
    const { id } = work.task;
    while (!expected.has(id) && submitting.size > 0) await Promise.race(submitting);
    const found = expected.get(id) ?? others(work);
    if (!found) throw new Fault('upstream_unavailable', 'the session is not open in the editor of this agent');
    return found;
  }

  return {
    backend: {
      name,
      abilities: { resume: false, evidence: 'asked' },
      async start(taskWork, sink, signal) {
        const { task, awaiting = async () => false } = taskWork;
        const work = await workOf(taskWork);
        return {
          done: work.begin({ taskId: task.id, sink, signal, awaiting }),
          stop: async () => work.stop(),
          steer: (message) => work.steer?.(message),
        };
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
    foreign(begin) {
      others = begin;
    },
  };
}
