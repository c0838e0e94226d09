/**
 * Events as short lines for people: who proposed what, the decision and its rule, who answered, how it ended. Events
 * for machines only are left out; `--json` has everything. Remembers the arguments of calls, because decisions do not
 * repeat them.
 */

import type { Decision } from '../../model/actions.ts';
import { outcomeOfEnd } from '../../model/call-outcomes.ts';
import { type CoreEvent, type EventTable, leaveOut, rowFor } from '../../model/events.ts';
import type { EventPayloads } from '../../model/payloads.ts';
import type { Outcome } from '../../model/resources.ts';
import type { JsonObject } from '../../model/schema.ts';
import { asText } from '../../model/values/as-text.ts';
import { LruMap } from '../../model/values/lru-map.ts';
import { own } from '../../model/values/own.ts';
import { brief, briefArguments, counted, eventNumber, shortId, terminalText } from './terminal-text.ts';

export interface EventLine {
  /** One word for the event, to be read down a column. */
  readonly word: string;
  readonly text: string;
  /** Shown in red where there are colours. */
  readonly alarm?: boolean;
}
export type Narrator = (event: CoreEvent) => EventLine | undefined;

export const VERDICT_WORDS: Readonly<Record<string, string>> = {
  allow: 'allowed',
  block: 'BLOCKED',
  escalate: 'ASKS',
  modify: 'changed',
  defer: 'later',
};

const REMEMBERED = 1_000;

