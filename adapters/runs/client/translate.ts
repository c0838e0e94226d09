/**
 * The pure middle of the backend: a remote's events about its run as canonical facts. States only what the remote said: tool
 * calls were observed, unknown words stay unknown, and each fact carries the frame it came in.
 */

import type { EventKind, Fact, Json, JsonObject, ProposedAction } from '../../../src/index.ts';
import { asText, eventKind, isObject } from '../../../src/index.ts';
import type { RemoteDecision } from '../../../src/transport/outbound/remote-decisions.ts';
import type { RemoteEvent } from './watch.ts';

export type Instruction =
  | { readonly do: 'emit'; readonly fact: Fact }
  | { readonly do: 'ask'; readonly question: RemoteQuestion }
  /** It decided on a call, or its approvers did. */
  | { readonly do: 'ruled'; readonly decision: RemoteDecision; readonly ext: JsonObject }
  /** A question was answered there: this one, or without an id the open one. */
  | { readonly do: 'answered'; readonly askId: string | undefined }
  | { readonly do: 'stalled'; readonly seq: number }
  | { readonly do: 'end'; readonly as: RemoteEnd };

export interface RemoteEnd {
  readonly status: 'succeeded' | 'failed' | 'cancelled';
  readonly reason?: string;
}

export type RemoteQuestion = {
  /** The same after a restart of ours. */
  readonly key: string;
  readonly text: string | undefined;
  /** The question's id at another gateway of ours. */
  readonly askId?: string | undefined;
} & ({ readonly kind: 'input' } | { readonly kind: 'approval'; readonly action: ProposedAction });

interface UpdateReader {
  read(event: RemoteEvent): readonly Instruction[];
  /** Facts that were held back and can wait no longer. */
  rest(): readonly Instruction[];
  /** The text of the last completed step. */
  readonly lastSaid: string | undefined;
}

