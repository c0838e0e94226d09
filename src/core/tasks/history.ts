/**
 * The facts and acts of a task from before this process started. An agent that starts over repeats them; each fact is recognised
 * and not written twice, each act is answered from its record.
 */

import type { Answer } from '../../model/asks.ts';
import type { CoreEvent } from '../../model/events.ts';
import type { AskClosedPayload, ToolDecisionPayload, ToolEndedPayload } from '../../model/payloads.ts';
import type { Artifact } from '../../model/resources.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import { asText } from '../../model/values/as-text.ts';
import { isReportable } from '../events/facts.ts';

export interface PastCall {
  /** The log holds the request, written by us. */
  readonly requested: boolean;
  /** The answer its asker got. Absent when there was none, or when it allowed other arguments, which the log does not hold. */
  readonly answer?: Answer;
  readonly ended?: Partial<ToolEndedPayload>;
  readonly denied?: ToolDecisionPayload;
  /** Allowed by a rule, or approved and the approval spent: from then on it may have run. */
  readonly cleared: boolean;
  /** The agent requested it as a mounted tool, and whether it has received the result. */
  readonly used?: boolean;
  readonly received?: boolean;
}
export interface Past {
  /** True when the record holds this fact and it has not been matched yet. The payload is computed only where there is a record. */
  recognises(event: string, payload: () => JsonObject, canonical: (value: Json) => string): boolean;
  call(toolCallId: string): PastCall | undefined;
  /** The answer to an input question that was already spent. */
  answer(key: string): Answer | undefined;
  artifact(file: Artifact): Artifact | undefined;
}

export const NO_PAST: Past = {
  recognises: () => false,
  call: () => undefined,
  answer: () => undefined,
  artifact: () => undefined,
};

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** `agent`: the agent of this task. Facts of other actors are not expected from it again. */
export async function readPast(events: AsyncIterable<CoreEvent>, agent: string): Promise<Past> {
  const facts: { event: string; payload: JsonObject }[] = [];
  const artifacts: Artifact[] = [];
  const calls = new Map<string, Writable<PastCall>>();
  const asked = new Map<string, { key: string; call: string | null; closed?: AskClosedPayload }>();
  const answers = new Map<string, Answer>();
  const call = (id: string) => {
    const known = calls.get(id) ?? { requested: false, cleared: false };
    calls.set(id, known);
    return known;
  };

  for await (const event of events) {
    if (event.actor === agent && isReportable(event.event)) facts.push(event);
    switch (event.event) {
      case 'tool.requested':
        if (event.payload.evidence !== 'observed') call(asText(event.payload.tool_call_id)).requested = true;
        break;
      case 'vendor.tollbridge.decided': {
        const { action, decision } = event.payload;
        if (!action.tool_call_id) break;
        const known = call(action.tool_call_id);
        known.cleared = decision.verdict === 'allow' || decision.verdict === 'modify';
        if (decision.verdict === 'allow')
          known.answer = { kind: 'approved', by: decision.engine, reason: decision.reason };
        break;
      }
      case 'tool.denied': {
        const { tool_call_id: id, by, reason = 'denied', ask_id } = event.payload;
        if (!id) break;
        const known = call(id);
        known.denied = event.payload;
        known.answer = { kind: 'denied', by, reason, ...(ask_id && { ask_id }) };
        break;
      }
      case 'agent.tool_use':
        if (calls.has(asText(event.payload.tool_call_id))) call(asText(event.payload.tool_call_id)).used = true;
        break;
      case 'agent.tool_result':
        if (calls.has(asText(event.payload.tool_call_id))) call(asText(event.payload.tool_call_id)).received = true;
        break;
      case 'tool.completed':
      case 'tool.failed':
        call(asText(event.payload.tool_call_id)).ended = event.payload;
        break;
      case 'vendor.tollbridge.ask_opened': {
        const { ask } = event.payload;
        asked.set(ask.id, { key: asText(ask.metadata.key), call: ask.tool_call_id });
        break;
      }
      case 'vendor.tollbridge.ask_closed': {
        const ask = asked.get(event.payload.ask_id);
        if (ask) ask.closed = event.payload;
        break;
      }
      case 'vendor.tollbridge.ask_used': {
        const ask = asked.get(event.payload.ask_id);
        if (!ask?.closed) break;
        if (!ask.call) answers.set(ask.key, answerOf(ask.closed));
        else if (ask.closed.state === 'approved')
          Object.assign(call(ask.call), { cleared: true, answer: answerOf(ask.closed) });
        break;
      }
      case 'tool.approved': // by a rule that rewrote the call, or by people who saw it rewritten
        if (event.payload.tool_call_id && event.payload.input !== undefined)
          delete call(event.payload.tool_call_id).answer;
        break;
      case 'artifact.created': {
        const { artifact } = event.payload;
        if (artifact && artifact.metadata.spilled !== true) artifacts.push(artifact);
        break;
      }
      default:
    }
  }

  // How often each fact was reported. Order does not matter: an agent that starts over repeats all of them.
  let left: Map<string, number> | undefined;
  return {
    recognises(event, payload, canonical) {
      left ??= tally(facts.map((fact) => `${fact.event} ${canonical(essence(fact.payload))}`));
      const key = `${event} ${canonical(essence(payload()))}`;
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

function tally(keys: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
  return counts;
}

/** Times, ids and outcomes set by the bridge do not make it another fact; content stored as an artifact is compared by its hash. */
function essence({ message, artifact, ...facts }: JsonObject): Json {
  const { outcome: _outcome, ...call } = facts;
  const rest = facts.tool_call_id === undefined ? facts : call;
  const { role = null, parts = [] } = (message ?? {}) as JsonObject;
  const { id: _id, created_at: _made, updated_at: _changed, ...file } = (artifact ?? {}) as JsonObject;
  return {
    ...Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, unnamed(value ?? null)])),
    ...(message !== undefined && { message: { role, parts: (parts as readonly Json[]).map(unnamed) } }),
    ...(artifact !== undefined && { artifact: file }),
  };
}

function unnamed(part: Json): Json {
  const { type, artifact_id: _, ...reference } = (part ?? {}) as JsonObject;
  return type === 'artifact_ref' ? reference : part;
}

function answerOf(closed: AskClosedPayload): Answer {
  if (closed.state === 'approved') {
    return { kind: 'approved', by: closed.by, ask_id: closed.ask_id, ...(closed.reason && { reason: closed.reason }) };
  }
  if (closed.state === 'answered') {
    return { kind: 'value', by: closed.by, ask_id: closed.ask_id, value: closed.answer ?? null };
  }
  if (closed.state === 'denied') {
    return { kind: 'denied', by: closed.by, ask_id: closed.ask_id, reason: closed.reason ?? 'declined' };
  }
  const kind = closed.state === 'expired' ? 'expired' : 'canceled';
  return { kind, ask_id: closed.ask_id, reason: closed.reason ?? kind };
}
