/**
 * The Harn profile: members under `_meta.harn`, read from there and from where older agents put them, and always written where
 * the specification says. Pure.
 */

import {
  ADVERTISED,
  AGENT_EVENT,
  AGENT_EVENT_SCHEMA,
  CATALOG_SCHEMA,
  CATALOG_VERSION,
  CONTENT_FIELDS,
  CONTRACT,
  HOST_CAPABILITIES,
  harnRow,
  LATER_TOOL_FIELDS,
  PROVIDER_CATALOG,
  SCHEMA,
  TOOL_FIELDS,
  WORKER_EVENTS,
  type WorkerEvent,
} from '../../mappings/acp-harn.ts';
import type { Json, JsonObject } from '../../src/index.ts';
import { asText } from '../../src/index.ts';
import { objectOf, textOf, within } from './shapes.ts';

/** The capabilities we advertise in `agentCapabilities._meta.harn`. */
export function harnCapabilities(catalog: boolean): JsonObject {
  const agentEvent = { description: 'What the loop of an agent tells of itself.', schema: AGENT_EVENT_SCHEMA };
  const providerCatalog = {
    description: 'The providers and models an agent can use.',
    schema: CATALOG_SCHEMA,
    schemaVersion: CATALOG_VERSION,
  };
  return {
    schemaCompatibility: SCHEMA,
    extensionContract: CONTRACT,
    sessionUpdateExtensions: [...ADVERTISED],
    toolLifecycleExtensionFields: [...TOOL_FIELDS],
    contentExtensionFields: [...CONTENT_FIELDS],
    extensionMethods: { [AGENT_EVENT]: agentEvent, ...(catalog && { [PROVIDER_CATALOG]: providerCatalog }) },
    hostCapabilityOperations: HOST_CAPABILITIES,
  };
}

/** True when an agent declares a provider catalog. */
export function hasToolCatalog(agentCapabilities: unknown): boolean {
  return objectOf(within(agentCapabilities, '_meta', 'harn', 'extensionMethods', PROVIDER_CATALOG)) !== undefined;
}

/** Members of an update, from either location; the specified one takes precedence. */
export function harnFields(update: JsonObject, fields: readonly string[]): JsonObject {
  const proper = objectOf(within(update, '_meta', 'harn')) ?? {};
  const found: Record<string, Json> = {};
  for (const field of fields) {
    const value = proper[field] ?? update[field];
    if (value !== undefined && (value !== null || field === 'snapshotAssetId')) found[field] = value;
  }
  return found;
}

/** The payload of a Harn update: the members its row names, and all other members in the specified location. */
export function harnPayload(update: JsonObject): JsonObject {
  const row = harnRow(asText(update.sessionUpdate));
  const { replayed: _, ...proper } = objectOf(within(update, '_meta', 'harn')) ?? {};
  return { ...harnFields(update, row?.fields ?? []), ...proper };
}

export function toolFields(update: JsonObject): JsonObject {
  return harnFields(update, [...TOOL_FIELDS, ...LATER_TOOL_FIELDS]);
}

/** A Harn update as we send it: the discriminator at the root, everything else below `_meta.harn`. */
export function harnUpdate(kind: string, payload: JsonObject): JsonObject {
  return { sessionUpdate: kind, _meta: { harn: payload } };
}

const TOOL_KINDS = new Set(['tool_call', 'tool_call_update']);
const CHUNKS = new Set(['agent_message_chunk', 'agent_thought_chunk', 'user_message_chunk']);

/** An update with its Harn members moved to the specified location. Other members are unchanged. */
export function normalised(update: JsonObject): JsonObject {
  const kind = asText(update.sessionUpdate);
  if (CHUNKS.has(kind)) {
    const original = objectOf(update.content);
    const content = original && moved(original, CONTENT_FIELDS);
    return content === original ? update : { ...update, content: content as JsonObject };
  }
  if (TOOL_KINDS.has(kind)) return moved(update, [...TOOL_FIELDS, ...LATER_TOOL_FIELDS]);
  const row = harnRow(kind);
  return row ? moved(update, row.fields) : update;
}

function moved(value: JsonObject, fields: readonly string[]): JsonObject {
  if (!fields.some((field) => Object.hasOwn(value, field))) return value;
  const stray = fields.filter((field) => field in value);
  const rest = Object.fromEntries(Object.entries(value).filter(([name]) => !stray.includes(name)));
  const meta = objectOf(value._meta) ?? {};
  const harn = { ...Object.fromEntries(stray.map((field) => [field, value[field]])), ...objectOf(meta.harn) };
  return { ...rest, _meta: { ...meta, harn } } as JsonObject;
}

/** The text of a chunk for people; Harn removes markers from the output of its models. */
export function visibleText(content: JsonObject): string | undefined {
  const delta = within(content, '_meta', 'harn', 'visible_delta') ?? content.visible_delta;
  if (typeof delta === 'string') return delta;
  return typeof content.text === 'string' ? content.text : undefined;
}

/** A worker's event in either of its two spellings. */
export function workerEvent(word: unknown): WorkerEvent | undefined {
  const spelled = textOf(word)
    ?.split('_')
    .map((piece) => piece.charAt(0).toUpperCase() + piece.slice(1))
    .join('');
  return spelled !== undefined && Object.hasOwn(WORKER_EVENTS, spelled) ? (spelled as WorkerEvent) : undefined;
}

/** The words of a command that an agent has its host run: a list, a program with arguments, or a line for a shell. */
export function hostCommand(args: JsonObject, shell = '/bin/sh'): readonly string[] {
  const words = (value: unknown) =>
    Array.isArray(value) && value.every((word) => typeof word === 'string') ? value : undefined;
  const argv = words(args.argv) ?? words(args.command);
  if (argv) return argv;
  const line = textOf(args.command) ?? textOf(args.program) ?? textOf(args.script);
  if (!line) return [];
  const rest = words(args.args);
  return rest ? [line, ...rest] : [shell, '-c', line];
}
