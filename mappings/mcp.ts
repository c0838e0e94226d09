/**
 * Model Context Protocol ↔ canonical, revisions 2024-11-05 to 2026-07-28. Words are spelled as on the wire. The two eras share
 * most of their words; where one of them lacks a word, its row says so.
 */
import type { FaultKind } from '../src/model/faults.ts';
import { type Effect, TASK_STATES } from '../src/model/words.ts';
import { type FrameRow, frameTable } from './frames.ts';
import { table } from './row.ts';

export const MODERN = '2026-07-28';
export const LEGACY = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const;
export const LATEST_LEGACY = LEGACY[0];
/** The revision of a request without the header, once a session is open. */
export const UNSAID = '2025-03-26';
/** The one revision that has batches. */
export const BATCHING = '2025-03-26';
export type Era = 'legacy' | 'modern';

const PREFIX = 'io.modelcontextprotocol/';
export const META = {
  version: `${PREFIX}protocolVersion`,
  capabilities: `${PREFIX}clientCapabilities`,
  client: `${PREFIX}clientInfo`,
  server: `${PREFIX}serverInfo`,
  level: `${PREFIX}logLevel`,
  subscription: `${PREFIX}subscriptionId`,
  relatedTask: `${PREFIX}related-task`,
} as const;
/** The `_meta` members in which two of our gateways exchange data about a call. */
export const OWN_META = {
  caller: 'dev.tollbridge/caller',
  act: 'dev.tollbridge/act',
  unavailable: 'dev.tollbridge/unavailable',
} as const;
export const TASKS_EXTENSION = `${PREFIX}tasks`;

/**
 * One line per method, sender and kind of frame: its handling, and its other properties. A `tools/call` is an act and goes
 * through the gate as one; a frame that passes is decided and recorded as a request; a frame that is answered here concerns
 * only this hop. `frames.judge` handles every frame without a line.
 */
export interface McpFrameRow extends FrameRow<'client' | 'server'> {
  readonly eras: readonly Era[];
  /** The member that names the object of the request; modern requests repeat it in `Mcp-Name`. */
  readonly name?: 'name' | 'uri' | 'taskId';
  /** Its result says how long it may be cached. */
  readonly cached?: boolean;
  readonly lists?: 'tools' | 'prompts' | 'resources' | 'resourceTemplates' | 'tasks';
  /** It has no time limit. */
  readonly long?: boolean;
  /** Its result is content, which may come from untrusted authors. */
  readonly reads?: boolean;
  /** For a request of a server: the capability a client must declare before it may receive it. */
  readonly capability?: 'elicitation' | 'sampling' | 'roots' | 'tasks';
}

