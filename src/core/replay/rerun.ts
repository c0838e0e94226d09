/**
 * Runs an agent again from the record. It is given its original task, and its requests are answered as recorded, or by an override;
 * its reaction to another answer is its own. A value that was never recorded is not invented: the replay fails and names it.
 * Nothing runs, no one is asked, and no agent, tool or model is contacted.
 */

import type { End } from '../../model/commands.ts';
import type { EventDraft } from '../../model/events.ts';
import { Fault } from '../../model/faults.ts';
import type { Memory, Message, Session, Task, Workspace } from '../../model/resources.ts';
import type { JsonObject } from '../../model/schema.ts';
import { asText } from '../../model/values/as-text.ts';
import type { AgentBackend, RecordedInputs, Row, Sink, Work } from '../../ports/index.ts';
import { whileOpen } from '../events/facts.ts';
import { inTask, ours } from '../tasks/lifecycle.ts';
import { workContext } from '../tasks/work-context.ts';
import { createRecordedAnswers } from './answers.ts';
import type { MarkedLog } from './marks.ts';
import type { MissingDependency, Plan } from './plan.ts';
import { type PortsDeps, replayPorts } from './ports.ts';
import { readRecord } from './record.ts';
import { createRerunSink } from './sink.ts';

export type RerunDeps = PortsDeps;

export type Rerun =
  | { readonly kind: 'ended'; readonly end: End; readonly used: ReadonlySet<string> }
  | { readonly kind: 'missing'; readonly missing: MissingDependency; readonly used: ReadonlySet<string> };

/** Every answer to the agent comes from the log, so none takes longer than this. */
const TIMEOUT_MS = 10_000;

export async function runAgain(
  deps: RerunDeps,
  task: Task,
  source: Task,
  plan: Plan,
  marked: MarkedLog,
  backend: AgentBackend,
): Promise<Rerun> {
  const stop = new AbortController();
  const record = readRecord(plan.replayed);
  const answers = createRecordedAnswers(deps, plan, marked, stop);
  const ports = replayPorts(deps, task, marked, record, {
    signal: stop.signal,
    async decision(callId) {
      const about = callId ? undefined : answers.unnamed.shift();
      if (about) return about;
      if (!record.hasDecision(callId)) throw answers.missing({ kind: 'host', id: `decision:${callId}` });
      record.rule(callId);
      return await record.decision(callId);
    },
    beforeAnswer: (askId, recorded) => answers.settle(ports.asks, askId, recorded),
  });
  if (plan.checkpoint) {
    const { id, event } = plan.checkpoint;
    const payload = { restored: plan.restored.length, through: id, original: { id, event } };
    const replayed: EventDraft = { ...inTask(task), event: 'replay.event_replayed', payload };
    await marked.commit(whileOpen(task, [replayed], true));
  }
  let run: Awaited<ReturnType<AgentBackend['start']>> | undefined;
  const queued: JsonObject[] = [];
  const receive = (message: JsonObject) => {
    if (run) run.steer?.(message);
    else queued.push(message);
  };
  const timeout = createTimeout();
  const sink = createRerunSink(deps, { task, plan, marked, ports, answers, receive, stop, alive: timeout.reset });
  try {
    const work = await workOf(deps, source, plan, answers.recorded, answers.taskThen(source));
    await sink.deliver();
    const started = backend.start(work, sink as Sink, stop.signal);
    run = await Promise.race([started, timeout.over]);
    for (const message of queued.splice(0)) run.steer?.(message);
    const end = await Promise.race([run.done, timeout.over]);
    await sink.settled();
    if (answers.failed())
      return { kind: 'missing', missing: answers.failed() as MissingDependency, used: answers.used() };
    return { kind: 'ended', end: answers.endAs(end), used: answers.used() };
  } catch (cause) {
    if (answers.failed())
      return { kind: 'missing', missing: answers.failed() as MissingDependency, used: answers.used() };
    if (cause === LATE || isConflict(cause)) throw cause;
    // As in a live run: an agent that throws has failed.
    const { message, kind } = cause as Partial<Fault>;
    const failure = { code: kind ?? 'agent_failed', message: message || 'the agent failed' };
    return { kind: 'ended', end: answers.endAs({ state: 'FAILED', failure }), used: answers.used() };
  } finally {
    timeout.close();
    stop.abort();
    await run?.stop?.().catch(() => {});
  }
}

const LATE = new Fault('deadline_exceeded', 'the agent that was run again fell silent');

/** The replay itself was canceled: further output is dropped. */
function isConflict(cause: unknown): boolean {
  return cause instanceof Fault && cause.kind === 'conflict';
}

function createTimeout() {
  let timer: NodeJS.Timeout | undefined;
  let give = (_: Fault) => {};
  const over = new Promise<never>((_, reject) => {
    give = reject;
  });
  over.catch(() => {});
  const reset = () => {
    clearTimeout(timer);
    timer = setTimeout(() => give(LATE), TIMEOUT_MS);
  };
  reset();
  return { over, reset, close: () => clearTimeout(timer) };
}

/** The agent's work: the task as it was then, under its original id, and the conversation up to its start. */
async function workOf(
  { store }: PortsDeps,
  source: Task,
  plan: Plan,
  recorded: RecordedInputs,
  then: Task,
): Promise<Work> {
  const session = await store.get<Session & Row>('session', source.session_id);
  if (!session) throw new Fault('not_found', `no session ${source.session_id}`);
  const workspace = await store.get<Workspace & Row>('workspace', source.workspace_id);
  const belongs = { session, workspace, resumed: false, memories: await memoriesThen(store, plan) };
  const work = workContext({ store, isDead: async () => false }, source, belongs);
  const began = [...plan.restored, ...plan.replayed].find(({ event }) => event === 'task.started')?.created_at;
  return {
    ...work,
    task: { ...then, id: ours(source).replay?.root ?? source.id },
    transcript: () => upTo(work.transcript(), began ?? source.created_at),
    awaiting: async () => false,
    recorded,
  };
}

/** The memories that the record says it was given. The plan has checked that each is unchanged. */
async function memoriesThen(
  store: PortsDeps['store'],
  { restored, replayed: lived }: Plan,
): Promise<readonly Memory[]> {
  const memories: Memory[] = [];
  for (const { event, payload } of [...restored, ...lived]) {
    if (event !== 'agent.memory_read') continue;
    const memory = await store.get<Memory & Row>('memory', asText(payload.memory_id));
    if (memory) memories.push(memory);
  }
  return memories;
}

async function* upTo(messages: AsyncIterable<Message>, time: string): AsyncIterable<Message> {
  for await (const message of messages) if (message.created_at <= time) yield message;
}
