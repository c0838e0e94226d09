/**
 * The pure middle of the backend: what a remote tells of its run, in our words. It says only what it was told: tool calls
 * were observed, unknown words stay unknown, and each fact carries the frame it came in.
 */

import type { Fact, Json, JsonObject, ProposedAction } from '../../src/index.ts';
import { asText } from '../../src/index.ts';
import type { RemoteEvent } from './client-watch.ts';
import { isObject } from './sensitive.ts';

export type Deed =
  | { readonly do: 'emit'; readonly fact: Fact }
  | { readonly do: 'ask'; readonly question: RemoteQuestion }
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
} & ({ readonly kind: 'input' } | { readonly kind: 'approval'; readonly action: ProposedAction });

export interface Reading {
  read(event: RemoteEvent): readonly Deed[];
  /** What was held back and can wait no longer. */
  rest(): readonly Deed[];
  /** Somebody here has said no to this call; the bridge has written that down. */
  denied(callId: string): void;
  /** The text of the last step that was done. */
  readonly lastSaid: string | undefined;
}

export function createReading(taskId: string): Reading {
  /** Calls that have begun and may still be asked about: then the bridge writes their beginning down itself. */
  const held = new Map<string, Fact>();
  const known = new Set<string>();
  const refused = new Set<string>();
  let lastSaid: string | undefined;

  const emit = (event: RemoteEvent, name: string, payload: JsonObject): Deed => ({
    do: 'emit',
    fact: { event: name, payload, ext: { runs: { seq: event.seq, frame: { type: event.type, value: event.value } } } },
  });

  function release(): Deed[] {
    const deeds = [...held.values()].map((fact): Deed => ({ do: 'emit', fact }));
    held.clear();
    return deeds;
  }

  function progress(event: RemoteEvent): Deed[] {
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
    // That a call is done is told again, with its result.
    if (kind === 'tool_call_done') return [];
    return [...release(), unknown(event)];
  }

  function begin(event: RemoteEvent): void {
    const { id, name } = callOf(event);
    known.add(id);
    const payload = { tool_call_id: id, name, kind: 'tool', input: {}, effect: 'unknown', evidence: 'observed' };
    held.set(id, (emit(event, 'tool.requested', payload) as { fact: Fact }).fact);
  }

  function invoked(event: RemoteEvent): Deed[] {
    const { id, name } = callOf(event);
    // Said by the bridge, when it was asked and somebody said no.
    if (refused.has(id)) return [];
    const before = known.has(id) ? [] : [noted(id, name)];
    known.add(id);
    const { tool_outcome: outcome, tool_output_summary: output, tool_input_summary: input } = event.value;
    const about = { tool_call_id: id, name };
    const shown = { input: input ?? null, output: output ?? null };
    const ended =
      outcome === 'succeeded'
        ? emit(event, 'tool.completed', { ...about, status: 'ok', output: shown })
        : emit(event, 'tool.failed', { ...about, status: 'error', output: shown, ...failureOf(event.value) });
    return [...release(), ...before, ended];
  }

  /** A call whose beginning was never told. */
  function noted(id: string, name: string): Deed {
    const payload = { tool_call_id: id, name, kind: 'tool', input: {}, effect: 'unknown', evidence: 'observed' };
    return { do: 'emit', fact: { event: 'tool.requested', payload, ext: { runs: { frame: null } } } };
  }

  function done(event: RemoteEvent): Deed[] {
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

  function decided(event: RemoteEvent): Deed[] {
    const { role, decision_type, reason_code, judge_decision } = event.value;
    const { reason } = isObject(judge_decision) ? judge_decision : {};
    const words = [role, decision_type, reason_code, reason].filter((word) => typeof word === 'string' && word !== '');
    // Held calls stay held: a question about one of them may follow a decision about it.
    return [emit(event, 'agent.reasoning_summary', { summary: words.join(': ') })];
  }

  function asked(event: RemoteEvent): Deed[] {
    const { input_kind, question, reason_code } = event.value;
    const text = [question, reason_code].find((word): word is string => typeof word === 'string' && word !== '');
    const key = `${taskId}.run${event.seq}`;
    if (input_kind !== 'approval' && input_kind !== 'rejection') {
      return [...release(), { do: 'ask', question: { kind: 'input', key, text } }];
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
    return [...release(), { do: 'ask', question: { kind: 'approval', key, text, action } }];
  }

  /** Kept and shown, never read as anything. */
  function unknown(event: RemoteEvent): Deed {
    return emit(event, `vendor.runs.${wordOf(event.type)}`, { type: event.type, value: event.value as Json });
  }

  function end(status: RemoteEnd['status'], event: RemoteEvent): Deed[] {
    const { reason_code: reason } = event.value;
    return [...release(), { do: 'end', as: { status, ...(typeof reason === 'string' && { reason }) } }];
  }

  return {
    get lastSaid() {
      return lastSaid;
    },
    rest: release,
    denied: (callId) => void refused.add(callId),
    read(event) {
      switch (event.type) {
        case 'run.created':
        case 'run.worker.started':
        case 'run.signal_applied':
        case 'run.input_received':
          return release();
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

function failureOf({ tool_outcome: outcome, policy_reason_code: policy }: JsonObject): { error: string; code: string } {
  const code = typeof outcome === 'string' && outcome !== '' ? outcome : 'unknown_outcome';
  if (code === 'policy_denied') return { error: `the remote's policy said no: ${policy ?? 'without a reason'}`, code };
  return { error: code === 'timeout' ? 'the tool took too long' : 'the tool failed', code };
}

/** What may be shown of a call is all that is known of its arguments. */
function argumentsIn(summary: Json | undefined): JsonObject {
  const { highlights } = isObject(summary) ? summary : {};
  if (!Array.isArray(highlights)) return {};
  const shown = highlights.flatMap((item: Json) => {
    const { key, value, redacted } = isObject(item) ? item : {};
    return typeof key === 'string' ? [[key, redacted === true ? '[not shown]' : (value ?? null)]] : [];
  });
  return Object.fromEntries(shown);
}

/** The remote's ids are its own; ours must not meet them. */
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
