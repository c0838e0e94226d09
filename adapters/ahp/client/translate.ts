/** Our acts as questions for an outside harness, and its responses as decisions. Pure. */

import { type EventType, eventRow, type Family, verdictOf } from '../../../mappings/ahp.ts';
import type { Action, Decision, Json, JsonObject } from '../../../src/index.ts';
import { asText, isObject } from '../../../src/index.ts';
import { withAdditions } from '../additions.ts';
import type { AhpEvent } from '../translate.ts';
import type { Worker } from './agent-identity.ts';

export type HarnessQuestion =
  | { readonly kind: 'event'; readonly event: AhpEvent }
  | { readonly kind: 'query'; readonly query: JsonObject };

/** The question for a harness; undefined for an act that the protocol cannot express, on which the harness has no opinion. */
export function toWireQuestion(
  action: Action,
  { agent_id, depth, via }: Worker,
  now: string,
): HarnessQuestion | undefined {
  const session_id = action.session_id ?? action.workspace_id;
  if (action.kind === 'query') {
    const { tool: query_type = 'query', arguments: payload } = action;
    return { kind: 'query', query: { session_id, agent_id, query_type, payload, metadata: { via } } };
  }
  const asked = questionOf(action);
  if (!asked) return undefined;
  const server = action.kind === 'tool' && action.server ? { mcp_server: action.server } : {};
  const { trace_id, tracestate, trace_flags } = action.trace ?? {};
  // An agent of this protocol has a name of its own for its session; ours is the one that notices have.
  const { ahp } = action.context ?? {};
  const { session_id: named, context } = isObject(ahp) ? (ahp as JsonObject) : {};
  const metadata = {
    via,
    ...(typeof named === 'string' && { agent_session_id: named }),
    ...server,
    ...(trace_id && { trace_id }),
    ...(tracestate && { tracestate }),
    ...(trace_flags && { trace_flags }),
  };
  const { type: event_type, payload } = asked;
  const about = isObject(context) ? { context: context as JsonObject } : {};
  return {
    kind: 'event',
    event: { event_type, session_id, agent_id, timestamp: now, depth, payload, ...about, metadata },
  };
}

const YES = new Set(['yes', 'true', 'allow', 'approve']);

/** A harness's answer to a query. Only a plain yes is a yes; any other answer becomes the reason of a no. */
export function toCoreAnswer({ answer, reason }: JsonObject, engine: string): Decision {
  const said = typeof answer === 'string' ? answer : JSON.stringify(answer);
  const why = typeof reason === 'string' && reason ? reason : `${engine} answers ${said.slice(0, 200)}`;
  const yes = answer === true || (typeof answer === 'string' && YES.has(answer.trim().toLowerCase()));
  return yes
    ? { verdict: 'allow', code: 'answered', reason: why, engine }
    : { verdict: 'block', code: 'answered', reason: why, engine };
}

function questionOf(action: Action): { type: EventType; payload: Json } | undefined {
  // Acts of an agent of this protocol keep their original payload.
  const asked = action.server === 'ahp' ? typed(action) : undefined;
  if (asked) return asked;
  switch (action.kind) {
    case 'tool':
    case 'fs.read':
    case 'fs.write':
    case 'terminal':
    case 'memory.write':
      return call(action, action.tool ?? action.kind, action.arguments);
    case 'handoff':
      return call(action, `a2a:${action.target ?? action.tool ?? 'agent'}`, action.arguments);
    case 'prompt': {
      const prompt = textOf(action);
      const task = action.task_id && { task_id: action.task_id };
      return prompt === undefined ? undefined : { type: 'pre_prompt', payload: { prompt, ...task } };
    }
    default:
      return undefined;
  }
}

/** Both names for the tool: harnesses read either. */
function call(action: Action, tool: string, args: JsonObject): { type: EventType; payload: Json } {
  const path = action.target ? { target: action.target } : {};
  return {
    type: 'pre_action',
    payload: { action_type: 'tool_call', tool_name: tool, tool, arguments: args, ...path },
  };
}

const FORWARDED = new Set([
  'idle',
  'intent_detection',
  'context_perception',
  'memory_recall',
  'planning',
  'rate_limit',
  'reasoning',
]);

