/**
 * What events may show of an override. A value that is not public is in no event: its hash and its location are there instead.
 * Output of an agent that was given such a value is shown as far as the record contains the same, and withheld otherwise: a text
 * does not show how it was derived.
 */
import { type CoreEvent, withMembers } from '../../model/events.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import { own } from '../../model/values/own.ts';
import { type Applied, changesEvent } from './overrides.ts';

/** Longer values are shown by their hash, public or not: an event is no place for a file. */
const LONGEST_INLINE = 64 * 1024;

export function isHidden({ visibility }: Pick<Applied, 'visibility'>): boolean {
  return visibility !== 'public';
}

/** The value of an override as an event shows it. */
export function shownValue(applied: Applied): Json {
  const { key, value, sha256, visibility, override } = applied;
  // A removed value reveals nothing.
  if (value === null) return null;
  if (!isHidden(applied) && JSON.stringify(value).length <= LONGEST_INLINE) return value;
  return {
    type: 'replay_override',
    override_key: key,
    visibility,
    sha256,
    ...(override.artifact_id && { artifact_id: override.artifact_id }),
  };
}

/** The member of a payload that an override of this kind replaces; undefined: the whole payload. */
export function memberOf(kind: string): string | undefined {
  if (kind === 'event_payload') return undefined;
  return own(MEMBERS, kind) ?? 'output';
}
const MEMBERS: Readonly<Record<string, string>> = { llm_provider_response: 'response', checkpoint_value: 'value' };

export interface ShownEvent {
  /** The event as the replay writes it; undefined when an override removes it. */
  readonly shown: CoreEvent | undefined;
  /** The payload as an agent that is run again gets it. */
  readonly received: JsonObject;
}

export function showEvent(event: CoreEvent, applied: readonly Applied[], known: Known): ShownEvent {
  const found = applied.find(({ dependency }) => changesEvent(dependency) && dependency.event_id === event.id);
  if (!found) return { shown: event, received: event.payload };
  const { value, override } = found;
  const member = memberOf(override.kind);
  if (member) {
    const with_ = (value: Json): JsonObject => ({ ...event.payload, [member]: value });
    return { shown: withMembers(event, { [member]: shownValue(found) }), received: with_(value) };
  }
  if (value === null) return { shown: undefined, received: event.payload };
  const payload = value as JsonObject;
  const shown = isHidden(found) ? (known.withhold(payload) as JsonObject) : payload;
  // A person replaced the payload of an event of this kind.
  return { shown: { ...event, payload: shown } as CoreEvent, received: payload };
}

export interface Known {
  /** The value without the parts that occur nowhere in the record. */
  withhold(value: Json): Json;
}

export const WITHHELD = '[withheld: depends on a value that is not public]';

/** All strings and numbers of the record, and the words that any record may contain. */
export function knownFrom(events: readonly CoreEvent[]): Known {
  let words: Set<Json> | undefined;
  const aliases = new Map<string, string>();
  const gather = (): Set<Json> => {
    const found = new Set<Json>(VOCABULARY);
    const add = (value: Json | undefined): void => {
      if (typeof value === 'string' || typeof value === 'number') found.add(value);
      else if (Array.isArray(value)) value.forEach(add);
      else if (value) {
        for (const [name, member] of Object.entries(value)) {
          found.add(name);
          add(member);
        }
      }
    };
    for (const event of events) add(event);
    return found;
  };

  function withhold(value: Json): Json {
    words ??= gather();
    if (typeof value === 'string') return value === '' || words.has(value) ? value : WITHHELD;
    if (typeof value === 'number') return words.has(value) ? value : null;
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) return value.map(withhold);
    const members = Object.entries(value);
    // A member's name may reveal as much as a value.
    if (members.some(([name]) => !words?.has(name))) return WITHHELD;
    return Object.fromEntries(
      members.flatMap(([name, member]) =>
        member === undefined ? [] : [[name, isId(name, member) ? alias(member) : withhold(member)] as const],
      ),
    );
  }
  function isId(name: string, member: Json): member is string {
    return typeof member === 'string' && (name === 'id' || name.endsWith('_id'));
  }
  /** Pieces of one message keep a common id, whatever it is. */
  function alias(id: string): string {
    if (words?.has(id)) return id;
    const name = aliases.get(id) ?? `withheld-${aliases.size + 1}`;
    aliases.set(id, name);
    return name;
  }
  return { withhold };
}

/** Members and words of the events core itself interprets: they describe what happened, not the agent's text. */
const VOCABULARY: readonly Json[] = [
  ...['allow', 'block', 'modify', 'defer', 'escalate', 'verdict', 'reason', 'engine', 'rule_id', 'code', 'action'],
  ...['decision', 'arguments', 'approved', 'denied', 'answered', 'expired', 'canceled', 'state', 'by', 'at', 'answer'],
  ...['ask_id', 'ok', 'error', 'status', 'output', 'name', 'tool_call_id', 'message', 'parts', 'text', 'type', 'role'],
  ...['visibility', 'public', 'internal', 'receipt_only', 'value', 'json', 'content', 'id', 'object', 'metadata', 0],
  ...[
    'COMPLETED',
    'FAILED',
    'CANCELED',
    'summary',
    'failure',
    'details',
    'span',
    'kind',
    'call_id',
    'response',
    'model',
  ],
  ...['provider', 'entries', 'step', 'in_progress', 'pending', 'completed', 'message_id', 'assistant', 'user'],
  ...[
    'input_tokens',
    'output_tokens',
    'usd_micros',
    'input',
    'effect',
    'evidence',
    'held',
    'asked',
    'observed',
    'server',
  ],
  ...[
    'target',
    'definition',
    'key',
    'question',
    'artifact',
    'sha256',
    'mime_type',
    'uri',
    'artifact_id',
    'artifact_ref',
  ],
];
