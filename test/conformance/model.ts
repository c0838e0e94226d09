/**
 * Holds our sixteen resources against the Agents Protocol: by the list of what it requires, written out below, and by
 * its published descriptions, in every revision in `fixtures/harn`.
 */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { KNOWN_PARTS, RESOURCES } from '../../src/model/resources.ts';
import type { Check } from './run.ts';

interface Shape {
  readonly required: readonly string[];
  readonly properties: Readonly<Record<string, JsonSchema>>;
}
interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly allOf?: readonly JsonSchema[];
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly enum?: readonly string[];
  readonly const?: string;
  readonly examples?: readonly string[];
}

const ENVELOPE = ['id', 'object', 'created_at', 'updated_at', 'metadata'];
const VISIBILITY = ['public', 'internal', 'receipt_only'];

/** Required beyond the envelope, and the closed lists of words, as the protocol's pages have them. */
export const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  persona: ['name', 'version', 'entry_workflow', 'description', 'autonomy_tier', 'receipt_policy'],
  workspace: ['name', 'root', 'default_branch_id'],
  session: ['workspace_id', 'state', 'transcript'],
  task: ['session_id', 'workspace_id', 'status', 'input', 'created_by'],
  branch: ['workspace_id', 'kind', 'base_ref'],
  message: ['role', 'parts'],
  artifact: ['kind', 'mime_type', 'uri', 'visibility', 'sha256'],
  event: ['event', 'resource', 'sequence', 'payload'],
  receipt: ['subject', 'format', 'summary', 'issued_at', 'issuer'],
  memory: ['scope', 'owner_id', 'content', 'provenance'],
  vault: ['workspace_id', 'provider', 'capabilities'],
  connector: ['provider', 'workspace_id', 'status', 'event_kinds'],
  skill: ['name', 'description', 'input_schema', 'output_schema'],
  outcome: ['task_id', 'status', 'summary'],
  quota: ['scope', 'limits', 'usage'],
};
export const PARTS: Readonly<Record<string, readonly string[]>> = {
  text: ['type', 'text', 'visibility'],
  json: ['type', 'value', 'visibility'],
  tool_call: ['type', 'tool_call_id', 'name', 'input', 'visibility'],
  tool_result: ['type', 'tool_call_id', 'output', 'status', 'visibility'],
  artifact_ref: ['type', 'artifact_id', 'visibility'],
  file_ref: ['type', 'uri', 'mime_type', 'visibility'],
  image_ref: ['type', 'artifact_id', 'mime_type', 'visibility'],
};
const WORDS: Readonly<Record<string, readonly string[]>> = {
  'persona.autonomy_tier': ['shadow', 'suggest', 'act_with_approval', 'act_auto'],
  'persona.receipt_policy': ['required', 'optional', 'disabled'],
  'session.state': ['ACTIVE', 'IDLE', 'PAUSED', 'CLOSED', 'FAILED'],
  'task.status': ['SUBMITTED', 'WORKING', 'INPUT_REQUIRED', 'AUTH_REQUIRED', 'COMPLETED', 'FAILED', 'CANCELED'],
  'branch.kind': ['workspace', 'session', 'task', 'sandbox'],
  'message.role': ['user', 'assistant', 'system', 'tool', 'agent'],
  'artifact.kind': ['file', 'patch', 'image', 'log', 'diff', 'receipt', 'snapshot', 'dataset', 'other'],
  'artifact.visibility': VISIBILITY,
  'memory.scope': ['persona', 'session', 'workspace', 'tenant'],
  'connector.status': ['ACTIVE', 'PAUSED', 'FAILED', 'DISABLED'],
  'outcome.status': ['SUCCEEDED', 'FAILED', 'CANCELED'],
  'quota.scope': ['persona', 'workspace', 'tenant', 'organization'],
};

/** Published descriptions, oldest first. The later one adds to the earlier. */
const REVISIONS = ['spec', 'later-revision'] as const;
const PART_NAMES = ['Text', 'Json', 'ToolCall', 'ToolResult', 'ArtifactRef', 'FileRef', 'ImageRef'];

export const checks: readonly Check[] = [...ownChecks(), ...REVISIONS.flatMap(publishedChecks)];

