/**
 * Walks through the record, in order. The agent's output and acts go again through the real sink, acts and asks; decisions, results
 * and answers come from the record at their position. Nothing is run, no one is asked, and what the record leaves open stays open.
 */

import type { CoreEvent, EventDraft } from '../../model/events.ts';
import type { Task } from '../../model/resources.ts';
import { asText } from '../../model/values/as-text.ts';
import { isReportable, whileOpen } from '../events/facts.ts';
import { inTask, openRun, readsOf } from '../tasks/lifecycle.ts';
import type { MarkedLog } from './marks.ts';
import type { Plan } from './plan.ts';
import { type PortsDeps, proposed, replayPorts, resultOf } from './ports.ts';
import { decisionOn, readRecord } from './record.ts';

/**
 * False when it stopped where the recorded output no longer follows. Throws when the record contradicts itself and cannot be
 * replayed.
 */
export async function walkRecord(deps: PortsDeps, task: Task, plan: Plan, marked: MarkedLog): Promise<boolean> {
  const record = readRecord(plan.replayed);
  const stop = new AbortController();
  const stopped = new Promise<void>((resolve) =>
    stop.signal.addEventListener('abort', () => resolve(), { once: true }),
  );
  const { asks, sink, opened } = replayPorts(deps, task, marked, record, {
    signal: stop.signal,
    decision: (callId) => record.decision(callId),
    beforeAnswer: (askId) => Promise.race([record.taken(askId), stopped]),
  });
  /** Calls in progress, by call id; questions for input, by their recorded id. */
  const pending = new Map<string, Promise<unknown>>();
  /** Recorded question → its counterpart in this run. */
  const questions = new Map<string, string>();
  const done = new Set<CoreEvent>();

  const write = (...events: EventDraft[]) => marked.commit(whileOpen(task, events, true));
  // `ask`: the question's counterpart in this run.
  const repeat = ({ event, payload }: CoreEvent, ask?: string): EventDraft =>
    ({ ...inTask(task), event, payload: ask ? { ...payload, ask_id: ask } : payload }) as EventDraft; // of the same kind
  const note = ({ id, event }: CoreEvent) =>
    write({ ...inTask(task), event: 'replay.event_replayed', payload: { original: { id, event } } });

  /** Starts a request that will wait for the record, and returns once its beginning is written. */
  async function begin(key: string, event: CoreEvent, start: () => Promise<unknown>): Promise<void> {
    const over = start();
    pending.set(key, over);
    over.catch(() => {}); // handled where it is awaited
    await inTime(Promise.race([marked.repeated(event), over]), event);
  }

  async function toolRequested(event: CoreEvent<'tool.requested'>): Promise<void> {
    const request = event.payload;
    const callId = asText(request.tool_call_id);
    // An agent that only reported its act asked for no decision.
    if (request.evidence === 'observed' || !record.hasDecision(callId)) {
      await sink.emit({ event: event.event, payload: event.payload });
      return;
    }
    record.rule(callId);
    await begin(callId, event, () =>
      request.evidence === 'held'
        ? sink.act(proposed(request), () => record.result(callId))
        : sink.ask({ kind: 'approval', action: proposed(request), takesArguments: true }),
    );
  }

  async function toolEnded(event: CoreEvent<'tool.completed' | 'tool.failed'>): Promise<void> {
    const ended = event.payload;
    const callId = asText(ended.tool_call_id);
    const call = pending.get(callId);
    // Only a call that ran here has a result to return; the end of a stopped call, or of one its agent ran, is only reported.
    if (!call || ended.output === undefined || evidence.get(callId) !== 'held' || !record.ran(callId)) {
      await sink.emit({ event: event.event, payload: event.payload });
      return;
    }
    record.finish(callId, resultOf(ended));
    await inTime(call, event);
  }
  const evidence = new Map(
    plan.replayed.flatMap((event) =>
      event.event === 'tool.requested' ? [[asText(event.payload.tool_call_id), event.payload.evidence] as const] : [],
    ),
  );

  async function decided(event: CoreEvent): Promise<void> {
    const about = decisionOn(event);
    if (marked.isRepeated(event)) return; // written with its request
    if (!about) await write(repeat(event));
    else if (!pending.has(about.call)) await note(event);
    else {
      record.rule(about.call);
      await inTime(marked.repeated(event), event);
    }
  }

  async function askOpened(event: CoreEvent<'vendor.tollbridge.ask_opened'>): Promise<void> {
    const { ask } = event.payload;
    const key = asText(ask.metadata.key ?? '');
    if (ask.kind === 'input') {
      await begin(ask.id, event, () => sink.ask({ kind: 'input', key, question: ask.question }));
    } else if (!ask.tool_call_id) {
      await marked.commit({
        reads: readsOf(task.id),
        decide(at) {
          const { now, run } = openRun(at, task.id);
          const { digest, question, action } = ask;
          const name = asText(action.tool ?? action.kind ?? 'action');
          return { events: asks.raise(at, now, run, { kind: 'approval', key, digest, question, action, name }).events };
        },
      });
      opened(marked.lastAsk());
    }
    questions.set(ask.id, marked.lastAsk());
  }

  async function askClosed(event: CoreEvent<'vendor.tollbridge.ask_closed'>): Promise<void> {
    const closed = event.payload;
    const ask = questions.get(closed.ask_id);
    if (!ask) await note(event);
    // A question withdrawn with its task is closed without consequences; one its asker withdrew was denied.
    else if (closed.state === 'canceled' && closed.by === 'bridge') await write(repeat(event, ask));
    else await asks.settle(ask, closed.state, closed.by, closed.reason, closed.answer);
  }

  async function askUsed(
    event: CoreEvent<'vendor.tollbridge.ask_used'>,
    [decided, denial]: readonly CoreEvent[],
  ): Promise<void> {
    const recorded = event.payload.ask_id;
    const ask = questions.get(recorded);
    if (!ask) {
      await note(event);
      return;
    }
    const used = repeat(event, ask);
    const about = decisionOn(decided);
    if (decided && about && denial?.event === 'tool.denied' && denial.payload.tool_call_id === about.call) {
      // Approved, and then not run after all: the tool had changed since people saw it, or a quota had run out.
      await write(used, repeat(decided), repeat(denial));
      done.add(decided).add(denial);
      pending.delete(about.call);
    } else if (pending.has(callOf.get(recorded) ?? recorded)) {
      record.take(ask);
      await inTime(marked.repeated(event), event);
    } else await write(used);
  }
  const callOf = new Map(
    plan.replayed.flatMap((event) => {
      if (event.event !== 'vendor.tollbridge.ask_opened') return [];
      const { ask } = event.payload;
      return [[ask.id, ask.tool_call_id] as const];
    }),
  );

  async function live(event: CoreEvent, at: number): Promise<void> {
    switch (event.event) {
      case 'tool.requested':
        return await toolRequested(event);
      case 'tool.completed':
      case 'tool.failed':
        return await toolEnded(event);
      case 'vendor.tollbridge.decided':
        return await decided(event);
      case 'vendor.tollbridge.ask_opened':
        return await askOpened(event);
      case 'vendor.tollbridge.ask_closed':
        return await askClosed(event);
      case 'vendor.tollbridge.ask_used':
        return await askUsed(event, plan.replayed.slice(at + 1, at + 3));
      case 'tool.approved':
      case 'tool.denied':
        // Follows from the decision or the answer, unless it is about no call and came from a decision alone.
        if (!event.payload.tool_call_id && !event.payload.ask_id) await write(repeat(event));
        return;
      case 'user.message': // was sent to the agent, which receives nothing now
        await note(event);
        return;
      default:
        if (isReportable(event.event)) await sink.emit({ event: event.event, payload: event.payload });
        else if (!FOLLOWS.test(event.event)) await note(event);
    }
  }

  try {
    if (plan.restored.length > 0) {
      const { id, event } = plan.restored.at(-1) as CoreEvent;
      const restored = { restored: plan.restored.length, through: id, original: { id, event } };
      await write({ ...inTask(task), event: 'replay.event_replayed', payload: restored });
    }
    for (const [at, event] of plan.replayed.entries()) {
      if (plan.dependent && event.sequence >= plan.dependent.event.sequence) return false;
      if (done.has(event)) continue;
      if (!FOLLOWS.test(event.event)) marked.now(event);
      await live(event, at);
    }
    return plan.dependent === undefined;
  } finally {
    stop.abort();
  }
}

/** Events that core creates by itself when the others are replayed. */
const FOLLOWS =
  /^(task\.|receipt\.|tool\.approval_required$|user\.(tool_confirmation|input_submitted)$|vendor\.tollbridge\.(recovered|quota_used)$|session\.message_appended$)/;
const TIMEOUT_MS = 10_000;

/** A replay ends, whatever its record contains. */
async function inTime(work: Promise<unknown>, { id, event }: CoreEvent): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`nothing came of ${event} (${id})`)), TIMEOUT_MS);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
