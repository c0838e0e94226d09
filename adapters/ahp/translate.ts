/** The pure middle: what an event asks of the gate, and how a ruling is said in each family's words. */
import { hash } from 'node:crypto';
import { type EventType, type Family, intentWords, type SoftWord, spoken, toolEffects } from '../../mappings/ahp.ts';
import {
  canonicalJson,
  type Decision,
  type Effect,
  type Json,
  type JsonObject,
  type ProposedAction,
  type Verdict,
} from '../../src/index.ts';
import { isObject } from './decode.ts';

export interface AhpEvent {
  readonly event_type: EventType;
  readonly session_id: string;
  readonly agent_id: string;
  readonly timestamp: string;
  readonly depth: number;
  readonly payload: Json;
  readonly context?: JsonObject;
  readonly metadata?: JsonObject;
}

/** What was ruled, and everything a family may want to say about it. */
export interface Ruled {
  /** `failed`: nobody decided. */
  readonly verdict: Verdict | 'failed';
  readonly reason: string;
  readonly arguments?: JsonObject;
  readonly retry_after_ms?: number;
  /** The open question, when one waits for people. */
  readonly ask_id?: string;
  readonly metadata?: JsonObject;
}

export function ruledBy({ verdict, reason, arguments: args, retry_after_ms, ...decision }: Decision): Ruled {
  const { rule_id, code } = decision;
  return {
    verdict,
    reason,
    ...(args && { arguments: args }),
    ...(retry_after_ms !== undefined && { retry_after_ms }),
    // Only what a rule said has something worth repeating; the default is no policy.
    ...(rule_id && { metadata: { policy: rule_id, ...(code && { code }) } }),
  };
}

export function failed(reason: string): Ruled {
  return { verdict: 'failed', reason };
}

/** A call as the payload names it, and under which keys, so that a rewritten one goes back under the same. */
export interface Call {
  readonly tool: string;
  readonly arguments: JsonObject;
  readonly argumentsKey: string;
}

export function readCall(payload: Json): Call {
  const given = isObject(payload) ? (payload as JsonObject) : {};
  const named = NAME_KEYS.find((key) => typeof given[key] === 'string' && given[key]);
  const tool = named ? (given[named] as string) : 'unknown';
  const key = ARGUMENT_KEYS.find((name) => isObject(given[name]));
  if (key) return { tool, arguments: given[key] as JsonObject, argumentsKey: key };
  const rest = Object.entries(given).filter(([name]) => !BESIDE_ARGUMENTS.has(name));
  return { tool, arguments: Object.fromEntries(rest), argumentsKey: '' };
}
/**
 * Members beside the arguments that also say what is done. Nobody can tell which of the two an agent acts on, so both are judged;
 * undefined when there are none, as with every agent that keeps to the protocol.
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

/** SHA-256 of its canonical form, or of its own where it has none, as hex. */
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
    ...(typeof cwd === 'string' && cwd !== '' && { cwd }),
    ...(typeof target === 'string' && { target }),
  };
}

function own<T>(record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}

/** What rules may want to know about the asker. All of it is claimed, none of it proven. */
export function attributesOf({ agent_id, depth, metadata }: AhpEvent): NonNullable<ProposedAction['attributes']> {
  const via = viaOf(metadata);
  return { agent_id, depth, ...(via.length > 0 && { via }) };
}

/** The harnesses a question came through, oldest first. */
export function viaOf(metadata: JsonObject | undefined): readonly string[] {
  const via = metadata?.via;
  const hops = Array.isArray(via) ? via : via === undefined ? [] : [via];
  return hops.filter((hop): hop is string => typeof hop === 'string');
}

/** The words of a prompt, wherever the agent put them. */
export function promptOf(payload: Json): { readonly key: string; readonly text: string } | undefined {
  if (typeof payload === 'string') return { key: '', text: payload };
  if (!isObject(payload)) return undefined;
  const key = ['prompt', 'text', 'message'].find((name) => typeof payload[name] === 'string');
  return key ? { key, text: payload[key] as string } : undefined;
}

// ---- Rulings, spoken ----

/** What this agent is told: a word it would not obey is a no that says what it stands for. */
export function asHonoured(ruled: Ruled, honoured: ReadonlySet<SoftWord>): Ruled {
  const { verdict, reason, ask_id, retry_after_ms, metadata } = ruled;
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
  return ruled;
}

/** A payload with these arguments instead of its own: complete, in the sender's own vocabulary. */
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

export function toWireGeneric(ruled: Ruled, rewrite: Rewrite): JsonObject {
  const word = spoken.generic[ruled.verdict];
  const metadata = ruled.metadata && { metadata: ruled.metadata };
  switch (word) {
    case 'allow':
      return { decision: word, ...metadata };
    case 'modify': {
      const payload = ruled.arguments && rewrite(ruled.arguments);
      if (payload !== undefined) return { decision: word, modified_payload: payload, ...metadata };
      const reason = `${ruled.reason} (the rule rewrites it, which cannot be said in this payload)`;
      return { decision: 'block', reason, ...metadata };
    }
    case 'block':
      return { decision: word, reason: ruled.reason, ...metadata };
    case 'defer':
      return { decision: word, retry_after_ms: inMs(ruled.retry_after_ms ?? 1000), reason: ruled.reason };
    case 'escalate':
      return {
        decision: word,
        reason: ruled.reason,
        ...(ruled.ask_id && { escalation_target: ruled.ask_id }),
      };
  }
}

/** The refusal of a family: what it says when nothing may happen. */
export function toWireRefusal(family: Family, ruled: Ruled): JsonObject {
  const word = spoken[family][ruled.verdict];
  switch (family) {
    case 'idle':
      // Some agents read this with the generic reader, which wants to know when to come back.
      return { decision: word, reason: ruled.reason, retry_after_ms: inMs(ruled.retry_after_ms ?? 60_000) };
    case 'rate_limit':
      if (word === 'retry') return { decision: word, retry_after_ms: inMs(ruled.retry_after_ms ?? 1000) };
      return word === 'queue' ? { decision: word } : { decision: word, reason: ruled.reason };
    case 'confirmation':
      return word === 'escalate' ? { decision: word } : { decision: 'reject', reason: ruled.reason };
    case 'generic':
      return toWireGeneric(ruled, () => undefined);
    default:
      return { decision: 'block', reason: ruled.reason, ...(ruled.metadata && metadataIn(family, ruled)) };
  }
}

/** Readers want whole milliseconds that fit; the largest a wire can carry is rounded up here to one that does not. */
function inMs(delay: number): number {
  return Math.min(Math.round(delay), Number.MAX_SAFE_INTEGER);
}

function metadataIn(family: Family, { metadata }: Ruled): JsonObject {
  return family === 'intent_detection' || !metadata ? {} : { metadata };
}

/** The intent a prompt gives away by its first telling word; undefined leaves it to the agent. */
export function intentOf(prompt: string): string | undefined {
  const words = prompt.toLowerCase().match(/[a-z]+/g) ?? [];
  const found = words.slice(0, 6).find((word) => Object.hasOwn(intentWords, word));
  return found && intentWords[found];
}