export function createUpdateReader(taskId: string): UpdateReader {
  /** Calls that have begun and may still be asked about: then the bridge writes their beginning down itself. */
  const held = new Map<string, Fact>();
  const known = new Set<string>();
  let lastSaid: string | undefined;

  const emit = (event: RemoteEvent, name: EventKind | `vendor.runs.${string}`, payload: JsonObject): Instruction => ({
    do: 'emit',
    fact: {
      event: eventKind(name),
      payload,
      ext: { runs: { seq: event.seq, frame: { type: event.type, value: event.value } } },
    },
  });

  function release(): Instruction[] {
    const instructions = [...held.values()].map((fact): Instruction => ({ do: 'emit', fact }));
    held.clear();
    return instructions;
  }

  function progress(event: RemoteEvent): Instruction[] {
    const { kind, task_id, content_delta } = event.value;
    if (kind === 'content_delta') {
      const text = typeof content_delta === 'string' ? content_delta : '';
      if (text === '') return [];
      const payload = { message_id: nameIn(taskId, task_id ?? 'step'), role: 'assistant', text };
      return [...release(), emit(event, 'vendor.tollbridge.message_delta', payload)];
    }
    if (kind === 'tool_call_start') {
      const before = release();
      begin(event);
      return before;
    }
    // The end of a call is reported again, with its result.
    if (kind === 'tool_call_done') return [];
    return [...release(), unknown(event)];
  }

  function begin(event: RemoteEvent): void {
    const { id, name } = callOf(event);
    known.add(id);
    const payload = { tool_call_id: id, name, kind: 'tool', effect: 'unknown', evidence: 'observed' };
    held.set(id, (emit(event, 'tool.requested', payload) as { fact: Fact }).fact);
  }

  function invoked(event: RemoteEvent): Instruction[] {
    const { id, name } = callOf(event);
    const before: Instruction[] = [...(known.has(id) ? [] : [noted(id, name)]), ...ruledOn(event, id, name)];
    known.add(id);
    const { tool_outcome: outcome, tool_output_summary: output, tool_input_summary: input } = event.value;
    const about = { tool_call_id: id, name };
    const shown = { input: input ?? null, output: output ?? null };
    // A call that the remote refused has not failed: it never ran.
    if (outcome === 'policy_denied') return [...release(), ...before];
    const ended =
      outcome === 'succeeded'
        ? emit(event, 'tool.completed', { ...about, status: 'ok', output: shown })
        : emit(event, 'tool.failed', {
            ...about,
            status: 'error',
            output: shown,
            ...failureOf(event.value),
            ...endedAs(event.value),
          });
    return [...release(), ...before, ended];
  }

  /** The remote's decision on the call, as far as it reports one. */
  function ruledOn({ value, seq, type }: RemoteEvent, id: string, name: string): Instruction[] {
    const own = isObject(value.tollbridge) ? value.tollbridge : {};
    const denied = value.tool_outcome === 'policy_denied';
    const word = (member: string) => (typeof own[member] === 'string' ? { [member]: own[member] } : {});
    const policy = typeof value.policy_reason_code === 'string' ? { code: value.policy_reason_code } : {};
    const said = ['by', 'reason', 'rule_id', 'ask_id', 'at', 'input_hash', 'requested_input_hash', 'output_hash'].map(
      word,
    );
    if (!denied && said.every((each) => Object.keys(each).length === 0)) return [];
    const decision: JsonObject = Object.assign(
      { tool_call_id: id, name, verdict: denied ? 'denied' : 'approved' },
      denied ? (own.rule_id ? word('code') : { ...policy, ...word('code') }) : {},
      ...said,
    );
    const ext = { runs: { seq, frame: { type, value } } };
    return [{ do: 'ruled', decision: decision as RemoteDecision, ext }];
  }

  /** A call whose beginning was not reported. */
  function noted(id: string, name: string): Instruction {
    const payload = { tool_call_id: id, name, kind: 'tool', effect: 'unknown', evidence: 'observed' };
    return { do: 'emit', fact: { event: 'tool.requested', payload, ext: { runs: { frame: null } } } };
  }

  function done(event: RemoteEvent): Instruction[] {
    const { content, outcome, task_id, reason_code } = event.value;
    if (outcome !== undefined && outcome !== 'succeeded') {
      const span = { id: nameIn(taskId, task_id ?? 'step'), kind: 'step' };
      const reason = typeof reason_code === 'string' ? { reason_code } : {};
      return [...release(), emit(event, 'span.failed', { span, outcome, ...reason })];
    }
    if (typeof content !== 'string' || content === '') return release();
    lastSaid = content;
    const message = {
      id: nameIn(taskId, task_id ?? event.seq),
      object: 'message',
      role: 'assistant',
      parts: [{ type: 'text', text: content, visibility: 'public' }],
    };
    return [...release(), emit(event, 'agent.message', { message })];
  }

  function decided(event: RemoteEvent): Instruction[] {
    const { role, decision_type, reason_code, judge_decision } = event.value;
    const { reason } = isObject(judge_decision) ? judge_decision : {};
    const words = [role, decision_type, reason_code, reason].filter((word) => typeof word === 'string' && word !== '');
    // Held-back calls stay held back: a question about one of them may follow a decision about it.
    const summary = emit(event, 'agent.reasoning_summary', { summary: words.join(': ') });
    const over = /^(approval|input)_(timed_out|denied)$/.test(asText(reason_code));
    return over ? [{ do: 'answered', askId: askIdIn(event) }, summary] : [summary];
  }

  function asked(event: RemoteEvent): Instruction[] {
    const { input_kind, question, reason_code } = event.value;
    const text = [question, reason_code].find((word): word is string => typeof word === 'string' && word !== '');
    const key = `${taskId}.run${event.seq}`;
    const askId = askIdIn(event);
    if (input_kind !== 'approval' && input_kind !== 'rejection') {
      return [...release(), { do: 'ask', question: { kind: 'input', key, text, askId } }];
    }
    const named = event.value.tool_call_id;
    const id = typeof named === 'string' ? named : [...held.keys()].at(-1);
    const fact = id === undefined ? undefined : held.get(id);
    if (id !== undefined) held.delete(id);
    const tool = event.value.tool_name ?? fact?.payload.name;
    const action: ProposedAction = {
      kind: 'tool',
      tool_call_id: id ?? key,
      tool: typeof tool === 'string' && tool !== '' ? tool : 'unknown',
      arguments: argumentsIn(event.value.tool_input_summary),
      effect: 'unknown',
      evidence: 'asked',
    };
    known.add(id ?? key);
    return [...release(), { do: 'ask', question: { kind: 'approval', key, text, action, askId } }];
  }

  /** Recorded and shown, but not interpreted. */
  function unknown(event: RemoteEvent): Instruction {
    return emit(event, `vendor.runs.${wordOf(event.type)}`, { type: event.type, value: event.value as Json });
  }

  function end(status: RemoteEnd['status'], event: RemoteEvent): Instruction[] {
    const { reason_code: reason } = event.value;
    return [...release(), { do: 'end', as: { status, ...(typeof reason === 'string' && { reason }) } }];
  }

  return {
    get lastSaid() {
      return lastSaid;
    },
    rest: release,
    read(event) {
      switch (event.type) {
        case 'run.created':
        case 'run.worker.started':
          return release();
        case 'run.signal_applied':
        case 'run.input_received':
          return [{ do: 'answered', askId: askIdIn(event) }, ...release()];
        case 'step.progress':
          return progress(event);
        case 'step.done':
          return done(event);
        case 'run.tool.invoked':
          return invoked(event);
        case 'run.coordination.decision':
          return decided(event);
        case 'run.awaiting_input':
          return asked(event);
        case 'run.worker.stalled':
          return [...release(), unknown(event), { do: 'stalled', seq: event.seq }];
        case 'run.worker.succeeded':
          return end('succeeded', event);
        case 'run.worker.failed':
          return end('failed', event);
        case 'run.cancelled':
          return end('cancelled', event);
        default:
          return [...release(), unknown(event)];
      }
    },
  };
}

