/**
 * The core of a replay: the real sink, acts and asks, over ports that answer from the record. No rule is evaluated, no tool is
 * mounted, no quota is charged, and no person can answer a question.
 */
import type { Decision, ToolResult } from '../../model/actions.ts';
import type { ProposedAction } from '../../model/commands.ts';
import type { ToolEndedPayload, ToolRequestedPayload } from '../../model/payloads.ts';
import type { Task } from '../../model/resources.ts';
import type { Json } from '../../model/schema.ts';
import type { AutonomyTier } from '../../model/words.ts';
import type { Signer } from '../../ports/index.ts';
import type { Acts, ActsDeps } from '../actions/acts.ts';
import { createActs } from '../actions/execute.ts';
import { type Asks, createAsks } from '../approvals/asks.ts';
import type { Context } from '../context.ts';
import { NO_PAST } from '../tasks/history.ts';
import { ours } from '../tasks/lifecycle.ts';
import { createSink, type TaskSink } from '../tasks/sink.ts';
import { agentActor } from '../tasks/task-run.ts';
import { idsOfReplay } from './ids.ts';
import type { MarkedLog } from './marks.ts';
import type { Recorded } from './record.ts';

export interface PortsDeps extends Context {
  readonly signer: Pick<Signer, 'mac'>;
  readonly canonical: (value: Json) => string;
  readonly logger: ActsDeps['logger'];
}

interface Answering {
  readonly signal: AbortSignal;
  /** The next recorded decision on a call. */
  decision(callId: string): Promise<Decision>;
  /** Awaited before the agent gets the answer to a question. `recorded`: the question it repeats. */
  beforeAnswer(askId: string, recorded: string | undefined): Promise<unknown>;
}

export interface ReplayPorts {
  readonly acts: Acts;
  readonly asks: Asks;
  readonly sink: TaskSink;
  /** The question under this id is in the log: the next one about the same act is another question. */
  opened(askId: string): void;
}

export function replayPorts(
  { clock: _now, ids: _random, ...deps }: PortsDeps,
  task: Task,
  marked: MarkedLog,
  record: Recorded,
  answering: Answering,
): ReplayPorts {
  const stem = ours(task).replay?.stem ?? task.id;
  const context = { ...deps, log: marked, clock: marked.clock, ids: idsOfReplay(stem) };
  const real = createAsks({ ...context, expiresMs: YEARS });
  const raised = new Map<string, { readonly key: string; readonly recorded: string | undefined }>();
  const seen = new Set<string>();

  function opened(askId: string): void {
    const about = raised.get(askId);
    if (!about || seen.has(askId)) return;
    seen.add(askId);
    record.opened(about.key);
  }

  const asks: Asks = {
    ...real,
    raise(at, now, run, wanted) {
      const key = wanted.tool_call_id ?? wanted.key;
      const before = record.asked(key);
      const { question, action, schema, reason, rule_id } = before ?? {};
      const decision: Decision = {
        verdict: 'escalate',
        engine: 'replay',
        reason: reason ?? '',
        ...(rule_id && { rule_id }),
        ask: { to: [`replay:${task.id}`] },
      };
      const made = real.raise(at, now, run, {
        ...wanted,
        ...(before && { id: `ask_replay_${stem}.q${record.numberOf(before.id)}` }),
        question: question ?? wanted.question,
        action: action ?? wanted.action,
        ...(schema && { schema }),
        decision,
        expires_ms: YEARS,
      });
      if (!raised.has(made.ask_id)) raised.set(made.ask_id, { key, recorded: before?.id });
      return made;
    },
    async wait(askId, taskId, over) {
      opened(askId);
      await answering.beforeAnswer(askId, raised.get(askId)?.recorded);
      return await real.wait(askId, taskId, over);
    },
  };
  const acts = createActs({
    ...context,
    asks,
    gate: ({ tool_call_id = '' }) => answering.decision(tool_call_id),
    tools: {
      list: async () => [],
      lastListed: () => undefined,
      states: () => [],
      again() {},
      find: async () => undefined,
      known: () => undefined,
      unlisted: () => undefined,
      pass: async () => ({}),
      taints: () => false,
      requirePassing() {},
    },
    quotas: {
      refuse: () => undefined,
      charge: ({ usage, reset_at }) => ({ usage, reset_at: reset_at ?? null }),
      softPassed: () => [],
      passed: () => undefined,
    },
    deferTries: Number.MAX_SAFE_INTEGER,
    deferCapMs: 0,
    policyData: async () => ({ tier: (ours(task).tier as AutonomyTier) ?? 'act_auto', quotas: [] }),
  });
  const sink = createSink({ ...context, acts, asks, repeats: true }, task, agentActor(task), NO_PAST, answering.signal);
  return { acts, asks, sink, opened };
}

const YEARS = 10 * 365 * 24 * 3600 * 1000;

/** The recorded call, as a proposal to be made again. */
export function proposed(request: Partial<ToolRequestedPayload>): ProposedAction {
  const {
    tool_call_id = '',
    name = '',
    kind = 'tool',
    input = {},
    server,
    target,
    effect,
    evidence,
    definition,
  } = request;
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

export function resultOf({ status = 'error', output = null, error, code }: Partial<ToolEndedPayload>): ToolResult {
  return { status, output, ...(error && { error }), ...(code && { code }) };
}
