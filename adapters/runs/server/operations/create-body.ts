/** The body of a new run: read in the order callers can rely on, refused with the code of the first thing wrong. Pure. */
import { INPUT_LIMIT, ROUTING_HINTS, RUN_CLASSES } from '../../../../mappings/runs.ts';
import { isObject, type Json, type JsonObject } from '../../../../src/index.ts';
import { RunsRefusal } from '../refusal.ts';
import { holdsSensitive, readTags, type Tag } from '../sensitive.ts';

export interface RunRequest {
  readonly input: JsonObject;
  readonly metadata: JsonObject;
  readonly workspace_id: string | null;
  readonly subject_id: string | null;
  readonly attachment_refs: readonly string[];
  readonly tags: readonly Tag[];
  readonly routing_hint: (typeof ROUTING_HINTS)[number] | undefined;
  readonly run_class: (typeof RUN_CLASSES)[number];
  readonly streaming: boolean | undefined;
  readonly plan: JsonObject | undefined;
}

/** Types, size, tags, plan: in this order. */
export function readCreate(body: unknown): RunRequest {
  if (!isObject(body as Json)) throw invalid('the body must be a JSON object');
  const request = body as JsonObject;
  const { input, metadata } = request;
  if (!isObject(input)) throw invalid('input must be an object');
  if (!isObject(metadata)) throw invalid('metadata must be an object');
  const typed = {
    input,
    metadata,
    workspace_id: optional(request.workspace_id, 'workspace_id', isText) ?? null,
    subject_id: optional(request.subject_id, 'subject_id', isText) ?? null,
    attachment_refs: optional(request.attachment_refs, 'attachment_refs', isTexts) ?? [],
    routing_hint: word(request.routing_hint, 'routing_hint', ROUTING_HINTS),
    run_class: word(request.run_class, 'run_class', RUN_CLASSES) ?? 'default',
    streaming: optional(request.streaming, 'streaming', isTruth),
  };
  if (sizeOf(input) + sizeOf(metadata) > INPUT_LIMIT) throw new RunsRefusal('INPUT_PAYLOAD_TOO_LARGE');
  const tags = readTags(request.sensitivity_tags);
  if (tags.length === 0 && (holdsSensitive(input) || holdsSensitive(metadata))) {
    throw new RunsRefusal('INPUT_SENSITIVITY_TAG_REQUIRED');
  }
  return { ...typed, tags, plan: readPlan(request.plan) };
}

/** Version 2 with at least one step; the contents of the steps are not interpreted. */
function readPlan(plan: Json | undefined): JsonObject | undefined {
  if (plan === undefined || plan === null) return undefined;
  const { version, steps } = isObject(plan) ? plan : {};
  const whole =
    version === 2 && Array.isArray(steps) && steps.length > 0 && steps.every((step: Json) => isObject(step));
  if (!whole) throw new RunsRefusal('INPUT_PLAN_INVALID');
  return plan as JsonObject;
}

function sizeOf(value: JsonObject): number {
  return Buffer.byteLength(JSON.stringify(value));
}

function optional<T extends Json>(
  value: Json | undefined,
  name: string,
  is: (value: Json) => value is T,
): T | undefined {
  if (value === undefined || value === null) return undefined;
  if (!is(value)) throw invalid(`${name} is not of its type`);
  return value;
}

function word<const Words extends readonly string[]>(
  value: Json | undefined,
  name: string,
  words: Words,
): Words[number] | undefined {
  const text = optional(value, name, isText);
  if (text !== undefined && !words.includes(text)) throw invalid(`${name} must be one of ${words.join(', ')}`);
  return text;
}

const isText = (value: Json): value is string => typeof value === 'string' && value !== '' && value.length <= 1024;
const isTexts = (value: Json): value is readonly string[] =>
  Array.isArray(value) && value.every((item: Json) => isText(item));
const isTruth = (value: Json): value is boolean => typeof value === 'boolean';

function invalid(message: string): RunsRefusal {
  return new RunsRefusal('INPUT_PAYLOAD_INVALID', message);
}
