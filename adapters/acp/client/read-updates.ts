/**
 * Turns the updates of an agent into facts: one reader per task, fed in arrival order. Holds the message being written and the
 * open calls, and has no side effects.
 */

import { MODE_TIERS, planStatus, UNKNOWN_UPDATE } from '../../../mappings/acp.ts';
import { AGENT_EVENT, harnRow } from '../../../mappings/acp-harn.ts';
import type { EventKind, Fact, Json, JsonObject, Loss } from '../../../src/index.ts';
import { asText, beginning, eventKind, vendorEvent } from '../../../src/index.ts';
import { fromBlock } from '../content.ts';
import { normalised, visibleText } from '../harn.ts';
import { type Thoughts, thoughtFact } from '../server/render-thoughts.ts';
import { compact, listOf, lookup, objectOf, textOf, within } from '../shapes.ts';
import { type AgentCall, createCalls } from './acts/tool-calls.ts';
import { type RecordedFact, updateFact } from './facts.ts';
import { harnSteps } from './read-harn.ts';
import { createMeter, type Meter, type Spent } from './usage.ts';

export interface UpdateReaderOptions {
  /** The prefix of message ids, so that they are unique to this task. */
  readonly taskId: string;
  readonly cwd: string;
  /** The agent, and its own session id, to restore the session after a restart. */
  readonly agent: string;
  readonly sessionId: string;
  readonly thoughts: Thoughts;
  /** The cost of the session before this task. */
  readonly spent: Spent;
}

export interface UpdateReader {
  update(update: JsonObject): RecordedFact[];
  /**
   * The text, when an update only continues the message or thought being written; it is then consumed and yields no fact.
   * `words` replaces the text of the update.
   */
  more(update: JsonObject, words?: string): string | undefined;
  /** Updates on Harn's second channel. */
  agentEvent(params: JsonObject): RecordedFact[];
  /** The call a question is about, and the facts for it if it is new. */
  asked(toolCall: JsonObject): { readonly call: AgentCall; readonly steps: RecordedFact[] };
  /** The call was denied: it has ended, whatever the agent reports later. */
  denied(call: AgentCall): void;
  /** The open call a file or a terminal belongs to, as far as that can be determined. */
  servedBy(hint: { path?: string; terminalId?: string }): { id: string; by: string } | undefined;
  /** A file was written through us; the agent's report of it is not a second write. */
  wrote(path: string): void;
  /** An update that arrived after the turn: the end of one of its calls, if it contains one. */
  late(update: JsonObject): RecordedFact[];
  /** Closes everything still open and returns the last text of the turn. */
  finish(result: Json): { readonly steps: RecordedFact[]; readonly summary: string };
  readonly meter: Meter;
}

const LONGEST_SUMMARY = 500;

interface Writing {
  readonly id: string;
  readonly wire: string | undefined;
  readonly kind: string;
  text: string;
}

/** Doors of other protocols have no word for a text with an address inside a message. */
const EMBEDDED: Loss = {
  aspect: 'files',
  why: 'the agent put the text of a file into its message; it is no file of its own',
};