const BOTH = ['legacy', 'modern'] as const;
const OLD = ['legacy'] as const;
const NEW = ['modern'] as const;
const RESERVED = 'the protocol keeps these names for notifications, of extensions too';
const NO_REQUEST = 'names under notifications/ are notifications and have no id';
// biome-ignore format: one frame per line reads as the page of a specification
const ROWS = [
  { method: 'initialize', from: 'client', frame: 'request', handling: 'pass', eras: OLD },
  { method: 'ping', from: 'client', frame: 'request', handling: 'answer', eras: OLD },
  { method: 'logging/setLevel', from: 'client', frame: 'request', handling: 'pass', eras: OLD },
  { method: 'resources/subscribe', from: 'client', frame: 'request', handling: 'pass', eras: OLD, name: 'uri' },
  { method: 'resources/unsubscribe', from: 'client', frame: 'request', handling: 'pass', eras: OLD, name: 'uri' },
  { method: 'tasks/list', from: 'client', frame: 'request', handling: 'pass', eras: OLD, lists: 'tasks' },
  { method: 'tasks/result', from: 'client', frame: 'request', handling: 'pass', eras: OLD, name: 'taskId', long: true, reads: true },
  { method: 'server/discover', from: 'client', frame: 'request', handling: 'pass', eras: NEW, cached: true },
  { method: 'subscriptions/listen', from: 'client', frame: 'request', handling: 'pass', eras: NEW, long: true },
  { method: 'tasks/update', from: 'client', frame: 'request', handling: 'pass', eras: NEW, name: 'taskId' },
  { method: 'tasks/get', from: 'client', frame: 'request', handling: 'pass', eras: BOTH, name: 'taskId', reads: true },
  { method: 'tasks/cancel', from: 'client', frame: 'request', handling: 'pass', eras: BOTH, name: 'taskId' },
  { method: 'tools/call', from: 'client', frame: 'request', handling: 'act', eras: BOTH, name: 'name' },
  { method: 'tools/list', from: 'client', frame: 'request', handling: 'pass', eras: BOTH, cached: true, lists: 'tools' },
  { method: 'prompts/list', from: 'client', frame: 'request', handling: 'pass', eras: BOTH, cached: true, lists: 'prompts' },
  { method: 'prompts/get', from: 'client', frame: 'request', handling: 'pass', eras: BOTH, name: 'name', reads: true },
  { method: 'resources/list', from: 'client', frame: 'request', handling: 'pass', eras: BOTH, cached: true, lists: 'resources' },
  { method: 'resources/templates/list', from: 'client', frame: 'request', handling: 'pass', eras: BOTH, cached: true, lists: 'resourceTemplates' },
  { method: 'resources/read', from: 'client', frame: 'request', handling: 'pass', eras: BOTH, name: 'uri', cached: true, reads: true },
  { method: 'completion/complete', from: 'client', frame: 'request', handling: 'pass', eras: BOTH },
  { method: 'skills/list', from: 'client', frame: 'request', handling: 'pass', eras: BOTH, why: 'the skills extension lists instruction bundles; nothing runs' },
  { method: 'skills/get', from: 'client', frame: 'request', handling: 'pass', eras: BOTH, name: 'uri', reads: true, why: 'the skills extension reads a bundle, as resources/read does' },
  { method: 'resources/directory/read', from: 'client', frame: 'request', handling: 'pass', eras: BOTH, name: 'uri', why: 'the skills extension lists a directory of resources' },

  { method: 'notifications/initialized', from: 'client', frame: 'notification', handling: 'pass', eras: OLD },
  { method: 'notifications/cancelled', from: 'client', frame: 'notification', handling: 'answer', eras: BOTH },
  { method: 'notifications/progress', from: 'client', frame: 'notification', handling: 'pass', eras: OLD },
  { method: 'notifications/roots/list_changed', from: 'client', frame: 'notification', handling: 'pass', eras: OLD },
  { method: 'notifications/tasks/status', from: 'client', frame: 'notification', handling: 'pass', eras: OLD },
  { method: 'notifications/*', from: 'client', frame: 'notification', handling: 'pass', eras: BOTH, why: RESERVED },
  { method: 'notifications/*', from: 'client', frame: 'request', handling: 'refuse', eras: BOTH, why: NO_REQUEST },

  { method: 'ping', from: 'server', frame: 'request', handling: 'answer', eras: OLD },
  { method: 'elicitation/create', from: 'server', frame: 'request', handling: 'pass', eras: BOTH, capability: 'elicitation' },
  { method: 'sampling/createMessage', from: 'server', frame: 'request', handling: 'pass', eras: BOTH, capability: 'sampling' },
  { method: 'roots/list', from: 'server', frame: 'request', handling: 'pass', eras: BOTH, capability: 'roots' },
  { method: 'tasks/get', from: 'server', frame: 'request', handling: 'pass', eras: OLD, capability: 'tasks' },
  { method: 'tasks/result', from: 'server', frame: 'request', handling: 'pass', eras: OLD, capability: 'tasks', long: true },
  { method: 'tasks/list', from: 'server', frame: 'request', handling: 'pass', eras: OLD, capability: 'tasks' },
  { method: 'tasks/cancel', from: 'server', frame: 'request', handling: 'pass', eras: OLD, capability: 'tasks' },

  { method: 'notifications/cancelled', from: 'server', frame: 'notification', handling: 'pass', eras: BOTH },
  { method: 'notifications/progress', from: 'server', frame: 'notification', handling: 'pass', eras: BOTH },
  { method: 'notifications/message', from: 'server', frame: 'notification', handling: 'pass', eras: BOTH },
  { method: 'notifications/tools/list_changed', from: 'server', frame: 'notification', handling: 'pass', eras: BOTH },
  { method: 'notifications/prompts/list_changed', from: 'server', frame: 'notification', handling: 'pass', eras: BOTH },
  { method: 'notifications/resources/list_changed', from: 'server', frame: 'notification', handling: 'pass', eras: BOTH },
  { method: 'notifications/resources/updated', from: 'server', frame: 'notification', handling: 'pass', eras: BOTH },
  { method: 'notifications/subscriptions/acknowledged', from: 'server', frame: 'notification', handling: 'pass', eras: NEW },
  { method: 'notifications/elicitation/complete', from: 'server', frame: 'notification', handling: 'pass', eras: OLD },
  { method: 'notifications/tasks/status', from: 'server', frame: 'notification', handling: 'pass', eras: OLD },
  { method: 'notifications/tasks', from: 'server', frame: 'notification', handling: 'pass', eras: NEW },
  { method: 'notifications/*', from: 'server', frame: 'notification', handling: 'pass', eras: BOTH, why: RESERVED },
  { method: 'notifications/*', from: 'server', frame: 'request', handling: 'refuse', eras: BOTH, why: NO_REQUEST },
] as const satisfies readonly McpFrameRow[];
export type McpMethod = (typeof ROWS)[number]['method'];
export const frames = frameTable<McpFrameRow>(ROWS);

