/** Pure conversions: events to acts for the gate, and decisions to the words of each family. */
import { hash } from 'node:crypto';
import { type EventType, type Family, intentWords, type SoftWord, spoken, toolEffects } from '../../mappings/ahp.ts';
import {
  canonicalJson,
  type Decision,
  type Effect,
  isObject,
  type Json,
  type JsonObject,
  type ProposedAction,
  type Verdict,
} from '../../src/index.ts';

export type AhpEvent = {
  readonly event_type: EventType;
  readonly session_id: string;
  readonly agent_id: string;
  readonly timestamp: string;
  readonly depth: number;
  readonly payload: Json;
  readonly context?: JsonObject;
  readonly metadata?: JsonObject;
};

/** A decision, and all data a family may include in its answer. */
export interface GateDecision {
  /** `failed`: no decision was reached. */
  readonly verdict: Verdict | 'failed';
  readonly reason: string;
  readonly arguments?: JsonObject;
  readonly retry_after_ms?: number;
  /** The open question, when one waits for people. */
  readonly ask_id?: string;
  readonly metadata?: JsonObject;
}

export function toGateDecision({
  verdict,
  reason,
  arguments: args,
  retry_after_ms,
  ...decision
}: Decision): GateDecision {
  const { rule_id, code } = decision;
  return {
    verdict,
    reason,
    ...(args && { arguments: args }),
    ...(retry_after_ms !== undefined && { retry_after_ms }),
    // Only a rule's decision has metadata; the default is not a policy.
    ...(rule_id && { metadata: { policy: rule_id, ...(code && { code }) } }),
  };
}

export function failed(reason: string): GateDecision {
  return { verdict: 'failed', reason };
}

/** A call and the keys under which the payload names it, so that a rewritten one uses the same keys. */
interface Call {
  readonly tool: string;
  readonly arguments: JsonObject;
  readonly argumentsKey: string;
}

export function readCall(payload: Json): Call {
  const object = isObject(payload) ? payload : {};
  const named = NAME_KEYS.find((key) => typeof object[key] === 'string' && object[key]);
  const tool = named ? (object[named] as string) : 'unknown';
  const key = ARGUMENT_KEYS.find((name) => isObject(object[name]));
  if (key) return { tool, arguments: object[key] as JsonObject, argumentsKey: key };
  const rest = Object.entries(object).filter(([name]) => !BESIDE_ARGUMENTS.has(name));
  return { tool, arguments: Object.fromEntries(rest), argumentsKey: '' };
}
/**
 * Members beside the arguments that also describe the act. It is unknown which of the two an agent acts on, so both are judged;
 * undefined when there are none, as with every agent that follows the protocol.
 */
export function besideArguments(payload: Json, { argumentsKey }: Call): JsonObject | undefined {
  if (argumentsKey === '' || !isObject(payload)) return undefined;
  const beside = Object.entries(payload as JsonObject).filter(
    ([name, value]) => name !== argumentsKey && ACT_MEMBERS.has(name) && value !== null && value !== '',
  );
  return beside.length > 0 ? Object.fromEntries(beside) : undefined;
}
const ACT_MEMBERS = new Set([
  ...['arguments', 'args', 'input', 'argv', 'command', 'cmd', 'script', 'code', 'path', 'paths', 'file', 'file_path'],
  ...['filepath', 'filename', 'url', 'uri', 'content', 'text', 'body', 'data', 'patch', 'diff', 'edits'],
]);

const NAME_KEYS = ['tool_name', 'tool', 'name'];
const ARGUMENT_KEYS = ['arguments', 'args', 'input'];
const BESIDE_ARGUMENTS = new Set(['tool_name', 'tool', 'name', 'action_type', 'working_directory', 'recent_tools']);

/** AHP has no call ids: the same tool with the same arguments is the same call. */
export function fingerprint(...parts: readonly Json[]): string {
  return hashOf(parts as Json).slice(0, 16);
}

/** SHA-256 of the canonical form, or of plain JSON where there is none, as hex. */
export function hashOf(value: Json): string {
  let spelled: string;
  try {
    spelled = canonicalJson(value);
  } catch {
    spelled = JSON.stringify(value);
  }
  return hash('sha256', spelled);
}

const TARGETS = ['file_path', 'path', 'filename', 'url', 'uri'];

export function toCoreAction(event: AhpEvent, call: Call, effects: Readonly<Record<string, Effect>>): ProposedAction {
  const { tool, arguments: args } = call;
  const beside = besideArguments(event.payload as Json, call);
  const target = TARGETS.map((key) => args[key]).find((value) => typeof value === 'string' && value);
  const effect = own(effects, tool) ?? own(toolEffects, tool) ?? 'unknown';
  const cwd = isObject(event.payload) ? (event.payload as JsonObject).working_directory : undefined;
  return {
    kind: 'tool',
    tool,
    arguments: beside ? { ...args, beside } : args,
    effect,
    evidence: 'asked',
    attributes: attributesOf(event),
    context: contextOf(event),
    ...(typeof cwd === 'string' && cwd !== '' && { cwd }),
    ...(typeof target === 'string' && { target }),
  };
}

function own<T>(record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}

/** Attributes of the agent for rules. All are claimed, none proven. */
export function attributesOf({ agent_id, depth, metadata }: AhpEvent): NonNullable<ProposedAction['attributes']> {
  const via = viaOf(metadata);
  return { agent_id, depth, ...(via.length > 0 && { via }) };
}

/** What a harness behind us is told beside the act: the agent's own name of its session, and its context. */
export function contextOf({ session_id, context }: AhpEvent): JsonObject {
  return { ahp: { session_id, ...(context && { context }) } };
}