export function createUpdateReader(options: UpdateReaderOptions): UpdateReader {
  const { taskId, thoughts } = options;
  const calls = createCalls(options);
  const meter = createMeter(options.spent);
  let writing: Writing | undefined;
  let messages = 0;
  let summary = '';

  /** Ends the message being written, unless this is its continuation. */
  function close(kind?: string, wire?: string): RecordedFact[] {
    const open = writing;
    if (!open || (open.kind === kind && (wire === undefined || open.wire === wire))) return [];
    writing = undefined;
    if (open.text === '') return [];
    if (open.kind === 'agent_thought_chunk') {
      if (thoughts !== 'summary') return [];
      return [{ event: 'agent.reasoning_summary', payload: { text: open.text, message_id: open.id } }];
    }
    summary = beginning(open.text, LONGEST_SUMMARY);
    return [said(open.id, open.wire, [{ type: 'text', text: open.text, visibility: 'public' }])];
  }

  function said(id: string, wire: string | undefined, parts: readonly Json[], loss?: Loss): Fact {
    const acp = compact({ agent: options.agent, session_id: options.sessionId, message_id: wire });
    const message = { id, object: 'message', role: 'assistant', parts, metadata: { acp } };
    return { event: 'agent.message', payload: { message: message, ...(loss && { loss: [loss] }) } };
  }

  function begin(kind: string, wire: string | undefined): Writing {
    messages += 1;
    writing ??= { id: `${taskId}.m${messages}`, wire, kind, text: '' };
    return writing;
  }

  function chunk(kind: 'agent_message_chunk' | 'agent_thought_chunk', update: JsonObject): RecordedFact[] {
    meter.chunk(update);
    if (kind === 'agent_thought_chunk' && thoughts === 'drop') return close(kind);
    const content = objectOf(update.content) ?? {};
    const wire = textOf(update.messageId);
    const text = content.type === 'text' ? visibleText(content) : undefined;
    const steps = close(kind, wire);
    if (kind === 'agent_thought_chunk') return [...steps, ...thought(content, update, wire)];
    if (content.type !== 'text') return [...close(), ...shown(content, wire)];
    if (!text) return steps;
    const open = writing ?? begin(kind, wire);
    open.text += text;
    const payload = { message_id: open.id, role: 'assistant', text };
    return [...steps, { event: 'vendor.tollbridge.message_delta', payload, ...updateFact(update, isPlain(update)) }];
  }

  function thought(content: JsonObject, update: JsonObject, wire: string | undefined): RecordedFact[] {
    const open = writing ?? begin('agent_thought_chunk', wire);
    open.text += visibleText(content) ?? '';
    // A picture in a thought is shown nowhere else and would be stored here for good.
    const kept = content.type === 'text' ? update : { ...update, content: { type: content.type ?? null } };
    return [thoughtFact(open.id, kept)];
  }

  /** Content that is not text becomes its own message, which keeps its position among the others. */
  function shown(block: JsonObject, wire: string | undefined): RecordedFact[] {
    messages += 1;
    const id = `${taskId}.m${messages}`;
    const from = fromBlock(block);
    if ('file' in from) {
      return [{ file: from.file, fact: (artifactId) => said(id, wire, [from.part(artifactId)]) }];
    }
    return [said(id, wire, [from.part], block.type === 'resource' ? EMBEDDED : undefined)];
  }

  function reported(
    event: EventKind | `vendor.acp.${string}`,
    update: JsonObject,
    payload: JsonObject,
  ): RecordedFact[] {
    return [...close(), { event: eventKind(event), payload, ...updateFact(update) }];
  }

  function more(update: JsonObject, words?: string): string | undefined {
    const open = writing;
    if (!open || update.sessionUpdate !== open.kind || !isWords(update)) return undefined;
    const { messageId: wire = undefined } = update;
    // The same message id, or none.
    if (wire !== undefined && wire !== open.wire) return undefined;
    const text = words ?? (update.content as { text: string }).text;
    open.text += text;
    return text;
  }

  return {
    meter,
    more,
    update(raw) {
      const update = normalised(raw);
      const kind = asText(update.sessionUpdate);
      switch (kind) {
        case 'agent_message_chunk':
        case 'agent_thought_chunk':
          return chunk(kind, update);
        case 'user_message_chunk':
          return close();
        case 'tool_call':
        case 'tool_call_update':
          return [...close(), ...calls.reported(update)];
        case 'plan':
          return reported('vendor.tollbridge.plan', update, { entries: planEntries(update.entries) });
        case 'plan_update': {
          const plan = objectOf(update.plan) ?? {};
          if (plan.type !== 'items') return reported(UNKNOWN_UPDATE, update, { kind });
          return reported(
            'vendor.tollbridge.plan',
            update,
            compact({ entries: planEntries(plan.entries), plan_id: plan.planId }),
          );
        }
        case 'plan_removed':
          return reported('vendor.tollbridge.plan', update, compact({ entries: [], plan_id: update.planId }));
        case 'available_commands_update':
          return reported('vendor.acp.commands', update, { commands: names(update.availableCommands) });
        case 'current_mode_update': {
          const to = textOf(update.currentModeId);
          // Only some modes are known to ask; for the others it is assumed and marked as a claim.
          const tier = lookup(MODE_TIERS, to);
          const asking = { tier: tier ?? 'act_with_approval', ...(!tier && { tier_unknown: true }) };
          return reported('vendor.acp.config_changed', update, compact({ config: 'mode', to, ...asking }));
        }
        case 'config_option_update':
          return reported('vendor.acp.config_changed', update, { config: 'options' });
        case 'session_info_update':
          return reported(
            'vendor.acp.session_info',
            update,
            compact({ title: update.title, updated_at: update.updatedAt }),
          );
        case 'usage_update':
          meter.update(update);
          return reported('span.updated', update, {
            span: { id: `${taskId}.context`, kind: 'context' },
            context_used: update.used ?? null,
            context_size: update.size ?? null,
          });
        case 'notice':
          return reported('vendor.acp.notice', update, compact({ severity: update.severity, title: update.title }));
        case 'compaction_update':
        case 'compaction_summary_chunk':
          return reported('vendor.acp.compaction', update, compact({ id: update.compactionId, status: update.status }));
        case 'subagent_update':
          return reported(subagentEvent(update), update, {
            span: compact({
              id: `${taskId}.sub.${asText(update.sessionId)}`,
              kind: 'agent',
              name: textOf(update.title),
            }),
            state: update.state ?? null,
          });
        case 'session_message':
        case 'session_message_chunk':
          return reported('vendor.acp.session_message', update, compact({ message_id: update.messageId }));
        default:
          if (harnRow(kind)) return [...close(), ...harnSteps(update, taskId).map((step) => withExt(step, update))];
          return reported(UNKNOWN_UPDATE, update, { kind: kind.slice(0, 100) });
      }
    },

    agentEvent({ sessionId: _, ...params }) {
      const ext = { acp: { notification: { method: AGENT_EVENT, params } } };
      return [
        { event: vendorEvent('vendor.harn.agent_event'), payload: { kind: asText(params.kind ?? 'unknown') }, ext },
      ];
    },

    asked(toolCall) {
      const before = close();
      const { call, steps } = calls.asked(normalised({ sessionUpdate: 'tool_call_update', ...toolCall }));
      return { call, steps: [...before, ...steps] };
    },
    denied: (call) => calls.denied(call),
    servedBy: (hint) => calls.servedBy(hint),
    wrote: (path) => calls.wrote(path),

    late(raw) {
      const update = normalised(raw);
      if (update.sessionUpdate !== 'tool_call' && update.sessionUpdate !== 'tool_call_update') return [];
      const steps = calls.reported(update);
      return steps.filter((step) => 'event' in step && /^tool\.(requested|completed|failed)$/.test(step.event));
    },

    finish(result) {
      const steps = [...close(), ...calls.unfinished()];
      const usage = meter.total(result);
      if (usage) steps.push({ event: 'vendor.tollbridge.usage', payload: { ...usage, call_id: `${taskId}.turn` } });
      return { steps, summary };
    },
  };
}

