/**
 * Notifications of agents, recorded as facts about their task, in order. Nothing is concluded beyond the report itself: a
 * result without its question is `observed`, and the end is the agent's claim.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { artifactKind, checkEvent, planStatus, runStatus } from '../../../mappings/ahp.ts';
import {
  type Actor,
  asFault,
  asText,
  type Bridge,
  type Deps,
  type End,
  type Fact,
  type Json,
  type JsonObject,
  own,
} from '../../../src/index.ts';
import type { AhpSettings } from '../config.ts';
import { isObject } from '../decode.ts';
import { type AhpEvent, fingerprint, readCall, viaOf } from '../translate.ts';
import { extOf, openingOf, says } from './decide.ts';
import { notSeen, type OpenCall, type OpenCalls, stoppedWithRun } from './open-calls.ts';
import { type AgentReport, PROTOCOL_NAME, type Run, type Runs } from './supervised-tasks.ts';

export interface Observer {
  take(event: AhpEvent, actor: Actor, framework?: string): Promise<void>;
  /** Ends those of these runs that have not reported their end: their agent has disconnected. */
  left(runs: readonly Run[]): Promise<void>;
  /** The same for runs that were silent since then; sessions without an agent are closed. */
  away(since: number): Promise<void>;
  /** Ends runs that reported their end and were only waiting for check results. */
  settle(): Promise<void>;
}

export interface ObserverDeps {
  readonly bridge: Bridge;
  readonly runs: Runs;
  readonly settings: AhpSettings;
  readonly deps: Pick<Deps, 'log' | 'clock' | 'ids'>;
}

const HEARTBEAT_MS = 60_000;
/** How often sub-agents are checked for their end. */
const LOOK_MS = 20;
/** Reports of past work, which begin nothing. */
const NEWS = new Set(['post_action', 'post_response', 'success', 'error', 'heartbeat']);

