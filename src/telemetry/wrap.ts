/**
 * Wraps the parts of a runtime, without changing what they do, in a span for every command, act, question and effect.
 */

import { SpanKind } from '@opentelemetry/api';
import type { Command, CommandKind, ProposedAction } from '../model/commands.ts';
import { LruMap } from '../model/values/lru-map.ts';
import {
  type Accepted,
  type AgentBackend,
  type Bridge,
  type Deps,
  type HttpHost,
  type HttpRoute,
  type Sink,
  type ToolBackend,
  wrapTools,
} from '../ports/index.ts';
import { readTraceParent, traceParentOf } from '../transport/outbound/trace-context.ts';
import type { TracePosition, Traces } from './traces.ts';

export interface Traced {
  bridge(bridge: Bridge): Bridge;
  backend(backend: AgentBackend): AgentBackend;
  tools(tools: ToolBackend): ToolBackend;
  http<H extends HttpHost>(host: H): H;
  readonly inTrace: NonNullable<Deps['inTrace']>;
}

export function createTraced(traces: Traces): Traced {
  /** The command that submitted a queued task: the task may begin while another command runs. */
  const waiting = new LruMap<string, TracePosition>(MOST_WAITING);

  /**
   * The trace position of a task: below the command that submitted it, or none when that was before this process began.
   */
  function standingOf(taskId: string): TracePosition | undefined {
    const left = waiting.get(taskId);
    if (left) {
      waiting.delete(taskId);
      return left;
    }
    const now = traces.standing();
    if (!now || now.taken) return undefined;
    now.taken = true;
    return now;
  }

  function submit<K extends CommandKind>(bridge: Bridge, command: Extract<Command, { kind: K }>): Promise<Accepted<K>> {
    const { kind, actor, body } = command;
    return traces.span(
      `command ${kind}`,
      { 'tollbridge.command': kind, 'tollbridge.actor.kind': actor.kind, ...doorOf(actor), ...namesIn(body) },
      async (span) => {
        const trace_id = command.trace_id ?? span.spanContext().traceId;
        const accepted = await bridge.submit<K>({ ...command, trace_id });
        const { resource, decision, repeated } = accepted;
        if (resource) span.setAttribute(`tollbridge.${resource.object}.id`, resource.id);
        if (decision) span.setAttribute('tollbridge.verdict', decision.verdict);
        if (repeated) span.setAttribute('tollbridge.repeated', true);
        const standing = traces.standing();
        if (resource?.object === 'task' && kind === 'task.submit' && !repeated && standing && !standing.taken)
          remember(resource.id, standing);
        return accepted;
      },
    );
  }

  function remember(taskId: string, standing: TracePosition): void {
    // Bounded: tasks that never begin here (canceled, or taken by another process) would stay forever.
    waiting.set(taskId, standing);
  }

  function sinkOf(sink: Sink, standing: TracePosition | undefined, taskId: string): Sink {
    const at = <T>(work: () => Promise<T>) => traces.within(standing, work);
    return {
      emit: (fact) => at(() => sink.emit(fact)),
      artifact: (file) => at(() => sink.artifact(file)),
      ask: (question) =>
        at(() => {
          const about = question.kind === 'approval' ? actionIn(question.action) : {};
          const name = question.kind === 'approval' ? nameOf(question.action) : 'input';
          return traces.span(`ask ${name}`, { ...about, 'tollbridge.task.id': taskId }, async (span) => {
            const answer = await sink.ask(question);
            span.setAttribute('tollbridge.answer', answer.kind);
            return answer;
          });
        }),
      act: (action, effect) =>
        at(() =>
          traces.span(`act ${nameOf(action)}`, { ...actionIn(action), 'tollbridge.task.id': taskId }, async (span) => {
            const result = await sink.act(action, effect);
            if (result.kind === 'refused') span.setAttribute('tollbridge.verdict', result.decision.verdict);
            span.setAttribute('tollbridge.result', result.kind === 'done' ? result.result.status : 'refused');
            return result;
          }),
        ),
    };
  }

  return {
    bridge: (bridge) => ({ ...bridge, submit: (command) => submit(bridge, command) }),
    backend: (backend) => ({
      ...backend,
      start(work, sink, signal) {
        const standing = standingOf(work.task.id);
        return traces.within(standing, () => backend.start(work, sinkOf(sink, standing, work.task.id), signal));
      },
    }),
    tools: (backend) =>
      wrapTools(backend, (tools) => ({
        ...tools,
        call: (action, signal, ...rest) =>
          traces.span(
            `tool ${nameOf(action)}`,
            { ...actionIn(action), 'tollbridge.tool.server': tools.name },
            async (span) => {
              const result = await tools.call(action, signal, ...rest);
              span.setAttribute('tollbridge.result', result.status);
              return result;
            },
            SpanKind.CLIENT,
          ),
      })),
    http: (host) =>
      Object.assign(Object.create(host) as typeof host, {
        claim: (door: string, routes: readonly HttpRoute[]) =>
          host.claim(
            door,
            routes.map(({ handler, upgrade, ...route }) => ({
              ...route,
              ...(handler && {
                handler: (request, response, next) =>
                  traces.from(traceParentOf(request), () => handler(request, response, next)),
              }),
              ...(upgrade && {
                upgrade: (request, socket, head) =>
                  traces.from(traceParentOf(request), () => upgrade(request, socket, head)),
              }),
            })),
          ),
      }),
    inTrace: (traceParent, work) =>
      traces.from(traceParent === undefined ? undefined : readTraceParent(traceParent), work),
  };
}

const MOST_WAITING = 10_000;

function nameOf({ tool, kind }: Pick<ProposedAction, 'tool' | 'kind'>): string {
  return (tool ?? kind).slice(0, 100);
}

function actionIn(action: Pick<ProposedAction, 'kind' | 'tool' | 'effect'>): Record<string, string> {
  return {
    'tollbridge.action': action.kind,
    'tollbridge.tool': nameOf(action),
    ...(action.effect && { 'tollbridge.effect': action.effect }),
  };
}

function doorOf({ door }: { readonly door?: string }): Record<string, string> {
  return door ? { 'tollbridge.door': door } : {};
}

/** Ids are names, not contents. */
function namesIn(body: unknown): Record<string, string> {
  const { session_id, task_id } = body as { session_id?: unknown; task_id?: unknown };
  return {
    ...(typeof session_id === 'string' && { 'tollbridge.session.id': session_id }),
    ...(typeof task_id === 'string' && { 'tollbridge.task.id': task_id }),
  };
}
