/** Renders the life of a call for an editor from the view of its task: opened once, started when it may run, ended once. */

import { ACT_KINDS, toolKind } from '../../../mappings/acp.ts';
import { CANCELLED_CATEGORY, DENIED_CATEGORY } from '../../../mappings/acp-harn.ts';
import {
  type AskRecord,
  asText,
  type CallView,
  type CoreEvent,
  EFFECTS,
  type Effect,
  isSideEffect,
  type JsonObject,
  type TaskView,
  visibleLine,
  visibleText,
} from '../../../src/index.ts';
import { cameAs } from '../client/facts.ts';
import { compact, lookup, objectOf, textOf, within } from '../shapes.ts';
import { withMeta } from '../translate.ts';
import type { ClientProfile } from './client-profile.ts';

export interface ToolRenderer {
  /** `view` is the task's after this event. Undefined when the event is not about a call. */
  render(event: CoreEvent, view: TaskView, replay: boolean): JsonObject[] | undefined;
}

export function createToolRenderer(client: ClientProfile): ToolRenderer {
  /** Calls whose agent itself reported that they run. */
  const reported = new WeakSet<CallView>();

  function open(event: CoreEvent, { id, openedBy }: CallView): JsonObject[] {
    if (openedBy !== event.id) return [];
    const { payload } = event;
    const came = cameAs(event);
    const title = textOf(payload.title) ?? titleOf(payload);
    const target = textOf(payload.target);
    const update = came
      ? { status: 'pending', title, ...came, sessionUpdate: 'tool_call', toolCallId: id }
      : compact({
          sessionUpdate: 'tool_call',
          toolCallId: id,
          title,
          name: textOf(payload.name),
          kind: kindOf(payload),
          status: 'pending',
          rawInput: payload.input,
          locations: target?.startsWith('/') ? [{ path: target }] : undefined,
        });
    return [withProfile(event, update as JsonObject, { ...audit(event, textOf(payload.effect) ?? 'unknown') })];
  }

  function begin(event: CoreEvent, call: CallView, input: unknown): JsonObject[] {
    if (call.startedBy !== event.id || reported.has(call)) return [];
    const rewritten = input === undefined ? {} : { rawInput: input as JsonObject };
    return [
      withProfile(
        event,
        { sessionUpdate: 'tool_call_update', toolCallId: call.id, status: 'in_progress', ...rewritten },
        { executor: executorOf(call) },
      ),
    ];
  }

  function end(event: CoreEvent, call: CallView, ok: boolean, words: string | undefined): JsonObject[] {
    const opened = open(event, call);
    if (call.endedBy !== event.id) return opened;
    const came = cameAs(event);
    const status = ok ? 'completed' : 'failed';
    const update = came
      ? { ...came, sessionUpdate: 'tool_call_update', toolCallId: call.id, status }
      : compact({
          sessionUpdate: 'tool_call_update',
          toolCallId: call.id,
          status,
          content: words ? [{ type: 'content', content: { type: 'text', text: words } }] : undefined,
          rawOutput: call.output ?? undefined,
        });
    const durationMs = Math.max(0, Date.parse(event.created_at) - Date.parse(call.openedAt));
    const failure = ok ? {} : { error: words ?? 'it failed', errorCategory: categoryOf(event) };
    const profile = { durationMs, executor: call.evidence === 'held' ? executorOf(call) : undefined, ...failure };
    return [...opened, withProfile(event, update as JsonObject, profile)];
  }

  /** Only for clients of the profile; the agent's own members take precedence. */
  function withProfile(event: CoreEvent, update: JsonObject, fields: Readonly<Record<string, unknown>>): JsonObject {
    if (!client.harn) return update;
    const own = objectOf(within(cameAs(event), '_meta', 'harn')) ?? {};
    return withMeta(update, 'harn', { ...(compact(fields) as JsonObject), ...own });
  }

  function render(event: CoreEvent, view: TaskView, replay: boolean): JsonObject[] | undefined {
    const { payload } = event;
    const id = textOf(payload.tool_call_id) ?? textOf(within(payload, 'action', 'tool_call_id'));
    const call = id === undefined ? undefined : view.calls.get(id);
    switch (event.event) {
      case 'agent.tool_use':
      case 'agent.mcp_tool_use':
      case 'tool.requested':
        return call ? open(event, call) : [];
      case 'vendor.tollbridge.decided':
        return call && !replay ? begin(event, call, within(payload, 'decision', 'arguments')) : [];
      case 'tool.approved':
        return call && !replay ? begin(event, call, payload.input) : [];
      case 'tool.completed':
        return call ? end(event, call, true, wordsOf(payload.output)) : [];
      case 'tool.failed':
        return call ? end(event, call, false, call.error) : [];
      case 'tool.denied':
        return call ? end(event, call, false, call.error ?? 'denied') : [];
      case 'span.updated': {
        const came = cameAs(event);
        if (!id || !came) return undefined;
        if (call && came.status === 'in_progress') reported.add(call);
        return replay || call?.endedBy ? [] : [{ ...came, sessionUpdate: 'tool_call_update', toolCallId: id }];
      }
      default:
        return undefined;
    }
  }

  return { render };
}