export function createNarrator(): Narrator {
  const calls = new LruMap<string, CoreEvent<'tool.requested'>['payload']>(REMEMBERED);
  const titles = new LruMap<string, string>(REMEMBERED);

  /** The arguments of a call; its target, or the title its agent gave it, where it has none. */
  const shown = (id: string | undefined): string => {
    const { input = {}, target } = calls.get(id ?? '') ?? {};
    return briefArguments(input, 80) || brief(target ?? titles.get(id ?? '') ?? '', 80);
  };

  const used = ({ payload: { tool_call_id = '', title } }: CoreEvent<'agent.tool_use' | 'agent.mcp_tool_use'>) => {
    if (typeof title === 'string') titles.set(tool_call_id, title);
    return undefined;
  };

  const decided = ({ payload }: CoreEvent<'vendor.tollbridge.decided'>): EventLine | undefined => {
    const { action, decision } = payload;
    // Permission to begin work is worth a line only when a rule decided on it.
    if (action.kind === 'prompt' && decision.verdict === 'allow' && !decision.rule_id) return undefined;
    const args = shown(action.tool_call_id);
    const what = [action.kind === 'tool' ? '' : action.kind, action.tool ?? '', args && `(${args})`];
    return {
      word: own(VERDICT_WORDS, decision.verdict) ?? decision.verdict,
      text: `${joined(what)}${because(decision)}`,
    };
  };

  /** An act that was only observed is marked so. The agent ran it itself, so its line says what it ran. */
  const toolEnd = ({ event, payload }: CoreEvent<'tool.completed' | 'tool.failed'>): EventLine => {
    const { tool_call_id = '', name = '', output, error, code, outcome = outcomeOfEnd(event, payload) } = payload;
    const { evidence } = calls.get(tool_call_id) ?? {};
    const args = evidence === 'held' ? '' : shown(tool_call_id);
    const what = joined([brief(name), args && `(${args})`, evidence === 'observed' ? '[observed]' : '']);
    const said = error ?? (output as JsonObject | undefined)?.text ?? (output == null ? '' : JSON.stringify(output));
    return { word: outcome, text: joined([`${what}:`, code ? `[${brief(code)}]` : '', brief(asText(said), 120)]) };
  };

  const lines: EventTable<[], EventLine | undefined> = {
    'task.submitted': ({ payload: { task, agent }, actor }) => ({
      word: 'task',
      text: joined([`${actor ?? 'someone'} asks ${agent ?? 'an agent'}:`, inputText(task.input)]),
    }),
    'tool.requested'({ payload }) {
      calls.set(asText(payload.tool_call_id), payload);
      return undefined;
    },
    'agent.tool_use': used,
    'agent.mcp_tool_use': used,
    'vendor.tollbridge.decided': decided,
    'vendor.tollbridge.ask_opened': ({ payload: { ask } }) => ({
      word: 'question',
      text: `${brief(ask.question, 160)}  (${shortId(ask.id)})`,
    }),
    'vendor.tollbridge.ask_closed': ({ payload: { ask_id, state, by, reason } }) => ({
      word: state,
      text: `by ${brief(by)}${reason ? `: ${brief(reason)}` : ''}  (${shortId(ask_id)})`,
    }),
    'tool.completed': toolEnd,
    'tool.failed': toolEnd,
    'tool.denied': ({ event, payload }) => {
      const { name, reason = '', outcome = outcomeOfEnd(event, payload) } = payload;
      return { word: outcome, text: joined([`${brief(name)}:`, brief(reason, 160)]) };
    },
    'vendor.tollbridge.side_effect': ({ payload }) => ({ word: 'effect', text: effectText(payload) }),
    'user.message': message,
    'agent.message': message,
    'agent.handoff': ({ payload: { target_agent = '', status = '', task_id = '' } }) => ({
      word: 'handoff',
      text: `${brief(target_agent)} ${status}  (${shortId(task_id)})`,
    }),
    'artifact.created': ({ payload: { artifact } }) => ({
      word: 'file',
      text: joined([
        artifact?.kind ?? '',
        brief(asText((artifact as { readonly name?: string } | undefined)?.name ?? '')),
        artifact?.sha256 ? `sha256 ${artifact.sha256.slice(-64, -52)}…` : '',
      ]),
    }),
    'receipt.issued': ({ payload: { receipt_id } }) => ({ word: 'receipt', text: receipt_id }),
    'task.completed': ({ payload }) => ended('completed', payload.outcome),
    'task.failed': ({ payload: { task } }) => ({
      word: 'failed',
      text: joined([task.failure?.code ?? '', brief(task.failure?.message ?? '', 160)]),
    }),
    'task.canceled': ({ payload }) => ended('canceled', payload.outcome),
    'user.cancel_requested': ({ payload, actor }) => ({
      word: 'cancel',
      text: joined([`asked for by ${actor ?? 'someone'}`, brief(asText(payload.reason ?? ''))]),
    }),
    'replay.started': ({ payload: { source_task_id, overrides } }) => ({
      word: 'replay',
      text: joined([`of ${source_task_id}`, list(overrides) && `with ${list(overrides)}`]),
    }),
    'replay.failed': ({ payload }) => ({ word: 'failed', text: brief(asText(payload.message ?? ''), 160) }),
    'vendor.tollbridge.policy_loaded': ({ payload: { outcome, rules, version, errors } }) => ({
      word: 'rules',
      text:
        outcome === 'refused'
          ? `refused, the ones before stay in force: ${firstMistake(errors)}`
          : `${outcome}: ${counted(rules, 'rule')}, version ${(version ?? 'none').slice(0, 19)}`,
    }),
    'vendor.tollbridge.config_loaded': ({ payload: { outcome, changed, waits_for_restart: waits, error } }) => ({
      word: 'config',
      text:
        outcome === 'refused'
          ? `refused, the one before stays in force: ${brief(error ?? '', 200)}`
          : [`${outcome}: ${list(changed) || 'nothing'} changed`, list(waits) && `${list(waits)} at the next start`]
              .filter(Boolean)
              .join(', '),
    }),
    'vendor.tollbridge.recovered': () => ({ word: 'resumed', text: 'its process was gone; the work goes on' }),
    'vendor.tollbridge.note': ({ payload }) => ({
      word: 'note',
      text: brief(asText(payload.text ?? JSON.stringify(payload)), 160),
    }),
    'session.created': ({ actor, session_id }) => ({
      word: 'session',
      text: `opened by ${actor ?? 'someone'}  (${shortId(session_id ?? '')})`,
    }),
    'session.closed': ({ session_id }) => ({ word: 'session', text: `closed  (${shortId(session_id ?? '')})` }),
    'vendor.tollbridge.alarm': ({ payload }) => {
      const { name, message, rule_id, ask_id, evidence } = payload;
      const args = briefArguments(calls.get(payload.tool_call_id)?.input ?? {}, 80);
      const by = rule_id ? `  [rule ${brief(rule_id)}]` : ask_id ? `  (${shortId(ask_id)})` : '';
      return {
        word: 'ALARM',
        text: `${joined([brief(message || name, 160), args && `(${args})`, evidence && `[${brief(evidence)}]`])}${by}`,
        alarm: true,
      };
    },
    'vendor.tollbridge.tainted': ({ payload: { server, what, target } }) => ({
      word: 'tainted',
      text: joined(['the session has read what others wrote', brief(`${what} of ${server}`), brief(target ?? '')]),
    }),
    'vendor.tollbridge.passthrough': ({ payload: { protocol, method } }) => ({
      word: 'passed',
      text: joined([protocol, brief(method)]),
    }),
    ...leaveOut(
      'another line says it: the decision, the answer, the message or the end',
      'user.input_submitted user.tool_confirmation agent.tool_result task.started task.input_required task.auth_required task.status_changed session.message_appended session.replayed tool.approval_required tool.approved vendor.tollbridge.ask_used vendor.tollbridge.message_delta replay.event_replayed replay.completed connector.normalized connector.task_submitted',
    ),
    ...leaveOut(
      'a fact for machines: --json has it',
      'agent.reasoning_summary agent.memory_read agent.memory_write session.compacted session.truncated session.thread_forked session.thread_merged branch.created branch.updated branch.merged branch.abandoned artifact.updated artifact.linked artifact.redacted span.started span.updated span.completed span.failed connector.delivery_received connector.delivery_deduped connector.failed receipt.verified receipt.verification_failed vendor.tollbridge.answer_refused vendor.tollbridge.login_failed vendor.tollbridge.plan vendor.tollbridge.usage vendor.tollbridge.quota_used vendor.tollbridge.quota_warned vendor.tollbridge.checkpoint vendor.tollbridge.bound',
    ),
    ...leaveOut(
      'kept for proof, and shown by the commands that verify',
      'vendor.tollbridge.resource_created vendor.tollbridge.resource_updated vendor.tollbridge.resource_deleted vendor.tollbridge.tree_head vendor.tollbridge.frame_refused vendor.tollbridge.remote_decided',
    ),
  };

  return (event) => {
    const line = rowFor(lines, event)?.(event);
    return line && { word: terminalText(line.word), text: terminalText(line.text), ...(line.alarm && { alarm: true }) };
  };
}

