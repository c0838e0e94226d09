/**
 * Visibility: what of a resource or an event a reader is shown. The public view is the default at every door; a door may ask for
 * internal content (`Actor.sees`), and gets it where the credential has the scope `internal:read`. Receipt-only content is in no
 * event, message or stream: such an artifact or memory is read by itself, with the receipts scope. Withheld content is replaced by
 * a descriptor, so that a reader knows of it. An unknown visibility counts as the strictest.
 */

import type { Actor } from '../../model/actions.ts';
import type { CommandKind } from '../../model/commands.ts';
import { type CoreEvent, withMembers } from '../../model/events.ts';
import type { Json, JsonObject } from '../../model/schema.ts';
import { isObject } from '../../model/values/is-object.ts';
import { own } from '../../model/values/own.ts';
import type { Accepted, Row } from '../../ports/index.ts';
import { holds } from '../access.ts';

export interface Sight {
  readonly internal: boolean;
  /** For a resource that is read by itself, never for an event. */
  readonly receiptOnly: boolean;
}

const PUBLIC: Sight = { internal: false, receiptOnly: false };

/** The actor's view. Only the public view unless its door asked for more. */
export function sightOf(actor: Actor): Sight {
  if (actor.sees !== 'internal') return PUBLIC;
  return { internal: holds(actor, 'internal:read'), receiptOnly: holds(actor, 'receipts:read') };
}

/** The resource as it may be shown; the same object where nothing is withheld. */
export function shownRow<T extends Row>(row: T, sight: Sight): T {
  const show = own(SHOWN, row.object);
  // Rows are stored as JSON, and content is replaced by a descriptor in the same place.
  return show ? (show(row as T & JsonObject, sight) as T & JsonObject) : row;
}

/** The event as it may be shown; the same object where nothing is withheld, which is nearly always. */
export function shownEvent(event: CoreEvent, { internal }: Sight): CoreEvent {
  const { payload } = event;
  if (!isObject(payload)) return event;
  const sight: Sight = { internal, receiptOnly: false };
  let shown = payload;
  for (const name of CARRIERS) {
    const value = payload[name];
    if (!isObject(value)) continue;
    const part = CARRIED[name](value, sight);
    if (part !== value) shown = { ...shown, [name]: part };
  }
  return shown === payload ? event : withMembers(event, shown);
}

type Show = (value: JsonObject, sight: Sight) => JsonObject;
/** Kinds of resource whose content has a visibility. */
const SHOWN: Readonly<Record<string, Show>> = { message, task, artifact, outcome, memory };

/** The result of a command passes the same filter as every read: it may contain other principals' content. */
export function shownAccepted<K extends CommandKind>(accepted: Accepted<K>, actor: Actor): Accepted<K> {
  const { resource, written } = accepted;
  const sight = sightOf(actor);
  const row = resource && shownRow(resource, sight);
  const events = written?.map((event) => shownEvent(event, sight));
  const same = row === resource && (events?.every((event, at) => event === written?.[at]) ?? true);
  return same
    ? accepted
    : { ...accepted, resource: row as Accepted<K>['resource'], ...(events && { written: events }) };
}

/** Members of a payload that hold resources whose content has a visibility. */
const CARRIED = {
  message,
  artifact,
  task,
  outcome,
  resource: (value: JsonObject, sight: Sight) => (value.object === 'memory' ? memory(value, sight) : value),
} as const;
const CARRIERS = Object.keys(CARRIED) as (keyof typeof CARRIED)[];

export function maySee(visibility: unknown, { internal, receiptOnly }: Sight): boolean {
  if (visibility === undefined || visibility === null || visibility === 'public') return true;
  return visibility === 'internal' ? internal : visibility === 'receipt_only' && receiptOnly;
}

function message(value: JsonObject, sight: Sight): JsonObject {
  return withParts(value, sight);
}

function task(value: JsonObject, sight: Sight): JsonObject {
  if (!isObject(value.input)) return value;
  const input = withParts(value.input, sight);
  return input === value.input ? value : { ...value, input };
}

function withParts(value: JsonObject, sight: Sight): JsonObject {
  if (!Array.isArray(value.parts)) return value;
  const parts = each(value.parts, (part) => shownPart(part, sight));
  return parts === value.parts ? value : { ...value, parts };
}

/** The descriptor of a withheld part: its type and visibility, and for a reference also its target, which is not content. */
function shownPart(part: JsonObject, sight: Sight): JsonObject {
  // In place of receipt-only content the log has a reference; a reader of internal content sees the reference.
  const sees = part.type === 'artifact_ref' && part.visibility === 'receipt_only' ? sight.internal : undefined;
  if (sees ?? maySee(part.visibility, { ...sight, receiptOnly: false })) return part;
  const { type, visibility, artifact_id, sha256 } = part;
  return {
    type: 'redacted',
    visibility,
    part_type: type,
    ...(type === 'artifact_ref' && { artifact_id, ...(sha256 !== undefined && { sha256 }) }),
  };
}

function artifact(value: JsonObject, sight: Sight): JsonObject {
  if (maySee(value.visibility, sight)) return value;
  const { bytes, spilled } = isObject(value.metadata) ? value.metadata : {};
  const metadata = { redacted: true, ...(bytes !== undefined && { bytes }), ...(spilled !== undefined && { spilled }) };
  return { ...value, uri: null, metadata };
}

function memory(value: JsonObject, sight: Sight): JsonObject {
  if (maySee(value.visibility, sight)) return value;
  return { ...value, content: { redacted: true }, embedding_ref: null, metadata: { redacted: true } };
}

function outcome(value: JsonObject, sight: Sight): JsonObject {
  const { artifacts, messages } = value;
  const files = Array.isArray(artifacts) ? each(artifacts, (file) => artifact(file, sight)) : artifacts;
  const said = Array.isArray(messages) ? each(messages, (one) => withParts(one, sight)) : messages;
  return files === artifacts && said === messages ? value : { ...value, artifacts: files, messages: said };
}

function each(list: readonly Json[], show: (value: JsonObject) => JsonObject): readonly Json[] {
  let changed = false;
  const shown = list.map((value) => {
    if (!isObject(value)) return value;
    const next = show(value);
    changed ||= next !== value;
    return next;
  });
  return changed ? shown : list;
}
