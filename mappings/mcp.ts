/**
 * Model Context Protocol ↔ canonical, revisions 2024-11-05 to 2026-07-28. Words are spelled as they travel. The two eras
 * share most of their words; where one of them lacks a word, its row says so.
 */
import type { FaultKind } from '../src/model/faults.ts';
import { type Effect, TASK_STATES } from '../src/model/words.ts';
import { table } from './row.ts';

export const MODERN = '2026-07-28';
export const LEGACY = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const;
export const LATEST_LEGACY = LEGACY[0];
/** What a request without the header speaks, once a session is open. */
export const UNSAID = '2025-03-26';
/** The one revision in which several messages may come as one. */
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
export const TASKS_EXTENSION = `${PREFIX}tasks`;

/**
 * One line per request a client makes. `via` says how it goes on: a `call` is an act and passes the gate as one, `pass` is
 * decided and written down as a request, `local` is about this hop only and is answered here.
 */
export interface MethodRow {
  readonly wire: string;
  readonly eras: readonly Era[];
  readonly via: 'call' | 'pass' | 'local';
  /** The member that names what it touches; modern requests repeat it in `Mcp-Name`. */
  readonly name?: 'name' | 'uri' | 'taskId';
  /** Its result says how long it may be kept. */
  readonly cached?: boolean;
  readonly lists?: 'tools' | 'prompts' | 'resources' | 'resourceTemplates' | 'tasks';
  /** It may take as long as it takes. */
  readonly long?: boolean;
  /** What comes back is content, which may hold what others wrote. */
  readonly reads?: boolean;
}

const BOTH = ['legacy', 'modern'] as const;
// biome-ignore format: one method per line reads as the page of a specification
export const METHODS = [
  { wire: 'initialize', eras: ['legacy'], via: 'pass' },
  { wire: 'ping', eras: ['legacy'], via: 'local' },
  { wire: 'logging/setLevel', eras: ['legacy'], via: 'pass' },
  { wire: 'resources/subscribe', eras: ['legacy'], via: 'pass', name: 'uri' },
  { wire: 'resources/unsubscribe', eras: ['legacy'], via: 'pass', name: 'uri' },
  { wire: 'tasks/list', eras: ['legacy'], via: 'pass', lists: 'tasks' },
  { wire: 'tasks/result', eras: ['legacy'], via: 'pass', name: 'taskId', long: true, reads: true },
  { wire: 'server/discover', eras: ['modern'], via: 'pass', cached: true },
  { wire: 'subscriptions/listen', eras: ['modern'], via: 'pass', long: true },
  { wire: 'tasks/update', eras: ['modern'], via: 'pass', name: 'taskId' },
  { wire: 'tasks/get', eras: BOTH, via: 'pass', name: 'taskId', reads: true },
  { wire: 'tasks/cancel', eras: BOTH, via: 'pass', name: 'taskId' },
  { wire: 'tools/call', eras: BOTH, via: 'call', name: 'name' },
  { wire: 'tools/list', eras: BOTH, via: 'pass', cached: true, lists: 'tools' },
  { wire: 'prompts/list', eras: BOTH, via: 'pass', cached: true, lists: 'prompts' },
  { wire: 'prompts/get', eras: BOTH, via: 'pass', name: 'name', reads: true },
  { wire: 'resources/list', eras: BOTH, via: 'pass', cached: true, lists: 'resources' },
  { wire: 'resources/templates/list', eras: BOTH, via: 'pass', cached: true, lists: 'resourceTemplates' },
  { wire: 'resources/read', eras: BOTH, via: 'pass', name: 'uri', cached: true, reads: true },
  { wire: 'completion/complete', eras: BOTH, via: 'pass' },
  { wire: 'skills/list', eras: BOTH, via: 'pass' },
  { wire: 'skills/get', eras: BOTH, via: 'pass', name: 'uri', reads: true },
  { wire: 'resources/directory/read', eras: BOTH, via: 'pass', name: 'uri' },
] as const satisfies readonly MethodRow[];
const BY_METHOD: ReadonlyMap<string, MethodRow> = new Map(METHODS.map((row) => [row.wire, row]));

/** Undefined for a method nobody has written down: it goes through as it is, where its era lets it. */
export function methodRow(method: string): MethodRow | undefined {
  return BY_METHOD.get(method);
}

/** Requests a server may make of a client, and the capability that has to be declared for each. */
export const INPUTS: Readonly<Record<string, string>> = {
  'elicitation/create': 'elicitation',
  'sampling/createMessage': 'sampling',
  'roots/list': 'roots',
};

/** A list that changed: the notification, the wish for it in `subscriptions/listen`, and the requests that show it. */
// biome-ignore format: one list per line
export const CHANGES = [
  { list: 'tools', wire: 'notifications/tools/list_changed', wish: 'toolsListChanged', methods: ['tools/list'] },
  { list: 'prompts', wire: 'notifications/prompts/list_changed', wish: 'promptsListChanged', methods: ['prompts/list'] },
  { list: 'resources', wire: 'notifications/resources/list_changed', wish: 'resourcesListChanged', methods: ['resources/list', 'resources/templates/list'] },
] as const;

export const LOG_LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const;

/** Tasks of 2025-11-25, and of the extension to 2026-07-28. Both have the same words. */
export const taskState = table(TASK_STATES, [
  { wire: 'working', core: 'SUBMITTED', dir: '<-', why: 'there is no word for work that has not begun' },
  { wire: 'working', core: 'WORKING', dir: '<->' },
  { wire: 'input_required', core: 'INPUT_REQUIRED', dir: '<->' },
  { wire: 'input_required', core: 'AUTH_REQUIRED', dir: '<-', why: 'permission is asked for like any other input' },
  { wire: 'completed', core: 'COMPLETED', dir: '<->' },
  { wire: 'failed', core: 'FAILED', dir: '<->' },
  { wire: 'cancelled', core: 'CANCELED', dir: '<->' },
]);

/** Hints of a tool, as rules may name them. What is left unsaid counts as the protocol's default. */
export const HINTS = [
  { wire: 'readOnlyHint', attribute: 'read_only', otherwise: false },
  { wire: 'destructiveHint', attribute: 'destructive', otherwise: true },
  { wire: 'idempotentHint', attribute: 'idempotent', otherwise: false },
  { wire: 'openWorldHint', attribute: 'open_world', otherwise: true },
] as const;

/** What a tool of a trusted server does to the world, by its own word. */
export function effectOf(hints: Readonly<Record<string, unknown>>): Effect {
  if (hints.readOnlyHint === true) return 'read';
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

/** Only what no tool result can say. Positive numbers lie outside what JSON-RPC keeps for itself. */
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