export function because({ rule_id, reason, code }: Pick<Decision, 'rule_id' | 'reason' | 'code'>): string {
  const by = rule_id ? `rule ${brief(rule_id)}` : (code ?? '');
  return `  [${[by, brief(reason, 160)].filter(Boolean).join(': ')}]`;
}

/** `2026-11-16 05:16:23  #11  6GF5R0  allowed    read_note (name: plan)`. */
export function logLine(event: CoreEvent, { word, text, alarm }: EventLine, colours = false): string {
  const when = event.created_at.slice(0, 19).replace('T', ' ');
  const task = shortId(event.task_id ?? '').padEnd(6);
  const line = `${when}  #${eventNumber(event.id).padEnd(5)} ${task}  ${word.padEnd(9)}  ${text}`;
  return alarm && colours ? `${RED}${line}${PLAIN}\n` : `${line}\n`;
}
const RED = '\u001b[1;31m';
const PLAIN = '\u001b[0m';

function message({ payload, actor }: CoreEvent<'user.message' | 'agent.message'>): EventLine {
  const text = (payload.message?.parts ?? [])
    .map((part: JsonObject) => (part.type === 'text' ? asText(part.text ?? '') : `[${asText(part.type)}]`))
    .join(' ');
  return { word: 'says', text: `${brief(actor ?? 'someone')}: ${brief(text, 120)}` };
}

function ended(word: string, outcome: Outcome | undefined): EventLine {
  return { word, text: brief(outcome?.summary ?? '', 160) };
}

function effectText(payload: JsonObject): string {
  const { type, path, operation, destination, purpose, evidence } = payload;
  const what =
    type === 'fs_write' ? [operation, path] : type === 'network' ? [destination, purpose] : [JSON.stringify(payload)];
  return joined([...what.map((each) => brief(asText(each ?? ''))), evidence ? `(${asText(evidence)})` : '']);
}

function inputText(input: unknown): string {
  const { text, prompt, parts } = (input ?? {}) as { text?: unknown; prompt?: unknown; parts?: readonly JsonObject[] };
  const said = text ?? prompt ?? parts?.map((part) => part.text ?? '').join(' ') ?? JSON.stringify(input ?? {});
  return brief(asText(said), 120);
}

function firstMistake([first, ...more]: EventPayloads['vendor.tollbridge.policy_loaded']['errors']): string {
  const position = first?.line === undefined ? '' : `${first.file}:${first.line}: `;
  return brief(`${position}${first?.message ?? ''}${more.length > 0 ? `, and ${more.length} more` : ''}`, 200);
}

function list(value: readonly string[] | undefined): string {
  return brief((value ?? []).join(', '));
}

function joined(parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join(' ');
}
