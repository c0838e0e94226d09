/**
 * Events as short lines for people: who proposed what, the decision and its rule, who answered, how it ended. Events
 * for machines only are left out; `--json` has everything. Remembers the arguments of calls, because decisions do not
 * repeat them.
 */

import type { Decision } from '../../model/actions.ts';
import { asText } from '../../model/as-text.ts';
import { outcomeOfEnd } from '../../model/call-outcomes.ts';
import type { CoreEvent } from '../../model/events.ts';
import { LruMap } from '../../model/lru-map.ts';
import { own } from '../../model/own.ts';
import type {
  AlarmPayload,
  AskClosedPayload,
  AskOpenedPayload,
  DecidedPayload,
  HandoffPayload,
  ToolDecisionPayload,
  ToolEndedPayload,
  ToolRequestedPayload,
} from '../../model/payloads.ts';
import type { JsonObject } from '../../model/schema.ts';
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
  const calls = new LruMap<string, ToolRequestedPayload>(REMEMBERED);

  const decided = ({ action, decision }: Partial<DecidedPayload>): EventLine | undefined => {
    if (!action || !decision) return undefined;
    // Permission to begin work is worth a line only when a rule decided on it.
    if (action.kind === 'prompt' && decision.verdict === 'allow' && !decision.rule_id) return undefined;
    const call = action.tool_call_id ? calls.get(action.tool_call_id) : undefined;
    const args = briefArguments(call?.input ?? {}, 80);
    const what = [action.kind === 'tool' ? '' : action.kind, action.tool ?? '', args && `(${args})`];
    return {
      word: own(VERDICT_WORDS, decision.verdict) ?? decision.verdict,
      text: `${joined(what)}${because(decision)}`,
    };
  };

  /** An act that was only observed is marked so, with its reported arguments. */
  const toolEnd = (payload: JsonObject, { event }: CoreEvent): EventLine => {
    const {
      tool_call_id = '',
      name = '',
      output,
      error,
      code,
      outcome = outcomeOfEnd(event, payload),
    } = payload as Partial<ToolEndedPayload>;
    const call = calls.get(tool_call_id);
    const args = call?.evidence === 'observed' ? briefArguments(call.input ?? {}, 80) : '';
    const what = joined([brief(name), args && `(${args})`, call?.evidence === 'observed' ? '[observed]' : '']);
    const said = error ?? (output as JsonObject | undefined)?.text ?? (output == null ? '' : JSON.stringify(output));
    return { word: outcome, text: joined([`${what}:`, code ? `[${brief(code)}]` : '', brief(asText(said), 120)]) };
  };

  const lines: Readonly<Record<string, (payload: JsonObject, event: CoreEvent) => EventLine | undefined>> = {
    'task.submitted': ({ task, agent }, { actor }) => ({
      word: 'task',
      text: joined([`${actor ?? 'someone'} asks ${agent ?? 'an agent'}:`, inputText((task as JsonObject)?.input)]),
    }),
    'vendor.tollbridge.decided': (payload) => decided(payload as Partial<DecidedPayload>),
    'vendor.tollbridge.ask_opened': (payload) => {
      const { ask } = payload as unknown as Partial<AskOpenedPayload>;
      return ask && { word: 'question', text: `${brief(ask.question, 160)}  (${shortId(ask.id)})` };
    },
    'vendor.tollbridge.ask_closed': (payload) => {
      const { ask_id = '', state = 'closed', by, reason } = payload as Partial<AskClosedPayload>;
      const why = reason ? `: ${brief(reason)}` : '';
      return { word: state, text: `${by ? `by ${brief(by)}` : ''}${why}  (${shortId(ask_id)})`.trim() };
    },
    'tool.completed': toolEnd,
    'tool.failed': toolEnd,
    'tool.denied': (payload, { event }) => {
      const {
        name = '',
        reason = '',
        outcome = outcomeOfEnd(event, payload),
      } = payload as Partial<ToolDecisionPayload>;
      return { word: outcome, text: joined([`${brief(name)}:`, brief(reason, 160)]) };
    },
    'vendor.tollbridge.side_effect': (payload) => ({ word: 'effect', text: effectText(payload) }),
    'user.message': (payload, { actor }) => message(payload, actor),
    'agent.message': (payload, { actor }) => message(payload, actor),
    'agent.handoff': (payload) => {
      const { target_agent = '', status = '', task_id = '' } = payload as Partial<HandoffPayload>;
      return { word: 'handoff', text: `${brief(target_agent)} ${status}  (${shortId(task_id)})` };
    },
    'artifact.created': ({ artifact }) => {
      const { name, kind, sha256 } = (artifact ?? {}) as { name?: string; kind?: string; sha256?: string };
      return {
        word: 'file',
        text: joined([kind ?? '', brief(name ?? ''), sha256 ? `sha256 ${sha256.slice(-64, -52)}…` : '']),
      };
    },
    'receipt.issued': ({ receipt_id }) => ({ word: 'receipt', text: asText(receipt_id ?? '') }),
    'task.completed': ({ outcome }) => ended('completed', outcome),
    'task.failed': ({ task }) => {
      const { code, message } = ((task as JsonObject)?.failure ?? {}) as { code?: string; message?: string };
      return { word: 'failed', text: joined([code ?? '', brief(message ?? '', 160)]) };
    },
    'task.canceled': ({ outcome }) => ended('canceled', outcome),
    'user.cancel_requested': (payload, { actor }) => ({
      word: 'cancel',
      text: joined([`asked for by ${actor ?? 'someone'}`, brief(asText(payload.reason ?? ''))]),
    }),
    'replay.started': ({ source_task_id, overrides }) => ({
      word: 'replay',
      text: joined([`of ${source_task_id}`, list(overrides) && `with ${list(overrides)}`]),
    }),
    'replay.failed': ({ message }) => ({ word: 'failed', text: brief(asText(message ?? ''), 160) }),
    'vendor.tollbridge.policy_loaded': ({ outcome, rules, version, errors }) => ({
      word: 'rules',
      text:
        outcome === 'refused'
          ? `refused, the ones before stay in force: ${firstMistake(errors)}`
          : `${asText(outcome)}: ${counted(Number(rules), 'rule')}, version ${asText(version ?? 'none').slice(0, 19)}`,
    }),
    'vendor.tollbridge.config_loaded': ({ outcome, changed, waits_for_restart: waits, error }) => ({
      word: 'config',
      text:
        outcome === 'refused'
          ? `refused, the one before stays in force: ${brief(asText(error ?? ''), 200)}`
          : [
              `${asText(outcome)}: ${list(changed) || 'nothing'} changed`,
              list(waits) && `${list(waits)} at the next start`,
            ]
              .filter(Boolean)
              .join(', '),
    }),
    'vendor.tollbridge.recovered': () => ({ word: 'resumed', text: 'its process was gone; the work goes on' }),
    'vendor.tollbridge.note': (payload) => ({
      word: 'note',
      text: brief(asText(payload.text ?? JSON.stringify(payload)), 160),
    }),
    'session.created': (_, { actor, session_id }) => ({
      word: 'session',
      text: `opened by ${actor ?? 'someone'}  (${shortId(session_id ?? '')})`,
    }),
    'session.closed': (_, { session_id }) => ({ word: 'session', text: `closed  (${shortId(session_id ?? '')})` }),
    'vendor.tollbridge.alarm': (payload) => {
      const { name = '', message = '', rule_id, ask_id, evidence = '' } = payload as Partial<AlarmPayload>;
      const call = calls.get(asText(payload.tool_call_id ?? ''));
      const args = briefArguments(call?.input ?? {}, 80);
      const by = rule_id ? `  [rule ${brief(rule_id)}]` : ask_id ? `  (${shortId(ask_id)})` : '';
      return {
        word: 'ALARM',
        text: `${joined([brief(message || name, 160), args && `(${args})`, evidence && `[${brief(evidence)}]`])}${by}`,
        alarm: true,
      };
    },
    'vendor.tollbridge.tainted': ({ server, what, target }) => ({
      word: 'tainted',
      text: joined([
        'the session has read what others wrote',
        brief(`${what} of ${server}`),
        brief(asText(target ?? '')),
      ]),
    }),
    'vendor.tollbridge.passthrough': ({ protocol, method }) => ({
      word: 'passed',
      text: joined([asText(protocol ?? ''), brief(asText(method ?? ''))]),
    }),
  };

  return (event) => {
    if (event.event === 'tool.requested') {
      const call = event.payload as unknown as ToolRequestedPayload;
      calls.set(call.tool_call_id, call);
      return undefined;
    }
    const line = own(lines, event.event)?.(event.payload, event);
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

function message({ message }: JsonObject, actor: string | null | undefined): EventLine | undefined {
  const parts = (message as { parts?: readonly JsonObject[] } | undefined)?.parts ?? [];
  const text = parts
    .map((part) => (part.type === 'text' ? asText(part.text ?? '') : `[${asText(part.type)}]`))
    .join(' ');
  return { word: 'says', text: `${brief(actor ?? 'someone')}: ${brief(text, 120)}` };
}

function ended(word: string, outcome: unknown): EventLine {
  return { word, text: brief(asText((outcome as JsonObject | undefined)?.summary ?? ''), 160) };
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

function firstMistake(errors: unknown): string {
  const [first, ...more] = (Array.isArray(errors) ? errors : []) as {
    file?: string;
    line?: number;
    message?: string;
  }[];
  const position = first?.line === undefined ? '' : `${first.file ?? ''}:${first.line}: `;
  return brief(`${position}${first?.message ?? ''}${more.length > 0 ? `, and ${more.length} more` : ''}`, 200);
}

function list(value: unknown): string {
  return Array.isArray(value) ? brief(value.map(String).join(', ')) : '';
}

function joined(parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join(' ');
}
