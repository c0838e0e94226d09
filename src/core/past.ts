/**
 * What a task had already said and done before our process died. An agent that starts over says the same things
 * again; each is recognised and not written twice, each act is answered from its record.
 */
import type { Answer } from '../model/asks.ts';
import type { CoreEvent } from '../model/events.ts';
import type { AskClosedPayload, AskOpenedPayload, ToolEndedPayload, ToolRulingPayload } from '../model/payloads.ts';
import type { Artifact } from '../model/resources.ts';
import type { Json, JsonObject } from '../model/schema.ts';

export interface PastCall {
  readonly ended?: ToolEndedPayload;
  readonly denied?: ToolRulingPayload;
  /** Allowed by a rule, or approved and spent: from then on it may have happened. */
  readonly cleared: boolean;
}
export interface Past {
  /** True when the record holds this very fact and it has not been matched yet. */
  said(event: string, payload: JsonObject, canonical: (value: Json) => string): boolean;
  call(toolCallId: string): PastCall | undefined;
  /** The answer to an input question that was already taken. */
  answer(key: string): Answer | undefined;
  artifact(file: Artifact): Artifact | undefined;
}

export const NO_PAST: Past = {
  said: () => false,
  call: () => undefined,
  answer: () => undefined,
  artifact: () => undefined,
};

export async function readPast(events: AsyncIterable<CoreEvent>): Promise<Past> {
  const facts: { event: string; payload: JsonObject }[] = [];
  const artifacts: Artifact[] = [];
  const calls = new Map<string, { ended?: ToolEndedPayload; denied?: ToolRulingPayload; cleared: boolean }>();
  const asked = new Map<string, { key: string; call: string | null; closed?: AskClosedPayload }>();
  const answers = new Map<string, Answer>();
  const call = (id: string) => {
    const known = calls.get(id) ?? { cleared: false };
    calls.set(id, known);
    return known;
  };

  for await (const { event, payload } of events) {
    switch (event) {
      case 'tool.requested':
        call(String(payload.tool_call_id));
        break;
      case 'vendor.tollbridge.decided': {
        const { action, decision } = payload as { action?: JsonObject; decision?: JsonObject };
        const cleared = decision?.verdict === 'allow' || decision?.verdict === 'modify';
        if (cleared && typeof action?.tool_call_id === 'string') call(action.tool_call_id).cleared = true;
        break;
      }
      case 'tool.denied':
        if (payload.tool_call_id) call(String(payload.tool_call_id)).denied = payload as unknown as ToolRulingPayload;
        break;
      case 'tool.completed':
      case 'tool.failed':
        call(String(payload.tool_call_id)).ended = payload as unknown as ToolEndedPayload;
        break;
      case 'vendor.tollbridge.ask_opened': {
        const { ask } = payload as unknown as AskOpenedPayload;
        asked.set(ask.id, { key: String(ask.metadata.key), call: ask.tool_call_id });
        break;
      }
      case 'vendor.tollbridge.ask_closed': {
        const closed = payload as unknown as AskClosedPayload;
        const ask = asked.get(closed.ask_id);
        if (ask) ask.closed = closed;
        break;
      }
      case 'vendor.tollbridge.ask_used': {
        const ask = asked.get(String(payload.ask_id));
        if (ask?.call) call(ask.call).cleared = ask.closed?.state === 'approved';
        else if (ask?.closed) answers.set(ask.key, answerOf(ask.closed));
        break;
      }
      case 'artifact.created': {
        const artifact = payload.artifact as unknown as Artifact;
        if (artifact.metadata.spilled !== true) artifacts.push(artifact);
        break;
      }
      default:
        if (/^(agent|span)\./.test(event) || REPORTED.has(event)) facts.push({ event, payload });
    }
  }

  // How often each fact was said. Order does not matter: an agent that repeats itself repeats all of it.
  let left: Map<string, number> | undefined;
  return {
    said(event, payload, canonical) {
      left ??= tally(facts.map((fact) => `${fact.event} ${canonical(essence(fact.payload))}`));
      const key = `${event} ${canonical(essence(payload))}`;
      const count = left.get(key) ?? 0;
      if (count > 0) left.set(key, count - 1);
      return count > 0;
    },
    call: (id) => calls.get(id),
    answer: (key) => answers.get(key),
    artifact(file) {
      const at = artifacts.findIndex((a) => a.kind === file.kind && a.sha256 === file.sha256 && a.uri === file.uri);
      return at < 0 ? undefined : artifacts.splice(at, 1)[0];
    },
  };
}

const REPORTED = new Set([
  'vendor.tollbridge.message_delta',
  'vendor.tollbridge.plan',
  'vendor.tollbridge.usage',
  'vendor.tollbridge.checkpoint',
  'vendor.tollbridge.note',
]);

function tally(keys: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
  return counts;
}

/** Times and ids the bridge filled in do not make it another fact. */
function essence(payload: JsonObject): Json {
  const message = payload.message as JsonObject | undefined;
  if (!message) return payload;
  return { ...payload, message: { role: message.role ?? null, parts: message.parts ?? [] } };
}

function answerOf(closed: AskClosedPayload): Answer {
  if (closed.state === 'answered') {
    return { kind: 'value', by: closed.by, ask_id: closed.ask_id, value: closed.answer ?? null };
  }
  if (closed.state === 'denied') {
    return { kind: 'denied', by: closed.by, ask_id: closed.ask_id, reason: closed.reason ?? 'declined' };
  }
  const kind = closed.state === 'expired' ? 'expired' : 'canceled';
  return { kind, ask_id: closed.ask_id, reason: closed.reason ?? kind };
}
