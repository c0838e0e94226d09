/**
 * The OpenAPI 3.1 document, generated from the table of operations and the schemas that validate requests, so that it cannot
 * differ from them.
 */
import { type Operation, type QueryName, RECEIPT_JSON } from '../../../mappings/harn.ts';
import type { Revision } from '../revisions/revisions.ts';
import { RECEIPT_SCHEMA } from '../revisions/schemas.ts';

type Node = Record<string, unknown>;

const ref = (kind: string, name: string) => ({ $ref: `#/components/${kind}/${name}` });

const QUERY: Readonly<Record<QueryName, Node>> = {
  limit: { schema: { type: 'integer', minimum: 1, maximum: 200, default: 50 }, description: 'Entries on a page.' },
  cursor: { schema: { type: 'string' }, description: 'From `page.next_cursor` of the page before.' },
  after_event_id: { schema: { type: 'string' }, description: 'Only events after this one.' },
  last_event_id: {
    schema: { type: 'string' },
    description: 'As the Last-Event-ID header, for clients without headers.',
  },
  workspace_id: { schema: { type: 'string' }, description: 'Only in this workspace.' },
  session_id: { schema: { type: 'string' }, description: 'Only in this session.' },
  task_id: { schema: { type: 'string' }, description: 'Only in this task.' },
  status: { schema: { type: 'string' }, description: 'Only in this state.' },
  tenant_id: { schema: { type: 'string' }, description: 'Only of this tenant.' },
  actor: { schema: { type: 'string' }, description: 'Only what this principal proposed.' },
  outcome: {
    schema: { type: 'string', enum: ['granted', 'denied', 'escalated'] },
    description: 'Only what was decided so.',
  },
  path: { schema: { type: 'string' }, description: 'Path below the root of the workspace; `.` lists the root.' },
};

const headersOf = ({ version }: Revision) => ({
  ProtocolVersion: {
    name: 'Harn-Agents-Protocol-Version',
    in: 'header',
    required: true,
    schema: { type: 'string', enum: [version] },
    description: 'The version of the protocol the client speaks.',
  },
  IdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header',
    required: false,
    schema: { type: 'string', minLength: 1, maxLength: 255 },
    description: 'The same key with the same body finds what the first request made.',
  },
  LastEventId: {
    name: 'Last-Event-ID',
    in: 'header',
    required: false,
    schema: { type: 'string' },
    description: 'Go on after this event.',
  },
});

/** Results that are no JSON of ours. */
const CONTENT: Readonly<Record<string, Node>> = {
  Bytes: { 'application/octet-stream': {} },
  EventStream: { 'text/event-stream': { schema: { type: 'string' } } },
  Text: { 'text/plain': { schema: { type: 'string' } } },
  Html: { 'text/html': { schema: { type: 'string' } } },
  JsonSchema: { 'application/schema+json': { schema: { type: 'object' } } },
  Receipt: {
    'application/json': { schema: ref('schemas', 'Receipt') },
    // The bare document, by content negotiation.
    [RECEIPT_JSON]: { schema: { $ref: RECEIPT_SCHEMA } },
  },
};

/** A cache: a revision's document is the same for as long as the process runs. */
const made = new Map<string, Node>();

export interface Published {
  readonly server: string;
  /** Whether tokens of an authorization server are accepted. */
  readonly oauth: boolean;
}