export function createObserver({ bridge, runs, settings, deps }: ObserverDeps): Observer {
  async function report(run: Run, event: AhpEvent, facts: readonly Fact[]): Promise<void> {
    if (facts.length === 0) return;
    const ext = extOf(event);
    const withExt = facts.map((fact, index) => (index === 0 ? { ...fact, ext } : fact));
    const body = { task_id: run.taskId, facts: withExt };
    await bridge.submit({ kind: 'task.report', actor: run.actor, body });
  }

  const handlers: Partial<Record<AhpEvent['event_type'], (run: Run, event: AhpEvent) => Promise<void>>> = {
    async session_start(run, { payload }) {
      const { model_provider: provider, model_name: model } = members(payload);
      if (typeof provider === 'string' && typeof model === 'string') run.model = { provider, model };
    },

    async post_action(run, event) {
      const payload = members(event.payload);
      if (typeof payload.response_text === 'string') return await response(run, event, payload);
      const facts = callEnded(run, event, deps);
      run.failure = undefined;
      await report(run, event, facts);
    },

    async post_response(run, event) {
      await response(run, event, members(event.payload));
    },

    async success(run, event) {
      const { action_summary = null, action_type = null, duration_ms = null } = members(event.payload);
      run.failure = undefined;
      const span = { id: deps.ids.next('span'), kind: 'action', name: action_type };
      await report(run, event, [{ event: 'span.completed', payload: { span, summary: action_summary, duration_ms } }]);
    },

    async error(run, event) {
      const payload = members(event.payload);
      const message = text(payload.error_message) ?? text(payload.message) ?? text(payload.error) ?? 'an error';
      const type = text(payload.error_type) ?? 'error';
      const named = readCall(event.payload).tool;
      const call = named === 'unknown' ? undefined : run.open.takeOnly(named);
      run.failure = message;
      const span = { id: deps.ids.next('span'), kind: 'error', name: type };
      await report(run, event, [
        { event: 'span.failed', payload: { span, error: message } },
        ...(call ? [ended(call, { status: 'error', error: message })] : []),
      ]);
    },

    async heartbeat(run, event) {
      const now = Date.parse(deps.clock.now());
      if (now - run.heartbeatAt < HEARTBEAT_MS) return;
      run.heartbeatAt = now;
      await report(run, event, [{ event: 'vendor.ahp.heartbeat', payload: members(event.payload) }]);
    },
  };

  async function response(run: Run, event: AhpEvent, payload: JsonObject): Promise<void> {
    const said = text(payload.response_text) ?? text(payload.response) ?? text(payload.text) ?? text(payload.content);
    run.spans = Math.max(run.spans, 1);
    const call_id = `${run.taskId}.llm${run.spans}`;
    const span = { id: `${run.taskId}.span${run.spans}`, kind: 'llm', call_id };
    const usage = usageOf(payload, run, call_id);
    run.failure = undefined;
    const before = run.said;
    run.said = {
      by: event.event_type,
      span: run.spans,
      text: said ?? '',
      usage: JSON.stringify(payload.usage ?? null),
    };
    if (before && isSameResponse(before, run.said)) {
      const counted = before.usage !== 'null' || !usage;
      return counted ? undefined : await report(run, event, [{ event: 'vendor.tollbridge.usage', payload: usage }]);
    }
    await report(run, event, [
      ...(said ? [{ event: 'agent.message', payload: says('assistant', said) }] : []),
      { event: 'span.completed', payload: { span, ...(run.model && { model: run.model }) } },
      ...(usage ? [{ event: 'vendor.tollbridge.usage', payload: usage }] : []),
    ]);
  }

  // ---- Contracts ----

  async function runLifecycle(actor: Actor, event: AhpEvent, framework: string | undefined): Promise<void> {
    const payload = event.payload as JsonObject;
    const status = asText(payload.status);
    const prompt = text(payload.prompt);
    const opening = openingOf(event, framework);
    const input = prompt ? (says('user', prompt).message as JsonObject) : opening.input;
    const run = await runs.contract(actor, event, asText(payload.run_id), { ...opening, input });
    if (!run) return await ignored(actor, event);
    const state = runStatus.toCore(status);
    const ends = state === 'COMPLETED' || state === 'FAILED' || state === 'CANCELED';
    if (!ends) {
      const phase = { phase: status, run_id: payload.run_id as Json };
      return await report(run, event, [{ event: 'span.updated', payload: phase }]);
    }
    const reason = text(payload.error);
    const summary = text(payload.result_summary) ?? (state === 'CANCELED' ? reason : undefined);
    const end: End = {
      state,
      ...(summary !== undefined && { summary }),
      ...(state === 'FAILED' && { failure: { code: 'agent_failed', message: reason ?? 'the agent says it failed' } }),
    };
    await endLater(run, end);
  }

  /** Checks are reported after the end, and the end seals the receipt. So the end waits a moment for them. */
  async function endLater(run: Run, end: End): Promise<void> {
    if (run.ending) return;
    if (settings.settleMs === 0 || run.verification) return await finish(run, end);
    const timer = setTimeout(() => {
      runs
        .inOrder(run.actor, run, () => finish(run, end))
        .catch((cause) => deps.log.error({ err: cause, task: run.taskId }, 'a supervised task could not be ended'));
    }, settings.settleMs);
    run.ending = { end, timer };
  }

  async function finish(run: Run, end: End): Promise<void> {
    const unreported = run.open.all();
    const uncounted = run.unseen > 0 ? [`the outcome of ${run.unseen} calls before those`] : [];
    const verification = run.verification && { verification: run.verification };
    const facts = unreported.map(end.state === 'CANCELED' ? stoppedWithRun : notSeen);
    await runs.end(
      run,
      {
        ...end,
        ...(verification && { metrics: verification }),
        not_reported: [
          'the work was done by a supervised agent: only its own report is known',
          ...unreported.map(({ tool, id }) => `the outcome of ${tool} (${id})`),
          ...uncounted,
        ],
      },
      facts,
    );
  }

  async function taskList(run: Run, event: AhpEvent): Promise<void> {
    const { tasks } = event.payload as { tasks: readonly JsonObject[] };
    const entries = tasks.map(({ id, title, status, ...rest }) => {
      const word = asText(status);
      const plain = word === 'failed' || word === 'skipped' || word === 'cancelled' ? `${word}: ${title}` : title;
      return {
        content: plain as Json,
        status: planStatus.toCore(word) ?? 'pending',
        priority: 'medium',
        ext: { ahp: { id: id as Json, status: word, ...rest } },
      };
    });
    await report(run, event, [{ event: 'vendor.tollbridge.plan', payload: { entries: entries as Json } }]);
  }

  async function verification(run: Run, event: AhpEvent): Promise<void> {
    const {
      status,
      checks = [],
      residual_risks = [],
    } = event.payload as {
      status: string;
      checks?: readonly JsonObject[];
      residual_risks?: readonly string[];
    };
    run.verification = {
      status,
      checks: checks.map(({ id, subject, status: came }) => ({ id, subject, status: came })) as Json,
      residual_risks,
    };
    const facts = checks.flatMap((check): Fact[] => {
      const kind = own(checkEvent, asText(check.status));
      const span = {
        id: deps.ids.next('span'),
        kind: 'check',
        name: check.subject as Json,
        check_id: check.id as Json,
      };
      const { command = null, message = null } = check;
      const checked = { span, status: check.status as Json, command, message };
      return [...(kind ? [{ event: kind, payload: checked }] : []), ...artifactsIn(check).map(artifactFact)];
    });
    await report(run, event, facts);
    if (run.ending) await finish(run, run.ending.end);
  }

  /** Reports about a run whose receipt is sealed: the end of a call is recorded beside it, under that call. */
  async function afterwards(run: Run, actor: Actor, event: AhpEvent): Promise<void> {
    const isCall = event.event_type === 'post_action' && typeof members(event.payload).response_text !== 'string';
    if (!isCall) return await ignored(actor, event);
    const facts = callEnded(run, event, deps);
    if (facts.length === 0) return;
    const ext = extOf(event);
    const withExt = facts.map((fact, index) => (index === 0 ? { ...fact, ext } : fact));
    const body = { task_id: run.taskId, facts: withExt, late: true };
    await bridge.submit({ kind: 'task.report', actor: run.actor, body });
  }

  async function contract(actor: Actor, event: AhpEvent, framework: string | undefined): Promise<void> {
    if (event.event_type === 'run_lifecycle') return await runLifecycle(actor, event, framework);
    const runId = asText((event.payload as JsonObject).run_id);
    const run = await runs.contract(actor, event, runId, openingOf(event, framework));
    if (!run) return await ignored(actor, event);
    await (event.event_type === 'task_list' ? taskList(run, event) : verification(run, event));
  }

  /** A report about an ended run: its receipt is sealed, so this is recorded beside it. */
  async function ignored(actor: Actor, event: AhpEvent): Promise<void> {
    const session = await runs.sessionOf(actor, event.session_id);
    await bridge.submit({
      kind: 'passthrough',
      actor,
      body: {
        protocol: PROTOCOL_NAME,
        method: `ignored ${event.event_type}`,
        params: event.payload,
        workspace_id: await runs.workspace(actor),
        ...(session && { session_id: session }),
      },
      ext: extOf(event),
    });
  }

  /**
   * The top-level agent has ended the session. Its sub-agents may have reported their end, or be about to: they get a moment,
   * and their reports count.
   */
  async function othersEnd(actor: Actor, { session_id, agent_id }: AhpEvent): Promise<void> {
    const others = () => runs.ofSession(actor, session_id).filter((run) => run.agent_id !== agent_id);
    const until = performance.now() + settings.settleMs;
    while (performance.now() < until && others().some(({ ending }) => !ending))
      await pause(Math.min(LOOK_MS, settings.settleMs));
    for (const run of others()) {
      await runs.inOrder(run.actor, run, async () => {
        if (run.ending) await finish(run, run.ending.end);
      });
    }
  }

  async function sessionEnd(actor: Actor, event: AhpEvent): Promise<void> {
    const mine = runs.ofSession(actor, event.session_id).filter(({ agent_id }) => agent_id === event.agent_id);
    const left = mine.length === 0 ? await runs.found(actor, event) : undefined;
    for (const run of left ? [left] : mine) await finish(run, run.ending?.end ?? endOf(run));
    if (event.depth === 0) await othersEnd(actor, event);
    const others = runs.ofSession(actor, event.session_id);
    if (event.depth === 0 || others.length === 0) await runs.closeSession(actor, event.session_id);
  }

  async function take(event: AhpEvent, actor: Actor, framework?: string): Promise<void> {
    // A notification of ours that came back through another harness: recording it again would loop for ever.
    if (viaOf(event.metadata).includes(settings.hop)) return;
    await runs.inOrder(actor, event, async () => {
      if (event.event_type === 'session_end') return await sessionEnd(actor, event);
      const row = ['run_lifecycle', 'task_list', 'verification'].includes(event.event_type);
      if (row) return await contract(actor, event, framework);
      const over = NEWS.has(event.event_type) ? runs.justEnded(actor, event) : undefined;
      if (over) return await afterwards(over, actor, event);
      const run = await runs.open(actor, event, openingOf(event, framework));
      try {
        await handlers[event.event_type]?.(run, event);
      } catch (cause) {
        // Another actor ended its task; later reports change nothing.
        if (asFault(cause).kind !== 'conflict') throw cause;
        await ignored(actor, event);
      }
    });
  }

  return {
    take,
    async left(gone) {
      for (const run of gone) await runs.inOrder(run.actor, run, () => finish(run, run.ending?.end ?? LEFT));
    },
    async away(since) {
      for (const run of runs.all()) {
        const { actor, session_id } = run;
        if (run.receivedAt >= since) continue;
        await runs.inOrder(actor, run, async () => {
          // It may have returned meanwhile.
          if (run.receivedAt >= since || run.ending) return;
          await finish(run, LEFT);
          if (runs.ofSession(actor, session_id).length === 0) await runs.closeSession(actor, session_id);
        });
      }
    },
    async settle() {
      for (const run of runs.all()) {
        const end = run.ending?.end;
        if (end) await runs.inOrder(run.actor, run, () => finish(run, end));
      }
    },
  };
}