function withExt(step: RecordedFact, update: JsonObject): RecordedFact {
  return 'event' in step ? { ...step, ...updateFact(update) } : step;
}

/** A text chunk of a message or thought. Runs for every streamed chunk, so it allocates nothing. */
function isWords(update: JsonObject): boolean {
  const content = update.content as JsonObject | undefined;
  if (typeof content !== 'object' || content === null || content.type !== 'text') return false;
  if (typeof content.text !== 'string' || content.text === '') return false;
  for (const name in update) if (name !== 'sessionUpdate' && name !== 'content' && name !== 'messageId') return false;
  for (const name in content) if (name !== 'type' && name !== 'text') return false;
  return true;
}

/** A text chunk without further members. */
function isPlain(update: JsonObject): boolean {
  const content = objectOf(update.content) ?? {};
  const outside = Object.keys(update).filter((name) => name !== 'messageId' || update.messageId === null);
  return outside.length === 2 && Object.keys(content).length === 2;
}

function planEntries(entries: Json | undefined): Json[] {
  return listOf(entries).flatMap((entry) => {
    const { content, status, priority } = objectOf(entry) ?? {};
    if (typeof content !== 'string') return [];
    const known = planStatus.toCore(asText(status)) ?? 'pending';
    return [compact({ content, status: known, priority: textOf(priority) })];
  });
}

function names(commands: Json | undefined): Json[] {
  return listOf(commands).flatMap((command) => textOf(within(command, 'name')) ?? []);
}

function subagentEvent({ state, title }: JsonObject): EventKind {
  if (state === 'idle') return 'span.completed';
  return title !== undefined ? 'span.started' : 'span.updated';
}