export function openApi(revision: Revision, { server, oauth }: Published): Node {
  const key = `${revision.version} ${oauth} ${server}`;
  const known = made.get(key);
  if (known) return known;
  const { version, operations } = revision;
  const paths: Record<string, Node> = {};
  for (const operation of operations) {
    paths[operation.path] = { ...paths[operation.path], [operation.method.toLowerCase()]: describe(operation, oauth) };
  }
  const document: Node = {
    openapi: '3.1.0',
    info: {
      title: 'Tollbridge: the Agents Protocol',
      version,
      summary: 'Agents Protocol v1 over REST, Server-Sent Events and WebSocket.',
      description: 'Sessions, tasks, questions to people, events, receipts and replay, served by one gateway.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: server }],
    security: securityOf([], oauth),
    tags: [...new Set(operations.map(({ tag }) => tag))].map((name) => ({ name, description: `${name}.` })),
    paths,
    components: {
      securitySchemes: {
        bearerAuth: { type: 'http', scheme: 'bearer', description: 'An API key, or the token printed at start.' },
        ...(oauth && {
          oauth2ClientCredentials: {
            type: 'oauth2',
            description: 'An access token of the configured authorization server.',
            flows: { clientCredentials: { tokenUrl: '/oauth/token', scopes: scopes(operations) } },
          },
        }),
      },
      parameters: {
        ...headersOf(revision),
        ...Object.fromEntries(Object.entries(QUERY).map(([name, rest]) => [name, { name, in: 'query', ...rest }])),
      },
      responses: {
        Error: { description: 'Why not.', content: { 'application/json': { schema: ref('schemas', 'Error') } } },
      },
      schemas: schemas(revision),
    },
  };
  made.set(key, document);
  return document;
}

function securityOf(scopes: readonly string[], oauth: boolean): readonly Node[] {
  return [{ bearerAuth: [] }, ...(oauth ? [{ oauth2ClientCredentials: scopes }] : [])];
}

function describe(operation: Operation, oauth: boolean): Node {
  const {
    id,
    path,
    tag,
    summary,
    scope,
    success,
    result,
    body,
    bodyOptional,
    query = [],
    key,
    repeated,
    unversioned,
  } = operation;
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
  const streams = result === 'EventStream';
  return {
    operationId: id,
    tags: [tag],
    summary,
    security: scope === null ? [] : securityOf([scope], oauth),
    ...(streams && !path.startsWith('/v1/events') && { 'x-websocket-path': true }),
    parameters: [
      ...names.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } })),
      ...(unversioned ? [] : [ref('parameters', 'ProtocolVersion')]),
      ...(key ? [ref('parameters', 'IdempotencyKey')] : []),
      ...(streams ? [ref('parameters', 'LastEventId')] : []),
      ...query.map((name) => ref('parameters', name)),
    ],
    ...(body && { requestBody: { required: !bodyOptional, content: contentOf(body) } }),
    responses: {
      ...(repeated && { [repeated]: { description: 'What an earlier request made.', content: contentOf(result!) } }),
      [success]: { description: summary, ...(result && { content: contentOf(result) }) },
      ...(streams &&
        path.startsWith('/v1/tasks') && { 204: { description: 'The task is over and all of it was read.' } }),
      default: ref('responses', 'Error'),
    },
  };
}

function contentOf(name: string): Node {
  return CONTENT[name] ?? { 'application/json': { schema: ref('schemas', name) } };
}

function scopes(operations: readonly Operation[]): Record<string, string> {
  const all = operations.flatMap(({ scope }) => (scope ? [scope] : []));
  return Object.fromEntries(
    [...new Set(all)].toSorted().map((scope) => {
      const [what, how] = scope.split(':');
      return [scope, `${how === 'read' ? 'Read' : 'Write'} ${what}.`];
    }),
  );
}

/** A component inside another is referred to, not repeated. */
function schemas({ schemas: all }: Revision): Record<string, unknown> {
  const names = new Map<unknown, string>([...all].map(([name, schema]) => [schema, name]));
  const shown = (node: unknown, top: boolean): unknown => {
    const name = top ? undefined : names.get(node);
    if (name) return ref('schemas', name);
    if (Array.isArray(node)) return node.map((item) => shown(item, false));
    if (typeof node !== 'object' || node === null) return node;
    return Object.fromEntries(Object.entries(node).map(([member, value]) => [member, shown(value, false)]));
  };
  return Object.fromEntries([...all].map(([name, schema]) => [name, shown(schema, true)]));
}
