/**
 * Replay: this same core, with ports that answer from the record. The recorded agent says what it said, the recorded
 * gate decides what it decided, the recorded tools return what they returned and do nothing. An override replaces one
 * answer and leaves a delta in the receipt.
 */
import type { Decision, ToolResult } from '../model/actions.ts';
import type { CommandKind, ProposedAction } from '../model/commands.ts';
import type { CoreEvent, EventDraft } from '../model/events.ts';
import { Fault } from '../model/faults.ts';
import type { AskClosedPayload, AskOpenedPayload, ToolEndedPayload, ToolRequestedPayload } from '../model/payloads.ts';
import type { ReplayMark, Task } from '../model/resources.ts';
import type { Json, JsonObject } from '../model/schema.ts';
import { type AutonomyTier, isTerminal } from '../model/words.ts';
import type { Row, Signer } from '../ports.ts';
import { type ActsDeps, createActs } from './acts.ts';
import { createAsks } from './asks.ts';
import { accepted, type Context, type Handlers, once } from './context.ts';
import type { Endings } from './endings.ts';
import { inTask, move } from './lifecycle.ts';
import type { Log } from './log.ts';
import { NO_PAST } from './past.ts';
import { type Plan, planReplay, type ReplayRequest } from './replay-plan.ts';
import { agentActor } from './runner.ts';
import { createSink, whileOpen } from './sink.ts';

export interface ReplayDeps extends Context {
  readonly endings: Endings;
  readonly signer: Pick<Signer, 'mac'>;
  readonly canonical: (value: Json) => string;
  readonly logger: ActsDeps['logger'];
  readonly instance: string;
}

export interface Replayer {
  readonly handlers: Pick<Handlers, Extract<CommandKind, 'task.replay'>>;
  idle(): Promise<void>;
}

