/** The OpenAPI 3.1 document, generated from the table of operations that the router uses. Pure. */

import {
  CLASSIFICATIONS,
  GRANULARITIES,
  OPERATIONS,
  type Operation,
  REASONS,
  REDACTIONS,
  REVISION,
  ROUTING_HINTS,
  RUN_CLASSES,
  RUN_STATUSES,
  reasonRow,
  SIGNAL_ACTIONS,
  USAGE_EVENTS,
} from '../../../mappings/runs.ts';
import { asText, type Described } from '../../../src/index.ts';

type Node = Readonly<Record<string, unknown>>;

const text = { type: 'string' };
const object = { type: 'object' };
const nullable = { type: ['string', 'null'] };
const ref = (name: string): Node => ({ $ref: `#/components/schemas/${name}` });
const json = (schema: Node): Node => ({ content: { 'application/json': { schema } } });
const list = (items: Node): Node => ({ type: 'array', items });

const RUN = {
  id: text,
  workspace_id: nullable,
  subject_id: nullable,
  status: { enum: RUN_STATUSES },
  run_class: { enum: RUN_CLASSES },
  metadata: { type: 'object', properties: { created_at: text, updated_at: text } },
  event_payload: { type: 'object', properties: { redacted: { const: true }, value: { type: 'null' } } },
  awaiting_input: object,
  request_id: text,
};

const SCHEMAS: Readonly<Record<string, Node>> = {
  Error: {
    type: 'object',
    required: ['error', 'reason_code', 'request_id'],
    properties: { error: text, reason_code: { enum: REASONS.map(({ code }) => code) }, request_id: text },
  },
  SensitivityTag: {
    type: 'object',
    required: ['path', 'classification'],
    properties: {
      path: { type: 'string', description: 'Dotted names and [n], beginning $.input or $.metadata.' },
      classification: { enum: CLASSIFICATIONS },
      redaction: { enum: REDACTIONS, default: 'mask' },
      retention_hint_days: { type: 'integer', minimum: 0 },
    },
  },
  CreateRun: {
    type: 'object',
    required: ['input', 'metadata'],
    properties: {
      input: object,
      metadata: object,
      workspace_id: text,
      subject_id: text,
      attachment_refs: list(text),
      sensitivity_tags: list(ref('SensitivityTag')),
      routing_hint: { enum: ROUTING_HINTS },
      run_class: { enum: RUN_CLASSES, default: 'default' },
      streaming: { type: 'boolean' },
      plan: { type: 'object', properties: { version: { const: 2 }, steps: { type: 'array', minItems: 1 } } },
    },
  },
  Signal: {
    type: 'object',
    required: ['action'],
    properties: { action: { enum: SIGNAL_ACTIONS }, payload: {}, idempotency_key: text },
  },
  Run: { type: 'object', properties: RUN },
  CreatedRun: { type: 'object', properties: { ...RUN, replayed: { type: 'boolean' } } },
  RunEvent: {
    type: 'object',
    properties: {
      seq: { type: 'integer', minimum: 1 },
      type: text,
      timestamp: text,
      payload: { type: 'object', properties: { redacted: { type: 'boolean' }, value: object } },
    },
  },
  RunEvents: {
    type: 'object',
    properties: { events: list(ref('RunEvent')), next_cursor: { type: 'integer' }, request_id: text },
  },
  Done: { type: 'object', properties: { ok: { const: true }, request_id: text } },
  Object: object,
};

const RESULTS: Readonly<Record<string, string>> = {
  createRun: 'CreatedRun',
  getRun: 'Run',
  cancelRun: 'Run',
  retryRun: 'Run',
  resumeRun: 'Run',
  signalRun: 'Done',
  listRunEvents: 'RunEvents',
};
const BODIES: Readonly<Record<string, string>> = { createRun: 'CreateRun', signalRun: 'Signal' };