/** The harnesses a question came through, oldest first. */
export function viaOf(metadata: JsonObject | undefined): readonly string[] {
  const via = metadata?.via;
  const hops = Array.isArray(via) ? via : via === undefined ? [] : [via];
  return hops.filter((hop): hop is string => typeof hop === 'string');
}

/** The text of a prompt, from any member in which agents put it. */
export function promptOf(payload: Json): { readonly key: string; readonly text: string } | undefined {
  if (typeof payload === 'string') return { key: '', text: payload };
  if (!isObject(payload)) return undefined;
  const key = ['prompt', 'text', 'message'].find((name) => typeof payload[name] === 'string');
  return key ? { key, text: payload[key] as string } : undefined;
}

// ---- Decisions on the wire ----

/** The decision for this agent: a soft decision it would not obey becomes a no that names it. */
export function asHonoured(gateDecision: GateDecision, honoured: ReadonlySet<SoftWord>): GateDecision {
  const { verdict, reason, ask_id, retry_after_ms, metadata } = gateDecision;
  if (verdict === 'escalate' && !honoured.has(verdict)) {
    const open = ask_id ? `not answered yet; question ${ask_id} stays open, ask again` : 'a person has to answer first';
    const about = ask_id ? { metadata: { ...metadata, question: ask_id } } : {};
    return { verdict: 'block', reason: `${reason} (${open})`, ...(metadata && { metadata }), ...about };
  }
  if (verdict === 'defer' && !honoured.has(verdict)) {
    const later = inMs(retry_after_ms ?? 1000);
    const about = { ...metadata, retry_after_ms: later };
    return { verdict: 'block', reason: `${reason} (put off; ask again in ${later} ms)`, metadata: about };
  }
  return gateDecision;
}

/** A payload with these arguments instead of its own: complete, with the sender's own keys. */
export type Rewrite = (args: JsonObject) => Json | undefined;

export function rewriteCall(payload: Json, { argumentsKey }: Call): Rewrite {
  return (args) => {
    if (!isObject(payload)) return undefined;
    if (argumentsKey) return { ...(payload as JsonObject), [argumentsKey]: args };
    const named = Object.entries(payload as JsonObject).filter(([name]) => BESIDE_ARGUMENTS.has(name));
    return { ...Object.fromEntries(named), ...args };
  };
}

export function rewritePrompt(payload: Json): Rewrite {
  const prompt = promptOf(payload);
  return (args) => {
    if (!prompt) return isObject(payload) ? args : undefined;
    if (typeof args.prompt !== 'string') return undefined;
    return prompt.key ? { ...(payload as JsonObject), [prompt.key]: args.prompt } : args.prompt;
  };
}

export function toWireGeneric(gateDecision: GateDecision, rewrite: Rewrite): JsonObject {
  const word = spoken.generic[gateDecision.verdict];
  const metadata = gateDecision.metadata && { metadata: gateDecision.metadata };
  switch (word) {
    case 'allow':
      return { decision: word, ...metadata };
    case 'modify': {
      const payload = gateDecision.arguments && rewrite(gateDecision.arguments);
      if (payload !== undefined) return { decision: word, modified_payload: payload, ...metadata };
      const reason = `${gateDecision.reason} (the rule rewrites it, which cannot be said in this payload)`;
      return { decision: 'block', reason, ...metadata };
    }
    case 'block':
      return { decision: word, reason: gateDecision.reason, ...metadata };
    case 'defer':
      return { decision: word, retry_after_ms: inMs(gateDecision.retry_after_ms ?? 1000), reason: gateDecision.reason };
    case 'escalate':
      return {
        decision: word,
        reason: gateDecision.reason,
        ...(gateDecision.ask_id && { escalation_target: gateDecision.ask_id }),
      };
  }
}

/** The refusal of a family. */
export function toWireRefusal(family: Family, gateDecision: GateDecision): JsonObject {
  const word = spoken[family][gateDecision.verdict];
  switch (family) {
    case 'idle':
      // Some agents use the generic reader for this, which requires a time to come back.
      return {
        decision: word,
        reason: gateDecision.reason,
        retry_after_ms: inMs(gateDecision.retry_after_ms ?? 60_000),
      };
    case 'rate_limit':
      if (word === 'retry') return { decision: word, retry_after_ms: inMs(gateDecision.retry_after_ms ?? 1000) };
      return word === 'queue' ? { decision: word } : { decision: word, reason: gateDecision.reason };
    case 'confirmation':
      return word === 'escalate' ? { decision: word } : { decision: 'reject', reason: gateDecision.reason };
    case 'generic':
      return toWireGeneric(gateDecision, () => undefined);
    default:
      return {
        decision: 'block',
        reason: gateDecision.reason,
        ...(gateDecision.metadata && metadataIn(family, gateDecision)),
      };
  }
}

/** Readers require whole milliseconds within range; the largest number a wire can carry is rounded up here to one that is not. */
function inMs(delay: number): number {
  return Math.min(Math.round(delay), Number.MAX_SAFE_INTEGER);
}

function metadataIn(family: Family, { metadata }: GateDecision): JsonObject {
  return family === 'intent_detection' || !metadata ? {} : { metadata };
}

/** The intent of a prompt, from its first known word; undefined leaves it to the agent. */
export function intentOf(prompt: string): string | undefined {
  const words = prompt.toLowerCase().match(/[a-z]+/g) ?? [];
  const found = words.slice(0, 6).find((word) => Object.hasOwn(intentWords, word));
  return found && intentWords[found];
}