const LEFT: End = {
  state: 'FAILED',
  failure: { code: 'agent_left', message: 'the agent went away without saying how it ended' },
};

function endOf({ failure }: Run): End {
  return failure === undefined
    ? { state: 'COMPLETED' }
    : { state: 'FAILED', failure: { code: 'agent_failed', message: failure } };
}

/** A result, paired with its call; without one it is only observed. */
function callEnded(run: Run, { payload, timestamp }: AhpEvent, { ids }: Pick<Deps, 'ids'>): Fact[] {
  const { tool, arguments: args, argumentsKey } = readCall(payload);
  const result = resultOf(members(payload));
  const report = fingerprint(asText(timestamp), payload as Json);
  const twice = run.reports.has(report);
  run.reports.add(report);
  if (run.reports.size > MOST_REPORTS) run.reports.delete(run.reports.values().next().value as string);
  const paired =
    pairOf(run.open, tool, args, argumentsKey) ??
    pairOf(run.refused, tool, args, argumentsKey) ??
    // Agents report their refused calls as failed, often without naming the arguments.
    (result.status === 'error' && !argumentsKey ? run.refused.takeAny(tool) : undefined);
  if (paired) return [ended(paired, result)];
  // A repeated report, and no open call is left that it could be about.
  if (twice) return [];
  const id = ids.next('call');
  const requested = {
    tool_call_id: id,
    name: tool,
    kind: 'tool',
    input: argumentsKey ? args : {},
    effect: 'unknown',
    evidence: 'observed',
  };
  return [{ event: 'tool.requested', payload: requested }, ended({ id, tool }, result)];
}

