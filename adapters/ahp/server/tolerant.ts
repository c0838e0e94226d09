/**
 * A second, tolerant decoding of the messages of real agents: documented deviations are corrected, and messages that still do
 * not fit are refused in the event's own words rather than with an error, because agents take an error for a yes. Pure.
 */

import { WORDS } from '../../../mappings/ahp.ts';
import type { Json, JsonObject } from '../../../src/index.ts';
import { asText, isObject } from '../../../src/index.ts';
import { Misfit } from '../decode.ts';
import { payloadShapes, shapes, type TypedEvent } from '../shapes.ts';

interface Read {
  readonly value: JsonObject;
  /** The reason why strict decoding failed, when the tolerant one succeeded. */
  readonly mended?: string;
}

/** A typed payload, strictly or after corrections. Throws `Misfit` with the first error when neither works. */
export function readPayload(type: TypedEvent, payload: Json | undefined, envelope: { session_id: string }): Read {
  const shape = payloadShapes[type];
  try {
    return { value: shape(payload) as JsonObject };
  } catch (first) {
    if (!(first instanceof Misfit) || !isObject(payload)) throw first;
    try {
      return { value: shape(mend(type, payload as JsonObject, envelope)) as JsonObject, mended: first.message };
    } catch {
      throw first;
    }
  }
}

/** Handshakes of older peers and examples omit members; defaults are filled in. */
export function readHandshake(params: Json): Read {
  try {
    return { value: shapes.HandshakeRequest(params) as JsonObject };
  } catch (first) {
    if (!(first instanceof Misfit) || !isObject(params)) throw first;
    const { agent_info = {}, ...rest } = present(params);
    const filled = {
      protocol_version: '2.0',
      session_id: '',
      agent_id: '',
      ...rest,
      agent_info: isObject(agent_info) ? { ...NAMELESS, ...present(agent_info) } : agent_info,
    };
    try {
      return { value: shapes.HandshakeRequest(filled) as JsonObject, mended: first.message };
    } catch {
      throw first;
    }
  }
}

const NAMELESS = { framework: 'unknown', version: 'unknown', capabilities: [] };

function present(value: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined && member !== null));
}

const ENUM_MEMBERS: Readonly<Record<string, readonly string[]>> = {
  intent: WORDS.intent,
  domain: WORDS.domain,
  preferred_modality: WORDS.modality,
  urgency: WORDS.urgency,
  freshness: WORDS.freshness,
  reasoning_type: WORDS.reasoning,
  limit_type: WORDS.limit,
  confirmation_type: WORDS.confirmation,
};
const OPEN_ENUMS: Readonly<Record<string, string>> = {
  reasoning_type: 'other',
  limit_type: 'custom',
  confirmation_type: 'custom',
};

function mend(type: TypedEvent, payload: JsonObject, envelope: { session_id: string }): JsonObject {
  const mended: Record<string, Json> = { session_id: envelope.session_id };
  for (const [name, value] of Object.entries(payload)) {
    // Null is not a word; where a word has a default, omitting it means the same.
    if (value === undefined || (value === null && Object.hasOwn(ENUM_MEMBERS, name))) continue;
    // Assigning it would set the prototype of the object instead of a member.
    if (name === '__proto__') continue;
    mended[name] = mendWord(name, value);
  }
  if (type === 'context_perception') mendPerception(mended);
  if (type === 'memory_recall') Object.assign(mended, { ...RECALL, ...mended });
  if (type === 'intent_detection') Object.assign(mended, { workspace: '', ...mended });
  if (type === 'planning') mended.available_strategies = strategies(mended.available_strategies);
  if (type === 'rate_limit') Object.assign(mended, { retry_after_ms: 0, ...mended, current_usage: usage(mended) });
  return mended;
}
const RECALL = { memory_type: 'any', max_results: 10, working_directory: '' };

function mendWord(name: string, value: Json): Json {
  const words = Object.hasOwn(ENUM_MEMBERS, name) ? ENUM_MEMBERS[name] : undefined;
  if (!words || typeof value !== 'string') return value;
  const snake = snakeCase(value);
  if (words.includes(snake)) return snake;
  const open = Object.hasOwn(OPEN_ENUMS, name) ? OPEN_ENUMS[name] : undefined;
  return open ? { [open]: value } : value;
}

/** `SafetyConfirm` → `safety_confirm`, `ReAct` → `re_act`. */
function snakeCase(word: string): string {
  return word
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/[\s-]+/g, '_')
    .toLowerCase();
}

/** A flat perception has the members of its target and surroundings beside the rest. */
function mendPerception(flat: Record<string, Json>): void {
  if (!isObject(flat.target)) {
    flat.target = {
      entity: {
        name: asText(flat.target_name ?? flat.query ?? ''),
        entity_type: asText(flat.target_type ?? 'unknown'),
      },
    };
  }
  if (!isObject(flat.context)) {
    const workspace = asText(flat.working_directory ?? flat.workspace ?? '');
    flat.context = { workspace, ...(typeof flat.query === 'string' && { query: flat.query }) };
  }
}

function strategies(list: Json | undefined): Json {
  if (!Array.isArray(list)) return [];
  return list.map((item: Json) => {
    if (typeof item !== 'string') return item;
    const snake = snakeCase(item);
    return (WORDS.strategy as readonly string[]).includes(snake) ? snake : { custom: item };
  });
}

function usage({ current_usage: value }: Record<string, Json>): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? null);
}