function typed({
  tool = '',
  arguments: args,
  session_id,
  attributes,
}: Action): { type: EventType; payload: Json } | undefined {
  if (tool.startsWith('confirmation:'))
    return { type: 'confirmation', payload: { session_id: session_id ?? '', ...args } };
  if (!FORWARDED.has(tool)) return undefined;
  const session = tool === 'idle' ? {} : { session_id: session_id ?? asText(attributes?.agent_id ?? '') };
  if (tool !== 'reasoning') return { type: tool as EventType, payload: { ...session, ...args } };
  // What the agent thinks stays here: its kind is asked about, and a hash stands for the rest.
  const { content_hash, ...shown } = args;
  const problem_statement = `withheld (${asText(content_hash)})`;
  return { type: 'reasoning', payload: { ...session, ...shown, problem_statement } };
}

function textOf({ arguments: args }: Action): string | undefined {
  if (typeof args.prompt === 'string') return args.prompt;
  const { parts } = (isObject(args.input) ? args.input : {}) as { parts?: unknown };
  if (!Array.isArray(parts)) return undefined;
  const texts = parts.flatMap(({ type, text }: { type?: unknown; text?: unknown }) =>
    type === 'text' && typeof text === 'string' ? [text] : [],
  );
  return texts.length > 0 ? texts.join('\n') : undefined;
}

/** The longest deferral. */
const LONGEST_DEFER_MS = 60_000;

export function toCoreDecision(action: Action, event: AhpEvent, said: JsonObject, engine: string): Decision {
  const family: Family = eventRow(event.event_type).answer ?? 'generic';
  const words: Readonly<Record<string, Decision['verdict']>> = verdictOf[family];
  const word = asText(said.decision);
  const verdict = Object.hasOwn(words, word) ? words[word] : 'block';
  const reason = typeof said.reason === 'string' && said.reason ? said.reason : `${engine} says ${word}`;
  const rewritten = said.modified_payload !== undefined && said.modified_payload !== null;
  if (verdict === 'modify' || (verdict === 'allow' && rewritten)) {
    const args = argumentsIn(action, event, said);
    if (args) return { verdict: 'modify', reason, engine, arguments: args };
    return {
      verdict: 'block',
      reason: `${reason} (what it would run instead cannot be read)`,
      code: 'cannot_modify',
      engine,
    };
  }
  const added = verdict === 'allow' ? withAdditions(action.arguments, event.event_type, said) : undefined;
  if (added) return { verdict: 'modify', reason, engine, arguments: added };
  if (verdict === 'defer') {
    const ms = typeof said.retry_after_ms === 'number' ? said.retry_after_ms : LONGEST_DEFER_MS;
    return { verdict: 'defer', reason, engine, retry_after_ms: Math.min(ms, LONGEST_DEFER_MS) };
  }
  if (verdict === 'escalate' && typeof said.escalation_target === 'string') {
    return { verdict, reason: `${reason} (ask ${said.escalation_target})`, engine };
  }
  return { verdict: verdict ?? 'block', reason, engine, ...(verdict === 'allow' && { code: 'no_objection' }) };
}

/** A replacement payload, as arguments of the act. */
function argumentsIn(action: Action, event: AhpEvent, said: JsonObject): JsonObject | undefined {
  if (event.event_type === 'planning') {
    return typeof said.modified_task === 'string'
      ? { ...action.arguments, task_description: said.modified_task }
      : undefined;
  }
  const payload = said.modified_payload;
  if (event.event_type === 'pre_prompt') return promptIn(action, payload as Json);
  if (!isObject(payload)) return undefined;
  const args = ['arguments', 'args', 'input'].map((key) => payload[key]).find(isObject);
  const named = ['tool_name', 'tool', 'name'].map((key) => payload[key]).find((name) => typeof name === 'string');
  // Another tool is another act, which was not asked about.
  const original = event.payload as JsonObject;
  if (named !== undefined && named !== original.tool_name) return undefined;
  return args as JsonObject | undefined;
}

function promptIn({ arguments: args }: Action, payload: Json): JsonObject | undefined {
  const text = typeof payload === 'string' ? payload : isObject(payload) ? payload.prompt : undefined;
  if (typeof text !== 'string') return undefined;
  if (typeof args.prompt === 'string') return { ...args, prompt: text };
  const input = args.input as JsonObject;
  const rest = (input.parts as readonly JsonObject[]).filter(({ type }) => type !== 'text');
  return {
    ...args,
    input: { ...input, parts: [{ type: 'text', text, visibility: 'public' }, ...rest] as Json },
  };
}
