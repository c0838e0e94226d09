/** Policy on answers, and the reading of a message that answers a question. */

import type { Action, Actor } from '../../model/actions.ts';
import type { AskRecord } from '../../model/asks.ts';
import { Fault } from '../../model/faults.ts';
import type { MessageInput } from '../../model/resources.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import { asText } from '../../model/values/as-text.ts';
import type { Row } from '../../ports/index.ts';
import { decidedEvent, type Gate } from '../actions/gate.ts';
import { refusal } from '../actions/refusals.ts';
import type { Context } from '../context.ts';
import type { RunRow } from '../events/rows.ts';

/**
 * Asks policy whether this actor may answer. Only a block counts: a rule that asks about a tool, or rewrites its arguments, has
 * been obeyed by raising the question, and would otherwise keep every approver from answering it.
 */
export async function admitAnswer(
  { access, ids, gate, log }: Context & { readonly gate: Gate },
  actor: Actor,
  { ask_id, approved }: { ask_id: string; approved?: boolean },
): Promise<void> {
  const ask = await access.see<AskRecord & Row>(actor, 'ask', ask_id);
  const about: Action = {
    id: ids.next('action'),
    kind: 'answer',
    actor,
    workspace_id: ask.workspace_id,
    session_id: ask.session_id,
    task_id: ask.task_id,
    tool: asText(ask.action.tool ?? ask.kind),
    arguments: { approved: approved ?? null },
    effect: 'none',
    evidence: 'held',
  };
  const decision = await gate(about);
  if (decision.verdict !== 'block' && decision.verdict !== 'defer') return;
  await log.commit({ decide: () => ({ events: [decidedEvent(about, decision)] }) });
  const why = `${actor.id} may not answer this: ${decision.reason}`;
  throw decision.verdict === 'defer' ? refusal('defer', why, {}) : new Fault('permission_denied', why);
}

/** Reads an answer from a message: a json part that states it, or the text itself when a value is wanted. */
export function readAnswer(kind: 'input' | 'tool_confirmation', message: MessageInput, run: RunRow) {
  const wanted = kind === 'input' ? 'input' : 'approval';
  const open = run.asks.filter((ask) => ask.state === 'open' && ask.kind === wanted);
  const json = message.parts.find((part) => part.type === 'json') as { value?: Json } | undefined;
  const value = json?.value as JsonObject | undefined;
  const named = typeof value === 'object' && value !== null ? (value.request_id ?? value.ask_id) : undefined;
  const ask = named ? open.find(({ id }) => id === named) : open.length === 1 ? open[0] : undefined;
  if (!ask) {
    throw new Fault(
      'conflict',
      open.length === 0
        ? `the task is not waiting for ${wanted}`
        : `several questions are open; name one as request_id`,
    );
  }
  if (kind === 'input') {
    const text = message.parts
      .flatMap((part) => ('text' in part && typeof part.text === 'string' ? [part.text] : []))
      .join('\n');
    return {
      ask_id: ask.id,
      value: named ? (value?.answer ?? value?.value ?? null) : json ? (json.value ?? null) : text,
    };
  }
  if (typeof value?.approved !== 'boolean') {
    throw new Fault('invalid_request', 'a confirmation needs a json part with approved: true or false', {
      param: '/message/parts',
    });
  }
  const args = argumentsIn(value, message.parts, ask.key);
  return {
    ask_id: ask.id,
    approved: value.approved,
    ...(args && { arguments: args }),
    ...(value.answer !== undefined && { value: value.answer }),
    ...(typeof value.reason === 'string' && { reason: value.reason }),
  };
}

/**
 * The approver's replacement arguments: beside the answer, or as the call itself. Anything else under that name is an error; if it
 * were ignored, the act would run as it was asked about.
 */
function argumentsIn(
  { arguments: beside }: JsonObject,
  parts: MessageInput['parts'],
  wire: string,
): JsonObject | undefined {
  const call = parts.find((part) => part.type === 'tool_call') as { tool_call_id?: string; input?: Json } | undefined;
  if (call && call.tool_call_id !== wire) {
    throw new Fault('conflict', 'the confirmation holds another call than the one that is asked about', {
      param: '/message/parts',
    });
  }
  const args = beside ?? call?.input;
  if (args === undefined || args === null) return undefined;
  if (typeof args === 'object' && !Array.isArray(args)) return args as JsonObject;
  throw new Fault('invalid_request', 'arguments have to be an object', { param: '/message/parts' });
}