function callOf({ value, seq }: RemoteEvent): { id: string; name: string } {
  const { tool_call_id, tool_name } = value;
  return {
    id: typeof tool_call_id === 'string' && tool_call_id !== '' ? tool_call_id : `call${seq}`,
    name: typeof tool_name === 'string' && tool_name !== '' ? tool_name : 'unknown',
  };
}

function askIdIn({ value }: RemoteEvent): string | undefined {
  const { ask_id } = isObject(value.tollbridge) ? value.tollbridge : {};
  return typeof ask_id === 'string' ? ask_id : undefined;
}

/** Another gateway of ours reports that a call was canceled, or that its outcome is unknown: neither is a failure. */
function endedAs({ tollbridge }: JsonObject): { readonly code?: string } {
  const { ended } = isObject(tollbridge) ? tollbridge : {};
  return ended === 'canceled' || ended === 'outcome_unknown' ? { code: ended } : {};
}

function failureOf({ tool_outcome: outcome }: JsonObject): { error: string; code: string } {
  const code = typeof outcome === 'string' && outcome !== '' ? outcome : 'unknown_outcome';
  return { error: code === 'timeout' ? 'the tool took too long' : 'the tool failed', code };
}

/** The summary of a call is all that is known of its arguments. */
function argumentsIn(summary: Json | undefined): JsonObject {
  const { highlights } = isObject(summary) ? summary : {};
  if (!Array.isArray(highlights)) return {};
  const shown = highlights.flatMap((item: Json) => {
    const { key, value, redacted } = isObject(item) ? item : {};
    return typeof key === 'string' ? [[key, redacted === true ? '[not shown]' : (value ?? null)]] : [];
  });
  return Object.fromEntries(shown);
}

/** Prefixes the remote's ids, so that they cannot collide with ours. */
function nameIn(taskId: string, theirs: Json): string {
  return `${taskId}.${asText(theirs)
    .replace(/[^A-Za-z0-9_.-]/g, '-')
    .slice(0, 100)}`;
}

function wordOf(type: string): string {
  return (
    type
      .toLowerCase()
      .replace(/^run\.(worker\.)?/, '')
      .replace(/[^a-z0-9_]+/g, '_')
      .slice(0, 60) || 'unknown'
  );
}