export function createReplayer(deps: ReplayDeps): Replayer {
  const { log, access, ids, endings } = deps;
  const running = new Set<Promise<void>>();

  return {
    async idle() {
      while (running.size > 0) await Promise.all(running);
    },
    handlers: {
      'task.replay': async (command) => {
        const { actor, body } = command;
        const source = await access.see<Task & Row>(actor, 'task', body.task_id);
        if (!isTerminal(source.status))
          throw new Fault('conflict', `task ${source.id} has not ended; it is ${source.status}`);
        const request: ReplayRequest = {
          mode: body.mode ?? 'exact',
          override: body.override ?? {},
          checkpoint_id: body.checkpoint_id,
          checkpoint_event_id: body.checkpoint_event_id,
          reason: body.reason,
          allowRefresh: ((body.metadata?.allow_refresh ?? []) as readonly string[]).map(String),
        };
        const plan = await planReplay(deps, source, request);
        const id = ids.next('task');
        const { result, repeated } = await log.commit({
          ...once(deps, command, source.workspace_id, `${source.id}/replay`),
          decide(at) {
            const task: Task = {
              ...source,
              id,
              created_at: at.now,
              updated_at: at.now,
              metadata: {
                ...source.metadata,
                ...body.metadata,
                replay_mode: request.mode,
                tollbridge: source.metadata.tollbridge ?? {},
              },
              status: 'SUBMITTED',
              created_by: actor.id,
              parent_task_id: source.id,
              receipt_id: null,
              outcome_id: null,
              started_at: null,
              completed_at: null,
              canceled_at: null,
              failure: null,
            };
            const submitted: EventDraft = {
              ...inTask(task),
              event: 'task.submitted',
              actor: actor.id,
              payload: {
                task: task as unknown as Json,
                from: null,
                to: 'SUBMITTED',
                agent: 'replay',
                instance: deps.instance,
              },
            };
            const started = move(task, 'WORKING', { now: at.now, more: { instance: deps.instance } });
            const begun: EventDraft = {
              ...inTask(task),
              event: 'replay.started',
              actor: actor.id,
              payload: {
                source_task_id: source.id,
                mode: request.mode,
                overrides: Object.keys(request.override),
                reason: request.reason ?? null,
              },
            };
            return {
              events: [...sessionReplayed(task, request, body.metadata), submitted, ...started.events, begun],
              result: { id },
            };
          },
        });
        const made = (result as { id: string }).id;
        const task = await access.see<Task & Row>(actor, 'task', made);
        if (!repeated) {
          const work = perform(task, source, plan).catch((cause) => {
            deps.logger.error({ err: cause, task: task.id }, 'a replay could not be brought to its end');
          });
          running.add(work);
          work.finally(() => running.delete(work));
        }
        return accepted('task.replay', task, repeated);
      },
    },
  };

  async function perform(task: Task, source: Task, plan: Plan): Promise<void> {
    const marked = markingLog(log, task, source, plan);
    const claim = {
      source_task_id: source.id,
      mode: plan.request.mode,
      source_hash: plan.source_hash,
      deltas: plan.applied.map(({ delta }) => delta),
      materials: plan.applied.flatMap(({ material }) => (material ? [material] : [])),
      times: timesOf(source, plan),
    };
    await endings.open(task.id);
    if (plan.missing) {
      await fail(task, plan, claim);
      return;
    }
    try {
      await liveThrough(task, plan, marked);
    } catch (cause) {
      deps.logger.error({ err: cause, task: task.id }, 'a replay diverged from its record');
      const message = cause instanceof Error ? cause.message : String(cause);
      await endReplay(task, claim, { code: 'replay_diverged', message, details: {} });
      return;
    }
    await log.commit(
      whileOpen(task, () => [
        outcome(task, 'replay.completed', { source_task_id: source.id, events: plan.events.length }),
      ]),
    );
    const end = endOf(plan.events);
    await endings.finish(task.id, end, { by: agentActor(source).id, replay: claim });
  }

  async function fail(task: Task, plan: Plan, claim: Claim): Promise<void> {
    const { kind, id, event_id, index } = plan.missing as NonNullable<Plan['missing']>;
    await endReplay(
      task,
      { ...claim, unavailable: `${kind} ${id} is no longer available` },
      {
        code: 'replay_dependency_unavailable',
        message: `the record depends on ${kind} ${id}, which is no longer available`,
        details: { dependency: { kind, id }, at: { event_id, index }, mode: plan.request.mode },
      },
    );
  }

  async function endReplay(
    task: Task,
    claim: Claim,
    failure: { code: string; message: string; details: JsonObject },
  ): Promise<void> {
    const unavailable = claim.unavailable ?? failure.message;
    await log.commit(whileOpen(task, () => [outcome(task, 'replay.failed', failure as unknown as JsonObject)]));
    await endings.finish(task.id, { state: 'FAILED', failure }, { by: 'bridge', replay: { ...claim, unavailable } });
  }

  /** Walks the record in order. What the agent did is done again through the real sink; what others did is answered. */
  async function liveThrough(task: Task, plan: Plan, marked: MarkedLog): Promise<void> {
    const recorded = recordedPorts(plan);
    const asks = createAsks({ ...deps, log: marked, expiresMs: YEARS });
    const acts = createActs({
      ...deps,
      log: marked,
      asks,
      gate: async ({ tool_call_id }) => forNobodyElse(recorded.decision(tool_call_id), task),
      tools: { backends: [], list: async () => [], find: async () => undefined },
      quotas: {
        refuse: () => undefined,
        charge: (quota) => ({ usage: quota.usage, reset_at: quota.reset_at ?? null }),
      },
      defaultTier: 'act_auto',
      deferTries: Number.MAX_SAFE_INTEGER,
      deferCapMs: 0,
      policyData: async () => ({ tier: (task.metadata.tier as AutonomyTier) ?? 'act_auto', quotas: [] }),
    });
    const stop = new AbortController();
    const ports = { ...deps, log: marked, acts, asks, repeats: true };
    const sink = createSink(ports, task, agentActor(task), NO_PAST, stop.signal);
    const pending = new Map<string, { finish(result: ToolResult): void; over: Promise<unknown> }>();
    const opened = new Map<string, { ask: string; key: string }>(); // recorded ask id → the one of this run

    const note = (event: CoreEvent) =>
      marked.commit(
        whileOpen(task, () => [
          outcome(task, 'replay.event_replayed', { original: { id: event.id, event: event.event } }, event),
        ]),
      );

    if (plan.from > 0) {
      const restored = { restored: plan.from, through: plan.events[plan.from - 1]?.id ?? null };
      await log.commit(whileOpen(task, () => [outcome(task, 'replay.event_replayed', restored)]));
    }

    /** Starts something that will block on the record, and returns once its first words are in the log. */
    async function begin(key: string, start: () => Promise<unknown>): Promise<void> {
      let finish: (result: ToolResult) => void = () => {};
      const result = new Promise<ToolResult>((resolve) => {
        finish = resolve;
      });
      recorded.results.set(key, result);
      const seen = marked.next();
      const over = start();
      pending.set(key, { finish, over });
      over.catch(() => {}); // looked at where it is awaited
      await Promise.race([seen, over]);
    }

    try {
      for (const event of plan.events.slice(plan.from)) {
        marked.now(event, recorded.overrideFor(event));
        const payload = recorded.payloadOf(event);
        const callId = typeof payload.tool_call_id === 'string' ? payload.tool_call_id : '';
        switch (event.event) {
          case 'tool.requested': {
            const request = payload as unknown as ToolRequestedPayload;
            if (!recorded.decided(callId)) await sink.emit({ event: event.event, payload });
            else if (request.evidence === 'held') {
              await begin(callId, () =>
                sink.act(proposed(request), () => recorded.results.get(callId) as Promise<ToolResult>),
              );
            } else
              await begin(callId, () =>
                sink.ask({ kind: 'approval', action: proposed(request), takesArguments: true }),
              );
            break;
          }
          case 'tool.completed':
          case 'tool.failed': {
            const call = pending.get(callId);
            const held = call && recorded.evidence(callId) === 'held';
            if (!held) await sink.emit({ event: event.event, payload });
            else {
              call.finish(resultOf(payload as unknown as ToolEndedPayload));
              await call.over;
            }
            break;
          }
          case 'vendor.tollbridge.ask_opened': {
            const { ask } = payload as unknown as AskOpenedPayload;
            const key = String(ask.metadata.key ?? '');
            if (ask.kind === 'input') {
              await begin(`input:${key}`, () =>
                sink.ask({
                  kind: 'input',
                  key,
                  question: ask.question,
                  ...(ask.schema && { schema: ask.schema }),
                  expires_ms: YEARS,
                }),
              );
            }
            opened.set(ask.id, { ask: marked.lastAsk(), key: ask.kind === 'input' ? `input:${key}` : key });
            break;
          }
          case 'vendor.tollbridge.ask_closed': {
            const closed = payload as unknown as AskClosedPayload;
            const known = opened.get(closed.ask_id);
            if (known) await asks.settle(known.ask, closed.state, closed.by, closed.reason, closed.answer);
            break;
          }
          case 'vendor.tollbridge.ask_used': {
            // Whoever was answered takes the answer in its own time; the walk waits for that, not for a clock.
            const known = opened.get(String(payload.ask_id));
            const call = known && pending.get(known.key);
            if (call) await Promise.race([marked.repeated(event), call.over]);
            break;
          }
          default:
            if (isFact(event.event)) await sink.emit({ event: event.event, payload });
            else if (!FOLLOWS.test(event.event)) await note(event);
        }
      }
      await Promise.all([...pending.entries()].map(([key, { over }]) => (recorded.ended(key) ? over : undefined)));
    } finally {
      stop.abort();
      for (const { finish } of pending.values())
        finish({ status: 'error', output: null, error: 'the record ends here' });
      await Promise.allSettled([...pending.values()].map(({ over }) => over));
    }
  }
}