function pairOf(calls: OpenCalls, tool: string, args: JsonObject, argumentsKey: string): OpenCall | undefined {
  if (argumentsKey) return calls.take(fingerprint(tool, args));
  // Arguments beside the other members of the payload are separated from members that only a report has.
  const asked = Object.entries(args).filter(([name]) => !OF_A_REPORT.has(name));
  return calls.take(fingerprint(tool, Object.fromEntries(asked))) ?? calls.takeOnly(tool);
}
const OF_A_REPORT = new Set([
  ...['result', 'output', 'success', 'status', 'error', 'exit_code', 'duration_ms', 'usage', 'response_text'],
]);
const MOST_REPORTS = 512;

/** Some agents report a model response in two kinds of event; it is one response, and its tokens count once. */
function isSameResponse(before: AgentReport, now: AgentReport): boolean {
  if (before.by === now.by || before.span !== now.span) return false;
  const [none, equal] = [before.usage === 'null' || now.usage === 'null', before.usage === now.usage];
  if (before.text === '' || now.text === '') return equal && !none;
  return (equal || none) && (before.text.startsWith(now.text) || now.text.startsWith(before.text));
}

interface Result {
  readonly status: 'ok' | 'error';
  readonly output?: Json;
  readonly error?: string;
}

function ended({ id, tool }: OpenCall, result: Result): Fact {
  const payload = { tool_call_id: id, name: tool, ...result } as JsonObject;
  return { event: result.status === 'ok' ? 'tool.completed' : 'tool.failed', payload };
}

