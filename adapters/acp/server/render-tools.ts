/** Renders the life of a call for an editor: opened once, started when it may run, ended once. Its only state is what was shown. */

import { ACT_KINDS, toolKind } from '../../../mappings/acp.ts';
import { CANCELLED_CATEGORY, DENIED_CATEGORY } from '../../../mappings/acp-harn.ts';
import { asText, type CoreEvent, EFFECTS, type Effect, isSideEffect, type JsonObject } from '../../../src/index.ts';
import { cameAs } from '../client/facts.ts';
import { compact, lookup, objectOf, textOf, within } from '../shapes.ts';
import { withMeta } from '../translate.ts';
import type { ClientProfile } from './client-profile.ts';

interface Shown {
  readonly title: string;
  readonly effect: string;
  readonly server: string | undefined;
  readonly since: string;
  held: boolean;
  running: boolean;
  ended: boolean;
}

export interface ToolRenderer {
  /** Undefined when the event is not about a call. */
  render(event: CoreEvent, replay: boolean): JsonObject[] | undefined;
  /** The task has ended: its calls are forgotten. */
  forget(taskId: string): void;
}

export function createToolRenderer(client: ClientProfile): ToolRenderer {
  const calls = new Map<string, Shown>();
  const keyOf = ({ task_id }: CoreEvent, id: string) => `${task_id} ${id}`;

  function open(event: CoreEvent, id: string): JsonObject[] {
    const key = keyOf(event, id);
    const known = calls.get(key);
    const { payload } = event;
    const held = payload.evidence === 'held';
    if (known && !known.ended) {
      known.held ||= held;
      return [];
    }
    const came = cameAs(event);
    const title = textOf(payload.title) ?? titleOf(payload);
    const effect = textOf(payload.effect) ?? 'unknown';
    const server = textOf(payload.server);
    calls.set(key, { title, effect, server, since: event.created_at, held, running: false, ended: false });
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
    return [withProfile(event, update as JsonObject, { ...audit(event, effect) })];
  }

  function begin(event: CoreEvent, id: string, input?: unknown): JsonObject[] {
    const call = calls.get(keyOf(event, id));
    if (!call?.held || call.running || call.ended) return [];
    call.running = true;
    const rewritten = input === undefined ? {} : { rawInput: input as JsonObject };
    return [
      withProfile(
        event,
        { sessionUpdate: 'tool_call_update', toolCallId: id, status: 'in_progress', ...rewritten },
        { executor: executorOf(call) },
      ),
    ];
  }

  function end(event: CoreEvent, id: string, ok: boolean, words: string | undefined): JsonObject[] {
    const call = calls.get(keyOf(event, id));
    const opened = call ? [] : open(event, id);
    const known = calls.get(keyOf(event, id));
    if (!known || known.ended) return opened;
    known.ended = true;
    const came = cameAs(event);
    const { payload } = event;
    const update = came
      ? { ...came, sessionUpdate: 'tool_call_update', toolCallId: id, status: ok ? 'completed' : 'failed' }
      : compact({
          sessionUpdate: 'tool_call_update',
          toolCallId: id,
          status: ok ? 'completed' : 'failed',
          content: words ? [{ type: 'content', content: { type: 'text', text: words } }] : undefined,
          rawOutput: payload.output ?? undefined,
        });
    const durationMs = Math.max(0, Date.parse(event.created_at) - Date.parse(known.since));
    const failure = ok ? {} : { error: words ?? 'it failed', errorCategory: categoryOf(event) };
    const profile = { durationMs, executor: known.held ? executorOf(known) : undefined, ...failure };
    return [...opened, withProfile(event, update as JsonObject, profile)];
  }

  /** Only for clients of the profile; the agent's own members take precedence. */
  function withProfile(event: CoreEvent, update: JsonObject, fields: Readonly<Record<string, unknown>>): JsonObject {
    if (!client.harn) return update;
    const own = objectOf(within(cameAs(event), '_meta', 'harn')) ?? {};
    return withMeta(update, 'harn', { ...(compact(fields) as JsonObject), ...own });
  }

  function render(event: CoreEvent, replay: boolean): JsonObject[] | undefined {
    const { payload } = event;
    const id = textOf(payload.tool_call_id) ?? textOf(within(payload, 'action', 'tool_call_id'));
    switch (event.event) {
      case 'agent.tool_use':
      case 'agent.mcp_tool_use':
      case 'tool.requested':
        return id ? open(event, id) : [];
      case 'vendor.tollbridge.decided': {
        const verdict = within(payload, 'decision', 'verdict');
        if (replay || !id || (verdict !== 'allow' && verdict !== 'modify')) return [];
        return begin(event, id, within(payload, 'decision', 'arguments'));
      }
      case 'tool.approved':
        return id && !replay ? begin(event, id, payload.input) : [];
      case 'tool.completed':
        return id ? end(event, id, true, wordsOf(payload.output)) : [];
      case 'tool.failed':
        return id ? end(event, id, false, textOf(payload.error)) : [];
      case 'tool.denied':
        return id ? end(event, id, false, textOf(payload.reason) ?? 'denied') : [];
      case 'span.updated': {
        const came = cameAs(event);
        if (!id || !came) return undefined;
        const call = calls.get(keyOf(event, id));
        if (call && came.status === 'in_progress') call.running = true;
        return replay || call?.ended ? [] : [{ ...came, sessionUpdate: 'tool_call_update', toolCallId: id }];
      }
      default:
        return undefined;
    }
  }

  return {
    render,
    forget(taskId) {
      for (const key of calls.keys()) if (key.startsWith(`${taskId} `)) calls.delete(key);
    },
  };
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

function executorOf({ server }: Shown): unknown {
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