/** A question lived through again is answered by the record; nobody else may, and it does not run out meanwhile. */
function forNobodyElse(decision: Decision, task: Task): Decision {
  return decision.verdict === 'escalate' ? { ...decision, ask: { to: [`replay:${task.id}`] } } : decision;
}

type Claim = Parameters<Endings['finish']>[2]['replay'] & object;

/** Events the core brings about by itself when the rest is lived through again. */
const FOLLOWS =
  /^(task\.|receipt\.|tool\.(approval_required|approved|denied)$|user\.(tool_confirmation|input_submitted)$|vendor\.tollbridge\.(decided|recovered|quota_used)$|session\.message_appended$)/;
const YEARS = 10 * 365 * 24 * 3600 * 1000;

/** Facts an agent reported. Messages too: said again, but marked, so that they do not join the conversation twice. */
function isFact(event: string): boolean {
  return (
    /^(agent|span|artifact)\./.test(event) ||
    REPORTED.has(event) ||
    (event.startsWith('vendor.') && !event.startsWith('vendor.tollbridge.'))
  );
}
const REPORTED = new Set([
  'vendor.tollbridge.message_delta',
  'vendor.tollbridge.plan',
  'vendor.tollbridge.usage',
  'vendor.tollbridge.side_effect',
  'vendor.tollbridge.checkpoint',
  'vendor.tollbridge.note',
]);