const requestsOf = (from: McpFrameRow['from']): ReadonlyMap<string, McpFrameRow> =>
  new Map(
    frames.rows
      .filter((row) => row.from === from && row.frame === 'request' && row.handling !== 'refuse')
      .map((row) => [row.method, row]),
  );
const BY_METHOD = requestsOf('client');
const ASKED_BY_SERVERS = requestsOf('server');

/** The row of a client's request; undefined for a method without a row, which is an act of effect `unknown`. */
export function methodRow(method: string): McpFrameRow | undefined {
  return BY_METHOD.get(method);
}

/** Requests that a modern server may answer with questions; a client does not expect them in the answer to any other. */
export const MAY_ASK: readonly McpMethod[] = ['tools/call', 'prompts/get', 'resources/read'];

/** The row of a server's request to a client; undefined for every other method. */
export function inputRow(method: string): McpFrameRow | undefined {
  return ASKED_BY_SERVERS.get(method);
}

/**
 * Members of parameters that decide what a request does. A peer that ignores case takes `Name` for `name`, so a spelling that
 * differs only in case is refused.
 */
export const MEMBERS: readonly string[] = [
  '_meta',
  'argument',
  'arguments',
  'capabilities',
  'clientInfo',
  'context',
  'cursor',
  'inputResponses',
  'level',
  'name',
  'notifications',
  'progressToken',
  'protocolVersion',
  'reason',
  'ref',
  'requestId',
  'requestState',
  'task',
  'taskId',
  'uri',
];

/** A changed list: its notification, its member in `subscriptions/listen`, and the requests that return it. */
// biome-ignore format: one list per line
export const CHANGES = [
  { list: 'tools', wire: 'notifications/tools/list_changed', wish: 'toolsListChanged', methods: ['tools/list'] },
  { list: 'prompts', wire: 'notifications/prompts/list_changed', wish: 'promptsListChanged', methods: ['prompts/list'] },
  { list: 'resources', wire: 'notifications/resources/list_changed', wish: 'resourcesListChanged', methods: ['resources/list', 'resources/templates/list'] },
] as const;

export const LOG_LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const;

/** Tasks of 2025-11-25, and of the extension to 2026-07-28. Both use the same words. */
export const taskState = table(TASK_STATES, [
  { wire: 'working', core: 'SUBMITTED', dir: '<-', why: 'there is no word for work that has not begun' },
  { wire: 'working', core: 'WORKING', dir: '<->' },
  { wire: 'input_required', core: 'INPUT_REQUIRED', dir: '<->' },
  { wire: 'input_required', core: 'AUTH_REQUIRED', dir: '<-', why: 'permission is asked for like any other input' },
  { wire: 'completed', core: 'COMPLETED', dir: '<->' },
  { wire: 'failed', core: 'FAILED', dir: '<->' },
  { wire: 'cancelled', core: 'CANCELED', dir: '<->' },
]);

/** Hints of a tool, as rules may name them. An absent hint counts as the protocol's default. */
export const HINTS = [
  { wire: 'readOnlyHint', attribute: 'read_only', otherwise: false },
  { wire: 'destructiveHint', attribute: 'destructive', otherwise: true },
  { wire: 'idempotentHint', attribute: 'idempotent', otherwise: false },
  { wire: 'openWorldHint', attribute: 'open_world', otherwise: true },
] as const;

/** The effect of a tool, from the hints of a trusted server. */
export function effectOf(hints: Readonly<Record<string, unknown>>): Effect {
  // Of two contradicting hints, the more dangerous one counts.
  if (hints.readOnlyHint === true && hints.destructiveHint !== true) return 'read';
  return hints.destructiveHint === false ? 'write' : 'delete';
}

export const CODES = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  sessionGone: -32001,
  resourceNotFound: -32002,
  headerMismatch: -32020,
  missingCapability: -32021,
  unsupportedVersion: -32022,
} as const;

/** HTTP status of an error in the modern era; everything else is a 200 with the error in it. */
export const MODERN_STATUS: Readonly<Record<number, number>> = {
  [CODES.headerMismatch]: 400,
  [CODES.missingCapability]: 400,
  [CODES.unsupportedVersion]: 400,
  [CODES.methodNotFound]: 404,
};

/** Only for errors that no tool result can express. Positive numbers lie outside the range that JSON-RPC reserves. */
export const faults = {
  invalid_request: CODES.invalidParams,
  invalid_state_transition: 409,
  unauthenticated: 401,
  permission_denied: 403,
  not_found: CODES.invalidParams,
  conflict: 409,
  idempotency_key_reused: 409,
  cursor_expired: CODES.invalidParams,
  payload_too_large: 413,
  policy_violation: 403,
  locked: 423,
  unsupported_version: CODES.unsupportedVersion,
  rate_limited: 429,
  client_closed: 499,
  internal: CODES.internal,
  upstream_unavailable: 502,
  unavailable: 503,
  deadline_exceeded: 504,
  not_implemented: CODES.methodNotFound,
} as const satisfies Record<FaultKind, number>;