/** A question of the past and its answer, as a call that has ended. A value that was given is not shown. */
export function answeredCall({ id, question }: AskRecord, { state, by, reason }: JsonObject): JsonObject {
  const yes = state === 'approved' || state === 'answered';
  const text = `${asText(state)}${textOf(by) ? ` by ${asText(by)}` : ''}${textOf(reason) ? `: ${asText(reason)}` : ''}`;
  return {
    sessionUpdate: 'tool_call',
    toolCallId: `question-${id}`,
    title: visibleLine(question),
    kind: 'other',
    status: yes ? 'completed' : 'failed',
    content: [{ type: 'content', content: { type: 'text', text: visibleText(text) } }],
  };
}

const HANDED: Readonly<Record<string, string>> = {
  accepted: 'in_progress',
  completed: 'completed',
  failed: 'failed',
  rejected: 'failed',
};

/** Work handed to another agent is a call named after that agent: text would run into the answer. `known`: it was opened. */
export function handoffCall(
  { payload: { target_agent, task_id, status: said } }: CoreEvent,
  known: Set<string>,
): JsonObject[] {
  const status = lookup(HANDED, said);
  if (!status) return [];
  const toolCallId = `handoff-${asText(task_id)}`;
  if (known.has(toolCallId)) return [{ sessionUpdate: 'tool_call_update', toolCallId, status }];
  known.add(toolCallId);
  return [
    { sessionUpdate: 'tool_call', toolCallId, title: `handed to ${asText(target_agent)}`, kind: 'other', status },
  ];
}

export function kindOf(payload: JsonObject): string {
  const own = lookup(ACT_KINDS as Readonly<Record<string, string>>, payload.kind);
  if (own) return own;
  const effect = EFFECTS.find((word) => word === payload.effect) ?? ('unknown' as Effect);
  return toolKind.toWire(effect);
}

export function titleOf({ name, target }: JsonObject): string {
  const what = textOf(name) ?? 'tool';
  return textOf(target) ? `${what}: ${asText(target)}` : what;
}

function wordsOf(output: unknown): string | undefined {
  return textOf(output) ?? textOf(within(output, 'text'));
}

function executorOf({ server }: CallView): unknown {
  return server ? { kind: 'mcp_server', serverName: server } : 'host_bridge';
}

function audit({ session_id, task_id }: CoreEvent, effect: string): { audit: JsonObject } {
  const mutation_scope = isSideEffect(effect) ? 'apply_workspace' : 'read_only';
  return { audit: compact({ session_id, run_id: task_id, mutation_scope }) };
}

function categoryOf({ event, payload }: CoreEvent): string {
  if (event === 'tool.denied' || payload.code === 'permission_denied') return DENIED_CATEGORY;
  if (payload.code === 'canceled') return CANCELLED_CATEGORY;
  return payload.code === 'outcome_unknown' ? 'unknown' : 'tool_error';
}