const QUERY: Readonly<Record<string, Node>> = {
  cursor: { type: 'integer', minimum: 0 },
  limit: { type: 'integer', minimum: 1, maximum: 200, default: 50 },
  offset: { type: 'integer', minimum: 0, default: 0 },
  include_harness: { type: 'boolean' },
  include_embedding: { type: 'boolean' },
  event_type: { enum: USAGE_EVENTS },
  granularity: { enum: GRANULARITIES, default: 'day' },
  start: { type: 'string', format: 'date-time' },
  end: { type: 'string', format: 'date-time' },
};

export function openApi(prefix: string): { readonly [member: string]: unknown } {
  const paths: Record<string, Record<string, Node>> = {};
  for (const operation of OPERATIONS as readonly Operation[]) {
    const path = paths[operation.path] ?? {};
    paths[operation.path] = path;
    path[operation.method.toLowerCase()] = operationNode(operation);
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Agent Harness runs API', version: REVISION },
    servers: [{ url: '/' }, ...(prefix ? [{ url: prefix }] : [])],
    paths,
    components: {
      schemas: SCHEMAS,
      securitySchemes: {
        key: { type: 'http', scheme: 'bearer', description: '`key_id:secret`, the raw pair.' },
      },
    },
  };
}

function operationNode(operation: Operation): Node {
  const { id, summary, auth, path, query = [] } = operation;
  const body = BODIES[id];
  return {
    operationId: id,
    summary,
    security: auth ? [{ key: [] }] : [],
    parameters: [
      ...(path.includes('{id}') ? [{ name: 'id', in: 'path', required: true, schema: text }] : []),
      ...(id === 'createRun' ? [{ name: 'idempotency-key', in: 'header', required: true, schema: text }] : []),
      ...query.map((name) => ({ name, in: 'query', required: false, schema: QUERY[name] ?? text })),
    ],
    ...(body && { requestBody: { required: true, ...json(ref(body)) } }),
    responses: responsesOf(operation),
  };
}

function responsesOf({ id, auth, refuses }: Operation): Node {
  const result = json(ref(RESULTS[id] ?? 'Object'));
  const streamed = { content: { 'text/event-stream': { schema: text } } };
  const done = { description: 'Done.', ...(id === 'streamRunEvents' ? streamed : result) };
  const successes = id === 'createRun' ? { 201: done, 200: { ...done, description: 'Done before.' } } : { 200: done };
  const everywhere = REASONS.flatMap(({ code, status }) =>
    /^AUTH_/.test(code) && (status === 401 || status === 403) ? [code] : [],
  );
  const byStatus = new Map<number, string[]>();
  for (const code of [...(auth ? everywhere : []), ...refuses]) {
    const { status } = reasonRow(code);
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  const refusals = [...byStatus].map(([status, codes]) => [
    asText(status),
    { description: codes.join(', '), ...json(ref('Error')) },
  ]);
  return { ...successes, ...Object.fromEntries(refusals) };
}

/**
 * The same for a document that also describes other doors of this address: names that other doors may also use are marked as ours.
 * Operations that the other door answers itself, health and the document, are left out.
 */
export function besideOthers(): Described {
  const { paths, components } = openApi('') as {
    paths: Record<string, Node>;
    components: { schemas: Node };
  };
  const own = Object.entries(paths).filter(([path]) => path.startsWith('/v1/') || path === '/health/deps');
  const renamed = JSON.stringify({ paths: Object.fromEntries(own), schemas: components.schemas })
    .replaceAll('#/components/schemas/', '#/components/schemas/Runs')
    .replaceAll('{"key":[]}', '{"runsKey":[]}');
  const { paths: named, schemas } = JSON.parse(renamed) as { paths: Node; schemas: Node };
  const { key } = (openApi('').components as { securitySchemes: { key: object } }).securitySchemes;
  return {
    paths: named,
    components: {
      schemas: Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [`Runs${name}`, schema])),
      securitySchemes: { runsKey: key },
    },
  };
}