function proposed({
  tool_call_id,
  name,
  kind,
  input,
  server,
  target,
  effect,
  evidence,
  definition,
}: ToolRequestedPayload): ProposedAction {
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

function outcome(task: Task, event: string, payload: JsonObject, original?: CoreEvent): EventDraft {
  return { ...inTask(task), event, payload, ...(original && { actor: original.actor ?? null }) };
}

function endOf(events: readonly CoreEvent[]) {
  const last = events.findLast(
    ({ event }) => event === 'task.completed' || event === 'task.failed' || event === 'task.canceled',
  );
  const task = last?.payload.task as unknown as Task | undefined;
  const summary = (last?.payload.outcome as JsonObject | undefined)?.summary;
  const state = task?.status === 'COMPLETED' || task?.status === 'CANCELED' ? task.status : ('FAILED' as const);
  return {
    state,
    ...(typeof summary === 'string' && { summary }),
    ...(task?.failure && { failure: task.failure }),
  } as Parameters<Endings['finish']>[1];
}

/** The first task of a session that is replayed as a whole announces it. */
function sessionReplayed(task: Task, { mode, reason }: ReplayRequest, metadata: JsonObject = {}): EventDraft[] {
  const part = metadata.session_replay as JsonObject | undefined;
  if (part?.index !== 0) return [];
  return [
    {
      event: 'session.replayed',
      resource: { object: 'session', id: task.session_id },
      workspace_id: task.workspace_id,
      session_id: task.session_id,
      actor: task.created_by,
      payload: { mode, tasks: part.of ?? null, reason: reason ?? null },
    },
  ];
}

/** Lifecycle times as recorded, with `time:` overrides applied. */
function timesOf(source: Task, plan: Plan): { created_at: string; started_at: string; completed_at: string } {
  const pinned = (label: string) =>
    plan.applied.find(({ key }) => key === `time:${label}`)?.value as string | undefined;
  const last = plan.events.findLast(({ event }) => /^task\.(completed|failed|canceled)$/.test(event));
  return {
    created_at: pinned('created_at') ?? source.created_at,
    started_at: pinned('started_at') ?? source.started_at ?? source.created_at,
    completed_at: pinned('completed_at') ?? last?.created_at ?? source.updated_at,
  };
}

/** The record as answers. */
function recordedPorts(plan: Plan) {
  const decisions = new Map<string, Decision[]>();
  const evidence = new Map<string, string>();
  const ends = new Set<string>();
  for (const { event, payload } of plan.events) {
    const action = payload.action as JsonObject | undefined;
    if (event === 'vendor.tollbridge.decided' && typeof action?.tool_call_id === 'string') {
      const list = decisions.get(action.tool_call_id) ?? [];
      list.push(payload.decision as unknown as Decision);
      decisions.set(action.tool_call_id, list);
    }
    if (event === 'tool.requested') evidence.set(String(payload.tool_call_id), String(payload.evidence));
    if (/^tool\.(completed|failed|denied)$/.test(event)) ends.add(String(payload.tool_call_id));
  }
  const overrides = new Map(
    plan.applied.flatMap((applied) =>
      applied.dependency.event_id ? [[applied.dependency.event_id, applied] as const] : [],
    ),
  );

  return {
    results: new Map<string, Promise<ToolResult>>(),
    decided: (callId: string) => decisions.has(callId),
    ended: (callId: string) => ends.has(callId),
    evidence: (callId: string) => evidence.get(callId),
    decision(callId: string | undefined): Decision {
      const next = decisions.get(callId ?? '')?.shift();
      return (
        next ?? {
          verdict: 'block',
          code: 'not_on_record',
          reason: 'the record holds no decision about this',
          engine: 'replay',
        }
      );
    },
    overrideFor: (event: CoreEvent) => overrides.get(event.id),
    payloadOf(event: CoreEvent): JsonObject {
      const applied = overrides.get(event.id);
      if (!applied) return event.payload;
      const { value, override } = applied;
      if (override.kind === 'event_payload') return value as JsonObject;
      if (override.kind === 'llm_provider_response') return { ...event.payload, response: value };
      if (override.kind === 'checkpoint_value') return { ...event.payload, value };
      if (override.kind === 'time' || override.kind === 'secret_value') return event.payload;
      return { ...event.payload, output: value };
    },
  };
}

interface MarkedLog extends Log {
  /** The recorded event being lived through, and the override that changes it. */
  now(event: CoreEvent, override: Plan['applied'][number] | undefined): void;
  /** Resolves at the next commit. */
  next(): Promise<void>;
  /** Resolves once this recorded event has been repeated. */
  repeated(event: CoreEvent): Promise<void>;
  lastAsk(): string;
}

/** Every event a replay writes names the one it repeats. */
function markingLog(log: Log, task: Task, source: Task, plan: Plan): MarkedLog {
  const unmatched = [...plan.events];
  let override: Plan['applied'][number] | undefined;
  let waiters: (() => void)[] = [];
  let ask = '';
  let reached = 0;

  function mark(event: EventDraft): EventDraft {
    // What is written now repeats the event being lived through, or one that followed from it.
    const same = (original: CoreEvent) =>
      original.sequence >= reached && original.event === event.event && sameCall(original.payload, event.payload);
    const at = unmatched.findIndex(same);
    const [original] = at < 0 ? [] : unmatched.splice(at, 1);
    const named = event.payload.original as JsonObject | undefined;
    const replay: ReplayMark = {
      source_task_id: source.id,
      replay_task_id: task.id,
      original_event_id: original?.id ?? (named ? String(named.id) : null),
      mode: plan.request.mode,
      ...(override &&
        override.dependency.event_id === original?.id && {
          override_key: override.key,
          receipt_delta_id: override.delta.delta_id,
        }),
    };
    if (event.event === 'vendor.tollbridge.ask_opened') ask = String((event.payload.ask as JsonObject).id);
    // Said again here, but by whoever said it then.
    return { ...event, ...(original && { actor: original.actor ?? null }), replayed: true, replay };
  }

  return {
    ...log,
    async commit(unit) {
      try {
        return await log.commit({
          ...unit,
          decide: (at) => {
            const draft = unit.decide(at);
            return { ...draft, events: draft.events.map(mark) };
          },
        });
      } finally {
        const woken = waiters;
        waiters = [];
        for (const wake of woken) wake();
      }
    },
    now(event, applied) {
      // Closing a question writes down the person's word too, which stands before it in the record.
      if (event.event !== 'vendor.tollbridge.ask_closed') reached = event.sequence;
      override = applied;
    },
    next: () => new Promise((resolve) => waiters.push(resolve)),
    async repeated(event) {
      while (unmatched.includes(event)) await new Promise<void>((resolve) => waiters.push(resolve));
    },
    lastAsk: () => ask,
  };
}

function sameCall(a: JsonObject, b: JsonObject): boolean {
  const call = (payload: JsonObject) =>
    payload.tool_call_id ?? (payload.action as JsonObject | undefined)?.tool_call_id ?? null;
  return call(a) === call(b);
}
