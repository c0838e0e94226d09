/**
 * A walk through the record, in order. What the agent said and did is said and done again through the real sink, acts
 * and asks; what others decided, returned and answered comes from the record at its place. Nothing is ever tried for
 * real, nobody is asked, and what the record leaves open stays open.
 */

import type { Decision, ToolResult } from '../model/actions.ts';
import { asText } from '../model/as-text.ts';
import type { ProposedAction } from '../model/commands.ts';
import type { CoreEvent, EventDraft } from '../model/events.ts';
import type { AskClosedPayload, AskOpenedPayload, ToolEndedPayload, ToolRequestedPayload } from '../model/payloads.ts';
import type { Task } from '../model/resources.ts';
import type { Json } from '../model/schema.ts';
import type { AutonomyTier } from '../model/words.ts';
import type { Signer } from '../ports.ts';
import { type ActsDeps, createActs } from './acts.ts';
import { type Asks, createAsks } from './asks.ts';
import type { Context } from './context.ts';
import { agentActor } from './desk.ts';
import { inTask, ours } from './lifecycle.ts';
import { NO_PAST } from './past.ts';
import type { MarkedLog } from './replay-marks.ts';
import type { Plan } from './replay-plan.ts';
import { decisionOn, type Recorded, readRecord } from './replay-record.ts';
import { isReportable } from './reportable.ts';
import { createSink, openRun, readsOf, whileOpen } from './sink.ts';

export interface WalkDeps extends Context {
  readonly signer: Pick<Signer, 'mac'>;
  readonly canonical: (value: Json) => string;
  readonly logger: ActsDeps['logger'];
}