function ownChecks(): Check[] {
  return [
    {
      name: 'there are sixteen resources',
      run: () => same(Object.keys(RESOURCES), [...Object.keys(REQUIRED), 'part']),
    },
    { name: 'there are seven known parts', run: () => same(Object.keys(KNOWN_PARTS), Object.keys(PARTS)) },
    ...Object.entries(REQUIRED).map(([kind, required]) => ({
      name: `${kind}: requires what the protocol requires`,
      run: () => same(resource(kind).required, [...ENVELOPE, ...required]),
    })),
    ...Object.entries(PARTS).map(([type, required]) => ({
      name: `part ${type}: requires what the protocol requires`,
      run: () => same(part(type).required, required),
    })),
    ...Object.entries(WORDS).map(([member, words]) => ({
      name: `${member}: has the protocol's words`,
      run: () => {
        const [kind = '', name = ''] = member.split('.');
        same(wordsOf(resource(kind).properties[name]), words);
      },
    })),
  ];
}

function publishedChecks(revision: string): Check[] {
  const file = new URL(`../../fixtures/harn/${revision}/openapi.yaml`, import.meta.url);
  const { components } = parse(readFileSync(file, 'utf8')) as {
    components: { schemas: Readonly<Record<string, JsonSchema>> };
  };
  const theirs = (name: string) => flatten(components.schemas[name] ?? missing(name), components.schemas);
  const words = (schema: JsonSchema) => wordsOf(resolve(schema, components.schemas));
  const compare = (label: string, name: string, ours: () => Shape): Check[] => [
    { name: `${revision}: ${label} requires the same`, run: () => same(ours().required, theirs(name).required) },
    {
      name: `${revision}: ${label} knows every member`,
      run: () => within(Object.keys(theirs(name).properties), Object.keys(ours().properties)),
    },
    {
      name: `${revision}: ${label} knows every word`,
      run: () => {
        for (const [member, schema] of Object.entries(theirs(name).properties)) {
          if (words(schema).length > 0) same(wordsOf(ours().properties[member]), words(schema), member);
        }
      },
    },
  ];
  return [
    ...Object.keys(REQUIRED).flatMap((kind) => compare(kind, capital(kind), () => resource(kind))),
    ...PART_NAMES.flatMap((name) => {
      const type = name.replace(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
      return compare(`part ${type}`, `${name}Part`, () => part(type));
    }),
  ];
}

function resource(kind: string): Shape {
  return shapeOf((RESOURCES as unknown as Record<string, JsonSchema>)[kind] ?? missing(kind));
}

function part(type: string): Shape {
  return shapeOf((KNOWN_PARTS as unknown as Record<string, JsonSchema>)[type] ?? missing(type));
}

function shapeOf({ required = [], properties = {} }: JsonSchema): Shape {
  return { required, properties };
}

function resolve(schema: JsonSchema, all: Readonly<Record<string, JsonSchema>>): JsonSchema {
  const name = schema.$ref?.replace('#/components/schemas/', '');
  return name === undefined ? schema : resolve(all[name] ?? missing(name), all);
}

function flatten(schema: JsonSchema, all: Readonly<Record<string, JsonSchema>>): Shape {
  const parts = [schema, ...(schema.allOf ?? [])].map((piece) => resolve(piece, all));
  return {
    required: [...new Set(parts.flatMap(({ required = [] }) => required))],
    properties: Object.assign({}, ...parts.map(({ properties = {} }) => properties)) as Shape['properties'],
  };
}

/** Open lists name their words as examples, closed ones as an enumeration, single ones as a constant. */
function wordsOf(schema: JsonSchema | undefined): readonly string[] {
  const inner = schema?.anyOf?.find(({ type }) => type !== 'null') ?? schema;
  return inner?.enum ?? inner?.examples ?? (inner?.const === undefined ? [] : [inner.const]);
}

function same(ours: readonly string[], theirs: readonly string[], label = ''): void {
  within(theirs, ours, label);
  const more = ours.filter((word) => !theirs.includes(word));
  if (more.length > 0) throw new Error(`${label} ours has more: ${more.join(', ')}`.trim());
}

function within(theirs: readonly string[], ours: readonly string[], label = ''): void {
  const lacking = theirs.filter((word) => !ours.includes(word));
  if (lacking.length > 0) throw new Error(`${label} ours lacks ${lacking.join(', ')}`.trim());
}

function missing(name: string): never {
  throw new Error(`there is no schema called ${name}`);
}

function capital(kind: string): string {
  return kind.charAt(0).toUpperCase() + kind.slice(1);
}