const GOOD = new Set(['success', 'succeeded', 'ok', 'completed', 'done']);

/** Only an explicit status is a success; a missing one is not. */
function resultOf(payload: JsonObject): Result {
  const result = isObject(payload.result) ? (payload.result as JsonObject) : payload;
  const output = result.output ?? (payload.result !== undefined && !isObject(payload.result) ? payload.result : null);
  const exit = result.exit_code;
  const said = result.success ?? result.status ?? payload.status;
  const good = said === true || (typeof said === 'string' && GOOD.has(said.toLowerCase()));
  if (good && (exit === undefined || exit === null || exit === 0)) return { status: 'ok', output: output as Json };
  const error =
    text(result.error) ??
    (typeof exit === 'number'
      ? `exit code ${exit}`
      : `status ${typeof said === 'string' ? said : (JSON.stringify(said) ?? 'not told')}`);
  return { status: 'error', output: output as Json, error };
}

function usageOf(payload: JsonObject, { model }: Run, call_id: string): JsonObject | undefined {
  if (!isObject(payload.usage)) return undefined;
  const { usage } = payload as { usage: JsonObject };
  const input = amount(usage.input_tokens ?? usage.prompt_tokens);
  const output = amount(usage.output_tokens ?? usage.completion_tokens);
  if (input === undefined && output === undefined) return undefined;
  return {
    call_id,
    ...model,
    ...(input !== undefined && { input_tokens: input }),
    ...(output !== undefined && { output_tokens: output }),
  };
}

function amount(value: Json | undefined): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : undefined;
}

function artifactsIn({ artifacts = [], evidence = [] }: JsonObject): JsonObject[] {
  const pieces = (evidence as readonly JsonObject[]).flatMap(({ artifact }) => (artifact ? [artifact] : []));
  return [...(artifacts as readonly JsonObject[]), ...(pieces as JsonObject[])];
}

const HEX = /^(?:sha256:)?([0-9a-f]{64})$/i;

function artifactFact(ref: JsonObject): Fact {
  const { id, kind, uri, path, mime_type, sha256, size_bytes, summary } = ref;
  const hash = HEX.exec(asText(sha256 ?? ''))?.[1]?.toLowerCase() ?? null;
  const metadata = {
    external_id: id,
    ...(kind && artifactKind(asText(kind)) !== kind && { claimed_kind: kind }),
    ...(sha256 && !hash && { claimed_sha256: sha256 }),
    ...(size_bytes !== undefined && { size_bytes }),
    ...(summary && { summary }),
    ...(path && { path }),
  };
  const artifact = {
    kind: artifactKind(text(kind)),
    mime_type: text(mime_type) ?? 'application/octet-stream',
    uri: text(uri) ?? (path ? `file:${path}` : null),
    visibility: 'internal',
    sha256: hash,
    metadata: metadata as JsonObject,
  };
  return { event: 'artifact.created', payload: { artifact: artifact as Json } };
}

function members(payload: Json): JsonObject {
  return isObject(payload) ? (payload as JsonObject) : {};
}

function text(value: Json | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
