/**
 * Restores the calls of a run from the log, for a process that did not receive them: allowed calls without an end, refused
 * calls, and the count of model calls. So a report after a restart finds its call.
 */
import {
  type Actor,
  asFault,
  asText,
  type Bridge,
  isObject,
  type Json,
  type JsonObject,
  type Logger,
} from '../../../src/index.ts';
import { fingerprint } from '../translate.ts';
import type { SupervisedRun } from './supervised-tasks.ts';

interface Known {
  readonly id: string;
  tool: string;
  /** Of the arguments that run, as a rule left them. */
  print: string;
  state: 'asked' | 'open' | 'refused' | 'over';
  since: number;
}

const KINDS = [
  'tool.requested',
  'tool.denied',
  'tool.completed',
  'tool.failed',
  'vendor.tollbridge.decided',
  'vendor.tollbridge.ask_opened',
  'vendor.tollbridge.ask_closed',
  'vendor.tollbridge.ask_used',
  'span.started',
  'span.completed',
] as const;

/** A caller that may not read the log pairs nothing: its reports are recorded as observed calls. */
export async function restorePairs(bridge: Bridge, actor: Actor, run: SupervisedRun, log: Logger): Promise<void> {
  const calls = new Map<string, Known>();
  const asked = new Map<string, { readonly call: string; approved: boolean }>();
  const learn = (event: string, payload: JsonObject, at: number) => {
    if (event.startsWith('span.')) return learnSpan(run, event, payload);
    if (event === 'vendor.tollbridge.ask_opened') {
      const { id, tool_call_id } = members(payload.ask);
      asked.set(asText(id), { call: asText(tool_call_id), approved: false });
      return;
    }
    if (event === 'vendor.tollbridge.ask_closed') {
      const ask = asked.get(asText(payload.ask_id));
      if (ask) ask.approved = payload.state === 'approved';
      return;
    }
    if (event === 'vendor.tollbridge.ask_used') {
      const ask = asked.get(asText(payload.ask_id));
      const call = ask?.approved ? calls.get(ask.call) : undefined;
      if (call) call.state = 'open';
      return;
    }
    const action = members(payload.action);
    const id = payload.tool_call_id ?? action.tool_call_id;
    if (typeof id !== 'string') return;
    const call = calls.get(id) ?? callOf(id, at);
    calls.set(id, call);
    switch (event) {
      case 'tool.requested':
        call.tool = asText(payload.name);
        break;
      case 'vendor.tollbridge.decided': {
        const { verdict, arguments: rewritten } = members(payload.decision);
        call.tool = asText(action.tool ?? call.tool);
        if (verdict === 'modify' && isObject(rewritten)) call.print = fingerprint(call.tool, rewritten as Json);
        call.state =
          verdict === 'allow' || verdict === 'modify' ? 'open' : verdict === 'escalate' ? 'asked' : 'refused';
        break;
      }
      case 'tool.denied':
        call.state = 'refused';
        break;
      default:
        call.state = payload.code === 'called_off' ? 'refused' : 'over';
    }
  };
  try {
    const range = { stream: { of: 'task', id: run.taskId } as const, kinds: KINDS };
    for await (const { event, payload, created_at } of bridge.events(actor, range)) {
      learn(event, payload, Date.parse(created_at));
    }
  } catch (cause) {
    log.warn({ err: asFault(cause), task: run.taskId }, 'calls from before the restart are not known');
  }
  for (const { id, tool, print, state, since } of calls.values()) {
    if (state === 'open') run.open.add(print, { id, tool }, since);
    if (state === 'refused') run.refused.add(print, { id, tool }, since);
  }
}

/** Call ids end in the fingerprint of the question. */
function callOf(id: string, since: number): Known {
  return { id, tool: 'unknown', print: id.split('.').at(-1) ?? '', state: 'asked', since };
}

/** Spans are numbered; a number used twice would merge two model calls. */
function learnSpan(run: SupervisedRun, event: string, payload: JsonObject): void {
  const id = asText(members(payload.span).id ?? '');
  const prefix = `${run.taskId}.span`;
  if (id.startsWith(prefix)) run.spans = Math.max(run.spans, Number(id.slice(prefix.length)) || 0);
  const { provider, model } = members(payload.model);
  if (event === 'span.completed' && typeof provider === 'string' && typeof model === 'string') {
    run.model = { provider, model };
  }
}

function members(value: Json | undefined): JsonObject {
  return isObject(value) ? value : {};
}