/** Throws when the record cannot be lived through; then something in it contradicts the rest. */
export async function liveThrough(deps: WalkDeps, task: Task, plan: Plan, marked: MarkedLog): Promise<void> {
  const record = readRecord(plan.lived);
  const stop = new AbortController();
  const real = createAsks({ ...deps, log: marked, expiresMs: YEARS });
  const asks = forNobody(real, task, record, stop.signal);
  const acts = createActs({
    ...deps,
    log: marked,
    asks,
    gate: ({ tool_call_id = '' }) => record.ruling(tool_call_id),
    tools: {
      list: async () => [],
      find: async () => undefined,
      pass: async () => ({}),
      taints: () => false,
      requirePassing() {},
    },
    quotas: { refuse: () => undefined, charge: ({ usage, reset_at }) => ({ usage, reset_at: reset_at ?? null }) },
    deferTries: Number.MAX_SAFE_INTEGER,
    deferCapMs: 0,
    policyData: async () => ({ tier: (ours(task).tier as AutonomyTier) ?? 'act_auto', quotas: [] }),
  });
  const again = { ...deps, log: marked, acts, asks, repeats: true };
  const sink = createSink(again, task, agentActor(task), NO_PAST, stop.signal);
  /** Calls under way, by call id; questions for input, by their recorded id. */
  const pending = new Map<string, Promise<unknown>>();
  /** Recorded question → the one of this run. */
  const questions = new Map<string, string>();
  const done = new Set<CoreEvent>();

  const write = (...events: EventDraft[]) => marked.commit(whileOpen(task, () => events, true));
  const repeat = (event: CoreEvent, payload = event.payload): EventDraft => ({
    ...inTask(task),
    event: event.event,
    payload,
  });
  const note = ({ id, event }: CoreEvent) =>
    write({ ...inTask(task), event: 'replay.event_replayed', payload: { original: { id, event } } });

  /** Starts something that will wait for the record, and returns once it has written down how it began. */
  async function begin(key: string, event: CoreEvent, start: () => Promise<unknown>): Promise<void> {
    const over = start();
    pending.set(key, over);
    over.catch(() => {}); // looked at where it is awaited
    await inTime(Promise.race([marked.repeated(event), over]), event);
  }

  async function toolRequested(event: CoreEvent): Promise<void> {
    const request = event.payload as unknown as ToolRequestedPayload;
    const callId = request.tool_call_id;
    // An agent that only told us what it does asked for no ruling.
    if (request.evidence === 'observed' || !record.hasRuling(callId)) {
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

  async function toolEnded(event: CoreEvent): Promise<void> {
    const ended = event.payload as unknown as ToolEndedPayload;
    const callId = ended.tool_call_id;
    const call = pending.get(callId);
    // Only what ran here came back; a call that was stopped, or that its agent ran, is just said to have ended.
    if (!call || ended.output === undefined || evidence.get(callId) !== 'held' || !record.ran(callId)) {
      await sink.emit({ event: event.event, payload: event.payload });
      return;
    }
    record.finish(callId, resultOf(ended));
    await inTime(call, event);
  }
  const evidence = new Map(
    plan.lived.flatMap(({ event, payload }) =>
      event === 'tool.requested' ? [[asText(payload.tool_call_id), payload.evidence] as const] : [],
    ),
  );

  async function decided(event: CoreEvent): Promise<void> {
    const about = decisionOn(event);
    if (marked.isRepeated(event)) return; // with the request it is about
    if (!about) await write(repeat(event));
    else if (!pending.has(about.call)) await note(event);
    else {
      record.rule(about.call);
      await inTime(marked.repeated(event), event);
    }
  }

  async function askOpened(event: CoreEvent): Promise<void> {
    const { ask } = event.payload as unknown as AskOpenedPayload;
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
    }
    questions.set(ask.id, marked.lastAsk());
  }

  async function askClosed(event: CoreEvent): Promise<void> {
    const closed = event.payload as unknown as AskClosedPayload;
    const ask = questions.get(closed.ask_id);
    if (!ask) await note(event);
    // A question withdrawn with its task is closed and nothing follows from it; one its asker took back was denied.
    else if (closed.state === 'canceled' && closed.by === 'bridge')
      await write(repeat(event, { ...event.payload, ask_id: ask }));
    else await asks.settle(ask, closed.state, closed.by, closed.reason, closed.answer);
  }

  async function askUsed(event: CoreEvent, [ruling, denial]: readonly CoreEvent[]): Promise<void> {
    const recorded = asText(event.payload.ask_id);
    const ask = questions.get(recorded);
    if (!ask) {
      await note(event);
      return;
    }
    const used = repeat(event, { ...event.payload, ask_id: ask });
    const about = decisionOn(ruling);
    if (ruling && about && denial?.event === 'tool.denied' && denial.payload.tool_call_id === about.call) {
      // Approved, and then not run after all: what people saw had changed, or a quota had run out meanwhile.
      await write(used, repeat(ruling), repeat(denial));
      done.add(ruling).add(denial);
      pending.delete(about.call);
    } else if (pending.has(callOf.get(recorded) ?? recorded)) {
      record.take(ask);
      await inTime(marked.repeated(event), event);
    } else await write(used);
  }
  const callOf = new Map(
    plan.lived.flatMap(({ event, payload }) => {
      if (event !== 'vendor.tollbridge.ask_opened') return [];
      const { ask } = payload as unknown as AskOpenedPayload;
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
        return await askUsed(event, plan.lived.slice(at + 1, at + 3));
      case 'tool.approved':
      case 'tool.denied':
        // Follows from the ruling or the answer, unless it is about no call and came from a ruling alone.
        if (!event.payload.tool_call_id && !event.payload.ask_id) await write(repeat(event));
        return;
      case 'user.message': // was said to the agent, which hears nothing now
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
    for (const [at, event] of plan.lived.entries()) {
      if (done.has(event)) continue;
      if (!FOLLOWS.test(event.event)) marked.now(event);
      await live(event, at);
    }
  } finally {
    stop.abort();
  }
}

/** Events the core brings about by itself when the rest is lived through again. */
const FOLLOWS =
  /^(task\.|receipt\.|tool\.approval_required$|user\.(tool_confirmation|input_submitted)$|vendor\.tollbridge\.(recovered|quota_used)$|session\.message_appended$)/;
const YEARS = 10 * 365 * 24 * 3600 * 1000;
const PATIENCE_MS = 10_000;

/** A question lived through again is asked and answered as recorded; nobody else may, and it does not run out meanwhile. */
function forNobody(asks: Asks, task: Task, record: Recorded, signal: AbortSignal): Asks {
  const stopped = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
  return {
    ...asks,
    raise(at, now, run, wanted) {
      const { question, action, schema, reason, rule_id } = record.asked(wanted.tool_call_id ?? wanted.key) ?? {};
      const decision: Decision = {
        verdict: 'escalate',
        engine: 'replay',
        reason: reason ?? '',
        ...(rule_id && { rule_id }),
        ask: { to: [`replay:${task.id}`] },
      };
      return asks.raise(at, now, run, {
        ...wanted,
        question: question ?? wanted.question,
        action: action ?? wanted.action,
        ...(schema && { schema }),
        decision,
        expires_ms: YEARS,
      });
    },
    async wait(askId, taskId, over) {
      await Promise.race([record.taken(askId), stopped]);
      return await asks.wait(askId, taskId, over);
    },
  };
}

/** Whatever a record says, a replay of it comes to an end. */
async function inTime(work: Promise<unknown>, { id, event }: CoreEvent): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`nothing came of ${event} (${id})`)), PATIENCE_MS);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

function proposed(request: ToolRequestedPayload): ProposedAction {
  const { tool_call_id, name, kind, input, server, target, effect, evidence, definition } = request;
  return {
    kind: kind as ProposedAction['kind'],
    tool_call_id,
    tool: name,
    arguments: input,
    effect: effect as NonNullable<ProposedAction['effect']>,
    evidence: evidence as NonNullable<ProposedAction['evidence']>,
    ...(server && { server }),
    ...(target && { target }),
    ...(definition && { definition }),
  };
}

function resultOf({ status, output = null, error, code }: ToolEndedPayload): ToolResult {
  return { status, output, ...(error && { error }), ...(code && { code }) };
}
